//! The reason why a model did not answer.

use crate::error_kind::ErrorKind;
use std::time::Duration;

/// The reason why a model did not answer. No secret is in its texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// There is no key, or the provider does not take it.
    #[error("{0}")]
    Unauthorized(String),
    /// The provider cannot be reached, or its answer broke off.
    #[error("{0}")]
    Unreachable(String),
    /// The provider has too much to do, or this key has used up its share.
    #[error("{message}")]
    RateLimited {
        /// In words.
        message: String,
        /// So long it wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// The conversation is longer than the model's window.
    #[error("{0}")]
    ContextTooLong(String),
    /// The provider refused the request as it stands.
    #[error("{message}")]
    Refused {
        /// The status of HTTP, where the answer had one, or a word that stands for it.
        status: Option<u16>,
        /// Its words.
        message: String,
    },
    /// The answer is none that its protocol allows.
    #[error("{0}")]
    Protocol(String),
}

impl ModelError {
    /// The kind, for the wire and for exit codes.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unauthorized(_) => ErrorKind::AuthRequired,
            Self::Unreachable(_) => ErrorKind::Unavailable,
            Self::RateLimited { .. } => ErrorKind::RateLimited,
            Self::ContextTooLong(_) => ErrorKind::TooLarge,
            Self::Refused { .. } => ErrorKind::UpstreamHttp,
            Self::Protocol(_) => ErrorKind::UpstreamProtocol,
        }
    }
}
