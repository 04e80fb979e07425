//! Requests on behalf of callers, sent over the connection that fits each of them.

use crate::mcp::{
    client::{
        Upstream,
        connection::{Connection, question_kind::declared, request::ForwardedRequest, request_error::RequestError},
        routing::{
            circuit::is_silence, connection_selection::SelectedConnection, repeating, supervisor::UpstreamSnapshot,
            usage::ServerUseGuard,
        },
    },
    wire::{incoming::RawResponse, message::RpcError},
};
use serde_json::{Map, Value};
use std::{
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};
use tokio::time::{self, sleep, timeout_at};
use toolstead_domain::{CallContext, ClientProfile, ProtocolGeneration, ProviderState};

/// Request in progress.
struct ForwardingState<'a> {
    request: &'a ForwardedRequest<'a>,
    context: &'a CallContext<'a>,
    /// `true` once the request was sent to the server. Before that it waits for the server or a connection.
    sent: AtomicBool,
}

impl Upstream {
    /// Returns the capabilities of a client that are declared to this server ([`ForwardedRequest::capabilities`]).
    pub(in crate::mcp::client) fn capabilities_of(&self, client: &ClientProfile) -> Map<String, Value> {
        declared(&client.capabilities, &self.shared.config.may_ask)
    }

    /// Marks the server as used until the returned value is dropped, as for a subscription. Starts an idle server.
    pub(in crate::mcp::client) fn in_use(&self) -> ServerUseGuard {
        self.shared.usage.begin()
    }

    /// Sends a request and waits for its response, at most until the deadline of the context or the configured timeout.
    /// Progress, logs and questions go to the caller meanwhile. A read-only request is retried after temporary errors.
    /// Dropping the future cancels the request. Returns the response with the generation by which to read it.
    ///
    /// # Errors
    /// Returns [`RequestError`]: [`Unreachable`](RequestError::Unreachable) also if the server is down or its circuit
    /// is open, [`Unauthorized`](RequestError::Unauthorized) if it requires a login.
    pub(in crate::mcp::client) async fn forward(
        &self,
        request: &ForwardedRequest<'_>,
        context: &CallContext<'_>,
    ) -> Result<(RawResponse, ProtocolGeneration), RequestError> {
        let _used = self.shared.usage.begin();
        let time = context.deadline.saturating_duration_since(Instant::now()).min(self.shared.config.timeouts.call);
        let attempt = ForwardingState { request, context, sent: AtomicBool::new(false) };
        let (began, waited) = (time::Instant::now(), context.caller.waited());
        let mut exchange = pin!(self.exchange(&attempt, began + time));
        loop {
            // Time spent waiting for the user does not count.
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

    /// Sends the request, and retries it if that is safe and useful.
    async fn exchange(
        &self,
        attempt: &ForwardingState<'_>,
        until: time::Instant,
    ) -> Result<(RawResponse, ProtocolGeneration), RequestError> {
        let mut requested_pause = None;
        match self.ask_once(attempt, until, &mut requested_pause).await {
            Err(error) if repeating::only_reads(attempt.request.method) => {
                // Boxed, because it is rare and as large as the first attempt.
                Box::pin(self.repeat(attempt, until, error, requested_pause)).await
            }
            answered => answered,
        }
    }

    /// Retries a request while its error is temporary and there is time; returns the last error otherwise. Does not
    /// retry a request that was never sent.
    async fn repeat(
        &self,
        attempt: &ForwardingState<'_>,
        until: time::Instant,
        mut error: RequestError,
        mut requested_pause: Option<Duration>,
    ) -> Result<(RawResponse, ProtocolGeneration), RequestError> {
        let mut attempts = 1;
        loop {
            let pause = repeating::pause(attempts, requested_pause);
            let may_repeat = repeating::may_pass(&error)
                // A server that was down from the start is reported at once.
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
            requested_pause = None;
            error = match self.ask_once(attempt, until, &mut requested_pause).await {
                Ok(answered) => return Ok(answered),
                Err(error) => error,
            };
        }
    }

    async fn ask_once(
        &self,
        attempt: &ForwardingState<'_>,
        until: time::Instant,
        requested_pause: &mut Option<Duration>,
    ) -> Result<(RawResponse, ProtocolGeneration), RequestError> {
        // Held until the end, so that the outcome counts as the outcome of the trial.
        let _pass = self.shared.circuit.admit()?;
        let (current, catalogue_connection) = self.ready(until).await?;
        let selected =
            self.select_connection(catalogue_connection, attempt.request.capabilities, attempt.context).await?;
        let connection = selected.connection()?;
        let generation = connection.writer.version.generation();
        let answered = match self.send(&current, connection, attempt).await {
            Ok(answer) if is_stale(&answer, connection) => {
                Box::pin(self.send_after_refresh(&selected, attempt, until)).await
            }
            answered => answered,
        };
        match answered {
            Ok(answer) => {
                selected.answered();
                if self.shared.circuit.answered() {
                    self.shared.notify_changed();
                }
                Ok((answer, generation))
            }
            Err(error) => {
                *requested_pause = connection.transport.peer().requested_pause();
                self.note_failure(&error);
                Err(error)
            }
        }
    }

    /// Refreshes the tools and resends a request that the server rejected unprocessed, because its headers were based
    /// on an outdated tool definition (MCP 2026-07-28, basic/transports/streamable-http, "Client Behavior").
    async fn send_after_refresh(
        &self,
        selected: &SelectedConnection,
        attempt: &ForwardingState<'_>,
        until: time::Instant,
    ) -> Result<RawResponse, RequestError> {
        self.refresh().await;
        let (current, catalogue_connection) = self.ready(until).await?;
        let connection = match selected {
            SelectedConnection::Catalogue(..) => &catalogue_connection,
            SelectedConnection::Pooled(_) => selected.connection()?,
        };
        self.send(&current, connection, attempt).await
    }

    async fn send(
        &self,
        current: &UpstreamSnapshot,
        connection: &Connection,
        attempt: &ForwardingState<'_>,
    ) -> Result<RawResponse, RequestError> {
        let ForwardingState { request, context, sent } = attempt;
        let catalogue = current.catalogue.as_ref();
        let mirrored = request.name.and_then(|name| catalogue?.mirrored.get(name));
        let idle = self.shared.config.timeouts.idle;
        sent.store(true, Ordering::Relaxed);
        connection.transport.forward(&connection.writer, request, mirrored, context.caller, idle).await
    }

    pub(in crate::mcp::client) fn note_failure(&self, error: &RequestError) {
        if self.shared.circuit.failed(error) {
            tracing::warn!(server = %self.shared.config.name, %error, "the MCP server keeps failing; calls are rejected");
            self.shared.notify_changed();
            if is_silence(error) {
                // A listing shows whether the server is only slow.
                self.shared.request_list();
            }
        }
    }
}

fn is_stale(answer: &RawResponse, connection: &Connection) -> bool {
    connection.writer.version.generation() == ProtocolGeneration::Modern
        && connection.transport.mirrors_parameters()
        && matches!(answer.result_text(), Ok(Err(error)) if error.code == RpcError::HEADER_MISMATCH)
}
