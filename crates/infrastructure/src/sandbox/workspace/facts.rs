//! What the file system says of a file without opening it.

use rustix::fs::{FileType, Stat};
use std::fmt;
use toolstead_domain::ports::clock::Timestamp;

/// What kind of thing a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, itself.
    Link,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device.
    Device,
    /// A file that the kernel makes up, as in `/proc`.
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
    /// The kind; `None` where the file system does not say.
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

/// Size, time and the like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts {
    /// What it is.
    pub kind: FileKind,
    /// The size, in bytes.
    pub bytes: u64,
    /// When its content was last changed.
    pub modified: Timestamp,
    /// The permission bits.
    pub mode: u32,
    /// How many names it has.
    pub links: u64,
    pub(super) identity: Identity,
}

/// The same while nobody replaced or changed the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
    bytes: i64,
    modified: (i64, u64),
    changed: (i64, u64),
}

impl Identity {
    /// The same when names may have changed meanwhile: a renamed file counts as changed by its time alone.
    pub(super) fn is_same_content(&self, other: &Self) -> bool {
        Self { changed: other.changed, ..*self } == *other
    }
}

impl FileFacts {
    // The members of `Stat` have other types on other processors, so that some casts are needless on this one.
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
            identity: Identity {
                device: stat.st_dev as u64,
                inode: stat.st_ino as u64,
                bytes: stat.st_size as i64,
                modified,
                changed: (stat.st_ctime as i64, stat.st_ctime_nsec as u64),
            },
        }
    }
}
