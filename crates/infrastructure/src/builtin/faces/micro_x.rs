//! The faces of Micro-X: texts, with errors that begin with the word.

use super::{
    Faces,
    printed::{Printed, time_had, told_beside, with_remark},
    wording::{is_dry_run, notes},
};
use serde_json::Value;
use toolstead_domain::{
    alias::{
        Rewrite::Default,
        face::{Answered, Face, Said},
    },
    error_kind::ErrorKind,
};

/// Each under the name that its tool has there.
pub(super) const FACES: Faces = &[
    (
        "append_file",
        Face::new(
            "Add content to the end of a file. The file must exist: write the beginning of a large file with \
             write_file, and its other parts with this.",
            r#"{"type": "object", "properties": {
                "path": {"type": "string", "description": "Path of the file, absolute or relative"},
                "content": {"type": "string", "description": "What to add"}},
                "required": ["path", "content"]}"#,
        )
        .saying(appended),
    ),
    (
        "bash",
        Face::new(
            "Run a bash command and return what it prints, stdout and then stderr. It may take 30 seconds.",
            r#"{"type": "object", "properties": {
                "command": {"type": "string", "description": "The bash command"}},
                "required": ["command"]}"#,
        )
        .with_defaults(&[Default("timeout_ms", "30000")])
        .saying(ran),
    ),
    (
        "calendar_create_event",
        Face::new(
            "Create an event in Google Calendar: a timed one (ISO 8601 with time), or an all-day one (YYYY-MM-DD). May \
             invite attendees by email.",
            r#"{"type": "object", "properties": {
                "summary": {"type": "string", "description": "Title of the event"},
                "start": {"type": "string", "description": "Start in ISO 8601 ('2025-06-15T14:00:00'), or the date alone of an all-day event ('2025-06-15')"},
                "end": {"type": "string", "description": "End in ISO 8601 ('2025-06-15T15:00:00'), or the date alone after an all-day event ('2025-06-16')"},
                "description": {"type": "string", "description": "Notes on the event"},
                "location": {"type": "string", "description": "Place of the event"},
                "attendees": {"type": "string", "description": "Email addresses of attendees, with commas between them"},
                "calendarId": {"type": "string", "description": "Calendar ID (default 'primary')"}},
                "required": ["summary", "start", "end"]}"#,
        )
        .saying(created_event),
    ),
    (
        "calendar_get_event",
        Face::new(
            "Get all details of a Google Calendar event by its event ID.",
            r#"{"type": "object", "properties": {
                "eventId": {"type": "string", "description": "The event ID, which calendar_list_events gives"},
                "calendarId": {"type": "string", "description": "Calendar ID (default 'primary')"}},
                "required": ["eventId"]}"#,
        )
        .saying(event),
    ),
    (
        "calendar_list_events",
        Face::new(
            "List Google Calendar events by time range or search query: ID, summary, start and end, location, status and \
             organizer. Without a time range those of today.",
            r#"{"type": "object", "properties": {
                "timeMin": {"type": "string", "description": "Start of the range in ISO 8601 ('2025-06-01T00:00:00Z'). Default: start of today"},
                "timeMax": {"type": "string", "description": "End of the range in ISO 8601 ('2025-06-01T23:59:59Z'). Default: end of today"},
                "query": {"type": "string", "description": "Words in summary, description, location or attendees"},
                "maxResults": {"type": "number", "description": "The most results (default 10)"},
                "calendarId": {"type": "string", "description": "Calendar ID (default 'primary')"}}}"#,
        )
        .saying(events),
    ),
    (
        "delete_file",
        Face::new(
            "Delete a file.",
            r#"{"type": "object", "properties": {
                "path": {"type": "string", "description": "Path of the file, absolute or relative"}},
                "required": ["path"]}"#,
        )
        .saying(|answered| failed(answered, "Error deleting file").or_else(|| plain(answered))),
    ),
    (
        "edit_file",
        Face::new(
            "Replace a text in a file. It must stand there once, unless replace_all is set.",
            r#"{"type": "object", "properties": {
                "path": {"type": "string", "description": "Path of the file, absolute or relative"},
                "old_string": {"type": "string", "description": "The text to replace"},
                "new_string": {"type": "string", "description": "The text to put in its place"},
                "replace_all": {"type": "boolean", "description": "Replace it everywhere"}},
                "required": ["path", "old_string", "new_string"]}"#,
        )
        .saying(|answered| failed(answered, "Error editing file").or_else(|| plain(answered))),
    ),
    (
        "read_file",
        Face::new(
            "Read a file and return its text. Works on text files and .docx documents.",
            r#"{"type": "object", "properties": {
                "path": {"type": "string", "description": "Path of the file, absolute or relative"}},
                "required": ["path"]}"#,
        )
        .with_defaults(&[Default("line_numbers", "false"), Default("limit", "10000")])
        .saying(read),
    ),
    ("system-info__disk_info", Face::new("Disk usage of the fixed drives of this machine.", NOTHING).saying(reported)),
    (
        "system-info__network_info",
        Face::new("Network interfaces of this machine with their addresses.", NOTHING).saying(reported),
    ),
    (
        "system-info__system_info",
        Face::new("Operating system, processors, memory and uptime of this machine.", NOTHING).saying(reported),
    ),
    (
        "write_file",
        Face::new(
            "Write content to a file; it is created with its folders if it is not there.",
            r#"{"type": "object", "properties": {
                "path": {"type": "string", "description": "Path of the file, absolute or relative"},
                "content": {"type": "string", "description": "What to write"}},
                "required": ["path", "content"]}"#,
        )
        .saying(|answered| {
            let written = || changed(answered, format!("Successfully wrote to {}", path(answered)));
            failed(answered, "Error writing file").or_else(written)
        }),
    ),
];

const NOTHING: &str = r#"{"type": "object", "properties": {}}"#;

/// A call that failed, behind the words with which that tool begins an error.
fn failed(answered: &Answered<'_>, words: &str) -> Option<Said> {
    answered.error_kind().map(|_| Said::error(format!("{words}: {}", answered.text())))
}

fn plain(answered: &Answered<'_>) -> Option<Said> {
    Some(Said::text(answered.text()))
}

/// The path as it was given.
fn path<'a>(answered: &Answered<'a>) -> &'a str {
    let given = answered.text_argument("path").or_else(|| answered.text_argument("file_path"));
    given.or_else(|| answered.member("path")?.as_str()).unwrap_or_default()
}

fn appended(answered: &Answered<'_>) -> Option<Said> {
    let path = path(answered);
    // A stored output may be what was not found.
    let is_text = |name| answered.text_argument(name).is_some();
    match answered.error_kind() {
        None => changed(answered, format!("Successfully appended to {path}")),
        Some(ErrorKind::NotFound) if is_text("content") && (is_text("path") || is_text("file_path")) => {
            Some(Said::error(format!("Error: file does not exist: {path}. Use write_file to create it first.")))
        }
        Some(_) => failed(answered, "Error appending to file"),
    }
}

/// A file that was changed, and what is to be said of it. Of one that only might be, what we say.
fn changed(answered: &Answered<'_>, text: String) -> Option<Said> {
    (!is_dry_run(answered)).then(|| Said::text(text).beside(notes(answered)))
}

/// A whole text as it stands in the file. Of another kind of file, and of a part, what we say.
fn read(answered: &Answered<'_>) -> Option<Said> {
    let member = |name| answered.member(name);
    let is_whole =
        member("kind").is_some_and(|kind| kind == "text") && member("truncated") == Some(&Value::Bool(false));
    let content = || member("content").and_then(Value::as_str);
    failed(answered, "Error reading file").or_else(|| is_whole.then(content).flatten().map(Said::text))
}

fn created_event(answered: &Answered<'_>) -> Option<Said> {
    let created = || {
        let text = |name| answered.member(name).and_then(Value::as_str).unwrap_or_default();
        Some(Said::text(format!(
            "Event created successfully.\n  ID: {}\n  Summary: {}\n  Start: {}\n  End: {}\n  Link: {}",
            answered.member("id")?.as_str()?,
            text("summary"),
            text("start"),
            text("end"),
            text("html_link"),
        )))
    };
    failed(answered, "Error creating calendar event").or_else(created)
}

fn event(answered: &Answered<'_>) -> Option<Said> {
    let told = || {
        let text = |name| answered.member(name).and_then(Value::as_str).unwrap_or_default();
        let list = |name| answered.member(name).and_then(Value::as_array).into_iter().flatten();
        let mut lines = vec![
            format!("Summary: {}", answered.member("summary").and_then(Value::as_str).unwrap_or("(no title)")),
            format!("Status: {}", answered.member("status")?.as_str()?),
            format!("Start: {}", text("start")),
            format!("End: {}", text("end")),
            format!("Location: {}", text("location")),
            format!("Description: {}", text("description")),
            format!("Organizer: {}", text("organizer")),
            format!("Creator: {}", text("creator")),
        ];
        let attendee = |one: &Value| {
            let text = |name: &str| one.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            format!("\n    {} ({})", text("email"), text("response"))
        };
        let attendees: String = list("attendees").map(attendee).collect();
        if !attendees.is_empty() {
            lines.push(format!("Attendees:{attendees}"));
        }
        lines
            .extend(answered.member("video_link").and_then(Value::as_str).map(|uri| format!("Conference Link: {uri}")));
        let rules: Vec<&str> = list("recurrence").filter_map(Value::as_str).collect();
        if !rules.is_empty() {
            lines.push(format!("Recurrence: {}", rules.join("; ")));
        }
        Some(Said::text(lines.join("\n")))
    };
    failed(answered, "Error getting calendar event").or_else(told)
}

/// What there is beyond the page stands beside it.
fn events(answered: &Answered<'_>) -> Option<Said> {
    let found = || {
        let block = |event: &Value| {
            let text = |name: &str| event.get(name).and_then(Value::as_str);
            let (id, summary) = (text("id")?, text("summary").unwrap_or("(no title)"));
            let (start, end) = (text("start").unwrap_or_default(), text("end").unwrap_or_default());
            let (location, status) = (text("location").unwrap_or_default(), text("status").unwrap_or_default());
            let organizer = text("organizer").unwrap_or_default();
            Some(format!(
                "ID: {id}\n  Summary: {summary}\n  Start: {start}\n  End: {end}\n  Location: {location}\n  Status: {status}\n  \
                 Organizer: {organizer}"
            ))
        };
        let blocks = answered.member("events")?.as_array()?.iter().map(block).collect::<Option<Vec<_>>>()?;
        let text = if blocks.is_empty() { "No events found.".into() } else { blocks.join("\n\n") };
        let more = answered.member("next_page_token").map(|token| format!("[There are more: page_token {token}]"));
        Some(Said::text(text).beside(more))
    };
    failed(answered, "Error listing calendar events").or_else(found)
}

fn ran(answered: &Answered<'_>) -> Option<Said> {
    if let Err(failure) = answered.outcome {
        return Some(match (failure.kind, &failure.partial) {
            (ErrorKind::Timeout, Some(_)) => {
                let text = format!("[timed out after {}s]", seconds(answered));
                Said::error(with_remark(text, told_beside(answered)).trim_end())
            }
            _ => Said::error(format!("Error executing command: {}", failure.text())),
        });
    }
    if answered.member("task_id").is_some() {
        return plain(answered);
    }
    let printed = Printed::of(answered);
    Some(match printed.code {
        // It failed for another reason than its exit code.
        0 if answered.error_kind().is_some() => Said::error(answered.text()),
        0 => Said::text(printed.text.trim_end()),
        code => {
            let text = format!("{}\n[exit code {code}]", printed.text.trim_end_matches('\n'));
            Said { is_error: answered.error_kind().is_some(), ..Said::text(text) }
        }
    })
}

/// The time that the command had.
fn seconds(answered: &Answered<'_>) -> f64 {
    let given = |name| answered.arguments.get(name).and_then(Value::as_f64);
    let given = given("timeout_ms").or_else(|| given("timeout").map(|seconds| seconds * 1000.0));
    time_had(answered, given.unwrap_or(30_000.0)) / 1000.0
}

fn reported(answered: &Answered<'_>) -> Option<Said> {
    failed(answered, "Error").or_else(|| plain(answered))
}
