//! Reasons why an issuer returned no tokens.

use crate::web::web_error::WebError;

/// Reason why an issuer returned no tokens. Contains no secret.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The grant was revoked or has expired, or the code was already used (`invalid_grant`).
    #[error("what was granted does not hold any more: {0}")]
    Grant(String),
    /// The issuer rejects the client id or secret (`invalid_client`, `unauthorized_client`).
    #[error(
        "the issuer does not take this program's name and word ({0}): compare `[google] client_id` and the client secret with what the issuer shows"
    )]
    Client(String),
    /// The issuer refused for another reason.
    #[error("the issuer refused: {0}")]
    Refused(String),
    /// The response is not a valid OAuth response.
    #[error("the answer of the issuer cannot be used: {0}")]
    Protocol(&'static str),
    /// No response arrived.
    #[error("the issuer was not reached: {0}")]
    Unreached(#[from] WebError),
}
