//! Files that are their owner's alone.

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

/// Rights of others than the owner.
pub(super) const OTHERS: u32 = 0o077;

/// The reason why a file is not read or written.
#[derive(Debug, thiserror::Error)]
pub enum PrivateFileError {
    /// A link, which somebody may turn elsewhere.
    #[error("it is a link: put the file itself there")]
    Link,
    /// A folder, a pipe, a device.
    #[error("it is no file")]
    NoFile,
    /// The file of another user.
    #[error("it belongs to the user {0}, and not to you: put a file of your own there")]
    Foreign(u32),
    /// Open to others.
    #[error("others may read or write it (mode {0:03o}): close it with `chmod 600`")]
    Open(u32),
    /// More bytes than it may have.
    #[error("it has more than {0} bytes")]
    TooLong(u64),
    /// The system said no.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for PrivateFileError {
    fn from(errno: Errno) -> Self {
        Self::Io(errno.into())
    }
}

/// A file of this user, open.
#[derive(Debug)]
pub(super) struct OwnFile {
    file: File,
    /// Its mode.
    pub(super) mode: u32,
    /// The time of the last write, in seconds since 1970.
    pub(super) written_at: i64,
}

impl OwnFile {
    /// Opens a file, and follows no link; `None`: there is none. Blocks.
    pub(super) fn open(folder: impl AsFd, name: &Path) -> Result<Option<Self>, PrivateFileError> {
        // A pipe under that name keeps nobody waiting.
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

    /// The whole of it. Blocks.
    pub(super) fn read(self, max: u64) -> Result<Vec<u8>, PrivateFileError> {
        let mut bytes = Vec::new();
        self.file.take(max + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max { Err(PrivateFileError::TooLong(max)) } else { Ok(bytes) }
    }
}

/// Reads the whole of a file that is its owner's alone; what was looked at is what is read. `None`: there is none. Blocks.
pub(super) fn read(folder: impl AsFd, name: &Path, max: u64) -> Result<Option<Vec<u8>>, PrivateFileError> {
    match OwnFile::open(folder, name)? {
        Some(file) if file.mode & OTHERS != 0 => Err(PrivateFileError::Open(file.mode)),
        Some(file) => file.read(max).map(Some),
        None => Ok(None),
    }
}

/// Writes a file anew, down to the disk. The name is the writer's own: nobody else writes under it. Blocks.
pub(super) fn write(folder: impl AsFd, name: &Path, content: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let handle = openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?;
    // Past the mask of the process, and of what was left under that name.
    fchmod(&handle, Mode::RUSR | Mode::WUSR)?;
    let mut file = File::from(handle);
    file.write_all(content)?;
    Ok(fsync(&file)?)
}
