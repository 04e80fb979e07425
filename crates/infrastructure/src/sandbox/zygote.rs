//! Process that forks every confined run.
//!
//! ```text
//! runtime (many threads)
//!   └─ zygote: this program again, one thread, empty environment, no secret in its memory
//!        └─ init of one run, born before it: new namespaces, no capabilities; reaps, ends with the payload
//!             └─ payload
//! ```
//!
//! [`landlock_zygote`] describes the processes that are used where namespaces are unavailable and the settings allow that.
//!
//! Namespaces cannot be set up safely after a fork of a process with several threads: the child might inherit a lock
//! that is never released. Therefore the runtime starts its own program a second time, which serves requests for runs
//! before it has any other thread.

mod filter;
mod git_config;
mod identity;
mod init;
mod landlock_zygote;
mod mount;
mod payload;
mod protected;
mod ready_init;
pub(super) mod request;
mod root_sources;
mod server;
mod sessions;
mod spawner;
mod view;

pub(super) use identity::DEDICATED_ID;
use request::{RunEvent, RunRequest, StepFailure, ZygoteCommand, packed, receive, send};
pub use root_sources::{is_device, is_shown_to_all};
use rustix::{
    net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair},
    process::{Resource, Rlimit, getrlimit, setrlimit},
};
use std::{
    env, fs, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::PathBuf,
    process::{self, Command, Stdio},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// Name (`argv[0]`) under which this program is started as a zygote. A variable cannot mark it, because the environment
/// is empty.
const NAME: &str = "toolstead-zygote";

/// Maximum time that shutdown waits for the zygotes to end.
const TIME_TO_END: Duration = Duration::from_secs(2);

/// Layers that confine the runs of a zygote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfinementLayers {
    /// Namespaces with private mounts, a system call filter, and Landlock if the kernel supports it: tier 1.
    All,
    /// Landlock and the system call filter ([`landlock_zygote`]): tier 2.
    WithoutNamespaces,
}

/// The zygotes of this process.
#[derive(Debug)]
pub(super) struct Zygotes {
    /// `true` once this program's `main` has called [`enter`](Self::enter). Without that call, starting the program a
    /// second time would run an arbitrary `main` again.
    has_door: AtomicBool,
    /// Running zygotes, indexed by the layers of their runs. The runs of all launchers share them.
    running: [Mutex<Weak<Zygote>>; 2],
    /// Number of zygotes that have not ended, including those that are ending.
    living: Mutex<usize>,
    /// Signals that a zygote has ended and was reaped.
    is_gone: Condvar,
    /// Limit of open descriptors that this process had at first.
    usual_files: OnceLock<Rlimit>,
}

impl Zygotes {
    pub(super) const fn new() -> Self {
        Self {
            has_door: AtomicBool::new(false),
            running: [const { Mutex::new(Weak::new()) }; 2],
            living: Mutex::new(0),
            is_gone: Condvar::new(),
            usual_files: OnceLock::new(),
        }
    }

    /// Becomes a zygote and ends the process, if this process was started as one. Otherwise returns, and from then on
    /// this process can start zygotes.
    pub(super) fn enter(&self) {
        self.has_door.store(true, Ordering::Relaxed);
        let mut args = env::args_os();
        if args.next().is_some_and(|name| name == NAME) {
            // SAFETY: the call touches no memory, and nothing here has opened a descriptor yet.
            unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0) };
            process::exit(server::serve(args.next().map(PathBuf::from)));
        }
    }

    /// Returns the zygote with these layers, and starts it if there is none.
    pub(super) fn running(&'static self, layers: ConfinementLayers) -> Result<Arc<Zygote>, ZygoteError> {
        let mut running = self.running[layers as usize].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(zygote) = running.upgrade() {
            return Ok(zygote);
        }
        if !self.has_door.load(Ordering::Relaxed) {
            return Err(ZygoteError::NoDoor);
        }
        self.open_more_files();
        let zygote = Arc::new(Zygote::start(layers, self)?);
        *running = Arc::downgrade(&zygote);
        Ok(zygote)
    }

    /// Raises this process's limit of open descriptors to its maximum. Descriptors in transit through a socket count
    /// for the user, whose commands may have some in transit as well. A process may not send more once that count
    /// exceeds its own limit.
    fn open_more_files(&self) {
        let usual = *self.usual_files.get_or_init(|| getrlimit(Resource::Nofile));
        // If the limit cannot be raised, the process continues with the old one.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: usual.maximum, maximum: usual.maximum });
    }

    /// Returns the limit of open descriptors for unconfined programs, if this process raised its own: the limit before
    /// that. Some programs fail with a higher limit.
    pub(super) fn usual_files(&self) -> Option<Rlimit> {
        self.usual_files.get().copied()
    }

    /// Ends all zygotes and their runs, and returns once they are reaped. Waits at most [`TIME_TO_END`] for a zygote
    /// that another thread is ending.
    pub(super) fn end(&self) {
        for running in &self.running {
            let zygote = running.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
            if let Some(zygote) = zygote {
                zygote.close();
            }
        }
        // Another thread may be closing a zygote at this moment.
        let living = self.living();
        drop(self.is_gone.wait_timeout_while(living, TIME_TO_END, |living| *living > 0));
    }

    fn living(&self) -> MutexGuard<'_, usize> {
        self.living.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runtime side of a zygote.
#[derive(Debug)]
pub(super) struct Zygote {
    socket: OwnedFd,
    watcher: Mutex<Option<JoinHandle<()>>>,
}

/// Reason why no zygote is available.
#[derive(Debug, thiserror::Error)]
pub(super) enum ZygoteError {
    #[error(
        "the program that runs Toolstead cannot confine commands: its `main` does not begin with `enter_if_helper()`"
    )]
    NoDoor,
    #[error(transparent)]
    Step(#[from] StepFailure),
    #[error("the process that starts confined programs has ended; restart Toolstead")]
    Gone(#[source] io::Error),
    #[error("a confined program could not be requested from the process that starts them")]
    Request(#[source] io::Error),
    #[error("the process that starts confined programs could not be started")]
    Start(#[source] io::Error),
}

impl Zygote {
    fn start(layers: ConfinementLayers, all: &'static Zygotes) -> Result<Self, ZygoteError> {
        let temporary = match layers {
            ConfinementLayers::All => None,
            ConfinementLayers::WithoutNamespaces => {
                Some(fs::canonicalize(env::temp_dir()).map_err(ZygoteError::Start)?)
            }
        };
        let (socket, theirs) = channel().map_err(ZygoteError::Start)?;
        let (started, is_started) = mpsc::channel();
        // The death signal of the zygote is bound to the thread that forks it, so that thread lives as long as the
        // zygote.
        let watcher = thread::Builder::new().name("zygote".into()).stack_size(128 << 10).spawn(move || {
            let child = Command::new("/proc/self/exe")
                .arg0(NAME)
                .args(temporary)
                .env_clear()
                .current_dir("/")
                .stdin(Stdio::from(theirs))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            match child {
                Ok(mut child) => {
                    *all.living() += 1;
                    let _ = started.send(Ok(()));
                    let _ = child.wait();
                    *all.living() -= 1;
                    all.is_gone.notify_all();
                }
                Err(error) => drop(started.send(Err(error))),
            }
        });
        let watcher = Mutex::new(Some(watcher.map_err(ZygoteError::Start)?));
        is_started.recv().map_err(io::Error::other).flatten().map_err(ZygoteError::Start)?;
        let zygote = Self { socket, watcher };
        let (bytes, _) = receive(&zygote.socket, request::MAX_REPORT_BYTES).map_err(ZygoteError::Start)?;
        match serde_json::from_slice(&bytes) {
            Ok(RunEvent::Started) => Ok(zygote),
            Ok(RunEvent::Failed(failure)) => Err(failure.into()),
            _ => Err(ZygoteError::Start(io::Error::other("it ended at once"))),
        }
    }

    /// Requests a run. Its reports arrive on the returned socket; closing the socket ends the run.
    pub(super) fn launch(&self, request: RunRequest, streams: [OwnedFd; 3]) -> Result<OwnedFd, ZygoteError> {
        let (ours, theirs) = channel().map_err(ZygoteError::Request)?;
        let order = packed(&ZygoteCommand::Launch(Box::new(request))).map_err(ZygoteError::Request)?;
        let [stdin, stdout, stderr] = &streams;
        let descriptors = [order.as_fd(), theirs.as_fd(), stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
        send(&self.socket, b"o", &descriptors).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::NotConnected => {
                ZygoteError::Gone(error)
            }
            _ => ZygoteError::Request(error),
        })?;
        Ok(ours)
    }

    /// Releases the resources that the runs of a session share.
    pub(super) fn release(&self, session: &str) {
        if let Ok(order) = packed(&ZygoteCommand::Release(session.into())) {
            // A zygote that has ended holds nothing.
            let _ = send(&self.socket, b"o", &[order.as_fd()]);
        }
    }
}

impl Zygote {
    fn close(&self) {
        let _ = shutdown(&self.socket, Shutdown::Both);
        let watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(watcher) = watcher {
            let _ = watcher.join();
        }
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        self.close();
    }
}

fn channel() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}
