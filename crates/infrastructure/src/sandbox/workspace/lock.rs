//! One change of a file at a time, within this process.

use crate::sandbox::workspace::stop::Stop;
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// How often a waiting call looks whether anybody still waits for it.
const LOOK_UP: Duration = Duration::from_millis(250);

/// The files that are being changed, by real path.
#[derive(Debug, Default)]
pub(super) struct PathLocks {
    held: Mutex<HashSet<PathBuf>>,
    freed: Condvar,
}

/// Holds a file until it is dropped.
#[derive(Debug)]
pub(super) struct PathLock<'a> {
    locks: &'a PathLocks,
    path: PathBuf,
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
        Some(PathLock { locks: self, path: path.to_path_buf() })
    }

    /// The set is whole at any time, so that a panic elsewhere while it was held does no harm.
    fn held(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PathLock<'_> {
    fn drop(&mut self) {
        self.locks.held().remove(&self.path);
        self.locks.freed.notify_all();
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
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| locks.lock(Path::new("/a"), &later).is_some());
            drop(held);
            assert!(waiting.join().unwrap());
        });
    }
}
