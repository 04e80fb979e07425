//! Something that exists in the workspace, held by handle.

use crate::sandbox::workspace::{
    facts::{FileFacts, FileKind},
    path_error::PathError,
    resolve::proc_link,
};
use rustix::fs::{CWD, Mode, OFlags, fstat, fstatfs, openat};
use std::{
    fs::File,
    io::Read,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};
use toolstead_domain::access::PathAccess;

/// File systems whose files are the kernel's answers: reading or writing one is not like reading a file.
const KERNEL_FILE_SYSTEMS: &[u64] = &[
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x7363_6673, // securityfs
    0xcafe_4a11, // bpf
    0x6165_676c, // pstore
    0xde5e_81e4, // efivarfs
    0x1980_0202, // mqueue
    0x6265_6570, // configfs
    0x4249_4e4d, // binfmt_misc
];

/// A file or folder, found beneath a root and permitted to be read. It stays the same thing whatever happens to its
/// name.
#[derive(Debug)]
pub struct Found {
    path: PathAccess,
    handle: OwnedFd,
    facts: FileFacts,
}

impl Found {
    /// Takes a path handle (`O_PATH`); `None` when it was deleted or replaced in between.
    pub(super) fn of(path: PathAccess, handle: OwnedFd) -> Result<Option<Self>, PathError> {
        let stat = fstat(&handle).map_err(|errno| PathError::io("look at", &path.lexical, errno))?;
        let mut facts = FileFacts::of(&stat);
        if facts.links == 0 {
            return Ok(None);
        }
        if facts.kind == FileKind::File && is_kernel_file(&handle) {
            facts.kind = FileKind::KernelFile;
        }
        Ok(Some(Self { path, handle, facts }))
    }

    /// Both forms of its path.
    pub fn path(&self) -> &PathAccess {
        &self.path
    }

    /// Size, time and the like, from when it was found.
    pub fn facts(&self) -> &FileFacts {
        &self.facts
    }

    /// Opens it for reading. Blocks.
    ///
    /// # Errors
    /// [`PathError::NotAFile`] for anything but a regular file: reading a pipe or a device may never end, or do things.
    pub fn open_file(&self) -> Result<File, PathError> {
        self.expect_file()?;
        // The handle is opened again, not the name: what was judged is what is read.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        openat(CWD, proc_link(&self.handle), flags, Mode::empty())
            .map(File::from)
            .map_err(|errno| PathError::io("read", &self.path.lexical, errno))
    }

    /// Reads the whole file. Blocks.
    ///
    /// # Errors
    /// As [`open_file`](Self::open_file), and [`PathError::TooLarge`] when it holds more than `limit` bytes.
    pub fn read(&self, limit: u64) -> Result<Vec<u8>, PathError> {
        let too_large = |bytes| PathError::TooLarge { path: self.path.lexical.clone(), bytes, limit };
        let file = self.open_file()?;
        if self.facts.bytes > limit {
            return Err(too_large(self.facts.bytes));
        }
        let mut content = Vec::with_capacity(usize::try_from(self.facts.bytes).unwrap_or(0) + 1);
        // The file may grow while it is read.
        let read = file.take(limit + 1).read_to_end(&mut content);
        read.map_err(|source| PathError::io("read", &self.path.lexical, source))?;
        if content.len() as u64 > limit { Err(too_large(content.len() as u64)) } else { Ok(content) }
    }

    /// Makes sure that it is a regular file.
    ///
    /// # Errors
    /// [`PathError::NotAFile`].
    pub(super) fn expect_file(&self) -> Result<(), PathError> {
        match self.facts.kind {
            FileKind::File => Ok(()),
            kind => Err(PathError::NotAFile { path: self.path.lexical.clone(), kind }),
        }
    }

    /// Makes sure that it is a folder.
    ///
    /// # Errors
    /// [`PathError::NotAFolder`].
    pub(super) fn expect_folder(&self) -> Result<(), PathError> {
        match self.facts.kind {
            FileKind::Folder => Ok(()),
            kind => Err(PathError::NotAFolder { path: self.path.lexical.clone(), kind }),
        }
    }

    /// Whether it is of a file system whose files are the kernel's answers.
    pub(super) fn is_on_kernel_file_system(&self) -> bool {
        is_kernel_file(&self.handle)
    }

    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

fn is_kernel_file(handle: &OwnedFd) -> bool {
    fstatfs(handle).is_ok_and(|system| KERNEL_FILE_SYSTEMS.contains(&(system.f_type as u32 as u64)))
}
