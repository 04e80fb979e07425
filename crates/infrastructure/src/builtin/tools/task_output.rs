//! The tool `task_output`.

use crate::builtin::{
    commands::{
        capture::{self, in_json},
        command_output::{OutputSelection, render_output},
        tasks::{BackgroundTask, TaskStatus},
        waiting::{SLACK, pattern},
    },
    files::read_state::SessionKey,
    tool_kit::{built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{sync::atomic::Ordering, time::Duration};
use tokio::time::timeout;
use toolstead_domain::{Category, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind};

/// Number of characters reserved for remarks and members beside the output.
const ROOM_FOR_REMARKS: usize = 900;

/// Tool that returns the output of a task.
pub(crate) struct TaskOutput;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The task, such as `task_1`.
    #[schemars(extend("x-advertised" = ""))]
    task_id: String,
    /// Show output after this cursor; 0 is the beginning. Without it: after the last call without one. Output can be
    /// shown again.
    #[schemars(extend("x-advertised" = "Cursor of an earlier call; 0: from the beginning."))]
    since: Option<u64>,
    /// Show only its standard output or its standard error.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    stream: Streams,
    /// Show only lines that match this regex.
    #[schemars(extend("x-advertised" = "Only lines that match a regex."))]
    filter: Option<String>,
    /// Number of last lines to show.
    #[schemars(extend("x-advertised" = ""))]
    tail_lines: Option<usize>,
    /// Milliseconds to wait for new output or the end.
    #[serde(default)]
    #[schemars(range(max = 600_000))]
    #[schemars(extend("x-advertised" = "Wait for new output."))]
    wait_ms: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Streams {
    #[default]
    Both,
    Stdout,
    Stderr,
}

impl Streams {
    fn only(self) -> Option<capture::OutputStream> {
        match self {
            Self::Both => None,
            Self::Stdout => Some(capture::OutputStream::Stdout),
            Self::Stderr => Some(capture::OutputStream::Stderr),
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct Output {
    task_id: String,
    status: TaskStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    /// In order of arrival.
    output: String,
    /// `since` of the next call, for the output after this.
    cursor: u64,
    /// Bytes after `since` that are no longer stored.
    dropped_bytes: u64,
    /// `true` if a part is cut.
    truncated: bool,
    /// The handle of the whole requested part.
    #[serde(skip_serializing_if = "Option::is_none")]
    handle: Option<String>,
    /// Changes of protected files, undone or not, and refused hosts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    undone_or_refused: Vec<String>,
}

impl BuiltInTool for TaskOutput {
    const NAME: &str = "task_output";
    const TITLE: &str = "Show a task's output";
    const DESCRIPTION: &str = "Shows what a task has printed since the last call, or since a cursor, and its state. \
                               It can wait for new output, and earlier output can be shown again.";
    const BRIEF: &str = "Shows what a task printed since the last call, and its state.";
    const CATEGORY: Category = Category::Shell;
    const TAGS: &[&str] = &["background", "process", "task"];
    const KEYWORDS: &str = "background job logs process progress result stdout";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"task_id": "task_1", "wait_ms": 5000}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    fn requested_time(&self, input: &Input) -> Option<Duration> {
        (input.wait_ms > 0).then(|| Duration::from_millis(input.wait_ms) + SLACK)
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let viewer = SessionKey::of(run.context());
        let task = run.environment().processes().tasks().find(&viewer, &input.task_id)?;
        let filter = input.filter.as_deref().map(pattern).transpose()?;
        let from = input.since.unwrap_or_else(|| task.cursor.load(Ordering::Relaxed));
        let _ = timeout(Duration::from_millis(input.wait_ms), something_after(&task, from)).await;
        // Read before the output: nothing that the task printed before its end may be missed.
        let end = task.command.end();
        let room = run.context().output_characters.saturating_sub(ROOM_FOR_REMARKS);
        let part = OutputSelection { from, stream: input.stream.only(), filter, tail_lines: input.tail_lines };
        let seen = render_output(&task.command.capture, part, room, run).await?;
        if input.since.is_none() {
            task.advance_cursor(seen.end);
        }
        if end.is_some() {
            task.mark_reported_to(&viewer);
        }
        let state = format!("[{}; `since: {}` shows what comes after this]", task.describe_fully(), seen.end);
        let between = if seen.text.is_empty() || seen.text.ends_with('\n') { "" } else { "\n" };
        let output = Output {
            task_id: task.id.to_string(),
            status: task.status(),
            exit_code: end.as_ref().and_then(|end| end.code),
            signal: end.as_ref().and_then(|end| end.signal),
            // If the output does not fit as JSON, only the text block and the handle have it.
            output: if in_json(&seen.text) <= room { seen.text.clone() } else { String::new() },
            cursor: seen.end,
            dropped_bytes: seen.dropped,
            truncated: seen.is_cut || in_json(&seen.text) > room,
            handle: seen.handle.map(|handle| handle.to_string()),
            undone_or_refused: end.map(|end| end.notes).unwrap_or_default(),
        };
        let structured = serde_json::to_value(&output).map_err(|error| {
            ToolFailure::new(ErrorKind::Internal, "the result could not be written as JSON").caused_by(error)
        })?;
        let mut result = ToolResult::text(format!("{}{between}{state}", seen.text));
        seen.noted_in(&mut result);
        Ok(result.with_structured_content(structured))
    }
}

/// Waits until the task has printed more than `from` bytes in total, or has ended.
async fn something_after(task: &BackgroundTask, from: u64) {
    let mut grows = task.command.capture.subscribe_total();
    tokio::select! {
        _ = grows.wait_for(|total| *total > from) => {}
        _ = task.command.ended() => {}
    }
}
