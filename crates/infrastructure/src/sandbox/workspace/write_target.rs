//! A target for writing, and the result of a write.

use crate::sandbox::workspace::{
    facts::FileFacts, file_handle::FileHandle, granted_workspace::GrantedWorkspace, lock::PathLock,
    path_error::PathError, resolve::real_path, rights::LostRights,
};
use std::{
    ffi::OsString,
    os::fd::{BorrowedFd, OwnedFd},
};
use toolstead_domain::AccessPath;

/// A file to write, which may not exist yet, held by the handle of its folder and locked. While this value exists, no
/// other call writes to the file, in any process of this user.
#[derive(Debug)]
pub struct WriteTarget<'a> {
    pub(super) granted: &'a GrantedWorkspace,
    pub(super) path: AccessPath,
    /// Deepest existing folder of the path.
    pub(super) folder: OwnedFd,
    /// Names of the missing folders below `folder`, outermost first.
    pub(super) missing: Vec<OsString>,
    pub(super) name: OsString,
    pub(super) existing: Option<FileHandle>,
    pub(super) lock: PathLock<'a>,
}

/// Options of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteOptions {
    /// `true` to create missing folders.
    pub create_folders: bool,
    /// `true` to replace an existing file.
    pub overwrite: bool,
    /// Permission bits. Without them, a file keeps its own, and a new file gets those that the file mode mask allows.
    pub mode: Option<u32>,
}

/// Result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteResult {
    /// `true` if there was no file before.
    pub created: bool,
    /// Size of the new file in bytes; 0 for a removal.
    pub bytes: u64,
    /// Number of other names (hard links) of the replaced file, which keep the old content.
    pub other_links: u64,
    /// Rights that the file lost.
    pub rights: LostRights,
}

impl WriteTarget<'_> {
    /// Returns the path as requested, and the real path.
    pub fn path(&self) -> &AccessPath {
        &self.path
    }

    /// Returns `true` if the file existed when it was locked.
    pub fn exists(&self) -> bool {
        self.existing.is_some()
    }

    /// Returns the metadata of the existing file.
    pub fn facts(&self) -> Option<&FileFacts> {
        self.existing.as_ref().map(FileHandle::facts)
    }

    pub(super) fn stop_is_due(&self) -> bool {
        self.granted.stop().is_due()
    }

    pub(super) fn failed(&self, source: impl Into<std::io::Error>) -> PathError {
        PathError::io("write", &self.path.lexical, source)
    }

    /// Returns `true` if the folder, `above` levels above the file's own, is still at the path to which the rules were
    /// applied.
    pub(super) fn is_where_it_was(&self, folder: BorrowedFd<'_>, above: usize) -> bool {
        let expected = self.path.real.ancestors().nth(above + 1);
        real_path(folder).is_ok_and(|real| expected == Some(&*real))
    }
}
