//! The folder of the records: nobody else's, with files that are there whole or not at all.

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

/// The reason why the folder or a file in it is not used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A link, or a file.
    #[error("`{}` is no folder, or a link to one: take it away", .0.display())]
    NoFolder(PathBuf),
    /// That of another user.
    #[error("`{}` belongs to the user {owner}, and not to you: have it removed", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// Open to others.
    #[error("others may look into `{}` or change it (mode {mode:03o}): close it with `chmod 700`", path.display())]
    Open {
        /// The folder.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A file in it.
    #[error("`{}`: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: PrivateFileError,
    },
    /// The system said no.
    #[error("`{}` cannot be used: {source}", path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// The folder, open.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    handle: OwnedFd,
}

impl Folder {
    /// Opens it; `None` where it is not there. Blocks, as all here.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, FolderError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = match openat(CWD, path, flags, Mode::empty()) {
            Ok(handle) => handle,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => return Err(FolderError::NoFolder(path.into())),
            Err(errno) => return Err(FolderError::Io { path: path.into(), source: errno.into() }),
        };
        let folder = Self { path: path.into(), handle };
        let stat = fstat(&folder.handle).map_err(|errno| folder.failed(Path::new(""), errno))?;
        if stat.st_uid != geteuid().as_raw() {
            return Err(FolderError::Foreign { path: path.into(), owner: stat.st_uid });
        }
        match stat.st_mode & OTHERS {
            0 => Ok(Some(folder)),
            _ => Err(FolderError::Open { path: path.into(), mode: stat.st_mode & 0o777 }),
        }
    }

    /// Opens it, or makes it.
    pub(super) fn make(path: &Path) -> Result<Self, FolderError> {
        let failed = |source| FolderError::Io { path: path.into(), source };
        if let Some(folder) = Self::open(path)? {
            return Ok(folder);
        }
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        Self::open(path)?.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))
    }

    /// The content of a file; `None` where there is none.
    pub(super) fn read(&self, name: &str, max: u64) -> Result<Option<Vec<u8>>, FolderError> {
        let named = |source| FolderError::File { path: self.path.join(name), source };
        private_file::read(&self.handle, Path::new(name), max).map_err(named)
    }

    /// Puts a file in the place of the one that has the name. Only who holds the lock of the name may: what a process
    /// left that ended in the middle is overwritten.
    pub(super) fn replace(&self, name: &str, content: &[u8]) -> Result<(), FolderError> {
        let new = PathBuf::from(format!("{name}.new"));
        let failed = |source: io::Error| FolderError::Io { path: self.path.join(name), source };
        private_file::write(&self.handle, &new, content).map_err(failed)?;
        renameat(&self.handle, &new, &self.handle, name).map_err(|errno| failed(errno.into()))?;
        fsync(&self.handle).map_err(|errno| failed(errno.into()))
    }

    /// Removes a file; says whether there was one.
    pub(super) fn remove(&self, name: &str) -> Result<bool, FolderError> {
        match unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) => fsync(&self.handle).map(|()| true).map_err(|errno| self.failed(Path::new(name), errno)),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(self.failed(Path::new(name), errno)),
        }
    }

    /// The names of all files in it.
    pub(super) fn names(&self) -> Result<Vec<String>, FolderError> {
        let failed = |errno| self.failed(Path::new(""), errno);
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.handle).map_err(failed)? {
            names.extend(entry.map_err(failed)?.file_name().to_str().ok().map(str::to_owned));
        }
        Ok(names)
    }

    /// Takes the lock of a name, which is held until it is dropped; `None` while somebody else holds it. The file stays:
    /// it is empty.
    pub(super) fn try_lock(&self, name: &str) -> Result<Option<OwnedFd>, FolderError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let failed = |errno| self.failed(Path::new(name), errno);
        let file = openat(&self.handle, name, flags, Mode::RUSR | Mode::WUSR).map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
            Err(errno) => Err(failed(errno)),
        }
    }

    fn failed(&self, name: &Path, errno: Errno) -> FolderError {
        FolderError::Io { path: self.path.join(name), source: errno.into() }
    }
}
