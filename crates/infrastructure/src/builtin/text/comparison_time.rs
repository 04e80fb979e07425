//! Comparisons of texts within a bound of processor time.

use crate::shell_analysis::processor_time::processor_time;
use std::time::{Duration, Instant};

/// Maximum wall-clock timeout of the second attempt, as a multiple of the processor time.
const MAX_FACTOR: f64 = 20.0;

/// Runs a comparison that becomes coarser at its deadline, and returns the result that it has after about `bound` of
/// processor time.
///
/// The diff library supports only wall-clock deadlines. A busy machine may give this thread little processor time
/// until such a deadline. The comparison is repeated once then, with a deadline that is later in proportion, so that
/// the result hardly depends on the load.
pub(crate) fn within<T>(bound: Duration, compare: impl Fn(Instant) -> T) -> T {
    let (start, deadline) = (processor_time(), Instant::now() + bound);
    let compared = compare(deadline);
    let used = processor_time().saturating_sub(start);
    if Instant::now() <= deadline || used >= bound * 3 / 4 {
        return compared;
    }
    let factor = (bound.as_secs_f64() / used.as_secs_f64().max(f64::EPSILON)).min(MAX_FACTOR);
    compare(Instant::now() + bound.mul_f64(factor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{cell::Cell, thread::sleep};

    const BOUND: Duration = Duration::from_millis(20);

    /// Runs a comparison and returns its number of attempts.
    fn attempts(bound: Duration, compare: impl Fn(Instant)) -> u32 {
        let attempts = Cell::new(0);
        within(bound, |deadline| {
            attempts.set(attempts.get() + 1);
            compare(deadline);
        });
        attempts.get()
    }

    #[test]
    fn a_comparison_that_got_no_processor_time_before_its_deadline_is_repeated_once() {
        let late = |deadline: Instant| {
            while Instant::now() <= deadline {
                sleep(deadline.saturating_duration_since(Instant::now()) + Duration::from_millis(1));
            }
        };
        assert_eq!(attempts(BOUND, late), 2);
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
