//! The process that gives birth to every confined run.
//!
//! ```text
//! runtime (many threads)
//!   └─ zygote: this program again, one thread, empty environment, no secret in its memory
//!        └─ init of one run, born before it: new namespaces, no capabilities; reaps, ends with the payload
//!             └─ payload
//! ```
//!
//! Where there are no namespaces, and the user's settings do with that, [`landlocked`] tells another picture.
//!
//! Namespaces cannot be set up safely after a fork of a program with threads: some lock would be held for ever. So the
//! runtime starts its own program a second time, before that has any thread, and asks it for runs.

mod births;
mod filter;
mod git_config;
mod identity;
mod init;
mod landlocked;
mod mount;
mod payload;
mod protected;
mod ready;
pub(super) mod request;
mod server;
mod sessions;
mod stage;
mod view;

pub(super) use identity::DEDICATED_ID;
use request::{Failure, Order, Report, Request, packed, receive, send};
use rustix::{
    net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair},
    process::{Resource, Rlimit, getrlimit, setrlimit},
};
pub use stage::{is_device, is_shown_to_all};
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

/// The name under which this program is started as a zygote. The marker is no variable: the environment is empty.
const NAME: &str = "toolstead-zygote";

/// How long the end of the program waits for it.
const TIME_TO_END: Duration = Duration::from_secs(2);

/// What keeps the runs of a zygote in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layers {
    /// Namespaces with mounts of their own, a filter of system calls, and Landlock where there is one: tier 1.
    All,
    /// Landlock and the filter ([`landlocked`]): tier 2.
    WithoutNamespaces,
}

/// The zygotes of this process.
#[derive(Debug)]
pub(super) struct Zygotes {
    /// Whether this program's `main` begins with [`enter`](Self::enter). Without it, a second start would run a foreign
    /// `main` again.
    has_door: AtomicBool,
    /// Those that run, by the layers of their runs. Runs of all launchers share them.
    running: [Mutex<Weak<Zygote>>; 2],
    /// How many there are, those that are ending included.
    living: Mutex<usize>,
    /// One is gone, and was waited for.
    is_gone: Condvar,
    /// How many descriptors this process could open at first.
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

    /// Becomes a zygote and ends the process, if this process was started as one. Else returns, and from now on this
    /// process can start them.
    pub(super) fn enter(&self) {
        self.has_door.store(true, Ordering::Relaxed);
        let mut args = env::args_os();
        if args.next().is_some_and(|name| name == NAME) {
            // SAFETY: the call touches no memory, and nothing here has opened a descriptor yet.
            unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0) };
            process::exit(server::serve(args.next().map(PathBuf::from)));
        }
    }

    /// The one with these layers; started if there is none.
    pub(super) fn running(&'static self, layers: Layers) -> Result<Arc<Zygote>, ZygoteError> {
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

    /// Lets this process open as many descriptors as it may. Those that are on their way through a socket count for the
    /// user, whose commands have some, too; a process is refused when they are more than it could open itself.
    fn open_more_files(&self) {
        let usual = *self.usual_files.get_or_init(|| getrlimit(Resource::Nofile));
        // With fewer it goes on as it did.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: usual.maximum, maximum: usual.maximum });
    }

    /// The limit of descriptors for programs that are not confined: where this process raised its own, the one before.
    /// Some programs cannot live with more.
    pub(super) fn usual_files(&self) -> Option<Rlimit> {
        self.usual_files.get().copied()
    }

    /// Ends them and every run of theirs, and returns when they are gone and waited for.
    pub(super) fn end(&self) {
        for running in &self.running {
            let zygote = running.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
            if let Some(zygote) = zygote {
                zygote.close();
            }
        }
        // Somebody else may be letting go of it at this moment.
        let living = self.living();
        drop(self.is_gone.wait_timeout_while(living, TIME_TO_END, |living| *living > 0));
    }

    fn living(&self) -> MutexGuard<'_, usize> {
        self.living.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The runtime's side of it.
#[derive(Debug)]
pub(super) struct Zygote {
    socket: OwnedFd,
    watcher: Mutex<Option<JoinHandle<()>>>,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub(super) enum ZygoteError {
    #[error(
        "the program that runs Toolstead cannot confine commands: its `main` does not begin with `enter_if_helper()`"
    )]
    NoDoor,
    #[error(transparent)]
    Step(#[from] Failure),
    #[error("the process that starts confined programs is gone; restart Toolstead")]
    Gone(#[source] io::Error),
    #[error("a confined program could not be requested from the process that starts them")]
    Request(#[source] io::Error),
    #[error("the process that starts confined programs could not be started")]
    Start(#[source] io::Error),
}

impl Zygote {
    fn start(layers: Layers, all: &'static Zygotes) -> Result<Self, ZygoteError> {
        let temporary = match layers {
            Layers::All => None,
            Layers::WithoutNamespaces => Some(fs::canonicalize(env::temp_dir()).map_err(ZygoteError::Start)?),
        };
        let (socket, theirs) = channel().map_err(ZygoteError::Start)?;
        let (started, is_started) = mpsc::channel();
        // Its death signal is bound to the thread that forks it, so that thread stays as long as it lives.
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
            Ok(Report::Started) => Ok(zygote),
            Ok(Report::Failed(failure)) => Err(failure.into()),
            _ => Err(ZygoteError::Start(io::Error::other("it ended at once"))),
        }
    }

    /// Orders a run. What is heard of it comes on the socket; closing that ends the run.
    pub(super) fn launch(&self, request: Request, streams: [OwnedFd; 3]) -> Result<OwnedFd, ZygoteError> {
        let (ours, theirs) = channel().map_err(ZygoteError::Request)?;
        let order = packed(&Order::Launch(Box::new(request))).map_err(ZygoteError::Request)?;
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

    /// Lets go of what the runs of a session share.
    pub(super) fn release(&self, session: &str) {
        if let Ok(order) = packed(&Order::Release(session.into())) {
            // A zygote that is gone holds nothing.
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
