//! Resources and prompts of a server, and its notifications outside of requests.

pub(super) mod background_work;
mod lists;
pub(super) mod notice_queue;
mod outcome;
pub(super) mod state;

use crate::mcp::{
    client::{
        Upstream,
        calls::outcome::CallTarget,
        config::ToolNaming,
        connection::{
            Connection,
            request::{ForwardedRequest, RequestParams},
            request_error::RequestError,
        },
    },
    wire::message::RpcError,
};
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, timeout};
use toolstead_domain::{
    Access, AuditedRequestKind, CallContext, CallOutcome, CompletionReference, CompletionRequest, ContextCatalogue,
    ContextNotice, ContextProvider, ContextRequest, LogLevel, ProtocolGeneration, ProviderListError, ProviderState,
    ServerName, ServerPinningSettings, ToolCall, ToolFailure, ToolResult, error_kind::ErrorKind,
};

/// Maximum time to wait for a modern server to acknowledge a subscription.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(2);
/// Timeout of a request to a legacy server on behalf of all clients.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

impl Upstream {
    async fn ask(
        &self,
        request: &ContextRequest,
        meta: &Map<String, Value>,
        context: &CallContext<'_>,
    ) -> Result<CallOutcome, ToolFailure> {
        let offered = self.shared.context_state.offered();
        let own_name = |name: &str| offered.prompts.get(name).cloned().unwrap_or_else(|| name.to_owned());
        let (method, name, mut params) = match request {
            ContextRequest::Read { uri } => ("resources/read", Some(uri.clone()), json!({"uri": uri})),
            ContextRequest::Get { name, arguments } => {
                let name = own_name(name);
                let mut params = json!({"name": name});
                if !arguments.is_empty() {
                    params["arguments"] = json!(arguments);
                }
                ("prompts/get", Some(name), params)
            }
            ContextRequest::Complete(CompletionRequest { of, argument, value, known }) => {
                let of = match of {
                    CompletionReference::Prompt(name) => json!({"type": "ref/prompt", "name": own_name(name)}),
                    CompletionReference::Template(uri) => json!({"type": "ref/resource", "uri": uri}),
                };
                let mut params = json!({"ref": of, "argument": {"name": argument, "value": value}});
                if !known.is_empty() {
                    params["context"] = json!({"arguments": known});
                }
                ("completion/complete", None, params)
            }
        };
        let mut members = params.as_object_mut().map(std::mem::take).unwrap_or_default();
        for (name, value) in context.forwarded.params {
            members.entry(name.clone()).or_insert_with(|| value.clone());
        }
        let forwarded = ForwardedRequest {
            method,
            name: name.as_deref(),
            params: RequestParams::Members(&members),
            capabilities: &self.capabilities_of(context.client),
            meta,
            answers: context.answers,
            log_level: context.client.log_level,
            progress: context.caller.wants_progress(),
            principal: Some(context.principal),
        };
        let called = self.call_target(request.subject());
        let answered = self.forward(&forwarded, context).await;
        let (answer, generation) =
            answered.map_err(|error| self.with_sign_in(called.failure(error), context.principal))?;
        called.members(answer, generation, request.kind())
    }

    fn call_target<'a>(&'a self, subject: &'a str) -> CallTarget<'a> {
        CallTarget { tool: subject, server: &self.shared.config.name, promises_structure: false }
    }

    /// Returns the pooled connection for callers without capabilities; `None` if there is none, or if it takes longer
    /// than [`ACKNOWLEDGED_WITHIN`] to open. A connection that opens later subscribes to the resources by itself.
    async fn plain(&self) -> Option<Arc<Connection>> {
        timeout(ACKNOWLEDGED_WITHIN, self.shared.pool.plain()).await.ok().flatten()
    }

    /// Sends a request about a resource to the server, and waits for the response for at most [`ANSWERED_WITHIN`].
    async fn about(&self, connection: &Connection, method: &str, uri: &str) -> Result<(), RequestError> {
        let params = Map::from_iter([("uri".to_owned(), uri.into())]);
        let request = connection.transport.request(&connection.writer, method, &params);
        let answer = timeout(ANSWERED_WITHIN, request).await.map_err(|_| RequestError::Late(ANSWERED_WITHIN))??;
        match answer.result_text() {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(RequestError::Rpc(error)),
            Err(malformed) => Err(RequestError::Malformed(malformed.to_string())),
        }
    }
}

#[async_trait]
impl ContextProvider for Upstream {
    fn name(&self) -> &str {
        self.shared.config.name.as_str()
    }

    fn server(&self) -> Option<&ServerName> {
        Some(&self.shared.config.name)
    }

    fn has_own_names(&self) -> bool {
        self.shared.config.names == ToolNaming::Plain
    }

    fn pinning(&self) -> Option<ServerPinningSettings> {
        Some(self.pinned_by_configuration())
    }

    fn is_listed(&self) -> bool {
        *self.shared.context_state.listed().borrow()
    }

    /// Returns the last known resources and prompts, or none if they were never listed.
    async fn list(&self) -> Result<ContextCatalogue, ProviderListError> {
        Ok(self.shared.context_state.read_offers().catalogue.clone())
    }

    async fn changed(&self) {
        self.shared.context_state.changed().await;
    }

    async fn settled(&self) {
        let (mut listed, mut changes) = (self.shared.context_state.listed(), self.shared.changes());
        if *listed.borrow_and_update() {
            return;
        }
        // An idle server is started to list them.
        let _used = self.in_use();
        self.shared.request_connection(&self.shared.current());
        loop {
            changes.mark_unchanged();
            let is_down = match &self.shared.current().state {
                ProviderState::Connecting | ProviderState::Ready | ProviderState::Idle => false,
                ProviderState::Failed { .. } | ProviderState::NeedsAuthorization { .. } | ProviderState::Closed => true,
            };
            if is_down || *listed.borrow_and_update() {
                return;
            }
            tokio::select! {
                listed = listed.changed() => if listed.is_err() { return },
                changed = changes.changed() => if changed.is_err() { return },
            }
        }
    }

    fn instructions(&self) -> Option<String> {
        self.shared.context_state.instructions()
    }

    async fn subscribe(&self, uri: &str) -> Result<(), ToolFailure> {
        let called = self.call_target(uri);
        let used = self.in_use();
        let (_, connection) = self.ready(Instant::now()).await.map_err(|error| called.failure(error))?;
        if !connection.card.can("resources", "subscribe") {
            let message = format!("{called} cannot be watched: the server reports no changes.");
            return Err(ToolFailure::new(ErrorKind::NotFound, message).next("Read it again when it is needed."));
        }
        let watched = &self.shared.context_state.subscriptions;
        let version = watched.add(uri);
        let subscribed = match connection.writer.version.generation() {
            ProtocolGeneration::Legacy => self.about(&connection, "resources/subscribe", uri).await,
            ProtocolGeneration::Modern => {
                // A server that never acknowledges is trusted because it declares the capability.
                let _ = timeout(ACKNOWLEDGED_WITHIN, watched.acknowledged(version)).await;
                Ok(())
            }
        };
        watched.keep(uri, used);
        // Calls over the shared pooled connection may change the resource in another process.
        if subscribed.is_ok()
            && let Some(plain) = self.plain().await
            && let Err(error) = self.about(&plain, "resources/subscribe", uri).await
        {
            tracing::debug!(server = %self.shared.config.name, uri, %error, "changes by some calls are not reported");
        }
        subscribed.map_err(|error| {
            watched.remove(uri);
            let is_unknown = matches!(&error, RequestError::Rpc(error) if outcome::is_unknown_resource(error.code));
            let failure = called.failure(error);
            if is_unknown { outcome::not_found(failure) } else { failure }
        })
    }

    async fn unsubscribe(&self, uri: &str) {
        self.shared.context_state.subscriptions.remove(uri);
        let connections = self.shared.current().connection.clone().into_iter().chain(self.plain().await);
        for connection in connections {
            if connection.writer.version.generation() == ProtocolGeneration::Legacy
                && let Err(error) = self.about(&connection, "resources/unsubscribe", uri).await
            {
                tracing::debug!(server = %self.shared.config.name, uri, %error, "could not unsubscribe");
            }
        }
    }

    async fn set_log_level(&self, level: Option<LogLevel>) {
        self.shared.context_state.request_log_level(level);
    }

    async fn notice(&self) -> ContextNotice {
        self.shared.context_state.notices.next().await
    }

    async fn accesses(&self, _: &ContextRequest) -> Result<Vec<Access>, ToolFailure> {
        Ok(Vec::new())
    }

    async fn answer(
        &self,
        request: &ContextRequest,
        context: &CallContext<'_>,
    ) -> Result<Map<String, Value>, ToolFailure> {
        match self.ask(request, &Map::new(), context).await? {
            CallOutcome::Done(result) => Ok(result.into_object()),
            _ => {
                let message = format!("{} needs an answer of the client first.", self.call_target(request.subject()));
                Err(ToolFailure::new(ErrorKind::Unavailable, message))
            }
        }
    }

    async fn respond<'s, 'q, 'c, 'r, 'x>(
        &'s self,
        request: &'q ContextRequest,
        call: &'c ToolCall,
        context: &'r CallContext<'x>,
    ) -> Result<CallOutcome, ToolFailure> {
        let outcome = self.ask(request, &call.meta, context).await;
        match outcome {
            // The server has no completions and never declared them, so this is not the client's error.
            Err(failure)
                if request.kind() == AuditedRequestKind::Completion
                    && !self.declares("completions")
                    && failure.upstream.as_ref().is_some_and(|error| error.code == RpcError::METHOD_NOT_FOUND) =>
            {
                let nothing = json!({"completion": {"values": [], "hasMore": false}});
                let members = nothing.as_object().cloned().unwrap_or_default();
                Ok(CallOutcome::Done(ToolResult::of_members(members)))
            }
            outcome => outcome,
        }
    }
}

impl Upstream {
    /// Returns `true` if the catalogue connection is open and the server declares the capability on it.
    fn declares(&self, capability: &str) -> bool {
        let current = self.shared.current();
        current.connection.as_ref().is_some_and(|listed| listed.card.capabilities.contains_key(capability))
    }
}
