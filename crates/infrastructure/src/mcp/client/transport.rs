//! Port for transports to upstream servers. Each transport has a file of its own; `connection.rs` selects one.

pub(super) mod http;
pub(super) mod lines;
pub mod server_launcher;
pub(super) mod sse;
pub(super) mod stderr_tail;
#[cfg(feature = "mcp-stdio")]
pub mod stdio;

use crate::mcp::{
    client::connection::{
        peer::UpstreamConnectionState,
        request::{ConnectionRequestSerializer, ForwardedRequest},
        request_error::RequestError,
    },
    wire::{
        headers::ParamHeaders,
        incoming::RawResponse,
        message::{RequestId, RpcError},
    },
};
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::{fmt::Debug, sync::Arc, time::Duration};
use toolstead_domain::{Caller, ProtocolVersion};

/// Transport to one server. Dropping it ends everything it started.
#[async_trait]
pub(super) trait Transport: Debug + Send + Sync {
    /// Returns the state of the server at the other end.
    fn peer(&self) -> &Arc<UpstreamConnectionState>;

    /// Returns the transport as one word, if it may differ from the configured one.
    fn label(&self) -> Option<&'static str> {
        None
    }

    /// Records the negotiated protocol version. Called once.
    fn agree_on(&self, _: ProtocolVersion) {}

    /// Returns `true` if headers repeat parameters of a call. A server may then reject a call that does not match its
    /// definition.
    fn mirrors_parameters(&self) -> bool {
        false
    }

    /// Returns `true` if messages for different calls arrive separately. Calls whose callers can answer questions can
    /// then share the connection.
    fn isolates_calls(&self) -> bool {
        false
    }

    /// Returns `true` if the connection carries credentials of its principal.
    fn has_credentials(&self) -> bool {
        false
    }

    /// Sends a request and waits for its response without a timeout. Dropping the future cancels the request, except
    /// for those of the handshake (MCP 2025-11-25, basic/utilities/cancellation).
    ///
    /// # Errors
    /// Returns [`RequestError`].
    async fn request(
        &self,
        writer: &ConnectionRequestSerializer,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<RawResponse, RequestError>;

    /// Sends a request on behalf of a caller and delivers the messages before its response to the caller
    /// ([`relay`](super::connection::relay::relay)). `mirrored` are the parameters of a call that headers repeat.
    ///
    /// # Errors
    /// Returns [`RequestError`]; [`Late`](RequestError::Late) if no message about it arrived for `idle`.
    async fn forward(
        &self,
        writer: &ConnectionRequestSerializer,
        forwarded: &ForwardedRequest<'_>,
        mirrored: Option<&ParamHeaders>,
        caller: &dyn Caller,
        idle: Option<Duration>,
    ) -> Result<RawResponse, RequestError>;

    /// Sends a notification without parameters.
    ///
    /// # Errors
    /// Returns [`RequestError`] if it cannot have arrived.
    async fn notify(&self, writer: &ConnectionRequestSerializer, method: &str) -> Result<(), RequestError>;

    /// Sends a response to a request of the server. Failures are ignored.
    async fn respond(&self, id: &RequestId, outcome: &Result<Value, RpcError>);

    /// Listens for messages outside of requests if they need a stream of their own. Returns when there is nothing to
    /// listen to.
    async fn listen(&self, _: &ConnectionRequestSerializer) {}

    /// Returns the last lines of the server's standard error, oldest first. Empty if it has none.
    fn stderr(&self) -> Vec<String> {
        Vec::new()
    }

    /// Ends a lost connection. Returns what is known about its end.
    async fn abandon(&self) -> Option<String>;

    /// Closes the connection. Waits at most `grace` for the server to end.
    async fn close(&self, grace: Duration);
}
