//! A clock whose every reading is later than the one before.

use crate::ports::clock::{Clock, Timestamp};
use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

/// Goes on by one step with every reading, so that a test knows each time beforehand.
#[derive(Debug)]
pub struct SteppingClock {
    next: AtomicI64,
    step_micros: i64,
}

impl SteppingClock {
    /// A clock whose first reading is `start`.
    pub fn new(start: Timestamp, step: Duration) -> Self {
        let step_micros = i64::try_from(step.as_micros()).unwrap_or(i64::MAX);
        Self { next: AtomicI64::new(start.0), step_micros }
    }
}

impl Clock for SteppingClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.next.fetch_add(self.step_micros, Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reading_is_one_step_later() {
        let clock = SteppingClock::new(Timestamp(10), Duration::from_micros(5));
        assert_eq!([clock.now(), clock.now(), clock.now()], [10, 15, 20].map(Timestamp));
    }
}
