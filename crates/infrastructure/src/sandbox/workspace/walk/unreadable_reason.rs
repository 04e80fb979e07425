//! Folders that a walk cannot read, and conclusions about their contents.

use crate::sandbox::workspace::resolve::{WITHOUT_LINKS, open_beneath};
use rustix::{
    fs::{OFlags, ResolveFlags, fstat},
    io::Errno,
    process::geteuid,
};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    path::Path,
};

/// State of a folder that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnreadableReason {
    /// Removed or replaced folder.
    Gone,
    /// Folder of another user who grants no access, so that neither this user nor any program of this user can enter
    /// it.
    Foreign,
    /// Folder whose names cannot be listed, but whose contents may be accessible: it belongs to this user, who may
    /// change its permissions at any time, or it admits access by name.
    Unlisted,
    /// Folder of which nothing is known.
    Unknown,
}

impl UnreadableReason {
    /// Returns the state that an error implies for the folder `below` the start of the walk.
    pub(super) fn of(error: &io::Error, start: BorrowedFd<'_>, below: &Path) -> Self {
        match Errno::from_io_error(error) {
            Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::STALE) => Self::Gone,
            Some(Errno::ACCESS) => closed(start, below),
            _ => Self::Unknown,
        }
    }
}

/// Returns the reason why access to a folder is denied. It follows from the owner and the rights of the folder that
/// denies it: the folder itself, or one on the way to it.
fn closed(start: BorrowedFd<'_>, below: &Path) -> UnreadableReason {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let open = |folder, path| open_beneath(folder, path, flags, WITHOUT_LINKS | ResolveFlags::NO_XDEV);
    for folder in below.ancestors() {
        let handle = match open(start, folder) {
            Ok(handle) => handle,
            Err(Errno::ACCESS) => continue,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return UnreadableReason::Gone,
            Err(_) => return UnreadableReason::Unknown,
        };
        let Ok(facts) = fstat(&handle) else { return UnreadableReason::Unknown };
        // A process of root that is denied access may still have programs that can enter as another user.
        let may_open = geteuid().is_root() || facts.st_uid == geteuid().as_raw();
        let lets_in = open(handle.as_fd(), Path::new(".")).is_ok();
        return match (may_open || lets_in, folder == below) {
            (false, _) => UnreadableReason::Foreign,
            (true, true) => UnreadableReason::Unlisted,
            (true, false) => UnreadableReason::Unknown,
        };
    }
    UnreadableReason::Unknown
}
