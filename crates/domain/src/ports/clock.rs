//! The clock. Inner layers read the time from it instead of from the system.

use std::{fmt, time::Duration};

/// Point in time: microseconds since 1970-01-01T00:00:00Z.
///
/// ```
/// use std::time::Duration;
/// use toolstead_domain::ports::clock::Timestamp;
///
/// let start = Timestamp(1_756_684_800_000_000);
/// assert_eq!(start.to_string(), "2025-09-01T00:00:00.000Z");
/// assert_eq!(Timestamp(start.0 + 1_500).since(start), Duration::from_micros(1_500));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Returns the time from `earlier` to this; zero if the clock was set back in between.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// Formats the time by RFC 3339, to the millisecond: `2025-09-01T00:00:00.000Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAY: i64 = 24 * 60 * 60 * 1000;
        let milliseconds = self.0.div_euclid(1000);
        let (days, time) = (milliseconds.div_euclid(DAY), milliseconds.rem_euclid(DAY));
        // Days are counted from 0000-03-01, so that a leap day is the last day of its year (Hinnant,
        // `civil_from_days`).
        let days = days + 719_468;
        let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        let (hours, minutes, seconds) = (time / 3_600_000, time / 60_000 % 60, time / 1000 % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{:03}Z", time % 1000)
    }
}

/// Source of the current time. Two readings may be equal, and the second may be earlier if the system clock was set.
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_is_formatted_as_a_utc_calendar_date_and_time() {
        for (seconds, outcome) in [
            (0, "1970-01-01T00:00:00"),
            (-1, "1969-12-31T23:59:59"),
            (951_782_399, "2000-02-28T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (951_868_800, "2000-03-01T00:00:00"),
            (1_756_684_800, "2025-09-01T00:00:00"),
            (4_107_542_399, "2100-02-28T23:59:59"),
            (4_107_542_400, "2100-03-01T00:00:00"),
        ] {
            assert_eq!(Timestamp(seconds * 1_000_000).to_string(), format!("{outcome}.000Z"));
        }
        assert_eq!(Timestamp(1_999).to_string(), "1970-01-01T00:00:00.001Z");
        assert_eq!(Timestamp(-1).to_string(), "1969-12-31T23:59:59.999Z");
    }
}
