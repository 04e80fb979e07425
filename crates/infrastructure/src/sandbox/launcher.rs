//! The one place that starts child processes.
#![expect(unsafe_code, reason = "what a child does between fork and exec can be said in no other way")]

mod confined;
mod gate;
mod look_ups;
mod open;
mod time_limit;

pub use crate::sandbox::launch::{ChildSignal, Exit, Input, LaunchError, LaunchSpec};
use crate::sandbox::{
    preparing::{self, RunSettings},
    tier::Tier,
    toolchains::remembered::Remembered,
    writable::{Links, WritableRoots},
    zygote::{Layers, Zygote, ZygoteError, Zygotes, request::Request},
};
use confined::{ConfinedRun, Listeners};
use futures::future::BoxFuture;
use gate::Gate;
use look_ups::LookUps;
use open::{Group, is_reaped, start_program};
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
use toolstead_domain::{descriptor_limit::DescriptorLimit, error_chain::with_causes, sandbox_policy::Confinement};

/// How long a child may take to end by itself once its input is closed.
const TIME_FOR_END_OF_INPUT: Duration = Duration::from_millis(500);
/// How long a killed child is waited for.
const TIME_FOR_KILLS: Duration = Duration::from_secs(1);
/// How often killed children are looked after until they are gone.
const REAPING_INTERVAL: Duration = Duration::from_millis(5);

/// Starts child processes from one thread of its own, which lives as long as a launcher or a child of it does.
///
/// The thread matters: a child's death signal is bound to the thread that forked it, and the threads of an async
/// runtime come and go. With it, a child ends even when the runtime is killed with `SIGKILL`. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Launcher {
    orders: mpsc::Sender<Order>,
    /// Lives as long as anybody can order something.
    held: Weak<Held>,
    shared: &'static Shared,
    requires_landlock: bool,
    /// Whether tier 2 will do.
    allows_tier_2: bool,
    /// Home folder of the user: `None` if there is none.
    home: Option<Arc<Path>>,
    /// What other programs write into, beside the roots of a run.
    others: Arc<[PathBuf]>,
}

/// What all launchers of a process share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) zygotes: Zygotes,
    /// What is known of the machine: for launchers that want every layer, and for those that do with tier 2.
    gates: [Gate; 2],
    /// What a child is to see is looked up off the threads of the async runtime: a disk that does not answer holds up
    /// nobody else.
    look_ups: LookUps,
    /// What they found of folders that have not changed since.
    remembered: Remembered,
}

impl Shared {
    /// By `trying` is found out what holds on this machine.
    pub(super) const fn new(trying: Trying) -> Self {
        Self {
            zygotes: Zygotes::new(),
            gates: [Gate::new(trying), Gate::new(trying)],
            look_ups: LookUps::new(64, Duration::from_secs(30)),
            remembered: Remembered::new(),
        }
    }
}

/// Finds out how well a launcher's programs can be confined.
pub(super) type Trying = for<'a> fn(&'a Launcher) -> BoxFuture<'a, Tier>;

/// A running child: the leader of a session and process group of its own.
///
/// Dropping it kills the whole group; of a confined child it kills everything that came of it.
#[derive(Debug)]
pub struct Child {
    /// Its standard input; taken by whoever writes there.
    pub stdin: Option<pipe::Sender>,
    /// Its standard output; taken by whoever reads it.
    pub stdout: Option<pipe::Receiver>,
    /// Its standard error; taken by whoever reads it.
    pub stderr: Option<pipe::Receiver>,
    /// Where the network is limited to hosts: a listener in the child's own network, which `HTTP_PROXY` of the child
    /// leads to. Whoever accepts there is its only way out; taken by the proxy.
    pub proxy: Option<TcpListener>,
    /// The listening end of the socket, where the policy offers tools: what the program `tool` of this run connects to,
    /// and nobody else. It does not block; taken by whoever makes the calls.
    pub tools: Option<UnixListener>,
    process: Process,
    time: Option<TimeLimit>,
}

/// What the launching thread holds, for those who need not change to it.
#[derive(Debug, Default)]
struct Held {
    /// Kept once they are there.
    zygotes: [OnceLock<Arc<Zygote>>; 2],
    /// Sessions that are over, and of which the zygotes have not heard yet.
    releases: AtomicUsize,
}

/// Where the program of a child comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Supply {
    /// From wherever the specification says.
    Anywhere,
    /// From what no run writes into.
    Outside { sees_whole_path: bool },
}

enum Order {
    Launch {
        prepared: Box<Prepared>,
        launcher: Launcher,
        reply: oneshot::Sender<Result<Started, LaunchError>>,
    },
    /// A child that has been killed and not been waited for.
    Reap(OwnedFd),
    /// A confined run that has been told to end; it is killed if it does not.
    End(OwnedFd),
    /// What the runs of a session share is not needed any more.
    Release(Arc<str>),
}

/// What is to be started, with everything looked up.
struct Prepared {
    spec: LaunchSpec,
    program: PathBuf,
    /// For a child that is confined, with the layers that there are.
    request: Option<(Layers, Request)>,
}

struct Started {
    process: Begun,
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

/// A child on its way.
enum Beginning {
    Begun(Started),
    /// The launching thread tells of it.
    Ordered(oneshot::Receiver<Result<Started, LaunchError>>),
}

enum Begun {
    Open(Group),
    /// The socket on which is told how it goes on.
    Confined(OwnedFd, Launcher, Layers),
}

#[derive(Debug)]
enum Process {
    Open(Arc<Group>),
    Confined(ConfinedRun),
}

impl Launcher {
    /// Starts the launching thread, with what all launchers of this process share.
    pub(super) fn sharing(shared: &'static Shared) -> io::Result<Self> {
        let (orders, queue) = mpsc::channel();
        let holder = Arc::new(Held::default());
        let held = Arc::downgrade(&holder);
        thread::Builder::new().name("launcher".into()).spawn(move || serve(&queue, &holder))?;
        let home = env::var_os("HOME").map(PathBuf::from);
        let started = Self {
            orders,
            held,
            shared,
            requires_landlock: false,
            allows_tier_2: false,
            home: None,
            others: Arc::default(),
        };
        Ok(started.for_user(home.as_deref()))
    }

    /// Where `is_required`, nothing is started confined on a kernel without Landlock.
    #[must_use]
    pub fn requiring_landlock(self, is_required: bool) -> Self {
        Self { requires_landlock: is_required, ..self }
    }

    /// Where `is_allowed`, and not every layer holds, what is confined is confined by Landlock and the filter of system
    /// calls alone. That is the choice of whoever runs the machine, and of nobody else.
    #[must_use]
    pub fn allowing_tier_2(self, is_allowed: bool) -> Self {
        Self { allows_tier_2: is_allowed, ..self }
    }

    fn gate(&self) -> &'static Gate {
        &self.shared.gates[usize::from(self.allows_tier_2)]
    }

    /// Whether tier 2 will do.
    pub(super) fn allows_tier_2(&self) -> bool {
        self.allows_tier_2
    }

    /// Sets the home folder of the user, whose settings of git and installed programs a confined child gets. Without this
    /// call it is `HOME` of the process. A folder that is not absolute, and `/`, count as none.
    #[must_use]
    pub fn for_user(self, home: Option<&Path>) -> Self {
        let home = home.filter(|home| home.is_absolute() && *home != Path::new("/"));
        Self { home: home.map(Arc::from), ..self }
    }

    /// The same beside programs that write into these roots: what leads over them says nothing about what a child sees,
    /// and no root of a child leads out of them.
    #[must_use]
    pub fn beside(self, roots: &[PathBuf]) -> Self {
        Self { others: roots.into(), ..self }
    }

    /// Finds a program on a `PATH` without what runs write into: who can write there does not supply it. Says the `PATH`
    /// without such folders, too, by their real paths. Blocks.
    pub fn found_outside(program: &str, path: &str, writable: &WritableRoots) -> (Option<PathBuf>, String) {
        found_over(&mut Links::default(), program, path, writable)
    }

    /// Starts a child with three pipes, its own session, a built environment, no further descriptors, no way to gain
    /// privileges, and a signal that ends it with this process. Before the first one that is confined, the confinement
    /// is tried.
    ///
    /// # Errors
    /// [`LaunchError`]; then nothing runs.
    pub async fn launch(&self, spec: LaunchSpec) -> Result<Child, LaunchError> {
        self.launch_of(spec, Supply::Anywhere).await
    }

    /// The same with a program that is found on the child's `PATH` as [`found_outside`](Self::found_outside) does. The child
    /// gets that `PATH`, unless it `sees_whole_path`.
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    pub async fn launch_from_outside(&self, spec: LaunchSpec, sees_whole_path: bool) -> Result<Child, LaunchError> {
        self.launch_of(spec, Supply::Outside { sees_whole_path }).await
    }

    async fn launch_of(&self, spec: LaunchSpec, supply: Supply) -> Result<Child, LaunchError> {
        let layers = match spec.policy.confinement {
            Confinement::Open => Layers::All,
            Confinement::Sealed | Confinement::Guarded => self.gate().pass(self, spec.policy.session.as_ref()).await?,
        };
        if spec.policy.offers_tools {
            match (spec.policy.confinement, layers) {
                (Confinement::Open, _) => return Err(LaunchError::NoTools("it is not confined")),
                (_, Layers::WithoutNamespaces) => {
                    return Err(LaunchError::NoTools("without namespaces (tier 2) a program reaches no socket"));
                }
                (_, Layers::All) => {}
            }
        }
        self.launch_with(spec, supply, layers).await
    }

    /// As [`launch`](Self::launch), whatever is known of the confinement: for those who try it.
    pub(super) async fn launch_untried(&self, spec: LaunchSpec, layers: Layers) -> Result<Child, LaunchError> {
        self.launch_with(spec, Supply::Anywhere, layers).await
    }

    async fn launch_with(&self, spec: LaunchSpec, supply: Supply, layers: Layers) -> Result<Child, LaunchError> {
        let (launcher, time) = (self.clone(), spec.policy.limits.timeout);
        // Where the look-up takes too long, or nobody waits any more, nothing is started by it.
        let waiting = Arc::new(());
        let awaited = Arc::downgrade(&waiting);
        let begin = move || {
            let prepared = launcher.prepared(spec, supply, layers)?;
            if awaited.strong_count() == 0 { Err(LaunchError::Stopped) } else { launcher.begun(prepared) }
        };
        let Started { process, stdin, stdout, stderr } = match self.shared.look_ups.done(begin).await?? {
            Beginning::Begun(started) => started,
            Beginning::Ordered(started) => started.await.map_err(|_| LaunchError::Stopped)??,
        };
        drop(waiting);
        let failed = |source| LaunchError::Start { program: "its pipes".into(), source };
        let (process, Listeners { proxy, tools }) = match process {
            Begun::Open(group) => (Process::Open(Arc::new(group)), Listeners::default()),
            Begun::Confined(reports, launcher, layers) => {
                let (run, listeners) = ConfinedRun::begin(reports, launcher, layers).await?;
                (Process::Confined(run), listeners)
            }
        };
        let time = time.map(|time| TimeLimit::of(time, process.killer()));
        Ok(Child {
            // A terminal is no pipe, and is read and written as one.
            stdin: stdin
                .map(|end| pipe::Sender::from_file_unchecked(waiting_never(end)?))
                .transpose()
                .map_err(failed)?,
            stdout: Some(waiting_never(stdout).and_then(pipe::Receiver::from_file_unchecked).map_err(failed)?),
            stderr: Some(waiting_never(stderr).and_then(pipe::Receiver::from_file_unchecked).map_err(failed)?),
            proxy,
            tools,
            process,
            time,
        })
    }

    /// Starts a confined child by its zygote, and leaves to the launching thread what only that one can do: to start a
    /// zygote or a child of its own.
    fn begun(&self, prepared: Prepared) -> Result<Beginning, LaunchError> {
        let known = prepared.request.as_ref().and_then(|(layers, _)| self.known_zygote(*layers));
        let prepared = match (known, prepared) {
            (Some(zygote), Prepared { spec, program, request: Some((layers, request)) }) => {
                return confined((layers, request), spec.input, program, self.clone(), &zygote).map(Beginning::Begun);
            }
            (_, prepared) => prepared,
        };
        let (reply, started) = oneshot::channel();
        let order = Order::Launch { prepared: Box::new(prepared), launcher: self.clone(), reply };
        self.orders.send(order).map_err(|_| LaunchError::Stopped)?;
        Ok(Beginning::Ordered(started))
    }

    /// The zygote, once it was started. `None` also while the end of a session is on its way to it: one of the same name
    /// must not overtake that.
    fn known_zygote(&self, layers: Layers) -> Option<Arc<Zygote>> {
        let held = self.held.upgrade().filter(|held| held.releases.load(Ordering::Acquire) == 0)?;
        held.zygotes[layers as usize].get().cloned()
    }

    /// Looks up everything that the child needs.
    fn prepared(&self, mut spec: LaunchSpec, supply: Supply, layers: Layers) -> Result<Prepared, LaunchError> {
        let writable = WritableRoots::new(&[&self.others, spec.policy.write_roots.as_slice()].concat());
        let mut links = Links::default();
        if let Supply::Outside { sees_whole_path } = supply {
            let path = spec.policy.environment.get("PATH").map_or("", String::as_str);
            let (found, path) = found_over(&mut links, &spec.program, path, &writable);
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
            let others = WritableRoots::new(&self.others);
            let remembered = &self.shared.remembered;
            let settings = RunSettings { own_home: self.home.as_deref(), requires_landlock: self.requires_landlock };
            let request = preparing::request(&spec, &program, &writable, &others, links, remembered, settings)?;
            Ok::<_, LaunchError>((layers, request))
        });
        Ok(Prepared { request: request.transpose()?, spec, program })
    }

    /// Lets go of the network and the `/tmp` that runs of a session share. Runs that are there keep them.
    pub fn release_session(&self, session: Arc<str>) {
        self.gate().forget(&session);
        // Without the thread nothing is held either.
        if let Some(held) = self.held.upgrade() {
            held.releases.fetch_add(1, Ordering::Release);
            let _ = self.orders.send(Order::Release(session));
        }
    }
}

impl Child {
    /// The process id.
    pub fn id(&self) -> u32 {
        match &self.process {
            Process::Open(group) => group.id.as_raw_nonzero().get().unsigned_abs(),
            Process::Confined(run) => run.id,
        }
    }

    /// Returns when the child has ended. The group of a child that is not confined may live on until this value is
    /// dropped; of a confined one nothing is left.
    pub async fn exited(&mut self) -> Exit {
        let exit = match &mut self.process {
            Process::Open(group) => group.exited().await,
            Process::Confined(run) => run.exited().await,
        };
        match &self.time {
            Some(limit) if exit == Exit::Signal(Signal::KILL.as_raw()) => limit.told_of(exit),
            Some(_) | None => exit,
        }
    }

    /// What the child did to protected names and what was undone, one line each; known once it has ended by itself.
    pub fn undone(&self) -> &[String] {
        match &self.process {
            Process::Open(_) => &[],
            Process::Confined(run) => &run.aftermath.undone,
        }
    }

    /// What the child made of protected names and what could not be undone, one line each: it must not be trusted.
    pub fn left(&self) -> &[String] {
        match &self.process {
            Process::Open(_) => &[],
            Process::Confined(run) => &run.aftermath.left,
        }
    }

    /// Whether something that a confined child had started outlived it, and was ended.
    pub fn had_survivors(&self) -> bool {
        matches!(&self.process, Process::Confined(run) if run.had_survivors)
    }

    /// Kills the child and its group, and returns when it is gone, so that [`undone`](Self::undone) is known.
    pub async fn kill(&mut self) {
        match &self.process {
            Process::Open(group) => group.signal(Signal::KILL),
            Process::Confined(run) => run.end(),
        }
        // Only a process that hangs in the kernel takes longer; the launching thread waits for that one. What puts a
        // workspace right may take its time. Who shuts down has bounds of its own.
        let time = match &self.process {
            Process::Open(_) => TIME_FOR_KILLS,
            Process::Confined(_) => confined::TIME_TO_END,
        };
        if timeout(time, self.exited()).await.is_err()
            && let Process::Confined(run) = &mut self.process
        {
            run.lose();
        }
    }

    /// Sends a signal to the child and its group. Does nothing once they are gone.
    pub fn signal(&self, signal: ChildSignal) {
        self.process.signal(match signal {
            ChildSignal::Hangup => Signal::HUP,
            ChildSignal::Interrupt => Signal::INT,
            ChildSignal::Quit => Signal::QUIT,
            ChildSignal::Terminate => Signal::TERM,
            ChildSignal::Kill => Signal::KILL,
            ChildSignal::User1 => Signal::USR1,
            ChildSignal::User2 => Signal::USR2,
        });
    }

    /// What a confined child leaves behind is ended with it. Else it has half a second to end by itself, because it may have
    /// something to print that the child led through a pipe. For who wants nothing more of what it prints.
    pub fn end_leftovers_at_once(&self) {
        match &self.process {
            Process::Open(_) => {}
            Process::Confined(run) => run.end_leftovers_at_once(),
        }
    }

    /// Ends the child and its group: closes its input, if that was not taken; asks with `SIGTERM` if that does not do;
    /// kills what is left after `grace`. Returns when it is gone.
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
        // Nobody hears what becomes of the workspace but the log.
        let _ = timeout(TIME_FOR_KILLS, self.kill()).await;
    }
}

impl Process {
    /// Kills everything of it, and does not keep it: where it is gone there is nothing to kill.
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

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Launch { .. } => "Launch",
            Self::Reap(_) => "Reap",
            Self::End(_) => "End",
            Self::Release(_) => "Release",
        })
    }
}

/// Our end of a stream for the async runtime, which would stand still in a write to somebody who does not read.
fn waiting_never(end: OwnedFd) -> io::Result<File> {
    fcntl_setfl(&end, fcntl_getfl(&end)? | OFlags::NONBLOCK)?;
    Ok(end.into())
}

/// The launching thread.
fn serve(queue: &mpsc::Receiver<Order>, held: &Held) {
    let mut killed: Vec<OwnedFd> = Vec::new();
    let mut ending: Vec<confined::Ending> = Vec::new();
    loop {
        let order = if killed.is_empty() && ending.is_empty() {
            queue.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected)
        } else {
            queue.recv_timeout(REAPING_INTERVAL)
        };
        match order {
            // Whoever has stopped waiting drops the child, which ends it.
            Ok(Order::Launch { prepared, launcher, reply }) => {
                drop(reply.send(start(*prepared, launcher, held)));
            }
            Ok(Order::Reap(handle)) => killed.push(handle),
            Ok(Order::End(handle)) => ending.push(confined::Ending::of(handle)),
            Ok(Order::Release(session)) => {
                held.zygotes.iter().filter_map(OnceLock::get).for_each(|zygote| zygote.release(&session));
                held.releases.fetch_sub(1, Ordering::Release);
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            // Nobody can order anything any more; what was killed last is still waited for.
            Err(mpsc::RecvTimeoutError::Disconnected) if killed.is_empty() && ending.is_empty() => return,
            Err(mpsc::RecvTimeoutError::Disconnected) => thread::sleep(REAPING_INTERVAL),
        }
        killed.retain(|handle| !is_reaped(handle));
        ending.retain(|run| !run.is_over());
    }
}

/// Starts what is prepared; a confined child by the zygote of its layers, which is kept.
fn start(prepared: Prepared, launcher: Launcher, held: &Held) -> Result<Started, LaunchError> {
    let Prepared { spec, program, request } = prepared;
    let Some((layers, request)) = request else {
        return start_program(&program, &spec, launcher).map_err(|source| LaunchError::Start { program, source });
    };
    let kept = &held.zygotes[layers as usize];
    if kept.get().is_none() {
        // This thread alone starts them.
        let _ = kept.set(launcher.shared.zygotes.running(layers).map_err(unconfined)?);
    }
    let zygote = kept.get().ok_or(LaunchError::Stopped)?;
    confined((layers, request), spec.input, program, launcher, zygote)
}

fn confined(
    (layers, request): (Layers, Request),
    input: Input,
    program: PathBuf,
    launcher: Launcher,
    zygote: &Zygote,
) -> Result<Started, LaunchError> {
    let streams = Streams::open(input).map_err(|source| LaunchError::Start { program, source })?;
    let reports = zygote.launch(request, streams.theirs).map_err(unconfined)?;
    let Ours { stdin, stdout, stderr } = streams.ours;
    Ok(Started { process: Begun::Confined(reports, launcher, layers), stdin, stdout, stderr })
}

fn unconfined(error: ZygoteError) -> LaunchError {
    match DescriptorLimit::in_chain(&error) {
        Some(limit) => LaunchError::OutOfDescriptors(limit),
        None => LaunchError::Confine(with_causes(&error)),
    }
}

/// Both ends of the standard streams of a child.
struct Streams {
    ours: Ours,
    /// Its input, output and error output.
    theirs: [OwnedFd; 3],
}

struct Ours {
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl Streams {
    fn open(input: Input) -> io::Result<Self> {
        if let Input::Terminal { rows, columns } = input {
            return Self::terminal(rows, columns);
        }
        let (their_stdin, stdin) = match input {
            Input::Pipe => pipe_with(PipeFlags::CLOEXEC).map(|(read, write)| (read, Some(write)))?,
            _ => (File::open("/dev/null")?.into(), None),
        };
        let (stdout, their_stdout) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stderr, their_stderr) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Self { ours: Ours { stdin, stdout, stderr }, theirs: [their_stdin, their_stdout, their_stderr] })
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
        // Nothing writes there; its reader is at the end at once.
        let (stderr, _) = pipe_with(PipeFlags::CLOEXEC)?;
        let ours = Ours { stdin: Some(terminal.try_clone()?), stdout: terminal, stderr };
        Ok(Self { ours, theirs: [theirs.try_clone()?, theirs.try_clone()?, theirs] })
    }
}

/// The program's absolute path.
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

/// As [`Launcher::found_outside`], over what was found before.
fn found_over(links: &mut Links, program: &str, path: &str, writable: &WritableRoots) -> (Option<PathBuf>, String) {
    let mut outside = |path: &Path| writable.outside_over(links, path);
    let folders: Vec<PathBuf> = absolute(path).filter_map(|folder| outside(Path::new(folder))).collect();
    // A relative path leads from the working folder: `./make` is not the `make` of a folder of the `PATH`.
    let can_be_found = program.starts_with('/') || !program.contains('/');
    let candidates = folders.iter().filter(|_| can_be_found).map(|folder| folder.join(program));
    let mut candidates = candidates.filter(|path| is_executable(path));
    let found = candidates.find(|path| outside(path).is_some());
    let folders: Vec<_> = folders.iter().map(|folder| folder.to_string_lossy()).collect();
    (found, folders.join(":"))
}

/// The absolute folders of the environment's `PATH`.
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
