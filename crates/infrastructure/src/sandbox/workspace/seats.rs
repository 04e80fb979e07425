//! Who may hold file descriptors: a process has a thousand of them as a rule, and many changes of many files at once
//! would use them up for everything else, too.

use crate::sandbox::workspace::stop::Stop;
use rustix::process::{Resource, getrlimit};
use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// As many descriptors a file that is being changed takes at most: its folder, itself, its lock, and a folder that is
/// made for it or the new file while it is written.
const OF_A_FILE: u64 = 4;
/// How often a waiting call looks whether anybody still waits for it.
const LOOK_UP: Duration = Duration::from_millis(250);
/// Where the system sets no limit.
const NO_LIMIT: u64 = 1 << 20;

/// The descriptors that changes of files hold, of a whole process, whatever the number of workspaces.
#[derive(Debug)]
pub(in crate::sandbox) struct FileSeats {
    taken: Mutex<u64>,
    freed: Condvar,
}

impl FileSeats {
    pub(in crate::sandbox) const fn new() -> Self {
        Self { taken: Mutex::new(0), freed: Condvar::new() }
    }

    /// Waits until so many files may be held besides all others; `None` when the time is over first. All that a call
    /// needs has to be asked for at once, so that calls do not wait for each other. Blocks.
    pub(super) fn take(&'static self, files: usize, stop: &Stop) -> Option<Seats> {
        // The other half is for whatever else the process does.
        let all = getrlimit(Resource::Nofile).current.unwrap_or(NO_LIMIT) / 2;
        // Who needs more than there is comes alone.
        let wanted = OF_A_FILE.saturating_mul(files as u64).min(all);
        let mut taken = self.taken();
        while *taken + wanted > all {
            let left = stop.left();
            if left.is_zero() {
                return None;
            }
            taken = self.freed.wait_timeout(taken, left.min(LOOK_UP)).unwrap_or_else(PoisonError::into_inner).0;
        }
        *taken += wanted;
        Some(Seats { of: self, taken: wanted })
    }

    /// A number is whole at any time, so that a panic elsewhere while it was held does no harm.
    fn taken(&self) -> MutexGuard<'_, u64> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leave to hold some files until it is dropped.
#[derive(Debug)]
pub struct Seats {
    of: &'static FileSeats,
    taken: u64,
}

impl Drop for Seats {
    fn drop(&mut self) {
        *self.of.taken() -= self.taken;
        self.of.freed.notify_all();
    }
}
