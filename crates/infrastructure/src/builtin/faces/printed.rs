//! What a command printed, for systems that show its output and little else.

use serde_json::Value;
use toolstead_domain::{
    alias::face::Answered,
    tool_result::{NO_OUTPUT, ToolResult},
};

/// What a command printed, and how it ended.
pub(super) struct Printed {
    /// Standard output, then standard error. Where not all of it is there, our text, which says what is missing.
    pub(super) text: String,
    /// The exit code; of a command that a signal ended its number, negative.
    pub(super) code: i64,
}

impl Printed {
    /// Of an answer of a tool that runs commands.
    pub(super) fn of(answered: &Answered<'_>) -> Self {
        let number = |name| answered.member(name).and_then(Value::as_i64);
        let code = number("exit_code").or_else(|| number("signal").map(|signal| -signal)).unwrap_or(0);
        Self { text: text(answered), code }
    }
}

fn text(answered: &Answered<'_>) -> String {
    let stream = |name| answered.member(name).and_then(Value::as_str);
    let is_whole = answered.member("truncated") == Some(&Value::Bool(false));
    let mut text = match (stream("stdout"), stream("stderr")) {
        (Some(output), Some(errors)) if is_whole => format!("{output}{errors}"),
        _ => first_block(answered),
    };
    let undone = answered.member("undone_or_refused").and_then(Value::as_array);
    for remark in undone.into_iter().flatten().filter_map(Value::as_str) {
        let line_break = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        text.push_str(&format!("{line_break}[{remark}]\n"));
    }
    text
}

/// What a tool that runs commands says first: what they printed. How they ended follows.
fn first_block(answered: &Answered<'_>) -> String {
    let blocks = answered.outcome.map_or(&[][..], ToolResult::content);
    let text = blocks.first().and_then(|block| block.get("text")?.as_str()).unwrap_or_default();
    if text == NO_OUTPUT { String::new() } else { text.to_owned() }
}
