//! Subscriptions to resources: a caller that may read a resource may be notified of its changes.

use crate::{
    context_registry::{
        ContextRegistry,
        context_request_target::{self, ContextRequestTarget},
    },
    execute_tool::{ExecuteToolCommand, ExecuteToolError, ExecuteToolHandler},
    tool_registry::snapshot::RegisteredTool,
};
use async_trait::async_trait;
use serde_json::json;
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::runtime::Handle;
use toolstead_domain::{
    Access, AuditedRequestKind, CallContext, CallOutcome, ClientProfile, ContextProvider, ContextRequest, Principal,
    ProviderListError, RequestScope, Tool, ToolCall, ToolFailure, ToolProvider, ToolResult, error_kind::ErrorKind,
};

/// Maximum number of resources that one principal watches at once, over all of its sessions.
const MAX_WATCHED: usize = 256;

/// Requests to watch a resource.
#[derive(Debug, Clone)]
pub struct WatchResourceCommand {
    /// URI of the resource, as listed or as built from a template.
    pub uri: String,
    /// Scope of the caller.
    pub scope: RequestScope,
    /// Name of the client, for the audit record.
    pub client: String,
}

/// A watched resource, whose changes are received from [`ContextRegistry::notices`]. Dropping it ends the watch; within
/// a tokio runtime, its provider is notified, too.
#[must_use]
pub struct ResourceWatchGuard {
    watches: Arc<Watches>,
    key: WatchedResourceKey,
    principal: Principal,
    provider: Arc<dyn ContextProvider>,
}

/// Handles a [`WatchResourceCommand`].
pub struct WatchResourceHandler {
    registry: Arc<ContextRegistry>,
    calls: Arc<ExecuteToolHandler>,
    watches: Arc<Watches>,
}

impl fmt::Debug for WatchResourceHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchResourceHandler").finish_non_exhaustive()
    }
}

impl fmt::Debug for ResourceWatchGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceWatchGuard").field("key", &self.key).finish_non_exhaustive()
    }
}

impl ResourceWatchGuard {
    /// Returns the name of the resource's provider. Only notifications of this provider concern the watch.
    pub fn provider(&self) -> &str {
        self.provider.name()
    }
}

impl WatchResourceHandler {
    /// Creates a handler on the resources of `registry`. Each request takes the path of a call of `calls`.
    pub fn new(registry: Arc<ContextRegistry>, calls: Arc<ExecuteToolHandler>) -> Self {
        Self { registry, calls, watches: Arc::default() }
    }

    /// Starts to watch a resource, after the audit record is stored. The request is checked as a read of the resource.
    /// The provider is requested once per resource, however many watches there are.
    ///
    /// # Errors
    /// [`ToolFailure`]: `not_found` if no provider offers the resource or it cannot be watched, `permission_denied` if
    /// it may not be read, `rate_limited` if the principal watches too many resources.
    pub async fn handle(&self, command: WatchResourceCommand) -> Result<ResourceWatchGuard, ToolFailure> {
        let WatchResourceCommand { uri, scope, client } = command;
        let request = ContextRequest::Read { uri: uri.clone() };
        let (read, found) = self.registry.read_by(&request).await;
        let begun = Arc::new(Mutex::new(None));
        let watching = |(tool, provider, own): (Arc<Tool>, Arc<dyn ContextProvider>, String)| {
            let watching =
                WatchPseudoToolProvider { watches: self.watches.clone(), provider, uri: own, begun: begun.clone() };
            Arc::new(RegisteredTool::new(tool, Arc::new(watching)))
        };
        let answerer = ContextRequestTarget { registered: found.map(watching), ..read };
        let call = ExecuteToolCommand {
            answered_by: Some(answerer),
            // The call must not ask the client any question, whatever the client can answer.
            client: Arc::new(ClientProfile::without_protocol(&client)),
            ..ExecuteToolCommand::new(uri.clone(), json!({"uri": uri, "watch": true})).within(scope)
        };
        self.calls.handle(call).await.map_err(failure)?;
        let watched = begun.lock().unwrap_or_else(PoisonError::into_inner).take();
        watched.ok_or_else(|| ToolFailure::new(ErrorKind::Internal, format!("the watch of `{uri}` did not start")))
    }
}

fn failure(error: ExecuteToolError) -> ToolFailure {
    match error {
        ExecuteToolError::NotCallable(failure)
        | ExecuteToolError::Refused(failure)
        | ExecuteToolError::Failed(failure) => failure,
        error => ToolFailure::new(error.kind(), error.to_string()),
    }
}

/// Name of the provider, and the URI as that provider knows it.
type WatchedResourceKey = (String, String);

/// All watches.
#[derive(Default)]
struct Watches {
    table: Mutex<WatchTable>,
}

#[derive(Default)]
struct WatchTable {
    /// The number of watches of each resource, with the lock that serializes requests to its provider.
    by_key: HashMap<WatchedResourceKey, (usize, Arc<tokio::sync::Mutex<SubscriptionState>>)>,
    by_principal: HashMap<Principal, usize>,
}

/// The state of the subscription at the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum SubscriptionState {
    #[default]
    Unsubscribed,
    /// The request was abandoned before its answer: the provider may be subscribed or not.
    Unknown,
    Subscribed,
}

impl Watches {
    fn lock(&self) -> MutexGuard<'_, WatchTable> {
        // Nothing panics while the lock is held.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn begin(
        self: &Arc<Self>,
        provider: &Arc<dyn ContextProvider>,
        uri: &str,
        principal: &Principal,
    ) -> Result<ResourceWatchGuard, ToolFailure> {
        let key = (provider.name().to_owned(), uri.to_owned());
        let (watched, turn) = {
            let mut table = self.lock();
            let of_principal = table.by_principal.entry(principal.clone()).or_default();
            if *of_principal >= MAX_WATCHED {
                let message = format!("{MAX_WATCHED} resources are watched already.");
                return Err(ToolFailure::new(ErrorKind::RateLimited, message).next("End another watch first."));
            }
            *of_principal += 1;
            let (count, turn) = table.by_key.entry(key.clone()).or_default();
            *count += 1;
            let turn = turn.clone();
            let (principal, provider) = (principal.clone(), provider.clone());
            (ResourceWatchGuard { watches: self.clone(), key, principal, provider }, turn)
        };
        let mut asked = turn.lock().await;
        if *asked != SubscriptionState::Subscribed {
            *asked = SubscriptionState::Unknown;
            let subscribed = provider.subscribe(uri).await;
            *asked = if subscribed.is_ok() { SubscriptionState::Subscribed } else { SubscriptionState::Unsubscribed };
            subscribed?;
        }
        Ok(watched)
    }

    /// Unsubscribes at the provider and removes the entry, if no watch of the resource is left.
    async fn settle(&self, key: &WatchedResourceKey, provider: &dyn ContextProvider) {
        let Some((_, turn)) = self.lock().by_key.get(key).cloned() else { return };
        let mut asked = turn.lock().await;
        let is_watched = || self.lock().by_key.get(key).is_some_and(|(count, _)| *count > 0);
        if *asked != SubscriptionState::Unsubscribed && !is_watched() {
            provider.unsubscribe(&key.1).await;
            *asked = SubscriptionState::Unsubscribed;
        }
        let mut table = self.lock();
        // A new entry may exist by now, whose own watches remove it.
        if table.by_key.get(key).is_some_and(|(count, of)| *count == 0 && Arc::ptr_eq(of, &turn)) {
            table.by_key.remove(key);
        }
    }
}

impl Drop for ResourceWatchGuard {
    fn drop(&mut self) {
        let mut table = self.watches.lock();
        if let Some(of_principal) = table.by_principal.get_mut(&self.principal) {
            *of_principal -= 1;
            if *of_principal == 0 {
                table.by_principal.remove(&self.principal);
            }
        }
        let Some((count, _)) = table.by_key.get_mut(&self.key) else { return };
        *count -= 1;
        if *count > 0 {
            return;
        }
        drop(table);
        if let Ok(runtime) = Handle::try_current() {
            let (watches, key, provider) = (self.watches.clone(), self.key.clone(), self.provider.clone());
            runtime.spawn(async move { watches.settle(&key, &*provider).await });
        }
    }
}

/// Adapter to the call path: a tool that starts to watch.
struct WatchPseudoToolProvider {
    watches: Arc<Watches>,
    provider: Arc<dyn ContextProvider>,
    /// URI as the provider knows it.
    uri: String,
    /// The created watch, for the handler.
    begun: Arc<Mutex<Option<ResourceWatchGuard>>>,
}

#[async_trait]
impl ToolProvider for WatchPseudoToolProvider {
    fn name(&self) -> &str {
        self.provider.name()
    }

    async fn list(&self) -> Result<Vec<Tool>, ProviderListError> {
        Ok(Vec::new())
    }

    async fn accesses(&self, call: &ToolCall) -> Result<Vec<Access>, ToolFailure> {
        let asked = ContextRequest::parse(AuditedRequestKind::Resource, &call.arguments)?;
        if asked.subject() != call.called_as {
            let message = "A hook replaced the resource to be watched with another one.";
            return Err(ToolFailure::new(ErrorKind::PermissionDenied, message));
        }
        context_request_target::accesses(&*self.provider, &ContextRequest::Read { uri: self.uri.clone() }).await
    }

    async fn call(&self, call: &ToolCall, _: &CallContext<'_>) -> Result<CallOutcome, ToolFailure> {
        let watched = self.watches.begin(&self.provider, &self.uri, &call.principal).await?;
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) = Some(watched);
        Ok(CallOutcome::Done(ToolResult::of_members(serde_json::Map::new())))
    }
}

#[cfg(test)]
mod tests;
