//! What counts as there before a run, where others live in the same root.
//!
//! A run that begins while another lives finds what that one planted, and may set it again when it was taken back. So
//! each run leaves on the stage, which the inits of all runs share, what was there for it; for one that begins meanwhile
//! nothing else counts. The file is locked as long as its run lives.

use super::{super::stage, folder::Folder};
use rustix::{
    fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, mkdirat, openat, unlinkat},
    io::{Errno, retry_on_intr},
};
use sha2::{Digest, Sha256};
use std::{
    collections::HashSet,
    fs::File,
    io::{self, Read, Write},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};
use uuid::Uuid;

type Note = [u8; 32];

/// What was there in one root.
#[derive(Debug)]
pub(super) struct Known {
    /// Roots need not stand at the same path for all runs.
    root: PathBuf,
    notes: HashSet<Note>,
    is_alone: bool,
    /// Where the runs of this root leave theirs; locked while one looks.
    shelf: Option<OwnedFd>,
    own: Option<File>,
}

impl Known {
    /// Waits until nobody else prepares a run in this root, for what one plants while another looks must not be missed.
    pub(super) fn begin(root: &Folder) -> io::Result<Self> {
        let place = stage::at("known").join(root.identity()?.to_string());
        match mkdirat(CWD, &place, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let shelf = openat(CWD, &place, flags, Mode::empty())?;
        retry_on_intr(|| flock(&shelf, FlockOperation::LockExclusive))?;
        let others = living(&shelf)?;
        let is_alone = others.is_empty();
        let notes = others.into_iter().reduce(|one, other| &one & &other).unwrap_or_default();
        Ok(Self { root: root.path.clone(), notes, is_alone, shelf: Some(shelf), own: None })
    }

    /// Notes that this is there. Says whether it counts.
    pub(super) fn note(&mut self, path: &Path, what: &[u8]) -> bool {
        let note = self.of(path, what);
        if self.is_alone {
            self.notes.insert(note);
        }
        self.notes.contains(&note)
    }

    /// Leaves all that was noted to others. Nothing is noted any more.
    pub(super) fn publish(&mut self) -> io::Result<()> {
        let Some(shelf) = self.shelf.take() else { return Ok(()) };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let name = Uuid::new_v4().simple().to_string();
        let mut own = File::from(openat(&shelf, name, flags, Mode::RUSR | Mode::WUSR)?);
        retry_on_intr(|| flock(&own, FlockOperation::NonBlockingLockExclusive))?;
        let notes: Vec<u8> = self.notes.iter().flatten().copied().collect();
        own.write_all(&notes)?;
        self.own = Some(own);
        Ok(())
    }

    /// Whether this was there before.
    pub(super) fn has(&self, path: &Path, what: &[u8]) -> bool {
        self.notes.contains(&self.of(path, what))
    }

    /// Whether no other run lived in this root when this one began, which is the usual case.
    pub(super) fn is_alone(&self) -> bool {
        self.is_alone
    }

    fn of(&self, path: &Path, what: &[u8]) -> Note {
        let path = path.strip_prefix(&self.root).unwrap_or(path);
        let mut hash = Sha256::new();
        hash.update(path.as_os_str().as_bytes());
        hash.update([0]);
        hash.update(what);
        hash.finalize().into()
    }
}

/// What was there for each run that lives. What others left is removed.
fn living(shelf: &OwnedFd) -> io::Result<Vec<HashSet<Note>>> {
    let mut living = Vec::new();
    for entry in rustix::fs::Dir::read_from(shelf)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let mut file = File::from(openat(shelf, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?);
        if retry_on_intr(|| flock(&file, FlockOperation::NonBlockingLockShared)).is_ok() {
            unlinkat(shelf, name, AtFlags::empty())?;
            continue;
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        living.push(bytes.as_chunks().0.iter().copied().collect());
    }
    Ok(living)
}
