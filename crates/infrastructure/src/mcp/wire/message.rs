//! One JSON-RPC message.

use crate::mcp::wire::numbers;
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};
use std::{borrow::Cow, fmt, sync::Arc};
use toolstead_domain::{
    error_kind::ErrorKind,
    json_memory::{has_too_many_values, has_too_much_memory},
};

/// Initial capacity for a small result, in bytes.
pub const RESULT_BYTES: usize = 192;
/// Maximum length of an id as JSON, in bytes.
pub(super) const MAX_ID_BYTES: usize = 64 << 10;

/// Id of a request: a 64-bit integer or a string, never null (MCP 2025-11-25, basic, "Requests").
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RequestId {
    /// Integer id.
    Number(i64),
    /// String id. Never equal to an integer id, even if the string consists of digits.
    Text(Arc<str>),
}

/// JSON-RPC message with its parameters or result as received.
#[derive(Debug, Clone, PartialEq)]
pub enum RpcMessage {
    /// A message that requires a response.
    Request {
        /// Id to return with the response.
        id: RequestId,
        /// Name of the requested method.
        method: String,
        /// Parameters; empty if the message has none.
        params: Map<String, Value>,
    },
    /// A message without a response.
    Notification {
        /// Name of the event.
        method: String,
        /// Parameters; empty if the message has none.
        params: Map<String, Value>,
    },
    /// Response to a request.
    Response {
        /// Id of the request.
        id: RequestId,
        /// Result or error.
        outcome: Result<Value, RpcError>,
    },
}

/// A JSON-RPC error.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// Error code: -32700 to -32603, or one of MCP's own codes.
    pub code: i64,
    /// Message for the reader, in one sentence.
    pub message: String,
    /// Additional data for programs.
    pub data: Option<Value>,
}

/// Invalid message. It carries the id if the id could be read, so that its sender can get an error response.
#[derive(Debug, Clone, PartialEq)]
pub struct MalformedMessage {
    /// Id, if it could be read.
    pub id: Option<RequestId>,
    /// `true` if the message was meant as a response to a request of its receiver.
    pub is_response: bool,
    /// Error to send or report.
    pub error: Box<RpcError>,
}

impl RpcError {
    /// The text is not valid JSON.
    pub const PARSE: i64 = -32700;
    /// The JSON is not a valid message.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The method is unknown.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters are invalid.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The resource does not exist (MCP up to 2025-11-25, server/resources, "Error Handling").
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// Internal error of the receiver.
    pub const INTERNAL: i64 = -32603;
    /// A header contradicts the body (MCP 2026-07-28, basic/transports).
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The request needs a capability that the client did not declare (MCP 2026-07-28).
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// The protocol version is not supported (MCP 2026-07-28).
    pub const UNSUPPORTED_VERSION: i64 = -32022;

    /// Creates an error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Sets the additional data.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }
}

impl MalformedMessage {
    fn no_json(detail: impl fmt::Display) -> Self {
        let error = of_kind(RpcError::PARSE, ErrorKind::InvalidInput, format!("the message is not JSON: {detail}"));
        Self { id: None, is_response: false, error: error.into() }
    }

    fn no_object(what: impl Into<String>) -> Self {
        let error = of_kind(RpcError::INVALID_REQUEST, ErrorKind::InvalidInput, what);
        Self { id: None, is_response: false, error: error.into() }
    }

    /// Returns the error for bytes that are not UTF-8. The id is read from a repaired copy; the message itself is
    /// rejected.
    pub(super) fn no_utf8(bytes: &[u8], error: std::str::Utf8Error) -> Self {
        let mut malformed = Self::no_json(error);
        if let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(&String::from_utf8_lossy(bytes)) {
            (malformed.id, malformed.is_response) = (envelope.read_id().ok().flatten(), envelope.method.is_none());
        }
        malformed
    }
}

/// Returns an error with its kind in the data. Every error of ours has a kind.
fn of_kind(code: i64, kind: ErrorKind, message: impl Into<String>) -> RpcError {
    RpcError::new(code, message).with_data(json!({"kind": kind.as_str()}))
}

/// Members of a message. `id`, `params`, `result` and `error` are not parsed yet.
#[derive(Deserialize)]
pub(super) struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "borrowed")]
    pub(super) jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "borrowed")]
    pub(super) method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) error: Option<&'a RawValue>,
}

/// Deserializes a member that is present, including `null`. By default serde treats `null` as absent.
fn present<'de: 'a, 'a, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Deserializes a string without copying it unless it has escapes. Serde itself copies a `Cow` within an `Option`.
fn borrowed<'de: 'a, 'a, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'a, str>>, D::Error> {
    #[derive(Deserialize)]
    struct BorrowedText<'a>(#[serde(borrow)] Cow<'a, str>);
    Ok(Option::<BorrowedText<'a>>::deserialize(deserializer)?.map(|BorrowedText(text)| text))
}

#[derive(Deserialize)]
struct ErrorObject<'a> {
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(borrow, default, deserialize_with = "present")]
    data: Option<&'a RawValue>,
}

impl RpcMessage {
    /// Parses one message. Unknown members of the message itself are ignored. All members of `params`, `result` and
    /// `error` are retained.
    ///
    /// # Errors
    /// Returns [`MalformedMessage`] with the kind of the error in its data:
    /// - -32700 if the text is not JSON
    /// - -32600 if the JSON is not a message
    /// - -32602 if the parameters are not an object, contain a number that cannot be represented exactly, or contain
    ///   too many values
    pub fn parse(bytes: &[u8]) -> Result<Self, MalformedMessage> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Envelope::parse(text)?.into_message(),
            Err(error) => Err(MalformedMessage::no_utf8(bytes, error)),
        }
    }

    /// Returns the message as JSON on one line, without a line break.
    pub fn to_json(&self) -> Vec<u8> {
        let value = match self {
            Self::Request { id, method, params } => {
                json!({"jsonrpc": "2.0", "id": id.to_value(), "method": method, "params": params})
            }
            Self::Notification { method, params } if params.is_empty() => json!({"jsonrpc": "2.0", "method": method}),
            Self::Notification { method, params } => json!({"jsonrpc": "2.0", "method": method, "params": params}),
            Self::Response { id, outcome: Ok(result) } => return response(id, result),
            Self::Response { id, outcome: Err(error) } => return error_response(Some(id), error),
        };
        value.to_string().into_bytes()
    }
}

/// Returns a response with a result, as one line of JSON.
pub fn response(id: &RequestId, result: &impl serde::Serialize) -> Vec<u8> {
    sized_response(id, result, RESULT_BYTES)
}

/// Returns a response like [`response`], with an initial capacity of `bytes` for the result.
pub fn sized_response(id: &RequestId, result: &impl serde::Serialize, bytes: usize) -> Vec<u8> {
    let mut line = Vec::with_capacity(64 + bytes);
    line.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    // Writing a JSON value into memory cannot fail, because all of its keys are strings.
    let written = match id {
        RequestId::Number(number) => serde_json::to_writer(&mut line, number),
        RequestId::Text(text) => serde_json::to_writer(&mut line, &**text),
    };
    line.extend_from_slice(br#","result":"#);
    if written.and_then(|()| serde_json::to_writer(&mut line, result)).is_err() {
        return error_response(Some(id), &RpcError::new(RpcError::INTERNAL, "the result could not be written"));
    }
    line.push(b'}');
    line
}

/// Returns an error response as one line of JSON. Without an id, `id` is null (JSON-RPC 2.0, section 5).
pub fn error_response(id: Option<&RequestId>, error: &RpcError) -> Vec<u8> {
    json!({"jsonrpc": "2.0", "id": id.map_or(Value::Null, RequestId::to_value), "error": error.to_value()})
        .to_string()
        .into_bytes()
}

impl<'a> Envelope<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, MalformedMessage> {
        // Serde would accept an array as the members in order.
        if text.trim_start().starts_with('[') {
            return Err(match serde_json::from_str::<serde::de::IgnoredAny>(text) {
                Ok(_) => MalformedMessage::no_object(
                    "batches were removed from MCP in 2025-06-18: send one message at a time",
                ),
                Err(error) => MalformedMessage::no_json(error),
            });
        }
        let envelope: Self = serde_json::from_str(text).map_err(|error| {
            if error.is_data() {
                MalformedMessage::no_object(format!("the message is not a JSON-RPC object: {error}"))
            } else {
                MalformedMessage::no_json(error)
            }
        })?;
        if toolstead_domain::json_memory::hides_values(text.as_bytes()) {
            let mut malformed = MalformedMessage::no_object("the message has a member whose name is reserved");
            (malformed.id, malformed.is_response) = (envelope.read_id().ok().flatten(), envelope.method.is_none());
            return Err(malformed);
        }
        Ok(envelope)
    }

    pub(super) fn read_id(&self) -> Result<Option<RequestId>, ()> {
        let Some(raw) = self.id else { return Ok(None) };
        // An object or list is not a valid id. It is not parsed, because it could contain hidden values.
        if raw.get().len() > MAX_ID_BYTES || raw.get().starts_with(['{', '[']) {
            return Err(());
        }
        match serde_json::from_str(raw.get()) {
            Ok(Value::Number(number)) => number.as_i64().map(|number| Some(RequestId::Number(number))).ok_or(()),
            Ok(Value::String(text)) => Ok(Some(RequestId::Text(text.into()))),
            _ => Err(()),
        }
    }

    pub(super) fn into_message(self) -> Result<RpcMessage, MalformedMessage> {
        let is_response = self.method.is_none();
        let id = self.read_id();
        let refuse_as = |kind: ErrorKind, code: i64, message: String| {
            let error = of_kind(code, kind, message).into();
            Err(MalformedMessage { id: id.clone().ok().flatten(), is_response, error })
        };
        let refuse = |code: i64, message: String| refuse_as(ErrorKind::InvalidInput, code, message);
        if self.jsonrpc.as_deref() != Some("2.0") {
            return refuse(RpcError::INVALID_REQUEST, "`jsonrpc` must be \"2.0\"".into());
        }
        let id = match id.clone() {
            Ok(id) => id,
            // Servers send an error without an id for a request that they could not read.
            Err(()) if is_response && self.error.is_some() => None,
            Err(()) => {
                return refuse(RpcError::INVALID_REQUEST, "`id` must be a 64-bit integer or a string".into());
            }
        };
        if let Some(method) = self.method {
            let params = match self.params.map(RawValue::get) {
                None | Some("null") => Map::new(),
                Some(text) => match parse_exact(text) {
                    Ok(Value::Object(params)) => params,
                    Ok(_) => return refuse(RpcError::INVALID_PARAMS, "`params` must be an object".into()),
                    Err(reason) => {
                        let message = format!("`params` is invalid: {reason}");
                        return refuse_as(reason.kind(), RpcError::INVALID_PARAMS, message);
                    }
                },
            };
            let method = method.into_owned();
            return Ok(match id {
                Some(id) => RpcMessage::Request { id, method, params },
                None => RpcMessage::Notification { method, params },
            });
        }
        let outcome = match (self.result, self.error) {
            (Some(result), None) => match parse_exact(result.get()) {
                Ok(result) => Ok(result),
                Err(reason) => {
                    let message = format!("the result is invalid: {reason}");
                    return refuse_as(reason.kind(), RpcError::INVALID_REQUEST, message);
                }
            },
            (None, Some(error)) => match RpcError::parse(error.get()) {
                Ok(error) => Err(error),
                Err(reason) => return refuse(RpcError::INVALID_REQUEST, reason),
            },
            (Some(_), Some(_)) => {
                return refuse(RpcError::INVALID_REQUEST, "the message has both `result` and `error`".into());
            }
            (None, None) => {
                return refuse(
                    RpcError::INVALID_REQUEST,
                    "the message has no `method`, no `result` and no `error`".into(),
                );
            }
        };
        match id {
            Some(id) => Ok(RpcMessage::Response { id, outcome }),
            None => {
                let no_id = || of_kind(RpcError::INVALID_REQUEST, ErrorKind::InvalidInput, "the response has no id");
                let error = outcome.err().unwrap_or_else(no_id);
                Err(MalformedMessage { id: None, is_response, error: error.into() })
            }
        }
    }
}

/// Reason why a JSON text was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::mcp) enum JsonRejection {
    /// A number that cannot be represented exactly.
    #[error("the number {} {}", shown(.0), numbers::why_inexact(.0))]
    Number(String),
    /// The parsed values would need many times the memory of the text.
    #[error("it holds too many values: send fewer of them at once, or a text that holds them")]
    TooManyValues,
    /// The text is not JSON, contains an unpaired surrogate, or is nested too deeply.
    #[error("{0}")]
    Json(String),
}

impl JsonRejection {
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Self::TooManyValues => ErrorKind::TooLarge,
            Self::Number(_) | Self::Json(_) => ErrorKind::InvalidInput,
        }
    }
}

fn shown(number: &str) -> String {
    match number.char_indices().nth(40) {
        Some((at, _)) => format!("{}…", &number[..at]),
        None => number.to_owned(),
    }
}

/// Parses a JSON value. Rejects numbers that cannot be represented exactly and values that need too much memory.
pub(in crate::mcp) fn parse_exact(text: &str) -> Result<Value, JsonRejection> {
    if has_too_many_values(text.as_bytes()) {
        return Err(JsonRejection::TooManyValues);
    }
    parse_light(text)
}

/// Parses part of a message like [`parse_exact`]. The caller has already rejected messages with members whose names are
/// reserved.
pub(super) fn parse_visible(text: &str) -> Result<Value, JsonRejection> {
    if has_too_much_memory(text.as_bytes()) {
        return Err(JsonRejection::TooManyValues);
    }
    parse_light(text)
}

fn parse_light(text: &str) -> Result<Value, JsonRejection> {
    if let Some(number) = numbers::first_inexact(text.as_bytes()) {
        return Err(JsonRejection::Number(number.to_owned()));
    }
    serde_json::from_str(text).map_err(|error| JsonRejection::Json(error.to_string()))
}

impl RequestId {
    /// Returns the id as JSON.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Number(number) => (*number).into(),
            Self::Text(text) => (**text).into(),
        }
    }

    /// Returns the id for a JSON value, or `None` if the value is not a valid id.
    pub fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => number.as_i64().map(Self::Number),
            Value::String(text) => Some(Self::Text(text.as_str().into())),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

impl fmt::Display for RequestId {
    /// Formats the id as JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_value().fmt(f)
    }
}

impl RpcError {
    /// Parses the `error` member of a response. Drops its data if they cannot be represented exactly.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let object = serde_json::from_str::<ErrorObject>(text);
        let ErrorObject { code, message, data } =
            object.map_err(|reason| format!("the error cannot be read: {reason}"))?;
        // Data that cannot be represented exactly is dropped; the error itself is still reported.
        let data = data.and_then(|data| parse_exact(data.get()).ok());
        Ok(Self { code, message, data })
    }

    /// Returns the error as JSON.
    pub fn to_value(&self) -> Value {
        let mut object = Map::new();
        object.insert("code".into(), self.code.into());
        object.insert("message".into(), self.message.as_str().into());
        if let Some(data) = &self.data {
            object.insert("data".into(), data.clone());
        }
        object.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn good(text: &str) -> RpcMessage {
        RpcMessage::parse(text.as_bytes()).unwrap()
    }

    #[track_caller]
    fn bad(text: impl AsRef<[u8]>) -> (Option<RequestId>, bool, i64) {
        let malformed = RpcMessage::parse(text.as_ref()).unwrap_err();
        (malformed.id, malformed.is_response, malformed.error.code)
    }

    #[test]
    fn the_members_of_a_message_determine_its_kind() {
        let params = json!({"a": 1}).as_object().unwrap().clone();
        let request =
            RpcMessage::Request { id: RequestId::Text("1".into()), method: "m".into(), params: params.clone() };
        assert_eq!(good(r#"{"jsonrpc":"2.0","id":"1","method":"m","params":{"a":1},"x":0}"#), request);
        assert_eq!(
            good(r#"{"jsonrpc":"2.0","method":"m"}"#),
            RpcMessage::Notification { method: "m".into(), params: Map::new() }
        );
        let response = RpcMessage::Response { id: RequestId::Number(7), outcome: Ok(json!({"a": 1})) };
        assert_eq!(good(r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#), response);
        for message in [request, response, RpcMessage::Notification { method: "m".into(), params }] {
            assert_eq!(RpcMessage::parse(&message.to_json()), Ok(message));
        }
    }

    #[test]
    fn a_rejected_message_has_an_error_kind_and_an_accurate_reason() {
        let zeros = "0,".repeat(1 << 20);
        for (params, kind, reason) in [
            ("[]", "invalid_input", "must be an object"),
            (r#"{"a":"\ud800"}"#, "invalid_input", "hex escape"),
            (r#"{"a":1e400}"#, "invalid_input", "the number 1e400 is larger than any double"),
            (
                r#"{"a":18446744073709551617}"#,
                "invalid_input",
                "is not a 64-bit integer and has more digits than a double",
            ),
            (&format!(r#"{{"a":{}1{}}}"#, "[".repeat(1_000), "]".repeat(1_000)), "invalid_input", "recursion limit"),
            (&format!(r#"{{"a":[{zeros}0]}}"#), "too_large", "too many values"),
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#);
            let MalformedMessage { id, error, .. } = RpcMessage::parse(text.as_bytes()).unwrap_err();
            assert_eq!((id, error.code), (Some(RequestId::Number(1)), RpcError::INVALID_PARAMS), "{params:.60}");
            assert_eq!(error.data, Some(json!({"kind": kind})), "{params:.60}");
            assert!(error.message.contains(reason), "{}", error.message);
        }
        for text in ["{", "[]", "7", r#"{"jsonrpc":"2.0","id":[],"method":"m"}"#, r#"{"id":1,"method":"m"}"#] {
            let error = RpcMessage::parse(text.as_bytes()).unwrap_err().error;
            assert_eq!(error.data, Some(json!({"kind": "invalid_input"})), "{text}");
        }
        let echo = good(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":18446744073709551616}}"#);
        let RpcMessage::Request { params, .. } = echo else { panic!("{echo:?}") };
        assert_eq!(params["a"].as_f64(), Some(18_446_744_073_709_551_616.0));
        let result = format!(r#"{{"jsonrpc":"2.0","id":1,"result":[{zeros}0]}}"#);
        assert_eq!(bad(result), (Some(RequestId::Number(1)), true, RpcError::INVALID_REQUEST));
        let error = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":5,"message":"m","data":[{zeros}0]}}}}"#);
        let outcome = Err(RpcError::new(5, "m"));
        assert_eq!(good(&error), RpcMessage::Response { id: RequestId::Number(1), outcome });
        let id = format!(r#"{{"jsonrpc":"2.0","id":[{zeros}0],"method":"m"}}"#);
        assert_eq!(bad(id), (None, false, RpcError::INVALID_REQUEST));
    }

    /// JSON whose values would overflow the stack: texts within texts, each of which is read.
    fn hidden_values() -> String {
        (0..12).fold("1".to_owned(), |inner, _| {
            let object = json!({"$serde_json::private::RawValue": inner}).to_string();
            format!("{}{object}{}", "[".repeat(120), "]".repeat(120))
        })
    }

    #[test]
    fn a_malformed_message_is_rejected_with_its_id_if_the_id_is_readable() {
        assert_eq!(bad("{"), (None, false, -32700));
        assert_eq!(bad(""), (None, false, -32700));
        assert_eq!(bad("[]"), (None, false, -32600));
        assert_eq!(bad("7"), (None, false, -32600));
        assert_eq!(bad(r#"{"id":1,"method":"m"}"#), (Some(RequestId::Number(1)), false, -32600));
        assert_eq!(bad(r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#).2, -32600);
        assert_eq!(bad(r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#), (None, false, -32600));
        assert_eq!(
            bad(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[]}"#),
            (Some(RequestId::Number(1)), false, -32602)
        );
        assert_eq!(
            bad(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"n":1e400}}"#),
            (Some(RequestId::Number(1)), false, -32602)
        );
        assert_eq!(
            bad(r#"{"jsonrpc":"2.0","id":1,"result":{"n":18446744073709551617}}"#),
            (Some(RequestId::Number(1)), true, -32600)
        );
        assert_eq!(
            bad(r#"{"jsonrpc":"2.0","id":1,"result":{"s":"\ud800"}}"#),
            (Some(RequestId::Number(1)), true, -32600)
        );
        assert_eq!(
            bad(r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1}}"#),
            (Some(RequestId::Number(1)), true, -32600)
        );
        let hidden = hidden_values();
        for member in ["params", "result", "error"] {
            let method = if member == "params" { r#""method":"m","# } else { "" };
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,{method}"{member}":{{"a":{hidden}}}}}"#);
            assert_eq!(bad(text), (Some(RequestId::Number(1)), member != "params", -32600));
        }
        assert_eq!(bad(format!(r#"{{"jsonrpc":"2.0","method":"m","id":{hidden}}}"#)), (None, false, -32600));
        let broken = [format!(r#"{{"id":{hidden},"method":""#).as_bytes(), b"\xff\"}"].concat();
        assert_eq!(bad(broken), (None, false, -32700));
        assert_eq!(bad(r#"{"jsonrpc":"2.0","id":1}"#), (Some(RequestId::Number(1)), true, -32600));
        assert_eq!(
            bad(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}"),
            (Some(RequestId::Number(1)), true, -32700)
        );
        let deep =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
        assert!(RpcMessage::parse(deep.as_bytes()).is_err());
    }
}
