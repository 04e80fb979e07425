//! A stopped clock.

use crate::ports::clock::{Clock, Timestamp};
use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

/// Clock with a fixed time that tests can set.
#[derive(Debug)]
pub struct FixedClock(AtomicI64);

impl FixedClock {
    /// Creates a clock with this time.
    pub fn at(time: Timestamp) -> Self {
        Self(AtomicI64::new(time.0))
    }

    /// Sets the time, forwards or backwards.
    pub fn set(&self, time: Timestamp) {
        self.0.store(time.0, Ordering::SeqCst);
    }

    /// Advances the time.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX), Ordering::SeqCst);
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}
