//! Why a request to a server has no result.

use crate::mcp::wire::message::RpcError;
use std::time::Duration;

/// A request without a result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum RequestError {
    /// The server answered with an error.
    #[error("it answered with an error: {0}")]
    Rpc(RpcError),
    /// The server answered with something that is no answer.
    #[error("{0}")]
    Malformed(String),
    /// The connection ended before the answer came. Whether the request had an effect is not known.
    #[error("{0}")]
    Lost(String),
    /// The request did not reach the server.
    #[error("{0}")]
    Unreachable(String),
    /// No answer in time.
    #[error("it did not answer within {} s", .0.as_secs_f32())]
    Late(Duration),
    /// The server wants a login.
    #[error("it wants a login: {0}")]
    Unauthorized(String),
    /// The server answered with an HTTP error.
    #[error("it answered with the HTTP status {status}{detail}")]
    Http {
        /// The status.
        status: u16,
        /// What else it said, with a colon before it; empty if nothing.
        detail: String,
    },
    /// The request is larger than a message may be.
    #[error("the request has {bytes} bytes, at most {limit} are sent")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
}
