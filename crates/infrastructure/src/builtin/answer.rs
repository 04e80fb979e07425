//! A tool's answer: text for the model, and the same as structured content.

use crate::sandbox::workspace::unmistakable;
use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use std::{borrow::Cow, path::Path};
use toolstead_domain::{
    error_kind::ErrorKind, ports::clock::Timestamp, tool_failure::ToolFailure, tool_result::ToolResult,
};

/// A success with both.
pub(super) fn answer(text: impl Into<String>, structured: &impl Serialize) -> Result<ToolResult, ToolFailure> {
    let structured = serde_json::to_value(structured).map_err(|error| {
        ToolFailure::new(ErrorKind::Internal, "the result could not be written as JSON").caused_by(error)
    })?;
    Ok(ToolResult::text(text).with_structured_content(structured))
}

/// A time in RFC 3339, in UTC and to the second.
pub(super) fn rfc3339(time: Timestamp) -> String {
    let time = DateTime::<Utc>::from_timestamp_micros(time.0).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// A count with its noun: `1 file`, `2 files`.
pub(super) fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// What a walk passed over, as a sentence of its own; `None` if it passed over nothing.
pub(super) fn passed_over(refused: usize, done: &str) -> Option<String> {
    match refused {
        0 => None,
        1 => Some(format!("1 file or folder was not {done}: a rule denies reading it.")),
        _ => Some(format!("{refused} files or folders were not {done}: a rule denies reading them.")),
    }
}

/// How the paths below a folder are shown, which is worked out once.
#[derive(Debug)]
pub(super) struct ShownBelow(String);

impl ShownBelow {
    /// For a folder that is shown like this.
    pub(super) fn of(folder: &str) -> Self {
        match folder {
            "." => Self(String::new()),
            folder if folder.ends_with('/') => Self(folder.into()),
            folder => Self(format!("{folder}/")),
        }
    }

    /// The path of what lies there below the folder.
    pub(super) fn path(&self, below: &Path) -> String {
        let below = below.to_string_lossy();
        if self.0.is_empty() { unmistakable(below.into_owned()) } else { [&self.0, &*below].concat() }
    }
}

/// A name for a line of its own: a line break in it would make one name look like two.
pub(super) fn on_one_line(name: &str) -> Cow<'_, str> {
    if name.chars().any(char::is_control) { Cow::Owned(name.escape_debug().to_string()) } else { Cow::Borrowed(name) }
}
