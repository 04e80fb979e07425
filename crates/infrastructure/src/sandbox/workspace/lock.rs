//! One change of a file at a time, among the threads of this process and among all processes of this user.
//!
//! Threads wait for each other in memory. Processes hold a lock file for each path, in a folder of the user's own that
//! lies outside of every workspace; the kernel frees it when a process ends, in whatever way.

use crate::sandbox::workspace::stop::Stop;
use rustix::{
    fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, openat, unlinkat},
    io::{Errno, pread, pwrite},
    process::geteuid,
};
use sha2::{Digest, Sha256};
use std::{
    collections::HashSet,
    ffi::OsStr,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
    sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
    time::Duration,
};

/// How often a waiting call looks whether anybody still waits for it.
const LOOK_UP: Duration = Duration::from_millis(250);
/// How long a call waits for another process before it looks again: first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(32);
/// The longest name that is noted in a lock file, in bytes.
const MAX_NOTE_BYTES: usize = 255;

/// The files that are being changed, by real path.
#[derive(Debug, Default)]
pub(super) struct PathLocks {
    held: Mutex<HashSet<PathBuf>>,
    freed: Condvar,
    folder: OnceLock<Option<OwnedFd>>,
}

/// Holds a file until it is dropped.
#[derive(Debug)]
pub(super) struct PathLock<'a> {
    locks: &'a PathLocks,
    path: PathBuf,
    file: Option<LockFile<'a>>,
}

impl PathLocks {
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
        if let Some(folder) = self.folder() {
            match LockFile::take(folder, path, stop) {
                Ok(Some(file)) => lock.file = Some(file),
                Ok(None) => return None,
                // The threads of this process still wait for each other.
                Err(error) => tracing::warn!(%error, "other processes are not kept from changing the same file"),
            }
        }
        Some(lock)
    }

    /// The folder of the lock files: the same for all processes of this user, and nobody else's.
    fn folder(&self) -> Option<&OwnedFd> {
        let open = || {
            let name = format!("/tmp/toolstead-{}", geteuid().as_raw());
            match mkdirat(CWD, &name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let folder = openat(CWD, &name, flags, Mode::empty())?;
            let stat = fstat(&folder)?;
            // Somebody else may have made a folder of that name.
            let is_ours = stat.st_uid == geteuid().as_raw() && stat.st_mode & 0o077 == 0;
            if is_ours { Ok(folder) } else { Err(Errno::PERM) }
        };
        let folder = self.folder.get_or_init(|| match open() {
            Ok(folder) => Some(folder),
            Err(error) => {
                tracing::warn!(%error, "other processes are not kept from changing the same files");
                None
            }
        });
        folder.as_ref()
    }

    /// The set is whole at any time, so that a panic elsewhere while it was held does no harm.
    fn held(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PathLock<'_> {
    /// Notes the name of a file that is to go away, for whoever holds this lock next if this process ends before.
    pub(super) fn note(&self, name: &Path) {
        if let Some(lock) = &self.file {
            // Without the note nothing worse happens than that the file stays.
            let _ = pwrite(&lock.file, name.as_os_str().as_bytes(), 0);
        }
    }

    /// The name that a process noted which ended while it held this lock.
    pub(super) fn noted(&self) -> Option<PathBuf> {
        let mut name = [0; MAX_NOTE_BYTES];
        let length = pread(&self.file.as_ref()?.file, &mut name, 0).ok()?;
        let name = &name[..length];
        (!name.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(name)))
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
struct LockFile<'a> {
    folder: &'a OwnedFd,
    name: String,
    file: OwnedFd,
}

impl<'a> LockFile<'a> {
    /// Waits for the lock; `None` when the time is over first.
    fn take(folder: &'a OwnedFd, path: &Path, stop: &Stop) -> rustix::io::Result<Option<Self>> {
        let digest = Sha256::digest(path.as_os_str().as_bytes());
        let name: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).chain([".lock".into()]).collect();
        let mut pause = FIRST_PAUSE;
        loop {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = openat(folder, &name, flags, Mode::RUSR | Mode::WUSR)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if fstat(&file)?.st_nlink > 0 => return Ok(Some(Self { folder, name, file })),
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

impl Drop for LockFile<'_> {
    fn drop(&mut self) {
        // While it is still locked, so that nobody else's is removed.
        let _ = unlinkat(self.folder, &self.name, AtFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_file_is_held_once_and_waited_for_no_longer_than_the_deadline() {
        let locks = PathLocks::default();
        let now = Stop::at(Instant::now());
        let later = Stop::at(Instant::now() + Duration::from_secs(60));
        let held = locks.lock(Path::new("/a"), &now).unwrap();
        assert!(locks.lock(Path::new("/b"), &now).is_some());
        assert!(locks.lock(Path::new("/a"), &now).is_none());
        thread::scope(|scope| {
            let waiting = scope.spawn(|| locks.lock(Path::new("/a"), &later).is_some());
            drop(held);
            assert!(waiting.join().unwrap());
        });
    }

    #[test]
    fn another_process_is_waited_for_and_what_it_left_is_known() {
        let (ours, theirs) = (PathLocks::default(), PathLocks::default());
        let now = Stop::at(Instant::now());
        let later = Stop::at(Instant::now() + Duration::from_secs(60));
        let path = PathBuf::from(format!("/nowhere/{}", uuid::Uuid::new_v4()));
        let held = theirs.lock(&path, &later).unwrap();
        held.note(Path::new("left"));
        assert!(ours.lock(&path, &now).is_none());
        thread::scope(|scope| {
            let waiting = scope.spawn(|| ours.lock(&path, &later).map(|lock| lock.noted()));
            // As the kernel does it when a process ends: the lock goes, and the file stays.
            flock(&held.file.as_ref().unwrap().file, FlockOperation::Unlock).unwrap();
            assert_eq!(waiting.join().unwrap(), Some(Some(PathBuf::from("left"))));
        });
        drop(held);
        assert_eq!(ours.lock(&path, &later).unwrap().noted(), None);
    }
}
