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
mod tasks;

use super::{
    Layers,
    births::{Births, Settled, close_all_but, landlock, settle_down},
    filter::Filter,
    identity::clear_capabilities,
    init::{self, Birth, PreparedRun, Waiting, close_standard_streams, end_all, payload},
    payload::part,
    request::{Failure, Report, Request, Step, report},
    sessions::{Session, Sessions},
};
use landlock::ABI;
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, geteuid, getpid, getppid, set_child_subreaper, set_dumpable_behavior,
    set_parent_process_death_signal, test_kill_process, waitpid,
};
use scratch::Scratch;
use std::{
    io,
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd},
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
};
use tasks::Tasks;

/// The zygote of such runs.
pub(super) struct LandlockZygote {
    filter: Filter,
    landlock: ABI,
    settled: Settled,
    /// The folder for temporary files, by its real path.
    temporary: PathBuf,
    sessions: Sessions<Scratch>,
    tasks: Tasks,
}

impl LandlockZygote {
    /// It has no death signal: it ends with its socket, and takes away what its runs have written first.
    pub(super) fn prepare(temporary: PathBuf) -> Result<Self, Failure> {
        let step = || "start the sandbox's process".to_owned();
        let settled = settle_down().step(step)?;
        let refused = |reason: &str| Failure::new("confine without namespaces", reason);
        if geteuid().is_root() {
            return Err(refused("root can do too much without them; run Toolstead as an ordinary user"));
        }
        let landlock = landlock().filter(|abi| *abi >= ABI::V6).ok_or_else(|| {
            refused("this needs Landlock with ABI 6 (Linux 6.12), which this kernel or container does not offer")
        })?;
        // None of its processes needs any, and the kernel lets some pass by the limit of processes.
        clear_capabilities()?;
        set_dumpable_behavior(DumpableBehavior::NotDumpable).step(step)?;
        let filter = Filter::build(Layers::WithoutNamespaces).map_err(io::Error::other);
        let filter = filter.step(|| "build the filter of system calls".into())?;
        Ok(Self { filter, landlock, settled, temporary, sessions: Sessions::new(), tasks: Tasks::new() })
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
fn let_go(Session { shared, runs, .. }: Session<Scratch>) {
    let kept: Vec<_> = runs.iter().map(AsRawFd::as_raw_fd).chain([shared.descriptor()]).collect();
    // Without a process its files stay: this one must not wait for the runs.
    let _ = apart(&kept, || {
        runs.iter().for_each(ended);
        shared.remove()
    });
}

/// Does it in a process of its own, which holds no descriptors but these and ends without a word to anybody. It outlives
/// this one and the zygote: what a run has written may be much.
fn apart(kept: &[RawFd], work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    // SAFETY: this process has one thread, so that the child finds no lock held.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let done = catch_unwind(AssertUnwindSafe(|| {
            close_all_but(kept);
            work()
        }));
        // SAFETY: the call touches no memory.
        unsafe { libc::_exit(i32::from(!matches!(done, Ok(Ok(()))))) }
    }
    if child < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits for the end of a process.
fn ended(process: &OwnedFd) {
    use rustix::event::{PollFd, PollFlags, poll};
    while matches!(poll(&mut [PollFd::new(process, PollFlags::IN)], None), Err(rustix::io::Errno::INTR)) {}
}

impl Births for LandlockZygote {
    fn launch(
        &mut self,
        mut request: Request,
        _: OwnedFd,
        socket: &OwnedFd,
        streams: [OwnedFd; 3],
    ) -> Result<(), Failure> {
        places::check(&request)?;
        places::check_beside(&request, &self.temporary)?;
        // The kernel counts all processes of a user, and not those of a run.
        let others = self.tasks.count().step(|| "count this user's processes".into())?;
        request.processes = request.processes.saturating_add(others);
        let session = request.session.clone().map(|key| self.session(key, &request)).transpose()?;
        let own = match session {
            Some(_) => None,
            None => Some(Scratch::make(&self.temporary, &request.settings)?),
        };
        let shared = session.map(|place| &self.sessions.list[place].shared);
        if let Some(scratch) = own.as_ref().or(shared) {
            scratch.show_to(&mut request);
        }
        let birth =
            Birth { request, streams, filter: &self.filter, settled: &self.settled, landlock: Some(self.landlock) };
        let socket_of_init = socket.try_clone().step(|| "start a process".into())?;
        let cloned = clone(birth, socket_of_init, own.as_ref()).step(|| "start a process".into());
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

/// Starts a keeper, which never returns from here. `own` is what the run alone writes into.
fn clone(birth: Birth<'_>, socket: OwnedFd, own: Option<&Scratch>) -> io::Result<(Pid, OwnedFd)> {
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
                let code = catch_unwind(AssertUnwindSafe(|| keep(birth, socket, own, zygote)));
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
fn keep(birth: Birth<'_>, socket: OwnedFd, own: Option<&Scratch>, zygote: Pid) -> i32 {
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
        Ok(0) => {
            let signals = init::signals(true);
            return init::run(birth, &socket, signals, |birth| prepare(birth, keeper));
        }
        Ok(init) => {
            // Whoever reads the output, and whoever hears of the init, must see its end.
            drop((birth, socket));
            close_standard_streams();
            while matches!(waitpid(Pid::from_raw(init), WaitOptions::empty()), Err(rustix::io::Errno::INTR)) {}
            end_all(None);
        }
        // Nothing was started, and this process may be in no domain: it must not end anybody.
        Err(failure) => drop(report(&socket, &Report::Failed(failure), &[])),
    }
    if let Some(own) = own
        && apart(&[own.descriptor()], || own.remove()).is_err()
    {
        // Nobody hears of what cannot be removed: it lies in a folder for temporary files.
        let _ = own.remove();
    }
    0
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
        _ => Err(Failure::new(step(), "its domain of Landlock does not hold, or its parent is gone")),
    }
}

/// The init becomes what it will be.
fn prepare<'a>(birth: &Birth<'_>, keeper: Pid) -> Result<PreparedRun<'a>, Failure> {
    // Until there is something to end, as while a disk does not answer, it has nothing to put right.
    take_in(Signal::KILL, keeper)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).step(|| "hide from the payload".into())?;
    let places = places::open(&birth.request, birth.landlock.unwrap_or(ABI::V6))?;
    let step = || "keep hold of what a run starts".to_owned();
    set_parent_process_death_signal(Some(Signal::TERM)).step(step)?;
    // What the init would have ended goes with it, should it be killed.
    let ready = || set_parent_process_death_signal(Some(Signal::KILL)).step(step);
    let payload = Waiting::born(None, |begun| payload(birth, begun, ready, || Ok(places)))?;
    Ok(PreparedRun { listeners: Vec::new(), protected: None, group: None, payload })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::{
        event::{PollFd, PollFlags, Timespec, poll},
        pipe::{PipeFlags, pipe_with},
    };

    #[test]
    fn what_is_done_apart_holds_the_descriptors_that_it_needs_and_no_other() {
        let pipe = || pipe_with(PipeFlags::CLOEXEC).unwrap();
        let ((kept, go), (told, tell), (foreign, held)) = (pipe(), pipe(), pipe());
        apart(&[kept.as_raw_fd(), tell.as_raw_fd()], || {
            rustix::io::write(&tell, b"b")?;
            rustix::io::read(&kept, &mut [0; 1])?;
            Ok(())
        })
        .unwrap();
        drop((held, tell));
        let in_time = Timespec { tv_sec: 30, tv_nsec: 0 };
        assert_eq!(rustix::io::read(&told, &mut [0; 1]).unwrap(), 1);
        // While it waits.
        let mut end = [PollFd::new(&foreign, PollFlags::IN)];
        assert_eq!(poll(&mut end, Some(&in_time)).unwrap(), 1);
        drop(go);
        assert_eq!(rustix::io::read(&told, &mut [0; 1]).unwrap(), 0);
    }
}
