//! The answer to one request.

use super::protocol_error::of_failure;
use serde::Serialize;
use toolstead_domain::{SuggestionFormatter, ToolFailure};
use toolstead_infrastructure::mcp::wire::message::{Id, RpcError, error_response, response, sized_response};

/// A serialized JSON-RPC response, with the facts that a transport needs.
#[derive(Debug)]
pub(super) struct Answer {
    /// The response as one line of JSON.
    pub(super) json: Vec<u8>,
    /// Kind of the answer.
    pub(super) kind: AnswerKind,
}

/// Kind of an answer, as far as the HTTP status depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerKind {
    /// A result, or an error that the method itself defines.
    Regular,
    /// The method is unknown.
    UnknownMethod,
    /// The request violates the protocol rules that apply to every method.
    BadRequest,
}

impl Answer {
    pub(super) fn result(id: &Id, result: &impl Serialize) -> Self {
        Self { json: response(id, result), kind: AnswerKind::Regular }
    }

    /// Returns a result of about this length in bytes.
    pub(super) fn sized_result(id: &Id, result: &impl Serialize, bytes: usize) -> Self {
        Self { json: sized_response(id, result, bytes), kind: AnswerKind::Regular }
    }

    /// Creates an error. Its kind follows from its code.
    pub(super) fn error(id: &Id, error: &RpcError) -> Self {
        let kind = match error.code {
            RpcError::METHOD_NOT_FOUND => AnswerKind::UnknownMethod,
            RpcError::HEADER_MISMATCH | RpcError::MISSING_CAPABILITY | RpcError::UNSUPPORTED_VERSION => {
                AnswerKind::BadRequest
            }
            _ => AnswerKind::Regular,
        };
        Self { json: error_response(Some(id), error), kind }
    }

    /// Creates the error for a failure. An upstream server that does not know a method reports only that: this server
    /// knows the method.
    pub(super) fn failure(id: &Id, failure: &ToolFailure, suggestions: &dyn SuggestionFormatter) -> Self {
        Self::numbered_failure(id, failure, None, suggestions)
    }

    /// Creates the error for a failure with the number that the client's dialect defines. An error of an upstream
    /// server keeps its own code.
    pub(super) fn numbered_failure(
        id: &Id,
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
            AnswerKind::UnknownMethod if failure.upstream.is_some() => Self { kind: AnswerKind::Regular, ..answer },
            _ => answer,
        }
    }
}
