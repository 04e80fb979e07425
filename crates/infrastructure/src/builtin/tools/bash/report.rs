//! Formats the results of `bash`.

use super::{Input, exit_code_meaning::meaning};
use crate::builtin::{
    commands::{
        capture::{OutputStream, in_json},
        command::{CommandEnd, CommandHandle, EndCause},
        command_output::{OutputSelection, RenderedOutput, remarks, render_output},
        tasks::BackgroundTask,
    },
    tool_kit::tool_context::ToolContext,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use toolstead_domain::{ToolFailure, ToolResult, error_kind::ErrorKind};

/// Number of characters reserved for remarks beside the output.
const ROOM_FOR_REMARKS: usize = 900;
/// Number of characters reserved for the members of the structured content beside the two streams.
const ROOM_FOR_MEMBERS: usize = 1_200;

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// Standard output; of a long one the beginning and the end.
    stdout: String,
    /// Standard error; of a long one the beginning and the end.
    stderr: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// The number of the signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    duration_ms: u64,
    timed_out: bool,
    /// `true` if some output is omitted.
    truncated: bool,
    /// Handle of the complete output: both streams in order, or only the standard output if they are not merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    /// Handle of a standard error that is cut, if the streams are not merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_output: Option<String>,
    /// Bytes that it printed.
    output_bytes: u64,
    /// Its working directory.
    cwd: String,
    /// Meaning of an exit code that is not a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    meaning: Option<&'static str>,
    /// Changes to protected files and whether they were undone, refused hosts, and, after a failure, other paths that
    /// were read-only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    undone_or_refused: Vec<String>,
    /// The task as which it continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    /// The line that matches `ready_when`.
    #[serde(skip_serializing_if = "Option::is_none")]
    ready_line: Option<String>,
}

/// Data of a call that is needed for its result.
pub(super) struct ResultFormatter<'a> {
    pub(super) run: &'a ToolContext<'a>,
    pub(super) input: &'a Input,
    pub(super) folder: &'a Path,
    /// `true` if the command got less time than it requested.
    pub(super) is_reduced: bool,
}

impl ResultFormatter<'_> {
    /// Formats the result of a command that has ended.
    pub(super) async fn ended(&self, command: &CommandHandle, end: CommandEnd) -> Result<ToolResult, ToolFailure> {
        let shown = self.shown(command).await?;
        let meaning = end.code.and_then(|code| meaning(&self.input.command, code));
        let mut output = self.output(command, &shown);
        output.exit_code = end.code;
        output.signal = end.signal;
        output.duration_ms = milliseconds(end.after);
        output.timed_out = end.cause == EndCause::TimedOut;
        output.meaning = meaning;
        output.undone_or_refused.clone_from(&end.notes);
        let is_silent = shown.text.is_empty();
        let mut said = remarks(&end, self.run.environment().processes().programs().settings().kept_bytes);
        if self.is_reduced {
            said.push("`timeout_ms` exceeds the limit for calls, and was reduced.".into());
        }
        let kind = match (end.cause, end.code) {
            (EndCause::Itself, Some(0)) if !end.is_tainted => None,
            (EndCause::Itself, _) if meaning.is_some() && !end.is_tainted => None,
            (EndCause::TimedOut, _) => Some(ErrorKind::Timeout),
            (EndCause::Stopped, _) => Some(ErrorKind::Cancelled),
            (EndCause::Itself | EndCause::TooMuchOutput | EndCause::Lost, _) => Some(ErrorKind::ExecutionFailed),
        };
        let how = match (kind, meaning) {
            (None, None) if is_silent => Some("The command succeeded and printed nothing.".to_owned()),
            (None, None) => None,
            (None, Some(meaning)) => Some(format!("[exit code 1: {meaning}]")),
            (Some(_), _) => Some(format!("The command {}.", end.describe())),
        };
        said.splice(0..0, how);
        let said = said.join(" ");
        let text = if is_silent && kind.is_none() { said.clone() } else { shown.text.clone() };
        let mut result = ToolResult::text(text);
        shown.noted_in(&mut result);
        end.suggest_in(&mut result);
        let result = result.with_structured_content(self.structured(output)?);
        match kind {
            None if is_silent || said.is_empty() => Ok(result),
            None => Ok(result.with_block(toolstead_domain::tool_result::text_block(said))),
            Some(kind @ ErrorKind::ExecutionFailed) => Ok(result.followed_by(ToolResult::error(kind, said))),
            Some(kind) => {
                let next = "Give it more time with `timeout_ms`, or run it with `background` and look at it with \
                            `task_output`.";
                let failure = ToolFailure::new(kind, said).with_partial(result);
                Err(if kind == ErrorKind::Timeout { failure.next(next) } else { failure })
            }
        }
    }

    /// Formats the result of a command that continues as a task, and marks the shown output as read for the task.
    pub(super) async fn running(
        &self,
        task: &BackgroundTask,
        ready_line: Option<String>,
    ) -> Result<ToolResult, ToolFailure> {
        let command = &task.command;
        let shown = self.shown(command).await?;
        task.advance_cursor(shown.end);
        let id = task.id;
        let state = match (&ready_line, &self.input.ready_when) {
            (Some(line), _) => format!("is ready: {}", line.chars().take(200).collect::<String>()),
            (None, Some(_)) => "runs, and no line matches `ready_when` yet".into(),
            (None, None) => "runs in the background".into(),
        };
        let notice = format!(
            "[`{id}` (process {}) {state}. task_output {{\"task_id\": \"{id}\"}} shows what it prints from here on, \
             task_wait waits for its end, task_stop ends it.{}]",
            command.process,
            if task.is_detached { "" } else { " It ends with this session." }
        );
        let mut output = self.output(command, &shown);
        output.duration_ms = milliseconds(command.started.elapsed());
        output.task_id = Some(id.to_string());
        output.pid = Some(command.process);
        output.ready_line = ready_line;
        let between = if shown.text.is_empty() || shown.text.ends_with('\n') { "" } else { "\n" };
        let mut result = ToolResult::text(format!("{}{between}{notice}", shown.text));
        shown.noted_in(&mut result);
        Ok(result.with_structured_content(self.structured(output)?))
    }

    async fn shown(&self, command: &CommandHandle) -> Result<RenderedOutput, ToolFailure> {
        let budget = self.run.context().output_characters.saturating_sub(ROOM_FOR_REMARKS);
        if self.input.merge_stderr {
            return render_output(&command.capture, OutputSelection::default(), budget, self.run).await;
        }
        let heading = "[standard error]\n";
        let of = |stream| OutputSelection { stream: Some(stream), ..OutputSelection::default() };
        let errors = render_output(&command.capture, of(OutputStream::Stderr), budget / 2, self.run).await?;
        let rest = budget.saturating_sub(errors.text.chars().count() + heading.len() + 1);
        let output = render_output(&command.capture, of(OutputStream::Stdout), rest, self.run).await?;
        Ok(if errors.text.is_empty() { output } else { output.followed_by(heading, errors) })
    }

    fn output(&self, command: &CommandHandle, shown: &RenderedOutput) -> Output {
        let cwd = self.folder.to_string_lossy().into_owned();
        let room = self.run.context().output_characters.saturating_sub(ROOM_FOR_MEMBERS + in_json(&cwd));
        let (stdout, stderr) = (command.capture.ends(OutputStream::Stdout), command.capture.ends(OutputStream::Stderr));
        // Each stream gets half of the space, and what the other one does not need.
        let (first, _) = stderr.text(room / 2);
        let (stdout, stdout_cut) =
            stdout.text(room - if stderr.is_empty() { 0 } else { in_json(&first).min(room / 2) });
        let (stderr, stderr_cut) = stderr.text(room.saturating_sub(in_json(&stdout)));
        Output {
            stdout,
            stderr,
            exit_code: None,
            signal: None,
            duration_ms: 0,
            timed_out: false,
            truncated: shown.is_cut || stdout_cut || stderr_cut,
            output: shown.handle.map(|handle| handle.to_string()),
            error_output: shown.error_handle.map(|handle| handle.to_string()),
            output_bytes: command.capture.total(),
            cwd,
            meaning: None,
            undone_or_refused: Vec::new(),
            task_id: None,
            pid: None,
            ready_line: None,
        }
    }

    /// Converts the output to JSON. The id of a task is added under the name that the caller's own system uses.
    fn structured(&self, output: Output) -> Result<Value, ToolFailure> {
        let task = output.task_id.clone();
        let mut structured = serde_json::to_value(output).map_err(|error| {
            ToolFailure::new(ErrorKind::Internal, "the result could not be written as JSON").caused_by(error)
        })?;
        let name = match self.run.call().called_as.as_str() {
            "Bash" => "bash_id",
            "async_cmd" | "async_cmd_run" => "async_cmd_id",
            _ => return Ok(structured),
        };
        if let Some(task) = task {
            structured[name] = task.into();
        }
        Ok(structured)
    }
}

fn milliseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
