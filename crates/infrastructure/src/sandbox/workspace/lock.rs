//! One change of a file at a time, among the threads of this process and among all processes of this user.
//!
//! Threads wait for each other in memory. Processes hold a lock file for each path, in a folder of the user's own that
//! no tool may touch ([`lock_folders`](super::lock_folder::lock_folders)); the kernel frees it when a process ends, in whatever way.

use crate::sandbox::workspace::{lock_folder::LockFolder, stop::Stop};
use rustix::{
    fs::{AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, flock, fstat, ftruncate, openat, statat, unlinkat},
    io::{Errno, pread, pwrite},
};
use sha2::{Digest, Sha256};
use std::{
    collections::HashSet,
    ffi::OsStr,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// How often a waiting call looks whether anybody still waits for it.
const LOOK_UP: Duration = Duration::from_millis(250);
/// How long a call waits for another process before it looks again: first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(32);
/// Maximum length of a path that is noted in a lock file, in bytes.
const MAX_NOTE_BYTES: usize = 4095;
/// Maximum number of lock files that one look at their folder reads.
const MAX_LOCK_FILES: usize = 10_000;

/// As often the folder of the lock files is opened anew when somebody removes it.
const ATTEMPTS: usize = 8;

/// The files that are being changed, by real path.
#[derive(Debug)]
pub(super) struct PathLocks {
    held: Mutex<HashSet<PathBuf>>,
    freed: Condvar,
    /// Where lock files may lie, best first.
    places: Vec<PathBuf>,
    folder: Mutex<Option<Arc<LockFolder>>>,
    has_warned: AtomicBool,
}

/// Holds a file until it is dropped.
#[derive(Debug)]
pub(super) struct PathLock<'a> {
    locks: &'a PathLocks,
    path: PathBuf,
    file: Option<LockFile>,
}

impl PathLocks {
    /// Locks whose files lie in the first of these folders that can be used.
    pub(super) fn new(places: Vec<PathBuf>) -> Self {
        Self {
            held: Mutex::default(),
            freed: Condvar::new(),
            places,
            folder: Mutex::default(),
            has_warned: AtomicBool::new(false),
        }
    }

    /// Waits for the file; `None` when the time is over first. Blocks.
    pub(super) fn lock(&self, path: &Path, stop: &Stop) -> Option<PathLock<'_>> {
        let mut held = self.held();
        while !held.insert(path.to_path_buf()) {
            let left = stop.left();
            if left.is_zero() {
                return None;
            }
            held = self.freed.wait_timeout(held, left.min(LOOK_UP)).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(held);
        let mut lock = PathLock { locks: self, path: path.to_path_buf(), file: None };
        match self.lock_file(path, stop) {
            Ok(Some(file)) => lock.file = Some(file),
            Ok(None) => return None,
            // The threads of this process still wait for each other.
            Err(told) => {
                if !self.has_warned.swap(true, Ordering::Relaxed) {
                    tracing::warn!("other processes are not kept from changing the same files: {told}");
                }
            }
        }
        Some(lock)
    }

    /// Passes each file to `remove` that a process noted which ended while it held a lock. If `remove` returns `true`, the
    /// lock file is removed as well.
    pub(super) fn clear_abandoned(&self, remove: impl Fn(&Path) -> bool) {
        let exists = |place: &&PathBuf| statat(CWD, *place, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        for folder in self.places.iter().filter(exists).filter_map(|place| LockFolder::open(place).ok()) {
            let folder = Arc::new(folder);
            let Ok(entries) = Dir::read_from(folder.as_fd()) else { continue };
            for entry in entries.flatten().take(MAX_LOCK_FILES) {
                let Some(mut lock) = LockFile::take_abandoned(&folder, &entry.file_name().to_string_lossy()) else {
                    continue;
                };
                lock.stays = lock.noted().is_some_and(|noted| !remove(&noted));
            }
        }
    }

    /// Waits for the lock file; `None` when the time is over first, and else why there is none, with what to do.
    fn lock_file(&self, path: &Path, stop: &Stop) -> Result<Option<LockFile>, String> {
        let mut last = String::new();
        for _ in 0..ATTEMPTS {
            let folder = self.folder()?;
            match LockFile::take(&folder, path, stop) {
                Err(Errno::NOENT) => last = format!("`{}` is removed again and again", folder.path().display()),
                Err(error) => {
                    return Err(format!("no lock file can be made in `{}`: {error}", folder.path().display()));
                }
                Ok(taken) => return Ok(taken),
            }
        }
        Err(last)
    }

    /// The folder of the lock files: the same for all processes of this user, and nobody else's. Whoever removes it, or
    /// moves it away, makes us and all others take a new one.
    fn folder(&self) -> Result<Arc<LockFolder>, String> {
        let mut open = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = open.as_ref().filter(|folder| folder.has_its_name()) {
            return Ok(folder.clone());
        }
        *open = None;
        let mut why = String::new();
        for place in &self.places {
            match LockFolder::open(place) {
                Ok(folder) => return Ok(open.insert(Arc::new(folder)).clone()),
                Err(error) => why = error.to_string(),
            }
        }
        Err(why)
    }

    /// The set is whole at any time, so that a panic elsewhere while it was held does no harm.
    fn held(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PathLock<'_> {
    /// Notes the path of a file that is to be removed, for the next process that finds this lock if this one ends before.
    pub(super) fn note(&self, path: &Path) {
        self.forget_note();
        if let Some(lock) = &self.file {
            // Without the note the file stays, which is all.
            let _ = pwrite(&lock.file, path.as_os_str().as_bytes(), 0);
        }
    }

    /// Removes the note.
    pub(super) fn forget_note(&self) {
        if let Some(lock) = &self.file {
            let _ = ftruncate(&lock.file, 0);
        }
    }

    /// Returns the path that a process noted which ended while it held this lock.
    pub(super) fn noted(&self) -> Option<PathBuf> {
        self.file.as_ref()?.noted()
    }
}

impl Drop for PathLock<'_> {
    fn drop(&mut self) {
        // First, so that the thread that comes next need not wait for it.
        self.file = None;
        self.locks.held().remove(&self.path);
        self.locks.freed.notify_all();
    }
}

/// A lock file, held. It is removed when it is dropped.
#[derive(Debug)]
struct LockFile {
    folder: Arc<LockFolder>,
    name: String,
    file: OwnedFd,
    /// Set if dropping it leaves the file.
    stays: bool,
}

impl LockFile {
    /// Takes the lock file of this name, if no process holds it.
    fn take_abandoned(folder: &Arc<LockFolder>, name: &str) -> Option<Self> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = name.ends_with(".lock").then(|| openat(folder.as_fd(), name, flags, Mode::empty()).ok())??;
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        (fstat(&file).ok()?.st_nlink > 0).then(|| Self {
            folder: folder.clone(),
            name: name.to_owned(),
            file,
            stays: false,
        })
    }

    fn noted(&self) -> Option<PathBuf> {
        let mut path = [0; MAX_NOTE_BYTES];
        let length = pread(&self.file, &mut path, 0).ok()?;
        let path = &path[..length];
        (!path.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(path)))
    }

    /// Waits for the lock; `None` when the time is over first. `ENOENT`: the folder is gone.
    fn take(folder: &Arc<LockFolder>, path: &Path, stop: &Stop) -> rustix::io::Result<Option<Self>> {
        let digest = Sha256::digest(path.as_os_str().as_bytes());
        let name: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).chain([".lock".into()]).collect();
        let mut pause = FIRST_PAUSE;
        loop {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = openat(folder.as_fd(), &name, flags, Mode::RUSR | Mode::WUSR)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if fstat(&file)?.st_nlink > 0 => {
                    return Ok(Some(Self { folder: folder.clone(), name, file, stays: false }));
                }
                // Whoever held it has removed it: the next one has the name now.
                Ok(()) | Err(Errno::INTR) => continue,
                Err(Errno::WOULDBLOCK) => {}
                Err(errno) => return Err(errno),
            }
            let left = stop.left();
            if left.is_zero() {
                return Ok(None);
            }
            thread::sleep(pause.min(left));
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // While it is still locked, so that nobody else's is removed; if somebody removed it, the name is another's.
        if !self.stays && fstat(&self.file).is_ok_and(|stat| stat.st_nlink > 0) {
            let _ = unlinkat(self.folder.as_fd(), &self.name, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests;
