//! The only module that starts child processes.
#![expect(unsafe_code, reason = "code that a child runs between fork and exec cannot be set in any other way")]

mod confined_run;
mod gate;
mod path_lookups;
mod time_limit;
mod unreaped_child;

pub use crate::sandbox::launch::{ChildInput, Exit, LaunchError, LaunchSpec, ProcessSignal};
use crate::sandbox::{
    run_request::{self, LauncherSettings},
    tier::SandboxTier,
    toolchains::toolchain_cache::LinkAndInterpreterCache,
    writable_roots::{PathKindCache, WritableRoots},
    zygote::{ConfinementLayers, Zygote, ZygoteError, Zygotes, request::RunRequest},
};
use confined_run::{ConfinedRun, RunListeningSockets};
use futures::future::BoxFuture;
use gate::ConfinementProbeCache;
use path_lookups::PathLookupLimiter;
use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    pipe::{PipeFlags, pipe_with},
    process::Signal,
};
use std::{
    collections::BTreeMap,
    env, fmt,
    fs::File,
    io,
    net::TcpListener,
    os::{
        fd::OwnedFd,
        unix::{fs::PermissionsExt, net::UnixListener},
    },
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};
use time_limit::TimeLimit;
use tokio::{net::unix::pipe, sync::oneshot, time::timeout};
use toolstead_domain::{Confinement, FileDescriptorExhaustion, error_chain::with_causes};
use unreaped_child::{UnreapedChild, is_reaped, start_program};

/// Time that a child has to end by itself once its input is closed.
const TIME_FOR_END_OF_INPUT: Duration = Duration::from_millis(500);
/// Maximum time to wait for a killed child.
const TIME_FOR_KILLS: Duration = Duration::from_secs(1);
/// Interval at which killed children are checked until they have ended.
const REAPING_INTERVAL: Duration = Duration::from_millis(5);

/// Starts child processes from a thread of its own, which lives as long as a launcher or one of its children.
///
/// The thread is necessary because the death signal of a child is bound to the thread that forked it, and threads of an
/// async runtime may end at any time. With it, a child ends even if the runtime is killed with `SIGKILL`. Cloning is
/// cheap.
#[derive(Debug, Clone)]
pub struct Launcher {
    orders: mpsc::Sender<LaunchThreadCommand>,
    /// State of the launching thread. It lives as long as any launcher does.
    thread_state: Weak<LaunchThreadState>,
    shared: &'static SharedLauncherState,
    requires_landlock: bool,
    /// `true` if tier 2 is sufficient.
    allows_tier_2: bool,
    /// Home folder of the user. `None` if there is none.
    home: Option<Arc<Path>>,
    /// Roots that other programs write to, in addition to those of a run.
    other_roots: Arc<[PathBuf]>,
}

/// State that all launchers of a process share.
#[derive(Debug)]
pub(super) struct SharedLauncherState {
    pub(super) zygotes: Zygotes,
    /// Known tiers of this machine: for launchers that require all layers, and for those that accept tier 2.
    gates: [ConfinementProbeCache; 2],
    /// Limiter of the concurrent lookups that resolve the paths of a child, on threads of their own. A disk that does
    /// not respond then blocks no thread of the async runtime.
    path_lookups: PathLookupLimiter,
    /// Links and interpreters that earlier runs found, for folders that have not changed since.
    toolchain_cache: LinkAndInterpreterCache,
}

impl SharedLauncherState {
    /// Creates the state. `trying` determines the tier of this machine.
    pub(super) const fn new(trying: TierProbe) -> Self {
        Self {
            zygotes: Zygotes::new(),
            gates: [ConfinementProbeCache::new(trying), ConfinementProbeCache::new(trying)],
            path_lookups: PathLookupLimiter::new(64, Duration::from_secs(30)),
            toolchain_cache: LinkAndInterpreterCache::new(),
        }
    }
}

/// Function that determines how well the programs of a launcher can be confined.
pub(super) type TierProbe = for<'a> fn(&'a Launcher) -> BoxFuture<'a, SandboxTier>;

/// A running child: the leader of its own session and process group.
///
/// Dropping it kills the whole group. For a confined child, it kills all processes that the child started.
#[derive(Debug)]
pub struct Child {
    /// Standard input. The writer takes it.
    pub stdin: Option<pipe::Sender>,
    /// Standard output. The reader takes it.
    pub stdout: Option<pipe::Receiver>,
    /// Standard error. The reader takes it.
    pub stderr: Option<pipe::Receiver>,
    /// Listener in the child's own network, if the network is limited to hosts. `HTTP_PROXY` of the child points to it,
    /// and it is the child's only connection to the outside. The proxy takes it.
    pub proxy: Option<TcpListener>,
    /// Listening socket, if the policy offers tools. Only the program `tool` of this run can connect to it. It does not
    /// block. The code that makes the calls takes it.
    pub tools: Option<UnixListener>,
    process: RunningProcess,
    time: Option<TimeLimit>,
}

/// State of the launching thread that other threads may use directly.
#[derive(Debug, Default)]
struct LaunchThreadState {
    /// Running zygotes, set once they are started.
    zygotes: [OnceLock<Arc<Zygote>>; 2],
    /// Number of sessions that have ended and whose release has not been sent to the zygotes yet.
    releases: AtomicUsize,
}

/// Places that the program of a child may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProgramPlacePolicy {
    /// Any place that the specification names.
    Anywhere,
    /// Only places that no run writes to.
    Outside { sees_whole_path: bool },
}

enum LaunchThreadCommand {
    Launch {
        prepared: Box<PreparedLaunch>,
        launcher: Launcher,
        reply: oneshot::Sender<Result<StartedChild, LaunchError>>,
    },
    /// A child that was killed and not reaped.
    Reap(OwnedFd),
    /// A confined run that was requested to end. It is killed if it does not.
    End(OwnedFd),
    /// Releases the resources that the runs of a session shared.
    Release(Arc<str>),
}

/// A launch with all paths resolved.
struct PreparedLaunch {
    spec: LaunchSpec,
    program: PathBuf,
    /// Request for a confined child, with the available layers.
    request: Option<(ConfinementLayers, RunRequest)>,
}

struct StartedChild {
    process: StartedProcess,
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

/// A child that is being started.
enum LaunchingChild {
    Started(StartedChild),
    /// The launching thread sends the result.
    Queued(oneshot::Receiver<Result<StartedChild, LaunchError>>),
}

enum StartedProcess {
    Open(UnreapedChild),
    /// Socket with the reports of the run.
    Confined(OwnedFd, Launcher, ConfinementLayers),
}

#[derive(Debug)]
enum RunningProcess {
    Open(Arc<UnreapedChild>),
    Confined(ConfinedRun),
}

impl Launcher {
    /// Starts the launching thread, with the state that all launchers of this process share.
    pub(super) fn sharing(shared: &'static SharedLauncherState) -> io::Result<Self> {
        let (orders, queue) = mpsc::channel();
        let holder = Arc::new(LaunchThreadState::default());
        let held = Arc::downgrade(&holder);
        thread::Builder::new().name("launcher".into()).spawn(move || serve(&queue, &holder))?;
        let home = env::var_os("HOME").map(PathBuf::from);
        let started = Self {
            orders,
            thread_state: held,
            shared,
            requires_landlock: false,
            allows_tier_2: false,
            home: None,
            other_roots: Arc::default(),
        };
        Ok(started.for_user(home.as_deref()))
    }

    /// Sets whether starting a confined program fails on a kernel without Landlock.
    #[must_use]
    pub fn requiring_landlock(self, is_required: bool) -> Self {
        Self { requires_landlock: is_required, ..self }
    }

    /// Sets whether confined programs may run in tier 2, with only Landlock and the system call filter, if not all
    /// layers are available. Only the operator of the machine may decide this.
    #[must_use]
    pub fn allowing_tier_2(self, is_allowed: bool) -> Self {
        Self { allows_tier_2: is_allowed, ..self }
    }

    fn gate(&self) -> &'static ConfinementProbeCache {
        &self.shared.gates[usize::from(self.allows_tier_2)]
    }

    /// Returns `true` if tier 2 is sufficient.
    pub(super) fn allows_tier_2(&self) -> bool {
        self.allows_tier_2
    }

    /// Sets the home folder of the user, whose git settings and installed programs are available to a confined child.
    /// The default is `HOME` of the process. A relative folder, and `/`, count as none.
    #[must_use]
    pub fn for_user(self, home: Option<&Path>) -> Self {
        let home = home.filter(|home| home.is_absolute() && *home != Path::new("/"));
        Self { home: home.map(Arc::from), ..self }
    }

    /// Sets the roots that other programs write to. Links in them do not decide what a child sees, and no root of a
    /// child may be reached through a link that leaves them.
    #[must_use]
    pub fn with_other_roots(self, roots: &[PathBuf]) -> Self {
        Self { other_roots: roots.into(), ..self }
    }

    /// Searches a program on a `PATH` without folders that runs write to, because a run must not supply it. Also
    /// returns the `PATH` without such folders, by their real paths. Blocks.
    pub fn find_outside(program: &str, path: &str, writable: &WritableRoots) -> (Option<PathBuf>, String) {
        find_outside_with_links(&mut PathKindCache::default(), program, path, writable)
    }

    /// Starts a child with three pipes, its own session, the given environment, no further descriptors, no way to gain
    /// privileges, and a signal that ends it with this process. The confinement is tested before the first confined
    /// child.
    ///
    /// # Errors
    /// [`LaunchError`]. Nothing runs then.
    pub async fn launch(&self, spec: LaunchSpec) -> Result<Child, LaunchError> {
        self.launch_of(spec, ProgramPlacePolicy::Anywhere).await
    }

    /// Starts a child whose program is searched on its `PATH` as in [`find_outside`](Self::find_outside). The child
    /// receives the reduced `PATH`, unless it `sees_whole_path`.
    ///
    /// # Errors
    /// As for [`launch`](Self::launch).
    pub async fn launch_from_outside(&self, spec: LaunchSpec, sees_whole_path: bool) -> Result<Child, LaunchError> {
        self.launch_of(spec, ProgramPlacePolicy::Outside { sees_whole_path }).await
    }

    async fn launch_of(&self, spec: LaunchSpec, supply: ProgramPlacePolicy) -> Result<Child, LaunchError> {
        let layers = match spec.policy.confinement {
            Confinement::Open => ConfinementLayers::All,
            Confinement::Sealed | Confinement::Guarded => self.gate().pass(self, spec.policy.session.as_ref()).await?,
        };
        if spec.policy.offers_tools {
            match (spec.policy.confinement, layers) {
                (Confinement::Open, _) => return Err(LaunchError::NoTools("it is not confined")),
                (_, ConfinementLayers::WithoutNamespaces) => {
                    return Err(LaunchError::NoTools("without namespaces (tier 2), a program cannot use sockets"));
                }
                (_, ConfinementLayers::All) => {}
            }
        }
        self.launch_with(spec, supply, layers).await
    }

    /// Starts a child without testing the confinement. Used by the test itself.
    pub(super) async fn launch_without_test(
        &self,
        spec: LaunchSpec,
        layers: ConfinementLayers,
    ) -> Result<Child, LaunchError> {
        self.launch_with(spec, ProgramPlacePolicy::Anywhere, layers).await
    }

    async fn launch_with(
        &self,
        spec: LaunchSpec,
        supply: ProgramPlacePolicy,
        layers: ConfinementLayers,
    ) -> Result<Child, LaunchError> {
        let (launcher, time) = (self.clone(), spec.policy.limits.timeout);
        // If the lookup takes too long, or the caller has cancelled the launch, nothing is started.
        let waiting = Arc::new(());
        let awaited = Arc::downgrade(&waiting);
        let begin = move || {
            let prepared = launcher.prepare(spec, supply, layers)?;
            if awaited.strong_count() == 0 { Err(LaunchError::Stopped) } else { launcher.start_or_queue(prepared) }
        };
        let StartedChild { process, stdin, stdout, stderr } = match self.shared.path_lookups.done(begin).await?? {
            LaunchingChild::Started(started) => started,
            LaunchingChild::Queued(started) => started.await.map_err(|_| LaunchError::Stopped)??,
        };
        drop(waiting);
        let failed = |source| LaunchError::Start { program: "its pipes".into(), source };
        let (process, RunListeningSockets { proxy, tools }) = match process {
            StartedProcess::Open(group) => (RunningProcess::Open(Arc::new(group)), RunListeningSockets::default()),
            StartedProcess::Confined(reports, launcher, layers) => {
                let (run, listeners) = ConfinedRun::begin(reports, launcher, layers).await?;
                (RunningProcess::Confined(run), listeners)
            }
        };
        let time = time.map(|time| TimeLimit::of(time, process.killer()));
        Ok(Child {
            // A terminal is not a pipe, but is read and written like one.
            stdin: stdin
                .map(|end| pipe::Sender::from_file_unchecked(into_non_blocking_file(end)?))
                .transpose()
                .map_err(failed)?,
            stdout: Some(into_non_blocking_file(stdout).and_then(pipe::Receiver::from_file_unchecked).map_err(failed)?),
            stderr: Some(into_non_blocking_file(stderr).and_then(pipe::Receiver::from_file_unchecked).map_err(failed)?),
            proxy,
            tools,
            process,
            time,
        })
    }

    /// Starts a confined child by its zygote. Passes the launch to the launching thread if it requires a new zygote or
    /// an unconfined child, which only that thread may start.
    fn start_or_queue(&self, prepared: PreparedLaunch) -> Result<LaunchingChild, LaunchError> {
        let known = prepared.request.as_ref().and_then(|(layers, _)| self.known_zygote(*layers));
        let prepared = match (known, prepared) {
            (Some(zygote), PreparedLaunch { spec, program, request: Some((layers, request)) }) => {
                return start_confined((layers, request), spec.input, program, self.clone(), &zygote)
                    .map(LaunchingChild::Started);
            }
            (_, prepared) => prepared,
        };
        let (reply, started) = oneshot::channel();
        let order = LaunchThreadCommand::Launch { prepared: Box::new(prepared), launcher: self.clone(), reply };
        self.orders.send(order).map_err(|_| LaunchError::Stopped)?;
        Ok(LaunchingChild::Queued(started))
    }

    /// Returns the zygote if it was started. Returns `None` also while a session is being released: a new session with
    /// the same name must not overtake that.
    fn known_zygote(&self, layers: ConfinementLayers) -> Option<Arc<Zygote>> {
        let held = self.thread_state.upgrade().filter(|held| held.releases.load(Ordering::Acquire) == 0)?;
        held.zygotes[layers as usize].get().cloned()
    }

    /// Resolves all paths of the child.
    fn prepare(
        &self,
        mut spec: LaunchSpec,
        supply: ProgramPlacePolicy,
        layers: ConfinementLayers,
    ) -> Result<PreparedLaunch, LaunchError> {
        let writable = WritableRoots::new(&[&self.other_roots, spec.policy.write_roots.as_slice()].concat());
        let mut links = PathKindCache::default();
        if let ProgramPlacePolicy::Outside { sees_whole_path } = supply {
            let path = spec.policy.environment.get("PATH").map_or("", String::as_str);
            let (found, path) = find_outside_with_links(&mut links, &spec.program, path, &writable);
            let Some(found) = found else {
                return Err(LaunchError::NotFound { program: spec.program, places: format!("`{path}`") });
            };
            spec.program = found.to_string_lossy().into_owned();
            if !sees_whole_path {
                spec.policy.environment.insert("PATH".into(), path);
            }
        }
        if !spec.working_dir.is_dir() {
            return Err(LaunchError::NoWorkingFolder(spec.working_dir));
        }
        let program = find_program(&spec)?;
        let is_confined = spec.policy.confinement != Confinement::Open;
        let request = is_confined.then(|| {
            let others = WritableRoots::new(&self.other_roots);
            let remembered = &self.shared.toolchain_cache;
            let settings =
                LauncherSettings { own_home: self.home.as_deref(), requires_landlock: self.requires_landlock };
            let request = run_request::request(&spec, &program, &writable, &others, links, remembered, settings)?;
            Ok::<_, LaunchError>((layers, request))
        });
        Ok(PreparedLaunch { request: request.transpose()?, spec, program })
    }

    /// Releases the network and the `/tmp` that the runs of a session share. Running commands keep them until they end.
    pub fn release_session(&self, session: Arc<str>) {
        self.gate().forget(&session);
        // Without the thread, there is nothing to release.
        if let Some(held) = self.thread_state.upgrade() {
            held.releases.fetch_add(1, Ordering::Release);
            let _ = self.orders.send(LaunchThreadCommand::Release(session));
        }
    }
}

impl Child {
    /// Returns the process id; for a confined child, that of the init of its run.
    pub fn id(&self) -> u32 {
        match &self.process {
            RunningProcess::Open(group) => group.id.as_raw_nonzero().get().unsigned_abs(),
            RunningProcess::Confined(run) => run.id,
        }
    }

    /// Waits for the end of the child. The group of an unconfined child may live until this value is dropped; no
    /// process of a confined one is left.
    pub async fn exited(&mut self) -> Exit {
        let exit = match &mut self.process {
            RunningProcess::Open(group) => group.exited().await,
            RunningProcess::Confined(run) => run.exited().await,
        };
        match &self.time {
            Some(limit) if exit == Exit::Signal(Signal::KILL.as_raw()) => limit.classify_exit(exit),
            Some(_) | None => exit,
        }
    }

    /// Returns the changes of the child to protected names that were undone, one line each. Complete once
    /// [`exited`](Self::exited) or [`kill`](Self::kill) has returned; always empty for an unconfined child.
    pub fn undone(&self) -> &[String] {
        match &self.process {
            RunningProcess::Open(_) => &[],
            RunningProcess::Confined(run) => &run.aftermath.undone,
        }
    }

    /// Returns the changes of the child to protected names that could not be undone, one line each, or a warning if the
    /// cleanup did not finish. They must not be trusted. Always empty for an unconfined child.
    pub fn left(&self) -> &[String] {
        match &self.process {
            RunningProcess::Open(_) => &[],
            RunningProcess::Confined(run) => &run.aftermath.left,
        }
    }

    /// Returns `true` if a process that a confined child started outlived it and was killed.
    pub fn had_survivors(&self) -> bool {
        matches!(&self.process, RunningProcess::Confined(run) if run.had_survivors)
    }

    /// Kills the child and its group, and returns once they have ended, so that [`undone`](Self::undone) is known.
    pub async fn kill(&mut self) {
        match &self.process {
            RunningProcess::Open(group) => group.signal(Signal::KILL),
            RunningProcess::Confined(run) => run.end(),
        }
        // Only a process that hangs in the kernel takes longer, and the launching thread waits for that one. Cleaning
        // up a workspace may take its time. A shutdown has limits of its own.
        let time = match &self.process {
            RunningProcess::Open(_) => TIME_FOR_KILLS,
            RunningProcess::Confined(_) => confined_run::TIME_TO_END,
        };
        if timeout(time, self.exited()).await.is_err()
            && let RunningProcess::Confined(run) = &mut self.process
        {
            run.mark_lost();
        }
    }

    /// Sends a signal to the child and its group. Does nothing once they have ended.
    pub fn signal(&self, signal: ProcessSignal) {
        self.process.signal(match signal {
            ProcessSignal::Hangup => Signal::HUP,
            ProcessSignal::Interrupt => Signal::INT,
            ProcessSignal::Quit => Signal::QUIT,
            ProcessSignal::Terminate => Signal::TERM,
            ProcessSignal::Kill => Signal::KILL,
            ProcessSignal::User1 => Signal::USR1,
            ProcessSignal::User2 => Signal::USR2,
        });
    }

    /// Kills the processes that a confined child leaves behind without a grace period. By default they have half a
    /// second to end, because the child may have piped output through one of them. For callers that need no further
    /// output.
    pub fn end_leftovers_at_once(&self) {
        match &self.process {
            RunningProcess::Open(_) => {}
            RunningProcess::Confined(run) => run.end_leftovers_at_once(),
        }
    }

    /// Ends the child and its group: closes its input, unless that was taken; sends `SIGTERM` if that is not
    /// sufficient; and kills the rest after `grace`. Returns once it has ended.
    pub async fn terminate(mut self, grace: Duration) {
        drop(self.stdin.take());
        let gently = TIME_FOR_END_OF_INPUT.min(grace / 2);
        if timeout(gently, self.exited()).await.is_ok() {
            return;
        }
        self.process.signal(Signal::TERM);
        if timeout(grace.saturating_sub(gently), self.exited()).await.is_ok() {
            return;
        }
        // The result of cleaning up the workspace is only logged.
        let _ = timeout(TIME_FOR_KILLS, self.kill()).await;
    }
}

impl RunningProcess {
    /// Returns a function that kills all processes of the child. The function does not keep the child alive, because
    /// after its end there is nothing to kill.
    fn killer(&self) -> Box<dyn FnOnce() + Send> {
        match self {
            Self::Open(group) => {
                let group = Arc::downgrade(group);
                Box::new(move || group.upgrade().iter().for_each(|group| group.signal(Signal::KILL)))
            }
            Self::Confined(run) => Box::new(run.killer()),
        }
    }

    fn signal(&self, signal: Signal) {
        match self {
            Self::Open(group) => group.signal(signal),
            Self::Confined(run) => run.signal(signal),
        }
    }
}

impl fmt::Debug for LaunchThreadCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Launch { .. } => "Launch",
            Self::Reap(_) => "Reap",
            Self::End(_) => "End",
            Self::Release(_) => "Release",
        })
    }
}

/// Makes the parent's end of a stream non-blocking. Otherwise, a write would block a thread of the async runtime while
/// the child does not read.
fn into_non_blocking_file(end: OwnedFd) -> io::Result<File> {
    fcntl_setfl(&end, fcntl_getfl(&end)? | OFlags::NONBLOCK)?;
    Ok(end.into())
}

/// Runs the launching thread: executes its commands, and waits for the killed children. Returns when no launcher is
/// left and all killed children have ended.
fn serve(queue: &mpsc::Receiver<LaunchThreadCommand>, held: &LaunchThreadState) {
    let mut killed: Vec<OwnedFd> = Vec::new();
    let mut ending: Vec<confined_run::EndingRun> = Vec::new();
    loop {
        let order = if killed.is_empty() && ending.is_empty() {
            queue.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected)
        } else {
            queue.recv_timeout(REAPING_INTERVAL)
        };
        match order {
            // If the caller has stopped waiting, the child is dropped, which ends it.
            Ok(LaunchThreadCommand::Launch { prepared, launcher, reply }) => {
                drop(reply.send(start(*prepared, launcher, held)));
            }
            Ok(LaunchThreadCommand::Reap(handle)) => killed.push(handle),
            Ok(LaunchThreadCommand::End(handle)) => ending.push(confined_run::EndingRun::of(handle)),
            Ok(LaunchThreadCommand::Release(session)) => {
                held.zygotes.iter().filter_map(OnceLock::get).for_each(|zygote| zygote.release(&session));
                held.releases.fetch_sub(1, Ordering::Release);
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            // No launcher is left. The thread still waits for killed children.
            Err(mpsc::RecvTimeoutError::Disconnected) if killed.is_empty() && ending.is_empty() => return,
            Err(mpsc::RecvTimeoutError::Disconnected) => thread::sleep(REAPING_INTERVAL),
        }
        killed.retain(|handle| !is_reaped(handle));
        ending.retain(|run| !run.is_over());
    }
}

/// Starts a prepared launch. A confined child is started by the zygote of its layers, which stays for further launches.
fn start(prepared: PreparedLaunch, launcher: Launcher, held: &LaunchThreadState) -> Result<StartedChild, LaunchError> {
    let PreparedLaunch { spec, program, request } = prepared;
    let Some((layers, request)) = request else {
        return start_program(&program, &spec, launcher).map_err(|source| LaunchError::Start { program, source });
    };
    let kept = &held.zygotes[layers as usize];
    if kept.get().is_none() {
        // Only this thread starts zygotes.
        let _ = kept.set(launcher.shared.zygotes.running(layers).map_err(unconfined)?);
    }
    let zygote = kept.get().ok_or(LaunchError::Stopped)?;
    start_confined((layers, request), spec.input, program, launcher, zygote)
}

fn start_confined(
    (layers, request): (ConfinementLayers, RunRequest),
    input: ChildInput,
    program: PathBuf,
    launcher: Launcher,
    zygote: &Zygote,
) -> Result<StartedChild, LaunchError> {
    let streams = StandardStreams::open(input).map_err(|source| LaunchError::Start { program, source })?;
    let reports = zygote.launch(request, streams.child_ends).map_err(unconfined)?;
    let ParentStreams { stdin, stdout, stderr } = streams.parent_ends;
    Ok(StartedChild { process: StartedProcess::Confined(reports, launcher, layers), stdin, stdout, stderr })
}

fn unconfined(error: ZygoteError) -> LaunchError {
    match FileDescriptorExhaustion::in_chain(&error) {
        Some(limit) => LaunchError::OutOfDescriptors(limit),
        None => LaunchError::Confine(with_causes(&error)),
    }
}

/// Both ends of the standard streams of a child.
struct StandardStreams {
    parent_ends: ParentStreams,
    /// Input, output and error output of the child.
    child_ends: [OwnedFd; 3],
}

struct ParentStreams {
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl StandardStreams {
    fn open(input: ChildInput) -> io::Result<Self> {
        if let ChildInput::Terminal { rows, columns } = input {
            return Self::terminal(rows, columns);
        }
        let (their_stdin, stdin) = match input {
            ChildInput::Pipe => pipe_with(PipeFlags::CLOEXEC).map(|(read, write)| (read, Some(write)))?,
            _ => (File::open("/dev/null")?.into(), None),
        };
        let (stdout, their_stdout) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stderr, their_stderr) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Self {
            parent_ends: ParentStreams { stdin, stdout, stderr },
            child_ends: [their_stdin, their_stdout, their_stderr],
        })
    }

    fn terminal(rows: u16, columns: u16) -> io::Result<Self> {
        use rustix::{
            fs::{CWD, Mode, OFlags, openat},
            pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
            termios::{Winsize, tcsetwinsize},
        };
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&terminal)?;
        unlockpt(&terminal)?;
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size)?;
        let name = ptsname(&terminal, Vec::new())?;
        let theirs = openat(CWD, name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
        // This pipe has no writer, so its reader is at the end at once.
        let (stderr, _) = pipe_with(PipeFlags::CLOEXEC)?;
        let ours = ParentStreams { stdin: Some(terminal.try_clone()?), stdout: terminal, stderr };
        Ok(Self { parent_ends: ours, child_ends: [theirs.try_clone()?, theirs.try_clone()?, theirs] })
    }
}

/// Returns the absolute path of the program.
fn find_program(spec: &LaunchSpec) -> Result<PathBuf, LaunchError> {
    let not_found = |places: String| LaunchError::NotFound { program: spec.program.clone(), places };
    if spec.program.contains('/') {
        let path = spec.working_dir.join(&spec.program);
        return if is_executable(&path) { Ok(path) } else { Err(not_found(format!("`{}`", path.display()))) };
    }
    let folders_text = spec.policy.environment.get("PATH").map_or("", String::as_str);
    let mut candidates = folders(&spec.policy.environment).filter(|_| !spec.program.is_empty());
    let found = candidates.clone().map(|folder| Path::new(folder).join(&spec.program)).find(|path| is_executable(path));
    found.ok_or_else(|| {
        let places = candidates.next().map(|_| folders_text).filter(|folders| !folders.is_empty());
        not_found(places.map_or("no folder, because its `PATH` is empty".into(), |folders| format!("`{folders}`")))
    })
}

/// Searches a program as [`Launcher::find_outside`] does, with known links.
fn find_outside_with_links(
    links: &mut PathKindCache,
    program: &str,
    path: &str,
    writable: &WritableRoots,
) -> (Option<PathBuf>, String) {
    let mut outside = |path: &Path| writable.resolve_outside(links, path);
    let folders: Vec<PathBuf> = absolute(path).filter_map(|folder| outside(Path::new(folder))).collect();
    // A relative path starts in the working folder: `./make` is not the `make` in a folder of the `PATH`.
    let can_be_found = program.starts_with('/') || !program.contains('/');
    let candidates = folders.iter().filter(|_| can_be_found).map(|folder| folder.join(program));
    let mut candidates = candidates.filter(|path| is_executable(path));
    let found = candidates.find(|path| outside(path).is_some());
    let folders: Vec<_> = folders.iter().map(|folder| folder.to_string_lossy()).collect();
    (found, folders.join(":"))
}

/// Returns the absolute folders of the environment's `PATH`.
fn folders(environment: &BTreeMap<String, String>) -> impl Iterator<Item = &str> + Clone {
    absolute(environment.get("PATH").map_or("", String::as_str))
}

fn absolute(path: &str) -> impl Iterator<Item = &str> + Clone {
    path.split(':').filter(|folder| folder.starts_with('/'))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests;
