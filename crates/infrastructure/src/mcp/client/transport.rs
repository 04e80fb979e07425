//! A way to a server. Each is a file of its own; `connection.rs` chooses.

use crate::mcp::{
    client::{
        peer::Peer,
        request::{ForwardedRequest, RequestWriter},
        request_error::RequestError,
    },
    wire::{
        headers::ParamHeaders,
        incoming::Answer,
        message::{Id, RpcError},
    },
};
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::{fmt::Debug, sync::Arc, time::Duration};
use toolstead_domain::{client_profile::ProtocolVersion, ports::caller::Caller};

/// A way to one server. Dropping it ends what it started.
#[async_trait]
pub(super) trait Transport: Debug + Send + Sync {
    /// The server as it is seen through this transport.
    fn peer(&self) -> &Arc<Peer>;

    /// The transport as one word, where it may be another than the configuration says.
    fn label(&self) -> Option<&'static str> {
        None
    }

    /// Notes the revision that was agreed on; called once.
    fn agree_on(&self, _: ProtocolVersion) {}

    /// Headers repeat parameters of a call, so that a server may refuse one that does not fit its definition.
    fn mirrors_parameters(&self) -> bool {
        false
    }

    /// Everything that comes for a call comes apart from what comes for others, so that calls can share the connection
    /// also where they can be asked.
    fn tells_calls_apart(&self) -> bool {
        false
    }

    /// Makes a request and waits for its answer, as long as it takes. Dropping the future takes the request back, save
    /// those of the handshake (MCP 2025-11-25, basic/utilities/cancellation).
    ///
    /// # Errors
    /// [`RequestError`].
    async fn request(
        &self,
        writer: &RequestWriter,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<Answer, RequestError>;

    /// Makes a request that somebody else makes; what comes before the answer goes to the caller
    /// ([`relay`](super::relay::relay)). `mirrored` are the parameters of a call that headers repeat.
    ///
    /// # Errors
    /// [`RequestError`]; [`Late`](RequestError::Late) when nothing was heard for `idle`.
    async fn forward(
        &self,
        writer: &RequestWriter,
        forwarded: &ForwardedRequest<'_>,
        mirrored: Option<&ParamHeaders>,
        caller: &dyn Caller,
        idle: Option<Duration>,
    ) -> Result<Answer, RequestError>;

    /// Sends a notification without parameters.
    ///
    /// # Errors
    /// [`RequestError`] when it cannot have arrived.
    async fn notify(&self, writer: &RequestWriter, method: &str) -> Result<(), RequestError>;

    /// Answers a request of the server, as far as it listens.
    async fn respond(&self, id: &Id, outcome: &Result<Value, RpcError>);

    /// Listens for what the server says outside of requests, where that needs a stream of its own. Ends when there is
    /// nothing to hear.
    async fn listen(&self, _: &RequestWriter) {}

    /// The last lines of its standard error, oldest first; empty where it has none.
    fn stderr(&self) -> Vec<String> {
        Vec::new()
    }

    /// Ends a connection that was lost. Returns what is known of its end.
    async fn abandon(&self) -> Option<String>;

    /// Ends the connection in peace; returns when the server is gone or `grace` has passed.
    async fn close(&self, grace: Duration);
}
