//! JSON-RPC errors of the MCP server. `data.kind` always contains the error kind; the codes are those of MCP.

use serde_json::{Map, Value, json};
use toolstead_domain::{
    ProtocolVersion, SessionStateError, SuggestionFormatter, ToolFailure, error_kind::ErrorKind, suggestion::SUGGESTION,
};
use toolstead_infrastructure::mcp::wire::message::RpcError;

/// Maximum number of characters of a text from outside that an error repeats.
const QUOTED_CHARACTERS: usize = 128;

/// Creates an error with this code and kind.
pub(super) fn of_kind(code: i64, kind: ErrorKind, message: impl Into<String>) -> RpcError {
    RpcError::new(code, message).with_data(json!({"kind": kind.as_str()}))
}

/// Creates the error for invalid parameters: -32602.
pub(super) fn invalid_params(message: impl Into<String>) -> RpcError {
    of_kind(RpcError::INVALID_PARAMS, ErrorKind::InvalidInput, message)
}

/// Creates the error for a message that is invalid in the current state: -32600.
pub(super) fn invalid_request(kind: ErrorKind, message: impl Into<String>) -> RpcError {
    of_kind(RpcError::INVALID_REQUEST, kind, message)
}

/// Creates the error for a method that is not supported: -32601.
pub(super) fn method_not_found(method: &str) -> RpcError {
    of_kind(RpcError::METHOD_NOT_FOUND, ErrorKind::NotFound, format!("Method not found: {}", quoted(method)))
}

/// Creates the error for an unsupported version: -32022, with the supported ones (MCP 2026-07-28, schema,
/// `UnsupportedProtocolVersionError`).
pub(super) fn unsupported_version(requested: &str) -> RpcError {
    RpcError::new(RpcError::UNSUPPORTED_VERSION, "Unsupported protocol version").with_data(json!({
        "kind": ErrorKind::UnsupportedVersion.as_str(),
        "requested": quoted(requested),
        "supported": supported_versions(),
    }))
}

/// Creates the error for a message that the session does not allow in its state: -32600.
pub(super) fn of_session(error: SessionStateError) -> RpcError {
    invalid_request(error.kind(), error.to_string())
}

/// Creates the error for a failure without a result, such as an unknown tool. Includes the data of the failure. An
/// error of an upstream server keeps its code and data; an explanation of Toolstead may be added to its message.
pub(super) fn of_failure(failure: &ToolFailure, suggestions: &dyn SuggestionFormatter) -> RpcError {
    if let Some(said) = &failure.upstream {
        let message = match &failure.next {
            // Explanation that only Toolstead can give, for example that the server's profile denies it an access.
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

/// Creates the error for exceeding a limit of requests: -32603.
pub(super) fn overloaded(message: impl Into<String>) -> RpcError {
    of_kind(RpcError::INTERNAL, ErrorKind::RateLimited, message)
}

/// Returns all supported versions, newest first.
pub(super) fn supported_versions() -> Vec<&'static str> {
    ProtocolVersion::ALL.iter().rev().map(|version| version.as_str()).collect()
}

/// Truncates a text from outside.
pub(super) fn quoted(text: &str) -> &str {
    text.char_indices().nth(QUOTED_CHARACTERS).map_or(text, |(at, _)| &text[..at])
}
