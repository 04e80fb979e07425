//! Why nothing came back.

use crate::http::http_error::HttpError;
use toolstead_domain::{error_chain::with_causes, error_kind::ErrorKind, tool_failure::ToolFailure};

/// A request without an answer.
#[derive(Debug, thiserror::Error)]
pub enum ReachError {
    /// It is no address that is reached; the text says why.
    #[error("{0}")]
    Address(String),
    /// A rule is against a host on the way.
    #[error("{}", .0.text())]
    Refused(ToolFailure),
    /// It did not end in time.
    #[error("it did not answer in time")]
    TimedOut,
    /// The connection, or what came by it.
    #[error("{0}")]
    Http(#[source] HttpError),
}

impl ReachError {
    pub(super) fn of(error: HttpError) -> Self {
        match error {
            HttpError::Address(_) | HttpError::NotPublic(_) => Self::Address(with_causes(&error)),
            other => Self::Http(other),
        }
    }

    /// The failure of a call that asked for it.
    pub fn into_failure(self, what: &str) -> ToolFailure {
        match self {
            Self::Refused(failure) => failure,
            Self::Address(_) => ToolFailure::new(ErrorKind::PermissionDenied, format!("{what}: {self}")),
            Self::TimedOut => ToolFailure::new(ErrorKind::Timeout, format!("{what}: {self}")),
            Self::Http(error) => {
                let kind = if error.is_unsent() { ErrorKind::Unavailable } else { ErrorKind::UpstreamProtocol };
                ToolFailure::new(kind, format!("{what}: {}", with_causes(&error)))
            }
        }
    }
}
