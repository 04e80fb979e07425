//! The tool `calendar_get_event`.

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
    services::calendar::{Calendar, times::Zone},
};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolstead_domain::{Access, Availability, Category, ToolAnnotations, ToolFailure, ToolResult};

/// Tool that reads an event of Google Calendar.
pub(crate) struct CalendarGetEvent;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The id from `calendar_list_events`.
    #[schemars(length(min = 1, max = 1024))]
    #[schemars(extend("x-advertised" = ""))]
    event_id: String,
    /// The calendar: "primary", or the id of another one.
    #[serde(default = "primary")]
    #[schemars(length(min = 1, max = 1024))]
    #[schemars(extend("x-advertised" = false))]
    calendar_id: String,
}

fn primary() -> String {
    "primary".into()
}

impl BuiltInTool for CalendarGetEvent {
    const NAME: &str = "calendar_get_event";
    const TITLE: &str = "Read calendar event";
    const DESCRIPTION: &str = "Reads an event of Google Calendar: times, place, description, attendees with their \
         answers, video meeting and series. A deleted event is reported as cancelled.";
    const BRIEF: &str = "Reads all of an event.";
    const CATEGORY: Category = Category::Calendar;
    const TAGS: &[&str] = &["google"];
    const KEYWORDS: &str = "appointment details guest invitation meeting participant";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations { open_world_hint: Some(true), ..ToolAnnotations::READ_ONLY };
    const EXAMPLE: &str = r#"{"event_id": "ev1_20260105T090000Z"}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(foreign_output_schema::<CalendarEvent>())
    }

    fn availability(&self, world: &ToolEnvironment) -> Availability {
        SERVICE.availability(world)
    }

    async fn accesses(&self, _: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        Ok(vec![SERVICE.access(world)?])
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let now = DateTime::<Utc>::from_timestamp_micros(run.environment().now().0).unwrap_or_default();
        let zone = on_blocking_thread(move || Ok(Zone::system(now))).await?;
        let judge = |host: &str| run.check_host(host);
        let calendar = Calendar::new(SERVICE.account(run, &judge)?, SERVICE.address(run.environment())?);
        let event = calendar.event(&input.calendar_id, &input.event_id, zone.name()).await?;
        let event = CalendarEvent::read(&event)?;
        foreign_answer(format!("{WRITTEN_BY_OTHERS}\n\n{}", event.full()), &event, 0)
    }
}
