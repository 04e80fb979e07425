//! Transport to a server over the old HTTP+SSE (MCP 2024-11-05, basic/transports). One stream of events carries all
//! messages of the server. Its first event contains the URL to which the client posts its messages.

use crate::{
    http::{
        client::{HttpClient, Request},
        event_stream::EventStream,
        http_error::HttpError,
        sse::SseEvent,
    },
    mcp::{
        client::{
            authorized_endpoint::{AuthorizedEndpoint, PrincipalCredentials},
            config::{HttpUpstream, shown_url},
            connection::{
                foreign_text::shown,
                in_flight::{PendingRequest, RequestPurpose},
                peer::{ConnectionLoss, UpstreamConnectionState},
                relay::relay,
                request::{self, ConnectionRequestSerializer, ForwardedRequest, check_size},
                request_error::RequestError,
            },
            transport::{
                Transport,
                http::{
                    configured_headers, failed, http_error, is_event_stream, not_sent, note_retry_after, unauthorized,
                },
            },
        },
        wire::{
            headers::ParamHeaders,
            incoming::{IncomingMessage, RawResponse},
            message::{RequestId, RpcError},
        },
    },
};
use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::{Map, Value};
use std::{pin::pin, sync::Arc, time::Duration};
use tokio::{runtime::Handle, time::timeout};
use tokio_util::task::AbortOnDropHandle;
use toolstead_domain::{Caller, error_chain::with_causes};
use url::Url;

/// Timeout of a message without a response: a notification, or a response to a ping.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum length of the URL that a server specifies for messages, in bytes.
const MAX_ADDRESS_BYTES: usize = 8 << 10;

/// Connection over HTTP+SSE. It ends with its stream; dropping it closes the stream.
#[derive(Debug)]
pub(in crate::mcp::client) struct SseTransport {
    peer: Arc<UpstreamConnectionState>,
    mailbox: MessageEndpoint,
    limit: usize,
    reading: AbortOnDropHandle<()>,
}

/// Endpoint to which the messages for the server are posted.
#[derive(Debug, Clone)]
struct MessageEndpoint {
    url: Url,
    endpoint: AuthorizedEndpoint,
    headers: HeaderMap,
}

/// Request that waits for its response. Dropping it before the response arrives cancels it.
#[derive(Debug)]
struct SseRequestGuard<'a> {
    transport: &'a SseTransport,
    waiting: Arc<PendingRequest>,
    /// `false` for `initialize`, which is never cancelled (MCP 2025-11-25, basic/utilities/cancellation).
    cancellable: bool,
}

impl SseTransport {
    /// Opens the stream and waits for its first event. A message of more than `limit` bytes ends the connection.
    ///
    /// # Errors
    /// Returns [`RequestError`]. In this case nothing was posted, and nothing was sent to another origin than the
    /// server's.
    pub(in crate::mcp::client) async fn open(
        client: &HttpClient,
        server: &HttpUpstream,
        credentials: Option<Arc<PrincipalCredentials>>,
        peer: Arc<UpstreamConnectionState>,
        limit: usize,
    ) -> Result<Self, RequestError> {
        let endpoint = client.endpoint(&server.url).map_err(|error| failed(&peer, error))?;
        let headers = configured_headers(endpoint.headers(), &server.headers).map_err(RequestError::Unreachable)?;
        let mut listening = headers.clone();
        listening.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        listening.remove(header::CONTENT_TYPE);
        let request = Request { method: Method::GET, headers: listening, body: Bytes::new() };
        let endpoint = AuthorizedEndpoint::new(endpoint, credentials.clone());
        let response = endpoint.send(request).await.map_err(|error| not_sent(&peer, error))?;
        if response.status() == StatusCode::UNAUTHORIZED {
            return Err(unauthorized(&peer, &response));
        }
        if !response.status().is_success() {
            return Err(http_error(&server.url, response).await);
        }
        if !is_event_stream(&response) {
            let kind = response.headers().get(header::CONTENT_TYPE).map_or(&b"nothing"[..], HeaderValue::as_bytes);
            let kind = shown(&String::from_utf8_lossy(kind), 80);
            return Err(RequestError::Malformed(format!("it answered with {kind} instead of a stream of events")));
        }
        let mut events = EventStream::new(response, limit);
        let url = first_event(&mut events, &server.url).await.map_err(|error| match error {
            MessageEndpointError::Broken(error) => failed(&peer, error),
            error => RequestError::Malformed(error.to_string()),
        })?;
        let endpoint = client.endpoint(&url).map_err(|error| failed(&peer, error))?;
        let mailbox = MessageEndpoint { url, endpoint: AuthorizedEndpoint::new(endpoint, credentials), headers };
        let reading = tokio::spawn(read(events, peer.clone(), mailbox.clone()));
        Ok(Self { peer, mailbox, limit, reading: AbortOnDropHandle::new(reading) })
    }

    /// Registers a request as waiting for its response. Sends nothing yet.
    ///
    /// # Errors
    /// Returns [`RequestError::Lost`] if the connection has ended.
    fn begin(&self, purpose: RequestPurpose, cancellable: bool) -> Result<SseRequestGuard<'_>, RequestError> {
        Ok(SseRequestGuard { transport: self, waiting: self.peer.in_flight.begin(purpose)?, cancellable })
    }

    /// Posts a message.
    ///
    /// # Errors
    /// Returns [`RequestError`] if the server did not accept it.
    async fn post(&self, text: Vec<u8>) -> Result<(), RequestError> {
        check_size(&text, self.limit)?;
        self.mailbox.post(&self.peer, text).await
    }

    fn end(&self, reason: &str) {
        self.peer.end(reason);
        // Ending the reading task closes the stream.
        self.reading.abort();
    }
}

#[async_trait]
impl Transport for SseTransport {
    fn peer(&self) -> &Arc<UpstreamConnectionState> {
        &self.peer
    }

    fn label(&self) -> Option<&'static str> {
        Some("sse")
    }

    fn has_credentials(&self) -> bool {
        self.mailbox.endpoint.has_credentials()
    }

    async fn request(
        &self,
        writer: &ConnectionRequestSerializer,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<RawResponse, RequestError> {
        let request = self.begin(RequestPurpose::Exchange, method != "initialize")?;
        request.exchange(writer.request(request.waiting.id, method, params)).await
    }

    async fn forward(
        &self,
        writer: &ConnectionRequestSerializer,
        forwarded: &ForwardedRequest<'_>,
        _: Option<&ParamHeaders>,
        caller: &dyn Caller,
        idle: Option<Duration>,
    ) -> Result<RawResponse, RequestError> {
        let request = self.begin(forwarded.purpose(), true)?;
        request.waiting.belongs_to(forwarded.principal);
        let exchange = pin!(request.exchange(writer.forwarded(request.waiting.id, forwarded)));
        relay(self, &request.waiting, caller, idle, exchange).await
    }

    async fn notify(&self, _: &ConnectionRequestSerializer, method: &str) -> Result<(), RequestError> {
        let posting = self.post(request::notification(method, Map::new()));
        timeout(MESSAGE_TIMEOUT, posting).await.map_err(|_| RequestError::Late(MESSAGE_TIMEOUT))?
    }

    async fn respond(&self, id: &RequestId, outcome: &Result<Value, RpcError>) {
        self.mailbox.answer(&self.peer, id, outcome).await;
    }

    async fn abandon(&self) -> Option<String> {
        self.end("the connection was abandoned");
        None
    }

    /// Closes the stream, which ends the session.
    async fn close(&self, _: Duration) {
        self.end("the connection was closed");
    }
}

impl SseRequestGuard<'_> {
    /// Posts the request and waits for its response on the stream. The response may arrive before the server has
    /// acknowledged the post.
    async fn exchange(&self, text: Vec<u8>) -> Result<RawResponse, RequestError> {
        let posted = tokio::select! {
            biased;
            outcome = self.waiting.outcome() => return outcome,
            posted = self.transport.post(text) => posted,
        };
        match posted {
            Ok(()) => self.waiting.outcome().await,
            Err(error) => {
                // The server rejected the request, so there is nothing to cancel.
                self.transport.peer.in_flight.forget(self.waiting.id);
                Err(error)
            }
        }
    }
}

impl Drop for SseRequestGuard<'_> {
    fn drop(&mut self) {
        let transport = self.transport;
        if !transport.peer.in_flight.cancel(self.waiting.id) || !self.cancellable {
            return;
        }
        let text = request::cancelled(self.waiting.id, "the caller no longer waits");
        let (mailbox, peer) = (transport.mailbox.clone(), transport.peer.clone());
        if let Ok(runtime) = Handle::try_current() {
            // The notification runs in the background; nothing depends on it.
            runtime.spawn(async move { drop(timeout(MESSAGE_TIMEOUT, mailbox.post(&peer, text)).await) });
        }
    }
}

impl MessageEndpoint {
    async fn post(&self, peer: &UpstreamConnectionState, text: Vec<u8>) -> Result<(), RequestError> {
        let request = Request { method: Method::POST, headers: self.headers.clone(), body: text.into() };
        let response = self.endpoint.send(request).await.map_err(|error| not_sent(peer, error))?;
        note_retry_after(peer, &response);
        match response.status() {
            // The status is usually 202. The body is ignored, because the response arrives on the stream.
            status if status.is_success() => Ok(()),
            StatusCode::UNAUTHORIZED => Err(unauthorized(peer, &response)),
            status => {
                if matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE) {
                    peer.mark_unusable(ConnectionLoss::Failed(
                        "it no longer knows the session of its own stream".into(),
                    ));
                }
                Err(http_error(&self.url, response).await)
            }
        }
    }

    /// Sends a response to a request of the server. A failure is only logged.
    async fn answer(&self, peer: &UpstreamConnectionState, id: &RequestId, outcome: &Result<Value, RpcError>) {
        let posting = self.post(peer, request::answer(id, outcome));
        if let Err(error) = timeout(MESSAGE_TIMEOUT, posting).await.map_err(drop).and_then(|sent| sent.map_err(drop)) {
            tracing::debug!(server = %peer.server, %id, ?error, "could not answer a request of the server");
        }
    }
}

/// Reason why the beginning of a stream is invalid.
#[derive(Debug, thiserror::Error)]
enum MessageEndpointError {
    #[error("its stream was interrupted: {0}")]
    Broken(HttpError),
    #[error("its stream ended before it named an address for messages")]
    Ended,
    #[error("its stream began with an event of the type `{0}` instead of `endpoint`")]
    OtherEvent(String),
    #[error("the address that it names for messages cannot be used")]
    Unusable,
    #[error("it requests messages at `{named}`, and they may only be sent to `{own}`")]
    OtherOrigin { named: String, own: String },
}

/// Reads the URL to which messages are posted from the first event of the stream. It must have the same origin as
/// `server`, the URL of the stream.
async fn first_event(events: &mut EventStream, server: &Url) -> Result<Url, MessageEndpointError> {
    let SseEvent { event, data } =
        events.next().await.map_err(MessageEndpointError::Broken)?.ok_or(MessageEndpointError::Ended)?;
    if event != "endpoint" {
        let kind = if event.is_empty() { "message" } else { &event };
        return Err(MessageEndpointError::OtherEvent(shown(kind, 40)));
    }
    let text = std::str::from_utf8(&data).ok().filter(|text| text.len() <= MAX_ADDRESS_BYTES);
    let named = text.and_then(|text| server.join(text.trim()).ok()).ok_or(MessageEndpointError::Unusable)?;
    // The configured headers, which may hold secrets, are sent with every message.
    if named.origin() != server.origin() {
        let own = server.origin().ascii_serialization();
        return Err(MessageEndpointError::OtherOrigin { named: shown(&shown_url(&named), 200), own });
    }
    Ok(named)
}

/// Reads and handles messages of the server until the stream ends, and then ends the connection.
async fn read(mut events: EventStream, peer: Arc<UpstreamConnectionState>, mailbox: MessageEndpoint) {
    loop {
        match events.next().await {
            Ok(Some(event)) if matches!(event.event.as_str(), "" | "message") => {
                take_message(event.data, &peer, &mailbox).await;
            }
            Ok(Some(event)) => {
                tracing::trace!(server = %peer.server, event = shown(&event.event, 80), "skipped an event");
            }
            Ok(None) => return peer.end("it closed its stream"),
            Err(error) => return peer.end(&format!("its stream was interrupted: {}", with_causes(&error))),
        }
    }
}

async fn take_message(data: Vec<u8>, peer: &UpstreamConnectionState, mailbox: &MessageEndpoint) {
    match IncomingMessage::read(data) {
        Ok(IncomingMessage::Answer(answer)) => peer.take_answer(answer),
        Ok(IncomingMessage::Other(message)) => {
            if let Some((id, outcome)) = peer.handle_message(message, None) {
                // Requests are answered one at a time, so a flood of requests slows down only its own server.
                mailbox.answer(peer, &id, &outcome).await;
            }
        }
        Err(unreadable) => peer.take_unreadable(*unreadable),
    }
}
