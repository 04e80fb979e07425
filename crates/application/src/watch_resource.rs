//! Watches resources: whoever may read one may hear when it changes.

use crate::{
    context_registry::{
        ContextRegistry,
        answerer::{self, Answerer},
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
    access::Access,
    client_profile::ClientProfile,
    context::request::ContextRequest,
    error_kind::ErrorKind,
    ports::{
        context_provider::ContextProvider,
        tool_provider::{CallContext, CallOutcome, ProviderError, ToolProvider},
    },
    principal::Principal,
    scope::Scope,
    tool::Tool,
    tool_call::ToolCall,
    tool_execution::RequestKind,
    tool_failure::ToolFailure,
    tool_result::ToolResult,
};

/// So many resources one principal watches at once, over all of its sessions.
const MAX_WATCHED: usize = 256;

/// Asks to watch a resource.
#[derive(Debug, Clone)]
pub struct WatchResourceCommand {
    /// Its URI, as lists give it or a template makes it.
    pub uri: String,
    /// On whose behalf.
    pub scope: Scope,
    /// The name of the client, for the row.
    pub client: String,
}

/// A resource that is watched: [`ContextRegistry::heard`] tells its changes. Dropping it ends that; within a tokio runtime,
/// so that its provider hears of it.
#[must_use]
pub struct Watched {
    watches: Arc<Watches>,
    key: Key,
    principal: Principal,
    provider: Arc<dyn ContextProvider>,
}

/// Carries out [`WatchResourceCommand`].
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

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Watched {
    /// The name of its provider, whose news of it count.
    pub fn provider(&self) -> &str {
        self.provider.name()
    }
}

impl WatchResourceHandler {
    /// Watches the registry's resources, on the path of these calls.
    pub fn new(registry: Arc<ContextRegistry>, calls: Arc<ExecuteToolHandler>) -> Self {
        Self { registry, calls, watches: Arc::default() }
    }

    /// Begins to watch a resource, once that is on record: judged as a read of it. However many watch one resource, its
    /// provider is asked once.
    ///
    /// # Errors
    /// [`ToolFailure`]: `not_found` for what nobody offers or cannot be watched, `permission_denied` for what may not be
    /// read, `rate_limited` for one resource too many.
    pub async fn handle(&self, command: WatchResourceCommand) -> Result<Watched, ToolFailure> {
        let WatchResourceCommand { uri, scope, client } = command;
        let request = ContextRequest::Read { uri: uri.clone() };
        let (read, found) = self.registry.read_by(&request).await;
        let begun = Arc::new(Mutex::new(None));
        let watching = |(tool, provider, own): (Arc<Tool>, Arc<dyn ContextProvider>, String)| {
            let watching = Watching { watches: self.watches.clone(), provider, uri: own, begun: begun.clone() };
            Arc::new(RegisteredTool::new(tool, Arc::new(watching)))
        };
        let answerer = Answerer { registered: found.map(watching), ..read };
        let call = ExecuteToolCommand {
            answered_by: Some(answerer),
            // It is asked nothing, whatever it can answer.
            client: Arc::new(ClientProfile::without_protocol(&client)),
            ..ExecuteToolCommand::new(uri.clone(), json!({"uri": uri, "watch": true})).within(scope)
        };
        self.calls.handle(call).await.map_err(failure)?;
        let watched = begun.lock().unwrap_or_else(PoisonError::into_inner).take();
        watched.ok_or_else(|| ToolFailure::new(ErrorKind::Internal, format!("nobody watches `{uri}` after all")))
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

/// A provider, by its name, with a URI as that provider has it.
type Key = (String, String);

/// Everything that is watched.
#[derive(Default)]
struct Watches {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// The number of those who watch each resource, with what makes them take turns.
    by_key: HashMap<Key, (usize, Arc<tokio::sync::Mutex<Asked>>)>,
    by_principal: HashMap<Principal, usize>,
}

/// The state of asking a provider to tell of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Asked {
    #[default]
    No,
    /// Whoever asked did not stay for the answer: it may tell or not.
    Perhaps,
    Yes,
}

impl Watches {
    fn lock(&self) -> MutexGuard<'_, Table> {
        // Nothing panics while it is held.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn begin(
        self: &Arc<Self>,
        provider: &Arc<dyn ContextProvider>,
        uri: &str,
        principal: &Principal,
    ) -> Result<Watched, ToolFailure> {
        let key = (provider.name().to_owned(), uri.to_owned());
        let (watched, turn) = {
            let mut table = self.lock();
            let of_principal = table.by_principal.entry(principal.clone()).or_default();
            if *of_principal >= MAX_WATCHED {
                let message = format!("{MAX_WATCHED} resources are watched already.");
                return Err(ToolFailure::new(ErrorKind::RateLimited, message).next("Watch one less first."));
            }
            *of_principal += 1;
            let (count, turn) = table.by_key.entry(key.clone()).or_default();
            *count += 1;
            let turn = turn.clone();
            let (principal, provider) = (principal.clone(), provider.clone());
            (Watched { watches: self.clone(), key, principal, provider }, turn)
        };
        let mut asked = turn.lock().await;
        if *asked != Asked::Yes {
            *asked = Asked::Perhaps;
            let subscribed = provider.subscribe(uri).await;
            *asked = if subscribed.is_ok() { Asked::Yes } else { Asked::No };
            subscribed?;
        }
        Ok(watched)
    }

    /// Tells the provider that nobody watches any more, if that is so.
    async fn settle(&self, key: &Key, provider: &dyn ContextProvider) {
        let Some((_, turn)) = self.lock().by_key.get(key).cloned() else { return };
        let mut asked = turn.lock().await;
        let is_watched = || self.lock().by_key.get(key).is_some_and(|(count, _)| *count > 0);
        if *asked != Asked::No && !is_watched() {
            provider.unsubscribe(&key.1).await;
            *asked = Asked::No;
        }
        let mut table = self.lock();
        // Another entry may be there by now, which somebody else settles.
        if table.by_key.get(key).is_some_and(|(count, of)| *count == 0 && Arc::ptr_eq(of, &turn)) {
            table.by_key.remove(key);
        }
    }
}

impl Drop for Watched {
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

/// Watching, as the path of a call sees it: a tool that begins to watch.
struct Watching {
    watches: Arc<Watches>,
    provider: Arc<dyn ContextProvider>,
    /// As the provider has it.
    uri: String,
    /// The watch that was begun, to be found afterwards.
    begun: Arc<Mutex<Option<Watched>>>,
}

#[async_trait]
impl ToolProvider for Watching {
    fn name(&self) -> &str {
        self.provider.name()
    }

    async fn list(&self) -> Result<Vec<Tool>, ProviderError> {
        Ok(Vec::new())
    }

    async fn accesses(&self, call: &ToolCall) -> Result<Vec<Access>, ToolFailure> {
        let asked = ContextRequest::parse(RequestKind::Resource, &call.arguments)?;
        if asked.subject() != call.called_as {
            let message = "A hook put another resource in the place of the one that is to be watched.";
            return Err(ToolFailure::new(ErrorKind::PermissionDenied, message));
        }
        answerer::accesses(&*self.provider, &ContextRequest::Read { uri: self.uri.clone() }).await
    }

    async fn call(&self, call: &ToolCall, _: &CallContext<'_>) -> Result<CallOutcome, ToolFailure> {
        let watched = self.watches.begin(&self.provider, &self.uri, &call.principal).await?;
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) = Some(watched);
        Ok(CallOutcome::Done(ToolResult::of_members(serde_json::Map::new())))
    }
}

#[cfg(test)]
mod tests;
