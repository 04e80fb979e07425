//! Failures of models.

use crate::error_kind::ErrorKind;
use std::time::Duration;

/// Reason why a model did not answer. The texts contain no secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The key is missing, or the provider does not accept it.
    #[error("{0}")]
    Unauthorized(String),
    /// The provider cannot be reached, or its answer was interrupted.
    #[error("{0}")]
    Unreachable(String),
    /// The provider is overloaded, or the quota of the key is used up.
    #[error("{message}{}", pause(*retry_after))]
    RateLimited {
        /// Message for the user.
        message: String,
        /// Time to wait before the next request.
        retry_after: Option<Duration>,
    },
    /// The conversation is longer than the context window of the model.
    #[error("{0}")]
    ContextTooLong(String),
    /// The provider rejected the request.
    #[error("{message}")]
    Refused {
        /// HTTP status, if the answer had one or a word that corresponds to one.
        status: Option<u16>,
        /// Message of the provider.
        message: String,
    },
    /// The answer violates the protocol.
    #[error("{0}")]
    Protocol(String),
}

/// Returns the time after which a request can be made again, as a clause.
fn pause(retry_after: Option<Duration>) -> String {
    retry_after.map_or_else(String::new, |time| format!("; try again in {} s", time.as_secs_f64().ceil()))
}

impl ModelError {
    /// Returns the kind, for the wire and for exit codes.
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
    fn the_text_of_a_rate_limit_error_includes_the_retry_delay() {
        let text_of = |retry_after| ModelError::RateLimited { message: "slow down".into(), retry_after }.to_string();
        assert_eq!(text_of(None), "slow down");
        assert_eq!(text_of(Some(Duration::from_millis(3_599_100))), "slow down; try again in 3600 s");
    }
}
