//! The live set of tools: each with its provider, as one immutable snapshot that readers share.

pub(crate) mod output_readers;
pub mod snapshot;

use arc_swap::ArcSwap;
use snapshot::{RegisteredTool, Snapshot, Unresolved};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::watch, task::JoinHandle};
use toolstead_domain::{
    alias::Dialect,
    ports::{
        clock::Clock,
        tool_provider::{ProviderState, ToolProvider},
        tool_repository::{Catalogue, DefinitionChange, StoreError, ToolRepository},
    },
    principal::Principal,
    tool::{Tool, ToolSource},
};

/// So many snapshots live on for cursors that were given out on them.
const KEPT_SNAPSHOTS: usize = 4;

/// All providers and their tools. Readers take a [`Snapshot`] and never wait for a database or an upstream.
///
/// A provider whose list is not known yet shows the catalogue of its last run. Its list is taken again whenever it says
/// that it changed.
pub struct ToolRegistry {
    repository: Arc<dyn ToolRepository>,
    clock: Arc<dyn Clock>,
    current: ArcSwap<Snapshot>,
    inner: Mutex<Inner>,
    /// The current version; rises with every snapshot.
    version: watch::Sender<u64>,
    /// Rises whenever a provider told something, also without a new snapshot.
    heard: watch::Sender<u64>,
}

#[derive(Default)]
struct Inner {
    entries: Vec<Entry>,
    /// Servers that are configured and were not registered, each with the reason.
    absent: BTreeMap<String, String>,
    disabled: BTreeSet<String>,
    kept: VecDeque<Arc<Snapshot>>,
    /// Set by [`ToolRegistry::close`]: nothing is added afterwards.
    is_closed: bool,
}

struct Entry {
    provider: Arc<dyn ToolProvider>,
    catalogue: Catalogue,
    /// Whether the provider itself has listed them, in this run or an earlier one.
    known: bool,
    /// Whether it has in this run.
    listed: bool,
    watcher: JoinHandle<()>,
}

/// How one provider is, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderStatus {
    /// Its name.
    pub name: String,
    /// Its version, if it is a provider of this program that has one.
    pub version: Option<String>,
    /// Its state.
    pub state: ProviderState,
    /// How many tools it offers, or offered when it was last heard of.
    pub tools: usize,
    /// What else than when it was seen first the definitions of its tools say; the last change of each tool. Known of MCP
    /// servers alone.
    pub changes: Vec<DefinitionChange>,
}

/// A server that is configured, and whose tools are not known in this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbsentServer {
    /// Its name.
    pub server: String,
    /// Why, as a sentence about it without its end.
    pub why: String,
    /// Whether its tools of an earlier run are shown.
    pub shows_earlier_tools: bool,
}

impl AbsentServer {
    /// Why a server is not there that may be in a moment.
    pub const ON_ITS_WAY: &str = "it is not connected yet";
    /// Why a server is not there that starts when it is used.
    pub const AT_REST: &str = "it is started when it is used";
}

/// A provider or tool that cannot be registered.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A provider of this name is there already; replacing it must be asked for.
    #[error("a provider named `{0}` is registered already: use `replace` to put another in its place")]
    DuplicateProvider(String),
    /// Two providers offer a tool of this name.
    #[error("the tool `{tool}` of `{provider}` is offered by `{holder}` already")]
    DuplicateTool {
        /// The tool.
        tool: String,
        /// The provider that came later.
        provider: String,
        /// The provider that has it.
        holder: String,
    },
    /// No provider of this name.
    #[error("no provider named `{0}` is registered")]
    UnknownProvider(String),
    /// The registry is closed for good.
    #[error("the application is closed: tools cannot be added or removed any more")]
    Closed,
    /// The stored catalogue could not be read.
    #[error("could not prepare the provider")]
    Store(#[from] StoreError),
}

impl std::fmt::Debug for ToolRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolRegistry").field("snapshot", &self.snapshot()).finish_non_exhaustive()
    }
}

impl ToolRegistry {
    /// An empty registry that keeps catalogues in `repository`.
    ///
    /// # Errors
    /// [`StoreError`] when the repository cannot say which tools are switched off.
    pub async fn new(repository: Arc<dyn ToolRepository>, clock: Arc<dyn Clock>) -> Result<Arc<Self>, StoreError> {
        let disabled = repository.disabled().await?.into_iter().collect();
        Ok(Arc::new(Self {
            repository,
            clock,
            current: ArcSwap::from_pointee(Snapshot::empty()),
            inner: Mutex::new(Inner { disabled, ..Default::default() }),
            version: watch::Sender::new(0),
            heard: watch::Sender::new(0),
        }))
    }

    /// The tools as they are now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// The snapshot of that version, if it is still kept.
    pub(crate) fn snapshot_at(&self, version: u64) -> Option<Arc<Snapshot>> {
        let current = self.snapshot();
        if current.version() == version {
            return Some(current);
        }
        self.lock().kept.iter().find(|snapshot| snapshot.version() == version).cloned()
    }

    /// Tells every change of the set of tools: the new version.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Tells whenever a provider said something: its tools or its state may be others.
    pub fn news(&self) -> watch::Receiver<u64> {
        self.heard.subscribe()
    }

    /// Adds a provider. Its tools are there when this returns, as far as they are known.
    ///
    /// # Errors
    /// [`RegistryError`] when its name is taken, when one of its tools' names is (save for MCP servers, whose tools are
    /// left out then: [`Snapshot::left_out`]), when the store cannot be read, or after [`close`](Self::close). The provider
    /// is closed then.
    pub async fn register(self: &Arc<Self>, provider: Arc<dyn ToolProvider>) -> Result<(), RegistryError> {
        self.put(provider, Placement::New).await
    }

    /// Puts a provider in the place of the one with the same name, or adds it.
    ///
    /// # Errors
    /// As [`register`](Self::register), save that its own name may be taken.
    pub async fn replace(self: &Arc<Self>, provider: Arc<dyn ToolProvider>) -> Result<(), RegistryError> {
        self.put(provider, Placement::Replacing).await
    }

    /// Removes a provider and its tools, and closes it.
    ///
    /// # Errors
    /// [`RegistryError::UnknownProvider`], or [`RegistryError::Closed`] after [`close`](Self::close).
    pub async fn unregister(&self, name: &str) -> Result<(), RegistryError> {
        let entry = {
            let mut inner = self.lock();
            if inner.is_closed {
                return Err(RegistryError::Closed);
            }
            let at = inner.entries.iter().position(|entry| entry.provider.name() == name);
            let at = at.ok_or_else(|| RegistryError::UnknownProvider(name.into()))?;
            let entry = inner.entries.remove(at);
            self.publish(&mut inner);
            entry
        };
        entry.watcher.abort();
        entry.provider.close().await;
        Ok(())
    }

    /// Notes that a server of this name is configured and will not be registered: names that may be its tools' lead to no
    /// other provider.
    pub fn note_absent(&self, server: &str, why: &str) {
        self.lock().absent.insert(server.to_owned(), why.to_owned());
    }

    /// The tool that a caller means who speaks no dialect: see [`resolve_in`](Self::resolve_in).
    ///
    /// # Errors
    /// [`Unresolved`].
    pub fn resolve(&self, name: &str) -> Result<Registered, Unresolved> {
        self.resolve_in(None, name)
    }

    /// The tool that a caller means, as [`Snapshot::resolve_in`] finds it. A name that may be meant for a server that is not
    /// there leads to nobody else's tool, unless it is that tool's own name.
    ///
    /// # Errors
    /// [`Unresolved`].
    pub fn resolve_in(&self, dialect: Option<Dialect>, name: &str) -> Result<Registered, Unresolved> {
        let snapshot = self.snapshot();
        let resolved = snapshot.resolve_in(dialect, name);
        if let Ok(found) = resolved
            && found.tool.name().as_str() == name
        {
            return Ok(found.clone());
        }
        match (resolved, self.lock().absent_for(name)) {
            (Ok(found), Some(absent)) if found.provider.name() == absent.server => Ok(found.clone()),
            (_, Some(absent)) => Err(Unresolved::Absent(absent)),
            (resolved, None) => resolved.cloned(),
        }
    }

    /// The servers that are configured, and whose tools are not known in this run, by name.
    pub fn absent(&self) -> Vec<AbsentServer> {
        let inner = self.lock();
        let mut absent: Vec<AbsentServer> = inner.absent_servers().collect();
        absent.sort_by(|a, b| a.server.cmp(&b.server));
        absent
    }

    /// Asks providers for their lists again: the named one, or all.
    ///
    /// # Errors
    /// [`RegistryError::UnknownProvider`].
    pub async fn refresh(self: &Arc<Self>, name: Option<&str>) -> Result<(), RegistryError> {
        let chosen: Vec<_> = {
            let inner = self.lock();
            let providers = inner.entries.iter().map(|entry| &entry.provider);
            providers.filter(|provider| name.is_none_or(|name| provider.name() == name)).cloned().collect()
        };
        if let (Some(name), true) = (name, chosen.is_empty()) {
            return Err(RegistryError::UnknownProvider(name.into()));
        }
        futures::future::join_all(chosen.iter().map(|provider| async move {
            if provider.state() == ProviderState::Idle {
                provider.refresh().await;
            }
            self.take_list(provider).await;
        }))
        .await;
        Ok(())
    }

    /// Switches a tool on or off, here and for later runs.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be kept; then nothing changed.
    pub async fn set_enabled(&self, tool: &str, enabled: bool) -> Result<(), StoreError> {
        self.repository.set_enabled(tool, enabled).await?;
        let mut inner = self.lock();
        let changed = if enabled { inner.disabled.remove(tool) } else { inner.disabled.insert(tool.into()) };
        if changed {
            self.publish(&mut inner);
        }
        Ok(())
    }

    /// How every provider is, in the order of registration.
    pub fn providers(&self) -> Vec<ProviderStatus> {
        let status = |entry: &Entry| ProviderStatus {
            name: entry.provider.name().into(),
            version: entry.provider.version(),
            state: entry.provider.state(),
            tools: entry.catalogue.tools.len(),
            changes: entry.catalogue.changes.clone(),
        };
        self.lock().entries.iter().map(status).collect()
    }

    /// Returns when every provider has listed its tools once, in this run or an earlier one, or is known to be down; or
    /// after `at_most`.
    pub async fn settled(&self, at_most: Duration) {
        self.heard_until(at_most, |entry| entry.known || entry.provider.state() != ProviderState::Connecting).await;
    }

    /// As [`settled`](Self::settled); and a server that the name may be meant for has listed its tools in this run.
    pub(crate) async fn settled_for(&self, name: &str, at_most: Duration) {
        let settled = |entry: &Entry| match entry.provider.state() {
            ProviderState::Connecting | ProviderState::Ready | ProviderState::Idle if entry.may_be_meant(name) => {
                entry.listed
            }
            state => entry.known || state != ProviderState::Connecting,
        };
        let rest: Vec<_> = {
            let inner = self.lock();
            let rests = |entry: &&Entry| {
                entry.provider.state() == ProviderState::Idle && entry.may_be_meant(name) && !entry.listed
            };
            inner.entries.iter().filter(rests).map(|entry| entry.provider.clone()).collect()
        };
        let started = async {
            futures::future::join_all(rest.iter().map(|provider| provider.refresh())).await;
            // What comes of it is heard.
            std::future::pending().await
        };
        tokio::select! {
            () = self.heard_until(at_most, settled) => {}
            () = started => {}
        }
    }

    async fn heard_until(&self, at_most: Duration, settled: impl Fn(&Entry) -> bool) {
        let mut heard = self.heard.subscribe();
        let all = async {
            loop {
                heard.mark_unchanged();
                if self.lock().entries.iter().all(&settled) || heard.changed().await.is_err() {
                    return;
                }
            }
        };
        // Late providers are no fault of the one who waits.
        let _ = tokio::time::timeout(at_most, all).await;
    }

    /// Closes every provider, all at once. None can be added or removed afterwards.
    pub async fn close(&self) {
        let entries = {
            let mut inner = self.lock();
            inner.is_closed = true;
            std::mem::take(&mut inner.entries)
        };
        futures::future::join_all(entries.iter().map(|entry| {
            entry.watcher.abort();
            entry.provider.close()
        }))
        .await;
    }

    /// Tells every provider that a session is over.
    pub async fn session_ended(&self, principal: &Principal, session: &str) {
        let providers: Vec<_> = self.lock().entries.iter().map(|entry| entry.provider.clone()).collect();
        futures::future::join_all(providers.iter().map(|provider| provider.session_ended(principal, session))).await;
    }

    async fn put(self: &Arc<Self>, provider: Arc<dyn ToolProvider>, placement: Placement) -> Result<(), RegistryError> {
        // Before the store is read, which is closed as well by then.
        if self.lock().is_closed {
            provider.close().await;
            return Err(RegistryError::Closed);
        }
        let listed = provider.list().await.map(|tools| owned(tools, provider.as_ref()));
        // What a program brings along needs no store.
        let stored = match &listed {
            Ok(_) if provider.owns_schemas() => Catalogue::default(),
            Ok(_) | Err(_) => self.repository.catalogue(&provider.identity()).await?,
        };
        let (catalogue, is_listed) = match listed {
            Ok(tools) => (self.successor(&provider, &stored, tools), true),
            Err(error) => {
                tracing::debug!(%error, "showing the stored catalogue");
                (stored.clone(), false)
            }
        };
        let is_news = is_listed && catalogue != stored;
        let kept = is_news.then(|| catalogue.clone());
        match self.place(&provider, catalogue, is_listed, placement) {
            Ok(replaced) => {
                if let Some(catalogue) = kept {
                    self.keep(&provider, &catalogue).await;
                }
                if let Some(replaced) = replaced {
                    replaced.watcher.abort();
                    replaced.provider.close().await;
                }
                Ok(())
            }
            Err(error) => {
                // It was handed over, so nobody else ends what it has started.
                provider.close().await;
                Err(error)
            }
        }
    }

    /// Puts the provider into the set, and returns the one whose place it took.
    fn place(
        self: &Arc<Self>,
        provider: &Arc<dyn ToolProvider>,
        catalogue: Catalogue,
        listed: bool,
        placement: Placement,
    ) -> Result<Option<Entry>, RegistryError> {
        let mut inner = self.lock();
        if inner.is_closed {
            return Err(RegistryError::Closed);
        }
        let at = inner.entries.iter().position(|entry| entry.provider.name() == provider.name());
        if at.is_some() && placement == Placement::New {
            return Err(RegistryError::DuplicateProvider(provider.name().into()));
        }
        // What a server offers is not in our hands: there a name that is taken is left out, and nothing else.
        if provider.owns_schemas() {
            check_names(&inner.entries, provider.name(), &catalogue.tools)?;
        }
        let watcher = tokio::spawn(self.clone().watch(provider.clone()));
        let known = listed || !catalogue.tools.is_empty();
        let entry = Entry { provider: provider.clone(), catalogue, known, listed, watcher };
        let replaced = match at {
            Some(at) => Some(std::mem::replace(&mut inner.entries[at], entry)),
            None => {
                inner.entries.push(entry);
                None
            }
        };
        self.publish(&mut inner);
        Ok(replaced)
    }

    async fn watch(self: Arc<Self>, provider: Arc<dyn ToolProvider>) {
        loop {
            provider.changed().await;
            self.take_list(&provider).await;
            self.heard.send_modify(|count| *count += 1);
        }
    }

    /// Takes the provider's list into a new snapshot and into the store, if it differs.
    async fn take_list(&self, provider: &Arc<dyn ToolProvider>) {
        let tools = match provider.list().await {
            Ok(tools) => owned(tools, provider.as_ref()),
            Err(error) => return tracing::debug!(%error, "keeping the tools that were known"),
        };
        let news = {
            let mut inner = self.lock();
            let Some(entry) = inner.entries.iter_mut().find(|entry| Arc::ptr_eq(&entry.provider, provider)) else {
                return;
            };
            entry.listed = true;
            let is_news = entry.catalogue.tools != tools || !entry.known;
            entry.known = true;
            if !is_news {
                return;
            }
            let catalogue = self.successor(provider, &entry.catalogue, tools);
            entry.catalogue.clone_from(&catalogue);
            self.publish(&mut inner);
            catalogue
        };
        self.keep(provider, &news).await;
    }

    /// The catalogue that follows the one `before`. Of a server's tools that say something else now it notes what.
    fn successor(&self, provider: &Arc<dyn ToolProvider>, before: &Catalogue, tools: Vec<Tool>) -> Catalogue {
        if provider.owns_schemas() {
            return Catalogue { tools, changes: Vec::new() };
        }
        let old: HashMap<&str, &Tool> = before.tools.iter().map(|tool| (tool.name().as_str(), tool)).collect();
        let mut noted: HashMap<&str, &DefinitionChange> =
            before.changes.iter().map(|change| (change.tool.as_str(), change)).collect();
        let (mut changes, at) = (Vec::new(), self.clock.now());
        for tool in &tools {
            let name = tool.name().as_str();
            let parts = old.get(name).map_or_else(Vec::new, |old| old.differences(tool));
            if parts.is_empty() {
                changes.extend(noted.remove(name).cloned());
                continue;
            }
            let what = parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            tracing::warn!(server = provider.name(), tool = name, what, "the definition of a tool has changed");
            changes.push(DefinitionChange { tool: name.to_owned(), parts, at });
        }
        changes.sort_by(|a, b| a.tool.cmp(&b.tool));
        Catalogue { tools, changes }
    }

    /// Keeps a catalogue for later runs, save the one that is compiled in.
    async fn keep(&self, provider: &Arc<dyn ToolProvider>, catalogue: &Catalogue) {
        if catalogue.tools.iter().all(|tool| *tool.source() != ToolSource::BuiltIn)
            && let Err(error) = self.repository.save_catalogue(&provider.identity(), catalogue, self.clock.now()).await
        {
            tracing::warn!(
                provider = provider.name(),
                error = &error as &dyn std::error::Error,
                "the catalogue is not kept"
            );
        }
    }

    /// Makes a snapshot of the entries. Compiled schemas of tools that did not change are taken over.
    fn publish(&self, inner: &mut MutexGuard<'_, Inner>) {
        let old = self.current.load_full();
        let Inner { entries, disabled, kept, .. } = &mut **inner;
        let offered = entries.iter().flat_map(|entry| entry.catalogue.tools.iter().map(|tool| (&entry.provider, tool)));
        let snapshot = Arc::new(old.successor(offered, disabled));
        for one in snapshot.left_out().iter().filter(|one| !old.left_out().contains(one)) {
            tracing::warn!(
                tool = one.tool,
                provider = one.provider,
                "the tool is left out: another provider has its name"
            );
        }
        if kept.len() == KEPT_SNAPSHOTS {
            kept.pop_front();
        }
        kept.push_back(old);
        let version = snapshot.version();
        self.current.store(snapshot);
        self.version.send_replace(version);
        self.heard.send_modify(|count| *count += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing panics while it is held; if something did, the entries are still whole.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn absent_servers(&self) -> impl Iterator<Item = AbsentServer> {
        let noted = self.absent.iter().map(|(server, why)| AbsentServer {
            server: server.clone(),
            why: why.clone(),
            shows_earlier_tools: false,
        });
        self.entries.iter().filter_map(Entry::absent).chain(noted)
    }

    /// The server that is not there and that the name may be meant for: the one with the longest name.
    fn absent_for(&self, name: &str) -> Option<AbsentServer> {
        let meant = self.absent_servers().filter(|absent| may_be_meant(&absent.server, name));
        meant.max_by_key(|absent| absent.server.len())
    }
}

impl Entry {
    /// Why its tools are not known in this run, where it is a server.
    fn absent(&self) -> Option<AbsentServer> {
        let why = match self.provider.state() {
            _ if self.provider.owns_schemas() => return None,
            ProviderState::Ready | ProviderState::Idle if self.listed => return None,
            ProviderState::Idle => AbsentServer::AT_REST.to_owned(),
            ProviderState::Ready | ProviderState::Connecting => AbsentServer::ON_ITS_WAY.to_owned(),
            ProviderState::Failed { reason } => format!("it is down: {reason}"),
            ProviderState::NeedsAuthorization { reason } => format!("it wants a login: {reason}"),
            ProviderState::Closed => "it was closed".to_owned(),
        };
        Some(AbsentServer {
            server: self.provider.name().to_owned(),
            why,
            shows_earlier_tools: !self.catalogue.tools.is_empty(),
        })
    }

    fn may_be_meant(&self, name: &str) -> bool {
        !self.provider.owns_schemas() && may_be_meant(self.provider.name(), name)
    }
}

/// Whether a name is one of the spellings of a tool of this server.
fn may_be_meant(server: &str, name: &str) -> bool {
    let after = |prefix: &str| name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix(server));
    [after("mcp__"), after("")].into_iter().flatten().any(|rest| rest.starts_with("__"))
        || after("mcp_").is_some_and(|rest| rest.starts_with('_'))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Placement {
    New,
    Replacing,
}

/// The provider's tools; none of them is built in but those of the built-in ones' own provider.
fn owned(tools: Vec<Tool>, provider: &dyn ToolProvider) -> Vec<Tool> {
    tools.into_iter().map(|tool| tool.owned_by(provider.name())).collect()
}

fn check_names(entries: &[Entry], provider: &str, tools: &[Tool]) -> Result<(), RegistryError> {
    for entry in entries.iter().filter(|entry| entry.provider.name() != provider) {
        let held: BTreeSet<_> = entry.catalogue.tools.iter().map(Tool::name).collect();
        if let Some(tool) = tools.iter().find(|tool| held.contains(tool.name())) {
            return Err(RegistryError::DuplicateTool {
                tool: tool.name().to_string(),
                provider: provider.into(),
                holder: entry.provider.name().into(),
            });
        }
    }
    Ok(())
}

/// A tool and who runs it, as handlers pass it on.
pub type Registered = Arc<RegisteredTool>;
