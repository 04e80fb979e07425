//! Metadata of a file, read without opening it.

use rustix::fs::{FileType, Stat, fstat};
use std::{
    fmt, io,
    os::fd::AsFd,
    time::{SystemTime, UNIX_EPOCH},
};
use toolstead_domain::Timestamp;

/// Type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link itself.
    Link,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device.
    Device,
    /// A file that the kernel generates, as in `/proc`.
    KernelFile,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "a file",
            Self::Folder => "a folder",
            Self::Link => "a symbolic link",
            Self::Pipe => "a named pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
            Self::KernelFile => "a file of the kernel",
        })
    }
}

impl FileKind {
    /// Returns the kind, or `None` if the file system does not report it.
    pub(super) fn of(file_type: FileType) -> Option<Self> {
        match file_type {
            FileType::RegularFile => Some(Self::File),
            FileType::Directory => Some(Self::Folder),
            FileType::Symlink => Some(Self::Link),
            FileType::Fifo => Some(Self::Pipe),
            FileType::Socket => Some(Self::Socket),
            FileType::CharacterDevice | FileType::BlockDevice => Some(Self::Device),
            FileType::Unknown => None,
        }
    }
}

/// Metadata of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts {
    /// Type of the file.
    pub kind: FileKind,
    /// Size in bytes.
    pub bytes: u64,
    /// Time of the last change of the content.
    pub modified: Timestamp,
    /// Permission bits, including set-user-id, set-group-id and the sticky bit.
    pub mode: u32,
    /// Number of names (hard links).
    pub links: u64,
    /// Identity of the file. It is equal as long as the file was neither replaced nor changed.
    pub identity: FileStamp,
}

/// Identity of a file. It is equal as long as the file was neither replaced nor changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    device: u64,
    inode: u64,
    bytes: i64,
    modified: (i64, u64),
    changed: (i64, u64),
}

impl FileStamp {
    /// Returns `true` if the identities are equal except for the time (ctime) that a rename changes as well.
    pub(super) fn is_same_content(&self, other: &Self) -> bool {
        Self { changed: other.changed, ..*self } == *other
    }

    /// Returns `true` if any later change will be visible. Clocks of file systems are coarse, and of two changes within
    /// one tick only the first is visible.
    pub fn is_settled(&self) -> bool {
        let changed = u64::try_from(self.changed.0).unwrap_or(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        now > changed.saturating_add(2)
    }
}

impl FileFacts {
    /// Returns the current metadata of an open file. Blocks.
    ///
    /// # Errors
    /// The error of the system.
    pub fn of_open(file: impl AsFd) -> io::Result<Self> {
        Ok(Self::of(&fstat(file)?))
    }

    // The fields of `Stat` have other types on other architectures, so some casts are unnecessary on this one.
    #[expect(clippy::unnecessary_cast, reason = "the widths differ by processor")]
    pub(super) fn of(stat: &Stat) -> Self {
        let modified = (stat.st_mtime as i64, stat.st_mtime_nsec as u64);
        let micros = modified.0.saturating_mul(1_000_000).saturating_add((modified.1 / 1000) as i64);
        Self {
            kind: FileKind::of(FileType::from_raw_mode(stat.st_mode)).unwrap_or(FileKind::Device),
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            modified: Timestamp(micros),
            mode: stat.st_mode & 0o7777,
            links: stat.st_nlink as u64,
            identity: FileStamp {
                device: stat.st_dev as u64,
                inode: stat.st_ino as u64,
                bytes: stat.st_size as i64,
                modified,
                changed: (stat.st_ctime as i64, stat.st_ctime_nsec as u64),
            },
        }
    }
}
