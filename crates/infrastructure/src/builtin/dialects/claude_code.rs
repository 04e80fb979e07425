//! Dialect adapters for Claude Code: plain text, with the members that its hooks and clients use.

mod asking;
mod commands;
mod files;
mod search;
mod web;

use super::caller_text::shorten;
use toolstead_domain::{
    AdaptedResult, AdapterInput, DialectAdapter, DialectToolDefinitions, alias::Rewrite::Default, error_kind::ErrorKind,
};

/// Descriptions and schemas of the tools.
static DEFINITIONS: DialectToolDefinitions = DialectToolDefinitions::new(include_str!("claude_code.json"));

/// Dialect adapters in the order of their names.
pub(super) static ADAPTERS: &[DialectAdapter] = &[
    DialectAdapter::new("AskUserQuestion", &DEFINITIONS).with_answer(asking::asked),
    DialectAdapter::new("Bash", &DEFINITIONS).with_answer(commands::bash),
    DialectAdapter::new("BashOutput", &DEFINITIONS).with_answer(commands::output),
    DialectAdapter::new("Edit", &DEFINITIONS).with_answer(files::edited),
    DialectAdapter::new("Glob", &DEFINITIONS).with_answer(search::globbed),
    DialectAdapter::new("Grep", &DEFINITIONS).with_answer(search::grepped),
    DialectAdapter::new("KillShell", &DEFINITIONS).with_answer(commands::killed),
    DialectAdapter::new("LS", &DEFINITIONS),
    DialectAdapter::new("MultiEdit", &DEFINITIONS).with_answer(files::edited_several_times),
    DialectAdapter::new("NotebookEdit", &DEFINITIONS).with_answer(not_done),
    DialectAdapter::new("Read", &DEFINITIONS).with_answer(files::read),
    DialectAdapter::new("TodoWrite", &DEFINITIONS).with_answer(asking::planned),
    DialectAdapter::new("WebFetch", &DEFINITIONS).with_answer(web::fetched),
    DialectAdapter::new("WebSearch", &DEFINITIONS).with_defaults(&[Default("count", "10")]).with_answer(web::searched),
    DialectAdapter::new("Write", &DEFINITIONS).with_answer(files::written),
];

/// Returns the failure of a tool for files: first the sentence that models expect, then Toolstead's own text. `None`
/// for a success, and for a failure without such a sentence.
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
