//! Serializes changes of the same file, among the threads of this process and among all processes of this user.
//!
//! Threads wait for each other in memory. Processes hold a lock file for each path, in a folder of the user that tools
//! cannot access ([`lock_folders`](super::lock_folder::lock_folders)). The kernel releases the lock when a process
//! ends, in whatever way.

use crate::sandbox::workspace::{lock_folder::LockFolder, stop::StopCondition};
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

/// Interval at which a waiting call checks that its caller still waits.
const LOOK_UP: Duration = Duration::from_millis(250);
/// First and longest pause between two attempts to take the lock of another process.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(32);
/// Maximum length of a path that is recorded in a lock file, in bytes.
const MAX_NOTE_BYTES: usize = 4095;
/// Maximum number of lock files that are read when their folder is scanned.
const MAX_LOCK_FILES: usize = 10_000;

/// Maximum number of times that the folder of the lock files is reopened because another process removed it.
const ATTEMPTS: usize = 8;

/// Locks of the files that are being changed, by their real paths.
#[derive(Debug)]
pub(super) struct PathLocks {
    held: Mutex<HashSet<PathBuf>>,
    freed: Condvar,
    /// Possible folders of the lock files, best first.
    places: Vec<PathBuf>,
    folder: Mutex<Option<Arc<LockFolder>>>,
    has_warned: AtomicBool,
}

/// Lock of a file. It is released when the value is dropped.
#[derive(Debug)]
pub(super) struct PathLock<'a> {
    locks: &'a PathLocks,
    path: PathBuf,
    file: Option<PathLockFile>,
}

impl PathLocks {
    /// Creates locks whose files are in the first usable one of these folders.
    pub(super) fn new(places: Vec<PathBuf>) -> Self {
        Self {
            held: Mutex::default(),
            freed: Condvar::new(),
            places,
            folder: Mutex::default(),
            has_warned: AtomicBool::new(false),
        }
    }

    /// Waits for the lock of a file. Returns `None` if the deadline passes first. If no lock file can be created, logs
    /// a warning once, and locks the file only within this process. Blocks.
    pub(super) fn lock(&self, path: &Path, stop: &StopCondition) -> Option<PathLock<'_>> {
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
            // Without a lock file, the threads of this process still wait for each other.
            Err(message) => {
                if !self.has_warned.swap(true, Ordering::Relaxed) {
                    tracing::warn!("other processes may change the same files at the same time: {message}");
                }
            }
        }
        Some(lock)
    }

    /// Calls `remove` with the path that is recorded in each lock file whose process ended before it released the lock.
    /// Removes these lock files, except those for which `remove` returns `false`.
    pub(super) fn clear_abandoned(&self, remove: impl Fn(&Path) -> bool) {
        let exists = |place: &&PathBuf| statat(CWD, *place, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        for folder in self.places.iter().filter(exists).filter_map(|place| LockFolder::open(place).ok()) {
            let folder = Arc::new(folder);
            let Ok(entries) = Dir::read_from(folder.as_fd()) else { continue };
            for entry in entries.flatten().take(MAX_LOCK_FILES) {
                let Some(mut lock) = PathLockFile::take_abandoned(&folder, &entry.file_name().to_string_lossy()) else {
                    continue;
                };
                lock.stays = lock.noted().is_some_and(|noted| !remove(&noted));
            }
        }
    }

    /// Waits for the lock file. Returns `None` if the deadline passes first, and an error with a suggestion if no lock
    /// file can be created.
    fn lock_file(&self, path: &Path, stop: &StopCondition) -> Result<Option<PathLockFile>, String> {
        let mut last = String::new();
        for _ in 0..ATTEMPTS {
            let folder = self.folder()?;
            match PathLockFile::take(&folder, path, stop) {
                Err(Errno::NOENT) => last = format!("`{}` is removed repeatedly", folder.path().display()),
                Err(error) => {
                    return Err(format!("no lock file can be created in `{}`: {error}", folder.path().display()));
                }
                Ok(taken) => return Ok(taken),
            }
        }
        Err(last)
    }

    /// Returns the folder of the lock files, which all processes of this user share and no other user may enter. If it
    /// is removed or moved away, all processes open a new one.
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

    /// Locks the set of the held paths. The set is consistent at any time, so a panic of another thread that held the
    /// lock does no harm.
    fn held(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PathLock<'_> {
    /// Records the path of a file to remove, for the next process that takes this lock if this process ends before it
    /// is done.
    pub(super) fn note(&self, path: &Path) {
        self.forget_note();
        if let Some(lock) = &self.file {
            // Without the record, the only consequence is that the file stays.
            let _ = pwrite(&lock.file, path.as_os_str().as_bytes(), 0);
        }
    }

    /// Removes the record.
    pub(super) fn forget_note(&self) {
        if let Some(lock) = &self.file {
            let _ = ftruncate(&lock.file, 0);
        }
    }

    /// Returns the path that is recorded in the lock file: by this process, or by one that ended while it held the
    /// lock. `None` without a record.
    pub(super) fn noted(&self) -> Option<PathBuf> {
        self.file.as_ref()?.noted()
    }
}

impl Drop for PathLock<'_> {
    fn drop(&mut self) {
        // Released first, so that the next thread does not have to wait for it.
        self.file = None;
        self.locks.held().remove(&self.path);
        self.locks.freed.notify_all();
    }
}

/// A held lock file. It is removed when the value is dropped.
#[derive(Debug)]
struct PathLockFile {
    folder: Arc<LockFolder>,
    name: String,
    file: OwnedFd,
    /// `true` if the file stays when the value is dropped.
    stays: bool,
}

impl PathLockFile {
    /// Takes an existing lock file without waiting. Returns `None` if another process holds it, if it does not exist,
    /// and if `name` is not the name of a lock file.
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

    /// Waits for the lock. Returns `None` if the deadline passes first, and `ENOENT` if the folder was removed.
    fn take(folder: &Arc<LockFolder>, path: &Path, stop: &StopCondition) -> rustix::io::Result<Option<Self>> {
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
                // The previous holder has removed the file. The name belongs to a new one now.
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

impl Drop for PathLockFile {
    fn drop(&mut self) {
        // Removed while it is locked, so that the lock file of another process is never removed. If it was removed
        // before, the name may belong to another process.
        if !self.stays && fstat(&self.file).is_ok_and(|stat| stat.st_nlink > 0) {
            let _ = unlinkat(self.folder.as_fd(), &self.name, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests;
