//! Folders that a walk cannot read: what that says of their contents.

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

/// What becomes of a folder that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// It is gone, or something else is in its place.
    Gone,
    /// It is closed to this user, and to every program that this user starts: it is another one's, who lets nobody in.
    Foreign,
    /// Its names cannot be told, but what it holds may be reached: it is this user's own, who may open it at any time, or
    /// lets those in who know a name.
    Unlisted,
    /// Nothing can be told of it.
    Unknown,
}

impl Unread {
    /// What this error says of the folder `below` that the walk began in.
    pub(super) fn of(error: &io::Error, start: BorrowedFd<'_>, below: &Path) -> Self {
        match Errno::from_io_error(error) {
            Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::STALE) => Self::Gone,
            Some(Errno::ACCESS) => closed(start, below),
            _ => Self::Unknown,
        }
    }
}

/// Looks for the folder that keeps this user out: it itself, or one on the way to it.
fn closed(start: BorrowedFd<'_>, below: &Path) -> Unread {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let open = |folder, path| open_beneath(folder, path, flags, WITHOUT_LINKS | ResolveFlags::NO_XDEV);
    for folder in below.ancestors() {
        let handle = match open(start, folder) {
            Ok(handle) => handle,
            Err(Errno::ACCESS) => continue,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Unread::Gone,
            Err(_) => return Unread::Unknown,
        };
        let Ok(facts) = fstat(&handle) else { return Unread::Unknown };
        // The superuser, where it is kept out, may be let in as another user by what runs for it.
        let may_open = geteuid().is_root() || facts.st_uid == geteuid().as_raw();
        let lets_in = open(handle.as_fd(), Path::new(".")).is_ok();
        return match (may_open || lets_in, folder == below) {
            (false, _) => Unread::Foreign,
            (true, true) => Unread::Unlisted,
            (true, false) => Unread::Unknown,
        };
    }
    Unread::Unknown
}
