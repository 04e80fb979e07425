//! The live set of tools and their providers, as one immutable snapshot that readers share.

pub(crate) mod output_readers;
mod pinning;
pub mod snapshot;

use crate::definition_pins::{DefinitionPins, ServedTools};
use arc_swap::ArcSwap;
use snapshot::{RegisteredTool, ResolveError, ToolSnapshot};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::watch, task::JoinHandle};
use toolstead_domain::{
    Clock, DefinitionChange, Dialect, Principal, ProviderState, StoreError, StoredToolCatalogue, Tool, ToolProvider,
    ToolRepository, ToolSource,
};

/// Maximum number of old snapshots that are retained for cursors into them.
const KEPT_SNAPSHOTS: usize = 4;

/// All providers and their tools. Readers take a [`ToolSnapshot`] and never wait for a database or an upstream server.
///
/// Until a provider has listed its tools, the stored catalogue of its last run is used. The list is read again whenever
/// the provider reports a change.
///
/// ```
/// use std::sync::Arc;
/// use toolstead_application::tool_registry::ToolRegistry;
/// use toolstead_domain::testing::{
///     fixed_clock::FixedClock,
///     in_memory_tool_repository::InMemoryToolRepository,
///     samples::START,
///     scripted_provider::{ScriptedProvider, scripted_tool::ScriptedTool},
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = Arc::new(FixedClock::at(START));
/// let registry = ToolRegistry::new(Arc::new(InMemoryToolRepository::new()), clock).await?;
/// let provider = ScriptedProvider::new("team").with(ScriptedTool::named("greet"));
/// registry.register(Arc::new(provider)).await?;
/// assert!(registry.resolve("greet").is_ok());
/// # Ok(())
/// # }
/// ```
pub struct ToolRegistry {
    repository: Arc<dyn ToolRepository>,
    clock: Arc<dyn Clock>,
    /// Pinned definitions of servers; `None`: everything is served as it is offered.
    pins: Option<Arc<DefinitionPins>>,
    current: ArcSwap<ToolSnapshot>,
    inner: Mutex<Inner>,
    /// The current version, which rises with every snapshot.
    version: watch::Sender<u64>,
    /// Rises with every new snapshot, and with every notification of a provider.
    notices: watch::Sender<u64>,
}

#[derive(Default)]
struct Inner {
    entries: Vec<RegisteredProvider>,
    /// Configured servers that were not registered, each with the reason.
    absent: BTreeMap<String, String>,
    disabled: BTreeSet<String>,
    old_snapshots: VecDeque<Arc<ToolSnapshot>>,
    /// Set by [`ToolRegistry::close`]: nothing is added afterwards.
    is_closed: bool,
}

struct RegisteredProvider {
    provider: Arc<dyn ToolProvider>,
    catalogue: StoredToolCatalogue,
    /// Tools as the provider offered them in this run.
    offered: Vec<Tool>,
    /// Findings and changes of its definitions, for the operator.
    notes: Vec<String>,
    /// `true` if the provider itself has listed these tools, in this run or an earlier one.
    known: bool,
    /// `true` if the provider has listed its tools in this run.
    listed: bool,
    watcher: JoinHandle<()>,
}

/// The status of one provider, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderStatus {
    /// Name of the provider.
    pub name: String,
    /// Version of the provider, if it is an in-process provider that has one.
    pub version: Option<String>,
    /// State of the provider.
    pub state: ProviderState,
    /// Number of tools in its last known list.
    pub tools: usize,
    /// Last change of each tool's definition since the tool was first listed. Recorded only for MCP servers.
    pub changes: Vec<DefinitionChange>,
    /// Findings about its definitions, and changes that are not approved, as sentences without full stops.
    pub notes: Vec<String>,
}

/// A configured server that is unavailable, or that has not listed its tools in this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbsentServer {
    /// Name of the server.
    pub server: String,
    /// Reason, as a clause with the subject `it` and without a full stop, such as `it was closed`.
    pub why: String,
    /// `true` if the tools of its last known list are shown nevertheless.
    pub shows_earlier_tools: bool,
}

impl AbsentServer {
    /// Reason for a server that is still connecting.
    pub const ON_ITS_WAY: &str = "it is not connected yet";
    /// Reason for a server that starts on first use.
    pub const AT_REST: &str = "it is started when it is used";
}

/// The reason why a provider or tool cannot be registered.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A provider of this name is registered already. Replacing it must be explicit.
    #[error("a provider named `{0}` is registered already: use `replace` to put another in its place")]
    DuplicateProvider(String),
    /// Two providers offer a tool of this name.
    #[error("the tool `{tool}` of `{provider}` is offered by `{holder}` already")]
    DuplicateTool {
        /// Name of the tool.
        tool: String,
        /// The provider to be registered.
        provider: String,
        /// The provider that offers the tool already.
        holder: String,
    },
    /// No provider of this name is registered.
    #[error("no provider named `{0}` is registered")]
    UnknownProvider(String),
    /// The registry is closed permanently.
    #[error("the application is closed: tools cannot be added or removed any more")]
    Closed,
    /// The stored catalogue or the approved definitions could not be read.
    #[error("could not prepare the provider")]
    Store(#[from] StoreError),
}

impl std::fmt::Debug for ToolRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolRegistry").field("snapshot", &self.snapshot()).finish_non_exhaustive()
    }
}

impl ToolRegistry {
    /// Creates an empty registry that stores catalogues in `repository`.
    ///
    /// # Errors
    /// [`StoreError`] if the disabled tools cannot be read from the repository.
    pub async fn new(repository: Arc<dyn ToolRepository>, clock: Arc<dyn Clock>) -> Result<Arc<Self>, StoreError> {
        Self::with_pins(repository, clock, None).await
    }

    /// Creates an empty registry that stores catalogues in `repository`, and serves the definitions of servers in the
    /// form that `pins` has approved.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub async fn with_pins(
        repository: Arc<dyn ToolRepository>,
        clock: Arc<dyn Clock>,
        pins: Option<Arc<DefinitionPins>>,
    ) -> Result<Arc<Self>, StoreError> {
        let disabled = repository.disabled().await?.into_iter().collect();
        Ok(Arc::new(Self {
            repository,
            clock,
            pins,
            current: ArcSwap::from_pointee(ToolSnapshot::empty()),
            inner: Mutex::new(Inner { disabled, ..Default::default() }),
            version: watch::Sender::new(0),
            notices: watch::Sender::new(0),
        }))
    }

    /// Returns the current tools.
    pub fn snapshot(&self) -> Arc<ToolSnapshot> {
        self.current.load_full()
    }

    /// Returns the snapshot of this version, if it is still retained.
    pub(crate) fn snapshot_at(&self, version: u64) -> Option<Arc<ToolSnapshot>> {
        let current = self.snapshot();
        if current.version() == version {
            return Some(current);
        }
        self.lock().old_snapshots.iter().find(|snapshot| snapshot.version() == version).cloned()
    }

    /// Subscribes to changes of the set of tools. The value is the new version.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Subscribes to new snapshots and to notifications of providers, whose tools or state may have changed. The value
    /// is a count.
    pub fn notices(&self) -> watch::Receiver<u64> {
        self.notices.subscribe()
    }

    /// Adds a provider. When the function returns, the provider's known tools can be called.
    ///
    /// # Errors
    /// [`RegistryError`] if the name of the provider or of one of its tools is taken, if the store cannot be read, or
    /// after [`close`](Self::close). The provider is closed then. A tool of an MCP server whose name is taken does not
    /// cause an error: it is left out ([`ToolSnapshot::omitted_tools`]).
    pub async fn register(self: &Arc<Self>, provider: Arc<dyn ToolProvider>) -> Result<(), RegistryError> {
        self.put(provider, ProviderRegistrationMode::New).await
    }

    /// Replaces the provider of the same name and closes it, or adds the provider.
    ///
    /// # Errors
    /// Those of [`register`](Self::register), except that the name of the provider may be taken.
    pub async fn replace(self: &Arc<Self>, provider: Arc<dyn ToolProvider>) -> Result<(), RegistryError> {
        self.put(provider, ProviderRegistrationMode::Replacing).await
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

    /// Records that a server of this name is configured and will not be registered, because of `why`. Names that may
    /// belong to its tools never lead to a tool of another provider, except as canonical names.
    pub fn note_absent(&self, server: &str, why: &str) {
        self.lock().absent.insert(server.to_owned(), why.to_owned());
    }

    /// Resolves a name without a dialect: see [`resolve_in`](Self::resolve_in).
    ///
    /// # Errors
    /// [`ResolveError`].
    pub fn resolve(&self, name: &str) -> Result<SharedRegisteredTool, ResolveError> {
        self.resolve_in(None, name)
    }

    /// Resolves a name to a tool, as [`ToolSnapshot::resolve_in`] does. A name that may belong to a tool of an unavailable
    /// server never leads to a tool of another provider, unless it is the canonical name of that tool.
    ///
    /// # Errors
    /// [`ResolveError`].
    pub fn resolve_in(&self, dialect: Option<Dialect>, name: &str) -> Result<SharedRegisteredTool, ResolveError> {
        let snapshot = self.snapshot();
        let resolved = snapshot.resolve_in(dialect, name);
        if let Ok(found) = resolved
            && found.tool.name().as_str() == name
        {
            return Ok(found.clone());
        }
        match (resolved, self.lock().absent_for(name)) {
            (Ok(found), Some(absent)) if found.provider.name() == absent.server => Ok(found.clone()),
            (_, Some(absent)) => Err(ResolveError::Absent(absent)),
            (resolved, None) => resolved.cloned(),
        }
    }

    /// Returns the configured servers that are unavailable or have not listed their tools in this run, sorted by name.
    pub fn absent(&self) -> Vec<AbsentServer> {
        let inner = self.lock();
        let mut absent: Vec<AbsentServer> = inner.absent_servers().collect();
        absent.sort_by(|a, b| a.server.cmp(&b.server));
        absent
    }

    /// Reads the lists of providers again: of the named one, or of all. Starts idle servers. A list that cannot be read
    /// is not an error.
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

    /// Enables or disables the tool with this canonical name, in this run and later ones.
    ///
    /// # Errors
    /// [`StoreError`] if the change cannot be stored; nothing has changed then.
    pub async fn set_enabled(&self, tool: &str, enabled: bool) -> Result<(), StoreError> {
        self.repository.set_enabled(tool, enabled).await?;
        let mut inner = self.lock();
        let changed = if enabled { inner.disabled.remove(tool) } else { inner.disabled.insert(tool.into()) };
        if changed {
            self.publish(&mut inner);
        }
        Ok(())
    }

    /// Returns the status of every provider, in the order of registration.
    pub fn providers(&self) -> Vec<ProviderStatus> {
        let status = |entry: &RegisteredProvider| ProviderStatus {
            name: entry.provider.name().into(),
            version: entry.provider.version(),
            state: entry.provider.state(),
            tools: entry.catalogue.tools.len(),
            changes: entry.catalogue.changes.clone(),
            notes: entry.notes.clone(),
        };
        self.lock().entries.iter().map(status).collect()
    }

    /// Waits until every provider has listed its tools once, in this run or an earlier one, or is known to be
    /// unavailable, for at most `at_most`.
    pub async fn settled(&self, at_most: Duration) {
        self.wait_until(at_most, |entry| entry.known || entry.provider.state() != ProviderState::Connecting).await;
    }

    /// Waits like [`settled`](Self::settled), and also until each server whose tool the name may mean has listed its
    /// tools in this run. Starts such servers if they are idle.
    pub(crate) async fn settled_for(&self, name: &str, at_most: Duration) {
        let settled = |entry: &RegisteredProvider| match entry.provider.state() {
            ProviderState::Connecting | ProviderState::Ready | ProviderState::Idle if entry.could_own_tool(name) => {
                entry.listed
            }
            state => entry.known || state != ProviderState::Connecting,
        };
        let rest: Vec<_> = {
            let inner = self.lock();
            let rests = |entry: &&RegisteredProvider| {
                entry.provider.state() == ProviderState::Idle && entry.could_own_tool(name) && !entry.listed
            };
            inner.entries.iter().filter(rests).map(|entry| entry.provider.clone()).collect()
        };
        let started = async {
            futures::future::join_all(rest.iter().map(|provider| provider.refresh())).await;
            // The outcome arrives as a notification.
            std::future::pending().await
        };
        tokio::select! {
            () = self.wait_until(at_most, settled) => {}
            () = started => {}
        }
    }

    async fn wait_until(&self, at_most: Duration, settled: impl Fn(&RegisteredProvider) -> bool) {
        let mut heard = self.notices.subscribe();
        let all = async {
            loop {
                heard.mark_unchanged();
                if self.lock().entries.iter().all(&settled) || heard.changed().await.is_err() {
                    return;
                }
            }
        };
        // A late provider is not an error of the caller.
        let _ = tokio::time::timeout(at_most, all).await;
    }

    /// Closes all providers concurrently. None can be added or removed afterwards.
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

    /// Notifies every provider that a session has ended.
    pub async fn session_ended(&self, principal: &Principal, session: &str) {
        let providers: Vec<_> = self.lock().entries.iter().map(|entry| entry.provider.clone()).collect();
        futures::future::join_all(providers.iter().map(|provider| provider.session_ended(principal, session))).await;
    }

    async fn put(
        self: &Arc<Self>,
        provider: Arc<dyn ToolProvider>,
        placement: ProviderRegistrationMode,
    ) -> Result<(), RegistryError> {
        match self.add(&provider, placement).await {
            Ok(replaced) => {
                if let Some(replaced) = replaced {
                    replaced.watcher.abort();
                    replaced.provider.close().await;
                }
                Ok(())
            }
            Err(error) => {
                // This function owns the provider, so nothing else would stop what it has started.
                provider.close().await;
                Err(error)
            }
        }
    }

    /// Lists the tools of the provider, or reads its stored catalogue, and adds it. Returns the provider that it
    /// replaced.
    async fn add(
        self: &Arc<Self>,
        provider: &Arc<dyn ToolProvider>,
        placement: ProviderRegistrationMode,
    ) -> Result<Option<RegisteredProvider>, RegistryError> {
        // Checked before the store is read, which is closed as well by then.
        if self.lock().is_closed {
            return Err(RegistryError::Closed);
        }
        let listed = provider.list().await.map(|tools| owned(tools, provider.as_ref()));
        // The catalogue of an in-process provider needs no store.
        let stored = match &listed {
            Ok(_) if provider.owns_schemas() => StoredToolCatalogue::default(),
            Ok(_) | Err(_) => self.repository.catalogue(&provider.identity()).await?,
        };
        let (offered, is_listed) = match listed {
            Ok(tools) => (tools, true),
            Err(error) => {
                tracing::debug!(%error, "showing the stored catalogue");
                (Vec::new(), false)
            }
        };
        let (catalogue, notes) = match is_listed {
            true => {
                let ServedTools { tools, notes } = self.serve(provider, offered.clone()).await?;
                (self.successor(provider, &stored, &[], &offered, tools), notes)
            }
            false => {
                let ServedTools { tools, notes } = self.serve_stored(provider, stored.tools.clone()).await?;
                (StoredToolCatalogue { tools, changes: stored.changes.clone() }, notes)
            }
        };
        let is_news = is_listed && catalogue != stored;
        let kept = is_news.then(|| catalogue.clone());
        let new = NewProviderCatalogue { catalogue, offered, notes, is_listed };
        let replaced = self.place(provider, new, placement)?;
        if let Some(catalogue) = kept {
            self.keep(provider, &catalogue).await;
        }
        Ok(replaced)
    }

    /// Adds the provider to the set, and returns the one that it replaced.
    fn place(
        self: &Arc<Self>,
        provider: &Arc<dyn ToolProvider>,
        new: NewProviderCatalogue,
        placement: ProviderRegistrationMode,
    ) -> Result<Option<RegisteredProvider>, RegistryError> {
        let NewProviderCatalogue { catalogue, offered, notes, is_listed: listed } = new;
        let mut inner = self.lock();
        if inner.is_closed {
            return Err(RegistryError::Closed);
        }
        let at = inner.entries.iter().position(|entry| entry.provider.name() == provider.name());
        if at.is_some() && placement == ProviderRegistrationMode::New {
            return Err(RegistryError::DuplicateProvider(provider.name().into()));
        }
        // The catalogue of an upstream server is not under our control: only a tool whose name is taken is left out.
        if provider.owns_schemas() {
            check_names(&inner.entries, provider.name(), &catalogue.tools)?;
        }
        let watcher = tokio::spawn(self.clone().watch(provider.clone()));
        let known = listed || !catalogue.tools.is_empty();
        let entry =
            RegisteredProvider { provider: provider.clone(), catalogue, offered, notes, known, listed, watcher };
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
            self.notices.send_modify(|count| *count += 1);
        }
    }

    /// Reads the list of the provider. Publishes a new snapshot if its tools have changed, and stores its catalogue if
    /// that has changed. A failure is only logged.
    async fn take_list(&self, provider: &Arc<dyn ToolProvider>) {
        let offered = match provider.list().await {
            Ok(tools) => owned(tools, provider.as_ref()),
            Err(error) => return tracing::debug!(%error, "keeping the tools that were known"),
        };
        let ServedTools { tools, notes } = match self.serve(provider, offered.clone()).await {
            Ok(served) => served,
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                return tracing::warn!(provider = provider.name(), error, "the tools that were known are kept");
            }
        };
        let news = {
            let mut inner = self.lock();
            let Some(entry) = inner.entries.iter_mut().find(|entry| Arc::ptr_eq(&entry.provider, provider)) else {
                return;
            };
            entry.listed = true;
            let was_known = std::mem::replace(&mut entry.known, true);
            let catalogue = self.successor(provider, &entry.catalogue, &entry.offered, &offered, tools);
            (entry.offered, entry.notes) = (offered, notes);
            if was_known && entry.catalogue == catalogue {
                return;
            }
            let is_other_list = !was_known || entry.catalogue.tools != catalogue.tools;
            entry.catalogue.clone_from(&catalogue);
            if is_other_list {
                self.publish(&mut inner);
            }
            catalogue
        };
        self.keep(provider, &news).await;
    }

    /// Returns the catalogue that follows `before`. For a server, the catalogue records how the definitions that it
    /// offers now differ from those that it offered before, regardless of which ones are served.
    fn successor(
        &self,
        provider: &Arc<dyn ToolProvider>,
        before: &StoredToolCatalogue,
        offered_before: &[Tool],
        offered: &[Tool],
        tools: Vec<Tool>,
    ) -> StoredToolCatalogue {
        if provider.owns_schemas() {
            return StoredToolCatalogue { tools, changes: Vec::new() };
        }
        let by_name = |tools: &[Tool]| -> HashMap<String, Tool> {
            tools.iter().map(|tool| (tool.name().to_string(), tool.clone())).collect()
        };
        let (stored, old) = (by_name(&before.tools), by_name(offered_before));
        let mut noted: HashMap<&str, &DefinitionChange> =
            before.changes.iter().map(|change| (change.tool.as_str(), change)).collect();
        let (mut changes, at) = (Vec::new(), self.clock.now());
        for tool in offered {
            let name = tool.name().as_str();
            let old = old.get(name).or_else(|| stored.get(name));
            let parts = old.map_or_else(Vec::new, |old| old.differences(tool));
            // The stored definition is the approved one: its difference may have been noted in an earlier run.
            let is_noted = offered_before.is_empty() && noted.get(name).is_some_and(|noted| noted.parts == parts);
            if parts.is_empty() || is_noted {
                changes.extend(noted.remove(name).cloned());
                continue;
            }
            let what = parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            tracing::warn!(server = provider.name(), tool = name, what, "the definition of a tool has changed");
            changes.push(DefinitionChange { tool: name.to_owned(), parts, at });
        }
        changes.sort_by(|a, b| a.tool.cmp(&b.tool));
        StoredToolCatalogue { tools, changes }
    }

    /// Stores a catalogue for later runs, except that of the built-in tools.
    async fn keep(&self, provider: &Arc<dyn ToolProvider>, catalogue: &StoredToolCatalogue) {
        if catalogue.tools.iter().all(|tool| *tool.source() != ToolSource::BuiltIn)
            && let Err(error) = self.repository.save_catalogue(&provider.identity(), catalogue, self.clock.now()).await
        {
            tracing::warn!(
                provider = provider.name(),
                error = &error as &dyn std::error::Error,
                "the catalogue could not be stored"
            );
        }
    }

    /// Publishes a snapshot of the entries, retains the old one for cursors, and notifies subscribers. Unchanged tools
    /// and their compiled schemas are reused.
    fn publish(&self, inner: &mut MutexGuard<'_, Inner>) {
        let old = self.current.load_full();
        let Inner { entries, disabled, old_snapshots: kept, .. } = &mut **inner;
        let offered = entries.iter().flat_map(|entry| entry.catalogue.tools.iter().map(|tool| (&entry.provider, tool)));
        let snapshot = Arc::new(old.successor(offered, disabled));
        for one in snapshot.omitted_tools().iter().filter(|one| !old.omitted_tools().contains(one)) {
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
        self.notices.send_modify(|count| *count += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing panics while the lock is held; if something did, the entries are still complete.
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
        self.entries.iter().filter_map(RegisteredProvider::absent).chain(noted)
    }

    /// Returns the unavailable server with the longest name that prefixes this tool name.
    fn absent_for(&self, name: &str) -> Option<AbsentServer> {
        let meant = self.absent_servers().filter(|absent| has_server_prefix(&absent.server, name));
        meant.max_by_key(|absent| absent.server.len())
    }
}

impl RegisteredProvider {
    /// Returns the server with the reason why it is unavailable or its tools are not known in this run; `None` if
    /// neither is so, or if the provider is not a server.
    fn absent(&self) -> Option<AbsentServer> {
        let why = match self.provider.state() {
            _ if self.provider.owns_schemas() => return None,
            ProviderState::Ready | ProviderState::Idle if self.listed => return None,
            ProviderState::Idle => AbsentServer::AT_REST.to_owned(),
            ProviderState::Ready | ProviderState::Connecting => AbsentServer::ON_ITS_WAY.to_owned(),
            ProviderState::Failed { reason } => format!("it is down: {reason}"),
            ProviderState::NeedsAuthorization { reason } => format!("it needs a login: {reason}"),
            ProviderState::Closed => "it was closed".to_owned(),
        };
        Some(AbsentServer {
            server: self.provider.name().to_owned(),
            why,
            shows_earlier_tools: !self.catalogue.tools.is_empty(),
        })
    }

    fn could_own_tool(&self, name: &str) -> bool {
        !self.provider.owns_schemas() && has_server_prefix(self.provider.name(), name)
    }
}

/// Returns `true` if the name has one of the forms of a tool of this server.
fn has_server_prefix(server: &str, name: &str) -> bool {
    let after = |prefix: &str| name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix(server));
    [after("mcp__"), after("")].into_iter().flatten().any(|rest| rest.starts_with("__"))
        || after("mcp_").is_some_and(|rest| rest.starts_with('_'))
}

/// Catalogue of a provider that is placed in the registry.
struct NewProviderCatalogue {
    catalogue: StoredToolCatalogue,
    offered: Vec<Tool>,
    notes: Vec<String>,
    is_listed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ProviderRegistrationMode {
    New,
    Replacing,
}

/// Returns the tools with this provider as their source. Only tools of the provider of the built-in tools remain
/// built-in.
fn owned(tools: Vec<Tool>, provider: &dyn ToolProvider) -> Vec<Tool> {
    tools.into_iter().map(|tool| tool.owned_by(provider.name())).collect()
}

fn check_names(entries: &[RegisteredProvider], provider: &str, tools: &[Tool]) -> Result<(), RegistryError> {
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

/// A tool with its provider, shared by handlers.
pub type SharedRegisteredTool = Arc<RegisteredTool>;
