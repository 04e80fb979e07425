//! Folder of the records. It belongs to the user alone, and its files are replaced atomically.

use crate::accounts::private_file::{self, OTHERS, PrivateFileError};
use rustix::{
    fs::{AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, flock, fstat, fsync, openat, renameat, unlinkat},
    io::Errno,
    process::geteuid,
};
use std::{
    fs::DirBuilder,
    io,
    os::{fd::OwnedFd, unix::fs::DirBuilderExt},
    path::{Path, PathBuf},
};

/// Reason why the folder or a file in it cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum VaultFolderError {
    /// The path is a link or a file.
    #[error("`{}` is a link or not a folder: remove it", .0.display())]
    NoFolder(PathBuf),
    /// The folder belongs to another user.
    #[error("`{}` belongs to user {owner}: have it removed", path.display())]
    Foreign {
        /// Path of the folder.
        path: PathBuf,
        /// User id of the owner.
        owner: u32,
    },
    /// Other users have access to the folder.
    #[error("others may read or change `{}` (mode {mode:03o}): run `chmod 700`", path.display())]
    Open {
        /// Path of the folder.
        path: PathBuf,
        /// Mode of the folder.
        mode: u32,
    },
    /// A file in the folder cannot be used.
    #[error("`{}`: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Reason why the file cannot be used.
        source: PrivateFileError,
    },
    /// The system returned an error.
    #[error("`{}` cannot be used: {source}", path.display())]
    Io {
        /// Path of the folder or file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

/// Open folder.
#[derive(Debug)]
pub(super) struct VaultFolder {
    path: PathBuf,
    handle: OwnedFd,
}

impl VaultFolder {
    /// Opens the folder; `None` if it does not exist. Blocks, as do all functions of this type.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, VaultFolderError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = match openat(CWD, path, flags, Mode::empty()) {
            Ok(handle) => handle,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => return Err(VaultFolderError::NoFolder(path.into())),
            Err(errno) => return Err(VaultFolderError::Io { path: path.into(), source: errno.into() }),
        };
        let folder = Self { path: path.into(), handle };
        let stat = fstat(&folder.handle).map_err(|errno| folder.failed(Path::new(""), errno))?;
        if stat.st_uid != geteuid().as_raw() {
            return Err(VaultFolderError::Foreign { path: path.into(), owner: stat.st_uid });
        }
        match stat.st_mode & OTHERS {
            0 => Ok(Some(folder)),
            _ => Err(VaultFolderError::Open { path: path.into(), mode: stat.st_mode & 0o777 }),
        }
    }

    /// Opens the folder, or creates it.
    pub(super) fn make(path: &Path) -> Result<Self, VaultFolderError> {
        let failed = |source| VaultFolderError::Io { path: path.into(), source };
        if let Some(folder) = Self::open(path)? {
            return Ok(folder);
        }
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        Self::open(path)?.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))
    }

    /// Returns the content of a file; `None` if it does not exist.
    pub(super) fn read(&self, name: &str, max: u64) -> Result<Option<Vec<u8>>, VaultFolderError> {
        let named = |source| VaultFolderError::File { path: self.path.join(name), source };
        private_file::read(&self.handle, Path::new(name), max).map_err(named)
    }

    /// Replaces a file atomically. The caller must hold the lock of the name. Overwrites a temporary file that an
    /// interrupted process left.
    pub(super) fn replace(&self, name: &str, content: &[u8]) -> Result<(), VaultFolderError> {
        let new = PathBuf::from(format!("{name}.new"));
        let failed = |source: io::Error| VaultFolderError::Io { path: self.path.join(name), source };
        private_file::write(&self.handle, &new, content).map_err(failed)?;
        renameat(&self.handle, &new, &self.handle, name).map_err(|errno| failed(errno.into()))?;
        fsync(&self.handle).map_err(|errno| failed(errno.into()))
    }

    /// Removes a file. Returns `true` if it existed.
    pub(super) fn remove(&self, name: &str) -> Result<bool, VaultFolderError> {
        match unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) => fsync(&self.handle).map(|()| true).map_err(|errno| self.failed(Path::new(name), errno)),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(self.failed(Path::new(name), errno)),
        }
    }

    /// Returns the names of all entries of the folder, except those that are not in UTF-8.
    pub(super) fn names(&self) -> Result<Vec<String>, VaultFolderError> {
        let failed = |errno| self.failed(Path::new(""), errno);
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.handle).map_err(failed)? {
            names.extend(entry.map_err(failed)?.file_name().to_str().ok().map(str::to_owned));
        }
        Ok(names)
    }

    /// Takes the lock of a name, held until dropped; `None` while another process holds it. The empty lock file
    /// remains.
    pub(super) fn try_lock(&self, name: &str) -> Result<Option<OwnedFd>, VaultFolderError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let failed = |errno| self.failed(Path::new(name), errno);
        let file = openat(&self.handle, name, flags, Mode::RUSR | Mode::WUSR).map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
            Err(errno) => Err(failed(errno)),
        }
    }

    fn failed(&self, name: &Path, errno: Errno) -> VaultFolderError {
        VaultFolderError::Io { path: self.path.join(name), source: errno.into() }
    }
}
