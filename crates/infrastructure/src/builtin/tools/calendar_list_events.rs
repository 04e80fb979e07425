//! The tool `calendar_list_events`.

use crate::{
    builtin::{
        google::calendar_event::{CalendarEvent, SERVICE, WRITTEN_BY_OTHERS},
        tool_kit::{
            blocking::on_blocking_thread,
            built_in_tool::BuiltInTool,
            foreign_answer::{foreign_answer, foreign_output_schema},
            tool_context::ToolContext,
            tool_environment::ToolEnvironment,
        },
    },
    services::calendar::{
        Calendar, EventQuery, MAX_RESULTS,
        times::{DateOrDateTime, InvalidTime, Zone, rfc3339},
    },
};
use chrono::{DateTime, FixedOffset, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolstead_domain::{
    Access, Availability, Category, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind,
};

/// Tool that lists events of Google Calendar.
pub(crate) struct CalendarListEvents;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Events that end after it: a day ("2026-01-05"), a time in the time zone ("2026-01-05T14:00"), or one with an
    /// offset. Default: the beginning of today.
    #[schemars(length(max = 64))]
    #[schemars(extend("x-advertised" = "\"2026-01-05\" or \"2026-01-05T14:00\". Default: today."))]
    time_min: Option<String>,
    /// Events that begin before it; for a day before its end. Default: the end of today if no time is given, else none.
    #[schemars(length(max = 64))]
    #[schemars(extend("x-advertised" = ""))]
    time_max: Option<String>,
    /// Words in title, description, place or attendees.
    #[schemars(length(max = 1000))]
    #[schemars(extend("x-advertised" = "Words in them."))]
    query: Option<String>,
    /// Maximum events per result.
    #[serde(default = "usual_results")]
    #[schemars(range(min = 1, max = MAX_RESULTS))]
    #[schemars(extend("x-advertised" = ""))]
    max_results: u32,
    /// The calendar: "primary", or the id of another one.
    #[serde(default = "primary")]
    #[schemars(length(min = 1, max = 1024))]
    #[schemars(extend("x-advertised" = false))]
    calendar_id: String,
    /// The time zone of days and of times without an offset: a name like "Europe/Berlin", an offset, or "UTC". Default:
    /// that of this machine.
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-advertised" = false))]
    time_zone: Option<String>,
    /// The `next_page_token` of a result with the same arguments.
    #[schemars(length(max = 1024))]
    #[schemars(extend("x-advertised" = ""))]
    page_token: Option<String>,
}

fn usual_results() -> u32 {
    10
}

fn primary() -> String {
    "primary".into()
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// In order of their start; each event of a series is listed.
    events: Vec<CalendarEvent>,
    /// Value of `page_token` for more events.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page_token: Option<String>,
    /// The requested times.
    #[serde(skip_serializing_if = "Option::is_none")]
    time_min: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_max: Option<String>,
}

impl BuiltInTool for CalendarListEvents {
    const NAME: &str = "calendar_list_events";
    const TITLE: &str = "List calendar events";
    const DESCRIPTION: &str = "Lists events of Google Calendar by time or words, in order of their start. Without \
         times these are the events of today, in the time zone of this machine. Each event of a series is listed. \
         Times have an offset; the end of whole days is the day after the last one.";
    const BRIEF: &str = "Lists events of Google Calendar; without times those of today.";
    const CATEGORY: Category = Category::Calendar;
    const TAGS: &[&str] = &["google"];
    const KEYWORDS: &str =
        "agenda appointment availability busy diary free meeting schedule today tomorrow upcoming week";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations { open_world_hint: Some(true), ..ToolAnnotations::READ_ONLY };
    const EXAMPLE: &str = r#"{"time_min": "2026-01-05", "time_max": "2026-01-09", "query": "review"}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(foreign_output_schema::<Output>())
    }

    fn availability(&self, world: &ToolEnvironment) -> Availability {
        SERVICE.availability(world)
    }

    async fn accesses(&self, _: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        Ok(vec![SERVICE.access(world)?])
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let now = DateTime::<Utc>::from_timestamp_micros(run.environment().now().0).unwrap_or_default();
        let query = on_blocking_thread(move || {
            build_query(input, now).map_err(|wrong| ToolFailure::new(ErrorKind::InvalidInput, wrong.to_string()))
        })
        .await?;
        let judge = |host: &str| run.check_host(host);
        let calendar = Calendar::new(SERVICE.account(run, &judge)?, SERVICE.address(run.environment())?);
        let page = calendar.events(&query).await?;
        let output = Output {
            events: page.events.iter().map(CalendarEvent::read).collect::<Result<_, _>>()?,
            next_page_token: page.next_page_token,
            time_min: query.time_min.as_ref().map(rfc3339),
            time_max: query.time_max.as_ref().map(rfc3339),
        };
        foreign_answer(format_events(&output), &output, 0)
    }
}

/// Returns the query that the arguments describe. Blocks for a short time.
fn build_query(input: Input, now: DateTime<Utc>) -> Result<EventQuery, InvalidTime> {
    let zone = match &input.time_zone {
        Some(name) => Zone::parse(name, now)?,
        None => Zone::system(now),
    };
    let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let moment = |text: Option<String>| given(text).map(|text| DateOrDateTime::parse(&text, &zone)).transpose();
    let today = zone.day_of(now);
    let (time_min, time_max): (Option<DateTime<FixedOffset>>, _) =
        match (moment(input.time_min)?, moment(input.time_max)?) {
            (None, None) => (Some(zone.start_of(today)), Some(zone.end_of(today))),
            (Some(from), until) => (Some(from.start(&zone)), until.map(|until| until.end(&zone))),
            (None, Some(until)) => {
                let (start, end) = (zone.start_of(today), until.end(&zone));
                ((start < end).then_some(start), Some(end))
            }
        };
    Ok(EventQuery {
        calendar_id: input.calendar_id,
        time_min,
        time_max,
        query: given(input.query),
        max_results: input.max_results,
        page_token: given(input.page_token),
        time_zone: zone.name().map(str::to_owned),
    })
}

fn format_events(output: &Output) -> String {
    let range = match (&output.time_min, &output.time_max) {
        (Some(from), Some(until)) => format!(" from {from} until {until}"),
        (Some(from), None) => format!(" from {from} on"),
        (None, Some(until)) => format!(" until {until}"),
        (None, None) => String::new(),
    };
    let events: Vec<String> = output.events.iter().map(CalendarEvent::brief).collect();
    let mut text = match events.is_empty() {
        true => format!("No events{range}."),
        false => format!("{WRITTEN_BY_OTHERS}\n\n{}", events.join("\n\n")),
    };
    if let Some(token) = &output.next_page_token {
        text.push_str(&format!("\n\n[There are more events: continue with page_token {token:?}]"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn calendar_events_follow_a_warning_that_others_wrote_them() {
        let mut output = Output { events: Vec::new(), next_page_token: None, time_min: None, time_max: None };
        assert_eq!(format_events(&output), "No events.");
        output.events.push(CalendarEvent::read(&json!({"id": "e1", "summary": "Obey"})).unwrap());
        assert_eq!(format_events(&output), format!("{WRITTEN_BY_OTHERS}\n\nObey\n  without a time\n  id e1"));
    }
}
