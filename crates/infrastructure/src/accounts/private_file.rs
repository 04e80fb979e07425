//! Files that only their owner can access.

use rustix::{
    fs::{FileType, Mode, OFlags, fchmod, fstat, fsync, openat},
    io::Errno,
    process::geteuid,
};
use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::AsFd,
    path::Path,
};

/// Permission bits of users other than the owner.
pub(super) const OTHERS: u32 = 0o077;

/// Reason why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PrivateFileError {
    /// The file is a link, which may be redirected at any time.
    #[error("it is a link: replace it with the file itself")]
    Link,
    /// The path is a folder, pipe or device.
    #[error("it is not a file")]
    NoFile,
    /// The file belongs to another user.
    #[error("it belongs to user {0}: replace it with a file of your own")]
    Foreign(u32),
    /// Other users have access to the file.
    #[error("others may read or write it (mode {0:03o}): run `chmod 600`")]
    Open(u32),
    /// The file has more bytes than allowed.
    #[error("it has more than {0} bytes")]
    TooLong(u64),
    /// The system returned an error.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for PrivateFileError {
    fn from(errno: Errno) -> Self {
        Self::Io(errno.into())
    }
}

/// Open file of this user.
#[derive(Debug)]
pub(super) struct UserOwnedFile {
    file: File,
    pub(super) mode: u32,
    /// Modification time, in seconds since 1970.
    pub(super) written_at: i64,
}

impl UserOwnedFile {
    /// Opens a file that belongs to this user, without following links; `None` if it does not exist. Blocks.
    pub(super) fn open(folder: impl AsFd, name: &Path) -> Result<Option<Self>, PrivateFileError> {
        // With `NONBLOCK`, opening a pipe does not wait.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let handle = match openat(folder, name, flags, Mode::empty()) {
            Ok(handle) => handle,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(Errno::LOOP) => return Err(PrivateFileError::Link),
            Err(errno) => return Err(errno.into()),
        };
        let stat = fstat(&handle)?;
        if !FileType::from_raw_mode(stat.st_mode).is_file() {
            return Err(PrivateFileError::NoFile);
        }
        if stat.st_uid != geteuid().as_raw() {
            return Err(PrivateFileError::Foreign(stat.st_uid));
        }
        Ok(Some(Self { file: handle.into(), mode: stat.st_mode & 0o777, written_at: stat.st_mtime }))
    }

    /// Reads the whole file, which must not have more than `max` bytes. Blocks.
    pub(super) fn read(self, max: u64) -> Result<Vec<u8>, PrivateFileError> {
        let mut bytes = Vec::new();
        self.file.take(max + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max { Err(PrivateFileError::TooLong(max)) } else { Ok(bytes) }
    }
}

/// Reads a file that only its owner can access. The checked file is the one that is read. `None` if it does not exist.
/// Blocks.
pub(crate) fn read(folder: impl AsFd, name: &Path, max: u64) -> Result<Option<Vec<u8>>, PrivateFileError> {
    match UserOwnedFile::open(folder, name)? {
        Some(file) if file.mode & OTHERS != 0 => Err(PrivateFileError::Open(file.mode)),
        Some(file) => file.read(max).map(Some),
        None => Ok(None),
    }
}

/// Writes a file that only its owner can access, and syncs it to disk. Overwrites any file under this name. The caller
/// must prevent other writers under this name. Blocks.
pub(super) fn write(folder: impl AsFd, name: &Path, content: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let handle = openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?;
    // Sets the mode regardless of the process's umask and of a file left under this name.
    fchmod(&handle, Mode::RUSR | Mode::WUSR)?;
    let mut file = File::from(handle);
    file.write_all(content)?;
    Ok(fsync(&file)?)
}
