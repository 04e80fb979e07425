//! Writes a file in one step: whoever reads it sees the old content or the new one, also after a crash.

use crate::sandbox::workspace::{
    draft::{Draft, Folder, is_other_name, remove_folder},
    facts::{FileFacts, FileKind},
    found::Found,
    granted::GrantedWorkspace,
    lock::PathLock,
    path_error::PathError,
    resolve::{Resolved, WITHOUT_LINKS, open_beneath, proc_link, real_path},
    rights::Rights,
};
use rustix::{
    fs::{self, AtFlags, CWD, Mode, OFlags, accessat, openat, unlinkat},
    io::Errno,
};
use std::{
    ffi::{OsStr, OsString},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
};
use toolstead_domain::access::{Access, PathAccess};

/// A place to write to, held by the handle of its folder. No other call writes there meanwhile, whichever process of
/// this user makes it.
#[derive(Debug)]
pub struct WriteTarget<'a> {
    granted: &'a GrantedWorkspace,
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

impl<'a> WriteTarget<'a> {
    /// Takes hold of the place; `None` when something on the way changed while it was looked at.
    pub(super) fn take(granted: &'a GrantedWorkspace, lexical: &Path) -> Result<Option<Self>, PathError> {
        let workspace = &*granted.workspace;
        let real = match workspace.resolve(lexical)? {
            Resolved::Inside(real) => real,
            Resolved::Outside(real) => return Err(workspace.outside(lexical, real)),
        };
        let path = PathAccess { lexical: lexical.to_path_buf(), real, tree: false };
        granted.permitted(Access::WritePath(path.clone()))?;
        let busy = || PathError::Busy { path: lexical.to_path_buf() };
        let lock = workspace.locks.lock(&path.real, granted.stop()).ok_or_else(busy)?;

        let Some(root) = workspace.root_of(&path.real) else { return Ok(None) };
        let rest = root.rest(&path.real);
        let (Some(name), Some(parent)) = (rest.file_name(), rest.parent()) else {
            return Err(PathError::NotAFile { path: path.lexical, kind: FileKind::Folder });
        };
        let (folder, missing) = match deepest_folder(root.handle.as_fd(), parent) {
            Ok(found) => found,
            // Something on the way became a link.
            Err(Errno::LOOP | Errno::XDEV) => return Ok(None),
            Err(Errno::NOTDIR) => {
                let folder = path.lexical.parent().unwrap_or(lexical).to_path_buf();
                return Err(PathError::NotAFolder { path: folder, kind: FileKind::File });
            }
            Err(errno) => return Err(PathError::io("write", lexical, errno)),
        };
        let (name, missing) = (name.to_owned(), missing.into_iter().map(OsStr::to_owned).collect());
        let mut target = Self { granted, path, folder, missing, name, existing: None, lock };
        if !target.is_where_it_was(target.folder.as_fd(), target.missing.len()) {
            return Ok(None);
        }
        target.tidy_up();
        if target.missing.is_empty() {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match openat(&target.folder, &target.name, flags, Mode::empty()) {
                Ok(handle) => match Found::of(target.path.clone(), handle)? {
                    Some(found) => target.existing = Some(found),
                    None => return Ok(None),
                },
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(PathError::io("write", lexical, errno)),
            }
        }
        match &target.existing {
            Some(found) if found.facts().kind == FileKind::Link => Ok(None),
            Some(found) => found.expect_file().map(|()| Some(target)),
            None => Ok(Some(target)),
        }
    }

    /// Removes what a process left here that ended in the middle of a change of this file.
    fn tidy_up(&self) {
        if let Some(name) = self.lock.noted().filter(|name| is_other_name(name)) {
            let _ = unlinkat(&self.folder, &name, AtFlags::empty());
        }
    }

    /// Both forms of its path.
    pub fn path(&self) -> &PathAccess {
        &self.path
    }

    /// Whether a file is there.
    pub fn exists(&self) -> bool {
        self.existing.is_some()
    }

    /// The content of the file that is there; `None` if there is none.
    ///
    /// # Errors
    /// [`PathError::Refused`] when the call may not read there, [`PathError::TooLarge`].
    pub fn read(&self, limit: u64) -> Result<Option<Vec<u8>>, PathError> {
        let Some(existing) = &self.existing else { return Ok(None) };
        self.granted.permitted(Access::ReadPath(self.path.clone()))?;
        existing.read(limit).map(Some)
    }

    /// What the file system says of the file that is there.
    pub fn facts(&self) -> Option<&FileFacts> {
        self.existing.as_ref().map(Found::facts)
    }

    /// The content of the file that is there, whatever the call may read: to keep it for an undo, and not to tell it.
    ///
    /// # Errors
    /// [`PathError::TooLarge`].
    pub fn replaced(&self, limit: u64) -> Result<Option<Vec<u8>>, PathError> {
        self.existing.as_ref().map(|existing| existing.read(limit)).transpose()
    }

    /// Whether the content could be written so.
    ///
    /// # Errors
    /// [`PathError::Exists`], [`PathError::FolderMissing`], [`PathError::WriteProtected`].
    pub fn check(&self, options: WriteOptions) -> Result<(), PathError> {
        if self.existing.is_some() && !options.overwrite {
            return Err(PathError::Exists { path: self.path.lexical.clone() });
        }
        if !self.missing.is_empty() && !options.create_folders {
            let folder = self.path.lexical.parent().unwrap_or(&self.path.lexical).to_path_buf();
            return Err(PathError::FolderMissing { folder });
        }
        self.check_protection()
    }

    /// Whether the file could be removed.
    ///
    /// # Errors
    /// [`PathError::NotFound`], [`PathError::ThroughLink`], [`PathError::WriteProtected`].
    pub fn check_removal(&self) -> Result<(), PathError> {
        if self.existing.is_none() {
            return Err(PathError::not_found(&self.path.lexical));
        }
        if self.is_link()? {
            return Err(PathError::ThroughLink { path: self.path.lexical.clone(), real: self.path.real.clone() });
        }
        self.check_protection()
    }

    /// Writes the content into a new file beside the old one. It is on disk when this returns, and bears another name.
    /// The permission bits are those of the old one (without set-user-id and its like), as are owner and extended
    /// attributes where the system lets them.
    ///
    /// # Errors
    /// As [`check`](Self::check), and the system's.
    pub fn prepare(&self, content: &[u8], options: WriteOptions) -> Result<Draft<'_>, PathError> {
        self.check(options)?;
        Draft::with_content(self, Folder::of(self)?, content, options.mode)
    }

    /// Prepares to remove the file.
    ///
    /// # Errors
    /// As [`check_removal`](Self::check_removal).
    pub fn prepare_removal(&self) -> Result<Draft<'_>, PathError> {
        self.check_removal()?;
        Ok(Draft::without_content(self))
    }

    /// Removes so many folders above the file, the nearest first, as far as they are empty. A root stays.
    pub fn remove_folders(&self, count: usize) {
        let Some(root) = self.granted.workspace.root_of(&self.path.real) else { return };
        for folder in self.path.real.ancestors().skip(1).take(count) {
            if remove_folder(root.handle.as_fd(), root.rest(folder)).is_err() {
                break;
            }
        }
    }

    pub(super) fn stop_is_due(&self) -> bool {
        self.granted.stop().is_due()
    }

    pub(super) fn failed(&self, source: impl Into<std::io::Error>) -> PathError {
        PathError::io("write", &self.path.lexical, source)
    }

    fn check_protection(&self) -> Result<(), PathError> {
        let Some(existing) = &self.existing else { return Ok(()) };
        match accessat(CWD, proc_link(existing.handle()), fs::Access::WRITE_OK, AtFlags::EACCESS) {
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => {
                Err(PathError::WriteProtected { path: self.path.lexical.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Whether the last name of the path as asked for is a link.
    fn is_link(&self) -> Result<bool, PathError> {
        let (Some(parent), Some(name)) = (self.path.lexical.parent(), self.path.lexical.file_name()) else {
            return Ok(false);
        };
        match self.granted.workspace.resolve(parent)? {
            Resolved::Inside(parent) | Resolved::Outside(parent) => Ok(parent.join(name) != self.path.real),
        }
    }

    /// Whether the folder, `above` levels over the file's own, is still where the rules were asked about.
    pub(super) fn is_where_it_was(&self, folder: BorrowedFd<'_>, above: usize) -> bool {
        let expected = self.path.real.ancestors().nth(above + 1);
        real_path(folder).is_ok_and(|real| expected == Some(&*real))
    }
}

/// The deepest folder on the way that exists, and the names of those that do not.
fn deepest_folder<'p>(root: BorrowedFd<'_>, path: &'p Path) -> rustix::io::Result<(OwnedFd, Vec<&'p OsStr>)> {
    let mut missing = Vec::new();
    for folder in path.ancestors() {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        match (open_beneath(root, folder, flags, WITHOUT_LINKS), folder.file_name()) {
            (Err(Errno::NOENT), Some(name)) => missing.insert(0, name),
            (other, _) => return other.map(|handle| (handle, missing)),
        }
    }
    Err(Errno::NOENT)
}
