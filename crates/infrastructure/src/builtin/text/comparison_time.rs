//! Comparisons of texts within a bound of processor time.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// Maximum number of attempts. Each has four times as long on the clock as the one before.
const MAX_ATTEMPTS: u32 = 4;

/// Runs a comparison that becomes coarser at its deadline, and returns the result that it has after `bound` of processor
/// time.
///
/// The library of diffs has deadlines on the clock alone. A busy machine may give this thread little processor time
/// until such a deadline; then the comparison is repeated with a later one, so that the result does not depend on the
/// load.
pub(crate) fn within<T>(bound: Duration, compare: impl Fn(Instant) -> T) -> T {
    let enough = bound * 3 / 4;
    let mut time = bound;
    let mut attempt = 1;
    loop {
        let (start, deadline) = (processor_time(), Instant::now() + time);
        let compared = compare(deadline);
        let used = processor_time().saturating_sub(start);
        if Instant::now() <= deadline || used >= enough || attempt == MAX_ATTEMPTS {
            return compared;
        }
        time *= 4;
        attempt += 1;
    }
}

/// Returns the processor time of this thread. Unlike the clock, it does not advance while other programs run.
fn processor_time() -> Duration {
    // Never negative, so that the conversion cannot fail.
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{cell::Cell, thread::sleep};

    const BOUND: Duration = Duration::from_millis(20);

    /// Compares in this way; returns the number of attempts.
    fn attempts(bound: Duration, compare: impl Fn(Instant)) -> u32 {
        let attempts = Cell::new(0);
        within(bound, |deadline| {
            attempts.set(attempts.get() + 1);
            compare(deadline);
        });
        attempts.get()
    }

    #[test]
    fn a_comparison_that_got_no_processor_time_before_its_deadline_is_repeated_a_few_times() {
        let late = |deadline: Instant| {
            while Instant::now() <= deadline {
                sleep(deadline.saturating_duration_since(Instant::now()) + Duration::from_millis(1));
            }
        };
        assert_eq!(attempts(BOUND, late), MAX_ATTEMPTS);
    }

    #[test]
    fn a_comparison_that_used_its_processor_time_or_ended_before_its_deadline_is_not_repeated() {
        let busy = |deadline: Instant| {
            let end = processor_time() + BOUND;
            while processor_time() < end || Instant::now() <= deadline {}
        };
        assert_eq!(attempts(BOUND, busy), 1);
        assert_eq!(attempts(Duration::from_secs(600), |_| ()), 1);
    }
}
