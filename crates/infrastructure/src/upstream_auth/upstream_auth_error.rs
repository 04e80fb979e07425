//! Reasons why there are no credentials for a server.

use crate::accounts::{sign_in_error::SignInError, token_error::TokenError, vault::VaultError};
use rmcp::transport::auth::AuthError;
use toolstead_domain::{CredentialsError, error_chain::with_causes, error_kind::ErrorKind};

/// Maximum length of a text of an authorization server to report, in characters.
const MAX_MESSAGE_CHARS: usize = 300;

/// Reason why there are no credentials for a server. Contains no secret.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamAuthError {
    /// The configuration or the machine does not permit a sign-in or a request for a token; with the reason.
    #[error("{0}")]
    Unavailable(String),
    /// The server names no authorization server.
    #[error("`{0}` names no authorization server, so there is no page to sign in on")]
    NoAuthorizationServer(String),
    /// The authorization server does not support PKCE with SHA-256.
    #[error("the authorization server `{0}` does not announce PKCE with S256, so signing in there is not safe")]
    NoPkce(String),
    /// The server names another authorization server than the configured one.
    #[error("the server names the authorization server `{found}`, and the configuration accepts only `{expected}`")]
    OtherIssuer {
        /// Issuer that the server names.
        found: String,
        /// Configured issuer.
        expected: String,
    },
    /// The metadata of the server or of its authorization server is invalid, or the latter refused a request.
    #[error("{0}")]
    Refused(String),
    /// The principal has not signed in.
    #[error("no sign-in is stored")]
    NotSignedIn,
    /// The sign-in lacks scopes that the server requires.
    #[error("the sign-in lacks these scopes: {0}")]
    MissingScopes(String),
    /// The grant was revoked or has expired.
    #[error("the sign-in was revoked or has expired")]
    InvalidGrant,
    /// The sign-in failed.
    #[error(transparent)]
    SignIn(#[from] SignInError),
    /// The tokens cannot be read or stored.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

impl UpstreamAuthError {
    /// Returns the kind of failure for the result of a command.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unavailable(_) | Self::NoAuthorizationServer(_) | Self::NoPkce(_) | Self::OtherIssuer { .. } => {
                ErrorKind::Unavailable
            }
            Self::Refused(_) => ErrorKind::UpstreamProtocol,
            Self::NotSignedIn | Self::MissingScopes(_) | Self::InvalidGrant => ErrorKind::AuthRequired,
            Self::SignIn(error) => error.kind(),
            Self::Vault(_) => ErrorKind::Io,
        }
    }

    /// Converts an error of the OAuth library, with these secrets removed.
    pub(super) fn of(error: &AuthError, secrets: &[&str]) -> Self {
        let mut text = with_causes(error);
        for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
            text = text.replace(secret, "…");
        }
        Self::Refused(printable(&text))
    }
}

/// Returns the printable ASCII characters of a foreign text, up to [`MAX_MESSAGE_CHARS`].
fn printable(text: &str) -> String {
    text.chars().filter(|c| *c == ' ' || c.is_ascii_graphic() || *c == '…').take(MAX_MESSAGE_CHARS).collect()
}

impl From<TokenError> for UpstreamAuthError {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Grant(_) => Self::InvalidGrant,
            error => Self::SignIn(SignInError::Token(error)),
        }
    }
}

impl From<UpstreamAuthError> for CredentialsError {
    fn from(error: UpstreamAuthError) -> Self {
        let text = with_causes(&error);
        match error {
            UpstreamAuthError::Unavailable(_)
            | UpstreamAuthError::NoAuthorizationServer(_)
            | UpstreamAuthError::NoPkce(_)
            | UpstreamAuthError::OtherIssuer { .. } => Self::Unavailable(text),
            UpstreamAuthError::NotSignedIn | UpstreamAuthError::MissingScopes(_) | UpstreamAuthError::InvalidGrant => {
                Self::SignIn(text)
            }
            UpstreamAuthError::SignIn(error) => error.into(),
            UpstreamAuthError::Refused(_) | UpstreamAuthError::Vault(_) => Self::Failed(text),
        }
    }
}
