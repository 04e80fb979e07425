//! Reasons why an issuer returned no tokens.

use crate::web::web_error::WebError;

/// Reason why an issuer returned no tokens. Contains no secret.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The grant was revoked or has expired, or the code was already used (`invalid_grant`).
    #[error("the grant is no longer valid: {0}")]
    Grant(String),
    /// The issuer rejects the client id or secret (`invalid_client`, `unauthorized_client`).
    #[error(
        "the issuer rejects the client id or secret ({0}): compare `[google] client_id` and the client secret with what the issuer shows"
    )]
    Client(String),
    /// The issuer refused for another reason.
    #[error("the issuer refused: {0}")]
    Refused(String),
    /// The response is not a valid OAuth response.
    #[error("the response of the issuer is invalid: {0}")]
    Protocol(&'static str),
    /// No response arrived.
    #[error("could not reach the issuer: {0}")]
    Unreached(#[from] WebError),
}
