//! Outcomes of calls, from the responses of a server.

use crate::mcp::{
    client::{
        calls::created_task::read_task,
        connection::{foreign_text::shown, own_members, request_error::RequestError},
    },
    wire::{incoming::RawResponse, message::RpcError},
};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, fmt};
use toolstead_domain::{
    CallOutcome, InputRequest, InputRequired, ProtocolGeneration, ServerName, ToolFailure, ToolResult, UpstreamError,
    error_kind::ErrorKind, tool_result::text_block,
};

/// Maximum length of a server's error text to pass on, in characters.
const ERROR_CHARACTERS: usize = 2000;

/// Called tool. Displayed as "`git_status` of the MCP server `git`".
#[derive(Debug, Clone, Copy)]
pub(in crate::mcp::client) struct CallTarget<'a> {
    /// Name of the tool at the server.
    pub(in crate::mcp::client) tool: &'a str,
    /// Name of the server in Toolstead.
    pub(in crate::mcp::client) server: &'a ServerName,
    /// `true` if the tool has an output schema.
    pub(in crate::mcp::client) promises_structure: bool,
}

impl CallTarget<'_> {
    /// Returns the outcome of a response.
    ///
    /// # Errors
    /// Returns [`ToolFailure`] for an error, and for a response that is not a valid result of a call.
    pub(in crate::mcp::client) fn outcome(
        &self,
        answer: RawResponse,
        generation: ProtocolGeneration,
    ) -> Result<CallOutcome, ToolFailure> {
        if let Some(text) = answer.heavy_result() {
            return self.as_text(text).map(CallOutcome::Done);
        }
        let result = match answer.into_outcome() {
            Ok(Ok(result)) => result,
            Ok(Err(error)) => return Err(self.failure(RequestError::Rpc(error))),
            Err(malformed) => return Err(self.failure(RequestError::Malformed(malformed.to_string()))),
        };
        let result = match (generation, result) {
            (ProtocolGeneration::Modern, Value::Object(result)) => match self.modern_result(result)? {
                Ok(result) => result,
                Err(other) => return Ok(other),
            },
            (ProtocolGeneration::Legacy | ProtocolGeneration::Modern, result) => result,
        };
        let result = match result {
            Value::Object(mut result) => {
                own_members::take_out_of_result(&mut result);
                result.into()
            }
            result => result,
        };
        let result = ToolResult::from_upstream(result);
        result.map(CallOutcome::Done).map_err(|error| self.failure(RequestError::Malformed(error.to_string())))
    }

    /// Returns a result with too many values as JSON text, without parsing it. The text is limited and stored like any
    /// other. For a tool with an output schema the result is an error, because the structured content is missing.
    fn as_text(&self, result: &str) -> Result<ToolResult, ToolFailure> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Outline {
            #[serde(default)]
            is_error: bool,
            result_type: Option<String>,
        }
        let outline: Result<Outline, _> = serde_json::from_str(result);
        let kind = |outline: &Outline| outline.result_type.as_deref().is_none_or(|kind| kind == "complete");
        let Some(outline) = outline.ok().filter(kind) else {
            return Err(self.failure(RequestError::Malformed("its result holds too many values".into())));
        };
        let text = ToolResult::text(result);
        let notice = "[the result has too many values to be passed on as structured data: this is its JSON as text]";
        Ok(match (outline.is_error, self.promises_structure) {
            (false, false) => text.with_block(text_block(notice.into())),
            (true, _) => text.followed_by(ToolResult::error(ErrorKind::ExecutionFailed, notice)),
            (false, true) => {
                let done = format!("The call was done, do not repeat it. {notice}");
                text.followed_by(ToolResult::error(ErrorKind::TooLarge, done))
            }
        })
    }

    /// Sorts a result of the modern generation by its type (MCP 2026-07-28, basic, "Responses"). Returns an inner `Ok`
    /// with a complete result, and an inner `Err` with the outcome for a task or a request for input. Removes the
    /// member `resultType`; the MCP server layer adds it again for clients that expect it.
    pub(in crate::mcp::client) fn modern_result(
        &self,
        mut result: Map<String, Value>,
    ) -> Result<Result<Value, CallOutcome>, ToolFailure> {
        match result.get("resultType").map(Value::as_str) {
            None => {}
            Some(Some("complete")) => drop(result.shift_remove("resultType")),
            Some(Some("input_required")) => {
                return self.input_required(result).map(CallOutcome::InputRequired).map(Err);
            }
            Some(Some("task")) => {
                let task = read_task(result).map_err(|error| self.failure(error))?;
                return Ok(Err(CallOutcome::Done(task)));
            }
            Some(other) => {
                let reason = format!(
                    "it gave a result of the type `{}`, which was not requested",
                    shown(other.unwrap_or("?"), 40)
                );
                return Err(self.failure(RequestError::Malformed(reason)));
            }
        }
        Ok(Ok(result.into()))
    }

    fn input_required(&self, mut result: Map<String, Value>) -> Result<InputRequired, ToolFailure> {
        let malformed = || self.failure(RequestError::Malformed("its request for input is invalid".into()));
        let state = match result.remove("requestState") {
            None | Some(Value::Null) => None,
            Some(Value::String(state)) => Some(state),
            Some(_) => return Err(malformed()),
        };
        let mut requests = BTreeMap::new();
        match result.remove("inputRequests") {
            None | Some(Value::Null) => {}
            Some(Value::Object(asked)) => {
                for (key, mut request) in asked {
                    // Its answer would be mistaken for an answer to a question of Toolstead.
                    if own_members::is_own(&key) {
                        return Err(malformed());
                    }
                    let method =
                        request.get("method").and_then(Value::as_str).map(str::to_owned).ok_or_else(malformed)?;
                    let mut params = request.get_mut("params").map_or_else(|| Map::new().into(), Value::take);
                    if let Value::Object(params) = &mut params {
                        own_members::take_out(params);
                    }
                    requests.insert(key, InputRequest { method, params });
                }
            }
            Some(_) => return Err(malformed()),
        }
        if requests.is_empty() && state.is_none() {
            return Err(malformed());
        }
        Ok(InputRequired { requests, state })
    }

    /// Returns the failure of a request without a result.
    pub(in crate::mcp::client) fn failure(&self, error: RequestError) -> ToolFailure {
        let failure = match &error {
            RequestError::Rpc(said) => {
                let message = format!("{self} failed ({}): {}", said.code, shown(&said.message, ERROR_CHARACTERS));
                let failure = ToolFailure::new(kind_of(said), message);
                let required = said.data.as_ref().and_then(|data| data.get("requiredCapabilities"));
                let failure = match required {
                    // MCP defines only this member. Toolstead's kind is added separately.
                    Some(required) if said.code == RpcError::MISSING_CAPABILITY => {
                        failure.with_data(json!({"requiredCapabilities": required}))
                    }
                    _ => failure,
                };
                match is_transport_error(said.code) {
                    true => failure,
                    false => failure.said_upstream(to_upstream_error(said)),
                }
            }
            RequestError::Malformed(reason) => ToolFailure::new(
                ErrorKind::UpstreamProtocol,
                format!("{self} gave no valid answer: {}", shown(reason, ERROR_CHARACTERS)),
            ),
            RequestError::Lost(reason) => ToolFailure::new(
                ErrorKind::UpstreamProtocol,
                format!(
                    "{self} gave no answer, because the connection to the server ended: {}",
                    shown(reason, ERROR_CHARACTERS)
                ),
            )
            .next("It is unknown whether the call had an effect. Check before you repeat it."),
            RequestError::Unreachable(reason) => self.unavailable(reason),
            RequestError::Late(time) => ToolFailure::new(
                ErrorKind::Timeout,
                format!(
                    "{self} did not answer within {} s and was asked to stop",
                    (time.as_secs_f64() * 10.0).round() / 10.0
                ),
            )
            .next("Ask for less, or allow more time."),
            RequestError::Unauthorized(reason) => self.needs_authorization(reason),
            RequestError::Http { status: 403, detail } => {
                self.needs_authorization(&format!("HTTP status 403{}", shown(detail, ERROR_CHARACTERS)))
            }
            RequestError::Http { status, detail } => {
                let kind = if *status == 429 { ErrorKind::RateLimited } else { ErrorKind::UpstreamHttp };
                let detail = shown(detail, ERROR_CHARACTERS);
                ToolFailure::new(kind, format!("{self} failed with the HTTP status {status}{detail}"))
            }
            RequestError::TooLarge { bytes, limit } => ToolFailure::new(
                ErrorKind::TooLarge,
                format!("the arguments for {self} have {bytes} bytes, and at most {limit} can be sent"),
            )
            .next("Send less at once."),
        };
        failure.caused_by(error)
    }

    /// Returns the failure of a call to an unavailable server.
    pub(in crate::mcp::client) fn unavailable(&self, reason: &str) -> ToolFailure {
        let message = format!("{self} cannot be called now: {}", shown(reason, ERROR_CHARACTERS));
        ToolFailure::new(ErrorKind::Unavailable, message)
            .next("Toolstead reconnects to the server automatically; use another tool or try later.")
    }

    /// Returns the failure of a call to a server that requires a login.
    pub(in crate::mcp::client) fn needs_authorization(&self, reason: &str) -> ToolFailure {
        let message =
            format!("{self} cannot be called: the server requires a login ({})", shown(reason, ERROR_CHARACTERS));
        ToolFailure::new(ErrorKind::AuthRequired, message).next("The operator has to configure one.")
    }
}

impl fmt::Display for CallTarget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` of the MCP server `{}`", shown(self.tool, 128), self.server)
    }
}

/// Returns the server's error for clients, which replaces Toolstead's own.
fn to_upstream_error(error: &RpcError) -> UpstreamError {
    let RpcError { code, message, mut data } = error.clone();
    if let Some(data) = &mut data {
        own_members::take_out_of_data(data);
    }
    UpstreamError { code, message, data }
}

/// Returns `true` if an error concerns how Toolstead sent the request. The caller of the tool can neither see nor
/// correct that.
fn is_transport_error(code: i64) -> bool {
    matches!(code, RpcError::PARSE | RpcError::HEADER_MISMATCH | RpcError::UNSUPPORTED_VERSION)
}

/// Returns the kind of a server's error by its code alone. Servers cannot report kinds of Toolstead's own, such as
/// refusal by a rule or an exhausted budget.
fn kind_of(error: &RpcError) -> ErrorKind {
    match error.code {
        RpcError::INVALID_PARAMS => ErrorKind::InvalidInput,
        RpcError::PARSE
        | RpcError::INVALID_REQUEST
        | RpcError::METHOD_NOT_FOUND
        | RpcError::HEADER_MISMATCH
        | RpcError::UNSUPPORTED_VERSION => ErrorKind::UpstreamProtocol,
        RpcError::MISSING_CAPABILITY => ErrorKind::MissingCapability,
        _ => ErrorKind::ExecutionFailed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::wire::incoming::IncomingMessage;
    use serde_json::json;

    fn outcome(content: &str, generation: ProtocolGeneration) -> Result<CallOutcome, (ErrorKind, String)> {
        let server = ServerName::parse("s").unwrap();
        let called = CallTarget { tool: "t", server: &server, promises_structure: false };
        let answer = match IncomingMessage::read(format!(r#"{{"jsonrpc":"2.0","id":1,{content}}}"#).into()) {
            Ok(IncomingMessage::Answer(answer)) => answer,
            other => panic!("{other:?}"),
        };
        called.outcome(answer, generation).map_err(|failure| (failure.kind, failure.message))
    }

    #[track_caller]
    fn done(content: &str, generation: ProtocolGeneration) -> String {
        match outcome(&format!("\"result\":{content}"), generation).unwrap() {
            CallOutcome::Done(result) => Value::Object(result.into_object()).to_string(),
            CallOutcome::InputRequired(required) => panic!("{required:?}"),
        }
    }

    #[test]
    fn a_result_is_returned_unchanged_except_for_its_result_type() {
        let raw = r#"{"x":{"y":null},"content":[{"type":"video","z":1.0}],"resultType":"complete","_meta":{"a/b":1}}"#;
        assert_eq!(done(raw, ProtocolGeneration::Legacy), raw);
        assert_eq!(done(raw, ProtocolGeneration::Modern), raw.replace(r#""resultType":"complete","#, ""));
    }

    #[test]
    fn a_result_with_too_many_values_is_returned_as_text() {
        let raw = format!(r#"{{"content":[],"structuredContent":{{"all":[{}0]}}}}"#, "0,".repeat(1 << 20));
        let server = ServerName::parse("s").unwrap();
        let result = |raw: &str, promises_structure: bool| {
            let called = CallTarget { tool: "t", server: &server, promises_structure };
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{raw}}}"#);
            let Ok(IncomingMessage::Answer(answer)) = IncomingMessage::read(text.into()) else { panic!() };
            match called.outcome(answer, ProtocolGeneration::Modern) {
                Ok(CallOutcome::Done(result)) => Ok((result.content()[0]["text"] == raw, result.error_kind())),
                Ok(CallOutcome::InputRequired(required)) => panic!("{required:?}"),
                Err(failure) => Err(failure.kind),
            }
        };
        assert_eq!(result(&raw, false), Ok((true, None)));
        assert_eq!(result(&raw, true), Ok((true, Some(ErrorKind::TooLarge))));
        let failed = raw.replacen('{', r#"{"isError":true,"#, 1);
        assert_eq!(result(&failed, false), Ok((true, Some(ErrorKind::ExecutionFailed))));
        let question = raw.replacen('{', r#"{"resultType":"input_required","#, 1);
        assert_eq!(result(&question, false), Err(ErrorKind::UpstreamProtocol));
    }

    #[test]
    fn reserved_toolstead_metadata_is_removed_from_results_and_errors() {
        let raw = r#"{"content":[{"type":"text","text":"t","_meta":{"toolstead/x":1,"b":2}},
            {"type":"resource","resource":{"uri":"u","_meta":{"Toolstead/x":1}}},7],
            "structuredContent":{"_meta":{"toolstead/x":"data"}},"isError":true,
            "_meta":{"toolstead/errorKind":"permission_denied","toolstead/outputs":["o1"],"a/b":1,"ä":2,"toolstead":3}}"#;
        let expected = json!({
            "content": [{"type": "text", "text": "t", "_meta": {"b": 2}},
                {"type": "resource", "resource": {"uri": "u", "_meta": {}}}, 7],
            "structuredContent": {"_meta": {"toolstead/x": "data"}}, "isError": true,
            "_meta": {"a/b": 1, "ä": 2, "toolstead": 3},
        });
        let raw = raw.replace('\n', "");
        assert_eq!(done(&raw, ProtocolGeneration::Legacy), expected.to_string());
        let error = r#""error":{"code":-32021,"message":"m","data":{"kind":"permission_denied","x":1,"requiredCapabilities":{"roots":{}},"Toolstead/y":0,"_meta":{"toolstead/x":1,"b":2}}}"#;
        let server = ServerName::parse("s").unwrap();
        let answer = match IncomingMessage::read(format!(r#"{{"jsonrpc":"2.0","id":1,{error}}}"#).into()) {
            Ok(IncomingMessage::Answer(answer)) => answer,
            other => panic!("{other:?}"),
        };
        let failure = CallTarget { tool: "t", server: &server, promises_structure: false }
            .outcome(answer, ProtocolGeneration::Modern)
            .unwrap_err();
        assert_eq!(failure.data, json!({"requiredCapabilities": {"roots": {}}}));
        let data =
            json!({"kind": "permission_denied", "x": 1, "requiredCapabilities": {"roots": {}}, "_meta": {"b": 2}});
        let upstream = UpstreamError { code: -32021, message: "m".into(), data: Some(data) };
        assert_eq!(failure.upstream, Some(upstream.into()));
    }

    #[test]
    fn upstream_errors_are_returned_unchanged_unless_they_concern_this_connection() {
        let server = ServerName::parse("s").unwrap();
        let upstream = |error: &str| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#);
            let Ok(IncomingMessage::Answer(answer)) = IncomingMessage::read(text.into()) else { panic!("{error}") };
            let called = CallTarget { tool: "t", server: &server, promises_structure: false };
            called.outcome(answer, ProtocolGeneration::Modern).unwrap_err().upstream.map(|error| *error)
        };
        for code in [-32042, -32602, -32601, -32600, -32603, -32000, -32021, 7] {
            for (data, read) in [
                ("", None),
                (r#","data":null"#, Some(Value::Null)),
                (r#","data":{"z":[1.0],"a":"\u00e9"}"#, Some(json!({"z": [1.0], "a": "é"}))),
                // Data that cannot be represented is dropped; the error itself is still reported.
                (r#","data":[1e400]"#, None),
            ] {
                let expected = UpstreamError { code, message: "m\u{1b}".into(), data: read };
                let error = format!(r#"{{"code":{code},"message":"m\u001b"{data}}}"#);
                assert_eq!(upstream(&error), Some(expected), "{error}");
            }
        }
        for code in [-32700, -32020, -32022] {
            assert_eq!(upstream(&format!(r#"{{"code":{code},"message":"m"}}"#)), None);
        }
    }

    #[test]
    fn a_valid_input_request_of_a_modern_server_is_a_call_outcome() {
        let question = r#"{"method":"elicitation/create","params":{"message":"?"}}"#;
        let raw = r#""result":{"resultType":"input_required","requestState":"s","inputRequests":{"k":Q}}"#;
        let raw = &raw.replace('Q', question);
        let request = InputRequest { method: "elicitation/create".into(), params: json!({"message": "?"}) };
        let required = InputRequired { requests: [("k".to_owned(), request)].into(), state: Some("s".into()) };
        assert_eq!(outcome(raw, ProtocolGeneration::Modern), Ok(CallOutcome::InputRequired(required)));
        let own = format!(r#""inputRequests":{{"toolstead/approval":{question}}}"#);
        for bad in
            [own.as_str(), r#""inputRequests":7"#, r#""inputRequests":{"k":{}}"#, r#""requestState":7"#, r#""x":1"#]
        {
            let raw = format!(r#""result":{{"resultType":"input_required",{bad}}}"#);
            assert_eq!(outcome(&raw, ProtocolGeneration::Modern).unwrap_err().0, ErrorKind::UpstreamProtocol, "{bad}");
        }
    }

    #[test]
    fn invalid_results_and_errors_are_typed_failures_naming_tool_and_server() {
        for (content, kind) in [
            (r#""result":7"#, ErrorKind::UpstreamProtocol),
            (r#""result":{"content":"x"}"#, ErrorKind::UpstreamProtocol),
            (r#""result":{"content":[],"n":1e400}"#, ErrorKind::UpstreamProtocol),
            (r#""result":{"resultType":"task"}"#, ErrorKind::UpstreamProtocol),
            (r#""error":{"code":-32602,"message":"Unknown tool: t"}"#, ErrorKind::InvalidInput),
            (r#""error":{"code":-32000,"message":"m"}"#, ErrorKind::ExecutionFailed),
            (r#""error":{"code":-32602,"message":"m","data":{"kind":"permission_denied"}}"#, ErrorKind::InvalidInput),
            (r#""error":{"code":-32602,"message":"m","data":{"kind":"nonsense"}}"#, ErrorKind::InvalidInput),
            (r#""error":{"code":-32021,"message":"m"}"#, ErrorKind::MissingCapability),
        ] {
            let (found, message) = outcome(content, ProtocolGeneration::Modern).unwrap_err();
            assert_eq!(found, kind, "{content}");
            assert!(message.starts_with("`t` of the MCP server `s` "), "{message}");
        }
        let long = format!(r#""error":{{"code":1,"message":"{}"}}"#, "\\u001b[2Jx".repeat(10_000));
        let (_, message) = outcome(&long, ProtocolGeneration::Legacy).unwrap_err();
        assert!(message.chars().count() < 2100 && !message.contains('\u{1b}'));
    }
}
