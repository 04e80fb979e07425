//! The faces of Micro-X: texts, with errors that begin with the word.

use super::{
    Faces,
    printed::{Printed, time_had, told_beside, with_remark},
    wording::{is_dry_run, notes, pretty},
};
use crate::services::anthropic_admin::money::rounded;
use serde_json::{Map, Value};
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
        "anthropic_usage",
        Face::new(
            "Report what an organization uses at Anthropic: tokens (usage), spend in USD (cost), or productivity with \
             Claude Code (claude_code).",
            r#"{"type": "object", "properties": {
                "action": {"type": "string", "enum": ["usage", "cost", "claude_code"], "description": "The report"},
                "starting_at": {"type": "string", "description": "Start: RFC 3339 for usage and cost, YYYY-MM-DD for claude_code"},
                "ending_at": {"type": "string", "description": "End, in the same format"},
                "bucket_width": {"type": "string", "description": "1m, 1h or 1d; cost has 1d only"},
                "group_by": {"type": "array", "items": {"type": "string"}, "description": "Fields to group by, like model"},
                "limit": {"type": "number", "description": "How many buckets or records"}},
                "required": ["action", "starting_at"]}"#,
        )
        .saying(reported_usage),
    ),
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
        "web_search",
        Face::new(
            "Search the web and return titles, URLs and descriptions. Read a page itself with web_fetch.",
            r#"{"type": "object", "properties": {
                "query": {"type": "string", "description": "The query, at most 400 characters"},
                "count": {"type": "number", "description": "How many results, 1 to 20, 5 without it"}},
                "required": ["query"]}"#,
        )
        .saying(searched),
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

fn searched(answered: &Answered<'_>) -> Option<Said> {
    if answered.text_argument("query").is_some_and(|query| query.trim().is_empty()) {
        return Some(Said::error("Error: query must not be empty"));
    }
    failed(answered, "Error").or_else(|| {
        let query = answered.member("query")?.as_str()?;
        let hits = answered.member("results")?.as_array()?;
        if hits.is_empty() {
            return Some(Said::text(format!("No results found for: {query}")));
        }
        let mut text = format!("Search: \"{query}\"\nResults: {}", hits.len());
        for (at, hit) in hits.iter().enumerate() {
            let part = |name: &str| hit.get(name).and_then(Value::as_str).unwrap_or_default();
            text += &format!("\n\n{}. {}\n   {}", at + 1, part("title"), part("url"));
            if !part("description").is_empty() {
                text += &format!("\n   {}", part("description"));
            }
        }
        Some(Said::text(text))
    })
}

/// The report under its label, as JSON. Dollars are rounded only here, each and their sum.
fn reported_usage(answered: &Answered<'_>) -> Option<Said> {
    const ACTIONS: [(&str, &str); 3] =
        [("usage", "Token Usage Report"), ("cost", "Cost Report"), ("claude_code", "Claude Code Usage Report")];
    let action = answered.text_argument("action");
    let Some((action, label)) = ACTIONS.into_iter().find(|(known, _)| Some(*known) == action) else {
        let action = action.filter(|_| answered.error_kind() == Some(ErrorKind::InvalidInput))?;
        let text = format!("Unknown action '{action}'. Must be one of: usage, cost, claude_code.");
        return Some(Said::error(text));
    };
    failed(answered, "Error querying Anthropic Admin API").or_else(|| {
        let mut data = answered.member("data")?.clone();
        let next = answered.member("next_page");
        let mut report = Map::new();
        if action == "cost" {
            let results =
                data.as_array_mut()?.iter_mut().filter_map(|bucket| bucket.get_mut("results")?.as_array_mut());
            for item in results.flatten().filter_map(Value::as_object_mut) {
                if let Some(amount) = item.get("amount_usd").and_then(rounded_dollars) {
                    item.shift_remove("amount");
                    item.insert("amount_usd".into(), amount);
                }
            }
        }
        report.insert("data".into(), data);
        report.insert("has_more".into(), next.is_some().into());
        report.insert("next_page".into(), next.cloned().unwrap_or_default());
        if let Some(total) = answered.member("totals")?.get("amount_usd").filter(|_| action == "cost") {
            report.insert("total_amount_usd".into(), rounded_dollars(total)?);
        }
        Some(Said::text(format!("{label}:\n{}", pretty(&Value::Object(report)))))
    })
}

/// Dollars with two digits behind the point, as a number.
fn rounded_dollars(amount: &Value) -> Option<Value> {
    serde_json::from_str(&rounded(amount.as_str()?).ok()?).ok()
}

fn reported(answered: &Answered<'_>) -> Option<Said> {
    failed(answered, "Error").or_else(|| plain(answered))
}
