//! The reasons why nothing came back.

use crate::http::http_error::HttpError;
use toolstead_domain::{
    error_chain::with_causes, error_kind::ErrorKind, suggestion::Suggestion, tool_failure::ToolFailure,
};

/// A request without an answer.
#[derive(Debug, thiserror::Error)]
pub enum ReachError {
    /// It is no address that is reached, or leads to one; the text says why.
    #[error("{0}")]
    Address(String),
    /// Its port is closed.
    #[error("port {port} of {host} is not reached, only 80 and 443 are")]
    Port {
        /// The host.
        host: String,
        /// The port.
        port: u16,
    },
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
