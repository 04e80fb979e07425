//! Dialect adapters for clai: texts in the format of command line programs. Schemas use only the keywords of JSON
//! Schema that clai accepts: `type`, `description`, `items`, `enum`, `properties` and `required`.

mod programs;
mod sessions;
mod tree;

use super::{
    AdapterTable,
    caller_text::shorten,
    web_page::{content, remark},
    wording::{is_dry_run, notes, with_remarks},
};
use serde_json::Value;
use std::path::Path;
use toolstead_domain::{AdaptedResult, AdapterInput, DialectAdapter, alias::Rewrite::Default, tool_result::NO_OUTPUT};

/// Dialect adapters by the names of the tools.
pub(super) const ADAPTERS: AdapterTable = &[
    (
        "async_cmd",
        DialectAdapter::new(
            "Start a program without waiting for its end. With args it gets them as they are.",
            r#"{"type": "object", "required": ["command"], "properties": {
                "command": {"type": "string", "description": "The program: its name or path. Without args, a line for a shell."},
                "args": {"type": "array", "items": {"type": "string"}, "description": "Its arguments, one by one."},
                "cwd": {"type": "string", "description": "The folder that it starts in."},
                "env": {"type": "object", "description": "Environment variables."}}}"#,
        )
        .with_answer(sessions::started),
    ),
    (
        "async_cmd_await",
        DialectAdapter::new(
            "Wait until async commands have ended.",
            r#"{"type": "object", "required": ["async_cmd_ids", "timeout_seconds"], "properties": {
                "async_cmd_ids": {"type": "array", "items": {"type": "string"}, "description": "Which ones."},
                "timeout_seconds": {"type": "number", "description": "How long to wait."}}}"#,
        )
        .with_answer(sessions::awaited),
    ),
    ("async_cmd_cancel", DialectAdapter::new("End an async command.", ONE_COMMAND).with_answer(|answered| sessions::state(answered, "async_cmd_cancel"))),
    (
        "async_cmd_logs",
        DialectAdapter::new("Show what an async command has printed.", ONE_COMMAND).with_answer(sessions::logs),
    ),
    (
        "async_cmd_status",
        DialectAdapter::new("Tell the state of an async command.", ONE_COMMAND)
            .with_answer(|answered| sessions::state(answered, "async_cmd_status")),
    ),
    (
        "cat",
        DialectAdapter::new(
            "Show what a file holds.",
            r#"{"type": "object", "required": ["file"], "properties": {
                "file": {"type": "string", "description": "The file."},
                "number": {"type": "boolean", "description": "Number the lines."},
                "showEnds": {"type": "boolean", "description": "Mark the end of each line with $."},
                "squeezeBlank": {"type": "boolean", "description": "Show one of several blank lines in a row."}}}"#,
        )
        .with_answer(|answered| shown(answered, "cat", read)),
    ),
    (
        "clai_check",
        DialectAdapter::new("Tell the state of a run: RUNNING, COMPLETED or FAILED.", ONE_RUN).with_answer(sessions::run_state),
    ),
    (
        "clai_help",
        DialectAdapter::new("Explain the tools.", NOTHING).with_answer(|answered| shown(answered, "clai_help", |_| None)),
    ),
    (
        "clai_result",
        DialectAdapter::new("Show what a run has printed, and its exit code.", ONE_RUN).with_answer(sessions::run_result),
    ),
    (
        "clai_wait_for_workers",
        DialectAdapter::new(
            "Wait until all runs have ended.",
            r#"{"type": "object", "required": ["timeout_seconds"], "properties": {
                "timeout_seconds": {"type": "number", "description": "How long to wait."}}}"#,
        )
        .with_answer(sessions::workers),
    ),
    (
        "cmd",
        DialectAdapter::new(
            "Run a command line. Fails if its exit code is not 0.",
            r#"{"type": "object", "required": ["command"], "properties": {
                "command": {"type": "string", "description": "The command line."},
                "timeout_seconds": {"type": "number", "description": "How long it may take; 60 without it."}}}"#,
        )
        .with_answer(|answered| programs::command(answered, "cmd")),
    ),
    (
        "date",
        DialectAdapter::new(
            "Tell the current date and time.",
            r#"{"type": "object", "required": [], "properties": {
                "format": {"type": "string", "description": "A format of strftime, like %Y-%m-%d."},
                "utc": {"type": "boolean", "description": "In UTC."},
                "rfc3339": {"type": "boolean", "description": "In the form of RFC 3339."},
                "unix": {"type": "boolean", "description": "In seconds since 1970."}}}"#,
        )
        // The default format of the program `date`.
        .with_defaults(&[Default("format", "%a %b %e %H:%M:%S %Z %Y")])
        .with_answer(|answered| shown(answered, "date", time)),
    ),
    (
        "ffprobe",
        DialectAdapter::new(
            "Tell what a sound or video file holds.",
            r#"{"type": "object", "required": ["file"], "properties": {
                "file": {"type": "string", "description": "The file."},
                "format": {"type": "string", "enum": ["json", "xml", "csv", "flat", "ini", "default"], "description": "The form of the answer."},
                "showFormat": {"type": "boolean", "description": "Tell of its container."},
                "showStreams": {"type": "boolean", "description": "Tell of its streams."},
                "showFrames": {"type": "boolean", "description": "Tell of its frames."},
                "selectStreams": {"type": "string", "description": "Only these streams, like v:0."},
                "showEntries": {"type": "string", "description": "Only these entries, like format=duration."}}}"#,
        )
        .with_answer(|answered| programs::program(answered, "ffprobe")),
    ),
    (
        "file_tree",
        DialectAdapter::new(
            "Show what a folder holds, as a tree.",
            r#"{"type": "object", "required": ["directory"], "properties": {
                "directory": {"type": "string", "description": "The folder."},
                "level": {"type": "integer", "description": "How many levels."}}}"#,
        )
        .with_answer(|answered| shown(answered, "file_tree", tree::drawn)),
    ),
    (
        "file_type",
        DialectAdapter::new(
            "Tell what kind of file a file is.",
            r#"{"type": "object", "required": ["file_path"], "properties": {
                "file_path": {"type": "string", "description": "The file."},
                "mime_type": {"type": "boolean", "description": "Tell its MIME type."}}}"#,
        )
        .with_answer(|answered| shown(answered, "file_type", kind)),
    ),
    (
        "find",
        DialectAdapter::new(
            "Find files and folders below a folder.",
            r#"{"type": "object", "required": ["directory"], "properties": {
                "directory": {"type": "string", "description": "The folder."},
                "name": {"type": "string", "description": "A pattern of the name, like *.go."},
                "type": {"type": "string", "enum": ["f", "d"], "description": "f: files, d: folders."},
                "maxdepth": {"type": "integer", "description": "How many levels."}}}"#,
        )
        .with_answer(|answered| shown(answered, "find", found)),
    ),
    (
        "freetext_command",
        DialectAdapter::new(
            "Run a command line. Fails if its exit code is not 0.",
            r#"{"type": "object", "required": ["command"], "properties": {
                "command": {"type": "string", "description": "The command line."}}}"#,
        )
        .with_answer(|answered| programs::command(answered, "freetext_command")),
    ),
    (
        "git",
        DialectAdapter::new(
            "Run a git command that only reads.",
            r#"{"type": "object", "required": ["operation"], "properties": {
                "operation": {"type": "string", "enum": ["log", "diff", "show", "status", "blame"], "description": "The command."},
                "file": {"type": "string", "description": "A file, for diff, show and blame."},
                "commit": {"type": "string", "description": "A commit, for show and diff."},
                "range": {"type": "string", "description": "A range of revisions, for log and diff."},
                "n": {"type": "integer", "description": "How many entries of the log."},
                "dir": {"type": "string", "description": "The folder of the repository."}}}"#,
        )
        .with_answer(|answered| programs::program(answered, "git")),
    ),
    (
        "go",
        DialectAdapter::new(
            "Run a command of the go tool, like test or build.",
            r#"{"type": "object", "required": ["command"], "properties": {
                "command": {"type": "string", "description": "The command."},
                "args": {"type": "string", "description": "What stands behind it."},
                "dir": {"type": "string", "description": "The folder that it runs in."}}}"#,
        )
        .with_answer(|answered| programs::program(answered, "go")),
    ),
    (
        "line_count",
        DialectAdapter::new("Count the lines of a file.", ONE_FILE).with_answer(|answered| shown(answered, "line_count", |_| None)),
    ),
    (
        "ls",
        DialectAdapter::new(
            "List a folder.",
            r#"{"type": "object", "required": ["directory"], "properties": {
                "directory": {"type": "string", "description": "The folder."},
                "all": {"type": "boolean", "description": "Also what is hidden."},
                "long": {"type": "boolean", "description": "With permissions, sizes and times."}}}"#,
        )
        .with_answer(|answered| shown(answered, "ls", names)),
    ),
    (
        "pwd",
        DialectAdapter::new("Tell the current folder.", NOTHING).with_answer(|answered| {
            shown(answered, "pwd", |answered| answered.member("cwd")?.as_str().map(str::to_owned))
        }),
    ),
    (
        "rg",
        DialectAdapter::new(
            "Find text in files by a regular expression, as ripgrep does.",
            r#"{"type": "object", "required": ["pattern"], "properties": {
                "pattern": {"type": "string", "description": "The expression."},
                "path": {"type": "string", "description": "The file or folder to search."},
                "case_sensitive": {"type": "boolean", "description": "Tell upper from lower case."},
                "line_number": {"type": "boolean", "description": "Show line numbers."},
                "hidden": {"type": "boolean", "description": "Search what is hidden, too."}}}"#,
        )
        .with_answer(|answered| shown(answered, "rg", hits)),
    ),
    (
        "rows_between",
        DialectAdapter::new(
            "Show the lines of a file from one to another, both included.",
            r#"{"type": "object", "required": ["file_path", "start_line", "end_line"], "properties": {
                "file_path": {"type": "string", "description": "The file."},
                "start_line": {"type": "integer", "description": "The first line, from 1."},
                "end_line": {"type": "integer", "description": "The last line."}}}"#,
        )
        .with_answer(|answered| shown(answered, "rows_between", rows)),
    ),
    (
        "sed",
        DialectAdapter::new(
            "Replace what fits a regular expression in the lines of a file, or in some of them.",
            r#"{"type": "object", "required": ["file_path", "pattern", "repl"], "properties": {
                "file_path": {"type": "string", "description": "The file."},
                "pattern": {"type": "string", "description": "The expression."},
                "repl": {"type": "string", "description": "What to put in its place."},
                "start_line": {"type": "integer", "description": "The first line to change, from 1."},
                "end_line": {"type": "integer", "description": "The last line to change."}}}"#,
        )
        .with_answer(|answered| shown(answered, "sed", replaced)),
    ),
    (
        "website_text",
        DialectAdapter::new(
            "Get the text of a website.",
            r#"{"type": "object", "required": ["url"], "properties": {
                "url": {"type": "string", "description": "The URL of the website."}}}"#,
        )
        .with_answer(|answered| {
            let is_shown = answered.error_kind().is_some() || answered.is_text_alone();
            is_shown.then(|| shown(answered, "website_text", website)).flatten()
        }),
    ),
    (
        "write_file",
        DialectAdapter::new(
            "Write a file, or add to its end. It is created with its folders if it is not there.",
            r#"{"type": "object", "required": ["file_path", "content"], "properties": {
                "file_path": {"type": "string", "description": "The file."},
                "content": {"type": "string", "description": "What to write."},
                "append": {"type": "boolean", "description": "Add it to the end."}}}"#,
        )
        .with_answer(|answered| shown(answered, "write_file", written)),
    ),
];

const NOTHING: &str = r#"{"type": "object", "required": [], "properties": {}}"#;
const ONE_FILE: &str = r#"{"type": "object", "required": ["file_path"], "properties": {
    "file_path": {"type": "string", "description": "The file."}}}"#;
const ONE_COMMAND: &str = r#"{"type": "object", "required": ["async_cmd_id"], "properties": {
    "async_cmd_id": {"type": "string", "description": "Which one."}}}"#;
const ONE_RUN: &str = r#"{"type": "object", "required": ["run_id"], "properties": {
    "run_id": {"type": "string", "description": "Which run."}}}"#;

/// Returns the result of a tool: its text in clai's format, or Toolstead's own text. An empty text is marked as such.
fn shown(
    answered: &AdapterInput<'_>,
    name: &str,
    text: fn(&AdapterInput<'_>) -> Option<String>,
) -> Option<AdaptedResult> {
    if answered.error_kind().is_some() {
        return Some(failed(name, &answered.text()));
    }
    let text = text(answered).unwrap_or_else(|| answered.text().into_owned());
    Some(AdaptedResult::text(if text.is_empty() || text == NO_OUTPUT { "<EMPTY-RESPONSE>" } else { &text }))
}

fn failed(name: &str, error: &str) -> AdaptedResult {
    AdaptedResult::error(format!("ERROR: failed to run tool: {name}, error: {error}"))
}

/// Returns `true` if the result is complete.
fn is_complete(answered: &AdapterInput<'_>) -> bool {
    answered.member("truncated") == Some(&Value::Bool(false))
}

fn is_set(answered: &AdapterInput<'_>, flag: &str) -> bool {
    answered.arguments.get(flag) == Some(&Value::Bool(true))
}

fn items<'a>(answered: &AdapterInput<'a>, list: &str) -> Option<&'a [Value]> {
    answered.member(list)?.as_array().map(Vec::as_slice)
}

fn read(answered: &AdapterInput<'_>) -> Option<String> {
    let is_changed = ["number", "showEnds", "squeezeBlank"].iter().any(|flag| is_set(answered, flag));
    let is_text = answered.member("kind").is_some_and(|kind| kind == "text");
    let content = || answered.member("content")?.as_str().map(str::to_owned);
    (is_text && !is_changed && is_complete(answered)).then(content).flatten()
}

/// Omits the remark that the file continues, because the caller requested only a part.
fn rows(answered: &AdapterInput<'_>) -> Option<String> {
    let last = answered.member("end_line").and_then(Value::as_i64);
    let wanted = answered.arguments.get("end_line").and_then(Value::as_i64);
    let (content, first) = (answered.member("content")?.as_str()?, answered.member("start_line")?.as_i64()?);
    let numbered = (first..).zip(content.lines()).map(|(number, line)| format!("{number}: {line}"));
    (is_complete(answered) || last == wanted).then(|| numbered.collect::<Vec<_>>().join("\n"))
}

/// Returns the kind of a file in the format of the program `file`.
fn kind(answered: &AdapterInput<'_>) -> Option<String> {
    if is_set(answered, "mime_type") {
        return None;
    }
    let text = |name| answered.member(name).and_then(Value::as_str);
    let described = match (text("kind")?, text("description"), text("encoding")) {
        ("file", _, _) if answered.member("size").is_some_and(|size| size == 0) => "empty".to_owned(),
        ("file", Some(description), _) => description.to_owned(),
        ("file", None, Some(encoding)) => format!("{} text", encoding.to_uppercase()),
        ("file", None, None) => text("mime").unwrap_or("data").to_owned(),
        ("symlink", ..) => format!("symbolic link to {}", text("target").unwrap_or_default()),
        ("folder", ..) => "directory".to_owned(),
        (other, ..) => other.to_owned(),
    };
    Some(format!("{}: {described}", answered.text_argument("file_path")?))
}

/// Returns the names in a folder, without the folder itself.
fn names(answered: &AdapterInput<'_>) -> Option<String> {
    if is_set(answered, "long") || !is_complete(answered) {
        let text = answered.text();
        let below: Vec<&str> = text.lines().skip(1).map(str::trim_start).collect();
        return Some(below.join("\n"));
    }
    let names: Vec<&str> = items(answered, "entries")?.iter().filter_map(|entry| entry["name"].as_str()).collect();
    Some(with_remarks(names.join("\n"), answered))
}

/// Returns paths that begin with the folder as the caller wrote it. The folder itself is included.
fn found(answered: &AdapterInput<'_>) -> Option<String> {
    if !is_complete(answered) {
        return None;
    }
    let folder = answered.text_argument("directory")?;
    let below = |path: &str| match folder {
        "." | "./" => format!("./{path}"),
        _ => path.to_owned(),
    };
    let is_everything = ["name", "type"].iter().all(|filter| answered.text_argument(filter).is_none());
    let paths = items(answered, "files")?.iter().filter_map(|file| file["path"].as_str()).map(below);
    let lines: Vec<String> = is_everything.then(|| folder.to_owned()).into_iter().chain(paths).collect();
    Some(with_remarks(lines.join("\n"), answered))
}

fn hits(answered: &AdapterInput<'_>) -> Option<String> {
    let given = |name| answered.text_argument(name).unwrap_or_default();
    match items(answered, "files")? {
        [] if answered.member("total_matches").and_then(Value::as_u64) == Some(0) => {
            let text = format!("found no hits with pattern: '{}'", shorten(given("pattern")));
            Some(with_remarks(text, answered))
        }
        // A single searched file is not named.
        [file] if file == given("path") => {
            let (text, named) = (answered.text(), format!("{}:", given("path")));
            let lines: Vec<&str> = text.lines().map(|line| line.strip_prefix(&named).unwrap_or(line)).collect();
            Some(lines.join("\n"))
        }
        _ => None,
    }
}

fn replaced(answered: &AdapterInput<'_>) -> Option<String> {
    let text = |name| answered.text_argument(name).unwrap_or_default();
    let line = |name| answered.arguments.get(name).and_then(Value::as_i64);
    let lines = match (line("start_line"), line("end_line")) {
        (Some(first), Some(last)) => format!(" ({first}-{last})"),
        _ => String::new(),
    };
    let (pattern, replacement, path) = (shorten(text("pattern")), shorten(text("repl")), text("file_path"));
    let text = format!("sed: replaced occurrences of {pattern:?} with {replacement:?} in {path}{lines}");
    changed(answered, text)
}

fn written(answered: &AdapterInput<'_>) -> Option<String> {
    let path = answered.text_argument("file_path").or_else(|| answered.text_argument("path"))?;
    let bytes = answered.text_argument("content")?.len();
    changed(answered, format!("Successfully wrote {bytes} bytes to {}", Path::new(path).display()))
}

/// Returns the text for a changed file, with remarks. A dry run returns `None`, for Toolstead's own text.
fn changed(answered: &AdapterInput<'_>, text: String) -> Option<String> {
    let notes = notes(answered).map(|notes| format!("\n{notes}")).unwrap_or_default();
    (!is_dry_run(answered)).then(|| text + &notes)
}

fn website(answered: &AdapterInput<'_>) -> Option<String> {
    let text = content(answered)?.to_owned();
    Some(match remark(answered) {
        Some(remark) => format!("{text}\n[{remark}]"),
        None => text,
    })
}

fn time(answered: &AdapterInput<'_>) -> Option<String> {
    let member = |name| answered.member(name);
    if is_set(answered, "unix") {
        return member("unix").map(Value::to_string);
    }
    let name = if is_set(answered, "rfc3339") { "rfc3339" } else { "formatted" };
    member(name)?.as_str().map(str::to_owned)
}
