//! Conversion of a call's outcome for the call that made it.

use super::error::ExecuteToolError;
use toolstead_domain::{CallOutcome, ToolFailure, ToolResult, error_kind::ErrorKind};

/// Returns the result of a nested call.
pub(super) fn answer(outcome: Result<CallOutcome, ExecuteToolError>) -> Result<ToolResult, ToolFailure> {
    match outcome.map_err(failure)? {
        CallOutcome::Done(result) => Ok(result),
        CallOutcome::InputRequired(_) => {
            Err(ToolFailure::new(ErrorKind::Internal, "a nested call ended with a question"))
        }
    }
}

/// Converts an error of a nested call.
pub(super) fn failure(error: ExecuteToolError) -> ToolFailure {
    let kind = error.kind();
    match error {
        ExecuteToolError::NotCallable(failure)
        | ExecuteToolError::Refused(failure)
        | ExecuteToolError::Failed(failure) => failure,
        error @ (ExecuteToolError::Cancelled(_) | ExecuteToolError::Closed) => {
            ToolFailure::new(kind, error.to_string())
        }
        ExecuteToolError::AuditFailure { what, source } => ToolFailure::new(kind, what.to_string()).caused_by(source),
    }
}
