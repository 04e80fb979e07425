//! The tokio runtime of both binaries.

use crate::cli::output::note;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use std::{process::ExitCode, time::Duration};
use toolstead_infrastructure::helper::end_helpers;

/// How long work on blocking threads has to end; a read from a terminal never does.
const LAST_WORK: Duration = Duration::from_millis(200);

/// How often it is looked whether memory is held that may go back.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);
/// So much more memory than before is held before it is asked back.
const WORTH_GIVING_BACK: usize = 16 << 20;
/// So often it is asked back: who holds it then needs it.
const LOOKS_AT_A_PEAK: u32 = 15;

/// Runs a program to its end. `give_back` has the allocator return to the system what is free.
pub fn run(program: impl Future<Output = ExitCode>, give_back: fn()) -> ExitCode {
    // Keys and tokens are in this memory: another program of the same user shall neither trace nor read it.
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        note(&format!("warning: other programs of this user may read the memory of this one: {error}"));
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            note(&format!("error: the runtime cannot be started: {error}"));
            return ExitCode::from(70);
        }
    };
    let looking = runtime.spawn(give_back_after_peaks(give_back));
    let code = runtime.block_on(program);
    looking.abort();
    runtime.shutdown_timeout(LAST_WORK);
    // Whoever waits for our end finds nothing of us any more.
    end_helpers();
    code
}

/// An allocator keeps what one large message took, until somebody allocates again.
async fn give_back_after_peaks(give_back: fn()) {
    let Some(mut memory) = resident_bytes().map(Memory::of) else { return };
    loop {
        tokio::time::sleep(BETWEEN_LOOKS).await;
        match resident_bytes() {
            Some(now) if memory.has_peaked(now) => give_back(),
            Some(_) => {}
            None => return,
        }
    }
}

/// What is held for good.
struct Memory {
    least: usize,
    /// How often more than that was found, one time after the other.
    peaks: u32,
}

impl Memory {
    fn of(bytes: usize) -> Self {
        Self { least: bytes, peaks: 0 }
    }

    /// Whether there is more than usual, which may be in use still. What is there every time is usual.
    fn has_peaked(&mut self, now: usize) -> bool {
        if now <= self.least.saturating_add(WORTH_GIVING_BACK) || self.peaks == LOOKS_AT_A_PEAK {
            *self = Self::of(if self.peaks == LOOKS_AT_A_PEAK { now } else { self.least.min(now) });
            return false;
        }
        self.peaks += 1;
        true
    }
}

/// What this process holds of the machine's memory; `None` where the system does not tell.
fn resident_bytes() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    kilobytes.trim().strip_suffix(" kB")?.trim().parse::<usize>().ok()?.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_asked_back_after_a_peak_and_not_for_what_is_held_all_the_time() {
        let mut memory = Memory::of(50 << 20);
        assert!(!memory.has_peaked(60 << 20));
        assert!(!memory.has_peaked(40 << 20));
        assert!(memory.has_peaked(60 << 20), "counted from the least");
        assert!(memory.has_peaked(60 << 20), "it may have been in use");
        assert!(!memory.has_peaked(41 << 20));
        let asked = (0..100).filter(|_| memory.has_peaked(200 << 20)).count();
        assert_eq!(asked, LOOKS_AT_A_PEAK as usize, "what is held all the time is needed");
        assert!(memory.has_peaked(217 << 20));
    }

    #[test]
    fn the_system_tells_what_is_held() {
        assert!(resident_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
