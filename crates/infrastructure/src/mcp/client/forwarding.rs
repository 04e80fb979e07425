//! Requests that others make, on the connection that is right for them.

use crate::mcp::{
    client::{
        McpServer,
        circuit::is_silence,
        connection::{Connection, Opening},
        floor::Turn,
        may_ask::{MayAsk, declared},
        peer::Loss,
        pool::{Key, Lease},
        repeating,
        request::ForwardedRequest,
        request_error::RequestError,
        supervisor::Current,
        usage::InUse,
    },
    wire::{incoming::Answer, message::RpcError},
};
use futures::FutureExt;
use serde_json::{Map, Value};
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::time::{self, sleep, sleep_until, timeout, timeout_at};
use toolstead_domain::{
    client_profile::{ClientProfile, Generation},
    ports::tool_provider::{CallContext, ProviderState},
};

/// A request on its way, and what became of it so far.
struct Attempt<'a> {
    request: &'a ForwardedRequest<'a>,
    context: &'a CallContext<'a>,
    /// Whether it went to the server, rather than wait for one or for a connection.
    sent: AtomicBool,
}

/// The connection of one request.
enum Way {
    /// That of the server's lists, in turn where that must be.
    Listed(Arc<Connection>, Option<Turn>),
    /// One beside it.
    Pooled(Lease),
}

impl McpServer {
    /// What this server hears of a client's capabilities ([`ForwardedRequest::capabilities`]).
    pub(super) fn capabilities_of(&self, client: &ClientProfile) -> Map<String, Value> {
        declared(&client.capabilities, &self.shared.config.may_ask)
    }

    /// Uses the server until the value is dropped, as a subscription does: it is started if it rests, and goes on running.
    pub(super) fn in_use(&self) -> InUse {
        self.shared.usage.begin()
    }

    /// Makes the request and waits for its answer, within the time that the context and the configuration leave; progress,
    /// logs and questions go to the caller meanwhile. What only reads is asked again after errors that pass. Dropping the
    /// future takes the request back. Beside the answer stands the generation that it is to be read by.
    ///
    /// # Errors
    /// [`RequestError`]: [`Unreachable`](RequestError::Unreachable) also where the server is down or left alone,
    /// [`Unauthorized`](RequestError::Unauthorized) where it wants a login.
    pub(super) async fn forward(
        &self,
        request: &ForwardedRequest<'_>,
        context: &CallContext<'_>,
    ) -> Result<(Answer, Generation), RequestError> {
        let _used = self.shared.usage.begin();
        let time = context.deadline.saturating_duration_since(Instant::now()).min(self.shared.config.timeouts.call);
        let attempt = Attempt { request, context, sent: AtomicBool::new(false) };
        let (began, waited) = (time::Instant::now(), context.caller.waited());
        let mut exchange = pin!(self.exchange(&attempt, began + time));
        loop {
            // The time in which somebody is asked is none of the call.
            let asked = context.caller.waited().saturating_sub(waited);
            match timeout_at(began + time + asked, &mut exchange).await {
                Ok(answered) => return answered,
                Err(_) if context.caller.waited().saturating_sub(waited) > asked => {}
                Err(_) if attempt.sent.load(Ordering::Relaxed) => {
                    let late = RequestError::Late(time);
                    self.note_failure(&late);
                    return Err(late);
                }
                Err(_) if self.shared.current().connection.is_some() => {
                    let seconds = time.as_secs_f32();
                    let reason = format!("no connection to it was free and ready within {seconds} s");
                    return Err(RequestError::Unreachable(reason));
                }
                Err(_) => {
                    return Err(match &self.shared.current().state {
                        ProviderState::Failed { reason } => RequestError::Unreachable(reason.clone()),
                        _ => RequestError::Late(time),
                    });
                }
            }
        }
    }

    /// Asks as often as it makes sense.
    async fn exchange(
        &self,
        attempt: &Attempt<'_>,
        until: time::Instant,
    ) -> Result<(Answer, Generation), RequestError> {
        let mut attempts = 1;
        loop {
            let mut wish = None;
            let error = match self.ask_once(attempt, until, &mut wish).await {
                Ok(answered) => return Ok(answered),
                Err(error) => error,
            };
            let pause = repeating::pause(attempts, wish);
            let may_repeat = repeating::only_reads(attempt.request.method)
                && repeating::may_pass(&error)
                // One that is down from the start is told at once.
                && attempt.sent.load(Ordering::Relaxed)
                && self.shared.circuit.refusal().is_none()
                && attempts < repeating::ATTEMPTS
                && time::Instant::now() + pause < until;
            if !may_repeat {
                return Err(error);
            }
            tracing::debug!(server = %self.shared.config.name, %error, attempts, "asking the MCP server once more");
            sleep(pause).await;
            attempts += 1;
        }
    }

    async fn ask_once(
        &self,
        attempt: &Attempt<'_>,
        until: time::Instant,
        wish: &mut Option<Duration>,
    ) -> Result<(Answer, Generation), RequestError> {
        let pass = self.shared.circuit.admit()?;
        let (current, listed) = self.ready(until).await?;
        let way = self.way(listed, attempt).await?;
        let connection = way.connection()?;
        let answered = self.send(&current, connection, attempt).await;
        let generation = connection.writer.version.generation();
        let answered = match answered {
            Ok(answer) if is_stale(&answer, connection) => {
                // Refused unseen: the headers follow a definition that the server has changed (MCP 2026-07-28,
                // basic/transports/streamable-http, "Client Behavior").
                Box::pin(self.refresh()).await;
                let (current, listed) = self.ready(until).await?;
                let connection = if let Way::Listed(..) = way { &listed } else { connection };
                self.send(&current, connection, attempt).await
            }
            answered => answered,
        };
        // Until here, so that the outcome counts as that of the one who tries.
        let _pass = pass;
        match answered {
            Ok(answer) => {
                way.answered();
                if self.shared.circuit.answered() {
                    self.shared.tell();
                }
                Ok((answer, generation))
            }
            Err(error) => {
                *wish = connection.transport.peer().wishes_pause();
                self.note_failure(&error);
                Err(error)
            }
        }
    }

    async fn send(
        &self,
        current: &Current,
        connection: &Connection,
        attempt: &Attempt<'_>,
    ) -> Result<Answer, RequestError> {
        let Attempt { request, context, sent } = attempt;
        let catalogue = current.catalogue.as_ref();
        let mirrored = request.name.and_then(|name| catalogue?.mirrored.get(name));
        let idle = self.shared.config.timeouts.idle;
        sent.store(true, Ordering::Relaxed);
        connection.transport.forward(&connection.writer, request, mirrored, context.caller, idle).await
    }

    /// The connection for the request: that of the lists where it may be. New servers hear with each request who asks; old
    /// ones heard it when the connection was made.
    async fn way(&self, listed: Arc<Connection>, attempt: &Attempt<'_>) -> Result<Way, RequestError> {
        let config = &self.shared.config;
        let is_old = listed.writer.version.generation() == Generation::Legacy;
        // The extensions of a client are for new servers.
        let answered = declared(attempt.request.capabilities, MayAsk::ALL);
        let asks = is_old && !answered.is_empty();
        let caller = (attempt.context.principal, attempt.context.session);
        let fits = !is_old || answered == listed.transport.peer().capabilities;
        // One client is one principal, and every question is its own.
        let is_one = self.shared.deps.clients.are_one();
        if fits && (is_one || !config.stateful) {
            if is_one || !asks {
                return Ok(Way::Listed(listed, None));
            }
            if let Some(turn) = listed.floor.take(caller, listed.transport.tells_calls_apart()) {
                return Ok(Way::Listed(listed, Some(turn)));
            }
        }
        let key = Key {
            capabilities: if asks { answered } else { Map::new() },
            // Questions may also come on a stream that belongs to no call.
            principal: (config.stateful || asks && listed.transport.tells_calls_apart())
                .then(|| attempt.context.principal.clone()),
            is_stateful: config.stateful,
            is_exclusive: asks && !listed.transport.tells_calls_apart(),
        };
        let opening = match listed.writer.version.generation() {
            Generation::Modern => Opening::Discover,
            Generation::Legacy => Opening::Initialize(listed.writer.version),
        };
        let time = config.timeouts.connect;
        let capabilities = key.capabilities.clone();
        // Made where it is needed: rare, and larger than all the rest of a call.
        let open = move || {
            async move {
                let opening = Connection::open(config, &self.shared.deps, opening, capabilities);
                let opened = timeout(time, opening).await.unwrap_or_else(|_| {
                    Err(Loss::Failed(format!("another connection to it was not ready within {} s", time.as_secs_f32())))
                });
                opened.inspect_err(|loss| {
                    if let Loss::Failed(reason) = loss {
                        self.note_failure(&RequestError::Unreachable(reason.clone()));
                    }
                })
            }
            .boxed()
        };
        self.shared.pool.take(key, caller, open).await.map(Way::Pooled)
    }

    /// Returns the server when it is ready. While it is not connected, waits for one attempt to connect: the one in progress,
    /// or the next one if that begins before `until`.
    pub(super) async fn ready(&self, until: time::Instant) -> Result<(Arc<Current>, Arc<Connection>), RequestError> {
        let current = self.shared.current();
        if let Some(connection) = current.connection.clone() {
            return Ok((current, connection));
        }
        // Boxed: rare, and larger than all the rest of a call.
        Box::pin(self.wait_for_connection(until)).await
    }

    async fn wait_for_connection(&self, until: time::Instant) -> Result<(Arc<Current>, Arc<Connection>), RequestError> {
        let closed = || RequestError::Unreachable("it was closed".into());
        let mut changes = self.shared.changes();
        let mut has_tried = false;
        loop {
            changes.mark_unchanged();
            let current = self.shared.current();
            if let Some(connection) = current.connection.clone() {
                return Ok((current, connection));
            }
            match &current.state {
                ProviderState::Ready | ProviderState::Idle => {}
                ProviderState::Connecting => has_tried = true,
                ProviderState::Failed { reason } => {
                    let Some(retry_from) = current.retry_from.filter(|from| !has_tried && *from < until) else {
                        return Err(RequestError::Unreachable(reason.clone()));
                    };
                    tokio::select! {
                        biased;
                        changed = changes.changed() => match changed {
                            Ok(()) => continue,
                            Err(_) => return Err(closed()),
                        },
                        () = sleep_until(retry_from) => has_tried = self.shared.want(&current),
                    }
                }
                ProviderState::NeedsAuthorization { .. }
                    if !std::mem::replace(&mut has_tried, true) && self.shared.want(&current) => {}
                ProviderState::NeedsAuthorization { reason } => return Err(RequestError::Unauthorized(reason.clone())),
                ProviderState::Closed => return Err(closed()),
            }
            if changes.changed().await.is_err() {
                return Err(closed());
            }
        }
    }

    fn note_failure(&self, error: &RequestError) {
        if self.shared.circuit.failed(error) {
            tracing::warn!(server = %self.shared.config.name, %error, "the MCP server fails again and again; calls are kept from it");
            self.shared.tell();
            if is_silence(error) {
                // Its list says whether it is only slow.
                self.shared.want_list();
            }
        }
    }
}

impl Way {
    fn connection(&self) -> Result<&Arc<Connection>, RequestError> {
        match self {
            Self::Listed(connection, _) => Ok(connection),
            Self::Pooled(lease) => {
                lease.connection().ok_or_else(|| RequestError::Unreachable("its connection is gone".into()))
            }
        }
    }

    fn answered(&self) {
        match self {
            Self::Listed(_, turn) => turn.iter().for_each(Turn::answered),
            Self::Pooled(lease) => lease.answered(),
        }
    }
}

fn is_stale(answer: &Answer, connection: &Connection) -> bool {
    connection.writer.version.generation() == Generation::Modern
        && connection.transport.mirrors_parameters()
        && matches!(answer.result_text(), Ok(Err(error)) if error.code == RpcError::HEADER_MISMATCH)
}
