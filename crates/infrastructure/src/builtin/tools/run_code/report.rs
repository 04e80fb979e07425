//! Formats the result of a run of code.

use super::language::Language;
use crate::builtin::{
    commands::{
        capture::{OutputStream, in_json},
        command::{CommandEnd, CommandHandle, EndCause},
        command_output::{OutputSelection, RenderedOutput, remarks, render_output},
    },
    tool_kit::tool_context::ToolContext,
};
use schemars::JsonSchema;
use serde::Serialize;
use toolstead_domain::{ToolFailure, ToolResult, error_kind::ErrorKind, tool_result::text_block};

/// Number of characters reserved for remarks beside the output.
const ROOM_FOR_REMARKS: usize = 900;
/// Number of characters reserved for the members of the structured content beside the two streams.
const ROOM_FOR_MEMBERS: usize = 600;

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// Its standard output; if long, the beginning and the end.
    stdout: String,
    /// Its standard error; if long, the beginning and the end.
    stderr: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// The line of the code that failed, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_line: Option<u64>,
    duration_ms: u64,
    timed_out: bool,
    /// `true` if the output is incomplete.
    truncated: bool,
    /// The handle of the whole output, both streams in the order of arrival.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    /// Changes of protected files, undone or not, and refused hosts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    undone_or_refused: Vec<String>,
}

/// Formatter of the result of a run of code.
pub(super) struct ResultFormatter<'a> {
    pub(super) run: &'a ToolContext<'a>,
    pub(super) language: Language,
}

impl ResultFormatter<'_> {
    pub(super) async fn ended(&self, command: &CommandHandle, end: CommandEnd) -> Result<ToolResult, ToolFailure> {
        let budget = self.run.context().output_characters.saturating_sub(ROOM_FOR_REMARKS);
        let shown = render_output(&command.capture, OutputSelection::default(), budget, self.run).await?;
        let output = self.output(command, &end, &shown);
        let kind = match (end.cause, end.code) {
            (EndCause::Itself, Some(0)) if !end.is_tainted => None,
            (EndCause::TimedOut, _) => Some(ErrorKind::Timeout),
            (EndCause::Stopped, _) => Some(ErrorKind::Cancelled),
            (EndCause::Itself | EndCause::TooMuchOutput | EndCause::Lost, _) => Some(ErrorKind::ExecutionFailed),
        };
        let mut said = remarks(&end, self.run.environment().processes().programs().settings().kept_bytes);
        match (kind, output.error_line) {
            (None, _) => {}
            (Some(_), None) => said.insert(0, format!("The code {}.", end.describe())),
            (Some(_), Some(line)) => said.insert(0, format!("The code {}, at line {line}.", end.describe())),
        }
        let is_silent = kind.is_none() && shown.text.is_empty();
        let text = if is_silent { "The code succeeded and printed nothing.".to_owned() } else { shown.text.clone() };
        let mut result = ToolResult::text(text);
        shown.noted_in(&mut result);
        let structured = serde_json::to_value(output).map_err(|error| {
            ToolFailure::new(ErrorKind::Internal, "the result could not be written as JSON").caused_by(error)
        })?;
        let (result, said) = (result.with_structured_content(structured), said.join(" "));
        match kind {
            None if said.is_empty() => Ok(result),
            None => Ok(result.with_block(text_block(said))),
            Some(kind @ ErrorKind::ExecutionFailed) => Ok(result.followed_by(ToolResult::error(kind, said))),
            Some(kind) => {
                let failure = ToolFailure::new(kind, said).with_partial(result);
                Err(if kind == ErrorKind::Timeout {
                    failure.next("Give it more time with `timeout_ms`.")
                } else {
                    failure
                })
            }
        }
    }

    fn output(&self, command: &CommandHandle, end: &CommandEnd, shown: &RenderedOutput) -> Output {
        let room = self.run.context().output_characters.saturating_sub(ROOM_FOR_MEMBERS);
        let (stdout, stderr) = (command.capture.ends(OutputStream::Stdout), command.capture.ends(OutputStream::Stderr));
        // Each stream gets half of the space, and what the other one does not need.
        let (first, _) = stderr.text(room / 2);
        let (stdout, stdout_cut) =
            stdout.text(room - if stderr.is_empty() { 0 } else { in_json(&first).min(room / 2) });
        let (stderr, stderr_cut) = stderr.text(room.saturating_sub(in_json(&stdout)));
        let has_failed = end.code != Some(0);
        Output {
            error_line: if has_failed { self.language.line_of_failure(&stderr) } else { None },
            stdout,
            stderr,
            exit_code: end.code,
            duration_ms: u64::try_from(end.after.as_millis()).unwrap_or(u64::MAX),
            timed_out: end.cause == EndCause::TimedOut,
            truncated: shown.is_cut || stdout_cut || stderr_cut,
            output: shown.handle.map(|handle| handle.to_string()),
            undone_or_refused: end.notes.clone(),
        }
    }
}
