//! Reasons why a request has no answer.

use crate::http::http_error::HttpError;
use toolstead_domain::{Suggestion, ToolFailure, error_chain::with_causes, error_kind::ErrorKind};

/// Reason why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The address is not allowed, or redirects to one that is not; the text contains the reason.
    #[error("{0}")]
    Address(String),
    /// The port is not allowed.
    #[error("port {port} of {host} is not allowed, only 80 and 443 are")]
    Port {
        /// The host.
        host: String,
        /// The port.
        port: u16,
    },
    /// A rule denies a host of the request.
    #[error("{}", .0.text())]
    Refused(ToolFailure),
    /// The deadline was reached.
    #[error("it did not answer in time")]
    TimedOut,
    /// The server did not begin to answer in time.
    #[error("it did not begin to answer within {0} s")]
    Silent(u64),
    /// Too many redirects.
    #[error("it redirects more than {0} times")]
    Redirects(u32),
    /// The body cannot be decompressed, or is not allowed to; the text contains the reason.
    #[error("{0}")]
    Packing(String),
    /// The connection or the HTTP response failed.
    #[error("{0}")]
    Http(#[source] HttpError),
}

impl WebError {
    pub(super) fn of(error: HttpError) -> Self {
        match error {
            HttpError::Address(_) | HttpError::NotPublic(_) => Self::Address(with_causes(&error)),
            other => Self::Http(other),
        }
    }

    /// Converts the error into the failure of a tool call. The message begins with `what`.
    pub fn into_failure(self, what: &str) -> ToolFailure {
        let kind = match self {
            Self::Refused(failure) => return failure,
            Self::Address(_) | Self::Port { .. } => ErrorKind::PermissionDenied,
            Self::TimedOut | Self::Silent(_) => ErrorKind::Timeout,
            Self::Redirects(_) | Self::Packing(_) => ErrorKind::UpstreamProtocol,
            Self::Http(ref error) if error.is_unsent() => ErrorKind::Unavailable,
            Self::Http(_) => ErrorKind::UpstreamProtocol,
        };
        let failure = ToolFailure::new(kind, format!("{what}: {}", with_causes(&self)));
        match &self {
            Self::Port { host, port } => failure.suggest(Suggestion::ChangeSettings(format!(
                "`[web] allow_private_hosts = [\"{host}:{port}\"]` opens the port"
            ))),
            _ => failure,
        }
    }
}
