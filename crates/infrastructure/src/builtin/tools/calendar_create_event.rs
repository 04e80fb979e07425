//! The tool `calendar_create_event`.

use crate::{
    builtin::{
        google::calendar_event::{CalendarEvent, SERVICE},
        tool_kit::{
            blocking::on_blocking_thread,
            built_in_tool::BuiltInTool,
            foreign_answer::{foreign_answer, foreign_output_schema},
            tool_context::ToolContext,
            tool_environment::ToolEnvironment,
        },
    },
    services::calendar::{
        Calendar,
        draft::{EventDraft, SendUpdates, UncheckedEvent},
        times::{InvalidTime, Zone},
    },
};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolstead_domain::{
    Access, Availability, Category, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind,
};

/// Tool that creates an event in Google Calendar.
pub(crate) struct CalendarCreateEvent;

#[derive(Deserialize, JsonSchema, Clone)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The title.
    #[schemars(length(max = 1024))]
    #[schemars(extend("x-advertised" = ""))]
    summary: String,
    /// Its start: a day ("2026-01-05") for whole days, a time in the time zone ("2026-01-05T14:00"), or one with an
    /// offset.
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-advertised" = "\"2026-01-05T14:00\", or \"2026-01-05\" for whole days."))]
    start: String,
    /// Its end, in the same form; for whole days the day after the last one.
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-advertised" = "For whole days the day after the last."))]
    end: String,
    /// The time zone of times without an offset: a name like "Europe/Berlin", an offset, or "UTC". Default: that of this
    /// machine.
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-advertised" = "Default: this machine's."))]
    time_zone: Option<String>,
    /// Its description.
    #[serde(default)]
    #[schemars(length(max = 8192))]
    #[schemars(extend("x-advertised" = ""))]
    description: String,
    /// The place.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    #[schemars(extend("x-advertised" = ""))]
    location: String,
    /// Mail addresses of the attendees. Each invitation requires approval.
    #[serde(default)]
    #[schemars(length(max = 200))]
    #[schemars(extend("x-advertised" = "Mail addresses."))]
    attendees: Vec<String>,
    /// Attendees who are notified by mail: "none", "all", or "external_only" (outside of Google Calendar).
    #[serde(default)]
    #[schemars(extend("x-advertised" = "Who is notified by mail."))]
    send_updates: UpdateRecipients,
    /// Recurrence rules (RFC 5545), like "RRULE:FREQ=WEEKLY;COUNT=4".
    #[serde(default)]
    #[schemars(length(max = 20))]
    #[schemars(extend("x-advertised" = "Like \"RRULE:FREQ=WEEKLY;COUNT=4\"."))]
    recurrence: Vec<String>,
    /// Create a video meeting.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    conference: bool,
    /// The calendar: "primary", or the id of another one.
    #[serde(default = "primary")]
    #[schemars(length(min = 1, max = 1024))]
    #[schemars(extend("x-advertised" = false))]
    calendar_id: String,
}

fn primary() -> String {
    "primary".into()
}

#[derive(Deserialize, JsonSchema, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum UpdateRecipients {
    #[default]
    None,
    All,
    ExternalOnly,
}

impl From<UpdateRecipients> for SendUpdates {
    fn from(updates: UpdateRecipients) -> Self {
        match updates {
            UpdateRecipients::None => Self::None,
            UpdateRecipients::All => Self::All,
            UpdateRecipients::ExternalOnly => Self::ExternalOnly,
        }
    }
}

impl BuiltInTool for CalendarCreateEvent {
    const NAME: &str = "calendar_create_event";
    const TITLE: &str = "Create calendar event";
    const DESCRIPTION: &str = "Creates an event in Google Calendar: at a time, or for whole days, whose `end` is the \
         day after the last one. Times without an offset are in the time zone of this machine, or in `time_zone`. \
         Attendees require approval each time, and no mail is sent unless `send_updates` says so.";
    const BRIEF: &str = "Creates an event in Google Calendar.";
    const CATEGORY: Category = Category::Calendar;
    const TAGS: &[&str] = &["google"];
    const KEYWORDS: &str = "add agenda appointment book date diary invite meeting plan reminder schedule";
    const ANNOTATIONS: ToolAnnotations =
        ToolAnnotations { destructive_hint: Some(false), open_world_hint: Some(true), ..ToolAnnotations::WRITING };
    const EXAMPLE: &str =
        r#"{"summary": "Review", "start": "2026-01-05T14:00", "end": "2026-01-05T15:00", "location": "Room 2"}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(foreign_output_schema::<CalendarEvent>())
    }

    fn availability(&self, world: &ToolEnvironment) -> Availability {
        SERVICE.availability(world)
    }

    async fn accesses(&self, input: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        let draft = draft(input.clone(), world).await?;
        let mut accesses = vec![SERVICE.access(world)?];
        accesses.extend(draft.invitation().map(|invitation| Access::Send(invitation.into())));
        Ok(accesses)
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let calendar_id = input.calendar_id.clone();
        let draft = draft(input, run.environment()).await?;
        if let Some(invitation) = draft.invitation()
            && !run.context().grant.permits(&Access::Send(invitation.into()))
        {
            let message = "the time zone or the attendees are not those that were approved";
            return Err(ToolFailure::new(ErrorKind::PermissionDenied, message).next("Call it again."));
        }
        let request = run.call().id.to_string();
        let judge = |host: &str| run.check_host(host);
        let calendar = Calendar::new(SERVICE.account(run, &judge)?, SERVICE.address(run.environment())?);
        let event = calendar.create(&calendar_id, &draft, &request).await?;
        let event = CalendarEvent::read(&event)?;
        foreign_answer(format!("Created: {}", event.full()), &event, 0)
    }
}

/// Returns the event that the arguments describe.
///
/// # Errors
/// `invalid_input` for an invalid time, zone or other argument.
async fn draft(input: Input, world: &ToolEnvironment) -> Result<EventDraft, ToolFailure> {
    let now = DateTime::<Utc>::from_timestamp_micros(world.now().0).unwrap_or_default();
    let invalid = |wrong: String| ToolFailure::new(ErrorKind::InvalidInput, wrong);
    on_blocking_thread(move || {
        let zone = match &input.time_zone {
            Some(name) => Zone::parse(name, now).map_err(|wrong: InvalidTime| invalid(wrong.to_string()))?,
            None => Zone::system(now),
        };
        let written = UncheckedEvent {
            summary: &input.summary,
            start: &input.start,
            end: &input.end,
            description: &input.description,
            location: &input.location,
            attendees: &input.attendees,
            recurrence: &input.recurrence,
            send_updates: input.send_updates.into(),
            conference: input.conference,
        };
        EventDraft::new(&written, &zone).map_err(|wrong| invalid(wrong.to_string()))
    })
    .await
}
