//! Results of reading and changing files in the format of Claude Code.

use super::not_done;
use crate::builtin::dialects::{
    caller_text::with_members,
    wording::{is_dry_run, notes},
};
use serde_json::{Value, json};
use toolstead_domain::{AdaptedResult, AdapterInput};

/// Returns the text of a file with the members that Claude Code's clients use, or the failure of the call. For other
/// files it returns `None`, for Toolstead's own result.
pub(super) fn read(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    if answered.error_kind().is_some() {
        return not_done(answered);
    }
    let member = |name| answered.member(name);
    let content = member("content").filter(|_| member("kind").is_some_and(|kind| kind == "text"))?.as_str()?;
    let file = json!({
        "filePath": path(answered),
        "content": content,
        "numLines": content.lines().count(),
        "startLine": member("start_line").unwrap_or(&Value::from(1)),
        "totalLines": member("total_lines").unwrap_or(&Value::Null),
    });
    Some(with_members(answered, AdaptedResult::text(answered.text()), json!({"type": "text", "file": file})))
}

pub(super) fn written(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    if answered.error_kind().is_some() {
        return not_done(answered);
    }
    if is_dry_run(answered) {
        return None;
    }
    let (path, is_new) = (path(answered), is_new(answered));
    let shape = json!({
        "type": if is_new { "create" } else { "update" },
        "filePath": path,
        "content": answered.text_argument("content").unwrap_or_default(),
        "structuredPatch": if is_new { json!([]) } else { patch(answered.member("diff")) },
    });
    let text = if is_new { created(path) } else { format!("The file {path} has been updated.") };
    Some(with_members(answered, AdaptedResult::text(text).with_extra_block(notes(answered)), shape))
}

pub(super) fn edited(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    if answered.error_kind().is_some() {
        return not_done(answered);
    }
    if is_dry_run(answered) {
        return None;
    }
    let (path, text) = (path(answered), |name| answered.text_argument(name).unwrap_or_default());
    let shape = json!({
        "filePath": path,
        "oldString": text("old_string"),
        "newString": text("new_string"),
        "structuredPatch": patch(answered.member("diff")),
        "userModified": false,
        "replaceAll": answered.arguments.get("replace_all") == Some(&Value::Bool(true)),
    });
    let said = if is_new(answered) { created(path) } else { updated(path, &answered.text()) };
    Some(with_members(answered, AdaptedResult::text(said).with_extra_block(notes(answered)), shape))
}

pub(super) fn edited_several_times(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    if answered.error_kind().is_some() {
        return not_done(answered);
    }
    if is_dry_run(answered) {
        return None;
    }
    let edits = answered.arguments.get("edits").and_then(Value::as_array).map_or(0, Vec::len);
    let (path, text) = (path(answered), answered.text());
    let (_, of_files) = text.split_once('\n').unwrap_or_default();
    Some(AdaptedResult::text(format!(
        "Applied {edits} edit{} to {path}:\n{of_files}",
        if edits == 1 { "" } else { "s" }
    )))
}

/// Returns the path as the caller wrote it.
fn path<'a>(answered: &AdapterInput<'a>) -> &'a str {
    let given = answered.text_argument("file_path").or_else(|| answered.text_argument("path"));
    given.or_else(|| answered.member("path")?.as_str()).unwrap_or_default()
}

fn is_new(answered: &AdapterInput<'_>) -> bool {
    answered.member("created") == Some(&Value::Bool(true))
}

fn created(path: &str) -> String {
    format!("File created successfully at: {path}")
}

/// Returns the text for a changed file: a sentence, then `text` without its first line, which states the number of
/// changes. The other lines show the surroundings of the change.
fn updated(path: &str, text: &str) -> String {
    match text.split_once('\n') {
        Some((_, lines)) => format!("The file {path} has been updated. These lines stand there now:\n{lines}"),
        None => format!("The file {path} has been updated."),
    }
}

/// Converts a unified diff into the JSON array of its hunks that Claude Code's clients use; empty without a diff.
fn patch(diff: Option<&Value>) -> Value {
    let mut hunks: Vec<Value> = Vec::new();
    for line in diff.and_then(Value::as_str).into_iter().flat_map(str::lines) {
        if let Some(head) = line.strip_prefix("@@ -") {
            hunks.extend(hunk(head));
        } else if let Some(lines) = hunks.last_mut().and_then(|hunk| hunk["lines"].as_array_mut()) {
            lines.push(line.into());
        }
    }
    hunks.into()
}

/// Parses the line ranges in the head of a hunk, such as `1,5 +1,5 @@`, into a JSON hunk that has no lines yet.
fn hunk(head: &str) -> Option<Value> {
    let (places, _) = head.split_once(" @@")?;
    let (old, new) = places.split_once(" +")?;
    let range = |text: &str| {
        let (start, lines) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse::<u64>().ok()?, lines.parse::<u64>().ok()?))
    };
    let ((old_start, old_lines), (new_start, new_lines)) = (range(old)?, range(new)?);
    Some(
        json!({"oldStart": old_start, "oldLines": old_lines, "newStart": new_start, "newLines": new_lines, "lines": []}),
    )
}
