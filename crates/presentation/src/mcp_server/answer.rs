//! The answer to one request.

use super::protocol_error::of_failure;
use serde::Serialize;
use toolstead_domain::{suggestion::SuggestionFormatter, tool_failure::ToolFailure};
use toolstead_infrastructure::mcp::wire::message::{Id, RpcError, error_response, response, sized_response};

/// A JSON-RPC response, written out, and what a transport must know of it.
#[derive(Debug)]
pub(super) struct Answer {
    /// The response as one line of JSON.
    pub(super) json: Vec<u8>,
    /// What it says.
    pub(super) kind: AnswerKind,
}

/// What an answer says, as far as HTTP's status depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerKind {
    /// A result, or an error that the method itself defines.
    Regular,
    /// Nobody here knows the method.
    UnknownMethod,
    /// The request breaks the protocol around the method.
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

    /// An error; its kind follows from its code.
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

    /// The error that a failure is. A server behind this one that does not know a method says so for itself: here the
    /// method is known.
    pub(super) fn failure(id: &Id, failure: &ToolFailure, suggestions: &dyn SuggestionFormatter) -> Self {
        Self::numbered_failure(id, failure, None, suggestions)
    }

    /// The same under the number by which the client knows it; an error of a server keeps its own.
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
