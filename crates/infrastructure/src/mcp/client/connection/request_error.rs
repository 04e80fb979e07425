//! Reasons why a request to a server has no result.

use crate::mcp::wire::message::RpcError;
use std::time::Duration;

/// Reason why a request has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(in crate::mcp::client) enum RequestError {
    /// The server responded with an error.
    #[error("it answered with an error: {0}")]
    Rpc(RpcError),
    /// The server's response is invalid.
    #[error("{0}")]
    Malformed(String),
    /// The connection ended before the response arrived. It is unknown whether the request had an effect.
    #[error("{0}")]
    Lost(String),
    /// The request did not reach the server.
    #[error("{0}")]
    Unreachable(String),
    /// The response did not arrive within this time.
    #[error("it did not answer within {} s", .0.as_secs_f32())]
    Late(Duration),
    /// The server requires a login.
    #[error("it requires a login: {0}")]
    Unauthorized(String),
    /// The server responded with an HTTP error.
    #[error("it answered with the HTTP status {status}{detail}")]
    Http {
        /// HTTP status code.
        status: u16,
        /// Further details after a colon; empty if there are none.
        detail: String,
    },
    /// The request exceeds the maximum size of a message.
    #[error("the request has {bytes} bytes, at most {limit} are sent")]
    TooLarge {
        /// Size in bytes.
        bytes: usize,
        /// Maximum size in bytes.
        limit: usize,
    },
}
