//! The output of a command, for dialects that show little else.

use serde_json::Value;
use toolstead_domain::{AdapterInput, ToolResult, tool_result::NO_OUTPUT};

/// Maximum time in milliseconds by which a command may exceed its timeout until it has ended.
const TIME_TO_END: f64 = 5_000.0;
/// Maximum time in milliseconds by which a command may end before its timeout and still counts as having reached it.
const MOMENT: f64 = 100.0;

/// Output and result of a command.
pub(super) struct CommandOutput {
    /// Standard output, then standard error. If output is missing, Toolstead's own text, which describes what is
    /// missing. Other remarks on the command follow.
    pub(super) text: String,
    /// Exit code; the negative number of the signal if one ended the command.
    pub(super) code: i64,
}

impl CommandOutput {
    /// Extracts the output and the exit code from the result of a tool that runs commands.
    pub(super) fn of(answered: &AdapterInput<'_>) -> Self {
        let number = |name| answered.member(name).and_then(Value::as_i64);
        let code = number("exit_code").or_else(|| number("signal").map(|signal| -signal)).unwrap_or(0);
        Self { text: text(answered), code }
    }
}

fn text(answered: &AdapterInput<'_>) -> String {
    let stream = |name| answered.member(name).and_then(Value::as_str);
    let is_whole = answered.member("truncated") == Some(&Value::Bool(false));
    let text = match (stream("stdout"), stream("stderr")) {
        (Some(output), Some(errors)) if is_whole => format!("{output}{errors}"),
        _ => first_block(answered),
    };
    with_remark(text, command_remark(answered))
}

/// Appends the remark, if there is one, to a text, as a line in brackets.
pub(super) fn with_remark(mut text: String, remark: Option<String>) -> String {
    if let Some(remark) = remark {
        let line_break = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        text.push_str(&format!("{line_break}[{remark}]\n"));
    }
    text
}

/// Returns the remarks on a command: what was refused or undone, and why the command was ended. Omits a sentence that
/// only states the exit code or the timeout. `None` if nothing remains.
pub(super) fn command_remark(answered: &AdapterInput<'_>) -> Option<String> {
    let undone = || {
        let lines = answered.member("undone_or_refused").and_then(Value::as_array)?;
        Some(lines.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(". "))
    };
    let is_silent = || answered.member("task_id").is_none() && answered.member("output_bytes") == Some(&Value::from(0));
    let remark = match answered.outcome {
        Err(failure) => behind_end(&failure.message).to_owned(),
        Ok(result) => match result.said_blocks() {
            [_, .., last] => behind_end(last.get("text").and_then(Value::as_str).unwrap_or_default()).to_owned(),
            // Without output this text is the first block.
            [only] if is_silent() => {
                behind_end(only.get("text").and_then(Value::as_str).unwrap_or_default()).to_owned()
            }
            _ => undone().unwrap_or_default(),
        },
    };
    Some(remark).filter(|remark| !remark.is_empty() && remark != NO_OUTPUT)
}

/// Returns the text without its first sentence, if that only states the exit code or the timeout.
fn behind_end(text: &str) -> &str {
    let ends = ["The command ended with exit code ", "The program ended with exit code "];
    let late = ["The command ran out of time after ", "The program ran out of time after "];
    let starts = |words: &[&str]| words.iter().any(|words| text.starts_with(words));
    let end = if starts(&ends) {
        text.split_once(" s.")
    } else if starts(&late) {
        text.split_once(").")
    } else if text.starts_with("[exit code ") {
        text.split_once(']')
    } else {
        text.split_once("The command succeeded and printed nothing.")
    };
    match end {
        // The sentence contains a reason.
        Some((end, _)) if end.contains(" because ") => text,
        Some((_, rest)) => rest.trim(),
        None => text.trim(),
    }
}

/// Returns the timeout in milliseconds that ended a command: `wanted`, or the rounded duration of the command if it
/// differs clearly from `wanted`.
pub(super) fn time_had(answered: &AdapterInput<'_>, wanted: f64) -> f64 {
    match answered.member("duration_ms").and_then(Value::as_f64) {
        Some(ran) if ran + MOMENT < wanted || ran > wanted + TIME_TO_END => match ran < 1_000.0 {
            true => ran.round(),
            false => (ran / 1_000.0).round() * 1_000.0,
        },
        _ => wanted,
    }
}

/// Returns the output of a command: the text of the result's first block. It is empty if the command printed nothing,
/// or the call failed.
fn first_block(answered: &AdapterInput<'_>) -> String {
    let blocks = answered.outcome.map_or(&[][..], ToolResult::content);
    let text = blocks.first().and_then(|block| block.get("text")?.as_str()).unwrap_or_default();
    if text == NO_OUTPUT { String::new() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};
    use toolstead_domain::{ToolFailure, error_kind::ErrorKind, tool_result::text_block};

    #[test]
    fn only_the_exit_code_and_the_time_are_omitted_from_the_end_message() {
        for (text, expected) in [
            ("The command ended with exit code 3 after 0.1 s.", ""),
            ("The command ended with exit code 3 after 0.1 s. `a` was refused.", "`a` was refused."),
            (
                "The command ended with signal 9 after 0.1 s because memory ran out.",
                "The command ended with signal 9 after 0.1 s because memory ran out.",
            ),
            (
                "The command was ended after 1.0 s. It printed more than 9 bytes.",
                "The command was ended after 1.0 s. It printed more than 9 bytes.",
            ),
            ("The command ran out of time after 0.5 s and was ended (signal 15). `a` was refused.", "`a` was refused."),
            ("The command succeeded and printed nothing. It was reduced.", "It was reduced."),
            ("[exit code 1: no line matches] It was reduced.", "It was reduced."),
            ("It was reduced.", "It was reduced."),
        ] {
            assert_eq!(behind_end(text), expected);
        }
    }

    #[test]
    fn command_output_is_followed_by_the_remarks_on_the_command() {
        let answer = json!({"stdout": "a\n", "stderr": "", "truncated": false, "exit_code": 0, "output_bytes": 2});
        let result = ToolResult::text("a\n").with_structured_content(answer);
        let result = result.with_block(text_block("`.git/config` was undone.".into()));
        let arguments = Map::new();
        let answered = AdapterInput { arguments: &arguments, characters: 99, in_tags: false, outcome: Ok(&result) };
        assert_eq!(CommandOutput::of(&answered).text, "a\n[`.git/config` was undone.]\n");
    }

    #[test]
    fn the_reported_timeout_is_the_requested_one_unless_the_measured_time_differs() {
        for (ran, wanted, expected) in [
            (30_010, 30_000.0, 30_000.0),
            (32_100, 30_000.0, 30_000.0),
            (3_010, 60_000.0, 3_000.0),
            (60_010, 60.0, 60_000.0),
            (510, 120_000.0, 510.0),
        ] {
            let partial = ToolResult::text("a").with_structured_content(json!({"duration_ms": ran}));
            let failure = ToolFailure::new(ErrorKind::Timeout, "late").with_partial(partial);
            let arguments = Map::new();
            let answered =
                AdapterInput { arguments: &arguments, characters: 99, in_tags: false, outcome: Err(&failure) };
            assert_eq!(time_had(&answered, wanted), expected, "{ran} of {wanted}");
        }
    }
}
