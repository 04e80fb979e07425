//! Entries that count as existing before a run, if other runs live in the same root.
//!
//! A run that begins while another lives sees what that one planted, and could set it again after it was undone.
//! Therefore each run records on the stage, which the inits of all runs share, which entries existed for it. For a run
//! that begins meanwhile only those count. The record is locked while its run lives.

use super::{super::root_sources, folder::FolderHandle};
use rustix::{
    fs::{AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, openat, unlinkat},
    io::{Errno, retry_on_intr},
    path::Arg,
};
use sha2::{Digest, Sha256};
use std::{
    collections::HashSet,
    ffi::{CStr, CString},
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

type EntryHash = [u8; 32];

/// Entries that count as existing in one root before a run.
#[derive(Debug)]
pub(super) struct KnownEntries {
    /// Path of the root in this run. It may differ between runs, so entries are recorded relative to it.
    root: PathBuf,
    notes: HashSet<EntryHash>,
    is_alone: bool,
    /// Folder with the records of the runs in this root, locked while one of them is being prepared.
    shelf: Option<OwnedFd>,
    own: Option<File>,
}

impl KnownEntries {
    /// Waits until no other run is being prepared in this root, because an entry that another run creates during the
    /// scan could be missed. Returns the entries that existed for all runs that live in the root.
    pub(super) fn begin(root: &FolderHandle) -> io::Result<Self> {
        Self::begin_at(&open_folder(CWD, root_sources::at("known"))?, root)
    }

    fn begin_at(shelves: &OwnedFd, root: &FolderHandle) -> io::Result<Self> {
        sweep(shelves)?;
        let shelf = shelf(shelves, &root.identity()?.to_string())?;
        let others = living(&shelf)?;
        let is_alone = others.is_empty();
        let notes = others.into_iter().reduce(|one, other| &one & &other).unwrap_or_default();
        Ok(Self { root: root.path.clone(), notes, is_alone, shelf: Some(shelf), own: None })
    }

    /// Records that an entry with the content `what` exists, unless other runs live in the root. Returns `true` if the
    /// entry counts as existing.
    pub(super) fn record(&mut self, path: &Path, what: &[u8]) -> bool {
        let note = self.of(path, what);
        if self.is_alone {
            self.notes.insert(note);
        }
        self.notes.contains(&note)
    }

    /// Publishes the record for other runs. Nothing can be recorded after that.
    pub(super) fn publish(&mut self) -> io::Result<()> {
        let Some(shelf) = self.shelf.take() else { return Ok(()) };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        // Only one process creates records while the folder is locked. A random name is not used, because its generator
        // is slow to start.
        let make = |number: u32| match openat(&shelf, number.to_string(), flags, Mode::RUSR | Mode::WUSR) {
            Err(Errno::EXIST) => None,
            made => Some(made),
        };
        let mut own = File::from((0..=u32::MAX).find_map(make).ok_or(io::ErrorKind::QuotaExceeded)??);
        retry_on_intr(|| flock(&own, FlockOperation::NonBlockingLockExclusive))?;
        let notes: Vec<u8> = self.notes.iter().flatten().copied().collect();
        own.write_all(&notes)?;
        self.own = Some(own);
        Ok(())
    }

    /// Returns `true` if the entry with the content `what` counts as existing before the run.
    pub(super) fn has(&self, path: &Path, what: &[u8]) -> bool {
        self.notes.contains(&self.of(path, what))
    }

    /// Returns `true` if no other run lived in this root when this one began, which is the usual case.
    pub(super) fn is_alone(&self) -> bool {
        self.is_alone
    }

    fn of(&self, path: &Path, what: &[u8]) -> EntryHash {
        let path = path.strip_prefix(&self.root).unwrap_or(path);
        let mut hash = Sha256::new();
        hash.update(path.as_os_str().as_bytes());
        hash.update([0]);
        hash.update(what);
        hash.finalize().into()
    }
}

/// Removes the record folders of roots without a living run. The last run of a root cannot remove its own, because it
/// has dropped its rights by then.
fn sweep(shelves: &OwnedFd) -> io::Result<()> {
    for name in names(shelves)? {
        // Fails if another run has just removed it.
        let Ok(shelf) = open_folder(shelves, &name) else { continue };
        if try_lock_unused(&shelf)? {
            unlinkat(shelves, &name, AtFlags::REMOVEDIR)?;
        }
    }
    Ok(())
}

/// Returns `true` if no run lives in the root of this folder, and locks the folder, so that this remains true. A run
/// that holds the lock is preparing, or has just removed the folder.
fn try_lock_unused(shelf: &OwnedFd) -> io::Result<bool> {
    let is_locked = retry_on_intr(|| flock(shelf, FlockOperation::NonBlockingLockExclusive)).is_ok();
    Ok(is_locked && is_linked(shelf)? && living(shelf)?.is_empty())
}

/// Returns `true` if the folder was not removed before it was locked.
fn is_linked(shelf: &OwnedFd) -> io::Result<bool> {
    Ok(fstat(shelf)?.st_nlink > 0)
}

/// Returns the record folder with this name, locked. Creates it if it is missing or was removed before it was locked.
fn shelf(shelves: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    loop {
        match mkdirat(shelves, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let shelf = match open_folder(shelves, name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened?,
        };
        retry_on_intr(|| flock(&shelf, FlockOperation::LockExclusive))?;
        if is_linked(&shelf)? {
            return Ok(shelf);
        }
    }
}

/// Returns the entries that existed for each living run. Removes the records of other runs.
fn living(shelf: &OwnedFd) -> io::Result<Vec<HashSet<EntryHash>>> {
    let mut living = Vec::new();
    for name in names(shelf)? {
        let mut file = File::from(openat(shelf, &name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?);
        if retry_on_intr(|| flock(&file, FlockOperation::NonBlockingLockShared)).is_ok() {
            unlinkat(shelf, &name, AtFlags::empty())?;
            continue;
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        living.push(bytes.as_chunks().0.iter().copied().collect());
    }
    Ok(living)
}

fn open_folder(folder: impl AsFd, name: impl Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(folder, name, flags, Mode::empty())?)
}

fn names(folder: &OwnedFd) -> io::Result<Vec<CString>> {
    let entries = Dir::read_from(folder)?.map(|entry| Ok(entry?.file_name().to_owned()));
    let is_other = |name: &io::Result<CString>| !matches!(name.as_deref().map(CStr::to_bytes), Ok(b"." | b".."));
    entries.filter(is_other).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "the test looks at what is left")]

    use super::{super::super::mount, *};
    use std::{
        fs, thread,
        time::{Duration, Instant},
    };

    #[test]
    fn known_entries_of_a_root_are_removed_with_its_last_run() {
        let place = tempfile::tempdir().unwrap();
        for name in ["shelves", "a", "b", "c"] {
            fs::create_dir(place.path().join(name)).unwrap();
        }
        let shelves = open_folder(CWD, place.path().join("shelves")).unwrap();
        let run = |name: &str| {
            let path = place.path().join(name);
            let root = FolderHandle::of(mount::open_exactly(&path).unwrap(), path);
            let mut known = KnownEntries::begin_at(&shelves, &root).unwrap();
            known.record(&root.path.join("x"), b"");
            known.publish().unwrap();
            known
        };
        let kept = || fs::read_dir(place.path().join("shelves")).unwrap().count();
        // A child that another test forks holds the locks of an ended run until it executes its program.
        let is_so_in_time = |is_so: &dyn Fn() -> bool| {
            let end = Instant::now() + Duration::from_secs(30);
            while !is_so() && Instant::now() < end {
                thread::yield_now();
            }
            is_so()
        };
        // Another run that looked at the same time was faster.
        fs::create_dir(place.path().join("shelves/x")).unwrap();
        let removed = open_folder(&shelves, "x").unwrap();
        assert!(try_lock_unused(&removed).unwrap());
        fs::remove_dir(place.path().join("shelves/x")).unwrap();
        assert!(!try_lock_unused(&removed).unwrap());
        let first = run("a");
        drop((run("b"), run("b")));
        assert!(is_so_in_time(&|| {
            assert!(!run("a").is_alone());
            kept() == 1
        }));
        drop(first);
        assert!(is_so_in_time(&|| run("c").is_alone() && kept() == 1));
    }
}
