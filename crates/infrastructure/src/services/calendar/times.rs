//! Days and times as people write them, in a time zone.

use crate::host::{local_time_zone_name, time_zone};
use chrono::{
    DateTime, Days, Duration, FixedOffset, Local, NaiveDate, NaiveDateTime, NaiveTime, Offset, SecondsFormat,
    TimeZone as _, Utc,
};
use tz::TimeZone;

/// Maximum length of a time, in bytes.
const MAX_BYTES: usize = 40;
/// Step of the search for the first moment of a day without a midnight, in minutes.
const STEP_MINUTES: i64 = 15;

/// A time zone.
#[derive(Debug, Clone)]
pub struct Zone {
    name: Option<String>,
    rules: ZoneRules,
}

#[derive(Debug, Clone)]
enum ZoneRules {
    /// The rules of the system's clock.
    System,
    Fixed(FixedOffset),
    Named(TimeZone),
}

/// A day, or a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateOrDateTime {
    /// A whole day, in any zone.
    Day(NaiveDate),
    /// A point in time, with its written offset, or that of its zone at this time.
    Instant(DateTime<FixedOffset>),
}

/// The reason why a time is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTime {
    /// The text cannot be parsed.
    #[error(
        "{0:?} is not a time: write \"2026-01-05\" for a day, \"2026-01-05T14:00\" for a time in the time zone, or \"2026-01-05T14:00:00+01:00\""
    )]
    Unreadable(String),
    /// The time does not exist, because the clocks skip it.
    #[error("{0:?} does not exist in the time zone: the clocks skip it")]
    Skipped(String),
    /// The time exists twice, because the clocks are set back.
    #[error(
        "{text:?} occurs twice in the time zone, because the clocks are set back: write \"{first}\" or \"{second}\""
    )]
    Twice {
        /// The text.
        text: String,
        /// The earlier time.
        first: String,
        /// The later time.
        second: String,
    },
    /// The time zone is unknown.
    #[error(
        "{0:?} is not a time zone known on this machine: use a name like \"Europe/Berlin\", an offset like \"+02:00\", or \"UTC\""
    )]
    Zone(String),
}

impl Zone {
    /// Returns the time zone of the system. Its name is known if the system names one that agrees with its clock around
    /// `now`. Blocks briefly.
    pub fn system(now: DateTime<Utc>) -> Self {
        let system = Self { name: None, rules: ZoneRules::System };
        let named = local_time_zone_name().and_then(|name| Self::parse(&name, now).ok());
        let agrees = |named: &Self| {
            (0..4).all(|quarter| {
                let time = now.naive_utc() + Duration::days(91 * quarter);
                named.offset_at(time) == system.offset_at(time)
            })
        };
        named.filter(agrees).unwrap_or(system)
    }

    /// Parses a name, an offset or `local`. Blocks briefly.
    ///
    /// # Errors
    /// [`InvalidTime::Zone`].
    pub fn parse(text: &str, now: DateTime<Utc>) -> Result<Self, InvalidTime> {
        let unknown = || InvalidTime::Zone(text.chars().take(64).collect());
        if text.eq_ignore_ascii_case("local") {
            return Ok(Self::system(now));
        }
        if text.eq_ignore_ascii_case("utc") || text == "Z" {
            return Ok(Self { name: Some("UTC".into()), rules: ZoneRules::Fixed(Utc.fix()) });
        }
        if text.starts_with(['+', '-']) {
            return Ok(Self { name: None, rules: ZoneRules::Fixed(text.parse().map_err(|_| unknown())?) });
        }
        let file = time_zone(text).ok_or_else(unknown)?;
        let named = TimeZone::from_tz_data(&file).map_err(|_| unknown())?;
        Ok(Self { name: Some(text.to_owned()), rules: ZoneRules::Named(named) })
    }

    /// Returns the name of the zone, which is known to other systems, too; `None` for an offset, and for a system clock
    /// without a known name.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn offset_at(&self, utc: NaiveDateTime) -> FixedOffset {
        match &self.rules {
            ZoneRules::System => Local.offset_from_utc_datetime(&utc).fix(),
            ZoneRules::Fixed(offset) => *offset,
            ZoneRules::Named(zone) => zone
                .find_local_time_type(utc.and_utc().timestamp())
                .ok()
                .and_then(|kind| FixedOffset::east_opt(kind.ut_offset()))
                .unwrap_or_else(|| Utc.fix()),
        }
    }

    /// Returns the points in time at which clocks in the zone show this time: one, none, or two, in order.
    fn instants(&self, local: NaiveDateTime) -> Vec<DateTime<FixedOffset>> {
        let day = Duration::days(1);
        let mut found: Vec<DateTime<FixedOffset>> = [local.checked_sub_signed(day), local.checked_add_signed(day)]
            .into_iter()
            .flatten()
            .map(|around| self.offset_at(around))
            .filter_map(|offset| Some((offset, local.checked_sub_offset(offset)?)))
            .filter(|(offset, utc)| self.offset_at(*utc) == *offset)
            .map(|(offset, utc)| offset.from_utc_datetime(&utc))
            .collect();
        found.sort();
        found.dedup();
        found
    }

    /// Returns the first moment of a day.
    pub fn start_of(&self, day: NaiveDate) -> DateTime<FixedOffset> {
        let midnight = day.and_time(NaiveTime::MIN);
        let steps = (0..24 * 60 / STEP_MINUTES).map(|step| midnight + Duration::minutes(STEP_MINUTES * step));
        let first = steps.flat_map(|time| self.instants(time)).next();
        first.unwrap_or_else(|| midnight.and_utc().fixed_offset())
    }

    /// Returns the first moment after a day.
    pub fn end_of(&self, day: NaiveDate) -> DateTime<FixedOffset> {
        self.start_of(day.checked_add_days(Days::new(1)).unwrap_or(day))
    }

    /// Returns the current day in the zone.
    pub fn day_of(&self, now: DateTime<Utc>) -> NaiveDate {
        now.with_timezone(&self.offset_at(now.naive_utc())).date_naive()
    }
}

impl DateOrDateTime {
    /// Parses a day, a time with an offset, or a time on the clocks of the zone.
    ///
    /// # Errors
    /// [`InvalidTime`].
    pub fn parse(text: &str, zone: &Zone) -> Result<Self, InvalidTime> {
        let unreadable = || InvalidTime::Unreadable(text.chars().take(MAX_BYTES).collect());
        let trimmed = text.trim();
        // The year must have four digits; the formats would accept more.
        if trimmed.len() > MAX_BYTES
            || !trimmed.as_bytes().get(..4).is_some_and(|year| year.iter().all(u8::is_ascii_digit))
        {
            return Err(unreadable());
        }
        if trimmed.len() == "2026-01-05".len() {
            return NaiveDate::parse_from_str(trimmed, "%Y-%m-%d").map(Self::Day).map_err(|_| unreadable());
        }
        let time = trimmed.replacen(' ', "T", 1);
        let exact = match time.strip_suffix(['Z', 'z']) {
            Some(utc) => format!("{utc}+00:00"),
            None => time.clone(),
        };
        let exact = ["%Y-%m-%dT%H:%M:%S%.f%:z", "%Y-%m-%dT%H:%M%:z"]
            .iter()
            .find_map(|format| DateTime::parse_from_str(&exact, format).ok());
        if let Some(exact) = exact {
            return Ok(Self::Instant(exact));
        }
        let local = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"]
            .iter()
            .find_map(|format| NaiveDateTime::parse_from_str(&time, format).ok());
        match zone.instants(local.ok_or_else(unreadable)?).as_slice() {
            [one] => Ok(Self::Instant(*one)),
            [first, second, ..] => {
                Err(InvalidTime::Twice { text: time, first: rfc3339(first), second: rfc3339(second) })
            }
            [] => Err(InvalidTime::Skipped(time)),
        }
    }

    /// Returns the first moment of a day in the zone; a point in time is returned unchanged.
    pub fn start(self, zone: &Zone) -> DateTime<FixedOffset> {
        match self {
            Self::Day(day) => zone.start_of(day),
            Self::Instant(time) => time,
        }
    }

    /// Returns the first moment after a day in the zone; a point in time is returned unchanged.
    pub fn end(self, zone: &Zone) -> DateTime<FixedOffset> {
        match self {
            Self::Day(day) => zone.end_of(day),
            Self::Instant(time) => time,
        }
    }
}

/// Formats a time as in RFC 3339, with its offset. Historic offsets with seconds cannot be represented; such a time is
/// formatted in UTC.
pub fn rfc3339(time: &DateTime<FixedOffset>) -> String {
    let is_whole = time.offset().local_minus_utc() % 60 == 0;
    let time = if is_whole { *time } else { time.to_utc().fixed_offset() };
    time.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn zone(name: &str) -> Zone {
        Zone::parse(name, "2026-01-05T12:00:00Z".parse().unwrap()).unwrap()
    }

    #[track_caller]
    fn check(text: &str, zone_name: &str, expected: Result<&str, &str>) {
        let read = DateOrDateTime::parse(text, &zone(zone_name));
        match (&read, expected) {
            (Ok(DateOrDateTime::Day(day)), Ok(expected)) => assert_eq!(day.to_string(), expected, "{text}"),
            (Ok(DateOrDateTime::Instant(time)), Ok(expected)) => assert_eq!(rfc3339(time), expected, "{text}"),
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{text}: {error}"),
            _ => panic!("{text} in {zone_name}: {read:?}, not {expected:?}"),
        }
    }

    #[test]
    fn times_without_an_offset_are_those_of_the_zone() {
        check("2026-01-05", "Europe/Berlin", Ok("2026-01-05"));
        check("2026-01-05T14:00", "Europe/Berlin", Ok("2026-01-05T14:00:00+01:00"));
        check("2026-07-05 14:00:30", "Europe/Berlin", Ok("2026-07-05T14:00:30+02:00"));
        check("2026-01-05T14:00", "America/New_York", Ok("2026-01-05T14:00:00-05:00"));
        check("2026-01-05T14:00", "Asia/Kolkata", Ok("2026-01-05T14:00:00+05:30"));
        check("2026-01-05T14:00", "+02:00", Ok("2026-01-05T14:00:00+02:00"));
        check("2026-01-05T14:00:00Z", "Europe/Berlin", Ok("2026-01-05T14:00:00Z"));
        check("2026-01-05T14:00-08:00", "Europe/Berlin", Ok("2026-01-05T14:00:00-08:00"));
        check("2026-01-05T14:00:00.250+01:00", "UTC", Ok("2026-01-05T14:00:00.250+01:00"));
    }

    #[test]
    fn rejects_skipped_ambiguous_and_invalid_times() {
        check("2026-03-29T02:30", "Europe/Berlin", Err("the clocks skip it"));
        check(
            "2026-10-25T02:30",
            "Europe/Berlin",
            Err("\"2026-10-25T02:30:00+02:00\" or \"2026-10-25T02:30:00+01:00\""),
        );
        check("2026-10-25T02:30+01:00", "Europe/Berlin", Ok("2026-10-25T02:30:00+01:00"));
        for text in [
            "",
            "tomorrow",
            "2026-13-01",
            "2026-02-30",
            "2026-1-5",
            "2026-01-05T25:00",
            "12026-01-05",
            "2026-01-05T14:00 Europe/Berlin",
        ] {
            check(text, "UTC", Err("is not a time"));
        }
        let unknown = Zone::parse("Atlantis/Capital", Utc::now()).unwrap_err();
        assert!(unknown.to_string().contains("not a time zone known on this machine"), "{unknown}");
    }

    #[test]
    fn a_day_starts_at_its_first_instant_and_has_23_to_25_hours() {
        for (name, day, start, hours) in [
            ("Europe/Berlin", "2026-01-05", "2026-01-05T00:00:00+01:00", 24),
            ("Europe/Berlin", "2026-03-29", "2026-03-29T00:00:00+01:00", 23),
            ("Europe/Berlin", "2026-10-25", "2026-10-25T00:00:00+02:00", 25),
            // Its clocks are set forward at midnight.
            ("Asia/Beirut", "2026-03-29", "2026-03-29T01:00:00+03:00", 23),
        ] {
            let (zone, day) = (zone(name), day.parse().unwrap());
            assert_eq!(rfc3339(&zone.start_of(day)), start);
            assert_eq!((zone.end_of(day) - zone.start_of(day)).num_hours(), hours, "{name} {day}");
        }
        // In the evening of one place it is the next day at another.
        let now = "2026-01-05T23:30:00Z".parse().unwrap();
        assert_eq!(zone("Europe/Berlin").day_of(now).to_string(), "2026-01-06");
        assert_eq!(zone("America/New_York").day_of(now).to_string(), "2026-01-05");
    }

    proptest! {
        #[test]
        fn a_parsed_time_survives_formatting_and_parsing(text in "[0-9]{4}-[01][0-9]-[0-3][0-9]([T ][0-2][0-9]:[0-5][0-9](:[0-5][0-9])?(Z|[+-]0[0-9]:00)?)?") {
            let zone = zone("Europe/Berlin");
            if let Ok(DateOrDateTime::Instant(time)) = DateOrDateTime::parse(&text, &zone) {
                prop_assert_eq!(DateOrDateTime::parse(&rfc3339(&time), &zone), Ok(DateOrDateTime::Instant(time)));
            }
        }

        #[test]
        fn parsing_a_time_never_panics(text in ".{0,60}") {
            let _ = DateOrDateTime::parse(&text, &zone("UTC"));
        }
    }
}
