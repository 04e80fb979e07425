//! What a program that is not confined started outside of its process group.
//!
//! Whatever a program starts gets its environment, so a mark there finds it again under any group and any parent, until
//! it takes the mark away itself. Such a program is no enemy: it is a person's own hook that was late.

use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};
use std::{collections::BTreeSet, fs};
use tokio::runtime::Handle;
use uuid::Uuid;

/// The variable that bears the mark.
pub const MARK: &str = "TOOLSTEAD_RUN";
/// Looked for so often: what is found may have started something meanwhile.
const ROUNDS: usize = 64;

/// The mark of one run. Dropping it kills all processes that bear it, unless the run is over in good order; a runtime does
/// not wait for that.
#[derive(Debug)]
pub struct Mark {
    value: String,
    is_over: bool,
}

impl Mark {
    /// One that nothing bears yet.
    pub fn new() -> Self {
        Self { value: Uuid::new_v4().simple().to_string(), is_over: false }
    }

    /// What [`MARK`] is to be.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The program was not started, or ended by itself: what it left on purpose stays.
    pub fn let_go(&mut self) {
        self.is_over = true;
    }
}

impl Default for Mark {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let hunt = Hunt { variable: format!("{MARK}={}", self.value) };
        // A runtime that has no thread for it any more drops it here.
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || drop(hunt))),
            Err(_) => drop(hunt),
        }
    }
}

/// Kills the processes that have this variable once it is dropped, wherever that is.
struct Hunt {
    variable: String,
}

impl Drop for Hunt {
    fn drop(&mut self) {
        let mut killed = BTreeSet::new();
        for _ in 0..ROUNDS {
            if !kill_all(self.variable.as_bytes(), &mut killed) {
                return;
            }
        }
    }
}

/// Kills the processes that have this variable, and says whether there were some besides those that were killed already
/// and are not quite gone.
fn kill_all(variable: &[u8], killed: &mut BTreeSet<i32>) -> bool {
    let Ok(entries) = fs::read_dir("/proc") else { return false };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut has_more = false;
    for pid in numbers.filter_map(Pid::from_raw).filter(|pid| *pid != getpid()) {
        // Held before it is looked at, so that what is killed is what was looked at.
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
