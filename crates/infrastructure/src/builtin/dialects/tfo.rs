//! Dialect adapters for TelemetryFlow: most results are JSON in a text, indented by two spaces.

use super::{
    command_output::{command_remark, time_had, with_remark},
    wording::{below, is_dry_run, missing, notes, pretty, remarks},
};
use serde_json::{Map, Value, json};
use toolstead_domain::{
    AdaptedResult, AdapterInput, Category, DialectAdapter, DialectToolDefinitions,
    alias::Rewrite::{Default, DefaultUnless},
    error_kind::ErrorKind,
};

/// Descriptions and schemas of the tools.
static DEFINITIONS: DialectToolDefinitions = DialectToolDefinitions::new(include_str!("tfo.json"));

/// Dialect adapters in the order of their names.
pub(super) static ADAPTERS: &[DialectAdapter] = &[
    DialectAdapter::new("claude_conversation", &DEFINITIONS).in_category(Category::Ai).with_answer(conversation),
    DialectAdapter::new("echo", &DEFINITIONS).in_category(Category::Utility),
    DialectAdapter::new("execute_command", &DEFINITIONS)
        .in_category(Category::System)
        .with_defaults(&[DefaultUnless("background", "timeout_ms", "30000")])
        .with_answer(command),
    DialectAdapter::new("list_directory", &DEFINITIONS)
        .in_category(Category::File)
        .with_defaults(&[Default("limit", "10000")])
        .with_answer(folder),
    DialectAdapter::new("read_file", &DEFINITIONS)
        .in_category(Category::File)
        .with_defaults(&[Default("line_numbers", "false"), Default("limit", "10000")])
        .with_answer(file),
    DialectAdapter::new("search_files", &DEFINITIONS)
        .in_category(Category::File)
        .with_defaults(&[Default("limit", "10000")])
        .with_answer(found),
    DialectAdapter::new("system_info", &DEFINITIONS).in_category(Category::System).with_answer(system),
    DialectAdapter::new("write_file", &DEFINITIONS)
        .in_category(Category::File)
        .with_defaults(&[Default("content", r#""""#), Default("create_dirs", "false")])
        .with_answer(written),
];

/// Returns the failure in TelemetryFlow's words: for the first missing one of the `required` parameters, or for a
/// timeout. `None` if the call succeeded or failed for another reason.
fn failed(answered: &AdapterInput<'_>, required: &[&str]) -> Option<AdaptedResult> {
    let kind = answered.error_kind()?;
    let late = || (kind == ErrorKind::Timeout).then(|| AdaptedResult::error("Tool execution timed out"));
    missing(answered, required).or_else(late)
}

fn conversation(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    match answered.error_kind() {
        Some(_) => failed(answered, &["message"]),
        None => answered.member("text")?.as_str().filter(|text| !text.is_empty()).map(AdaptedResult::text),
    }
}

fn command(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    if answered.error_kind() == Some(ErrorKind::Timeout) {
        let text = format!("Command timed out after {}s", seconds(answered));
        return Some(AdaptedResult::error(with_remark(text, command_remark(answered))));
    }
    if answered.outcome.is_err() {
        return failed(answered, &["command"]);
    }
    if answered.member("task_id").is_some() {
        return None;
    }
    let signal = || Some(Value::from(-answered.member("signal")?.as_i64()?));
    let code = answered.member("exit_code").cloned().or_else(signal);
    let json = json!({
        "exit_code": code,
        "stdout": answered.member("stdout")?,
        "stderr": answered.member("stderr")?,
    });
    // In that system an exit code is not an error.
    let is_error = answered.error_kind().is_some() && code.is_none_or(|code| code == 0);
    Some(AdaptedResult { is_error, ..AdaptedResult::text(pretty(&json)).with_extra_block(about_command(answered)) })
}

/// Returns the requested timeout in seconds if the command used it, otherwise the time that it ran.
fn seconds(answered: &AdapterInput<'_>) -> f64 {
    let given = answered.arguments.get("timeout").and_then(Value::as_f64).filter(|seconds| *seconds > 0.0);
    time_had(answered, given.unwrap_or(30.0) * 1000.0) / 1000.0
}

/// Returns the remarks on a command for which TelemetryFlow's JSON has no member, for example that the output is cut.
fn about_command(answered: &AdapterInput<'_>) -> Option<String> {
    let mut lines: Vec<String> = command_remark(answered).into_iter().collect();
    if answered.member("truncated") == Some(&Value::Bool(true)) {
        lines.push(match answered.member("output").and_then(Value::as_str) {
            Some(handle) => format!("[the output is cut; all of it is kept as `{handle}`]"),
            None => "[the output is cut]".into(),
        });
    }
    Some(lines.join("\n"))
}

fn folder(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    let path = answered.text_argument("path").unwrap_or(".");
    match answered.error_kind() {
        Some(ErrorKind::NotFound | ErrorKind::UnsupportedType) => {
            return Some(AdaptedResult::error(format!("Not a directory: {path}")));
        }
        Some(_) => return failed(answered, &[]),
        None => {}
    }
    let entries = answered.member("entries")?.as_array()?.iter().map(|entry| {
        let kind = if entry["type"] == "directory" { "directory" } else { "file" };
        json!({
            "name": entry["name"],
            "path": below(path, entry["path"].as_str().unwrap_or("")),
            "type": kind,
            "size": entry.get("size"),
        })
    });
    Some(list(answered, entries.collect()))
}

fn found(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    if answered.error_kind().is_some() {
        return failed(answered, &[]);
    }
    let files = answered.member("files")?.as_array()?.iter().filter_map(|file| file.get("path").cloned());
    Some(list(answered, files.collect()))
}

/// Returns the items as a JSON array, followed by a block with the remarks on missing entries.
fn list(answered: &AdapterInput<'_>, items: Vec<Value>) -> AdaptedResult {
    AdaptedResult::text(pretty(&items.into())).with_extra_block(remarks(&answered.text()))
}

/// Returns the text of a file that was read to its end, with Toolstead's notes in a block of their own, or the failure
/// of the call. `None` for other files and for parts, for Toolstead's own text.
fn file(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    if answered.error_kind().is_some() {
        return failed(answered, &["path"]);
    }
    let is_whole = answered.member("truncated") == Some(&Value::Bool(false));
    let is_text = answered.member("kind").is_some_and(|kind| kind == "text");
    let content = answered.member("content")?.as_str().filter(|content| !content.is_empty())?;
    let text = answered.text();
    let notes = text.strip_prefix(content.trim_end_matches('\n')).map(|notes| notes.trim_matches('\n').to_owned());
    (is_whole && is_text).then(|| AdaptedResult::text(content).with_extra_block(notes))
}

const SYSTEM: [&str; 9] =
    ["platform", "system", "release", "version", "machine", "processor", "python_version", "cwd", "user"];

fn system(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    if answered.error_kind().is_some() {
        return failed(answered, &[]);
    }
    let facts = answered.structured()?;
    let members: Map<String, Value> =
        SYSTEM.iter().map(|name| ((*name).to_owned(), facts.get(name).cloned().unwrap_or_default())).collect();
    Some(AdaptedResult::text(pretty(&members.into())))
}

fn written(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    if answered.error_kind().is_some() {
        return failed(answered, &["path"]);
    }
    if is_dry_run(answered) {
        return None;
    }
    Some(
        AdaptedResult::text(format!("Written to {}", answered.text_argument("path")?))
            .with_extra_block(notes(answered)),
    )
}
