//! Runs without namespaces (tier 2), confined only by Landlock and the system call filter.
//!
//! ```text
//! zygote
//!   └─ keeper of one run: in a domain of Landlock, which everything below it is in, too; ends what an init leaves
//!        └─ init: in a domain within that, so that it can kill all that is in its own, and nothing else
//!             └─ payload: in a domain within that, with the files that it may reach
//! ```
//!
//! A process in a domain can signal processes in that domain and in domains nested in it, and no process leaves its
//! domain. Therefore `kill(-1)` of an init has the effect of ending a process namespace: it ends all processes of the
//! run at once.

mod accessible_paths;
mod scratch;
mod tasks;

use super::{
    ConfinementLayers,
    filter::SyscallFilter,
    identity::clear_capabilities,
    init::{self, PreparedRun, RunInputs, WaitingPayload, close_standard_streams, end_all, payload},
    payload::part,
    request::{RunEvent, RunRequest, StepFailure, StepResultExt, report},
    sessions::{SandboxSession, SandboxSessions},
    spawner::{OwnProgramAndUmask, Spawner, close_all_but, landlock, set_up_zygote},
};
use landlock::ABI;
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, geteuid, getpid, getppid, set_child_subreaper, set_dumpable_behavior,
    set_parent_process_death_signal, test_kill_process, waitpid,
};
use scratch::ScratchFolder;
use std::{
    io,
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd},
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
};
use tasks::UserProcessCounter;

/// Zygote of runs without namespaces.
pub(super) struct LandlockZygote {
    filter: SyscallFilter,
    landlock: ABI,
    settled: OwnProgramAndUmask,
    /// Real path of the folder for temporary files.
    temporary: PathBuf,
    sessions: SandboxSessions<ScratchFolder>,
    tasks: UserProcessCounter,
}

impl LandlockZygote {
    /// Creates the zygote. It has no death signal: it ends when its socket closes, and first removes the temporary
    /// files of its runs.
    pub(super) fn prepare(temporary: PathBuf) -> Result<Self, StepFailure> {
        let step = || "start the sandbox's process".to_owned();
        let settled = set_up_zygote().step(step)?;
        let refused = |reason: &str| StepFailure::new("confine without namespaces", reason);
        if geteuid().is_root() {
            return Err(refused("root can do too much without them; run Toolstead as an ordinary user"));
        }
        let landlock = landlock().filter(|abi| *abi >= ABI::V6).ok_or_else(|| {
            refused("this needs Landlock with ABI 6 (Linux 6.12), which this kernel or container does not offer")
        })?;
        // No process of it needs capabilities, and the kernel exempts some of them from the limit of processes.
        clear_capabilities()?;
        set_dumpable_behavior(DumpableBehavior::NotDumpable).step(step)?;
        let filter = SyscallFilter::build(ConfinementLayers::WithoutNamespaces).map_err(io::Error::other);
        let filter = filter.step(|| "build the filter of system calls".into())?;
        Ok(Self {
            filter,
            landlock,
            settled,
            temporary,
            sessions: SandboxSessions::new(),
            tasks: UserProcessCounter::new(),
        })
    }

    /// Returns the index of the session, which becomes the last one in the list. Opens the session if it is new.
    fn session(&mut self, key: String, request: &RunRequest) -> Result<usize, StepFailure> {
        if let Some(place) = self.sessions.known(&key) {
            self.sessions.list[place].shared.reopen().step(|| "open the session's temporary files".into())?;
            return Ok(place);
        }
        if let Some(idle) = self.sessions.make_room()? {
            close_session(idle);
        }
        let scratch = ScratchFolder::make(&self.temporary, &request.settings)?;
        Ok(self.sessions.open(key, scratch))
    }
}

/// Removes the temporary files of a session once its runs have ended, in a separate process that is not waited for.
fn close_session(SandboxSession { shared, runs, .. }: SandboxSession<ScratchFolder>) {
    let kept: Vec<_> = runs.iter().map(AsRawFd::as_raw_fd).chain([shared.descriptor()]).collect();
    // If no child process can be started, the files remain, because this process must not wait for the runs.
    let _ = run_in_child(&kept, || {
        runs.iter().for_each(ended);
        shared.remove()
    });
}

/// Runs `work` in a separate process that holds only the `kept` descriptors and reports nothing. It may outlive this
/// process and the zygote, because removing the files of a run may take long.
fn run_in_child(kept: &[RawFd], work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
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

fn ended(process: &OwnedFd) {
    use rustix::event::{PollFd, PollFlags, poll};
    while matches!(poll(&mut [PollFd::new(process, PollFlags::IN)], None), Err(rustix::io::Errno::INTR)) {}
}

impl Spawner for LandlockZygote {
    fn launch(
        &mut self,
        mut request: RunRequest,
        _: OwnedFd,
        socket: &OwnedFd,
        streams: [OwnedFd; 3],
    ) -> Result<(), StepFailure> {
        accessible_paths::check(&request)?;
        accessible_paths::check_beside(&request, &self.temporary)?;
        // The kernel counts all processes of a user, not those of one run.
        let others = self.tasks.count().step(|| "count this user's processes".into())?;
        request.processes = request.processes.saturating_add(others);
        let session = request.session.clone().map(|key| self.session(key, &request)).transpose()?;
        let own = match session {
            Some(_) => None,
            None => Some(ScratchFolder::make(&self.temporary, &request.settings)?),
        };
        let shared = session.map(|place| &self.sessions.list[place].shared);
        if let Some(scratch) = own.as_ref().or(shared) {
            scratch.show_to(&mut request);
        }
        let birth =
            RunInputs { request, streams, filter: &self.filter, settled: &self.settled, landlock: Some(self.landlock) };
        let socket_of_init = socket.try_clone().step(|| "start a process".into())?;
        let cloned = clone(birth, socket_of_init, own.as_ref()).step(|| "start a process".into());
        if let (Err(_), Some(own)) = (&cloned, &own) {
            // The first failure is reported.
            let _ = own.remove();
        }
        let (pid, process) = cloned?;
        if let Some(place) = session {
            let known = process.try_clone().step(|| "duplicate the descriptor of a run".into())?;
            self.sessions.list[place].runs.push(known);
        }
        let born = RunEvent::Born { pid: pid.as_raw_nonzero().get() };
        report(socket, &born, &[process.as_fd()]).step(|| "report a start".into())
    }

    fn release(&mut self, key: &str) {
        if let Some(session) = self.sessions.take(key) {
            close_session(session);
        }
    }

    fn end(&mut self) {
        self.sessions.list.drain(..).for_each(close_session);
    }
}

/// Forks a keeper, which never returns from this function. `own` is the folder that only this run writes to.
fn clone(birth: RunInputs<'_>, socket: OwnedFd, own: Option<&ScratchFolder>) -> io::Result<(Pid, OwnedFd)> {
    let mut process: libc::c_int = -1;
    // Not clone3, which the filters of containers refuse.
    let flags = libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: the call shares no memory, so it is a fork, and this process has one thread, so the child finds no lock
    // held. The descriptor is new and has no other owner.
    unsafe {
        let nothing = std::ptr::null_mut::<libc::c_void>();
        let zygote = getpid();
        let pid = libc::syscall(libc::SYS_clone, flags as libc::c_ulong, nothing, &raw mut process, nothing, nothing);
        match i32::try_from(pid) {
            Ok(0) => {
                let code = catch_unwind(AssertUnwindSafe(|| run_keeper(birth, socket, own, zygote)));
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

/// Runs the keeper of one run: forks the init, ends what the init leaves, and removes `own`. Returns in the keeper and
/// in the init, with the exit code of each.
fn run_keeper(birth: RunInputs<'_>, socket: OwnedFd, own: Option<&ScratchFolder>, zygote: Pid) -> i32 {
    let keeper = getpid();
    let fork = || {
        // SAFETY: no handler is passed; this process has one thread, so that the child finds no lock held.
        let child = unsafe {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            libc::fork()
        };
        if child < 0 { Err(io::Error::last_os_error()).step(|| "start a process".into()) } else { Ok(child) }
    };
    match enter_domain(Signal::KILL, zygote).and_then(|()| fork()) {
        Ok(0) => {
            let signals = init::signals(true);
            return init::run(birth, &socket, signals, |birth| prepare(birth, keeper));
        }
        Ok(init) => {
            // Readers of the output and of the init's socket must see their end.
            drop((birth, socket));
            close_standard_streams();
            while matches!(waitpid(Pid::from_raw(init), WaitOptions::empty()), Err(rustix::io::Errno::INTR)) {}
            end_all(None);
        }
        // Nothing was started, and this process may not be in a domain, so it must not kill other processes.
        Err(failure) => drop(report(&socket, &RunEvent::Failed(failure), &[])),
    }
    if let Some(own) = own
        && run_in_child(&[own.descriptor()], || own.remove()).is_err()
    {
        // A failure to remove the folder is not reported, because it is in a folder for temporary files.
        let _ = own.remove();
    }
    0
}

/// Puts this process into a new domain of which it is the first, and makes it inherit orphans there. It receives the
/// signal when its parent ends. Later it kills every process that it can signal, so this function verifies that the
/// parent is not one of them.
fn enter_domain(at_the_end: Signal, parent: Pid) -> Result<(), StepFailure> {
    let step = || "control the processes of a run".to_owned();
    set_child_subreaper(Some(getpid())).step(step)?;
    set_parent_process_death_signal(Some(at_the_end)).step(step)?;
    part()?;
    match test_kill_process(parent) {
        Err(rustix::io::Errno::PERM) if getppid() == Some(parent) => Ok(()),
        _ => Err(StepFailure::new(step(), "its Landlock domain is not in force, or its parent has ended")),
    }
}

/// Confines the init and forks its payload.
fn prepare<'a>(birth: &RunInputs<'_>, keeper: Pid) -> Result<PreparedRun<'a>, StepFailure> {
    // Until there is a process to end, for example while a disk does not respond, there is nothing to clean up.
    enter_domain(Signal::KILL, keeper)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).step(|| "hide from the payload".into())?;
    let places = accessible_paths::open(&birth.request, birth.landlock.unwrap_or(ABI::V6))?;
    let step = || "control the processes of a run".to_owned();
    set_parent_process_death_signal(Some(Signal::TERM)).step(step)?;
    // If the init is killed, the processes that it would have ended must end with it.
    let ready = || set_parent_process_death_signal(Some(Signal::KILL)).step(step);
    let payload = WaitingPayload::fork(None, |begun| payload(birth, begun, ready, || Ok(places)))?;
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
    fn run_in_child_keeps_only_the_passed_descriptors_open() {
        let pipe = || pipe_with(PipeFlags::CLOEXEC).unwrap();
        let ((kept, go), (outcome, tell), (foreign, held)) = (pipe(), pipe(), pipe());
        run_in_child(&[kept.as_raw_fd(), tell.as_raw_fd()], || {
            rustix::io::write(&tell, b"b")?;
            rustix::io::read(&kept, &mut [0; 1])?;
            Ok(())
        })
        .unwrap();
        drop((held, tell));
        let in_time = Timespec { tv_sec: 30, tv_nsec: 0 };
        assert_eq!(rustix::io::read(&outcome, &mut [0; 1]).unwrap(), 1);
        // While it waits.
        let mut end = [PollFd::new(&foreign, PollFlags::IN)];
        assert_eq!(poll(&mut end, Some(&in_time)).unwrap(), 1);
        drop(go);
        assert_eq!(rustix::io::read(&outcome, &mut [0; 1]).unwrap(), 0);
    }
}
