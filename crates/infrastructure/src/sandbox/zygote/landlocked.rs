//! Runs without namespaces (tier 2): Landlock and the filter of system calls are all that there is.
//!
//! ```text
//! zygote
//!   └─ keeper of one run: in a domain of Landlock, which everything below it is in, too; ends what an init leaves
//!        └─ init: in a domain within that, so that it can kill all that is in its own, and nothing else
//!             └─ payload: in a domain within that, with the files that it may reach
//! ```
//!
//! Whoever is in a domain can signal what is in it or in one within it, and nobody leaves a domain. So `kill(-1)` of an
//! init does what the end of a namespace of processes does: it takes everything, at once.

mod places;
mod scratch;

use super::{
    Layers,
    filter::Filter,
    identity::clear_capabilities,
    init::{self, Birth, Waiting, World, end_all},
    payload::part,
    request::{Failure, Report, Request, Step, report},
    server::{Births, landlock, settle_down},
    sessions::{Session, Sessions},
};
use landlock::ABI;
use rustix::{
    process::{
        DumpableBehavior, Pid, Signal, WaitOptions, geteuid, getpid, getppid, set_child_subreaper,
        set_dumpable_behavior, set_parent_process_death_signal, test_kill_process, waitpid,
    },
    thread::set_no_new_privs,
};
use scratch::Scratch;
use std::{
    fs, io,
    os::fd::{AsFd, FromRawFd, OwnedFd},
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
};

/// The zygote of such runs.
pub(super) struct Zygote {
    filter: Filter,
    landlock: ABI,
    own_program: OwnedFd,
    /// The folder for temporary files, by its real path.
    temporary: PathBuf,
    sessions: Sessions<Scratch>,
}

impl Zygote {
    /// It has no death signal: it ends with its socket, and takes away what its runs have written first.
    pub(super) fn prepare(temporary: PathBuf) -> Result<Self, Failure> {
        let step = || "start the sandbox's process".to_owned();
        let own_program = settle_down().step(step)?;
        let refused = |reason: &str| Failure { step: "confine without namespaces".into(), reason: reason.into() };
        if geteuid().is_root() {
            return Err(refused("root can do too much without them; run Toolstead as an ordinary user"));
        }
        let landlock = landlock().filter(|abi| *abi >= ABI::V6).ok_or_else(|| {
            refused("this needs Landlock with ABI 6 (Linux 6.12), which this kernel or container does not offer")
        })?;
        set_no_new_privs(true).step(step)?;
        set_dumpable_behavior(DumpableBehavior::NotDumpable).step(step)?;
        let filter = Filter::build(Layers::WithoutNamespaces).map_err(io::Error::other);
        let filter = filter.step(|| "build the filter of system calls".into())?;
        Ok(Self { filter, landlock, own_program, temporary, sessions: Sessions::new() })
    }

    /// The place of the session in the list, which is the last one; opened if it is new.
    fn session(&mut self, key: String, request: &Request) -> Result<usize, Failure> {
        if let Some(place) = self.sessions.known(&key) {
            self.sessions.list[place].shared.reopen().step(|| "open the session's temporary files".into())?;
            return Ok(place);
        }
        if let Some(idle) = self.sessions.make_room()? {
            let_go(idle);
        }
        let scratch = Scratch::make(&self.temporary, &request.settings)?;
        Ok(self.sessions.open(key, scratch))
    }
}

/// Lets go of a session once its runs have ended, which nobody waits for.
fn let_go(session: Session<Scratch>) {
    // SAFETY: this process has one thread, so that the child finds no lock held. It ends without a word to anybody.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let removed = catch_unwind(AssertUnwindSafe(|| {
            close_standard_streams();
            session.runs.iter().for_each(ended);
            session.shared.remove()
        }));
        // SAFETY: the call touches no memory.
        unsafe { libc::_exit(i32::from(!matches!(removed, Ok(Ok(()))))) }
    }
}

/// Waits for the end of a process.
fn ended(process: &OwnedFd) {
    use rustix::event::{PollFd, PollFlags, poll};
    while matches!(poll(&mut [PollFd::new(process, PollFlags::IN)], None), Err(rustix::io::Errno::INTR)) {}
}

/// The input of a zygote is its socket, whose end is to be seen when it ends.
fn close_standard_streams() {
    // SAFETY: the call touches no memory, and nobody here uses the three.
    unsafe { libc::syscall(libc::SYS_close_range, 0_u32, 2_u32, 0) };
}

impl Births for Zygote {
    fn launch(&mut self, mut request: Request, socket: &OwnedFd, streams: [OwnedFd; 3]) -> Result<(), Failure> {
        places::check(&request)?;
        places::check_beside(&request, &self.temporary)?;
        let session = request.session.clone().map(|key| self.session(key, &request)).transpose()?;
        let own = match session {
            Some(_) => None,
            None => Some(Scratch::make(&self.temporary, &request.settings)?),
        };
        let shared = session.map(|place| &self.sessions.list[place].shared);
        if let Some(scratch) = own.as_ref().or(shared) {
            scratch.show_to(&mut request);
        }
        // The kernel counts all processes of a user, and not those of a run.
        request.processes = request.processes.saturating_add(tasks_of_user());
        let birth = Birth {
            request,
            socket: socket.try_clone().step(|| "start a process".into())?,
            streams,
            filter: &self.filter,
            own_program: &self.own_program,
            landlock: Some(self.landlock),
        };
        let cloned = clone(birth, own.as_ref()).step(|| "start a process".into());
        if let (Err(_), Some(own)) = (&cloned, &own) {
            // The first failure is told.
            let _ = own.remove();
        }
        let (pid, process) = cloned?;
        if let Some(place) = session {
            let known = process.try_clone().step(|| "keep hold of a run".into())?;
            self.sessions.list[place].runs.push(known);
        }
        let born = Report::Born { pid: pid.as_raw_nonzero().get() };
        report(socket, &born, &[process.as_fd()]).step(|| "report a start".into())
    }

    fn release(&mut self, key: &str) {
        if let Some(session) = self.sessions.take(key) {
            let_go(session);
        }
    }

    fn end(&mut self) {
        self.sessions.list.drain(..).for_each(let_go);
    }
}

/// The processes and threads that this process's user has now, as far as they are seen.
fn tasks_of_user() -> u64 {
    let Ok(entries) = fs::read_dir("/proc") else { return 0 };
    let user = geteuid().as_raw().to_string();
    let tasks = |entry: fs::DirEntry| {
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next();
        (value("Uid:")? == user).then(|| value("Threads:")?.parse::<u64>().ok()).flatten()
    };
    entries.flatten().filter_map(tasks).sum()
}

/// Starts a keeper, which never returns from here. `own` is what the run alone writes into.
fn clone(birth: Birth<'_>, own: Option<&Scratch>) -> io::Result<(Pid, OwnedFd)> {
    let mut process: libc::c_int = -1;
    // Not clone3, which filters of containers refuse.
    let flags = libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: the call shares no memory, so it is a fork, and this process has one thread, so that the child finds no
    // lock held. The descriptor is new and nobody else's.
    unsafe {
        let nothing = std::ptr::null_mut::<libc::c_void>();
        let zygote = getpid();
        let pid = libc::syscall(libc::SYS_clone, flags as libc::c_ulong, nothing, &raw mut process, nothing, nothing);
        match i32::try_from(pid) {
            Ok(0) => {
                let code = catch_unwind(AssertUnwindSafe(|| keep(birth, own, zygote)));
                libc::_exit(code.unwrap_or(70))
            }
            Ok(pid @ 1..) => {
                let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?;
                Ok((pid, OwnedFd::from_raw_fd(process)))
            }
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// The life of a keeper; its result is its exit code.
fn keep(birth: Birth<'_>, own: Option<&Scratch>, zygote: Pid) -> i32 {
    let keeper = getpid();
    let fork = || {
        // SAFETY: no handler is passed; this process has one thread, so that the child finds no lock held.
        let child = unsafe {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            libc::fork()
        };
        if child < 0 { Err(io::Error::last_os_error()).step(|| "start a process".into()) } else { Ok(child) }
    };
    match take_in(Signal::KILL, zygote).and_then(|()| fork()) {
        Ok(0) => return init::run(birth, true, |birth| prepare(birth, keeper)),
        Ok(init) => {
            // Whoever reads the output, and whoever hears of the init, must see its end.
            drop(birth);
            close_standard_streams();
            while matches!(waitpid(Pid::from_raw(init), WaitOptions::empty()), Err(rustix::io::Errno::INTR)) {}
            end_all(None);
        }
        // Nothing was started, and this process may be in no domain: it must not end anybody.
        Err(failure) => drop(report(&birth.socket, &Report::Failed(failure), &[])),
    }
    // Nobody hears of what cannot be removed: it lies in a folder for temporary files.
    own.map_or(0, |own| i32::from(own.remove().is_err()))
}

/// Makes this process the first of a domain, which inherits what loses its parent there. Where the parent of this process
/// ends, it gets a signal. What it will kill are all whom it can signal, so it is tried that its parent is none of them.
fn take_in(at_the_end: Signal, parent: Pid) -> Result<(), Failure> {
    let step = || "keep hold of what a run starts".to_owned();
    set_child_subreaper(Some(getpid())).step(step)?;
    set_parent_process_death_signal(Some(at_the_end)).step(step)?;
    part()?;
    match test_kill_process(parent) {
        Err(rustix::io::Errno::PERM) if getppid() == Some(parent) => Ok(()),
        _ => {
            Err(Failure { step: step(), reason: "its domain of Landlock does not hold, or its parent is gone".into() })
        }
    }
}

/// The init becomes what it will be.
fn prepare(birth: &Birth<'_>, keeper: Pid) -> Result<World, Failure> {
    take_in(Signal::TERM, keeper)?;
    clear_capabilities()?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).step(|| "hide from the payload".into())?;
    let places = places::open(&birth.request, birth.landlock.unwrap_or(ABI::V6))?;
    let payload = Waiting::born(birth, None, || Ok(()), || Ok(places))?;
    Ok(World { listener: None, protected: None, group: None, payload })
}
