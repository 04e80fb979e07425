//! Requests to a server, serialized without an intermediate JSON value.

use crate::mcp::{
    client::connection::{in_flight::RequestPurpose, request_error::RequestError},
    wire::{
        message::{RequestId, RpcError},
        meta,
    },
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use toolstead_domain::{InputAnswers, LogLevel, Principal, ProtocolGeneration, ProtocolVersion};

/// Name by which Toolstead introduces itself to MCP servers of both protocol generations.
const CLIENT_NAME: &str = "toolstead";

/// Serializer of the requests of one connection. Members that every request has are prepared once.
#[derive(Debug, Clone)]
pub(in crate::mcp::client) struct ConnectionRequestSerializer {
    /// Protocol version in use.
    pub(in crate::mcp::client) version: ProtocolVersion,
    /// Members of `_meta` that every request has, as JSON text. Empty up to 2025-11-25.
    common_meta: String,
    /// Client capabilities declared in requests that Toolstead makes for itself, as JSON text.
    capabilities: String,
}

/// Request that is forwarded to the server on behalf of a caller.
#[derive(Debug, Clone, Copy)]
pub(in crate::mcp::client) struct ForwardedRequest<'a> {
    pub(in crate::mcp::client) method: &'static str,
    /// Name or URI of the request's subject at the server, repeated in the header `Mcp-Name`.
    pub(in crate::mcp::client) name: Option<&'a str>,
    pub(in crate::mcp::client) params: RequestParams<'a>,
    /// Capabilities of the caller for questions of this server (MCP's `ClientCapabilities`). Modern servers get them
    /// with the request.
    pub(in crate::mcp::client) capabilities: &'a Map<String, Value>,
    /// `_meta` of the caller's request. Its members that are valid for one connection only are not forwarded.
    pub(in crate::mcp::client) meta: &'a Map<String, Value>,
    /// Answers to the questions of an earlier attempt.
    pub(in crate::mcp::client) answers: Option<&'a InputAnswers>,
    /// Minimum severity of the log messages that the caller requests.
    pub(in crate::mcp::client) log_level: Option<LogLevel>,
    /// `true` if the caller requests progress.
    pub(in crate::mcp::client) progress: bool,
    /// Principal on whose behalf the request is made, if any.
    pub(in crate::mcp::client) principal: Option<&'a Principal>,
}

/// Parameters of a forwarded request, except `_meta` and the members of a retry.
#[derive(Debug, Clone, Copy)]
pub(in crate::mcp::client) enum RequestParams<'a> {
    /// Parameters of `tools/call`.
    Call {
        /// Name of the tool at the server.
        tool: &'a str,
        arguments: &'a Map<String, Value>,
        /// Other members that the caller sent, in order.
        more: &'a [(String, Value)],
    },
    /// Parameters of any other method, unchanged.
    Members(&'a Map<String, Value>),
}

impl ConnectionRequestSerializer {
    /// Creates a serializer for this protocol version. Requests that Toolstead makes for itself declare these
    /// capabilities (MCP's `ClientCapabilities`).
    pub(in crate::mcp::client) fn new(version: ProtocolVersion, capabilities: &Map<String, Value>) -> Self {
        let common_meta = match version.generation() {
            ProtocolGeneration::Legacy => String::new(),
            ProtocolGeneration::Modern => {
                let members = json!({
                    (meta::PROTOCOL_VERSION): version.as_str(),
                    (meta::CLIENT_INFO): client_info(),
                });
                let text = members.to_string();
                text[1..text.len() - 1].to_owned()
            }
        };
        Self { version, common_meta, capabilities: Value::Object(capabilities.clone()).to_string() }
    }

    /// Returns the JSON text of a request that Toolstead makes for itself, not for a caller.
    pub(in crate::mcp::client) fn request(&self, id: i64, method: &str, params: &Map<String, Value>) -> Vec<u8> {
        let mut text = Vec::with_capacity(256 + self.common_meta.len());
        begin(&mut text, id, method);
        let mut separator = "";
        for (name, value) in params {
            member(&mut text, separator, name, value);
            separator = ",";
        }
        if !self.common_meta.is_empty() {
            push(&mut text, &[separator, "\"_meta\":{", &self.common_meta]);
            push(&mut text, &[",\"", meta::CLIENT_CAPABILITIES, "\":", &self.capabilities, "}"]);
        }
        text.extend_from_slice(b"}}");
        text
    }

    /// Returns the JSON text of a request on behalf of a caller.
    pub(in crate::mcp::client) fn forwarded(&self, id: i64, request: &ForwardedRequest<'_>) -> Vec<u8> {
        let mut text = Vec::with_capacity(512 + self.common_meta.len());
        begin(&mut text, id, request.method);
        let empty = text.len();
        match request.params {
            RequestParams::Call { tool, arguments, more } => {
                member(&mut text, "", "name", tool);
                member(&mut text, ",", "arguments", arguments);
                for (name, value) in more {
                    member(&mut text, ",", name, value);
                }
            }
            RequestParams::Members(params) => {
                for (name, value) in params {
                    let separator = separator(&text, empty);
                    member(&mut text, separator, name, value);
                }
            }
        }
        if let Some(answers) = request.answers {
            let responses: Map<_, _> =
                answers.responses.iter().map(|(key, answer)| (key.clone(), answer.0.clone())).collect();
            let separator = separator(&text, empty);
            member(&mut text, separator, "inputResponses", &responses);
            if let Some(state) = &answers.state {
                member(&mut text, ",", "requestState", state);
            }
        }
        let separator = separator(&text, empty);
        self.forwarded_meta(&mut text, separator, id, request);
        text.extend_from_slice(b"}}");
        text
    }

    fn forwarded_meta(&self, text: &mut Vec<u8>, before: &str, id: i64, call: &ForwardedRequest<'_>) {
        let start = text.len();
        push(text, &[before, "\"_meta\":{"]);
        let empty = text.len();
        for (name, value) in call.meta {
            if !meta::OF_ONE_HOP.contains(&name.as_str()) {
                member(text, separator(text, empty), name, value);
            }
        }
        if call.progress {
            member(text, separator(text, empty), meta::PROGRESS_TOKEN, &id);
        }
        if !self.common_meta.is_empty() {
            push(text, &[separator(text, empty), &self.common_meta]);
            member(text, ",", meta::CLIENT_CAPABILITIES, call.capabilities);
            if let Some(level) = call.log_level {
                member(text, ",", meta::LOG_LEVEL, level.as_str());
            }
        }
        if text.len() == empty {
            text.truncate(start);
        } else {
            text.push(b'}');
        }
    }
}

impl ForwardedRequest<'_> {
    /// Returns the purpose under which the request is registered while it waits for its response.
    pub(in crate::mcp::client) fn purpose(&self) -> RequestPurpose {
        RequestPurpose::Call { progress: self.progress }
    }
}

/// Checks that a message is not too large to send.
///
/// # Errors
/// Returns [`RequestError::TooLarge`].
pub(in crate::mcp::client) fn check_size(text: &[u8], limit: usize) -> Result<(), RequestError> {
    if text.len() > limit { Err(RequestError::TooLarge { bytes: text.len(), limit }) } else { Ok(()) }
}

/// Returns the description of this client (MCP's `Implementation`).
pub(in crate::mcp::client) fn client_info() -> Value {
    json!({"name": CLIENT_NAME, "version": env!("CARGO_PKG_VERSION")})
}

/// Returns a notification, without `params` if they are empty.
pub(in crate::mcp::client) fn notification(method: &str, params: Map<String, Value>) -> Vec<u8> {
    crate::mcp::wire::message::RpcMessage::Notification { method: method.into(), params }.to_json()
}

/// Returns the notification that cancels a request.
pub(in crate::mcp::client) fn cancelled(id: i64, reason: &str) -> Vec<u8> {
    let params = Map::from_iter([("requestId".to_owned(), id.into()), ("reason".to_owned(), reason.into())]);
    notification("notifications/cancelled", params)
}

/// Returns a response to a request of the server.
pub(in crate::mcp::client) fn answer(id: &RequestId, outcome: &Result<Value, RpcError>) -> Vec<u8> {
    match outcome {
        Ok(result) => crate::mcp::wire::message::response(id, result),
        Err(error) => crate::mcp::wire::message::error_response(Some(id), error),
    }
}

fn begin(text: &mut Vec<u8>, id: i64, method: &str) {
    push(text, &["{\"jsonrpc\":\"2.0\",\"id\":"]);
    write(text, &id);
    push(text, &[",\"method\":\"", method, "\",\"params\":{"]);
}

/// Returns the separator before the next member of an object that begins at `empty`.
fn separator(text: &[u8], empty: usize) -> &'static str {
    if text.len() == empty { "" } else { "," }
}

fn push(text: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        text.extend_from_slice(part.as_bytes());
    }
}

fn member(text: &mut Vec<u8>, separator: &str, name: &str, value: &(impl Serialize + ?Sized)) {
    text.extend_from_slice(separator.as_bytes());
    write(text, name);
    text.push(b':');
    write(text, value);
}

fn write(text: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    // Cannot fail: memory accepts every byte, and the keys of these values are strings.
    let _ = serde_json::to_writer(text, value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::wire::message::RpcMessage;
    use toolstead_domain::InputResponse;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn parse(text: &[u8]) -> (String, Value) {
        match RpcMessage::parse(text) {
            Ok(RpcMessage::Request { id: RequestId::Number(7), method, params }) => (method, params.into()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_call_to_a_legacy_server_contains_the_callers_arguments_and_metadata() {
        let writer = ConnectionRequestSerializer::new(ProtocolVersion::V20251125, &Map::new());
        let arguments = map(json!({"z": 1, "a": [{"b": null}]}));
        let mut call = ForwardedRequest {
            method: "tools/call",
            name: Some("a \"b\"\n"),
            params: RequestParams::Call { tool: "a \"b\"\n", arguments: &arguments, more: &[] },
            capabilities: &Map::new(),
            meta: &Map::new(),
            answers: None,
            log_level: Some(LogLevel::Debug),
            progress: false,
            principal: None,
        };
        let plain = writer.forwarded(7, &call);
        let expected = json!({"name": "a \"b\"\n", "arguments": {"z": 1, "a": [{"b": null}]}});
        assert_eq!(parse(&plain), ("tools/call".into(), expected));
        assert!(String::from_utf8(plain).unwrap().contains(r#""arguments":{"z":1,"a":[{"b":null}]}"#));
        let meta = map(json!({"traceparent": "00-1", "progressToken": "theirs"}));
        (call.meta, call.progress) = (&meta, true);
        assert_eq!(parse(&writer.forwarded(7, &call)).1["_meta"], json!({"traceparent": "00-1", "progressToken": 7}));
    }

    #[test]
    fn every_request_to_a_modern_server_contains_version_client_and_capabilities() {
        let writer = ConnectionRequestSerializer::new(ProtocolVersion::V20260728, &map(json!({"roots": {}})));
        let (method, params) = parse(&writer.request(7, "tools/list", &map(json!({"cursor": "c"}))));
        let common = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "toolstead", "version": env!("CARGO_PKG_VERSION")},
            "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
        });
        assert_eq!((method.as_str(), params), ("tools/list", json!({"cursor": "c", "_meta": common.clone()})));
        let responses = [("k".to_owned(), InputResponse(json!({"action": "accept"})))].into();
        let answers = InputAnswers { responses, state: Some("theirs".into()) };
        let meta = map(json!({"io.modelcontextprotocol/clientCapabilities": {"sampling": {}}, "a/b": 1}));
        let more = [("x".to_owned(), json!([1.0])), ("a\"".to_owned(), Value::Null)];
        let call = ForwardedRequest {
            method: "tools/call",
            name: Some("t"),
            params: RequestParams::Call { tool: "t", arguments: &Map::new(), more: &more },
            capabilities: &map(json!({"elicitation": {}})),
            meta: &meta,
            answers: Some(&answers),
            log_level: Some(LogLevel::Warning),
            progress: true,
            principal: None,
        };
        let mut expected = map(json!({"a/b": 1, "progressToken": 7}));
        expected.extend(map(common));
        expected.insert("io.modelcontextprotocol/clientCapabilities".into(), json!({"elicitation": {}}));
        expected.insert("io.modelcontextprotocol/logLevel".into(), "warning".into());
        let params = parse(&writer.forwarded(7, &call)).1;
        assert_eq!(
            (&params["_meta"], &params["inputResponses"]["k"]),
            (&expected.into(), &json!({"action": "accept"}))
        );
        let names: Vec<&String> = params.as_object().unwrap().keys().collect();
        assert_eq!(names, ["name", "arguments", "x", "a\"", "inputResponses", "requestState", "_meta"]);
    }

    #[test]
    fn a_forwarded_request_of_any_method_keeps_its_parameters() {
        let writer = ConnectionRequestSerializer::new(ProtocolVersion::V20251125, &Map::new());
        let params = map(json!({"uri": "a://b", "x": {"y": 1.50}}));
        let answers = InputAnswers { responses: [].into(), state: Some("s".into()) };
        let mut request = ForwardedRequest {
            method: "resources/read",
            name: Some("a://b"),
            params: RequestParams::Members(&params),
            capabilities: &Map::new(),
            meta: &Map::new(),
            answers: Some(&answers),
            log_level: None,
            progress: true,
            principal: None,
        };
        let expected = json!({"uri": "a://b", "x": {"y": 1.5}, "inputResponses": {}, "requestState": "s", "_meta": {"progressToken": 7}});
        assert_eq!(parse(&writer.forwarded(7, &request)), ("resources/read".into(), expected));
        let nothing = Map::new();
        (request.params, request.answers) = (RequestParams::Members(&nothing), None);
        assert_eq!(parse(&writer.forwarded(7, &request)).1, json!({"_meta": {"progressToken": 7}}));
    }

    #[test]
    fn requests_without_parameters_have_an_empty_object() {
        let writer = ConnectionRequestSerializer::new(ProtocolVersion::V20241105, &Map::new());
        assert_eq!(
            writer.request(1, "tools/list", &Map::new()),
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#
        );
    }
}
