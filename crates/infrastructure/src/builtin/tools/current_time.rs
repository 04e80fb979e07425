//! The tool `current_time`.

use crate::{
    builtin::{
        answer::answer, blocking::on_blocking_thread, built_in_tool::BuiltInTool, run::Run, schema::output_schema,
    },
    sandbox::host::time_zone::TimeZone,
};
use async_trait::async_trait;
use chrono::{
    DateTime, FixedOffset, Local, Offset, SecondsFormat, TimeZone as _, Utc,
    format::{Item, StrftimeItems},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Write;
use toolstead_domain::{
    category::Category, error_kind::ErrorKind, tool::ToolAnnotations, tool_failure::ToolFailure,
    tool_result::ToolResult,
};

/// Tells the time.
pub(crate) struct CurrentTime;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The time zone: a name like "Europe/Berlin", "UTC", an offset like "+02:00", or "local", the default.
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-advertised" = "Like \"Europe/Berlin\"."))]
    zone: Option<String>,
    /// How to write it: "rfc3339", "unix" seconds, or "text" for people.
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
    /// In the format that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    formatted: Option<String>,
}

#[async_trait]
impl BuiltInTool for CurrentTime {
    const NAME: &str = "current_time";
    const TITLE: &str = "Current time";
    const DESCRIPTION: &str = "Tells the current date and time, in any time zone. Use it instead of guessing what day \
                               it is.";
    const BRIEF: &str = "Tells the date and time.";
    const CATEGORY: Category = Category::System;
    const TAGS: &[&str] = &["time"];
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"zone": "Europe/Berlin", "style": "text"}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    async fn run(&self, input: Input, run: &Run<'_>) -> Result<ToolResult, ToolFailure> {
        let now = DateTime::<Utc>::from_timestamp_micros(run.world().now().0).unwrap_or_default();
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

/// The time in a zone, and the zone's own name for that time.
fn in_zone(now: DateTime<Utc>, zone: &str) -> Result<(DateTime<FixedOffset>, String), ToolFailure> {
    let unknown = || {
        ToolFailure::new(ErrorKind::InvalidInput, format!("`{zone}` is no time zone that this machine knows"))
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
    let kind = TimeZone::named(zone).ok_or_else(unknown)?.at(now.timestamp()).clone();
    let offset = FixedOffset::east_opt(kind.offset_seconds).ok_or_else(unknown)?;
    Ok((now.with_timezone(&offset), kind.name))
}

fn formatted(now: DateTime<FixedOffset>, format: &str) -> Result<String, ToolFailure> {
    let wrong = || {
        ToolFailure::new(ErrorKind::InvalidInput, format!("`{format}` is no strftime format"))
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
    use crate::builtin::tests::Bench;
    use serde_json::{Value, json};

    #[track_caller]
    fn check(arguments: Value, expected: &str) {
        assert_eq!(Bench::new().text("current_time", arguments), expected);
    }

    #[test]
    fn the_time_is_told_in_the_zone_and_style_that_were_asked_for() {
        check(json!({"zone": "UTC"}), "2026-03-01T12:00:00Z");
        check(json!({"zone": "+05:30"}), "2026-03-01T17:30:00+05:30");
        check(json!({"zone": "-08:00", "style": "unix"}), "1772366400");
        check(json!({"zone": "utc", "style": "text"}), "Sunday, 1 March 2026, 12:00:00 UTC");
        check(json!({"zone": "UTC", "format": "%Y/%m/%d 100%%"}), "2026/03/01 100%");
    }

    #[test]
    fn the_default_is_the_local_zone() {
        let result = Bench::new().call("current_time", json!({})).unwrap();
        assert_eq!(result.structured_content().unwrap()["unix"], 1_772_366_400);
    }

    #[test]
    fn what_cannot_be_understood_is_said() {
        let bench = Bench::new();
        for (arguments, expected) in [
            (json!({"zone": "Atlantis/Capital"}), "no time zone that this machine knows"),
            (json!({"zone": "+99:99"}), "no time zone that this machine knows"),
            (json!({"format": "%Q %"}), "no strftime format"),
        ] {
            let told = bench.call("current_time", arguments).unwrap_err().text();
            assert!(told.contains(expected), "{told}");
        }
    }
}
