//! An init that is created before its run is requested.
//!
//! Creating the namespaces and the part of the root that all runs see takes about as long as everything else. Therefore
//! the zygote always keeps one init that has done this. It holds no data of a run, and serves a single one.

use super::{init::NamespaceInitInputs, request::RunDescriptors, sessions::lives, spawner::close_all_but};
use crate::sandbox::control_group::ControlGroupHandle;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::stat,
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
    process::Pid,
};
use std::{
    fs::File,
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    path::Path,
};

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
const STANDARD: [RawFd; 3] = [0, 1, 2];

/// Zygote side of a waiting init. The init ends when this value is dropped, unless a run was requested.
#[derive(Debug)]
pub(super) struct ReadyInit {
    pub(super) pid: Pid,
    pub(super) process: OwnedFd,
    pub(super) group: Option<ControlGroupHandle>,
    /// Socket on which the init receives its run. It becomes readable only if the init is unusable: it failed to start,
    /// or it or its payload has ended.
    orders: OwnedFd,
    origin: ZygoteStateStamp,
}

/// State of the mounts, the root and the id maps of the zygote when an init was forked with a copy of them.
#[derive(Debug)]
struct ZygoteStateStamp {
    /// Mount table, which has a priority event once anything is mounted or unmounted.
    mounts: File,
    /// Time of the last change to the entries of `/`.
    top: (i64, i64),
    /// Number of id maps.
    maps: usize,
}

impl ReadyInit {
    /// Forks an init in namespaces of its own, with only the descriptors that every run needs.
    pub(super) fn fork(namespaced: NamespaceInitInputs<'_>, group: Option<ControlGroupHandle>) -> io::Result<Self> {
        let origin = ZygoteStateStamp::now(namespaced.maps.len())?;
        let (orders, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let namespaced = NamespaceInitInputs { group: group.as_ref(), ..namespaced };
        let (pid, process) = clone(&namespaced, theirs)?;
        Ok(Self { pid, process, group, orders, origin })
    }

    /// Returns the descriptor that can be read once the init [is unusable](Self::is_spoilt).
    pub(super) fn orders(&self) -> &OwnedFd {
        &self.orders
    }

    /// Returns `true` if the init cannot serve a run.
    pub(super) fn is_spoilt(&self) -> bool {
        !matches!(poll(&mut [PollFd::new(&self.orders, PollFlags::IN)], Some(&AT_ONCE)), Ok(0))
    }

    /// Returns `true` if the init can serve a run and a new init would be the same.
    pub(super) fn is_current(&self, maps: usize) -> bool {
        !self.is_spoilt() && lives(&self.process) && self.origin.maps == maps && self.origin.is_unchanged()
    }

    /// Passes a run to the init, which belongs to that run from now on.
    pub(super) fn begin(&self, run: &RunDescriptors) -> io::Result<()> {
        run.send(&self.orders)
    }
}

impl ZygoteStateStamp {
    fn now(maps: usize) -> io::Result<Self> {
        Ok(Self { mounts: File::open("/proc/self/mountinfo")?, top: top()?, maps })
    }

    fn is_unchanged(&self) -> bool {
        let mut events = [PollFd::new(&self.mounts, PollFlags::PRI)];
        matches!(poll(&mut events, Some(&AT_ONCE)), Ok(0)) && top().is_ok_and(|top| top == self.top)
    }
}

fn top() -> io::Result<(i64, i64)> {
    let found = stat(Path::new("/"))?;
    Ok((found.st_ctime, i64::try_from(found.st_ctime_nsec).map_err(io::Error::other)?))
}

/// Forks an init in namespaces of its own. The init never returns from this function.
fn clone(namespaced: &NamespaceInitInputs<'_>, orders: OwnedFd) -> io::Result<(Pid, OwnedFd)> {
    let flags = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS | libc::CLONE_PIDFD;
    let mut process: libc::c_int = -1;
    // SAFETY: all-zero is valid for the structure. The call shares no memory, so it is a fork, and this process has one
    // thread, so the child finds no lock held. The descriptor is new and has no other owner. The socket of the zygote,
    // which is its standard input, is replaced in the child, so that the other end notices when the zygote ends,
    // however long the child waits; its standard output leads nowhere.
    unsafe {
        let mut arguments: libc::clone_args = std::mem::zeroed();
        arguments.flags = u64::from(flags.unsigned_abs());
        arguments.pidfd = &raw mut process as u64;
        arguments.exit_signal = u64::from(libc::SIGCHLD.unsigned_abs());
        let pid = libc::syscall(libc::SYS_clone3, &raw mut arguments, size_of::<libc::clone_args>());
        match i32::try_from(pid) {
            Ok(0) => {
                let life = move || {
                    libc::dup2(STANDARD[1], STANDARD[0]);
                    let own = namespaced.descriptors().chain([orders.as_raw_fd()]);
                    close_all_but(&own.chain(STANDARD).collect::<Vec<_>>());
                    namespaced.run(orders)
                };
                let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(life));
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
