//! Reasons why a sign-in failed.

use super::{token_error::TokenError, vault::VaultError};
use std::{io, time::Duration};
use toolstead_domain::{CredentialsError, error_chain::with_causes, error_kind::ErrorKind};

/// Reason why a sign-in failed. Nothing is stored in this case.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// Sign-in is not available; the text is the reason.
    #[error("{0}")]
    Unavailable(String),
    /// The system returned no random bytes or no port.
    #[error("the sign-in cannot begin: {0}")]
    Begin(#[source] io::Error),
    /// The issuer reports that nothing was granted.
    #[error("nothing was granted: the page answered `{0}`")]
    Denied(String),
    /// The redirect names another issuer.
    #[error("the response comes from another issuer and was rejected")]
    OtherIssuer,
    /// The redirect has no valid code.
    #[error("the response of the page has no valid code: {0}")]
    NoCode(&'static str),
    /// The browser did not return from the page within this time.
    #[error("the browser did not return from the page within {} seconds", .0.as_secs())]
    Late(Duration),
    /// Fewer scopes were granted than are needed.
    #[error("these permissions were not granted: {}; sign in again and grant all of them", .0.join(", "))]
    Missing(Vec<String>),
    /// The issuer returned no tokens.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The tokens cannot be read or stored.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

impl SignInError {
    /// Returns the kind of failure for the result of a call.
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

impl From<SignInError> for CredentialsError {
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
