//! The live set of resources and prompts: each with its provider, as one immutable snapshot that readers share.

pub mod answerer;
pub mod snapshot;

use answerer::{Answerer, Answerers};
use arc_swap::ArcSwap;
use snapshot::{ContextSnapshot, Offer};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
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
    client_profile::LogLevel,
    context::{ContextCatalogue, notice::ContextNotice, request::ContextRequest, server_uri},
    permission::policy::PermissionPolicy,
    ports::{context_provider::ContextProvider, tool_provider::ProviderError},
    tool::Tool,
    tool_execution::RequestKind,
};

/// So many things that providers said wait for a slow listener.
const UNHEARD: usize = 256;

/// A request may come before a server has said for the first time what it offers; so long it waits for that.
const FIRST_LIST_WAITS: Duration = Duration::from_secs(10);

/// All providers of resources and prompts. A provider's list is taken again whenever it says that it changed.
pub struct ContextRegistry {
    current: ArcSwap<ContextSnapshot>,
    entries: Mutex<Vec<Entry>>,
    /// Set by [`close`](Self::close) under the lock of `entries`.
    is_closed: AtomicBool,
    changes: watch::Sender<ContextChanges>,
    heard: broadcast::Sender<Arc<Heard>>,
    logs_wanted: watch::Sender<Option<LogLevel>>,
}

/// Counts of the changes so far, by what changed; one of another number than before is a list to be taken anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContextChanges {
    /// Of resources and templates.
    pub resources: u64,
    /// Of prompts.
    pub prompts: u64,
}

/// Something that a provider said outside of any request.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// The provider's name.
    pub provider: String,
    /// The news.
    pub notice: ContextNotice,
}

struct Entry {
    provider: Arc<dyn ContextProvider>,
    answerers: Arc<Answerers>,
    catalogue: ContextCatalogue,
    watcher: JoinHandle<()>,
    /// Says which logs are wanted.
    teller: JoinHandle<()>,
}

impl Entry {
    /// Watches the provider no longer.
    fn leave(&self) {
        self.watcher.abort();
        self.teller.abort();
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A provider that cannot be registered.
#[derive(Debug, thiserror::Error)]
pub enum ContextRegistryError {
    /// A provider of this name is there already.
    #[error("a provider of resources and prompts named `{0}` is registered already: give it another name")]
    DuplicateProvider(String),
    /// Two providers, or one twice, offer the same.
    #[error("the {what} `{name}` of `{provider}` is offered by `{holder}` already: give it another")]
    Duplicate {
        /// Its sort: "resource", "template" or "prompt".
        what: &'static str,
        /// Its URI or name.
        name: String,
        /// The provider that came later.
        provider: String,
        /// The provider that has it.
        holder: String,
    },
    /// The registry is closed for good.
    #[error("the application is closed: resources and prompts cannot be added any more")]
    Closed,
    /// The provider could not say what it offers.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

impl std::fmt::Debug for ContextRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContextRegistry").field("snapshot", &self.snapshot()).finish_non_exhaustive()
    }
}

impl ContextRegistry {
    /// An empty registry.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            current: ArcSwap::from_pointee(ContextSnapshot::default()),
            entries: Mutex::default(),
            is_closed: AtomicBool::new(false),
            changes: watch::Sender::new(ContextChanges::default()),
            heard: broadcast::Sender::new(UNHEARD),
            logs_wanted: watch::Sender::new(None),
        })
    }

    /// The snapshot of now.
    pub fn snapshot(&self) -> Arc<ContextSnapshot> {
        self.current.load_full()
    }

    /// The changes of the lists.
    pub fn changes(&self) -> watch::Receiver<ContextChanges> {
        self.changes.subscribe()
    }

    /// Everything that providers say from now on outside of requests. Who listens too slowly loses the oldest of it.
    pub fn heard(&self) -> broadcast::Receiver<Arc<Heard>> {
        self.heard.subscribe()
    }

    /// Adds a provider and watches it from now on. To be called within a tokio runtime.
    ///
    /// # Errors
    /// [`ContextRegistryError`] when its name or something that it offers is taken, or after [`close`](Self::close); then
    /// nothing has changed.
    pub async fn register(self: &Arc<Self>, provider: Arc<dyn ContextProvider>) -> Result<(), ContextRegistryError> {
        let catalogue = provider.list().await?;
        let mut entries = self.lock();
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(ContextRegistryError::Closed);
        }
        let name = provider.name();
        if entries.iter().any(|entry| entry.provider.name() == name) {
            return Err(ContextRegistryError::DuplicateProvider(name.to_owned()));
        }
        // What a server offers is not in our hands: there it is made distinct, or left out.
        if provider.server().is_none() {
            check_names(&entries, name, &catalogue)?;
        }
        let watcher = tokio::spawn(watch_provider(Arc::downgrade(self), provider.clone()));
        let teller = tokio::spawn(tell_logs_wanted(self.logs_wanted.subscribe(), provider.clone()));
        let answerers = Arc::new(Answerers::of(&provider, &Arc::downgrade(self)));
        entries.push(Entry { provider, answerers, catalogue, watcher, teller });
        self.renew(&entries);
        Ok(())
    }

    /// Removes a provider with what it offers. Does nothing if there is none of this name.
    pub fn unregister(&self, name: &str) {
        let mut entries = self.lock();
        let Some(at) = entries.iter().position(|entry| entry.provider.name() == name) else { return };
        entries.remove(at);
        self.renew(&entries);
    }

    /// The guidance that providers give for what they offer, each with its provider's name, in the order of registration.
    pub fn instructions(&self) -> Vec<(String, String)> {
        let entries = self.lock();
        let told = |entry: &Entry| Some((entry.provider.name().to_owned(), entry.provider.instructions()?));
        entries.iter().filter_map(told).collect()
    }

    /// Returns when every provider has said what it offers, or nobody can say when it will; or after `at_most`.
    pub async fn settled(&self, at_most: Duration) {
        let providers = self.providers();
        let all = futures::future::join_all(providers.iter().map(|provider| provider.settled()));
        // Late providers are no fault of the one who waits.
        if tokio::time::timeout(at_most, all).await.is_ok() {
            for provider in providers {
                self.take_list(&provider).await;
            }
        }
    }

    /// Has servers that rest and were never heard of say what they offer. Waits for nothing.
    pub(crate) fn wake(&self) {
        let Ok(runtime) = Handle::try_current() else { return };
        for provider in self.providers().into_iter().filter(|provider| provider.server().is_some()) {
            runtime.spawn(async move { provider.settled().await });
        }
    }

    /// The one who answers the request. What nobody offers may be offered by a server that is on its way.
    pub(crate) async fn answerer(&self, request: &ContextRequest) -> Answerer {
        let answerer = self.snapshot().answerer(request);
        if answerer.registered.is_some() {
            return answerer;
        }
        self.settled(FIRST_LIST_WAITS).await;
        self.snapshot().answerer(request)
    }

    /// The one who answers the reading of a resource, with the tool that stands for it, the provider, and the URI by which
    /// that provider knows it.
    pub(crate) async fn read_by(
        &self,
        request: &ContextRequest,
    ) -> (Answerer, Option<(Arc<Tool>, Arc<dyn ContextProvider>, String)>) {
        let answerer = self.answerer(request).await;
        let found = answerer.registered.as_ref().and_then(|registered| {
            let (provider, own) = self.snapshot().provider_of(request.subject())?;
            // Lists may have changed meanwhile: the provider whose tool is judged is the one that is asked.
            (provider.name() == registered.provider.name()).then(|| (registered.tool.clone(), provider, own))
        });
        (answerer, found)
    }

    fn providers(&self) -> Vec<Arc<dyn ContextProvider>> {
        self.lock().iter().map(|entry| entry.provider.clone()).collect()
    }

    /// Takes the provider's list into a new snapshot, if it differs.
    async fn take_list(&self, provider: &Arc<dyn ContextProvider>) {
        match provider.list().await {
            Ok(catalogue) => self.relisted(provider.name(), catalogue),
            Err(error) => tracing::warn!(%error, "what it offered before stays"),
        }
    }

    /// Stops watching all providers. None can be added afterwards.
    pub fn close(&self) {
        let entries = self.lock();
        self.is_closed.store(true, Ordering::Relaxed);
        entries.iter().for_each(Entry::leave);
    }

    /// Tells all providers, also those that come later, the least severe log messages that anybody wants.
    pub(crate) fn want_logs(&self, level: Option<LogLevel>) {
        self.logs_wanted.send_if_modified(|wanted| std::mem::replace(wanted, level) != level);
    }

    /// Tells whether the policy leaves anything open that the provider offers here.
    pub(crate) fn opens(&self, provider: &str, policy: &PermissionPolicy) -> bool {
        let entries = self.lock();
        let Some(Entry { answerers, catalogue, .. }) = entries.iter().find(|entry| entry.provider.name() == provider)
        else {
            return false;
        };
        let is_open = |kind| policy.advertises(&answerers.of_kind(kind).tool);
        let has_resources = !catalogue.resources.is_empty() || !catalogue.templates.is_empty();
        has_resources && is_open(RequestKind::Resource) || !catalogue.prompts.is_empty() && is_open(RequestKind::Prompt)
    }

    fn relisted(&self, provider: &str, catalogue: ContextCatalogue) {
        let mut entries = self.lock();
        let Some(entry) = entries.iter_mut().find(|entry| entry.provider.name() == provider) else { return };
        if entry.catalogue != catalogue {
            entry.catalogue = catalogue;
            self.renew(&entries);
        }
    }

    fn renew(&self, entries: &[Entry]) {
        let before = self.snapshot();
        let version = before.version() + 1;
        let offers = entries.iter().map(|entry| Offer { answerers: &entry.answerers, catalogue: &entry.catalogue });
        let now = Arc::new(ContextSnapshot::of(version, &before, offers));
        let (resources, prompts) = (!now.offers_resources_of(&before), !now.offers_prompts_of(&before));
        self.current.store(now);
        self.changes.send_modify(|changes| {
            changes.resources += u64::from(resources);
            changes.prompts += u64::from(prompts);
        });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        // Nothing panics while it is held.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks that what a provider of this program offers is free among the others of this program.
fn check_names(entries: &[Entry], name: &str, catalogue: &ContextCatalogue) -> Result<(), ContextRegistryError> {
    let mut holders = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.provider.server().is_none()) {
        for (what, key) in keys(&entry.catalogue) {
            holders.insert((what, key), entry.provider.name());
        }
    }
    for (what, key) in keys(catalogue) {
        if let Some(holder) = holders.insert((what, key), name) {
            let (name, provider, holder) = (key.to_owned(), name.to_owned(), holder.to_owned());
            return Err(ContextRegistryError::Duplicate { what, name, provider, holder });
        }
    }
    Ok(())
}

/// A thing that no two of this program may offer.
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
            // An error says that nobody listens.
            let _ = registry.heard.send(Arc::new(Heard { provider: provider.name().to_owned(), notice }));
        }
    }
}

/// The URIs by which a resource of the provider may be watched here. A server tells of nobody else's.
fn uris_of(snapshot: &ContextSnapshot, provider: &dyn ContextProvider, uri: &str) -> Vec<String> {
    let public = snapshot.public_uri(provider.name(), uri).into_owned();
    // This form leads to its server whoever has the plain one.
    let distinct = provider.server().map(|server| server_uri::of_server(server.as_str(), uri));
    let is_anothers = snapshot.provider_of(&public).is_some_and(|(of, _)| of.name() != provider.name());
    let distinct = distinct.filter(|distinct| *distinct != public);
    Some(public).filter(|_| !is_anothers).into_iter().chain(distinct).collect()
}

async fn tell_logs_wanted(mut wanted: watch::Receiver<Option<LogLevel>>, provider: Arc<dyn ContextProvider>) {
    let mut told = None;
    loop {
        let level = *wanted.borrow_and_update();
        if level != told {
            provider.log_level_wanted(level).await;
            told = level;
        }
        if wanted.changed().await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
