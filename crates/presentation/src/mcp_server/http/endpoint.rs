//! Endpoint of the HTTP server: dispatch of requests to the rules of their generation of MCP.

mod legacy;
mod modern;

use super::{
    authenticator::AuthenticatedClient,
    call_response::RunningCall,
    connections::ConnectionRegistration,
    cross_origin,
    event_feed::event_feed,
    gate::RequestGate,
    mirrored_headers::MirroredHeaderValidator,
    negotiation::{Accept, is_json},
    refusal_log::RefusalLog,
    request_body::{self, RequestBody},
    request_context::RequestContext,
    response::{Body, accepted, json, live_events, method_not_allowed, text},
    sessions::{SessionEndCallback, Sessions},
    settings::HttpSettings,
    stateless_sessions::ImplicitSessions,
};
use crate::mcp_server::{
    McpServer,
    client_caller::NotificationTarget,
    protocol_error::{invalid_request, overloaded, unsupported_version},
    request_meta::RequestMeta,
};
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, request::Parts};
use serde_json::{Map, Value};
use std::{
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    sync::Notify,
    time::{Interval, MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;
use toolstead_domain::{ProtocolGeneration, ProtocolVersion, ProviderState, error_kind::ErrorKind};
use toolstead_infrastructure::mcp::wire::{
    client_message::{ClientMessage, ToolCallParams},
    headers,
    message::{MalformedMessage, RequestId, RpcError, RpcMessage, error_response},
};

/// Maximum interval between checks for idle sessions.
const BETWEEN_SWEEPS: Duration = Duration::from_secs(30);

/// State shared by all requests.
#[derive(Debug)]
pub(super) struct EndpointState {
    pub(super) server: McpServer,
    gate: RequestGate,
    mirrored: MirroredHeaderValidator,
    sessions: Sessions,
    stateless: Arc<ImplicitSessions>,
    settings: HttpSettings,
    /// Number of running requests.
    running: AtomicUsize,
    refusals: RefusalLog,
    /// Cancelled when streams without an end of their own are to end.
    ending: CancellationToken,
    draining: AtomicBool,
}

/// Handle of the endpoint per connection. A request clones only this handle, so connections share no reference count.
#[derive(Debug)]
pub(super) struct EndpointHandle(Arc<EndpointState>);

impl Deref for EndpointHandle {
    type Target = EndpointState;

    fn deref(&self) -> &EndpointState {
        &self.0
    }
}

/// Permit to run a request. Dropping it admits another one.
struct RequestPermit(Arc<EndpointHandle>);

impl Deref for RequestPermit {
    type Target = EndpointState;

    fn deref(&self) -> &EndpointState {
        &self.0
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Request of either generation, with the members that both share.
struct RpcRequest {
    id: RequestId,
    content: RpcMethodParams,
    meta: RequestMeta,
}

enum RpcMethodParams {
    ToolCall { tool: String, arguments: Value, rest: Vec<(String, Value)> },
    Other { method: String, params: Map<String, Value> },
}

/// Reply to a request.
enum PendingReply {
    Now(Response<Body>),
    /// Response to a list, watch or subscription, which has to be awaited. Boxed: large, and every connection would
    /// reserve memory for it.
    Later(BoxFuture<'static, Response<Body>>),
    Call(RunningCall),
}

impl RpcMethodParams {
    fn method(&self) -> &str {
        match self {
            Self::ToolCall { .. } => "tools/call",
            Self::Other { method, .. } => method,
        }
    }

    /// Returns `true` if the request resumes a parked call.
    fn is_retry(&self) -> bool {
        matches!(self, Self::Other { params, .. } if params.contains_key("requestState"))
    }
}

impl EndpointState {
    /// Creates the endpoint of a server at this port, or one that is mounted in another server.
    pub(super) fn new(server: McpServer, settings: HttpSettings, port: Option<u16>) -> Self {
        let ending = CancellationToken::new();
        let app = server.app.clone();
        let ended = move || -> SessionEndCallback {
            let app = app.clone();
            Box::new(move |principal, session| {
                let (app, principal, session) = (app.clone(), principal.clone(), session.clone());
                tokio::spawn(async move { app.session_ended(&principal, &session).await });
            })
        };
        Self {
            gate: RequestGate::new(&settings, port),
            mirrored: MirroredHeaderValidator::new(server.app.registry.clone()),
            sessions: Sessions::new(&settings, ending.clone(), ended()),
            stateless: ImplicitSessions::new(&settings, ended()),
            running: AtomicUsize::new(0),
            refusals: RefusalLog::default(),
            ending,
            draining: AtomicBool::new(false),
            server,
            settings,
        }
    }

    /// Starts to refuse new requests, and ends the streams that would otherwise stay open. Requests that an open call
    /// needs to end are accepted until all calls are [ended](toolstead_application::open_calls::OpenCalls::end).
    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
        self.ending.cancel();
    }

    /// Ends idle sessions, and sweeps the log of refusals.
    pub(super) fn expire_sessions(&self) {
        let now = Instant::now();
        self.sessions.expire(now);
        self.stateless.expire(now);
        self.refusals.sweep(now);
    }

    /// Returns the number of open sessions of both generations.
    pub(super) fn sessions(&self) -> usize {
        self.sessions.len() + self.stateless.len()
    }

    /// Returns the token that is cancelled once new requests are refused.
    pub(super) fn ending(&self) -> &CancellationToken {
        &self.ending
    }

    /// Returns a timer for the checks for idle sessions.
    pub(super) fn between_sweeps(&self) -> Interval {
        let mut sweep = interval(BETWEEN_SWEEPS.min(self.settings.session_idle.max(Duration::from_millis(1))));
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        sweep
    }

    /// Returns a message about the first required server that is unavailable; `None` if all are available. Contains its
    /// state as one word and no text of the server.
    fn required_that_is_down(&self) -> Option<String> {
        let required = &self.settings.required_servers;
        if required.is_empty() {
            return None;
        }
        let is_there = |state: &ProviderState| matches!(state, ProviderState::Ready | ProviderState::Idle);
        let providers = self.server.app.registry.providers();
        let down = providers.iter().find(|one| required.contains(&one.name) && !is_there(&one.state))?;
        Some(format!("the MCP server `{}` is required and is {}\n", down.name, down.state.label()))
    }

    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Returns `true` if a request is refused because the server shuts down. A retry that answers the questions of a
    /// parked call is accepted while the call is open.
    fn refuses(&self, request: &RpcMethodParams) -> bool {
        self.is_draining() && (!request.is_retry() || self.server.app.open_calls.is_ended())
    }

    /// Serves `/events`, `/healthz` and `/readyz`; answers 404 for any other path.
    async fn serve_other_path(&self, head: &Parts, connection: &ConnectionRegistration) -> Response<Body> {
        match head.uri.path() {
            "/events" => self.events(head, connection).await,
            "/healthz" => text(StatusCode::OK, "alive\n"),
            "/readyz" if self.is_draining() => text(StatusCode::SERVICE_UNAVAILABLE, "shutting down\n"),
            "/readyz" if !self.server.is_settled() => text(StatusCode::SERVICE_UNAVAILABLE, "starting\n"),
            "/readyz" if let Some(down) = self.required_that_is_down() => text(StatusCode::SERVICE_UNAVAILABLE, down),
            "/readyz" => match self.server.app.execute_tool.can_record().await {
                Ok(()) => match &self.settings.ready_note {
                    Some(note) => text(StatusCode::OK, format!("ready\n{note}\n")),
                    None => text(StatusCode::OK, "ready\n"),
                },
                Err(error) => {
                    tracing::info!(error = &error as &dyn std::error::Error, "not ready");
                    text(StatusCode::SERVICE_UNAVAILABLE, "no call can be recorded\n")
                }
            },
            _ => text(StatusCode::NOT_FOUND, "not found\n"),
        }
    }

    /// Streams future events of the requesting principal.
    async fn events(&self, head: &Parts, connection: &ConnectionRegistration) -> Response<Body> {
        let holder = match self.admit(head, Some(connection)).await {
            Ok(holder) => holder,
            Err(refusal) => return refusal,
        };
        if head.method != Method::GET {
            return method_not_allowed("GET");
        }
        if self.is_draining() {
            return shutting_down();
        }
        let events = self.server.app.events.subscribe_as(holder.principal.clone());
        live_events(event_feed(events, self.settings.keep_alive, self.ending.clone()))
    }

    /// Authenticates a request. On success, waits until its connection has a permit; a refusal is logged.
    async fn admit(
        &self,
        head: &Parts,
        connection: Option<&ConnectionRegistration>,
    ) -> Result<AuthenticatedClient, Response<Body>> {
        let admitted = self.gate.admit(head).await;
        if let Some(connection) = connection {
            match &admitted {
                Ok(_) => connection.admitted().await,
                Err(refusal) => self.refusals.refused(connection.address(), &head.headers, refusal.status()),
            }
        }
        admitted
    }

    /// Serves methods other than POST: GET opens the stream of a session, and DELETE ends a session. Refuses all
    /// others.
    fn serve_other_method(&self, method: &Method, context: &RequestContext) -> Response<Body> {
        match (method, generation_of_header(&context.headers)) {
            (_, Err(refusal)) => refusal,
            (&Method::GET, Ok(ProtocolGeneration::Legacy)) => self.open_stream(context),
            (&Method::DELETE, Ok(ProtocolGeneration::Legacy)) => self.end_session(context),
            (&Method::GET | &Method::DELETE, Ok(ProtocolGeneration::Modern)) => method_not_allowed("POST"),
            _ => method_not_allowed("GET, POST, DELETE"),
        }
    }

    fn notification(&self, context: &RequestContext, method: &str, params: &Map<String, Value>) -> Response<Body> {
        match generation_of_header(&context.headers) {
            Ok(ProtocolGeneration::Legacy) => self.legacy_notification(context, method, params),
            // 2026-07-28 has no notifications to a server over HTTP. Those of extensions are ignored.
            Ok(ProtocolGeneration::Modern) => accepted(),
            Err(refusal) => refusal,
        }
    }

    fn client_response(
        &self,
        context: &RequestContext,
        id: &RequestId,
        outcome: Result<Value, RpcError>,
    ) -> Response<Body> {
        match generation_of_header(&context.headers) {
            Ok(ProtocolGeneration::Legacy) => self.legacy_response(context, id, outcome),
            Ok(ProtocolGeneration::Modern) => text(StatusCode::BAD_REQUEST, "clients of 2026-07-28 send no responses"),
            Err(refusal) => refusal,
        }
    }
}

impl EndpointHandle {
    pub(super) fn new(endpoint: Arc<EndpointState>) -> Self {
        Self(endpoint)
    }

    /// Answers one HTTP request. `connection` is `None` if the endpoint is mounted in another server. Work that
    /// continues without its client does not retain the connection, so that its place is free.
    pub(super) async fn answer(
        self: Arc<Self>,
        request: Request<impl RequestBody>,
        connection: Option<Arc<ConnectionRegistration>>,
    ) -> Response<Body> {
        let (head, body) = request.into_parts();
        match self.gate.page(&head) {
            None => self.route(head, body, connection).await,
            // Boxed: few clients are web pages.
            Some(origin) => Box::pin(self.answer_page(origin, head, body, connection)).await,
        }
    }

    async fn answer_page(
        self: Arc<Self>,
        origin: HeaderValue,
        head: Parts,
        body: impl RequestBody,
        connection: Option<Arc<ConnectionRegistration>>,
    ) -> Response<Body> {
        let mut response = match cross_origin::is_preflight(&head) {
            true => cross_origin::preflight(&head.headers),
            false => self.route(head, body, connection).await,
        };
        cross_origin::share(&mut response, origin);
        response
    }

    /// Serves MCP at `/mcp`, views at `/mcp/NAME`, and other paths; MCP at every path if the endpoint is mounted in
    /// another server.
    async fn route(
        self: Arc<Self>,
        head: Parts,
        body: impl RequestBody,
        connection: Option<Arc<ConnectionRegistration>>,
    ) -> Response<Body> {
        let mut view_name = None;
        if let Some(connection) = connection.as_deref().filter(|_| head.uri.path() != "/mcp") {
            view_name = head.uri.path().strip_prefix("/mcp/").map(str::to_owned);
            if view_name.is_none() {
                return Box::pin(self.serve_other_path(&head, connection)).await;
            }
        }
        let holder = match self.admit(&head, connection.as_deref()).await {
            Ok(holder) => holder,
            Err(refusal) => return refusal,
        };
        let Parts { method, headers, .. } = head;
        let is_new_stream = self.is_draining() && method == Method::GET;
        if is_new_stream || self.server.app.open_calls.is_ended() {
            return shutting_down();
        }
        let accept = Accept::of(&headers);
        let view = match view_name.as_deref().map(|name| self.server.app.view(name)) {
            None => self.settings.view.clone(),
            Some(Ok(view)) => Some(view.clone()),
            Some(Err(error)) => return text(StatusCode::NOT_FOUND, format!("{error}\n")),
        };
        let context = RequestContext { holder, headers, accept, view };
        if method != Method::POST {
            return self.serve_other_method(&method, &context);
        }
        if !is_json(&context.headers) {
            return text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be `application/json`");
        }
        if !accept.json && !accept.events {
            return text(StatusCode::NOT_ACCEPTABLE, "answers are `application/json` or `text/event-stream`");
        }
        let (limit, time) = (self.settings.max_body_bytes, self.settings.body_timeout);
        let parsed = match request_body::read(body, limit, time).await {
            // The text of a large message is dropped before its request runs.
            Ok(bytes) => ClientMessage::parse(&bytes),
            Err(refusal) => return refusal,
        };
        match self.reply(context, parsed) {
            PendingReply::Now(response) => response,
            PendingReply::Later(response) => response.await,
            PendingReply::Call(call) => call.respond(self.settings.keep_alive).await,
        }
    }

    fn reply(
        self: &Arc<Self>,
        context: RequestContext,
        parsed: Result<ClientMessage, MalformedMessage>,
    ) -> PendingReply {
        let (id, content, meta) = match parsed {
            Ok(ClientMessage::ToolCall { id, params: ToolCallParams { tool, arguments, meta, rest } }) => (
                id,
                RpcMethodParams::ToolCall { tool, arguments, rest },
                Ok(meta.map(RequestMeta::of).unwrap_or_default()),
            ),
            Ok(ClientMessage::Other(RpcMessage::Request { id, method, mut params })) => {
                let meta = RequestMeta::take(&mut params);
                (id, RpcMethodParams::Other { method, params }, meta)
            }
            Ok(ClientMessage::Other(RpcMessage::Notification { method, params })) => {
                return PendingReply::Now(self.notification(&context, &method, &params));
            }
            Ok(ClientMessage::Other(RpcMessage::Response { id, outcome })) => {
                return PendingReply::Now(self.client_response(&context, &id, outcome));
            }
            Err(wrong) => return PendingReply::Now(malformed(&wrong)),
        };
        if self.refuses(&content) {
            return PendingReply::Now(shutting_down());
        }
        let meta = match meta {
            Ok(meta) => meta.traced(|name| context.headers.get(name)?.to_str().ok()),
            Err(error) => return PendingReply::Now(refused(&id, &error)),
        };
        let Some(permit) = self.permit() else {
            let error = overloaded("the server is busy: try again later");
            return PendingReply::Now(json(StatusCode::SERVICE_UNAVAILABLE, error_response(Some(&id), &error)));
        };
        let request = RpcRequest { id, content, meta };
        match generation_of(&context.headers, &request) {
            Ok(ProtocolGeneration::Legacy) => permit.legacy_request(context, request),
            Ok(ProtocolGeneration::Modern) => permit.modern_request(context, request),
            Err(error) => PendingReply::Now(refused(&request.id, &error)),
        }
    }

    /// Returns a permit for a request; `None` if the maximum number of requests is running.
    fn permit(self: &Arc<Self>) -> Option<RequestPermit> {
        let permit = (self.running.fetch_add(1, Ordering::Relaxed), RequestPermit(self.clone()));
        (permit.0 < self.settings.max_in_flight).then_some(permit.1)
    }
}

/// Returns the generation of a message other than a request: that of its header, or the older one without a header.
fn generation_of_header(headers: &HeaderMap) -> Result<ProtocolGeneration, Response<Body>> {
    let Some(value) = headers.get(&headers::PROTOCOL_VERSION) else { return Ok(ProtocolGeneration::Legacy) };
    let version = value.to_str().ok().and_then(ProtocolVersion::parse);
    let version = version.ok_or_else(|| text(StatusCode::BAD_REQUEST, "this `MCP-Protocol-Version` is unknown"))?;
    Ok(version.generation())
}

/// Returns the generation of a request (MCP 2026-07-28, basic/versioning, "Backward Compatibility"): that of the
/// version in the request, else that of the header, else the modern one for its specific methods, else the older one.
fn generation_of(headers: &HeaderMap, request: &RpcRequest) -> Result<ProtocolGeneration, RpcError> {
    let header = headers.get(&headers::PROTOCOL_VERSION).map(|value| value.to_str().unwrap_or("?"));
    let header = header.map(|text| (text, ProtocolVersion::parse(text)));
    let is_modern = |version: ProtocolVersion| version.generation() == ProtocolGeneration::Modern;
    let named = request.meta.named_version().map(ProtocolVersion::parse);
    match (named, header) {
        (Some(named), _) if named.is_none_or(is_modern) => Ok(ProtocolGeneration::Modern),
        (_, Some((_, Some(version)))) if is_modern(version) => Ok(ProtocolGeneration::Modern),
        (_, Some((text, None))) => Err(unsupported_version(text)),
        (None, _) if matches!(request.content.method(), "server/discover" | "subscriptions/listen") => {
            Ok(ProtocolGeneration::Modern)
        }
        _ => Ok(ProtocolGeneration::Legacy),
    }
}

/// Returns 503, during a shutdown.
fn shutting_down() -> Response<Body> {
    text(StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down")
}

/// Returns 400, for a message that cannot be parsed.
fn malformed(wrong: &MalformedMessage) -> Response<Body> {
    if !wrong.is_response {
        return json(StatusCode::BAD_REQUEST, error_response(wrong.id.as_ref(), &wrong.error));
    }
    // A client's own error is not returned to it.
    tracing::debug!(error = %wrong.error, "the client sent a malformed response");
    let message = "the response cannot be taken: it is malformed, or answers no request of this server";
    let error = invalid_request(ErrorKind::InvalidInput, message);
    json(StatusCode::BAD_REQUEST, error_response(None, &error))
}

/// Returns 400 with the error.
fn refused(id: &RequestId, error: &RpcError) -> Response<Body> {
    json(StatusCode::BAD_REQUEST, error_response(Some(id), error))
}

/// Returns the destination of a call's notifications.
fn outlet(accept: Accept) -> NotificationTarget {
    if accept.events { NotificationTarget::Response(Notify::new()) } else { NotificationTarget::Nowhere }
}
