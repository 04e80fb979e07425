//! Requests that others make, on the connection that is right for them.

use crate::mcp::{
    client::{
        McpServer, connection::Connection, may_ask::declared, request::ForwardedRequest, request_error::RequestError,
        supervisor::Current,
    },
    wire::{incoming::Answer, message::RpcError},
};
use serde_json::{Map, Value};
use std::{
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::timeout_at;
use toolstead_domain::{
    client_profile::{ClientProfile, Generation},
    ports::tool_provider::{CallContext, ProviderState},
};

impl McpServer {
    /// What this server hears of a client's capabilities ([`ForwardedRequest::capabilities`]).
    pub(super) fn capabilities_of(&self, client: &ClientProfile) -> Map<String, Value> {
        declared(&client.capabilities, &self.shared.config.may_ask)
    }

    /// Makes the request and waits for its answer, within the time that the context and the configuration leave; progress,
    /// logs and questions go to the caller meanwhile. Dropping the future takes the request back. Beside the answer stands
    /// the generation that it is to be read by.
    ///
    /// # Errors
    /// [`RequestError`]: [`Unreachable`](RequestError::Unreachable) also where the server is down,
    /// [`Unauthorized`](RequestError::Unauthorized) where it wants a login.
    pub(super) async fn forward(
        &self,
        request: &ForwardedRequest<'_>,
        context: &CallContext<'_>,
    ) -> Result<(Answer, Generation), RequestError> {
        let time = self.time_for(context);
        let mut exchange = pin!(self.exchange(request, context));
        let (began, waited) = (tokio::time::Instant::now(), context.caller.waited());
        loop {
            // The time in which somebody is asked is none of the call.
            let asked = context.caller.waited().saturating_sub(waited);
            match timeout_at(began + time + asked, &mut exchange).await {
                Ok(answered) => return answered,
                Err(_) if context.caller.waited().saturating_sub(waited) > asked => {}
                Err(_) => return Err(RequestError::Late(time)),
            }
        }
    }

    async fn exchange(
        &self,
        request: &ForwardedRequest<'_>,
        context: &CallContext<'_>,
    ) -> Result<(Answer, Generation), RequestError> {
        let (current, connection) = self.ready().await?;
        let generation = connection.writer.version.generation();
        let answer = self.send(&current, &connection, request, context).await?;
        let is_stale = generation == Generation::Modern
            && connection.transport.mirrors_parameters()
            && matches!(answer.result_text(), Ok(Err(error)) if error.code == RpcError::HEADER_MISMATCH);
        if !is_stale {
            return Ok((answer, generation));
        }
        // Refused unseen: the headers follow a definition that the server has changed (MCP 2026-07-28,
        // basic/transports/streamable-http, "Client Behavior").
        self.refresh().await;
        let (current, connection) = self.ready().await?;
        let answer = self.send(&current, &connection, request, context).await?;
        Ok((answer, generation))
    }

    async fn send(
        &self,
        current: &Current,
        connection: &Connection,
        request: &ForwardedRequest<'_>,
        context: &CallContext<'_>,
    ) -> Result<Answer, RequestError> {
        let catalogue = current.catalogue.as_ref();
        let mirrored = request.name.and_then(|name| catalogue?.mirrored.get(name));
        let idle = self.shared.config.timeouts.idle;
        connection.transport.forward(&connection.writer, request, mirrored, context.caller, idle).await
    }

    /// The server when it is ready: at once as a rule, else as soon as an attempt that is under way or due has ended.
    pub(super) async fn ready(&self) -> Result<(Arc<Current>, Arc<Connection>), RequestError> {
        let current = self.shared.current();
        if let Some(connection) = current.connection.clone() {
            return Ok((current, connection));
        }
        let closed = || RequestError::Unreachable("it was closed".into());
        let mut changes = self.shared.changes();
        let mut may_want = true;
        loop {
            changes.mark_unchanged();
            let current = self.shared.current();
            if let Some(connection) = current.connection.clone() {
                return Ok((current, connection));
            }
            match &current.state {
                ProviderState::Connecting | ProviderState::Ready => {}
                ProviderState::Failed { .. } | ProviderState::NeedsAuthorization { .. }
                    if std::mem::take(&mut may_want) && self.shared.want(&current) => {}
                ProviderState::Failed { reason } => return Err(RequestError::Unreachable(reason.clone())),
                ProviderState::NeedsAuthorization { reason } => return Err(RequestError::Unauthorized(reason.clone())),
                ProviderState::Closed => return Err(closed()),
            }
            if changes.changed().await.is_err() {
                return Err(closed());
            }
        }
    }

    /// How long a request may take.
    fn time_for(&self, context: &CallContext<'_>) -> Duration {
        context.deadline.saturating_duration_since(Instant::now()).min(self.shared.config.timeouts.call)
    }
}
