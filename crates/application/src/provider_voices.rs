//! The words of providers outside of calls, for those who may use them: guidance for models, and logs.

mod guidance;

use crate::{
    context_registry::{ContextRegistry, Heard},
    permission_book::PermissionBook,
    tool_registry::ToolRegistry,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use toolstead_domain::{
    client_profile::LogLevel, context::notice::ContextNotice, ports::caller::LogMessage, scope::Scope,
};

/// All of them. Whoever may use nothing of a provider hears nothing of it.
pub struct ProviderVoices {
    context: Arc<ContextRegistry>,
    tools: Arc<ToolRegistry>,
    permissions: Arc<PermissionBook>,
    listeners: Mutex<Listeners>,
}

/// The levels that listeners want, by their numbers.
#[derive(Debug, Default)]
struct Listeners {
    levels: BTreeMap<u64, LogLevel>,
    come: u64,
}

/// One who listens to logs that belong to no call. What it wants counts until it is dropped.
#[derive(Debug)]
pub struct LogListener {
    voices: Arc<ProviderVoices>,
    number: u64,
    scope: Scope,
    level: Option<LogLevel>,
}

impl std::fmt::Debug for ProviderVoices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProviderVoices").field("listeners", &*self.lock()).finish_non_exhaustive()
    }
}

impl ProviderVoices {
    /// The voices of the providers of the registries, under the policies of the book.
    pub fn new(context: Arc<ContextRegistry>, tools: Arc<ToolRegistry>, permissions: Arc<PermissionBook>) -> Arc<Self> {
        Arc::new(Self { context, tools, permissions, listeners: Mutex::default() })
    }

    /// The guidance of all providers that the scope may use, each under its name, bounded; `None` where there is none.
    pub fn instructions(&self, scope: &Scope) -> Option<String> {
        let mut given = self.context.instructions();
        given.retain(|(provider, _)| self.may_use(scope, provider));
        given.sort();
        guidance::joined(&given)
    }

    /// Someone listens, and wants no logs yet.
    pub fn listen(self: &Arc<Self>, scope: Scope) -> LogListener {
        let mut listeners = self.lock();
        listeners.come += 1;
        LogListener { voices: self.clone(), number: listeners.come, scope, level: None }
    }

    fn may_use(&self, scope: &Scope, provider: &str) -> bool {
        let policy = self.permissions.advertising(scope);
        let tools = self.tools.snapshot();
        let mut of_provider =
            tools.tools().iter().filter(|one| one.tool.server().is_some_and(|server| server.as_str() == provider));
        of_provider.any(|one| one.tool.is_callable() && policy.advertises(&one.tool))
            || self.context.opens(provider, &policy)
    }

    fn want(&self, listener: u64, level: Option<LogLevel>) {
        let mut listeners = self.lock();
        match level {
            Some(level) => listeners.levels.insert(listener, level),
            None => listeners.levels.remove(&listener),
        };
        // Told under the lock: two who change their minds at once leave the right level behind.
        self.context.want_logs(listeners.levels.values().min().copied());
    }

    fn lock(&self) -> MutexGuard<'_, Listeners> {
        // Nothing panics while it is held.
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogListener {
    /// Wants messages from this level on; `None`: none any more.
    pub fn set_level(&mut self, level: Option<LogLevel>) {
        self.level = level;
        self.voices.want(self.number, level);
    }

    /// The message, if it is one and this listener is to hear it.
    pub fn hears<'a>(&self, heard: &'a Heard) -> Option<&'a LogMessage> {
        let ContextNotice::Log { message, principal } = &heard.notice else { return None };
        let is_meant = principal.as_ref().is_none_or(|principal| *principal == self.scope.principal);
        let is_wanted = self.level.is_some_and(|level| message.level >= level);
        (is_meant && is_wanted && self.voices.may_use(&self.scope, &heard.provider)).then_some(message)
    }
}

impl Drop for LogListener {
    fn drop(&mut self) {
        self.voices.want(self.number, None);
    }
}

#[cfg(test)]
mod tests;
