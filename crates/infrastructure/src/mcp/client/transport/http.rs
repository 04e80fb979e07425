//! Transport to a server over streamable HTTP (MCP 2025-11-25 and 2026-07-28, basic/transports).

mod answer;
mod listening;
mod request_headers;
mod stream;

use crate::{
    http::{
        client::{HttpClient, Request},
        http_error::HttpError,
        response::Response,
    },
    mcp::{
        client::{
            authorized_endpoint::{AuthorizedEndpoint, PrincipalCredentials, SendError},
            config::HttpUpstream,
            connection::{
                foreign_text::shown,
                handshake_result::{initialize_params, read_initialize_result},
                in_flight::{PendingRequest, RequestPurpose},
                peer::{ConnectionLoss, UpstreamConnectionState},
                relay::relay,
                request::{self, ConnectionRequestSerializer, ForwardedRequest, RequestParams, check_size},
                request_error::RequestError,
            },
            transport::Transport,
        },
        wire::{
            headers::{self, ParamHeaders},
            incoming::RawResponse,
            message::{RequestId, RpcError},
        },
    },
};
use answer::PostOutcome;
pub(in crate::mcp::client) use answer::{http_error, is_event_stream, note_retry_after, unauthorized};
use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
pub(in crate::mcp::client) use request_headers::configured_headers;
use request_headers::{MirroredParts, prepared_headers};
use serde_json::{Map, Value};
use std::{
    pin::pin,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::{runtime::Handle, sync::Mutex, time::timeout};
use toolstead_domain::{Caller, ProtocolGeneration, ProtocolVersion, error_chain::with_causes};
use url::Url;

/// Timeout of a message without a response: a notification, a response to a ping, the end of a session.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);

/// Transport to one server over streamable HTTP, with the session if the server uses one.
#[derive(Debug)]
pub(in crate::mcp::client) struct HttpTransport {
    peer: Arc<UpstreamConnectionState>,
    endpoint: AuthorizedEndpoint,
    url: Url,
    /// Headers of every request: from the configuration, the protocol and HTTP.
    headers: HeaderMap,
    /// Headers of 2026-07-28 requests, set with the first one.
    modern_headers: OnceLock<HeaderMap>,
    limit: usize,
    session: ArcSwapOption<StreamableHttpSession>,
    /// Locked while a session that the server has ended is replaced.
    renewing: Mutex<()>,
    /// Negotiated protocol version.
    version: OnceLock<ProtocolVersion>,
}

/// Session of a server up to 2025-11-25.
#[derive(Debug)]
struct StreamableHttpSession {
    id: HeaderValue,
    /// Headers of every request in the session.
    headers: HeaderMap,
}

/// Request that waits for its response. Dropping it unfinished cancels it.
#[derive(Debug)]
struct RequestGuard<'a> {
    transport: &'a HttpTransport,
    waiting: Arc<PendingRequest>,
    generation: ProtocolGeneration,
    finished: OnceLock<()>,
}

impl HttpTransport {
    /// Creates the transport. Sends nothing yet.
    ///
    /// # Errors
    /// Returns the reason why the URL or a configured header is invalid.
    pub(in crate::mcp::client) fn new(
        client: &HttpClient,
        server: &HttpUpstream,
        credentials: Option<Arc<PrincipalCredentials>>,
        peer: Arc<UpstreamConnectionState>,
        limit: usize,
    ) -> Result<Self, String> {
        let endpoint = client.endpoint(&server.url).map_err(|error| error.to_string())?;
        let headers = prepared_headers(configured_headers(endpoint.headers(), &server.headers)?);
        Ok(Self {
            peer,
            endpoint: AuthorizedEndpoint::new(endpoint, credentials),
            url: server.url.clone(),
            headers,
            modern_headers: OnceLock::new(),
            limit,
            session: ArcSwapOption::empty(),
            renewing: Mutex::new(()),
            version: OnceLock::new(),
        })
    }

    /// Registers a request as waiting for its response. Sends nothing yet.
    ///
    /// # Errors
    /// Returns [`RequestError::Lost`] if the connection has ended.
    fn begin(
        &self,
        purpose: RequestPurpose,
        writer: &ConnectionRequestSerializer,
    ) -> Result<RequestGuard<'_>, RequestError> {
        Ok(RequestGuard {
            transport: self,
            waiting: self.peer.in_flight.begin(purpose)?,
            generation: writer.version.generation(),
            finished: OnceLock::new(),
        })
    }

    /// Sends a message without a response.
    ///
    /// # Errors
    /// Returns [`RequestError`] if the server did not accept it.
    async fn send(&self, writer: &ConnectionRequestSerializer, text: Vec<u8>) -> Result<(), RequestError> {
        check_size(&text, self.limit)?;
        let headers = self.message_headers(Some(writer.version));
        let sending = self.execute(Method::POST, headers, text.into());
        let response = timeout(MESSAGE_TIMEOUT, sending).await.map_err(|_| RequestError::Late(MESSAGE_TIMEOUT))?;
        let status = response?.status();
        if status.is_success() {
            return Ok(());
        }
        Err(RequestError::Http { status: status.as_u16(), detail: String::new() })
    }

    /// Sends a request and waits for the response, which may also arrive on the stream of an earlier request. Opens a
    /// new session if the server has ended the old one.
    async fn exchange(
        &self,
        writer: &ConnectionRequestSerializer,
        waiting: &Arc<PendingRequest>,
        text: Vec<u8>,
        mirrored: &MirroredParts<'_>,
    ) -> Result<RawResponse, RequestError> {
        let text = Bytes::from(text);
        let session = self.session.load_full();
        let headers = self.headers_of(writer, mirrored)?;
        let posted = tokio::select! {
            biased;
            outcome = waiting.outcome() => return outcome,
            posted = self.post(writer, waiting, text.clone(), headers) => posted?,
        };
        match posted {
            PostOutcome::Answered(answer) => Ok(answer),
            PostOutcome::SessionEnded => {
                Box::pin(self.exchange_in_new_session(writer, waiting, text, mirrored, session)).await
            }
        }
    }

    /// Opens a new session instead of `ended` and resends a request in it. The server rejected the request unprocessed,
    /// so it cannot take effect twice.
    async fn exchange_in_new_session(
        &self,
        writer: &ConnectionRequestSerializer,
        waiting: &Arc<PendingRequest>,
        text: Bytes,
        mirrored: &MirroredParts<'_>,
        ended: Option<Arc<StreamableHttpSession>>,
    ) -> Result<RawResponse, RequestError> {
        self.renew(writer, ended).await?;
        let headers = self.headers_of(writer, mirrored)?;
        match self.post(writer, waiting, text, headers).await? {
            PostOutcome::Answered(answer) => Ok(answer),
            PostOutcome::SessionEnded => Err(RequestError::Lost("it ended the new session at once".into())),
        }
    }

    /// Opens a new session, unless another request has already replaced `ended`. If that fails, marks the connection as
    /// unusable.
    async fn renew(
        &self,
        writer: &ConnectionRequestSerializer,
        ended: Option<Arc<StreamableHttpSession>>,
    ) -> Result<(), RequestError> {
        let _renewing = self.renewing.lock().await;
        let current = self.session.load_full();
        if current.as_ref().map(Arc::as_ptr) != ended.as_ref().map(Arc::as_ptr) {
            return Ok(());
        }
        tracing::debug!(server = %self.peer.server, "the server has ended the session; opening a new one");
        let renewed = self.reopen(writer).await;
        if let Err(error) = &renewed {
            self.peer.mark_unusable(ConnectionLoss::Failed(format!(
                "it ended the session, and a new one could not be opened: {error}"
            )));
        }
        renewed
    }

    async fn reopen(&self, writer: &ConnectionRequestSerializer) -> Result<(), RequestError> {
        let waiting = self.peer.in_flight.begin(RequestPurpose::Exchange)?;
        let params = initialize_params(writer.version, &self.peer.capabilities);
        let text = writer.request(waiting.id, "initialize", &params);
        let headers = self.headers_of(writer, &MirroredParts::method("initialize"))?;
        let posted = self.post(writer, &waiting, text.into(), headers).await;
        self.peer.in_flight.forget(waiting.id);
        let PostOutcome::Answered(answer) = posted? else {
            return Err(RequestError::Lost("it ended a session that was not open yet".into()));
        };
        let card = read_initialize_result(answer)?;
        if card.version != writer.version {
            let reason = format!("it speaks {} now, no longer {}", card.version, writer.version);
            return Err(RequestError::Lost(reason));
        }
        match self.send(writer, request::notification("notifications/initialized", Map::new())).await {
            Ok(()) | Err(RequestError::Http { .. }) => {}
            Err(error) => return Err(error),
        }
        // The new session may offer different tools.
        self.peer.everything_changed();
        Ok(())
    }

    async fn execute(&self, method: Method, headers: HeaderMap, body: Bytes) -> Result<Response, RequestError> {
        self.endpoint.send(Request { method, headers, body }).await.map_err(|error| not_sent(&self.peer, error))
    }

    fn failed(&self, error: HttpError) -> RequestError {
        failed(&self.peer, error)
    }
}

/// Returns the error of a request without a response. Marks the connection as unusable if later requests would fail as
/// well.
pub(in crate::mcp::client) fn not_sent(peer: &UpstreamConnectionState, error: SendError) -> RequestError {
    match error {
        SendError::Http(error) => failed(peer, error),
        SendError::NoCredentials(reason) => {
            peer.mark_unusable(ConnectionLoss::Unauthorized(reason.clone()));
            RequestError::Unauthorized(reason)
        }
        // Other requests still succeed over this connection.
        SendError::InsufficientScope(reason) => RequestError::Unauthorized(reason),
    }
}

/// Returns the error of a request without a complete response. Marks the connection as unusable if the server cannot be
/// reached.
pub(in crate::mcp::client) fn failed(peer: &UpstreamConnectionState, error: HttpError) -> RequestError {
    let text = shown(&with_causes(&error), 300);
    match error {
        HttpError::Address(_) | HttpError::Unreachable(_) | HttpError::NotPublic(_) | HttpError::Certificates(_) => {
            peer.mark_unusable(ConnectionLoss::Failed(text.clone()));
            RequestError::Unreachable(text)
        }
        HttpError::Broken(_) => RequestError::Lost(text),
        HttpError::TooLong { limit } => RequestError::Malformed(format!("it sent a body of more than {limit} bytes")),
        HttpError::Event(_) => RequestError::Malformed(text),
    }
}

#[async_trait]
impl Transport for HttpTransport {
    fn peer(&self) -> &Arc<UpstreamConnectionState> {
        &self.peer
    }

    fn agree_on(&self, version: ProtocolVersion) {
        // The version is negotiated once per connection.
        let _ = self.version.set(version);
    }

    fn mirrors_parameters(&self) -> bool {
        true
    }

    fn isolates_calls(&self) -> bool {
        true
    }

    fn has_credentials(&self) -> bool {
        self.endpoint.has_credentials()
    }

    async fn request(
        &self,
        writer: &ConnectionRequestSerializer,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<RawResponse, RequestError> {
        let request = self.begin(RequestPurpose::Exchange, writer)?;
        // Requests of the handshake are never cancelled.
        if matches!(method, "initialize" | "server/discover") {
            request.finished.get_or_init(|| ());
        }
        let text = writer.request(request.waiting.id, method, params);
        let outcome = self.exchange(writer, &request.waiting, text, &MirroredParts::method(method)).await;
        request.finish(&outcome);
        outcome
    }

    async fn forward(
        &self,
        writer: &ConnectionRequestSerializer,
        forwarded: &ForwardedRequest<'_>,
        mirrored: Option<&ParamHeaders>,
        caller: &dyn Caller,
        idle: Option<Duration>,
    ) -> Result<RawResponse, RequestError> {
        let request = self.begin(forwarded.purpose(), writer)?;
        request.waiting.belongs_to(forwarded.principal);
        let text = writer.forwarded(request.waiting.id, forwarded);
        check_size(&text, self.limit)?;
        let params = match forwarded.params {
            RequestParams::Call { arguments, .. } => mirrored.map(|params| (params, arguments)),
            RequestParams::Members(_) => None,
        };
        let mirrored = MirroredParts { method: forwarded.method, name: forwarded.name, params };
        let exchange = pin!(self.exchange(writer, &request.waiting, text, &mirrored));
        let outcome = relay(self, &request.waiting, caller, idle, exchange).await;
        request.finish(&outcome);
        outcome
    }

    async fn notify(&self, writer: &ConnectionRequestSerializer, method: &str) -> Result<(), RequestError> {
        self.send(writer, request::notification(method, Map::new())).await
    }

    /// Does nothing for a modern server, which sends no requests.
    async fn respond(&self, id: &RequestId, outcome: &Result<Value, RpcError>) {
        let version = self.version.get().copied();
        if version.is_some_and(|version| version.generation() == ProtocolGeneration::Modern) {
            return;
        }
        let headers = self.message_headers(version);
        let sending = self.execute(Method::POST, headers, request::answer(id, outcome).into());
        if let Err(error) = timeout(MESSAGE_TIMEOUT, sending).await.map_err(drop).and_then(|sent| sent.map_err(drop)) {
            tracing::debug!(server = %self.peer.server, %id, ?error, "could not answer a request of the server");
        }
    }

    async fn listen(&self, writer: &ConnectionRequestSerializer) {
        self.keep_listening(writer).await;
    }

    async fn abandon(&self) -> Option<String> {
        self.peer.end("the connection was abandoned");
        None
    }

    /// Ends the session if the server supports it.
    async fn close(&self, grace: Duration) {
        self.peer.end("the connection was closed");
        if let Some(session) = self.session.swap(None) {
            let mut headers = self.headers.clone();
            headers.remove(headers::PROTOCOL_VERSION);
            headers.insert(headers::SESSION_ID, session.id.clone());
            let sending = self.execute(Method::DELETE, headers, Bytes::new());
            // The request is optional: the server ends the session at some point by itself.
            let _ = timeout(grace.min(MESSAGE_TIMEOUT), sending).await;
        }
    }
}

impl RequestGuard<'_> {
    /// Marks the request as finished, unless it timed out and must be cancelled.
    fn finish(&self, outcome: &Result<RawResponse, RequestError>) {
        if !matches!(outcome, Err(RequestError::Late(_))) {
            self.finished.get_or_init(|| ());
        }
    }
}

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        let in_flight = &self.transport.peer.in_flight;
        if self.finished.get().is_some() {
            in_flight.forget(self.waiting.id);
            return;
        }
        in_flight.cancel(self.waiting.id);
        // For a modern server the end of the stream is the cancellation.
        if self.generation == ProtocolGeneration::Modern {
            return;
        }
        let transport = self.transport;
        let headers = transport.message_headers(transport.version.get().copied());
        let text = request::cancelled(self.waiting.id, "the caller no longer waits");
        let endpoint = transport.endpoint.clone();
        if let Ok(runtime) = Handle::try_current() {
            // The notification runs in the background; nothing depends on it.
            runtime.spawn(async move {
                let sending = endpoint.send(Request { method: Method::POST, headers, body: text.into() });
                drop(timeout(MESSAGE_TIMEOUT, sending).await);
            });
        }
    }
}
