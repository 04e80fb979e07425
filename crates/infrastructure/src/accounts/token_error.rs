//! The reasons why an issuer gave no tokens.

use crate::web::reach_error::ReachError;

/// A request to an issuer that brought no tokens. No secret is in it.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The grant is over: it was taken back, ran out, or the code was used already (`invalid_grant`).
    #[error("what was granted does not hold any more: {0}")]
    Grant(String),
    /// The issuer does not know this program, or not by this word (`invalid_client`, `unauthorized_client`).
    #[error(
        "the issuer does not take this program's name and word ({0}): compare `[google] client_id` and the client secret with what the issuer shows"
    )]
    Client(String),
    /// Another refusal.
    #[error("the issuer refused: {0}")]
    Refused(String),
    /// An answer that is none of OAuth's.
    #[error("the answer of the issuer cannot be used: {0}")]
    Protocol(&'static str),
    /// No answer came.
    #[error("the issuer was not reached: {0}")]
    Unreached(#[from] ReachError),
}
