//! The JSON-RPC errors of the edge. `data.kind` names the kind of every one of them; the codes are MCP's.

use serde_json::{Map, Value, json};
use toolstead_domain::{
    client_profile::ProtocolVersion,
    error_kind::ErrorKind,
    session::SessionError,
    suggestion::{SUGGESTION, SuggestionFormatter},
    tool_failure::ToolFailure,
};
use toolstead_infrastructure::mcp::wire::message::RpcError;

/// So much of a text from outside is repeated in an error.
const QUOTED_CHARACTERS: usize = 128;

/// An error of this code and kind.
pub(super) fn of_kind(code: i64, kind: ErrorKind, message: impl Into<String>) -> RpcError {
    RpcError::new(code, message).with_data(json!({"kind": kind.as_str()}))
}

/// Parameters that do not fit: -32602.
pub(super) fn invalid_params(message: impl Into<String>) -> RpcError {
    of_kind(RpcError::INVALID_PARAMS, ErrorKind::InvalidInput, message)
}

/// A message that does not fit the state of things: -32600.
pub(super) fn invalid_request(kind: ErrorKind, message: impl Into<String>) -> RpcError {
    of_kind(RpcError::INVALID_REQUEST, kind, message)
}

/// A method that is not served: -32601.
pub(super) fn method_not_found(method: &str) -> RpcError {
    of_kind(RpcError::METHOD_NOT_FOUND, ErrorKind::NotFound, format!("Method not found: {}", quoted(method)))
}

/// A version that is not spoken: -32022, with those that are (MCP 2026-07-28, schema,
/// `UnsupportedProtocolVersionError`).
pub(super) fn unsupported_version(requested: &str) -> RpcError {
    RpcError::new(RpcError::UNSUPPORTED_VERSION, "Unsupported protocol version").with_data(json!({
        "kind": ErrorKind::UnsupportedVersion.as_str(),
        "requested": quoted(requested),
        "supported": supported_versions(),
    }))
}

/// A message in a state of the session that does not take it: -32600.
pub(super) fn of_session(error: SessionError) -> RpcError {
    invalid_request(error.kind(), error.to_string())
}

/// A failure that is no result: unknown tool and the like. What the failure says for programs goes along. The error of a
/// server behind this one is that server's, whole: nothing of ours stands in its data.
pub(super) fn of_failure(failure: &ToolFailure, suggestions: &dyn SuggestionFormatter) -> RpcError {
    if let Some(said) = &failure.upstream {
        let message = match &failure.next {
            // A key that only we know of, such as to what the server's profile keeps from it.
            Some(next) => format!("{} (Toolstead: {next})", said.message),
            None => said.message.clone(),
        };
        return RpcError { code: said.code, message, data: said.data.clone() };
    }
    let mut data = Map::new();
    data.insert("kind".into(), failure.kind.as_str().into());
    if let Value::Object(more) = &failure.data {
        data.extend(more.clone());
    }
    if let Some(next) = &failure.next {
        data.insert("next".into(), next.as_str().into());
    }
    if let Some(suggestion) = failure.formatted_suggestion(suggestions) {
        data.insert("_meta".into(), json!({SUGGESTION: suggestion}));
    }
    RpcError::new(failure.kind.json_rpc_code(), failure.message.clone()).with_data(data.into())
}

/// More requests than there is room for: -32603.
pub(super) fn overloaded(message: impl Into<String>) -> RpcError {
    of_kind(RpcError::INTERNAL, ErrorKind::RateLimited, message)
}

/// Every version, newest first.
pub(super) fn supported_versions() -> Vec<&'static str> {
    ProtocolVersion::ALL.iter().rev().map(|version| version.as_str()).collect()
}

/// The beginning of a text from outside.
pub(super) fn quoted(text: &str) -> &str {
    text.char_indices().nth(QUOTED_CHARACTERS).map_or(text, |(at, _)| &text[..at])
}
