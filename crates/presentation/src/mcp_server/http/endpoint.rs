//! What comes in over HTTP, and which rules it follows.

mod legacy;
mod modern;

use super::{
    authenticator::Authenticated,
    connections::Connection,
    cross_origin,
    event_feed::event_feed,
    gate::Gate,
    mirrored_headers::MirroredHeaders,
    negotiation::{Accept, is_json},
    refusal_log::RefusalLog,
    request_body::{self, RequestBody},
    response::{Body, accepted, json, live_events, method_not_allowed, text},
    sessions::{Ended, Sessions},
    settings::HttpSettings,
    stateless_sessions::StatelessSessions,
};
use crate::mcp_server::{
    McpServer,
    client_caller::Outlet,
    protocol_error::{invalid_request, overloaded, unsupported_version},
    request_meta::RequestMeta,
};
use http::{HeaderMap, Method, Request, Response, StatusCode, request::Parts};
use serde_json::{Map, Value};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    sync::{Notify, Semaphore},
    time::{Interval, MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;
use toolstead_domain::{
    client_profile::{Generation, ProtocolVersion},
    error_kind::ErrorKind,
    ports::tool_provider::ProviderState,
};
use toolstead_infrastructure::mcp::wire::{
    headers,
    message::{Id, Message, RpcError, error_response},
};

/// How often sessions are looked through for idle ones.
const BETWEEN_SWEEPS: Duration = Duration::from_secs(30);

/// Everything that all requests share.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) server: McpServer,
    gate: Gate,
    mirrored: MirroredHeaders,
    sessions: Sessions,
    stateless: Arc<StatelessSessions>,
    settings: HttpSettings,
    room: Arc<Semaphore>,
    refusals: RefusalLog,
    /// Given when streams that never end by themselves are to end.
    ending: CancellationToken,
    draining: AtomicBool,
}

/// A request of either generation, taken apart as far as both go.
struct RpcRequest {
    id: Id,
    method: String,
    params: Map<String, Value>,
    meta: RequestMeta,
}

impl Endpoint {
    /// The endpoint of a server at this port; without one it is mounted in somebody else's server.
    pub(super) fn new(server: McpServer, settings: HttpSettings, port: Option<u16>) -> Self {
        let ending = CancellationToken::new();
        let app = server.app.clone();
        let ended = move || -> Ended {
            let app = app.clone();
            Box::new(move |principal, session| {
                let (app, principal, session) = (app.clone(), principal.clone(), session.clone());
                tokio::spawn(async move { app.session_ended(&principal, &session).await });
            })
        };
        Self {
            gate: Gate::new(&settings, port),
            mirrored: MirroredHeaders::new(server.app.registry.clone()),
            sessions: Sessions::new(&settings, ending.clone(), ended()),
            stateless: StatelessSessions::new(&settings, ended()),
            room: Arc::new(Semaphore::new(settings.max_in_flight)),
            refusals: RefusalLog::default(),
            ending,
            draining: AtomicBool::new(false),
            server,
            settings,
        }
    }

    /// Answers one HTTP request. Without a connection of ours it is one of MCP, wherever that is mounted.
    pub(super) async fn answer(
        self: Arc<Self>,
        request: Request<impl RequestBody>,
        connection: Option<&Connection>,
    ) -> Response<Body> {
        let (head, body) = request.into_parts();
        let Some(origin) = self.gate.page(&head) else { return self.route(&head, body, connection).await };
        let mut response = match cross_origin::is_preflight(&head) {
            true => cross_origin::preflight(&head.headers),
            false => self.route(&head, body, connection).await,
        };
        cross_origin::share(&mut response, origin);
        response
    }

    async fn route(
        self: Arc<Self>,
        head: &Parts,
        body: impl RequestBody,
        connection: Option<&Connection>,
    ) -> Response<Body> {
        let Some(own) = connection else { return self.mcp(head, body, None).await };
        match head.uri.path() {
            "/mcp" => self.mcp(head, body, Some(own)).await,
            "/events" => self.events(head, own).await,
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
            _ => text(StatusCode::NOT_FOUND, "there is nothing here\n"),
        }
    }

    /// Refuses new requests from here on and ends the streams that never end by themselves. Requests that help an open
    /// call to its end are accepted until all calls are [ended](toolstead_application::open_calls::OpenCalls::end).
    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
        self.ending.cancel();
    }

    /// Forgets sessions that nobody used for long.
    pub(super) fn expire_sessions(&self) {
        let now = Instant::now();
        self.sessions.expire(now);
        self.stateless.expire(now);
        self.refusals.sweep(now);
    }

    /// Returns the number of open sessions, of both generations.
    pub(super) fn sessions(&self) -> usize {
        self.sessions.len() + self.stateless.len()
    }

    /// Given once it takes no new requests.
    pub(super) fn ending(&self) -> &CancellationToken {
        &self.ending
    }

    /// When to look for sessions that nobody used for long.
    pub(super) fn between_sweeps(&self) -> Interval {
        let mut sweep = interval(BETWEEN_SWEEPS.min(self.settings.session_idle.max(Duration::from_millis(1))));
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        sweep
    }

    /// The first required server that cannot be called now, with its state as one word: nothing that it said.
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

    /// Returns `true` if a message with these parameters is refused because the server shuts down. A retry that answers
    /// the questions of a call is not, as long as the call waits.
    fn refuses_request(&self, params: &Map<String, Value>) -> bool {
        self.is_draining() && (!params.contains_key("requestState") || self.server.app.open_calls.is_ended())
    }

    /// What happens from now on, as far as it belongs to the one who asks.
    async fn events(&self, head: &Parts, connection: &Connection) -> Response<Body> {
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

    /// The one that the request comes from; its connection has a place from now on.
    async fn admit(&self, head: &Parts, connection: Option<&Connection>) -> Result<Authenticated, Response<Body>> {
        let admitted = self.gate.admit(head).await;
        if let Some(connection) = connection {
            match &admitted {
                Ok(_) => connection.admitted().await,
                Err(refusal) => self.refusals.refused(connection.address(), &head.headers, refusal.status()),
            }
        }
        admitted
    }

    async fn mcp(
        self: Arc<Self>,
        head: &Parts,
        body: impl RequestBody,
        connection: Option<&Connection>,
    ) -> Response<Body> {
        let holder = match self.admit(head, connection).await {
            Ok(holder) => holder,
            Err(refusal) => return refusal,
        };
        let is_new_stream = self.is_draining() && head.method == Method::GET;
        if is_new_stream || self.server.app.open_calls.is_ended() {
            return shutting_down();
        }
        let endpoint = self.clone();
        match (&head.method, generation_of_header(&head.headers)) {
            // Requests say for themselves which rules they follow.
            (&Method::POST, generation) => endpoint.post(&holder, head, generation, body).await,
            (_, Err(refusal)) => refusal,
            (&Method::GET, Ok(Generation::Legacy)) => self.open_stream(&holder, &head.headers),
            (&Method::DELETE, Ok(Generation::Legacy)) => self.end_session(&holder, &head.headers),
            (&Method::GET | &Method::DELETE, Ok(Generation::Modern)) => method_not_allowed("POST"),
            _ => method_not_allowed("GET, POST, DELETE"),
        }
    }

    async fn post(
        self: Arc<Self>,
        holder: &Authenticated,
        head: &Parts,
        generation: Result<Generation, Response<Body>>,
        body: impl RequestBody,
    ) -> Response<Body> {
        if !is_json(&head.headers) {
            return text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be `application/json`");
        }
        let accept = Accept::of(&head.headers);
        if !accept.json && !accept.events {
            return text(StatusCode::NOT_ACCEPTABLE, "answers are `application/json` or `text/event-stream`");
        }
        let read = request_body::read(body, self.settings.max_body_bytes, self.settings.body_timeout).await;
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(refusal) => return refusal,
        };
        match Message::parse(&bytes) {
            Ok(Message::Request { ref params, .. }) if self.refuses_request(params) => shutting_down(),
            Ok(Message::Request { id, method, mut params }) => {
                // The text of a large message is not kept while it is worked on.
                drop(bytes);
                match RequestMeta::take(&mut params) {
                    Ok(meta) => {
                        let meta = meta.traced(|name| head.headers.get(name)?.to_str().ok());
                        let request = RpcRequest { id, method, params, meta };
                        // Boxed: else each connection has room for one, and each step around it copies it.
                        Box::into_pin(Box::write(Box::new_uninit(), self.request(holder, head, accept, request))).await
                    }
                    Err(error) => refused(&id, &error),
                }
            }
            Ok(Message::Notification { method, params }) => match generation {
                Ok(Generation::Legacy) => self.notification(holder, &head.headers, &method, &params),
                // 2026-07-28 has no notification to a server over HTTP; what an extension sends is of no concern here.
                Ok(Generation::Modern) => accepted(),
                Err(refusal) => refusal,
            },
            Ok(Message::Response { id, outcome }) => match generation {
                Ok(Generation::Legacy) => self.client_response(holder, &head.headers, &id, outcome),
                Ok(Generation::Modern) => text(StatusCode::BAD_REQUEST, "clients of 2026-07-28 send no responses"),
                Err(refusal) => refusal,
            },
            // A client's own error is not sent back to it.
            Err(wrong) if wrong.is_response => {
                tracing::debug!(error = %wrong.error, "the client sent a malformed response");
                let message = "the response cannot be taken: it is malformed, or answers no request of this server";
                let error = invalid_request(ErrorKind::InvalidInput, message);
                json(StatusCode::BAD_REQUEST, error_response(None, &error))
            }
            Err(wrong) => json(StatusCode::BAD_REQUEST, error_response(wrong.id.as_ref(), &wrong.error)),
        }
    }

    async fn request(
        self: Arc<Self>,
        holder: &Authenticated,
        head: &Parts,
        accept: Accept,
        request: RpcRequest,
    ) -> Response<Body> {
        let Ok(room) = self.room.clone().try_acquire_owned() else {
            let error = overloaded("the server is busy: try again later");
            return json(StatusCode::SERVICE_UNAVAILABLE, error_response(Some(&request.id), &error));
        };
        match generation_of(&head.headers, &request) {
            Ok(Generation::Legacy) => self.legacy_request(holder, &head.headers, accept, request, room).await,
            Ok(Generation::Modern) => self.modern_request(holder, &head.headers, accept, request, room).await,
            Err(error) => refused(&request.id, &error),
        }
    }
}

/// By which generation's rules whatever is no request is to be served: by its header alone, without one by the older.
fn generation_of_header(headers: &HeaderMap) -> Result<Generation, Response<Body>> {
    let Some(value) = headers.get(&headers::PROTOCOL_VERSION) else { return Ok(Generation::Legacy) };
    let version = value.to_str().ok().and_then(ProtocolVersion::parse);
    let version = version.ok_or_else(|| text(StatusCode::BAD_REQUEST, "this `MCP-Protocol-Version` is not spoken"))?;
    Ok(version.generation())
}

/// By which generation's rules a request is to be served (MCP 2026-07-28, basic/versioning, "Backward Compatibility"):
/// by the version that it names for itself, else by the header, else by what only one of them knows.
fn generation_of(headers: &HeaderMap, request: &RpcRequest) -> Result<Generation, RpcError> {
    let header = headers.get(&headers::PROTOCOL_VERSION).map(|value| value.to_str().unwrap_or("?"));
    let header = header.map(|text| (text, ProtocolVersion::parse(text)));
    let is_modern = |version: ProtocolVersion| version.generation() == Generation::Modern;
    let named = request.meta.named_version().map(ProtocolVersion::parse);
    match (named, header) {
        (Some(named), _) if named.is_none_or(is_modern) => Ok(Generation::Modern),
        (_, Some((_, Some(version)))) if is_modern(version) => Ok(Generation::Modern),
        (_, Some((text, None))) => Err(unsupported_version(text)),
        (None, _) if matches!(request.method.as_str(), "server/discover" | "subscriptions/listen") => {
            Ok(Generation::Modern)
        }
        _ => Ok(Generation::Legacy),
    }
}

/// 503, for what comes during a shutdown.
fn shutting_down() -> Response<Body> {
    text(StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down")
}

/// 400, with the error.
fn refused(id: &Id, error: &RpcError) -> Response<Body> {
    json(StatusCode::BAD_REQUEST, error_response(Some(id), error))
}

/// Where a call's notifications go.
fn outlet(accept: Accept) -> Outlet {
    if accept.events { Outlet::Response(Notify::new()) } else { Outlet::Nowhere }
}
