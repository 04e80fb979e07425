//! The two kinds of zygotes: what they have in common.

use super::request::{Failure, Request};
use crate::sandbox::kernel;
use landlock::ABI;
use rustix::{
    fs::Mode,
    process::{Resource, Rlimit, Signal, getrlimit, setrlimit, setsid, umask},
};
use std::{
    fs::File,
    io,
    os::fd::{BorrowedFd, OwnedFd, RawFd},
};

/// What the zygote makes, all its runs can reach, whatever mask its user has. A payload takes that one again.
const MASK: Mode = Mode::from_raw_mode(0o022);

/// What a zygote and its inits ignore. Payloads do not.
pub(super) const IGNORED: [libc::c_int; 3] = [libc::SIGCHLD, libc::SIGPIPE, libc::SIGXFSZ];

/// What asks a process to end, and zygotes and inits do not hear. Payloads do.
const UNHEARD: [Signal; 4] = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM];

/// What gives birth to inits.
pub(super) trait Births {
    /// Starts a run, which the order asks for. The socket is where it is heard of.
    fn launch(
        &mut self,
        request: Request,
        order: OwnedFd,
        socket: &OwnedFd,
        streams: [OwnedFd; 3],
    ) -> Result<(), Failure>;
    /// Lets go of what a session shares. Runs that are there keep it.
    fn release(&mut self, key: &str);
    /// Returns once something can be read, and looks after what runs leave meanwhile.
    fn rest(&mut self, _until_read: BorrowedFd<'_>) {}
    /// No run will be ordered any more.
    fn close(&mut self) {}
    /// Lets go of everything, once no run is there.
    fn end(&mut self);
}

/// What a zygote found when it began, and its payloads need.
#[derive(Debug)]
pub(super) struct Settled {
    /// This program.
    pub(super) own_program: OwnedFd,
    /// The mask of new files of the runtime's user.
    pub(super) usual_mask: Mode,
}

/// What every zygote does first.
pub(super) fn settle_down() -> io::Result<Settled> {
    // What the runtime or its own parent ignores, a program would, too. A broken pipe is no end of this process, and inits
    // are reaped by nobody: their end is told by their sockets.
    // SAFETY: no handler is passed; this process has one thread.
    unsafe {
        for signal in 1..=libc::SIGRTMAX() {
            libc::signal(signal, if IGNORED.contains(&signal) { libc::SIG_IGN } else { libc::SIG_DFL });
        }
    }
    // As many as may be: each run and each session's network has one here. Payloads get a limit of their own.
    let files = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: files, maximum: files })?;
    let usual_mask = umask(MASK);
    // What ends the runtime's group, as the terminal's interrupt does, or asks all processes of a unit to end, must leave
    // time to those who end runs: they hear of it by their sockets. `setsid` fails only for who leads a group already.
    let _ = setsid();
    block(&UNHEARD);
    Ok(Settled { own_program: File::open("/proc/self/exe")?.into(), usual_mask })
}

/// Keeps these signals from this process and its children until they take them. Payloads take all.
pub(super) fn block(signals: &[Signal]) -> libc::sigset_t {
    // SAFETY: the set is this function's own and made by the first call; this process has one thread.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, signal.as_raw());
        }
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        set
    }
}

/// Forgets what this process was asked so far. It was not meant for the program that it becomes.
pub(super) fn forget_signals() {
    let set = block(&UNHEARD);
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the set and the time live through the call; nothing else is passed.
    while unsafe { libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const at_once) } > 0 {}
}

/// Closes all descriptors but these, whosever they are: their owners are not come back to. Who waits for the end of a stream,
/// or of the zygote, must not wait for this process.
pub(super) fn close_all_but(kept: &[RawFd]) {
    let mut kept: Vec<_> = kept.iter().map(|one| one.unsigned_abs()).collect();
    kept.sort_unstable();
    let ends = kept.iter().copied().chain([u32::MAX]);
    let firsts = [0].into_iter().chain(kept.iter().map(|one| one + 1));
    for (first, end) in firsts.zip(ends).filter(|(first, end)| first < end) {
        // SAFETY: the call touches no memory.
        unsafe { libc::syscall(libc::SYS_close_range, first, end - 1, 0) };
    }
}

/// The Landlock of this kernel.
pub(super) fn landlock() -> Option<ABI> {
    kernel::features().landlock_abi.map(|abi| ABI::from(i32::try_from(abi).unwrap_or(i32::MAX)))
}
