//! When work on a blocking thread has to end: such a thread cannot be cancelled, so it looks by itself.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// A deadline, and the word that nobody waits any more.
#[derive(Debug, Clone)]
pub struct Stop {
    deadline: Instant,
    abandoned: Arc<AtomicBool>,
}

impl Stop {
    /// Ends at the deadline.
    pub fn at(deadline: Instant) -> Self {
        Self { deadline, abandoned: Arc::default() }
    }

    /// The same end, or the end of this time from now if that is sooner.
    #[must_use]
    pub fn within(&self, time: Duration) -> Self {
        let deadline = Instant::now().checked_add(time).map_or(self.deadline, |sooner| sooner.min(self.deadline));
        Self { deadline, abandoned: self.abandoned.clone() }
    }

    /// Whether to end now, with what there is.
    pub fn is_due(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed) || Instant::now() >= self.deadline
    }

    /// The time that is left; zero when it is over.
    pub fn left(&self) -> Duration {
        if self.abandoned.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Ends the work when the returned guard is dropped: when whoever waits for it goes away.
    #[must_use]
    pub fn when_dropped(&self) -> Abandon {
        Abandon(self.abandoned.clone())
    }
}

/// Ends the work of its [`Stop`] when it is dropped.
#[derive(Debug)]
pub struct Abandon(Arc<AtomicBool>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_ends_at_the_deadline_or_when_nobody_waits() {
        let far = Stop::at(Instant::now() + Duration::from_secs(3600));
        assert!(!far.is_due() && far.left() > Duration::from_secs(3000));
        assert!(far.within(Duration::ZERO).is_due());
        let narrowed = far.within(Duration::from_secs(60));
        drop(far.when_dropped());
        assert!(far.is_due() && narrowed.is_due() && narrowed.left().is_zero());
    }
}
