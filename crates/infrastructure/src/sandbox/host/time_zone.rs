//! Time zones by name, from the system's time zone database (TZif files, RFC 9636).

use crate::sandbox::host::system_bytes;
use chrono::{DateTime, Datelike, NaiveDate};

const FOLDER: &str = "/usr/share/zoneinfo";
const DAY: i64 = 86_400;

/// A time zone, with what was and what will be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeZone {
    /// When the clock changed, in Unix seconds ascending, and to which kind of time.
    changes: Vec<(i64, Kind)>,
    /// The time before the first change.
    first: Kind,
    /// How it goes on after the last change.
    rule: Option<Rule>,
}

/// A kind of local time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// Seconds east of UTC.
    pub offset_seconds: i32,
    /// Its short name: `CET`.
    pub name: String,
}

/// Summer time that comes every year (RFC 9636, section 3.3; POSIX, `TZ`).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    standard: Kind,
    summer: Option<(Kind, Change, Change)>,
}

/// When the clock changes in a year: the day, and seconds of local time from its midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Change {
    day: Day,
    seconds: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Day {
    /// The n-th such weekday (0 is Sunday) of a month, 5 being the last.
    Weekday { month: u32, week: u32, weekday: u32 },
    /// The day of the year from 1; 29 February is never counted.
    Julian(u32),
    /// The day of the year from 0.
    Ordinal(u32),
}

impl TimeZone {
    /// The zone of that name, as in `Europe/Berlin`; `None` if the system knows none. Blocks for moments.
    pub fn named(name: &str) -> Option<Self> {
        let is_part = |part: &str| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+'))
        };
        if name.len() > 64 || !name.split('/').all(is_part) {
            return None;
        }
        Self::parse(&system_bytes(&format!("{FOLDER}/{name}"))?)
    }

    /// The kind of local time at a moment.
    pub fn at(&self, unix_seconds: i64) -> &Kind {
        let passed = self.changes.partition_point(|(when, _)| *when <= unix_seconds);
        match (&self.rule, passed.checked_sub(1)) {
            (Some(rule), _) if passed == self.changes.len() => rule.at(unix_seconds),
            (_, Some(last)) => &self.changes[last].1,
            (_, None) => &self.first,
        }
    }

    /// Reads a TZif file. Whatever does not fit makes it no zone.
    fn parse(file: &[u8]) -> Option<Self> {
        let (first, rest) = Header::parse(file)?;
        if first.version < b'2' {
            return Self::parse_block(&first, rest, 4, None);
        }
        let (second, rest) = Header::parse(rest.get(first.block_bytes(4)..)?)?;
        let footer = rest.get(second.block_bytes(8)..)?.strip_prefix(b"\n")?;
        let footer = footer.split(|byte| *byte == b'\n').next()?;
        let rule = std::str::from_utf8(footer).ok().and_then(Rule::parse);
        Self::parse_block(&second, rest, 8, rule)
    }

    fn parse_block(header: &Header, block: &[u8], width: usize, rule: Option<Rule>) -> Option<Self> {
        let mut rest = block;
        let mut take = |bytes: usize| {
            let (taken, tail) = rest.split_at_checked(bytes)?;
            rest = tail;
            Some(taken)
        };
        let times = take(header.times * width)?;
        let indices = take(header.times)?;
        let kinds = take(header.kinds * 6)?;
        let names = take(header.name_bytes)?;
        let kind = |index: usize| {
            let entry = kinds.chunks_exact(6).nth(index)?;
            let name = names.get(usize::from(entry[5])..)?.split(|byte| *byte == 0).next()?;
            Some(Kind {
                offset_seconds: i32::from_be_bytes(entry[..4].try_into().ok()?),
                name: String::from_utf8_lossy(name).into_owned(),
            })
        };
        let times = times.chunks_exact(width).map(|bytes| match *bytes {
            [a, b, c, d] => i64::from(i32::from_be_bytes([a, b, c, d])),
            _ => bytes.try_into().map_or(0, i64::from_be_bytes),
        });
        let changes = times.zip(indices).map(|(time, index)| Some((time, kind(usize::from(*index))?)));
        Some(Self { changes: changes.collect::<Option<_>>()?, first: kind(0)?, rule })
    }
}

struct Header {
    version: u8,
    times: usize,
    kinds: usize,
    name_bytes: usize,
    leap_seconds: usize,
    standard_flags: usize,
    utc_flags: usize,
}

impl Header {
    const BYTES: usize = 44;

    fn parse(file: &[u8]) -> Option<(Self, &[u8])> {
        let (header, rest) = file.strip_prefix(b"TZif")?.split_at_checked(Self::BYTES - 4)?;
        let count = |place: usize| {
            let bytes = header.get(16 + place * 4..20 + place * 4)?.try_into().ok()?;
            // No zone has nearly as many of anything; the file was bounded when it was read.
            Some(u32::from_be_bytes(bytes) as usize).filter(|count| *count < 1 << 16)
        };
        let header = Self {
            version: header[0],
            utc_flags: count(0)?,
            standard_flags: count(1)?,
            leap_seconds: count(2)?,
            times: count(3)?,
            kinds: count(4)?,
            name_bytes: count(5)?,
        };
        Some((header, rest))
    }

    fn block_bytes(&self, width: usize) -> usize {
        self.times * (width + 1)
            + self.kinds * 6
            + self.name_bytes
            + self.leap_seconds * (width + 4)
            + self.standard_flags
            + self.utc_flags
    }
}

impl Rule {
    /// Reads a text like `CET-1CEST,M3.5.0,M10.5.0/3`.
    fn parse(text: &str) -> Option<Self> {
        let (name, rest) = zone_name(text)?;
        let (west, rest) = clock_time(rest)?;
        let standard = Kind { offset_seconds: i32::try_from(-west).ok()?, name };
        if rest.is_empty() {
            return Some(Self { standard, summer: None });
        }
        let (name, rest) = zone_name(rest)?;
        let (west, rest) = if rest.starts_with(',') { (west - 3600, rest) } else { clock_time(rest)? };
        let summer = Kind { offset_seconds: i32::try_from(-west).ok()?, name };
        let (start, end) = rest.strip_prefix(',')?.split_once(',')?;
        Some(Self { standard, summer: Some((summer, Change::parse(start)?, Change::parse(end)?)) })
    }

    fn at(&self, unix_seconds: i64) -> &Kind {
        let Some((summer, start, end)) = &self.summer else { return &self.standard };
        let standard_offset = i64::from(self.standard.offset_seconds);
        let Some(local) = DateTime::from_timestamp(unix_seconds.saturating_add(standard_offset), 0) else {
            return &self.standard;
        };
        let moment = |change: &Change, offset: i64| Some(change.local_seconds(local.year())? - offset);
        let start = moment(start, standard_offset);
        let end = moment(end, i64::from(summer.offset_seconds));
        let (Some(start), Some(end)) = (start, end) else { return &self.standard };
        let is_summer = match start < end {
            true => (start..end).contains(&unix_seconds),
            false => !(end..start).contains(&unix_seconds),
        };
        if is_summer { summer } else { &self.standard }
    }
}

impl Change {
    fn parse(text: &str) -> Option<Self> {
        let (day, time) = text.split_once('/').unwrap_or((text, "2"));
        let (seconds, rest) = clock_time(time)?;
        let day = if let Some(rule) = day.strip_prefix('M') {
            let mut numbers = rule.split('.').map(|number| number.parse::<u32>().ok());
            Day::Weekday { month: numbers.next()??, week: numbers.next()??, weekday: numbers.next()?? }
        } else if let Some(number) = day.strip_prefix('J') {
            Day::Julian(number.parse().ok()?)
        } else {
            Day::Ordinal(day.parse().ok()?)
        };
        rest.is_empty().then_some(Self { day, seconds })
    }

    /// Seconds from 1970 to the change in local time, as if that were UTC.
    fn local_seconds(&self, year: i32) -> Option<i64> {
        let date = match self.day {
            Day::Weekday { month, week, weekday } => {
                let first = NaiveDate::from_ymd_opt(year, month, 1)?;
                let until = (7 + weekday % 7 - first.weekday().num_days_from_sunday()) % 7;
                let of_month = 1 + until + 7 * week.checked_sub(1)?;
                // The fifth may be the fourth: then it is the last.
                NaiveDate::from_ymd_opt(year, month, of_month)
                    .or_else(|| NaiveDate::from_ymd_opt(year, month, of_month.checked_sub(7)?))?
            }
            Day::Julian(day) => {
                let leaps = NaiveDate::from_ymd_opt(year, 2, 29).is_some();
                NaiveDate::from_yo_opt(year, day + u32::from(leaps && day >= 60))?
            }
            Day::Ordinal(day) => NaiveDate::from_yo_opt(year, day.checked_add(1)?)?,
        };
        let days = date.signed_duration_since(NaiveDate::from_ymd_opt(1970, 1, 1)?).num_days();
        Some(days * DAY + self.seconds)
    }
}

/// `CET` or `<+03>`, and what follows.
fn zone_name(text: &str) -> Option<(String, &str)> {
    if let Some(rest) = text.strip_prefix('<') {
        let (name, rest) = rest.split_once('>')?;
        return Some((name.into(), rest));
    }
    let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    (end >= 3).then(|| (text[..end].into(), &text[end..]))
}

/// `-1`, `5:30` or `26:00:00` in seconds, and what follows.
fn clock_time(text: &str) -> Option<(i64, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, ':' | '+' | '-'))).unwrap_or(text.len());
    let (time, rest) = text.split_at(end);
    let (sign, time) = match time.strip_prefix('-') {
        Some(time) => (-1, time),
        None => (1, time.strip_prefix('+').unwrap_or(time)),
    };
    let mut parts = time.split(':').map(|part| part.parse::<i64>().ok().filter(|part| (0..=167).contains(part)));
    let hours = parts.next()??;
    let (minutes, seconds) = (parts.next().unwrap_or(Some(0))?, parts.next().unwrap_or(Some(0))?);
    Some((sign * (hours * 3600 + minutes * 60 + seconds), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rule: &str, time: &str, expected: (i32, &str)) {
        let rule = Rule::parse(rule).unwrap();
        let kind = rule.at(DateTime::parse_from_rfc3339(time).unwrap().timestamp());
        assert_eq!((kind.offset_seconds, kind.name.as_str()), expected, "{time}");
    }

    #[test]
    fn summer_time_begins_and_ends_to_the_second() {
        let berlin = "CET-1CEST,M3.5.0,M10.5.0/3";
        check(berlin, "2026-03-29T00:59:59Z", (3600, "CET"));
        check(berlin, "2026-03-29T01:00:00Z", (7200, "CEST"));
        check(berlin, "2026-10-25T00:59:59Z", (7200, "CEST"));
        check(berlin, "2026-10-25T01:00:00Z", (3600, "CET"));
        let sydney = "AEST-10AEDT,M10.1.0,M4.1.0/3";
        check(sydney, "2026-01-15T00:00:00Z", (39600, "AEDT"));
        check(sydney, "2026-07-15T00:00:00Z", (36000, "AEST"));
        check("<+0530>-5:30", "2026-07-15T00:00:00Z", (19800, "+0530"));
        check("EST5EDT,M3.2.0,M11.1.0", "2026-07-15T00:00:00Z", (-14400, "EDT"));
        check("XXX3YYY2,J60,J300/0", "2028-02-29T12:00:00Z", (-10800, "XXX"));
    }

    #[test]
    fn a_zone_of_the_system_knows_past_and_future() {
        // Systems without the database know no zone by name; the tool says so.
        let Some(berlin) = TimeZone::named("Europe/Berlin") else { return };
        let at = |time: &str| {
            let kind = berlin.at(DateTime::parse_from_rfc3339(time).unwrap().timestamp());
            (kind.offset_seconds, kind.name.clone())
        };
        assert_eq!(at("1985-07-01T00:00:00Z"), (7200, "CEST".into()));
        assert_eq!(at("1950-01-01T00:00:00Z"), (3600, "CET".into()));
        assert_eq!(at("2037-12-01T00:00:00Z"), (3600, "CET".into()));
        assert_eq!(at("2090-07-01T00:00:00Z"), (7200, "CEST".into()));
    }

    #[test]
    fn names_that_are_no_zones_are_none() {
        for name in ["", "/etc/passwd", "../../../etc/passwd", "Europe/../UTC", "Nowhere/At_All", "a\0b"] {
            assert_eq!(TimeZone::named(name), None, "{name:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_file_makes_the_reader_fail(file: Vec<u8>, counts: [u8; 24]) {
            let _ = TimeZone::parse(&file);
            let mut crafted = b"TZif2".to_vec();
            crafted.extend([0; 15]);
            crafted.extend(counts);
            crafted.extend(&file);
            let _ = TimeZone::parse(&crafted);
        }

        #[test]
        fn no_rule_makes_the_reader_fail(text: String, time: i64) {
            for text in [text.clone(), format!("AAA0BBB,M{text}"), format!("AAA{text}")] {
                if let Some(rule) = Rule::parse(&text) {
                    rule.at(time);
                }
            }
        }
    }
}
