//! Writes a file in one step: a reader sees either the old or the new content, even after a crash.

pub use crate::sandbox::workspace::write_target::{WriteOptions, WriteResult, WriteTarget};
use crate::sandbox::workspace::{
    draft::{FileChangeDraft, TargetFolder, is_other_name, remove_folder},
    facts::FileKind,
    file_handle::FileHandle,
    granted_workspace::GrantedWorkspace,
    path_error::PathError,
    resolve::{ATTEMPTS, PathLocation, WITHOUT_LINKS, open_beneath, proc_link},
};
use rustix::{
    fs::{self, AtFlags, CWD, Mode, OFlags, accessat, openat, unlinkat},
    io::Errno,
};
use std::{
    ffi::OsStr,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
};
use toolstead_domain::{Access, AccessPath};

impl GrantedWorkspace {
    /// Locks the target of a path for writing. Other calls that write to the same target wait.
    ///
    /// # Errors
    /// [`PathError::NotAFile`], [`PathError::Outside`], [`PathError::Refused`], [`PathError::Busy`].
    pub fn write_target(&self, text: &str) -> Result<WriteTarget<'_>, PathError> {
        let lexical = self.workspace.lexical(text)?;
        for _ in 0..ATTEMPTS {
            if let Some(target) = WriteTarget::take(self, &lexical)? {
                return Ok(target);
            }
        }
        Err(PathError::Changed { path: lexical })
    }
}

impl<'a> WriteTarget<'a> {
    /// Locks the target. Returns `None` if a component of the path changed meanwhile.
    fn take(granted: &'a GrantedWorkspace, lexical: &Path) -> Result<Option<Self>, PathError> {
        let workspace = &*granted.workspace;
        let real = match workspace.resolve(lexical)? {
            PathLocation::Inside(real) => real,
            PathLocation::Outside(real) => return Err(workspace.outside(lexical, real)),
        };
        let path = AccessPath { lexical: lexical.to_path_buf(), real, tree: false };
        granted.permitted(Access::WritePath(path.clone()))?;
        let busy = || PathError::Busy { path: lexical.to_path_buf() };
        let lock = workspace.locks.lock(&path.real, granted.stop()).ok_or_else(busy)?;

        let Some(root) = workspace.root_of(&path.real) else { return Ok(None) };
        let rest = root.relative_path(&path.real);
        let (Some(name), Some(parent)) = (rest.file_name(), rest.parent()) else {
            return Err(PathError::NotAFile { path: path.lexical, kind: FileKind::Folder });
        };
        let (folder, missing) = match deepest_folder(root.handle.as_fd(), parent) {
            Ok(found) => found,
            // A component became a link.
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
                Ok(handle) => match FileHandle::of(target.path.clone(), handle)? {
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

    /// Records the name of a draft beside this file, for the next process if this one ends before it is done.
    pub(super) fn note_draft(&self, name: &Path) {
        self.lock.note(&self.path.real.with_file_name(name));
    }

    /// Removes the draft of a process that ended in the middle of a change of this file.
    fn tidy_up(&self) {
        let noted = self.lock.noted();
        if let Some(name) = noted.as_deref().and_then(Path::file_name).map(Path::new).filter(|name| is_other_name(name))
        {
            let _ = unlinkat(&self.folder, name, AtFlags::empty());
        }
    }

    /// Returns the content of the existing file, or `None` if there is none.
    ///
    /// # Errors
    /// [`PathError::Refused`] if the call may not read it, [`PathError::TooLarge`].
    pub fn read(&self, limit: u64) -> Result<Option<Vec<u8>>, PathError> {
        let Some(existing) = &self.existing else { return Ok(None) };
        self.granted.permitted(Access::ReadPath(self.path.clone()))?;
        existing.read(limit).map(Some)
    }

    /// Returns the content of the existing file, even if the call may not read it. For storing it for an undo, not for
    /// output.
    ///
    /// # Errors
    /// [`PathError::TooLarge`].
    pub fn replaced(&self, limit: u64) -> Result<Option<Vec<u8>>, PathError> {
        self.existing.as_ref().map(|existing| existing.read(limit)).transpose()
    }

    /// Checks that the content can be written with these options.
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

    /// Checks that the file can be removed.
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

    /// Creates the missing folders, and writes the content to a new file beside the old one, under a temporary name.
    /// The file is on disk when this returns. Its permission bits are those of `options`, or else of the old file
    /// (without set-user-id and similar bits); it has the owner and the extended attributes of the old file if the
    /// system permits.
    ///
    /// # Errors
    /// As for [`check`](Self::check), and the errors of the system.
    pub fn prepare(&self, content: &[u8], options: WriteOptions) -> Result<FileChangeDraft<'_>, PathError> {
        self.check(options)?;
        FileChangeDraft::with_content(self, TargetFolder::of(self)?, content, options.mode)
    }

    /// Prepares the removal of the file.
    ///
    /// # Errors
    /// As for [`check_removal`](Self::check_removal).
    pub fn prepare_removal(&self) -> Result<FileChangeDraft<'_>, PathError> {
        self.check_removal()?;
        Ok(FileChangeDraft::without_content(self))
    }

    /// Removes at most this number of empty folders above the file, the nearest first. A root is not removed.
    pub fn remove_folders(&self, count: usize) {
        let Some(root) = self.granted.workspace.root_of(&self.path.real) else { return };
        for folder in self.path.real.ancestors().skip(1).take(count) {
            if remove_folder(root.handle.as_fd(), root.relative_path(folder)).is_err() {
                break;
            }
        }
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

    /// Returns `true` if the last component of the requested path is a link.
    fn is_link(&self) -> Result<bool, PathError> {
        let (Some(parent), Some(name)) = (self.path.lexical.parent(), self.path.lexical.file_name()) else {
            return Ok(false);
        };
        match self.granted.workspace.resolve(parent)? {
            PathLocation::Inside(parent) | PathLocation::Outside(parent) => Ok(parent.join(name) != self.path.real),
        }
    }
}

/// Returns the deepest existing folder of a path, and the names of the missing ones.
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
