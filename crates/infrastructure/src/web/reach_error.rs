//! The reasons why nothing came back.

use crate::http::http_error::HttpError;
use toolstead_domain::{error_chain::with_causes, error_kind::ErrorKind, tool_failure::ToolFailure};

/// A request without an answer.
#[derive(Debug, thiserror::Error)]
pub enum ReachError {
    /// It is no address that is reached, or leads to one; the text says why.
    #[error("{0}")]
    Address(String),
    /// A rule is against a host on the way.
    #[error("{}", .0.text())]
    Refused(ToolFailure),
    /// It did not end in time.
    #[error("it did not answer in time")]
    TimedOut,
    /// It did not begin to answer in time.
    #[error("it did not begin to answer within {0} s")]
    Silent(u64),
    /// It sends from one address to the next.
    #[error("it redirects more than {0} times")]
    Redirects(u32),
    /// The body cannot be unpacked, or must not be; the text says why.
    #[error("{0}")]
    Packing(String),
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
        let kind = match self {
            Self::Refused(failure) => return failure,
            Self::Address(_) => ErrorKind::PermissionDenied,
            Self::TimedOut | Self::Silent(_) => ErrorKind::Timeout,
            Self::Redirects(_) | Self::Packing(_) => ErrorKind::UpstreamProtocol,
            Self::Http(ref error) if error.is_unsent() => ErrorKind::Unavailable,
            Self::Http(_) => ErrorKind::UpstreamProtocol,
        };
        ToolFailure::new(kind, format!("{what}: {}", with_causes(&self)))
    }
}
