//! The answer to one request.

use super::protocol_error::of_failure;
use serde::Serialize;
use toolstead_domain::{SuggestionFormatter, ToolFailure};
use toolstead_infrastructure::mcp::wire::message::{RequestId, RpcError, error_response, response, sized_response};

/// A serialized JSON-RPC response, with the facts that a transport needs.
#[derive(Debug)]
pub(super) struct SerializedResponse {
    /// The response as one line of JSON.
    pub(super) json: Vec<u8>,
    /// Kind of the answer.
    pub(super) kind: HttpStatusHint,
}

/// Kind of an answer, as far as the HTTP status depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HttpStatusHint {
    /// A result, or an error that the method itself defines.
    Regular,
    /// The method is unknown.
    UnknownMethod,
    /// The request violates the protocol rules that apply to every method.
    BadRequest,
}

impl SerializedResponse {
    pub(super) fn result(id: &RequestId, result: &impl Serialize) -> Self {
        Self { json: response(id, result), kind: HttpStatusHint::Regular }
    }

    /// Serializes a result. `bytes` is its estimated length, for the buffer.
    pub(super) fn sized_result(id: &RequestId, result: &impl Serialize, bytes: usize) -> Self {
        Self { json: sized_response(id, result, bytes), kind: HttpStatusHint::Regular }
    }

    /// Creates an error. Its kind follows from its code.
    pub(super) fn error(id: &RequestId, error: &RpcError) -> Self {
        let kind = match error.code {
            RpcError::METHOD_NOT_FOUND => HttpStatusHint::UnknownMethod,
            RpcError::HEADER_MISMATCH | RpcError::MISSING_CAPABILITY | RpcError::UNSUPPORTED_VERSION => {
                HttpStatusHint::BadRequest
            }
            _ => HttpStatusHint::Regular,
        };
        Self { json: error_response(Some(id), error), kind }
    }

    /// Creates the error for a failure. If an upstream server does not know a method, the kind is still
    /// [`HttpStatusHint::Regular`], because this server knows the method.
    pub(super) fn failure(id: &RequestId, failure: &ToolFailure, suggestions: &dyn SuggestionFormatter) -> Self {
        Self::numbered_failure(id, failure, None, suggestions)
    }

    /// Creates the error for a failure with the number that the client's dialect defines. An error of an upstream
    /// server keeps its own code.
    pub(super) fn numbered_failure(
        id: &RequestId,
        failure: &ToolFailure,
        number: Option<i64>,
        suggestions: &dyn SuggestionFormatter,
    ) -> Self {
        let mut error = of_failure(failure, suggestions);
        if let (Some(number), None) = (number, &failure.upstream) {
            error.code = number;
        }
        let answer = Self::error(id, &error);
        match answer.kind {
            HttpStatusHint::UnknownMethod if failure.upstream.is_some() => {
                Self { kind: HttpStatusHint::Regular, ..answer }
            }
            _ => answer,
        }
    }
}
