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
    #[error("{message}{}", pause(*retry_after))]
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

/// Returns the time after which a request can be made again, as a clause.
fn pause(retry_after: Option<Duration>) -> String {
    retry_after.map_or_else(String::new, |time| format!("; try again in {} s", time.as_secs_f64().ceil()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_limit_says_when_to_try_again() {
        let told = |retry_after| ModelError::RateLimited { message: "slow down".into(), retry_after }.to_string();
        assert_eq!(told(None), "slow down");
        assert_eq!(told(Some(Duration::from_millis(3_599_100))), "slow down; try again in 3600 s");
    }
}
