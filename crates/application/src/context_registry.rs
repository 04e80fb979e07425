//! The live set of resources and prompts: each with its provider, as one immutable snapshot that readers share.

pub mod context_request_target;
pub mod snapshot;

use crate::definition_pins::{DefinitionPins, ServedContext};
use arc_swap::ArcSwap;
use context_request_target::{ContextRequestTarget, ContextRequestTools};
use snapshot::{ContextSnapshot, ProviderCatalogue};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::{broadcast, watch},
    task::JoinHandle,
};
use toolstead_domain::{
    AuditedRequestKind, ContextCatalogue, ContextNotice, ContextProvider, ContextRequest, LogLevel, PermissionPolicy,
    ProviderListError, Tool, context::server_uri,
};

/// Maximum number of provider notifications that wait for a slow listener.
const NOTICE_CAPACITY: usize = 256;

/// Maximum time that a request waits for servers which have not listed their resources and prompts yet.
const FIRST_LIST_WAITS: Duration = Duration::from_secs(10);

/// All providers of resources and prompts. The list of a provider is read again whenever the provider reports a change.
pub struct ContextRegistry {
    current: ArcSwap<ContextSnapshot>,
    entries: Mutex<Vec<ProviderEntry>>,
    /// Set by [`close`](Self::close) under the lock of `entries`.
    is_closed: AtomicBool,
    changes: watch::Sender<ContextListVersions>,
    notices: broadcast::Sender<Arc<ContextEvent>>,
    log_level: watch::Sender<Option<LogLevel>>,
    /// Pinned definitions of servers. Until it is set, definitions are served as offered.
    pins: OnceLock<Arc<DefinitionPins>>,
}

/// Counters of the changes so far, by kind. If a counter differs from an earlier value, the list must be read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContextListVersions {
    /// Number of changes of resources and templates.
    pub resources: u64,
    /// Number of changes of prompts.
    pub prompts: u64,
}

/// A notification that a provider sent outside of any request.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextEvent {
    /// Name of the provider.
    pub provider: String,
    /// The notification.
    pub notice: ContextNotice,
}

struct ProviderEntry {
    provider: Arc<dyn ContextProvider>,
    answerers: Arc<ContextRequestTools>,
    catalogue: ContextCatalogue,
    /// Instructions that are served, if the provider's definitions are pinned. Otherwise those of the provider are
    /// served.
    instructions: Option<String>,
    watcher: JoinHandle<()>,
    /// Task that passes the requested log level on to the provider.
    log_level_task: JoinHandle<()>,
}

impl ProviderEntry {
    /// Stops watching the provider and passing the log level on to it.
    fn stop_watching(&self) {
        self.watcher.abort();
        self.log_level_task.abort();
    }
}

impl Drop for ProviderEntry {
    fn drop(&mut self) {
        self.stop_watching();
    }
}

/// The reason why a provider cannot be registered.
#[derive(Debug, thiserror::Error)]
pub enum ContextRegistrationError {
    /// A provider of this name is registered already.
    #[error("a provider of resources and prompts named `{0}` is registered already: give it another name")]
    DuplicateProvider(String),
    /// Two in-process providers offer the same resource, template or prompt, or one provider offers it twice.
    #[error("the {what} `{name}` of `{provider}` is offered by `{holder}` already: give it another")]
    Duplicate {
        /// Kind of the duplicate: "resource", "template" or "prompt".
        what: &'static str,
        /// URI or name of the duplicate.
        name: String,
        /// The provider to be registered.
        provider: String,
        /// The provider that offers it already.
        holder: String,
    },
    /// The registry is closed permanently.
    #[error("the application is closed: resources and prompts cannot be added any more")]
    Closed,
    /// The provider could not list its resources and prompts.
    #[error(transparent)]
    Provider(#[from] ProviderListError),
}

impl std::fmt::Debug for ContextRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContextRegistry").field("snapshot", &self.snapshot()).finish_non_exhaustive()
    }
}

impl ContextRegistry {
    /// Creates an empty registry.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            current: ArcSwap::from_pointee(ContextSnapshot::default()),
            entries: Mutex::default(),
            is_closed: AtomicBool::new(false),
            changes: watch::Sender::new(ContextListVersions::default()),
            notices: broadcast::Sender::new(NOTICE_CAPACITY),
            log_level: watch::Sender::new(None),
            pins: OnceLock::new(),
        })
    }

    /// Serves the definitions of pinned providers in the form that `pins` permits, from the next time that their lists
    /// are read. Only the first call has an effect.
    pub fn pin_definitions(&self, pins: &Arc<DefinitionPins>) {
        self.pins.get_or_init(|| pins.clone());
    }

    /// Returns the current snapshot.
    pub fn snapshot(&self) -> Arc<ContextSnapshot> {
        self.current.load_full()
    }

    /// Subscribes to the changes of the lists.
    pub fn changes(&self) -> watch::Receiver<ContextListVersions> {
        self.changes.subscribe()
    }

    /// Subscribes to all notifications that providers send outside of requests. A slow listener loses the oldest ones.
    pub fn notices(&self) -> broadcast::Receiver<Arc<ContextEvent>> {
        self.notices.subscribe()
    }

    /// Adds a provider, and watches it from now on. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`ContextRegistrationError`] if the provider cannot list what it offers, if its name is taken, if it is
    /// in-process and offers something twice or that another in-process provider offers, or after
    /// [`close`](Self::close). Nothing has changed then.
    pub async fn register(
        self: &Arc<Self>,
        provider: Arc<dyn ContextProvider>,
    ) -> Result<(), ContextRegistrationError> {
        let offered = provider.list().await?;
        let ServedContext { catalogue, instructions } = self.serve(&*provider, offered).await;
        let mut entries = self.lock();
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(ContextRegistrationError::Closed);
        }
        let name = provider.name();
        if entries.iter().any(|entry| entry.provider.name() == name) {
            return Err(ContextRegistrationError::DuplicateProvider(name.to_owned()));
        }
        // The catalogue of an upstream server is not under our control: its duplicates are made distinct, or left out.
        if provider.server().is_none() {
            check_names(&entries, name, &catalogue)?;
        }
        let watcher = tokio::spawn(watch_provider(Arc::downgrade(self), provider.clone()));
        let teller = tokio::spawn(forward_log_level(self.log_level.subscribe(), provider.clone()));
        let answerers = Arc::new(ContextRequestTools::of(&provider, &Arc::downgrade(self)));
        entries.push(ProviderEntry { provider, answerers, catalogue, instructions, watcher, log_level_task: teller });
        self.renew(&entries);
        Ok(())
    }

    /// Removes a provider and everything that it offers. Does nothing for an unknown name.
    pub fn unregister(&self, name: &str) {
        let mut entries = self.lock();
        let Some(at) = entries.iter().position(|entry| entry.provider.name() == name) else { return };
        entries.remove(at);
        self.renew(&entries);
    }

    /// Returns the instructions of each provider with its name, in the order of registration.
    pub fn instructions(&self) -> Vec<(String, String)> {
        let entries = self.lock();
        let with_instructions = |entry: &ProviderEntry| {
            let is_pinned = self.pins.get().is_some() && entry.provider.pinning().is_some();
            let text = if is_pinned { entry.instructions.clone() } else { entry.provider.instructions() };
            Some((entry.provider.name().to_owned(), text?))
        };
        entries.iter().filter_map(with_instructions).collect()
    }

    /// Waits until every provider has listed what it offers in this run, or cannot predict when it will, and then reads
    /// all lists again. Gives up after `at_most`.
    pub async fn settled(&self, at_most: Duration) {
        let providers = self.providers();
        let all = futures::future::join_all(providers.iter().map(|provider| provider.settled()));
        // A late provider is not an error of the caller.
        if tokio::time::timeout(at_most, all).await.is_ok() {
            for provider in providers {
                self.take_list(&provider).await;
            }
        }
    }

    /// Starts idle servers that have never listed their resources and prompts. Does not wait for them.
    pub(crate) fn wake(&self) {
        let Ok(runtime) = Handle::try_current() else { return };
        for provider in self.providers().into_iter().filter(|provider| provider.server().is_some()) {
            runtime.spawn(async move { provider.settled().await });
        }
    }

    /// Returns the answerer of the request. If no known list contains its subject, first waits for servers that are
    /// starting.
    pub(crate) async fn answerer(&self, request: &ContextRequest) -> ContextRequestTarget {
        let answerer = self.snapshot().answerer(request);
        if answerer.registered.is_some() {
            return answerer;
        }
        self.settled(FIRST_LIST_WAITS).await;
        self.snapshot().answerer(request)
    }

    /// Returns the answerer of a read of a resource, with the tool that represents the request, the provider, and the
    /// URI by which that provider knows the resource; `None` if no provider offers it, or if that changed meanwhile.
    pub(crate) async fn read_by(
        &self,
        request: &ContextRequest,
    ) -> (ContextRequestTarget, Option<(Arc<Tool>, Arc<dyn ContextProvider>, String)>) {
        let answerer = self.answerer(request).await;
        let found = answerer.registered.as_ref().and_then(|registered| {
            let (provider, own) = self.snapshot().provider_of(request.subject())?;
            // The lists may have changed meanwhile: the provider whose tool is checked must be the one that receives
            // the request.
            (provider.name() == registered.provider.name()).then(|| (registered.tool.clone(), provider, own))
        });
        (answerer, found)
    }

    fn providers(&self) -> Vec<Arc<dyn ContextProvider>> {
        self.lock().iter().map(|entry| entry.provider.clone()).collect()
    }

    /// Reads the list of the provider, and publishes a new snapshot if the list has changed. If reading fails, logs it
    /// and keeps the previous list.
    async fn take_list(&self, provider: &Arc<dyn ContextProvider>) {
        match provider.list().await {
            Ok(offered) => {
                let served = self.serve(&**provider, offered).await;
                self.relisted(provider.name(), served);
            }
            Err(error) => tracing::warn!(%error, "the provider's list failed: keeping the previous one"),
        }
    }

    /// Stops watching all providers. No provider can be added afterwards.
    pub fn close(&self) {
        let entries = self.lock();
        self.is_closed.store(true, Ordering::Relaxed);
        entries.iter().for_each(ProviderEntry::stop_watching);
    }

    /// Requests log messages of this level and above from all providers, including those that are added later; `None`
    /// if no client wants any.
    pub(crate) fn request_log_level(&self, level: Option<LogLevel>) {
        self.log_level.send_if_modified(|wanted| std::mem::replace(wanted, level) != level);
    }

    /// Returns `true` if the provider has resources, templates or prompts of a kind that the policy advertises.
    pub(crate) fn opens(&self, provider: &str, policy: &PermissionPolicy) -> bool {
        let entries = self.lock();
        let Some(ProviderEntry { answerers, catalogue, .. }) =
            entries.iter().find(|entry| entry.provider.name() == provider)
        else {
            return false;
        };
        let is_open = |kind| policy.advertises(&answerers.of_kind(kind).tool);
        let has_resources = !catalogue.resources.is_empty() || !catalogue.templates.is_empty();
        has_resources && is_open(AuditedRequestKind::Resource)
            || !catalogue.prompts.is_empty() && is_open(AuditedRequestKind::Prompt)
    }

    /// Returns what is served of the provider's offer: all of it, unless its definitions are pinned. Then the offer is
    /// recorded and served in the form that the pins permit; nothing is served if the store fails.
    async fn serve(&self, provider: &dyn ContextProvider, offered: ContextCatalogue) -> ServedContext {
        let instructions = provider.instructions();
        let (Some(pins), Some(pinning)) = (self.pins.get(), provider.pinning()) else {
            return ServedContext { catalogue: offered, instructions };
        };
        let is_listed = provider.is_listed();
        pins.context(&pinning, offered, instructions, is_listed).await.unwrap_or_else(|error| {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(provider = provider.name(), error, "its resources and prompts are not served");
            ServedContext::default()
        })
    }

    fn relisted(&self, provider: &str, served: ServedContext) {
        let mut entries = self.lock();
        let Some(entry) = entries.iter_mut().find(|entry| entry.provider.name() == provider) else { return };
        let ServedContext { catalogue, instructions } = served;
        entry.instructions = instructions;
        if entry.catalogue != catalogue {
            entry.catalogue = catalogue;
            self.renew(&entries);
        }
    }

    fn renew(&self, entries: &[ProviderEntry]) {
        let before = self.snapshot();
        let version = before.version() + 1;
        let offers =
            entries.iter().map(|entry| ProviderCatalogue { answerers: &entry.answerers, catalogue: &entry.catalogue });
        let now = Arc::new(ContextSnapshot::of(version, &before, offers));
        let (resources, prompts) = (!now.offers_resources_of(&before), !now.offers_prompts_of(&before));
        self.current.store(now);
        self.changes.send_modify(|changes| {
            changes.resources += u64::from(resources);
            changes.prompts += u64::from(prompts);
        });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ProviderEntry>> {
        // Nothing panics while the lock is held.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks that an in-process provider offers nothing that another in-process provider offers.
fn check_names(
    entries: &[ProviderEntry],
    name: &str,
    catalogue: &ContextCatalogue,
) -> Result<(), ContextRegistrationError> {
    let mut holders = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.provider.server().is_none()) {
        for (what, key) in keys(&entry.catalogue) {
            holders.insert((what, key), entry.provider.name());
        }
    }
    for (what, key) in keys(catalogue) {
        if let Some(holder) = holders.insert((what, key), name) {
            let (name, provider, holder) = (key.to_owned(), name.to_owned(), holder.to_owned());
            return Err(ContextRegistrationError::Duplicate { what, name, provider, holder });
        }
    }
    Ok(())
}

/// Returns the keys that must be unique among in-process providers.
fn keys(catalogue: &ContextCatalogue) -> impl Iterator<Item = (&'static str, &str)> {
    let resources = catalogue.resources.iter().map(|resource| ("resource", resource.uri()));
    let templates = catalogue.templates.iter().map(|template| ("template", template.template().as_str()));
    resources.chain(templates).chain(catalogue.prompts.iter().map(|prompt| ("prompt", prompt.name())))
}

async fn watch_provider(registry: Weak<ContextRegistry>, provider: Arc<dyn ContextProvider>) {
    loop {
        let notice = tokio::select! {
            () = provider.changed() => None,
            notice = provider.notice() => Some(notice),
        };
        let Some(registry) = registry.upgrade() else { return };
        let Some(notice) = notice else {
            registry.take_list(&provider).await;
            continue;
        };
        let notices: Vec<ContextNotice> = match notice {
            ContextNotice::ResourceUpdated { uri } => {
                let known_by = uris_of(&registry.snapshot(), &*provider, &uri);
                known_by.into_iter().map(|uri| ContextNotice::ResourceUpdated { uri }).collect()
            }
            notice @ ContextNotice::Log { .. } => vec![notice],
        };
        for notice in notices {
            // An error means that there is no listener.
            let _ = registry.notices.send(Arc::new(ContextEvent { provider: provider.name().to_owned(), notice }));
        }
    }
}

/// Returns the public URIs under which clients may subscribe to this resource of the provider. A URI that leads to
/// another provider is excluded.
fn uris_of(snapshot: &ContextSnapshot, provider: &dyn ContextProvider, uri: &str) -> Vec<String> {
    let public = snapshot.public_uri(provider.name(), uri).into_owned();
    // This form always leads to its server, whichever provider has the plain URI.
    let distinct = provider.server().map(|server| server_uri::of_server(server.as_str(), uri));
    let is_anothers = snapshot.provider_of(&public).is_some_and(|(of, _)| of.name() != provider.name());
    let distinct = distinct.filter(|distinct| *distinct != public);
    Some(public).filter(|_| !is_anothers).into_iter().chain(distinct).collect()
}

async fn forward_log_level(mut wanted: watch::Receiver<Option<LogLevel>>, provider: Arc<dyn ContextProvider>) {
    let mut sent = None;
    loop {
        let level = *wanted.borrow_and_update();
        if level != sent {
            provider.set_log_level(level).await;
            sent = level;
        }
        if wanted.changed().await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
