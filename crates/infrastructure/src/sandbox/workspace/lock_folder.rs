//! Folder of the lock files.

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, mkdirat, openat, statat},
    io::Errno,
    process::geteuid,
};
use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

/// Returns the possible folders of lock files, best first: the runtime folder of this user, or else one in the shared
/// temporary folder. Tools cannot access either.
pub fn lock_folders() -> Vec<PathBuf> {
    let user = geteuid().as_raw();
    vec![format!("/run/user/{user}/toolstead").into(), format!("/tmp/toolstead-{user}").into()]
}

/// The opened folder of the lock files.
#[derive(Debug)]
pub(super) struct LockFolder {
    path: PathBuf,
    handle: OwnedFd,
    /// Device and inode.
    identity: (u64, u64),
}

/// Reason why a folder cannot contain lock files, with a suggestion.
#[derive(Debug, thiserror::Error)]
pub(super) enum LockFolderError {
    /// Folder of another user.
    #[error("`{}` belongs to the user {owner}: have it removed", path.display())]
    NotOurs { path: PathBuf, owner: u32 },
    /// Folder to which other users have access.
    #[error("`{}` is open to others (mode {mode:04o}): `chmod 700` it, or remove it", path.display())]
    Open { path: PathBuf, mode: u32 },
    /// Operation that the system refused.
    #[error("`{}` cannot be used as a folder of locks ({source}): remove it, or make it a folder with mode 0700", path.display())]
    Io { path: PathBuf, source: Errno },
}

impl LockFolder {
    /// Opens the folder, or creates it.
    pub(super) fn open(path: &Path) -> Result<Self, LockFolderError> {
        let failed = |source| LockFolderError::Io { path: path.to_path_buf(), source };
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(failed(Errno::INVAL)) };
        let parent = parent_of_ours(parent).map_err(failed)?;
        match mkdirat(&parent, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(errno)),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = openat(&parent, name, flags, Mode::empty()).map_err(failed)?;
        let stat = fstat(&handle).map_err(failed)?;
        if stat.st_uid != geteuid().as_raw() {
            return Err(LockFolderError::NotOurs { path: path.to_path_buf(), owner: stat.st_uid });
        }
        let mode = stat.st_mode & 0o777;
        if mode & 0o077 != 0 {
            return Err(LockFolderError::Open { path: path.to_path_buf(), mode });
        }
        Ok(Self { path: path.to_path_buf(), handle, identity: (stat.st_dev, stat.st_ino) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns `true` if the folder is still at its path.
    pub(super) fn has_its_name(&self) -> bool {
        let named = statat(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW);
        named.is_ok_and(|stat| {
            FileType::from_raw_mode(stat.st_mode).is_dir() && (stat.st_dev, stat.st_ino) == self.identity
        })
    }
}

/// Opens the parent folder. Fails unless it is one where no other user can replace the files of this user.
fn parent_of_ours(path: &Path) -> rustix::io::Result<OwnedFd> {
    let parent = openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let (stat, named) = (fstat(&parent)?, statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?);
    let is_sticky = stat.st_mode & 0o1000 != 0;
    let is_ours = stat.st_uid == geteuid().as_raw() && stat.st_mode & 0o022 == 0;
    let is_link = FileType::from_raw_mode(named.st_mode).is_symlink();
    if is_sticky || (is_ours && !is_link) { Ok(parent) } else { Err(Errno::PERM) }
}

impl AsFd for LockFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}
