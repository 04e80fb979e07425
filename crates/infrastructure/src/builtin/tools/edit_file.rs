//! The tool `edit_file`.

use crate::{
    builtin::{
        files::{
            change_set::{ChangeSet, recording::ChangeRecorder},
            etag::digest_of,
            written_file::{EDIT, changed_elsewhere, diff_of, etag_of, missing, notes, only, stale},
        },
        text::{
            text_edit::{EditOptions, EditedFile, TextEdit},
            wording::counted,
        },
        tool_kit::{
            answer::answer, built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext,
            tool_environment::ToolEnvironment,
        },
    },
    sandbox::workspace::granted_workspace::GrantedWorkspace,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use toolstead_domain::{Access, Category, ToolAnnotations, ToolFailure, ToolResult};

/// Maximum number of line numbers in the structured content.
const NAMED_LINES: usize = 1000;

/// Tool that replaces text in a file.
pub(crate) struct EditFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Path of the file: absolute, or relative to the working directory.
    #[schemars(length(min = 1))]
    #[schemars(extend("x-advertised" = ""))]
    path: String,
    /// The text to replace, exactly as in the file, without line numbers. Empty only to create a new file.
    #[schemars(extend("x-advertised" = "As in the file, without line numbers."))]
    old_text: String,
    /// The replacement, complete: without placeholders for omitted text.
    #[schemars(extend("x-advertised" = ""))]
    new_text: String,
    /// Replace every occurrence. Otherwise it must occur exactly once.
    #[serde(default)]
    #[schemars(extend("x-advertised" = ""))]
    replace_all: bool,
    /// Replace this many, from the top.
    #[schemars(range(min = 1))]
    #[schemars(extend("x-advertised" = false))]
    count: Option<usize>,
    /// Replace all if there are exactly this many; otherwise change nothing and list their lines.
    #[schemars(range(min = 1))]
    #[schemars(extend("x-advertised" = "Replace all if there are exactly this many."))]
    expected_count: Option<usize>,
    /// Treat `old_text` as a regular expression that matches within single lines; `new_text` may then refer to groups
    /// as $1 or ${name}, and $$ is a dollar sign.
    #[serde(default)]
    #[schemars(extend("x-advertised" = "`old_text` is a regular expression; in `new_text` $1 and ${name} are groups, $$ a dollar."))]
    regex: bool,
    /// With `regex`: it may match across lines, and ^ and $ match at each line.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    multiline: bool,
    /// First line to search, counted from 1.
    #[schemars(range(min = 1))]
    #[schemars(extend("x-advertised" = false))]
    start_line: Option<usize>,
    /// Last line to search.
    #[schemars(range(min = 1))]
    #[schemars(extend("x-advertised" = false))]
    end_line: Option<usize>,
    /// Change nothing; report what the edit would do.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    dry_run: bool,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// Relative to the working directory, or absolute outside of it.
    path: String,
    /// Number of replaced places.
    replacements: usize,
    /// Lines at which the replaced places now begin, at most the first 1000.
    lines: Vec<usize>,
    /// `true` if the file is new.
    created: bool,
    /// Version of the new content, for `if_match` of `write_file`.
    etag: String,
    /// Difference that was ignored to find the text: `line_endings`, `trailing_blanks`, `typography`, `indentation` or
    /// `escapes`; absent after an exact match.
    #[serde(skip_serializing_if = "Option::is_none")]
    matched_by: Option<&'static str>,
    /// `true` if other parts of the file have changed since this session read it.
    changed_elsewhere: bool,
    /// `true` for `dry_run`: nothing was changed.
    dry_run: bool,
    /// The call's id for `undo`; absent if there is nothing to undo.
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    /// The changes as a unified diff; absent if too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

impl BuiltInTool for EditFile {
    const NAME: &str = "edit_file";
    const TITLE: &str = "Edit file";
    const DESCRIPTION: &str = "Replaces text in a file; everything else in it stays as it is. Read the file first. \
         `old_text` must occur in the file exactly once: give enough of the lines around it, or set `replace_all`. \
         With an empty `old_text` a new file is created.";
    const BRIEF: &str = "Replaces text in a file. `old_text` must occur there exactly once: give more of the lines around it, or set `replace_all`. An empty `old_text` creates a file.";
    const CATEGORY: Category = Category::File;
    const TAGS: &[&str] = &["edit", "write"];
    const KEYWORDS: &str = "change code fix modify refactor rename string substitute update";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::WRITING;
    const EXAMPLE: &str = r#"{"path": "src/main.rs", "old_text": "let x = 1;", "new_text": "let x = 2;"}"#;
    const SUPPORTS_DIFF_PREVIEW: bool = true;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    async fn accesses(&self, input: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        let path = world.access(&input.path).await?;
        Ok(vec![Access::ReadPath(path.clone()), Access::WritePath(path)])
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let (recording, text_bytes) = (ChangeRecorder::of(run), run.environment().files().limits().text_bytes);
        run.on_files(move |files| edit(files, &input, text_bytes, &recording)).await
    }
}

fn edit(
    files: &GrantedWorkspace,
    input: &Input,
    text_bytes: u64,
    recording: &ChangeRecorder,
) -> Result<ToolResult, ToolFailure> {
    let &Input { replace_all, count, expected_count, regex, multiline, start_line, end_line, dry_run, .. } = input;
    let options = EditOptions { replace_all, count, expected_count, regex, multiline };
    let edit = TextEdit { start_line, end_line, ..TextEdit::of(&input.old_text, &input.new_text, options)? };
    let mut set = ChangeSet::take(files, &[&input.path])?;
    let path = set.shown(0).to_owned();
    let before = set.content(0, text_bytes)?.map(Cow::into_owned);
    let is_stale = match &before {
        Some(before) => set.is_stale(0, digest_of(before), recording)?,
        None => false,
    };
    let mut edited = match &before {
        Some(bytes) if !(bytes.is_empty() && input.old_text.is_empty()) => {
            let edited = edit.apply(bytes, &path, recording.limit(), files.stop());
            edited.map_err(|failure| if is_stale { stale(failure, &path) } else { failure })?
        }
        Some(_) => EditedFile::for_empty_file(&input.new_text),
        None if input.old_text.is_empty() => EditedFile::for_empty_file(&input.new_text),
        None => return Err(missing(files, &input.path)),
    };
    set.put(0, std::mem::take(&mut edited.bytes), EDIT);
    let changed = only(set.commit(recording, dry_run)?)?;
    let created = changed.before.is_none();

    let places = counted(edited.lines.len(), "place");
    let mut text = match (created, dry_run) {
        (true, false) => format!("Created `{path}`."),
        (true, true) => format!("Would create `{path}`; nothing was changed."),
        (false, false) => format!("Replaced {places} in `{path}`."),
        (false, true) => format!("Would replace {places} in `{path}`; nothing was changed. It would read:"),
    };
    if let Some(help) = edited.tolerance {
        text.push_str(&format!(" `old_text` was found there with {}.", help.difference()));
    }
    if is_stale {
        text.push(' ');
        text.push_str(&changed_elsewhere(&path));
    }
    for note in notes(&changed) {
        text.push_str(&format!(" {note}"));
    }
    if !created {
        text.push_str(&edited.render_changes());
    }
    let output = Output {
        diff: diff_of(&changed, dry_run),
        replacements: edited.lines.len(),
        lines: edited.lines.iter().map(|(first, _)| first + 1).take(NAMED_LINES).collect(),
        etag: etag_of(&changed),
        matched_by: edited.tolerance.map(|help| help.name()),
        changed_elsewhere: is_stale,
        created,
        dry_run,
        call: recording.undo_id(!dry_run && changed.is_change()),
        path,
    };
    answer(text.trim_end_matches('\n'), &output)
}

#[cfg(test)]
mod tests;
