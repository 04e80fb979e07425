//! The two ways to a server, as one.

use crate::mcp::{
    client::{
        http::HttpTransport,
        lines::LineTransport,
        peer::Peer,
        relay::relay,
        request::{self, CallRequest, RequestWriter, check_size},
        request_error::RequestError,
        stderr_tail::StderrTail,
    },
    wire::{
        headers::ParamHeaders,
        incoming::Answer,
        message::{Id, RpcError},
    },
};
use serde_json::{Map, Value};
use std::{sync::Arc, time::Duration};
use toolstead_domain::ports::caller::Caller;

/// A way to one server.
#[derive(Debug)]
pub(super) enum Transport {
    /// Lines on byte streams.
    Lines(Box<LineTransport>),
    /// Streamable HTTP.
    Http(Box<HttpTransport>),
}

impl Transport {
    /// The server as it is seen through this transport.
    pub(super) fn peer(&self) -> &Arc<Peer> {
        match self {
            Self::Lines(lines) => &lines.peer,
            Self::Http(http) => &http.peer,
        }
    }

    /// Makes a request and waits for its answer, as long as it takes.
    ///
    /// # Errors
    /// [`RequestError`].
    pub(super) async fn request(
        &self,
        writer: &RequestWriter,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<Answer, RequestError> {
        match self {
            Self::Lines(lines) => lines.request(writer, method, params).await,
            Self::Http(http) => Box::pin(http.request(writer, method, params)).await,
        }
    }

    /// Calls a tool; what comes before the answer goes to the caller. `mirrored` are the parameters that HTTP headers
    /// repeat.
    ///
    /// # Errors
    /// [`RequestError`].
    pub(super) async fn call(
        &self,
        writer: &RequestWriter,
        call: &CallRequest<'_>,
        mirrored: Option<&ParamHeaders>,
        caller: &dyn Caller,
        idle: Option<Duration>,
    ) -> Result<Answer, RequestError> {
        match self {
            Self::Lines(lines) => {
                let request = lines.begin(call.purpose(), true)?;
                let text = writer.call(request.waiting.id, call);
                relay(self, &request.waiting, caller, idle, request.exchange(text)).await
            }
            Self::Http(http) => {
                let request = http.begin(call.purpose(), writer)?;
                let text = writer.call(request.waiting.id, call);
                check_size(&text, http.limit())?;
                let exchange = Box::pin(http.call(writer, &request, text, call, mirrored));
                let outcome = relay(self, &request.waiting, caller, idle, exchange).await;
                request.finish(&outcome);
                outcome
            }
        }
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// [`RequestError`] when it cannot have arrived.
    pub(super) async fn notify(&self, writer: &RequestWriter, method: &str) -> Result<(), RequestError> {
        let text = request::notification(method, Map::new());
        match self {
            Self::Lines(lines) => lines.send(text).await,
            Self::Http(http) => Box::pin(http.send(writer, text)).await,
        }
    }

    /// Answers a request of the server, as far as it listens.
    pub(super) async fn respond(&self, id: &Id, outcome: &Result<Value, RpcError>) {
        match self {
            Self::Lines(lines) => lines.respond(id, outcome),
            Self::Http(http) => Box::pin(http.respond(id, outcome)).await,
        }
    }

    /// Listens for what the server says outside of requests, where the transport needs that. Ends when there is nothing
    /// to hear.
    pub(super) async fn listen(&self, writer: &RequestWriter) {
        match self {
            // Everything comes on the one channel.
            Self::Lines(_) => {}
            Self::Http(http) => Box::pin(http.listen(writer)).await,
        }
    }

    /// The last lines of its standard error, oldest first.
    pub(super) fn stderr(&self) -> Vec<String> {
        match self {
            Self::Lines(lines) => lines.stderr.as_ref().map_or(Vec::new(), StderrTail::lines),
            Self::Http(_) => Vec::new(),
        }
    }

    /// Ends a connection that was lost. Returns what is known of its end.
    pub(super) async fn abandon(&self) -> Option<String> {
        match self {
            Self::Lines(lines) => lines.abandon().await,
            Self::Http(http) => {
                http.peer.lose("the connection was given up");
                None
            }
        }
    }

    /// Ends the connection in peace; returns when the server is gone or `grace` has passed.
    pub(super) async fn close(&self, grace: Duration) {
        match self {
            Self::Lines(lines) => lines.close(grace).await,
            Self::Http(http) => Box::pin(http.close(grace)).await,
        }
    }
}
