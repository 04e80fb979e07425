//! A place to write to, and what became of writing there.

use crate::sandbox::workspace::{
    facts::FileFacts, found::Found, granted::GrantedWorkspace, lock::PathLock, path_error::PathError,
    resolve::real_path, rights::Rights,
};
use std::{
    ffi::OsString,
    os::fd::{BorrowedFd, OwnedFd},
};
use toolstead_domain::access::PathAccess;

/// A place to write to, held by the handle of its folder. No other call writes there meanwhile, whichever process of
/// this user makes it.
#[derive(Debug)]
pub struct WriteTarget<'a> {
    pub(super) granted: &'a GrantedWorkspace,
    pub(super) path: PathAccess,
    /// The deepest folder on the way that exists.
    pub(super) folder: OwnedFd,
    /// The folders that are missing below it.
    pub(super) missing: Vec<OsString>,
    pub(super) name: OsString,
    pub(super) existing: Option<Found>,
    pub(super) lock: PathLock<'a>,
}

/// How to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteOptions {
    /// Whether to make the folders that are missing.
    pub create_folders: bool,
    /// Whether a file that is there may be replaced.
    pub overwrite: bool,
    /// The permission bits; without them a file keeps its own, and a new one gets what the process's mask leaves.
    pub mode: Option<u32>,
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Whether there was no file before.
    pub created: bool,
    /// The size, in bytes.
    pub bytes: u64,
    /// How many other names (hard links) the replaced file had. They keep the old content.
    pub other_links: u64,
    /// What it lost by that.
    pub rights: Rights,
}

impl WriteTarget<'_> {
    /// Both forms of its path.
    pub fn path(&self) -> &PathAccess {
        &self.path
    }

    /// Whether a file is there.
    pub fn exists(&self) -> bool {
        self.existing.is_some()
    }

    /// What the file system says of the file that is there.
    pub fn facts(&self) -> Option<&FileFacts> {
        self.existing.as_ref().map(Found::facts)
    }

    pub(super) fn stop_is_due(&self) -> bool {
        self.granted.stop().is_due()
    }

    pub(super) fn failed(&self, source: impl Into<std::io::Error>) -> PathError {
        PathError::io("write", &self.path.lexical, source)
    }

    /// Whether the folder, `above` levels over the file's own, is still where the rules were asked about.
    pub(super) fn is_where_it_was(&self, folder: BorrowedFd<'_>, above: usize) -> bool {
        let expected = self.path.real.ancestors().nth(above + 1);
        real_path(folder).is_ok_and(|real| expected == Some(&*real))
    }
}
