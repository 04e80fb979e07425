//! Number formats of a workbook: which numbers are dates, and their text.

use crate::documents::{document_error::DocumentError, xml::XmlReader};
use chrono::{Duration, NaiveDate};
use std::collections::HashMap;

/// Epoch from which a workbook counts days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DateSystem {
    From1900,
    From1904,
}

/// Styles of cells, each as the meaning that its format gives to a number.
#[derive(Debug, Default)]
pub(super) struct CellFormats {
    styles: Vec<FormatKind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormatKind {
    Number,
    Date,
    Time,
    DateAndTime,
    /// Duration, which may be longer than a day.
    Elapsed,
}

impl CellFormats {
    pub(super) fn read(xml: &mut XmlReader<'_>) -> Result<Self, DocumentError> {
        let mut own = HashMap::new();
        let mut styles = Vec::new();
        while let Some(element) = xml.next_open()? {
            match element.name() {
                "numFmt" => {
                    let code = element.get("formatCode").map_or(FormatKind::Number, meaning_of);
                    own.insert(element.number::<u32>("numFmtId").unwrap_or(0), code);
                }
                "cellXfs" => {
                    while let Some(element) = xml.next_child()? {
                        let id = element.number::<u32>("numFmtId").unwrap_or(0);
                        styles.push(own.get(&id).copied().unwrap_or_else(|| built_in(id)));
                        xml.skip()?;
                    }
                }
                _ => {}
            }
        }
        Ok(Self { styles })
    }

    /// Formats a number by the cell style with the index `style`: as written, or as a date or time in ISO 8601. Returns
    /// `raw` for a text that is not a number and for an impossible date.
    pub(super) fn number(&self, style: usize, raw: &str, dates: DateSystem) -> String {
        let meaning = self.styles.get(style).copied().unwrap_or(FormatKind::Number);
        let Ok(number) = raw.parse::<f64>() else { return raw.to_owned() };
        match meaning {
            // Programs write the binary value; `0.1` is shown as in the sheet.
            FormatKind::Number if raw.len() > 15 && raw.contains('.') => number.to_string(),
            FormatKind::Number => raw.to_owned(),
            meaning => date(number, meaning, dates).unwrap_or_else(|| raw.to_owned()),
        }
    }
}

fn date(serial: f64, meaning: FormatKind, dates: DateSystem) -> Option<String> {
    // The year 10000 is beyond what Excel shows.
    if !(0.0..2_958_466.0).contains(&serial) {
        return None;
    }
    let epoch = match dates {
        // Excel treats 1900 as a leap year, so days before March count from a day later.
        DateSystem::From1900 if serial < 60.0 => NaiveDate::from_ymd_opt(1899, 12, 31),
        DateSystem::From1900 => NaiveDate::from_ymd_opt(1899, 12, 30),
        DateSystem::From1904 => NaiveDate::from_ymd_opt(1904, 1, 1),
    }?;
    let seconds = (serial * 86_400.0).round() as i64;
    let moment = epoch.and_hms_opt(0, 0, 0)?.checked_add_signed(Duration::seconds(seconds))?;
    Some(match meaning {
        FormatKind::Elapsed => {
            format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
        }
        FormatKind::Time if serial < 1.0 => moment.format("%H:%M:%S").to_string(),
        FormatKind::Date if seconds % 86_400 == 0 => moment.format("%Y-%m-%d").to_string(),
        // A format for the time alone hides the date of the value.
        FormatKind::Date | FormatKind::Time | FormatKind::DateAndTime | FormatKind::Number => {
            moment.format("%Y-%m-%dT%H:%M:%S").to_string()
        }
    })
}

/// Returns the meaning of formats that have a number and no code (ECMA-376 part 1, 18.8.30, with those of East Asia).
fn built_in(id: u32) -> FormatKind {
    match id {
        14..=17 | 27..=31 | 34..=36 | 50..=54 | 57..=58 => FormatKind::Date,
        18..=21 | 32..=33 | 45 | 47 | 55..=56 => FormatKind::Time,
        46 => FormatKind::Elapsed,
        22 => FormatKind::DateAndTime,
        _ => FormatKind::Number,
    }
}

/// Returns the meaning that a format code gives to a number, by its letters that are not quoted, escaped or bracketed.
fn meaning_of(code: &str) -> FormatKind {
    let (mut has_day, mut has_hour, mut is_elapsed) = (false, false, false);
    // The formats for negative numbers and for text follow after semicolons.
    let mut chars = code.split(';').next().unwrap_or_default().chars();
    while let Some(char) = chars.next() {
        match char.to_ascii_lowercase() {
            '"' => drop(chars.by_ref().find(|char| *char == '"')),
            '\\' | '_' | '*' => drop(chars.next()),
            // Elapsed hours, minutes or seconds; anything else in brackets is a colour or a condition.
            '[' => {
                let inside: String = chars.by_ref().take_while(|char| *char != ']').collect();
                is_elapsed |= matches!(inside.to_ascii_lowercase().as_str(), "h" | "hh" | "m" | "mm" | "s" | "ss");
            }
            'y' | 'd' => has_day = true,
            'h' | 's' => has_hour = true,
            'g' if code.eq_ignore_ascii_case("general") => return FormatKind::Number,
            // After hours these are minutes.
            'm' if !has_hour && !is_elapsed && !code.to_ascii_lowercase().contains(['h', 's']) => has_day = true,
            _ => {}
        }
    }
    match (has_day, has_hour) {
        (false, _) if is_elapsed => FormatKind::Elapsed,
        (true, _) if is_elapsed => FormatKind::DateAndTime,
        (true, true) => FormatKind::DateAndTime,
        (true, false) => FormatKind::Date,
        (false, true) => FormatKind::Time,
        (false, false) => FormatKind::Number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: &str, raw: &str, dates: DateSystem, expected: &str) {
        let formats = CellFormats { styles: vec![meaning_of(code)] };
        assert_eq!(formats.number(0, raw, dates), expected, "{code}");
    }

    #[test]
    fn cell_numbers_with_a_date_or_time_format_are_shown_as_dates_or_times() {
        use DateSystem::{From1900, From1904};
        check("yyyy-mm-dd", "46082", From1900, "2026-03-01");
        check("yyyy-mm-dd", "1", From1900, "1900-01-01");
        check("yyyy-mm-dd", "0", From1904, "1904-01-01");
        check("dd.mm.yyyy hh:mm", "46083.604166666664", From1900, "2026-03-02T14:30:00");
        check("[$-407]d. mmmm yyyy;@", "46082", From1900, "2026-03-01");
        check("hh:mm:ss", "0.26041666666666669", From1900, "06:15:00");
        check("[h]:mm", "1.5", From1900, "36:00:00");
        check("[mm]:ss", "1.5", From1900, "36:00:00");
        assert_eq!([45, 46].map(built_in), [FormatKind::Time, FormatKind::Elapsed]);
        check("h:mm", "46083.604166666664", From1900, "2026-03-02T14:30:00");
        check("General", "0.10000000000000001", From1900, "0.1");
        check("#,##0.00 \"days\"", "12.5", From1900, "12.5");
        check("[Red]0", "12", From1900, "12");
        check("0\\d", "12", From1900, "12");
        check("yyyy", "-5", From1900, "-5");
        check("yyyy", "1e300", From1900, "1e300");
        check("yyyy", "many", From1900, "many");
    }
}
