//! The browsers of an application: one per session, started when a call needs it, and ended when it is unused.

use crate::{
    browser::{
        devtools::CloseHandle,
        program::{self, BrowserLaunch, BrowserStartError},
        session::BrowserSession,
        shared_folder::SharedFolder,
        state::HostJudge,
    },
    egress::{
        connector::{Connector, Network, SystemNetwork},
        host::{Host, HostPatterns},
        proxy::{HostVerdictFn, ProxyLimits, ProxyPolicy},
    },
    sandbox::{
        launcher::{LaunchError, Launcher},
        writable_roots::WritableRoots,
    },
};
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::{Duration, Instant},
};
use tokio::{
    sync::{Mutex as AsyncMutex, OwnedMutexGuard},
    time::timeout,
};
use tokio_util::task::AbortOnDropHandle;
use toolstead_domain::{
    Access, CallPermissions, Principal, SandboxLimits, SandboxPolicy, Suggestion, ToolFailure, Verdict,
    error_chain::with_causes, error_kind::ErrorKind,
};

/// Maximum number of browsers at once. Each takes some hundred megabytes.
const MAX_BROWSERS: usize = 8;
/// Maximum number of browsers of one principal, so that others can start some, too.
const MAX_OF_ONE: usize = 6;
/// Maximum number of concurrent connections of a browser.
const CONNECTIONS: usize = 256;
/// Maximum traffic of a browser in its lifetime, in bytes.
const MAX_TRAFFIC: u64 = 4 << 30;

/// The settings that browsers are started with.
#[derive(Debug, Clone)]
pub struct BrowserSettings {
    /// Path or name of the browser (`[browser] program`); `None`: the first one found on the machine.
    pub program: Option<PathBuf>,
    /// Time after which an unused browser is ended.
    pub idle: Duration,
    /// Maximum time for the start.
    pub start_limit: Duration,
    /// Environment of the browser, which is constructed and never inherited.
    pub environment: BTreeMap<String, String>,
    /// Limits of the sandbox (`[limits]`).
    pub limits: SandboxLimits,
    /// `true` to refuse a kernel without Landlock.
    pub requires_landlock: bool,
    /// Folder with one subfolder per browser, which the browser shares with Toolstead. Created if it is missing.
    pub folder: PathBuf,
    /// Network that the browsers use.
    pub network: Arc<dyn Network>,
    /// Hosts that browsers may reach even in private networks.
    pub private_hosts: HostPatterns,
}

impl Default for BrowserSettings {
    fn default() -> Self {
        Self {
            program: None,
            idle: Duration::from_secs(300),
            start_limit: Duration::from_secs(60),
            environment: crate::child_environment::base(|_| None),
            limits: SandboxLimits::default(),
            requires_landlock: false,
            folder: std::env::temp_dir(),
            network: Arc::new(SystemNetwork::default()),
            private_hosts: HostPatterns::default(),
        }
    }
}

/// Result of a check that started a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedBrowser {
    /// Path of the program.
    pub program: PathBuf,
    /// Its product and version, as in `Chrome 156.0.8078.79`.
    pub product: String,
}

/// The owner of a browser.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct BrowserOwner {
    pub(crate) principal: Principal,
    pub(crate) session: String,
}

/// All browsers.
#[derive(Debug, Default)]
pub struct Browsers {
    settings: BrowserSettings,
    launcher: OnceLock<Launcher>,
    /// The reason why no browser could be started when the first browser tool was defined.
    missing: OnceLock<Option<String>>,
    running: Mutex<HashMap<BrowserOwner, Arc<BrowserSlot>>>,
}

/// The browser of one owner.
#[derive(Debug)]
struct BrowserSlot {
    session: Arc<AsyncMutex<Option<RunningBrowser>>>,
    /// Grant of the latest call. It also decides about pages that are loaded later.
    grant: Arc<Mutex<CallPermissions>>,
    used: Mutex<Instant>,
    /// Handle that ends the browser, even while a call uses it.
    end: Mutex<Option<CloseHandle>>,
}

#[derive(Debug)]
struct RunningBrowser {
    session: BrowserSession,
    folder: SharedFolder,
    /// Task that ends with the browser.
    _watching: AbortOnDropHandle<()>,
}

/// The browser of a session, reserved for one call. Other calls of the session wait.
pub(crate) struct BrowserLease {
    slot: Arc<BrowserSlot>,
    running: OwnedMutexGuard<Option<RunningBrowser>>,
}

impl Browsers {
    /// Creates the set with these settings. No browser is started yet.
    pub fn new(settings: BrowserSettings) -> Self {
        Self { settings, launcher: OnceLock::new(), missing: OnceLock::new(), running: Mutex::default() }
    }

    /// Returns the program that would be started if tools could write nowhere. Blocks.
    ///
    /// # Errors
    /// The reason why there is none, and what to do.
    pub fn found(&self) -> Result<PathBuf, String> {
        self.program(&WritableRoots::default())
    }

    /// Starts a browser as a call would, but without access to any host, reads its version and ends it. Takes at most
    /// twice `limit`.
    ///
    /// # Errors
    /// `unavailable` if no browser can be started here, `execution_failed` if the start failed.
    pub async fn check(&self, writable: &WritableRoots, limit: Duration) -> Result<CheckedBrowser, ToolFailure> {
        let program = self.program(writable).map_err(unavailable)?;
        let (judge, rules) = (Arc::new(|_: &str| Verdict::Deny), Arc::new(|_: &Host| Verdict::Deny));
        let (session, _folder) = self.session(program.clone(), judge, rules, "doctor".to_owned(), limit).await?;
        let failed = |reason: String| ToolFailure::new(ErrorKind::ExecutionFailed, reason);
        match timeout(limit, session.product()).await {
            Ok(product) => Ok(CheckedBrowser { program, product: product.map_err(|error| failed(error.to_string()))? }),
            Err(_) => Err(failed("the browser started, and did not answer in time".into())),
        }
    }

    /// Returns the reason why no browser could be started at the first call of this function, and what to do. Blocks.
    pub(crate) fn unavailable(&self, writable: &WritableRoots) -> Option<String> {
        self.missing.get_or_init(|| self.program(writable).err()).clone()
    }

    fn program(&self, writable: &WritableRoots) -> Result<PathBuf, String> {
        let path = self.settings.environment.get("PATH").map_or("", String::as_str);
        program::find(self.settings.program.as_deref(), path, writable)
    }

    /// Returns the browser of a session, and starts it if there is none. From now on this grant decides about its
    /// pages.
    ///
    /// # Errors
    /// `unavailable` if a browser cannot be started here, `execution_failed` if the start failed.
    pub(crate) async fn lease(
        &self,
        owner: &BrowserOwner,
        grant: &CallPermissions,
        call: String,
        writable: &WritableRoots,
    ) -> Result<BrowserLease, ToolFailure> {
        let place = self.reserve_slot(owner, grant)?;
        let mut running = place.session.clone().lock_owned().await;
        *lock(&place.grant) = grant.clone();
        if running.as_ref().is_some_and(|running| running.session.has_ended()) {
            *running = None;
        }
        if running.is_none() {
            let started = self.start(&place, call, writable).await?;
            *lock(&place.end) = Some(started.session.close_handle());
            *running = Some(started);
        }
        Ok(BrowserLease { slot: place, running })
    }

    /// Returns the running browser of a session. From now on, this grant decides about its pages.
    ///
    /// # Errors
    /// `not_found` if no page is open.
    pub(crate) async fn lease_running(
        &self,
        owner: &BrowserOwner,
        grant: &CallPermissions,
    ) -> Result<BrowserLease, ToolFailure> {
        let place = lock(&self.running).get(owner).cloned();
        if let Some(place) = place {
            let running = place.session.clone().lock_owned().await;
            if running.as_ref().is_some_and(|running| !running.session.has_ended()) {
                *lock(&place.grant) = grant.clone();
                return Ok(BrowserLease { slot: place, running });
            }
        }
        Err(ToolFailure::new(ErrorKind::NotFound, "no page is open in this session")
            .next("`browser_navigate` opens one. A browser ends with its session, or after some time without use."))
    }

    /// Reads from the browser of a session without waiting. Returns `None` if there is no browser, and while a call
    /// uses the browser: accesses are then checked after that call.
    pub(crate) fn now<T>(&self, owner: &BrowserOwner, read: impl FnOnce(&BrowserSession) -> T) -> Option<T> {
        let place = lock(&self.running).get(owner).cloned()?;
        let running = place.session.try_lock().ok()?;
        running.as_ref().map(|running| read(&running.session))
    }

    /// Returns the handle that ends a session's browser.
    #[cfg(test)]
    pub(crate) fn end_of(&self, owner: &BrowserOwner) -> Option<CloseHandle> {
        lock(&lock(&self.running).get(owner)?.end).clone()
    }

    /// Ends the browser of a session that has ended.
    pub(crate) fn end_session(&self, principal: &Principal, session: &str) {
        self.end(&BrowserOwner { principal: principal.clone(), session: session.to_owned() });
    }

    /// Ends all browsers.
    pub(crate) fn end_all(&self) {
        for place in std::mem::take(&mut *lock(&self.running)).into_values() {
            if let Some(end) = lock(&place.end).take() {
                end.close();
            }
        }
    }

    /// Ends the browser of a session, even while a call uses it. Returns `false` if there is none.
    pub(crate) fn end(&self, owner: &BrowserOwner) -> bool {
        let Some(place) = lock(&self.running).remove(owner) else { return false };
        let end = lock(&place.end).take();
        end.is_some_and(|end| end.close())
    }

    /// Returns the entry of the owner, and creates it if the limits allow it.
    fn reserve_slot(&self, owner: &BrowserOwner, grant: &CallPermissions) -> Result<Arc<BrowserSlot>, ToolFailure> {
        let mut running = lock(&self.running);
        // Browsers that ended by themselves do not count.
        let is_used = |session: Option<&RunningBrowser>| session.is_some_and(|running| !running.session.has_ended());
        running.retain(|known, place| {
            let is_held = known == owner || Arc::strong_count(place) > 1;
            is_held || place.session.try_lock().map_or(true, |session| is_used(session.as_ref()))
        });
        if let Some(place) = running.get(owner) {
            return Ok(place.clone());
        }
        let own = running.keys().filter(|known| known.principal == owner.principal).count();
        if running.len() >= MAX_BROWSERS || own >= MAX_OF_ONE {
            let message = match own >= MAX_OF_ONE {
                true => format!("you already run {MAX_OF_ONE} browsers, the maximum per principal"),
                false => format!("{MAX_BROWSERS} browsers already run, which is the maximum"),
            };
            return Err(ToolFailure::new(ErrorKind::RateLimited, message).next(format!(
                "A browser ends with its session, by `browser_close`, or after {} seconds without use.",
                self.settings.idle.as_secs()
            )));
        }
        let place = Arc::new(BrowserSlot {
            session: Arc::default(),
            grant: Arc::new(Mutex::new(grant.clone())),
            used: Mutex::new(Instant::now()),
            end: Mutex::default(),
        });
        running.insert(owner.clone(), place.clone());
        Ok(place)
    }

    async fn start(
        &self,
        place: &Arc<BrowserSlot>,
        call: String,
        writable: &WritableRoots,
    ) -> Result<RunningBrowser, ToolFailure> {
        let program = self.program(writable).map_err(unavailable)?;
        let (judging, rules) = (place.grant.clone(), place.grant.clone());
        let judge: HostJudge = Arc::new(move |host| {
            let (grant, access) = (lock(&judging), Access::ReachHost(host.into()));
            match grant.permits(&access) {
                true => Verdict::Allow,
                // No approver is available any more.
                false => grant.objection(&access).max(Verdict::Ask),
            }
        });
        let rules: Arc<HostVerdictFn> =
            Arc::new(move |host| lock(&rules).objection(&Access::ReachHost(host.to_string().into())));
        let (session, folder) = self.session(program, judge, rules, call, self.settings.start_limit).await?;
        let watching = tokio::spawn(watch(Arc::downgrade(place), session.close_handle(), self.settings.idle));
        Ok(RunningBrowser { session, folder, _watching: AbortOnDropHandle::new(watching) })
    }

    /// Starts a browser. `judge` decides about pages, `rules` about all other requests.
    async fn session(
        &self,
        program: PathBuf,
        judge: HostJudge,
        rules: Arc<HostVerdictFn>,
        call: String,
        limit: Duration,
    ) -> Result<(BrowserSession, SharedFolder), ToolFailure> {
        let settings = &self.settings;
        let failed = |message: &str| ToolFailure::new(ErrorKind::ExecutionFailed, message.to_owned());
        let folder = SharedFolder::make(settings.folder.clone()).await;
        let folder =
            folder.map_err(|error| failed("the folder of the browser could not be created").caused_by(error))?;
        let launcher =
            self.launcher().map_err(|error| failed("this process cannot start programs").caused_by(error))?;
        let file = program.clone();
        let program = BrowserLaunch {
            launcher: launcher.clone(),
            file: program,
            policy: SandboxPolicy {
                limits: settings.limits.clone(),
                ..SandboxPolicy::closed(settings.environment.clone())
            },
            folder: folder.path().to_path_buf(),
            connector: Connector::new(settings.network.clone(), settings.private_hosts.clone()),
            proxy: ProxyPolicy {
                call: call.into(),
                hosts: HostPatterns::all(),
                rules,
                announced: Some(Arc::default()),
                limits: ProxyLimits { connections: CONNECTIONS, bytes: Some(MAX_TRAFFIC), ..ProxyLimits::default() },
            },
        };
        let started = BrowserSession::start(program, judge, limit).await;
        Ok((started.map_err(|error| not_started(&file, error))?, folder))
    }

    fn launcher(&self) -> std::io::Result<&Launcher> {
        if let Some(launcher) = self.launcher.get() {
            return Ok(launcher);
        }
        let started = Launcher::start()?.requiring_landlock(self.settings.requires_landlock);
        let started = started.for_user(self.settings.environment.get("HOME").map(Path::new));
        Ok(self.launcher.get_or_init(|| started))
    }
}

impl BrowserLease {
    /// Returns the browser.
    ///
    /// # Errors
    /// Never while the lease exists.
    pub(crate) fn session(&self) -> Result<&BrowserSession, ToolFailure> {
        let gone = || ToolFailure::new(ErrorKind::Internal, "the browser has ended");
        self.running.as_ref().map(|running| &running.session).ok_or_else(gone)
    }

    /// Returns the folder that the browser shares with Toolstead.
    ///
    /// # Errors
    /// Never while the lease exists.
    pub(crate) fn folder(&self) -> Result<&SharedFolder, ToolFailure> {
        let gone = || ToolFailure::new(ErrorKind::Internal, "the browser has ended");
        self.running.as_ref().map(|running| &running.folder).ok_or_else(gone)
    }
}

impl Drop for BrowserLease {
    fn drop(&mut self) {
        *lock(&self.slot.used) = Instant::now();
    }
}

/// Ends a browser that was not used for this time, and cleans up after one that ended by itself.
async fn watch(place: Weak<BrowserSlot>, end: CloseHandle, idle: Duration) {
    loop {
        let Some(held) = place.upgrade() else { return };
        let left = idle.saturating_sub(lock(&held.used).elapsed());
        if left.is_zero() {
            // A call that uses the browser now extends its time.
            if let Ok(mut running) = held.session.try_lock() {
                *running = None;
                return;
            }
            *lock(&held.used) = Instant::now();
            continue;
        }
        drop(held);
        if timeout(left, end.closed()).await.is_ok() {
            break;
        }
    }
    let Some(held) = place.upgrade() else { return };
    // The call that uses the browser receives an error, and releases it.
    let mut running = held.session.lock().await;
    if let Some(ended) = running.as_ref().filter(|running| running.session.has_ended()) {
        ended.session.log_ending().await;
        *running = None;
    }
}

fn unavailable(reason: String) -> ToolFailure {
    ToolFailure::new(ErrorKind::Unavailable, reason)
}

/// Returns the failure of a call for which no browser started.
fn not_started(program: &Path, error: BrowserStartError) -> ToolFailure {
    match &error {
        BrowserStartError::Launch(LaunchError::Unconfinable { missing, remedy }) => {
            let message = format!("no browser can be started, because it could not be confined: {missing}");
            let suggestion = Suggestion::PrepareMachine(remedy.clone());
            ToolFailure::new(ErrorKind::Unavailable, message).suggest(suggestion).caused_by(error)
        }
        BrowserStartError::NoNetwork => ToolFailure::new(ErrorKind::Unavailable, error.to_string()),
        _ => {
            // How a browser ended is logged with its exit status.
            if let BrowserStartError::Silent { .. } = &error {
                tracing::warn!(program = %program.display(), "{error}");
            }
            let message = format!("`{}` could not be started: {}", program.display(), with_causes(&error));
            let suggestion = Suggestion::PrepareMachine("set `[browser] program` to another browser".into());
            ToolFailure::new(ErrorKind::ExecutionFailed, message).suggest(suggestion).caused_by(error)
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while the lock is held.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for BrowserLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrowserLease").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Map;
    use toolstead_domain::{Category, PermissionPolicy, Suggestion, Tool, ToolName, ToolSource};

    #[tokio::test]
    async fn one_principal_cannot_occupy_all_browser_slots() {
        let tool = Tool::new(ToolName::parse("t").unwrap(), Map::new(), Category::Web, ToolSource::BuiltIn);
        let grant = CallPermissions::new(Arc::new(PermissionPolicy::default()), Arc::new(tool), Vec::new());
        let browsers = Browsers::default();
        let asks = |who: &str, session: usize| {
            let owner = BrowserOwner { principal: Principal::token(who), session: session.to_string() };
            browsers.reserve_slot(&owner, &grant)
        };
        let mut held: Vec<Arc<BrowserSlot>> = (0..MAX_OF_ONE).map(|session| asks("ann", session).unwrap()).collect();
        let refused = asks("ann", MAX_OF_ONE).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::RateLimited);
        assert!(refused.message.contains("you already run 6 browsers"), "{}", refused.message);
        held.push(asks("ann", 0).unwrap());
        held.extend((0..MAX_BROWSERS - MAX_OF_ONE).map(|session| asks("bob", session).unwrap()));
        let refused = asks("eve", 0).unwrap_err();
        assert!(refused.message.contains("8 browsers already run"), "{}", refused.message);
        // An entry that no call holds and that never started a browser does not count.
        drop(held);
        asks("eve", 0).unwrap();
    }

    #[test]
    fn a_failed_confinement_is_reported_as_unavailable_with_a_suggestion() {
        let error = LaunchError::Unconfinable { missing: "no namespaces".into(), remedy: "allow them".into() };
        let failure = not_started(Path::new("/usr/bin/chromium"), error.into());
        assert_eq!(failure.kind, ErrorKind::Unavailable);
        let text = failure.text();
        assert!(text.contains("could not be confined: no namespaces") && !text.contains("allow them"), "{text}");
        assert_eq!(failure.suggestion.as_deref(), Some(&Suggestion::PrepareMachine("allow them".into())));
    }
}
