//! Dialect adapters for Claude Code: plain text, with the members that its hooks and clients use.

mod asking;
mod commands;
mod files;
mod search;
mod web;

use super::{AdapterTable, caller_text::shorten};
use toolstead_domain::{AdaptedResult, AdapterInput, DialectAdapter, alias::Rewrite::Default, error_kind::ErrorKind};

/// Dialect adapters by the names of the tools.
pub(super) const ADAPTERS: AdapterTable = &[
    (
        "AskUserQuestion",
        DialectAdapter::new(
            "Asks the user questions with choices. The user can always answer in other words.",
            r#"{"type": "object", "properties": {
                "questions": {"type": "array", "description": "One to four.", "items": {"type": "object", "properties": {
                    "question": {"type": "string"},
                    "header": {"type": "string", "description": "A label of at most 12 characters."},
                    "options": {"type": "array", "description": "Two to four.", "items": {"type": "object", "properties": {
                        "label": {"type": "string"}, "description": {"type": "string"}},
                        "required": ["label", "description"]}},
                    "multiSelect": {"type": "boolean", "description": "Several may be chosen."}},
                    "required": ["question", "header", "options", "multiSelect"]}}},
                "required": ["questions"]}"#,
        )
        .with_answer(asking::asked),
    ),
    (
        "Bash",
        DialectAdapter::new(
            "Runs a command in a fresh shell. Use Read, Edit, Write, Glob and Grep for files, not cat, sed, find or grep.",
            r#"{"type": "object", "properties": {
                "command": {"type": "string"},
                "timeout": {"type": "number", "description": "In milliseconds, at most 600000."},
                "description": {"type": "string", "description": "What it does, in five to ten words."},
                "run_in_background": {"type": "boolean", "description": "Read its output later with BashOutput."}},
                "required": ["command"]}"#,
        )
        .with_answer(commands::bash),
    ),
    (
        "BashOutput",
        DialectAdapter::new(
            "Shows what a shell in the background has printed since the last look, and its state.",
            r#"{"type": "object", "properties": {
                "bash_id": {"type": "string"},
                "filter": {"type": "string", "description": "A regular expression: only lines that fit it."}},
                "required": ["bash_id"]}"#,
        )
        .with_answer(commands::output),
    ),
    (
        "Edit",
        DialectAdapter::new(
            "Replaces a text in a file. Read the file first. Fails unless old_string occurs exactly once, or \
             replace_all is set.",
            r#"{"type": "object", "properties": {
                "file_path": {"type": "string", "description": "Absolute path."},
                "old_string": {"type": "string"},
                "new_string": {"type": "string"},
                "replace_all": {"type": "boolean", "default": false}},
                "required": ["file_path", "old_string", "new_string"]}"#,
        )
        .with_answer(files::edited),
    ),
    (
        "Glob",
        DialectAdapter::new(
            "Finds files by a pattern like \"**/*.js\", the last changed first.",
            r#"{"type": "object", "properties": {
                "pattern": {"type": "string"},
                "path": {"type": "string", "description": "The folder; the working directory without it."}},
                "required": ["pattern"]}"#,
        )
        .with_answer(search::globbed),
    ),
    (
        "Grep",
        DialectAdapter::new(
            "Finds text in files by a regular expression, as ripgrep does. Use it instead of grep or rg in Bash.",
            r#"{"type": "object", "properties": {
                "pattern": {"type": "string"},
                "path": {"type": "string", "description": "A file or folder."},
                "glob": {"type": "string", "description": "Only files like \"*.js\"."},
                "type": {"type": "string", "description": "Only files of a type, like rust."},
                "output_mode": {"type": "string", "enum": ["content", "files_with_matches", "count"], "default": "files_with_matches"},
                "-A": {"type": "number", "description": "Lines after each match."},
                "-B": {"type": "number", "description": "Lines before each match."},
                "-C": {"type": "number", "description": "Lines around each match."},
                "-n": {"type": "boolean", "description": "Line numbers."},
                "-i": {"type": "boolean", "description": "Upper and lower case are the same."},
                "-o": {"type": "boolean", "description": "Only what matches."},
                "multiline": {"type": "boolean", "description": "Matches may span lines."},
                "head_limit": {"type": "number", "description": "Maximum number of lines or files."},
                "offset": {"type": "number", "description": "Number of lines or files to skip."}},
                "required": ["pattern"]}"#,
        )
        .with_answer(search::grepped),
    ),
    (
        "KillShell",
        DialectAdapter::new(
            "Ends a shell in the background.",
            r#"{"type": "object", "properties": {"shell_id": {"type": "string"}}, "required": ["shell_id"]}"#,
        )
        .with_answer(commands::killed),
    ),
    (
        "LS",
        DialectAdapter::new(
            "Lists files and folders as a tree. Prefer Glob and Grep where you know what you look for.",
            r#"{"type": "object", "properties": {
                "path": {"type": "string", "description": "Absolute path."},
                "ignore": {"type": "array", "items": {"type": "string"}, "description": "Patterns to leave out."}},
                "required": ["path"]}"#,
        ),
    ),
    (
        "MultiEdit",
        DialectAdapter::new(
            "Makes several edits in one file, in order: all or none. Read the file first.",
            r#"{"type": "object", "properties": {
                "file_path": {"type": "string", "description": "Absolute path."},
                "edits": {"type": "array", "items": {"type": "object", "properties": {
                    "old_string": {"type": "string"},
                    "new_string": {"type": "string"},
                    "replace_all": {"type": "boolean", "default": false}},
                    "required": ["old_string", "new_string"]}}},
                "required": ["file_path", "edits"]}"#,
        )
        .with_answer(files::edited_several_times),
    ),
    (
        "NotebookEdit",
        DialectAdapter::new(
            "Replaces, inserts or deletes a cell of a Jupyter notebook.",
            r#"{"type": "object", "properties": {
                "notebook_path": {"type": "string", "description": "Absolute path."},
                "cell_id": {"type": "string", "description": "The cell; a new one comes after it."},
                "new_source": {"type": "string"},
                "cell_type": {"type": "string", "enum": ["code", "markdown"]},
                "edit_mode": {"type": "string", "enum": ["replace", "insert", "delete"], "default": "replace"}},
                "required": ["notebook_path", "new_source"]}"#,
        )
        .with_answer(not_done),
    ),
    (
        "Read",
        DialectAdapter::new(
            "Reads a file with line numbers, also images, PDF and notebooks. Up to 2000 lines at a time.",
            r#"{"type": "object", "properties": {
                "file_path": {"type": "string", "description": "Absolute path."},
                "offset": {"type": "number", "description": "The first line."},
                "limit": {"type": "number", "description": "How many lines."},
                "pages": {"type": "string", "description": "Pages of a PDF, like \"1-5\"."}},
                "required": ["file_path"]}"#,
        )
        .with_answer(files::read),
    ),
    (
        "TodoWrite",
        DialectAdapter::new(
            "Writes the plan anew. Keep one step in progress.",
            r#"{"type": "object", "properties": {
                "todos": {"type": "array", "items": {"type": "object", "properties": {
                    "content": {"type": "string"},
                    "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                    "activeForm": {"type": "string", "description": "The step while it is done: \"Running tests\"."}},
                    "required": ["content", "status", "activeForm"]}}},
                "required": ["todos"]}"#,
        )
        .with_answer(asking::planned),
    ),
    (
        "WebFetch",
        DialectAdapter::new(
            "Fetches a page and has a small model answer a prompt about it. http becomes https. A redirect to another \
             host is told and not followed: call again with the new URL.",
            r#"{"type": "object", "properties": {
                "url": {"type": "string", "description": "A whole URL."},
                "prompt": {"type": "string", "description": "What to find out from the page."}},
                "required": ["url", "prompt"]}"#,
        )
        .with_answer(web::fetched),
    ),
    (
        "WebSearch",
        DialectAdapter::new(
            "Searches the web and gives titles and URLs. Domains may be allowed or blocked, not both.",
            r#"{"type": "object", "properties": {
                "query": {"type": "string", "minLength": 2},
                "allowed_domains": {"type": "array", "items": {"type": "string"}, "description": "Only results of these."},
                "blocked_domains": {"type": "array", "items": {"type": "string"}, "description": "No results of these."}},
                "required": ["query"]}"#,
        )
        .with_defaults(&[Default("count", "10")])
        .with_answer(web::searched),
    ),
    (
        "Write",
        DialectAdapter::new(
            "Writes a file. One that is there must have been read before; prefer Edit for it.",
            r#"{"type": "object", "properties": {
                "file_path": {"type": "string", "description": "Absolute path."},
                "content": {"type": "string"}},
                "required": ["file_path", "content"]}"#,
        )
        .with_answer(files::written),
    ),
];

/// Returns the failure of a tool for files: first the sentence that models expect, then Toolstead's own text.
fn not_done(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    let known = match answered.error_kind()? {
        ErrorKind::NotRead => "File has not been read yet. Read it first before writing to it.".to_owned(),
        ErrorKind::StaleFile => "File has been modified since read, either by the user or by a linter. Read it again \
                                 before attempting to write it."
            .to_owned(),
        ErrorKind::NotFound => "File does not exist.".to_owned(),
        ErrorKind::NoMatch => with_text("String to replace not found in file.", answered),
        ErrorKind::AmbiguousMatch => with_text(
            "Found several matches of the string to replace, but replace_all is false. To replace all of them, set \
             replace_all to true. To replace only one, give more of what stands around it.",
            answered,
        ),
        _ => return None,
    };
    Some(AdaptedResult::error(format!("{known}\n{}", answered.text())))
}

fn with_text(sentence: &str, answered: &AdapterInput<'_>) -> String {
    match answered.text_argument("old_string") {
        Some(text) => format!("{sentence}\nString: {}", shorten(text)),
        None => sentence.to_owned(),
    }
}
