//! Commands, and shells in the background, in the format of Claude Code.

use crate::builtin::dialects::command_output::{CommandOutput, command_remark, time_had, with_remark};
use serde_json::{Value, json};
use toolstead_domain::{AdaptedResult, AdapterInput, error_kind::ErrorKind};

pub(super) fn bash(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    if let Err(failure) = answered.outcome {
        let is_over = failure.kind == ErrorKind::Timeout && failure.partial.is_some();
        let late = || with_remark(format!("Command timed out after {}", time(answered)), command_remark(answered));
        return is_over.then(|| AdaptedResult::error(late().trim_end()));
    }
    let CommandOutput { text, code } = CommandOutput::of(answered);
    let is_error = answered.error_kind().is_some();
    let said = match answered.member("task_id").and_then(Value::as_str) {
        Some(task) => format!("{text}Command running in background with ID: {task}"),
        None if code != 0 && is_error => format!("Exit code {code}\n{text}"),
        None => text,
    };
    let said = AdaptedResult { is_error, ..AdaptedResult::text(said.trim_end_matches('\n')) };
    Some(match shape(answered) {
        Some(shape) => said.with_structured(shape),
        None => said,
    })
}

fn shape(answered: &AdapterInput<'_>) -> Option<Value> {
    let member = |name| answered.member(name);
    let mut shape =
        json!({"stdout": member("stdout")?, "stderr": member("stderr")?, "interrupted": false, "isImage": false});
    for (ours, theirs) in [("task_id", "backgroundTaskId"), ("meaning", "returnCodeInterpretation")] {
        if let Some(value) = member(ours) {
            shape[theirs] = value.clone();
        }
    }
    Some(shape)
}

/// Returns the timeout that ended the command, as text: `2m 0s`.
fn time(answered: &AdapterInput<'_>) -> String {
    let given = |name| answered.arguments.get(name).and_then(Value::as_u64);
    let given = given("timeout").or_else(|| given("timeout_ms")).unwrap_or(120_000);
    let milliseconds = time_had(answered, given as f64) as u64;
    match (milliseconds / 60_000, milliseconds % 60_000) {
        (0, rest) => format!("{}s", rest as f64 / 1000.0),
        (minutes, rest) => format!("{minutes}m {}s", rest as f64 / 1000.0),
    }
}

/// Returns what the sandbox undid or refused to a background shell, as one text; `None` if there is nothing.
fn undone(answered: &AdapterInput<'_>) -> Option<String> {
    let lines = answered.member("undone_or_refused")?.as_array()?.iter().filter_map(Value::as_str);
    Some(lines.collect::<Vec<_>>().join(". ")).filter(|text| !text.is_empty())
}

pub(super) fn output(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    let member = |name| answered.member(name);
    if answered.error_kind().is_some() || member("truncated") != Some(&Value::Bool(false)) {
        return None;
    }
    let status = match member("status")?.as_str()? {
        "running" => "running",
        "succeeded" => "completed",
        "cancelled" => "killed",
        _ => "failed",
    };
    let code = member("exit_code").map(|code| format!("<exit_code>{code}</exit_code>\n\n")).unwrap_or_default();
    let printed = match member("output")?.as_str()? {
        "" => String::new(),
        text => format!("<stdout>\n{}\n</stdout>", text.trim_end_matches('\n')),
    };
    let text = format!("<status>{status}</status>\n\n{code}{printed}");
    Some(AdaptedResult::text(with_remark(text.trim_end().to_owned(), undone(answered)).trim_end()))
}

/// Returns the result for a shell that this call ended. Otherwise, for example if the shell had ended before, returns
/// `None`: Toolstead's own text is used.
pub(super) fn killed(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    let text = |name| answered.member(name)?.as_str();
    let (id, command) = (text("task_id")?, text("command")?);
    (answered.error_kind().is_none() && text("status")? == "cancelled").then(|| {
        let message = format!("Successfully killed shell: {id} ({command})");
        AdaptedResult::text(message.clone()).with_structured(json!({"message": message, "shell_id": id}))
    })
}
