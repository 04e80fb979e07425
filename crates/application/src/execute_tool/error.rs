//! Errors of a call.

use toolstead_domain::{CallOutcome, CancelReason, StoreError, ToolFailure, error_kind::ErrorKind};

/// Error of a call. Each is in the audit log, except for [`AuditFailure`](Self::AuditFailure).
#[derive(Debug, thiserror::Error)]
pub enum ExecuteToolError {
    /// The tool is unknown, disabled or unavailable, the arguments are not an object, or a retry belongs to no open
    /// question. MCP answers with a protocol error.
    #[error(transparent)]
    NotCallable(ToolFailure),
    /// The call did not run: the arguments are invalid, it is not permitted, or a limit is reached.
    #[error(transparent)]
    Refused(ToolFailure),
    /// The call ran and failed, or timed out.
    #[error(transparent)]
    Failed(ToolFailure),
    /// The call was cancelled.
    #[error("the call was cancelled ({})", .0.as_str())]
    Cancelled(CancelReason),
    /// The application is closed. The call did not run.
    #[error("the call did not run: the application is closed")]
    Closed,
    /// The call could not be recorded: it did not run, or its result is withheld.
    #[error("{what}")]
    AuditFailure {
        /// Outcome of the call.
        what: AuditFailure,
        /// Error of the audit log.
        source: StoreError,
    },
}

/// Outcome of a call that could not be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditFailure {
    /// The call was about to run, and did not.
    Start,
    /// The call was refused, and did not run.
    Refusal,
    /// The call did not run, because the application is closed.
    Closed,
    /// The call ran and succeeded.
    Success,
    /// The call ran and failed.
    Failure,
    /// The call was cancelled, perhaps after its start.
    Cancellation,
}

impl AuditFailure {
    pub(super) fn of(outcome: &Result<CallOutcome, ExecuteToolError>) -> Self {
        match outcome {
            Ok(CallOutcome::Done(result)) if result.is_error() => Self::Failure,
            Ok(CallOutcome::Done(_)) => Self::Success,
            Ok(CallOutcome::InputRequired(_)) => Self::Start,
            Err(ExecuteToolError::NotCallable(_) | ExecuteToolError::Refused(_)) => Self::Refusal,
            Err(ExecuteToolError::Closed) => Self::Closed,
            Err(ExecuteToolError::Failed(_)) => Self::Failure,
            Err(ExecuteToolError::Cancelled(_)) => Self::Cancellation,
            Err(ExecuteToolError::AuditFailure { what, .. }) => *what,
        }
    }
}

impl std::fmt::Display for AuditFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Start => "the call did not run: its start cannot be recorded",
            Self::Closed => "the call did not run: the application is closed, and that could not be recorded",
            Self::Refusal => "the call was refused and did not run, and that could not be recorded",
            Self::Success => {
                "the call ran and succeeded, but its outcome could not be recorded, so its result is withheld"
            }
            Self::Failure => {
                "the call ran and failed, but its outcome could not be recorded, so its result is withheld"
            }
            Self::Cancellation => "the call was cancelled, perhaps after its start, and that could not be recorded",
        })
    }
}

impl ExecuteToolError {
    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotCallable(failure) | Self::Refused(failure) | Self::Failed(failure) => failure.kind,
            Self::Cancelled(CancelReason::Deadline) => ErrorKind::Timeout,
            Self::Cancelled(CancelReason::Client | CancelReason::Shutdown) | Self::Closed => ErrorKind::Cancelled,
            Self::AuditFailure { .. } => ErrorKind::Internal,
        }
    }
}
