//! Trait and functions that both kinds of zygotes share.

use super::request::{RunRequest, StepFailure};
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

/// File mode mask that makes files of the zygote accessible to all its runs, whatever the mask of the user is. Payloads
/// restore the mask of the user.
const MASK: Mode = Mode::from_raw_mode(0o022);

/// Signals that a zygote and its inits ignore. Payloads do not.
pub(super) const IGNORED: [libc::c_int; 3] = [libc::SIGCHLD, libc::SIGPIPE, libc::SIGXFSZ];

/// Signals that request a process to end and that zygotes and inits block. Payloads receive them.
const UNHEARD: [Signal; 4] = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM];

/// Creates the inits of runs.
pub(super) trait Spawner {
    /// Starts the run of a request. Reports of the run are sent on the socket.
    fn launch(
        &mut self,
        request: RunRequest,
        order: OwnedFd,
        socket: &OwnedFd,
        streams: [OwnedFd; 3],
    ) -> Result<(), StepFailure>;
    /// Releases the resources that a session shares. Running commands keep them until they end.
    fn release(&mut self, key: &str);
    /// Waits until the descriptor can be read, and cleans up after runs meanwhile.
    fn rest(&mut self, _until_read: BorrowedFd<'_>) {}
    /// Called once no further run will be requested.
    fn close(&mut self) {}
    /// Releases everything, once no run is left.
    fn end(&mut self);
}

/// State at the start of a zygote that its payloads need.
#[derive(Debug)]
pub(super) struct OwnProgramAndUmask {
    /// Descriptor of this program.
    pub(super) own_program: OwnedFd,
    /// File mode mask of the user.
    pub(super) usual_mask: Mode,
}

/// Prepares this process as a zygote: its signals, its process group, its limit of descriptors and its file mode mask.
/// Returns the state that its payloads need.
pub(super) fn set_up_zygote() -> io::Result<OwnProgramAndUmask> {
    // A program would inherit the ignored signals of the runtime or its parent. A broken pipe must not end this
    // process. The kernel reaps inits, whose sockets report their end.
    unsafe {
        for signal in 1..=libc::SIGRTMAX() {
            libc::signal(signal, if IGNORED.contains(&signal) { libc::SIG_IGN } else { libc::SIG_DFL });
        }
    }
    // Raised to the maximum, because each run and the network of each session has a descriptor here. Payloads have
    // their own limit.
    let files = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: files, maximum: files })?;
    let usual_mask = umask(MASK);
    // A signal that ends the process group of the runtime, such as the interrupt of a terminal, or that requests all
    // processes of a unit to end, must leave time for the code that ends runs. That code learns of the end through
    // sockets. `setsid` fails only for a process that already leads a group.
    let _ = setsid();
    block(&UNHEARD);
    Ok(OwnProgramAndUmask { own_program: File::open("/proc/self/exe")?.into(), usual_mask })
}

/// Blocks these signals in this process and its children until they wait for them. Payloads unblock all signals.
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

/// Discards pending signals of this process. They were not meant for the program that it becomes.
pub(super) fn forget_signals() {
    let set = block(&UNHEARD);
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the set and the time live through the call; nothing else is passed.
    while unsafe { libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const at_once) } > 0 {}
}

/// Closes every file descriptor not in `kept`. Control never returns to their owners. A process that waits for the end
/// of a stream, or of the zygote, must not have to wait for this process.
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

/// Returns the Landlock ABI that this kernel supports.
pub(super) fn landlock() -> Option<ABI> {
    kernel::features().landlock_abi.map(|abi| ABI::from(i32::try_from(abi).unwrap_or(i32::MAX)))
}
