//! Tools that run one program: it is started without a shell, and its output is the result.

use crate::{
    builtin::{
        commands::{
            capture::Capture,
            command::{CommandHandle, EndCause, ExcessPolicy},
            command_output::{OutputSelection, remarks, render_output},
            programs::ProgramSpec,
            waiting::wait_for_end,
        },
        tool_kit::tool_context::ToolContext,
    },
    shell_analysis,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::{path::Path, sync::Arc};
use toolstead_domain::{
    Access, CommandAccess, ToolFailure, ToolResult, error_kind::ErrorKind, tool_result::text_block,
};

/// Number of characters reserved for remarks beside the output.
const ROOM_FOR_REMARKS: usize = 900;

#[derive(Serialize, JsonSchema)]
pub(crate) struct ProgramRunSummary {
    /// The words that were run.
    pub(crate) command: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i32>,
    pub(crate) truncated: bool,
    /// Handle of the complete output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<String>,
}

/// Returns the accesses of a program with arguments, analysed like a command line.
pub(crate) fn running<'a>(program: &'a str, args: impl IntoIterator<Item = &'a str>) -> Vec<Access> {
    let line = CommandAccess::program(std::iter::once(program).chain(args)).text;
    shell_analysis::analyse(&line, Path::new("/")).commands.into_iter().map(Access::RunCommand).collect()
}

/// Runs a program until it ends or the call reaches its deadline. The returned output has no text yet: see [`answer`].
///
/// # Errors
/// If it cannot be started, or reaches its timeout.
pub(crate) async fn run_to_end(
    program: ProgramSpec,
    run: &ToolContext<'_>,
) -> Result<(Arc<CommandHandle>, ProgramRunSummary), ToolFailure> {
    let programs = run.environment().processes().programs();
    let settings = programs.settings();
    let words = std::iter::once(program.name.to_string()).chain(program.args.iter().cloned()).collect();
    let capture = Capture::new(settings.spool_folder.clone(), settings.kept_bytes);
    let started = programs.start(program, run.context(), run.environment().workspace()).await?;
    let command = Arc::new(CommandHandle::of(started, capture, Some(run.deadline()), ExcessPolicy::Ends, None, false));
    let end = wait_for_end(&command, run.context().caller).await;
    let output = ProgramRunSummary { command: words, exit_code: end.code, truncated: false, output: None };
    if end.cause == EndCause::TimedOut {
        let partial = answer(&command, output, run).await?;
        return Err(
            ToolFailure::new(ErrorKind::Timeout, format!("The program {}.", end.describe())).with_partial(partial)
        );
    }
    Ok((command, output))
}

/// Returns the output of a program, both streams, as a result. The result is an error if the exit
/// code is not 0, or if a forbidden change could not be reverted.
///
/// # Errors
/// If the output cannot be read.
pub(crate) async fn answer(
    command: &CommandHandle,
    mut output: ProgramRunSummary,
    run: &ToolContext<'_>,
) -> Result<ToolResult, ToolFailure> {
    let budget = run.context().output_characters.saturating_sub(ROOM_FOR_REMARKS);
    let shown = render_output(&command.capture, OutputSelection::default(), budget, run).await?;
    output.truncated = shown.is_cut;
    output.output = shown.handle.map(|handle| handle.to_string());
    let end = command.end();
    let is_failed = end.as_ref().is_some_and(|end| end.code != Some(0) || end.is_tainted);
    let structured = serde_json::to_value(&output).map_err(|error| {
        ToolFailure::new(ErrorKind::Internal, "the result could not be written as JSON").caused_by(error)
    })?;
    let mut result = ToolResult::text(shown.text.clone());
    shown.noted_in(&mut result);
    if let Some(end) = &end {
        end.suggest_in(&mut result);
    }
    let result = result.with_structured_content(structured);
    let Some(end) = end else { return Ok(result) };
    let mut said = remarks(&end, run.environment().processes().programs().settings().kept_bytes);
    if is_failed {
        said.insert(0, format!("The program {}.", end.describe()));
        return Ok(result.followed_by(ToolResult::error(ErrorKind::ExecutionFailed, said.join(" "))));
    }
    Ok(if said.is_empty() { result } else { result.with_block(text_block(said.join(" "))) })
}
