//! Instructions and log messages of providers, for the callers that may use these providers.

mod guidance;

use crate::{
    context_registry::{ContextEvent, ContextRegistry},
    permission_book::PermissionBook,
    tool_registry::ToolRegistry,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use toolstead_domain::{ContextNotice, LogLevel, LogMessage, RequestScope, ViewContent};

/// Instructions and log messages of all providers. A caller receives those of a provider only if the policy permits
/// anything that the provider offers.
pub struct ProviderInstructionsAndLogs {
    context: Arc<ContextRegistry>,
    tools: Arc<ToolRegistry>,
    permissions: Arc<PermissionBook>,
    listeners: Mutex<ListenerLogLevels>,
}

/// The requested log levels, by the number of the listener.
#[derive(Debug, Default)]
struct ListenerLogLevels {
    levels: BTreeMap<u64, LogLevel>,
    come: u64,
}

/// A listener to log messages that belong to no call. Its requested level counts until it is dropped.
#[derive(Debug)]
pub struct LogListenerRegistration {
    notifications: Arc<ProviderInstructionsAndLogs>,
    number: u64,
    scope: RequestScope,
    level: Option<LogLevel>,
}

impl std::fmt::Debug for ProviderInstructionsAndLogs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProviderInstructionsAndLogs").field("listeners", &*self.lock()).finish_non_exhaustive()
    }
}

impl ProviderInstructionsAndLogs {
    /// Creates the notifications for the providers of the registries, under the policies of the book.
    pub fn new(context: Arc<ContextRegistry>, tools: Arc<ToolRegistry>, permissions: Arc<PermissionBook>) -> Arc<Self> {
        Arc::new(Self { context, tools, permissions, listeners: Mutex::default() })
    }

    /// Returns the instructions of all providers that the scope may use, each below the name of its provider, with a
    /// bounded length; `None` if there are none.
    pub fn instructions(&self, scope: &RequestScope) -> Option<String> {
        let mut given = self.context.instructions();
        given.retain(|(provider, _)| self.may_use(scope, provider));
        given.sort();
        guidance::joined(&given)
    }

    /// Adds a listener, which requests no logs yet.
    pub fn listen(self: &Arc<Self>, scope: RequestScope) -> LogListenerRegistration {
        let mut listeners = self.lock();
        listeners.come += 1;
        LogListenerRegistration { notifications: self.clone(), number: listeners.come, scope, level: None }
    }

    fn may_use(&self, scope: &RequestScope, provider: &str) -> bool {
        let policy = self.permissions.advertising(scope);
        let tools = self.tools.snapshot();
        let mut of_provider =
            tools.tools().iter().filter(|one| one.tool.server().is_some_and(|server| server.as_str() == provider));
        of_provider.any(|one| one.tool.is_callable() && policy.advertises(&one.tool))
            || (self.context.opens(provider, &policy) && self.is_in_views(scope, provider))
    }

    /// Returns `true` if the provider has a resource, template or prompt that every view of the scope offers.
    fn is_in_views(&self, scope: &RequestScope, provider: &str) -> bool {
        if scope.contents().next().is_none() {
            return true;
        }
        let snapshot = self.context.snapshot();
        let offered = |offers: &dyn Fn(&ViewContent) -> bool| scope.contents().all(|(_, content)| offers(content));
        let resources = snapshot.resources().iter().filter(|one| one.provider() == provider);
        let templates = snapshot.templates().iter().filter(|one| one.provider() == provider);
        let prompts = snapshot.prompts().iter().filter(|one| one.provider() == provider);
        let mut resources = resources.map(|one| one.definition.uri());
        let mut templates = templates.map(|one| one.definition.template().as_str());
        let mut prompts = prompts.map(|one| one.definition.name());
        resources.any(|uri| offered(&|view| view.offers_resource(uri)))
            || templates.any(|template| offered(&|view| view.offers_template(template)))
            || prompts.any(|name| offered(&|view| view.offers_prompt(name)))
    }

    fn request_level(&self, listener: u64, level: Option<LogLevel>) {
        let mut listeners = self.lock();
        match level {
            Some(level) => listeners.levels.insert(listener, level),
            None => listeners.levels.remove(&listener),
        };
        // Sent under the lock: of two simultaneous changes, the last one counts.
        self.context.request_log_level(listeners.levels.values().min().copied());
    }

    fn lock(&self) -> MutexGuard<'_, ListenerLogLevels> {
        // Nothing panics while the lock is held.
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogListenerRegistration {
    /// Requests messages of this level and above; `None`: no messages.
    pub fn set_level(&mut self, level: Option<LogLevel>) {
        self.level = level;
        self.notifications.request_level(self.number, level);
    }

    /// Returns the log message, if the notification is one and is meant for this listener.
    pub fn matching_log<'a>(&self, heard: &'a ContextEvent) -> Option<&'a LogMessage> {
        let ContextNotice::Log { message, principal } = &heard.notice else { return None };
        let is_meant = principal.as_ref().is_none_or(|principal| *principal == self.scope.principal);
        let is_wanted = self.level.is_some_and(|level| message.level >= level);
        (is_meant && is_wanted && self.notifications.may_use(&self.scope, &heard.provider)).then_some(message)
    }
}

impl Drop for LogListenerRegistration {
    fn drop(&mut self) {
        self.notifications.request_level(self.number, None);
    }
}

#[cfg(test)]
mod tests;
