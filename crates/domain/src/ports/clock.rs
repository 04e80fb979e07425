//! The time, so that nobody inside has to ask the system.

use std::time::Duration;

/// A point in time: microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The time from `earlier` to this; zero if the clock was set back in between.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// Tells the time. Two readings may be equal, and the second may be earlier when the system's clock was set.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}
