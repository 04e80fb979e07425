//! Deadline of work on a blocking thread. Such a thread cannot be cancelled, so the work checks the deadline itself.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// A deadline, and a flag for a caller that no longer waits.
#[derive(Debug, Clone)]
pub struct StopCondition {
    deadline: Instant,
    abandoned: Arc<AtomicBool>,
}

impl StopCondition {
    /// Creates a `StopCondition` for work that must end at this deadline.
    pub fn at(deadline: Instant) -> Self {
        Self { deadline, abandoned: Arc::default() }
    }

    /// Returns the earlier one of this deadline and the end of the given time from now.
    #[must_use]
    pub fn within(&self, time: Duration) -> Self {
        let deadline = Instant::now().checked_add(time).map_or(self.deadline, |sooner| sooner.min(self.deadline));
        Self { deadline, abandoned: self.abandoned.clone() }
    }

    /// Returns `true` if the work must end now, with the results so far.
    pub fn is_due(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed) || Instant::now() >= self.deadline
    }

    /// Returns the remaining time: zero after the deadline, and if the caller no longer waits.
    pub fn left(&self) -> Duration {
        if self.abandoned.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Returns a guard that ends the work when it is dropped, for example when the caller stops waiting.
    #[must_use]
    pub fn when_dropped(&self) -> StopOnDrop {
        StopOnDrop(self.abandoned.clone())
    }
}

/// Ends the work of its [`StopCondition`] when it is dropped.
#[derive(Debug)]
pub struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stop_condition_is_due_at_the_deadline_or_when_its_guard_is_dropped() {
        let far = StopCondition::at(Instant::now() + Duration::from_secs(3600));
        assert!(!far.is_due() && far.left() > Duration::from_secs(3000));
        assert!(far.within(Duration::ZERO).is_due());
        let narrowed = far.within(Duration::from_secs(60));
        drop(far.when_dropped());
        assert!(far.is_due() && narrowed.is_due() && narrowed.left().is_zero());
    }
}
