//! The reasons why somebody is not signed in.

use super::{token_error::TokenError, vault::VaultError};
use std::{io, time::Duration};
use toolstead_domain::{error_chain::with_causes, error_kind::ErrorKind, ports::credentials::NoCredentials};

/// A sign-in that did not come to its end. Nothing of it is kept.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// Nobody can sign in here; the text says why.
    #[error("{0}")]
    Unavailable(String),
    /// The system gives no random bytes, or no port.
    #[error("the sign-in cannot begin: {0}")]
    Begin(#[source] io::Error),
    /// The issuer says that nothing was granted.
    #[error("nothing was granted: the page answered `{0}`")]
    Denied(String),
    /// The answer names another issuer.
    #[error("the answer comes from another issuer than the one that was asked, and was not taken")]
    OtherIssuer,
    /// The answer has no code, or more than one.
    #[error("the answer of the page holds no code: {0}")]
    NoCode(&'static str),
    /// Nobody came back from the page.
    #[error("nobody came back from the page within {} seconds", .0.as_secs())]
    Late(Duration),
    /// Less was granted than is needed.
    #[error("these permissions were not granted: {}; sign in again and grant all of them", .0.join(", "))]
    Missing(Vec<String>),
    /// The issuer gave no tokens.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The tokens cannot be kept.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

impl SignInError {
    /// The kind of failure, for the answer of a call.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unavailable(_) | Self::Token(TokenError::Client(_) | TokenError::Unreached(_)) => {
                ErrorKind::Unavailable
            }
            Self::Denied(_) | Self::Missing(_) => ErrorKind::PermissionDenied,
            Self::Late(_) => ErrorKind::Timeout,
            Self::Token(TokenError::Grant(_)) => ErrorKind::AuthRequired,
            Self::OtherIssuer | Self::NoCode(_) | Self::Token(TokenError::Refused(_) | TokenError::Protocol(_)) => {
                ErrorKind::UpstreamProtocol
            }
            Self::Begin(_) | Self::Vault(_) => ErrorKind::Io,
        }
    }
}

impl From<SignInError> for NoCredentials {
    fn from(error: SignInError) -> Self {
        let said = with_causes(&error);
        match error {
            SignInError::Unavailable(_) | SignInError::Denied(_) | SignInError::Token(TokenError::Client(_)) => {
                Self::Unavailable(said)
            }
            SignInError::Late(_) | SignInError::Missing(_) | SignInError::NoCode(_) => Self::SignIn(said),
            SignInError::Begin(_) | SignInError::OtherIssuer | SignInError::Token(_) | SignInError::Vault(_) => {
                Self::Failed(said)
            }
        }
    }
}
