//! Limits the number of file descriptors that file changes hold. A process may usually open about a thousand, and many
//! concurrent changes could leave none for the rest of the process.

use crate::sandbox::workspace::stop::StopCondition;
use rustix::process::{Resource, getrlimit};
use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Maximum number of descriptors for one changed file: its folder, the file itself, its lock, and either a folder that
/// is created for it or the new file while it is written.
const OF_A_FILE: u64 = 4;
/// Interval at which a waiting call checks that its caller still waits.
const LOOK_UP: Duration = Duration::from_millis(250);
/// Assumed limit of open descriptors if the system sets none.
const NO_LIMIT: u64 = 1 << 20;

/// Descriptors that file changes hold in this process, in all workspaces.
#[derive(Debug)]
pub(in crate::sandbox) struct OpenFileLimiter {
    in_use: Mutex<u64>,
    freed: Condvar,
}

impl OpenFileLimiter {
    pub(in crate::sandbox) const fn new() -> Self {
        Self { in_use: Mutex::new(0), freed: Condvar::new() }
    }

    /// Waits until this number of files may be open in addition to all others. Returns `None` if the deadline passes
    /// first. A call must request all its files at once, so that calls do not wait for each other. Blocks.
    pub(super) fn take(&'static self, files: usize, stop: &StopCondition) -> Option<OpenFilePermit> {
        // The other half is reserved for the rest of the process.
        let all = getrlimit(Resource::Nofile).current.unwrap_or(NO_LIMIT) / 2;
        // A request for more than the total runs alone.
        let wanted = OF_A_FILE.saturating_mul(files as u64).min(all);
        let mut taken = self.lock_in_use();
        while *taken + wanted > all {
            let left = stop.left();
            if left.is_zero() {
                return None;
            }
            taken = self.freed.wait_timeout(taken, left.min(LOOK_UP)).unwrap_or_else(PoisonError::into_inner).0;
        }
        *taken += wanted;
        Some(OpenFilePermit { of: self, taken: wanted })
    }

    /// Locks the number of descriptors in use. It is consistent at any time, so a panic of another thread that held the
    /// lock does no harm.
    fn lock_in_use(&self) -> MutexGuard<'_, u64> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Permit for open files. It is released when the value is dropped.
#[derive(Debug)]
pub struct OpenFilePermit {
    of: &'static OpenFileLimiter,
    taken: u64,
}

impl Drop for OpenFilePermit {
    fn drop(&mut self) {
        *self.of.lock_in_use() -= self.taken;
        self.of.freed.notify_all();
    }
}
