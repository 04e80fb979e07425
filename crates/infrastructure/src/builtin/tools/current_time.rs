//! The tool `current_time`.

use crate::{
    builtin::tool_kit::{
        answer::answer, blocking::on_blocking_thread, built_in_tool::BuiltInTool, schema::output_schema,
        tool_context::ToolContext,
    },
    host::time_zone,
};
use chrono::{
    DateTime, FixedOffset, Local, Offset, SecondsFormat, TimeZone as _, Utc,
    format::{Item, StrftimeItems},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Write;
use toolstead_domain::{Category, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind};
use tz::TimeZone;

/// Tool that returns the current time.
pub(crate) struct CurrentTime;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The time zone: a name like "Europe/Berlin", "UTC", an offset like "+02:00", or "local", the default.
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-advertised" = "Like \"Europe/Berlin\"."))]
    zone: Option<String>,
    /// The style: "rfc3339", "unix" seconds, or "text" for people.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    style: Style,
    /// A strftime format that is used instead of the style, like "%Y-%m-%d %H:%M".
    #[schemars(length(min = 1, max = 200))]
    #[schemars(extend("x-advertised" = false))]
    format: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Style {
    #[default]
    Rfc3339,
    Unix,
    Text,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    rfc3339: String,
    /// Seconds since 1970-01-01T00:00:00Z.
    unix: i64,
    /// For people.
    text: String,
    /// The zone's name, or its offset.
    zone: String,
    /// In the requested format.
    #[serde(skip_serializing_if = "Option::is_none")]
    formatted: Option<String>,
}

impl BuiltInTool for CurrentTime {
    const NAME: &str = "current_time";
    const TITLE: &str = "Current time";
    const DESCRIPTION: &str = "Returns the current date and time, in any time zone. Use it instead of guessing what \
         day it is.";
    const BRIEF: &str = "Returns the date and time.";
    const CATEGORY: Category = Category::System;
    const TAGS: &[&str] = &["time"];
    const KEYWORDS: &str = "clock day hour timestamp timezone today weekday";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"zone": "Europe/Berlin", "style": "text"}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let now = DateTime::<Utc>::from_timestamp_micros(run.environment().now().0).unwrap_or_default();
        let zone = input.zone.unwrap_or_else(|| "local".into());
        let (now, zone) = on_blocking_thread(move || in_zone(now, &zone)).await?;
        let formatted = input.format.as_deref().map(|format| formatted(now, format)).transpose()?;
        let output = Output {
            rfc3339: now.to_rfc3339_opts(SecondsFormat::Secs, true),
            unix: now.timestamp(),
            text: format!("{} {zone}", now.format("%A, %-d %B %Y, %H:%M:%S")),
            zone,
            formatted,
        };
        let text = match (&output.formatted, input.style) {
            (Some(formatted), _) => formatted.clone(),
            (None, Style::Rfc3339) => output.rfc3339.clone(),
            (None, Style::Unix) => output.unix.to_string(),
            (None, Style::Text) => output.text.clone(),
        };
        answer(text, &output)
    }
}

/// Returns the time in a zone, and the zone's abbreviation for that time (`CET`), or its offset for `local` and for an
/// offset.
fn in_zone(now: DateTime<Utc>, zone: &str) -> Result<(DateTime<FixedOffset>, String), ToolFailure> {
    let unknown = || {
        ToolFailure::new(ErrorKind::InvalidInput, format!("`{zone}` is not a time zone that this machine knows"))
            .next("Give a name like \"Europe/Berlin\", an offset like \"+02:00\", \"UTC\" or \"local\".")
    };
    if zone.eq_ignore_ascii_case("local") {
        let offset = Local.offset_from_utc_datetime(&now.naive_utc()).fix();
        return Ok((now.with_timezone(&offset), offset.to_string()));
    }
    if zone.eq_ignore_ascii_case("utc") || zone == "Z" {
        return Ok((now.fixed_offset(), "UTC".into()));
    }
    if zone.starts_with(['+', '-']) {
        let offset: FixedOffset = zone.parse().map_err(|_| unknown())?;
        return Ok((now.with_timezone(&offset), offset.to_string()));
    }
    let named = time_zone(zone).and_then(|file| TimeZone::from_tz_data(&file).ok()).ok_or_else(unknown)?;
    let kind = named.find_local_time_type(now.timestamp()).map_err(|_| unknown())?;
    let offset = FixedOffset::east_opt(kind.ut_offset()).ok_or_else(unknown)?;
    Ok((now.with_timezone(&offset), kind.time_zone_designation().to_owned()))
}

fn formatted(now: DateTime<FixedOffset>, format: &str) -> Result<String, ToolFailure> {
    let wrong = || {
        ToolFailure::new(ErrorKind::InvalidInput, format!("`{format}` is not a valid strftime format"))
            .next("Use conversions like %Y, %m, %d, %H, %M, %S, and %% for a percent sign.")
    };
    let items: Vec<Item<'_>> = StrftimeItems::new(format).collect();
    if items.contains(&Item::Error) {
        return Err(wrong());
    }
    let mut text = String::new();
    write!(text, "{}", now.format_with_items(items.iter())).map_err(|_| wrong())?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::tests::Bench;
    use serde_json::json;

    #[track_caller]
    fn check(arguments: Value, expected: &str) {
        assert_eq!(Bench::new().text("current_time", arguments), expected);
    }

    #[test]
    fn the_time_is_returned_in_the_requested_zone_and_style() {
        check(json!({"zone": "UTC"}), "2026-03-01T12:00:00Z");
        check(json!({"zone": "+05:30"}), "2026-03-01T17:30:00+05:30");
        check(json!({"zone": "-08:00", "style": "unix"}), "1772366400");
        check(json!({"zone": "utc", "style": "text"}), "Sunday, 1 March 2026, 12:00:00 UTC");
        check(json!({"zone": "UTC", "format": "%Y/%m/%d 100%%"}), "2026/03/01 100%");
    }

    #[test]
    fn the_default_result_includes_the_unix_time() {
        let result = Bench::new().call("current_time", json!({})).unwrap();
        assert_eq!(result.structured_content().unwrap()["unix"], 1_772_366_400);
    }

    #[test]
    fn a_system_time_zone_has_correct_offsets_for_past_and_future_dates() {
        // On systems without the database, no zone has a name, and the tool reports that.
        if time_zone("Europe/Berlin").is_none() {
            return;
        }
        let check = |zone: &str, time: &str, expected: &str, name: &str| {
            let (there, called) = in_zone(time.parse().unwrap(), zone).unwrap();
            assert_eq!((there.to_rfc3339().as_str(), called.as_str()), (expected, name));
        };
        check("Europe/Berlin", "1950-01-01T00:00:00Z", "1950-01-01T01:00:00+01:00", "CET");
        check("Europe/Berlin", "1985-07-01T00:00:00Z", "1985-07-01T02:00:00+02:00", "CEST");
        check("Europe/Berlin", "2026-03-29T00:59:59Z", "2026-03-29T01:59:59+01:00", "CET");
        check("Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-29T03:00:00+02:00", "CEST");
        check("Europe/Berlin", "2037-12-01T00:00:00Z", "2037-12-01T01:00:00+01:00", "CET");
        check("Europe/Berlin", "2090-07-01T00:00:00Z", "2090-07-01T02:00:00+02:00", "CEST");
        check("Australia/Sydney", "2090-01-15T00:00:00Z", "2090-01-15T11:00:00+11:00", "AEDT");
        check("Asia/Kolkata", "2026-07-15T00:00:00Z", "2026-07-15T05:30:00+05:30", "IST");
        check("America/New_York", "2026-07-15T00:00:00Z", "2026-07-14T20:00:00-04:00", "EDT");
    }

    #[test]
    fn rejects_an_unknown_time_zone_or_an_invalid_format() {
        let bench = Bench::new();
        for (arguments, expected) in [
            (json!({"zone": "Atlantis/Capital"}), "is not a time zone that this machine knows"),
            (json!({"zone": "+99:99"}), "is not a time zone that this machine knows"),
            (json!({"format": "%Q %"}), "is not a valid strftime format"),
        ] {
            let answer = bench.call("current_time", arguments).unwrap_err().text();
            assert!(answer.contains(expected), "{answer}");
        }
    }
}
