//! The browsers of an application: one a session, started when a call needs it, ended when nobody does.

use crate::{
    browser::{
        program::{self, NotStarted, Program},
        session::Session,
        shared_folder::SharedFolder,
        state::HostJudge,
    },
    sandbox::{
        egress::{
            connector::{Connector, Network, SystemNetwork},
            host::{Host, HostPatterns},
            proxy::{ProxyLimits, ProxyPolicy},
        },
        launcher::Launcher,
        writable::WritableRoots,
    },
};
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::{Duration, Instant},
};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use toolstead_domain::{
    access::Access,
    error_kind::ErrorKind,
    permission::{decision::Verdict, grant::Grant},
    principal::Principal,
    sandbox_policy::{SandboxLimits, SandboxPolicy},
    tool_failure::ToolFailure,
};

/// Browsers at once. Each takes some hundred megabytes.
const MAX_BROWSERS: usize = 8;
/// Connections of a browser at once.
const CONNECTIONS: usize = 256;
/// A browser passes on so much in its life, in bytes.
const MAX_TRAFFIC: u64 = 4 << 30;

/// The settings that browsers are started with.
#[derive(Debug, Clone)]
pub struct BrowserSettings {
    /// The program (`[browser] program`); `None`: the first one of the machine.
    pub program: Option<PathBuf>,
    /// A browser that nobody used for so long ends.
    pub idle: Duration,
    /// The environment that it starts from: built, never inherited.
    pub environment: BTreeMap<String, String>,
    /// The bounds (`[limits]`).
    pub limits: SandboxLimits,
    /// True where a kernel without Landlock is refused.
    pub requires_landlock: bool,
    /// The folder in which each browser has one that it shares with us; made where it is missing.
    pub folder: PathBuf,
    /// The way to hosts.
    pub network: Arc<dyn Network>,
    /// The hosts that may lie in private networks.
    pub private_hosts: HostPatterns,
}

impl Default for BrowserSettings {
    fn default() -> Self {
        Self {
            program: None,
            idle: Duration::from_secs(300),
            environment: crate::sandbox::child_environment::base(|_| None),
            limits: SandboxLimits::default(),
            requires_landlock: false,
            folder: std::env::temp_dir(),
            network: Arc::new(SystemNetwork::default()),
            private_hosts: HostPatterns::default(),
        }
    }
}

/// The one whose browser it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    pub(crate) principal: Principal,
    pub(crate) session: String,
}

/// All browsers.
#[derive(Debug, Default)]
pub struct Browsers {
    settings: BrowserSettings,
    launcher: OnceLock<Launcher>,
    running: Mutex<HashMap<Owner, Arc<Place>>>,
}

/// The browser of one owner.
#[derive(Debug)]
struct Place {
    session: Arc<AsyncMutex<Option<Running>>>,
    /// The grant of the latest call, by which pages are judged that come later.
    grant: Arc<Mutex<Grant>>,
    used: Mutex<Instant>,
}

#[derive(Debug)]
struct Running {
    session: Session,
    folder: SharedFolder,
}

/// The browser of a session, for one call; others of the session wait.
pub(crate) struct Lease {
    place: Arc<Place>,
    running: OwnedMutexGuard<Option<Running>>,
}

impl Browsers {
    /// Browsers under these settings. None is started yet.
    pub fn new(settings: BrowserSettings) -> Self {
        Self { settings, launcher: OnceLock::new(), running: Mutex::default() }
    }

    /// The program that is started where no tool can write to it. Blocks.
    ///
    /// # Errors
    /// Why there is none, with what helps.
    pub fn found(&self) -> Result<PathBuf, String> {
        self.program(&WritableRoots::default())
    }

    /// Why there can be none, with what helps. Blocks.
    pub(crate) fn unavailable(&self, writable: &WritableRoots) -> Option<String> {
        self.program(writable).err()
    }

    fn program(&self, writable: &WritableRoots) -> Result<PathBuf, String> {
        let path = self.settings.environment.get("PATH").map_or("", String::as_str);
        program::find(self.settings.program.as_deref(), path, writable)
    }

    /// The browser of a session, started where there is none. From now on its pages are judged by this grant.
    ///
    /// # Errors
    /// `unavailable` where it cannot be started here, `execution_failed` where it was not.
    pub(crate) async fn of(
        &self,
        owner: &Owner,
        grant: &Grant,
        call: String,
        writable: &WritableRoots,
    ) -> Result<Lease, ToolFailure> {
        let place = self.place(owner, grant)?;
        let mut running = place.session.clone().lock_owned().await;
        *lock(&place.grant) = grant.clone();
        if running.as_ref().is_some_and(|running| running.session.has_ended()) {
            *running = None;
        }
        if running.is_none() {
            *running = Some(self.start(&place, call, writable).await?);
            let idle = self.settings.idle;
            tokio::spawn(end_when_idle(Arc::downgrade(&place), idle));
        }
        Ok(Lease { place, running })
    }

    /// The browser of a session, where there is one.
    ///
    /// # Errors
    /// `not_found` where no page is open.
    pub(crate) async fn open_one(&self, owner: &Owner, grant: &Grant) -> Result<Lease, ToolFailure> {
        let place = lock(&self.running).get(owner).cloned();
        if let Some(place) = place {
            let running = place.session.clone().lock_owned().await;
            if running.as_ref().is_some_and(|running| !running.session.has_ended()) {
                *lock(&place.grant) = grant.clone();
                return Ok(Lease { place, running });
            }
        }
        Err(ToolFailure::new(ErrorKind::NotFound, "no page is open in this session").next(
            "`browser_navigate` opens one. A browser ends with its session, and when nobody uses it for a while.",
        ))
    }

    /// The host of the page that is open, if one is.
    pub(crate) fn host(&self, owner: &Owner) -> Option<String> {
        let place = lock(&self.running).get(owner).cloned()?;
        // A call that works with it right now holds it; then the page is told by the next call's judge.
        let running = place.session.try_lock().ok()?;
        running.as_ref()?.session.state().current()?.host()
    }

    /// The events of a session's browser, which end with it.
    #[cfg(test)]
    pub(crate) async fn changes(&self, owner: &Owner) -> Option<tokio::sync::watch::Receiver<u64>> {
        let place = lock(&self.running).get(owner).cloned()?;
        let running = place.session.lock().await;
        running.as_ref().map(|running| running.session.changes())
    }

    /// Ends the browser of a session that is over.
    pub(crate) fn end_session(&self, principal: &Principal, session: &str) {
        self.end(&Owner { principal: principal.clone(), session: session.to_owned() });
    }

    /// Ends all browsers.
    pub(crate) fn end_all(&self) {
        let ended = std::mem::take(&mut *lock(&self.running));
        drop(ended);
    }

    /// Ends the browser of a session.
    pub(crate) fn end(&self, owner: &Owner) {
        lock(&self.running).remove(owner);
    }

    /// The owner's place, made where there is none and room for one.
    fn place(&self, owner: &Owner, grant: &Grant) -> Result<Arc<Place>, ToolFailure> {
        let mut running = lock(&self.running);
        // Those that ended by themselves take no room.
        running.retain(|known, place| {
            known == owner || place.session.try_lock().map_or(true, |session| session.is_some())
        });
        if let Some(place) = running.get(owner) {
            return Ok(place.clone());
        }
        if running.len() >= MAX_BROWSERS {
            let message = format!("{MAX_BROWSERS} browsers run already, and no more are started");
            return Err(ToolFailure::new(ErrorKind::RateLimited, message).next(format!(
                "One ends when its session does, by `browser_close`, or when nobody used it for {} seconds.",
                self.settings.idle.as_secs()
            )));
        }
        let place = Arc::new(Place {
            session: Arc::default(),
            grant: Arc::new(Mutex::new(grant.clone())),
            used: Mutex::new(Instant::now()),
        });
        running.insert(owner.clone(), place.clone());
        Ok(place)
    }

    async fn start(&self, place: &Place, call: String, writable: &WritableRoots) -> Result<Running, ToolFailure> {
        let settings = &self.settings;
        let unavailable = |reason: String| ToolFailure::new(ErrorKind::Unavailable, reason);
        let file = self.program(writable).map_err(unavailable)?;
        let failed = |message: &str| ToolFailure::new(ErrorKind::ExecutionFailed, message.to_owned());
        let folder = SharedFolder::make(settings.folder.clone()).await;
        let folder = folder.map_err(|error| failed("the folder of the browser could not be made").caused_by(error))?;
        let launcher = self.launcher().map_err(|error| failed("no program can be started here").caused_by(error))?;
        let (judging, rules) = (place.grant.clone(), place.grant.clone());
        let judge: HostJudge = Arc::new(move |host| {
            if lock(&judging).permits(&Access::ReachHost(host.into())) {
                return Ok(());
            }
            Err(format!(
                "A page of `{host}` was not opened: `browser_navigate` asks for it, and the rule \
                 `WebFetch(domain:{host})` would allow it."
            ))
        });
        let program = Program {
            launcher: launcher.clone(),
            file,
            policy: SandboxPolicy {
                limits: settings.limits.clone(),
                ..SandboxPolicy::closed(settings.environment.clone())
            },
            folder: folder.path().to_path_buf(),
            connector: Connector::new(settings.network.clone(), settings.private_hosts.clone()),
            proxy: ProxyPolicy {
                call: call.into(),
                hosts: HostPatterns::everything(),
                rules: Arc::new(move |host: &Host| -> Verdict {
                    lock(&rules).objection(&Access::ReachHost(host.to_string().into()))
                }),
                limits: ProxyLimits { connections: CONNECTIONS, bytes: Some(MAX_TRAFFIC), ..ProxyLimits::default() },
            },
        };
        let session = Session::start(program, judge).await.map_err(|error| match &error {
            NotStarted::NoNetwork => unavailable(error.to_string()),
            _ => failed("the browser could not be started").caused_by(error),
        })?;
        Ok(Running { session, folder })
    }

    fn launcher(&self) -> std::io::Result<&Launcher> {
        if let Some(launcher) = self.launcher.get() {
            return Ok(launcher);
        }
        let started = Launcher::start()?.requiring_landlock(self.settings.requires_landlock);
        Ok(self.launcher.get_or_init(|| started))
    }
}

impl Lease {
    /// The browser.
    ///
    /// # Errors
    /// Never while it is leased.
    pub(crate) fn session(&self) -> Result<&Session, ToolFailure> {
        let gone = || ToolFailure::new(ErrorKind::Internal, "the browser is gone");
        self.running.as_ref().map(|running| &running.session).ok_or_else(gone)
    }

    /// The folder that the browser shares with us.
    ///
    /// # Errors
    /// Never while it is leased.
    pub(crate) fn folder(&self) -> Result<&SharedFolder, ToolFailure> {
        let gone = || ToolFailure::new(ErrorKind::Internal, "the browser is gone");
        self.running.as_ref().map(|running| &running.folder).ok_or_else(gone)
    }

    /// Ends the browser.
    pub(crate) fn end(mut self) {
        *self.running = None;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        *lock(&self.place.used) = Instant::now();
    }
}

/// Ends a browser when nobody has used it for so long.
async fn end_when_idle(place: Weak<Place>, idle: Duration) {
    loop {
        let Some(held) = place.upgrade() else { return };
        let used = *lock(&held.used);
        let left = idle.saturating_sub(used.elapsed());
        if left.is_zero() {
            // Who uses it right now keeps it.
            if let Ok(mut running) = held.session.try_lock() {
                *running = None;
                return;
            }
            *lock(&held.used) = Instant::now();
            continue;
        }
        drop(held);
        tokio::time::sleep(left).await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it is held.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").finish_non_exhaustive()
    }
}
