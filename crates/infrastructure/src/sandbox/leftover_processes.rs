//! Finds processes that an unconfined program started outside of its process group.
//!
//! Every process inherits the environment of the program, so a marker variable identifies it in any group and with any
//! parent, unless the process removes the variable. Such programs are not hostile: they are the user's own hooks that
//! exceeded their time.

use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};
use std::{collections::BTreeSet, fs};
use tokio::runtime::Handle;
use uuid::Uuid;

/// Environment variable that contains the marker of a run, in all of its processes.
pub const MARKER_VARIABLE: &str = "TOOLSTEAD_RUN";
/// Maximum number of searches. A process that is found may have started another one meanwhile.
const ROUNDS: usize = 64;

/// Marker of one run. Dropping it kills all processes that have it, unless the run ended normally. An async runtime
/// does not wait for that.
#[derive(Debug)]
pub struct RunMarker {
    value: String,
    is_disarmed: bool,
}

impl RunMarker {
    /// Creates a marker that no process has yet.
    pub fn new() -> Self {
        Self { value: Uuid::new_v4().simple().to_string(), is_disarmed: false }
    }

    /// Returns the value of [`MARKER_VARIABLE`].
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Keeps the processes of the run: the program was not started, or ended by itself and left processes behind on
    /// purpose.
    pub fn disarm(&mut self) {
        self.is_disarmed = true;
    }
}

impl Default for RunMarker {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for RunMarker {
    fn drop(&mut self) {
        if self.is_disarmed {
            return;
        }
        let hunt = LeftoverSearch { variable: format!("{MARKER_VARIABLE}={}", self.value) };
        // Without a runtime to run it in the background, the search runs here.
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || drop(hunt))),
            Err(_) => drop(hunt),
        }
    }
}

/// Kills the processes with this variable when it is dropped, on whichever thread that happens.
struct LeftoverSearch {
    variable: String,
}

impl Drop for LeftoverSearch {
    fn drop(&mut self) {
        let mut killed = BTreeSet::new();
        for _ in 0..ROUNDS {
            if !kill_all(self.variable.as_bytes(), &mut killed) {
                return;
            }
        }
    }
}

/// Kills the processes with this variable. Returns `true` if there were any besides those that were killed before and
/// have not fully ended.
fn kill_all(variable: &[u8], killed: &mut BTreeSet<i32>) -> bool {
    let Ok(entries) = fs::read_dir("/proc") else { return false };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut has_more = false;
    for pid in numbers.filter_map(Pid::from_raw).filter(|pid| *pid != getpid()) {
        // The descriptor is opened before the environment is read, so that both refer to the same process.
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|one| one == variable)
            && pidfd_send_signal(&process, Signal::KILL).is_ok()
        {
            has_more |= killed.insert(pid.as_raw_nonzero().get());
        }
    }
    has_more
}
