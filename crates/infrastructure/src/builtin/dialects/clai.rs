//! Dialect adapters for clai: texts in the format of command line programs. Schemas use only the keywords of JSON
//! Schema that clai accepts: `type`, `description`, `items`, `enum`, `properties` and `required`.

mod programs;
mod sessions;
mod tree;

use super::{
    caller_text::shorten,
    web_page::{content, remark},
    wording::{is_dry_run, notes, with_remarks},
};
use serde_json::Value;
use std::path::Path;
use toolstead_domain::{
    AdaptedResult, AdapterInput, DialectAdapter, DialectToolDefinitions, alias::Rewrite::Default,
    tool_result::NO_OUTPUT,
};

/// Descriptions and schemas of the tools.
static DEFINITIONS: DialectToolDefinitions = DialectToolDefinitions::new(include_str!("clai.json"));

/// Dialect adapters in the order of their names.
pub(super) static ADAPTERS: &[DialectAdapter] = &[
    DialectAdapter::new("async_cmd", &DEFINITIONS).with_answer(sessions::started),
    DialectAdapter::new("async_cmd_await", &DEFINITIONS).with_answer(sessions::awaited),
    DialectAdapter::new("async_cmd_cancel", &DEFINITIONS)
        .with_answer(|answered| sessions::state(answered, "async_cmd_cancel")),
    DialectAdapter::new("async_cmd_logs", &DEFINITIONS).with_answer(sessions::logs),
    DialectAdapter::new("async_cmd_status", &DEFINITIONS)
        .with_answer(|answered| sessions::state(answered, "async_cmd_status")),
    DialectAdapter::new("cat", &DEFINITIONS).with_answer(|answered| shown(answered, "cat", read)),
    DialectAdapter::new("clai_check", &DEFINITIONS).with_answer(sessions::run_state),
    DialectAdapter::new("clai_help", &DEFINITIONS).with_answer(|answered| shown(answered, "clai_help", |_| None)),
    DialectAdapter::new("clai_result", &DEFINITIONS).with_answer(sessions::run_result),
    DialectAdapter::new("clai_wait_for_workers", &DEFINITIONS).with_answer(sessions::workers),
    DialectAdapter::new("cmd", &DEFINITIONS).with_answer(|answered| programs::command(answered, "cmd")),
    // The default format is that of the program `date`.
    DialectAdapter::new("date", &DEFINITIONS)
        .with_defaults(&[Default("format", "%a %b %e %H:%M:%S %Z %Y")])
        .with_answer(|answered| shown(answered, "date", time)),
    DialectAdapter::new("ffprobe", &DEFINITIONS).with_answer(|answered| programs::program(answered, "ffprobe")),
    DialectAdapter::new("file_tree", &DEFINITIONS).with_answer(|answered| shown(answered, "file_tree", tree::drawn)),
    DialectAdapter::new("file_type", &DEFINITIONS).with_answer(|answered| shown(answered, "file_type", kind)),
    DialectAdapter::new("find", &DEFINITIONS).with_answer(|answered| shown(answered, "find", found)),
    DialectAdapter::new("freetext_command", &DEFINITIONS)
        .with_answer(|answered| programs::command(answered, "freetext_command")),
    DialectAdapter::new("git", &DEFINITIONS).with_answer(|answered| programs::program(answered, "git")),
    DialectAdapter::new("go", &DEFINITIONS).with_answer(|answered| programs::program(answered, "go")),
    DialectAdapter::new("line_count", &DEFINITIONS).with_answer(|answered| shown(answered, "line_count", |_| None)),
    DialectAdapter::new("ls", &DEFINITIONS).with_answer(|answered| shown(answered, "ls", names)),
    DialectAdapter::new("pwd", &DEFINITIONS)
        .with_answer(|answered| shown(answered, "pwd", |answered| answered.member("cwd")?.as_str().map(str::to_owned))),
    DialectAdapter::new("rg", &DEFINITIONS).with_answer(|answered| shown(answered, "rg", hits)),
    DialectAdapter::new("rows_between", &DEFINITIONS).with_answer(|answered| shown(answered, "rows_between", rows)),
    DialectAdapter::new("sed", &DEFINITIONS).with_answer(|answered| shown(answered, "sed", replaced)),
    DialectAdapter::new("website_text", &DEFINITIONS).with_answer(|answered| {
        let is_shown = answered.error_kind().is_some() || answered.is_text_alone();
        is_shown.then(|| shown(answered, "website_text", website)).flatten()
    }),
    DialectAdapter::new("write_file", &DEFINITIONS).with_answer(|answered| shown(answered, "write_file", written)),
];

/// Returns the text that `text` formats, or Toolstead's own text if it returns `None`; `<EMPTY-RESPONSE>` instead of an
/// empty text. A failure becomes an error of the tool `name`.
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

/// Returns `true` if the result states that it is not truncated.
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

/// Returns the requested lines of a file with their numbers, without the remark that the file continues. `None` if the
/// result ends before the last requested line.
fn rows(answered: &AdapterInput<'_>) -> Option<String> {
    let last = answered.member("end_line").and_then(Value::as_i64);
    let wanted = answered.arguments.get("end_line").and_then(Value::as_i64);
    let (content, first) = (answered.member("content")?.as_str()?, answered.member("start_line")?.as_i64()?);
    let numbered = (first..).zip(content.lines()).map(|(number, line)| format!("{number}: {line}"));
    (is_complete(answered) || last == wanted).then(|| numbered.collect::<Vec<_>>().join("\n"))
}

/// Returns the kind of a file in the format of the program `file`; `None` if the caller requested its media type.
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

/// Returns the found paths, each beginning with the folder as the caller wrote it. Without filters the folder itself is
/// the first. `None` if the result is not complete.
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
