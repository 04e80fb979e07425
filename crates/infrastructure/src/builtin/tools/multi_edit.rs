//! The tool `multi_edit`.

use crate::{
    builtin::{
        files::{
            change_set::{ChangeSet, ChangedFile, recording::ChangeRecorder},
            etag::digest_of,
            written_file::{EDIT, changed_elsewhere, diff_of, etag_of, missing, notes, stale, text_of},
        },
        text::{
            line_ending::in_lines,
            snippet::surroundings,
            text_edit::{EditOptions, EditedFile, TextEdit},
            unified_diff::changed_lines,
            wording::counted,
        },
        tool_kit::{
            answer::answer, built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext,
            tool_environment::ToolEnvironment,
        },
    },
    sandbox::workspace::{granted_workspace::GrantedWorkspace, path_error::PathError},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;
use toolstead_domain::{Access, Category, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind};

/// Maximum number of places that are shown with their surroundings, over all files.
const SHOWN_PLACES: usize = 6;
/// Number of lines shown before and after a place.
const RADIUS: usize = 2;

/// Tool that makes several edits, or none of them.
pub(crate) struct MultiEdit;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Path of the file for all edits that name none: absolute, or relative to the working directory.
    #[schemars(length(min = 1))]
    #[schemars(extend("x-advertised" = "Of the edits that name none."))]
    path: Option<String>,
    /// The edits, in order: each applies to the result of those before it.
    #[schemars(length(min = 1, max = 500))]
    #[schemars(extend("x-advertised" = ""))]
    edits: Vec<Edit>,
    /// Change nothing; show what the edits would do.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    dry_run: bool,
}

/// One edit, as `edit_file` makes it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Edit {
    /// Path of its file, if another one.
    #[schemars(length(min = 1))]
    #[schemars(extend("x-advertised" = "Another file than the common path."))]
    path: Option<String>,
    /// The text to replace, exactly as in the file by then. Empty only to create a new file.
    #[schemars(extend("x-advertised" = ""))]
    old_text: String,
    /// The whole text to replace it with.
    #[schemars(extend("x-advertised" = ""))]
    new_text: String,
    /// Replace every occurrence. Otherwise it must occur exactly once.
    #[serde(default)]
    #[schemars(extend("x-advertised" = ""))]
    replace_all: bool,
    /// Replace the first N places.
    #[schemars(range(min = 1))]
    #[schemars(extend("x-advertised" = false))]
    count: Option<usize>,
    /// Replace every place if there are exactly N; otherwise make no edit.
    #[schemars(range(min = 1))]
    #[schemars(extend("x-advertised" = false))]
    expected_count: Option<usize>,
    /// `old_text` is a regular expression that matches within single lines.
    #[serde(default)]
    #[schemars(extend("x-advertised" = ""))]
    regex: bool,
    /// With `regex`: it may match across lines.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    multiline: bool,
}

impl Edit {
    fn options(&self) -> EditOptions {
        let &Self { replace_all, count, expected_count, regex, multiline, .. } = self;
        EditOptions { replace_all, count, expected_count, regex, multiline }
    }
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// Number of replaced places, in all files.
    replacements: usize,
    /// The files that were edited.
    files: Vec<FileEditOutput>,
    /// `true` for `dry_run`: nothing was changed.
    dry_run: bool,
    /// The call's id, for `undo`; absent if there is nothing to undo.
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct FileEditOutput {
    /// Relative to the working directory, or absolute outside of it.
    path: String,
    /// Number of replaced places.
    replacements: usize,
    /// `true` for a new file.
    created: bool,
    /// Etag of the new content, for `if_match` of `write_file`.
    etag: String,
    /// `true` if other parts of the file changed since this session read it.
    changed_elsewhere: bool,
    /// The changes, as a unified diff; absent if too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

impl BuiltInTool for MultiEdit {
    const NAME: &str = "multi_edit";
    const TITLE: &str = "Edit several places";
    const DESCRIPTION: &str = "Makes several edits in one or several files: all of them, or none if one fails. They are made in order, each \
         on the result of those before it, and each by the rules of `edit_file`.";
    const BRIEF: &str = "Makes several edits by the rules of `edit_file`, in order, all or none.";
    const CATEGORY: Category = Category::File;
    const TAGS: &[&str] = &["edit", "write"];
    const KEYWORDS: &str = "atomic batch bulk change modify refactor rename replace substitute";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::WRITING;
    const EXAMPLE: &str = r#"{"path": "src/main.rs", "edits": [{"old_text": "let x = 1;", "new_text": "let x = 2;"}]}"#;
    const SUPPORTS_DIFF_PREVIEW: bool = true;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    async fn accesses(&self, input: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        let mut accesses = Vec::new();
        for path in paths(input)? {
            let path = world.access(path).await?;
            for access in [Access::ReadPath(path.clone()), Access::WritePath(path)] {
                if !accesses.contains(&access) {
                    accesses.push(access);
                }
            }
        }
        Ok(accesses)
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let (recording, text_bytes) = (ChangeRecorder::of(run), run.environment().files().limits().text_bytes);
        run.on_files(move |files| edit_all(files, &input, text_bytes, &recording)).await
    }
}

/// Returns the path of each edit, its own or the common one. Fails if an edit has neither.
fn paths(input: &Input) -> Result<Vec<&str>, ToolFailure> {
    let all = input.edits.len();
    let without = |index: usize| {
        let message = format!("edit {} of {all} has no `path`, and there is none for all", index + 1);
        let failure = ToolFailure::new(ErrorKind::InvalidInput, message);
        failure.next("Give `path` beside `edits`, or in each of them.")
    };
    input
        .edits
        .iter()
        .enumerate()
        .map(|(index, edit)| {
            let path = edit.path.as_deref().or(input.path.as_deref());
            path.ok_or_else(|| without(index))
        })
        .collect()
}

/// State while the edits are made.
struct EditProgress<'a> {
    files: &'a GrantedWorkspace,
    recording: &'a ChangeRecorder,
    text_bytes: u64,
    set: ChangeSet<'a>,
    /// Replacements in each file, by the index of the file in the set.
    tallies: Vec<FileEditTally>,
    notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default)]
struct FileEditTally {
    replacements: usize,
    is_stale: bool,
}

fn edit_all(
    files: &GrantedWorkspace,
    input: &Input,
    text_bytes: u64,
    recording: &ChangeRecorder,
) -> Result<ToolResult, ToolFailure> {
    let (paths, all) = (paths(input)?, input.edits.len());
    let set = ChangeSet::take(files, &paths)?;
    let tallies = vec![FileEditTally::default(); all];
    let mut editing = EditProgress { files, recording, text_bytes, set, tallies, notes: Vec::new() };
    for (index, (edit, path)) in input.edits.iter().zip(&paths).enumerate() {
        editing.edit(index, edit, path).map_err(|failure| {
            let message = format!("edit {} of {all}: {}", index + 1, failure.message);
            let none = "No edit was made.";
            let next = failure.next.as_deref().unwrap_or_default().trim_start_matches("Nothing was changed");
            let next = next.trim_start_matches(['.', ';', ' ']);
            let mut letters = next.chars();
            let next = letters
                .next()
                .map_or_else(String::new, |first| format!(" {}{}", first.to_uppercase(), letters.as_str()));
            ToolFailure { message, ..failure }.with_data(json!({"edit": index + 1})).next(format!("{none}{next}"))
        })?;
    }
    let EditProgress { set, tallies, notes, .. } = editing;
    let changed = set.commit(recording, input.dry_run)?;
    let call = recording.undo_id(!input.dry_run && changed.iter().any(ChangedFile::is_change));
    format_result(changed, &tallies, &notes, input, call)
}

impl EditProgress<'_> {
    fn edit(&mut self, index: usize, edit: &Edit, path: &str) -> Result<(), ToolFailure> {
        if self.files.stop().is_due() {
            return Err(PathError::OutOfTime { path: self.set.path(index).lexical.clone() }.into());
        }
        let text_edit = TextEdit::of(&edit.old_text, &edit.new_text, edit.options())?;
        let (file, shown) = (self.set.file(index), self.set.shown(index).to_owned());
        let before = self.set.content(index, self.text_bytes)?.map(Cow::into_owned);
        let is_first = self.tallies[file].replacements == 0;
        let edited = match &before {
            Some(bytes) if !(bytes.is_empty() && edit.old_text.is_empty()) => {
                if is_first {
                    self.tallies[file].is_stale = self.set.is_stale(index, digest_of(bytes), self.recording)?;
                }
                let is_stale = self.tallies[file].is_stale;
                let edited = text_edit.apply(bytes, &shown, self.recording.limit(), self.files.stop());
                edited.map_err(|failure| if is_stale { stale(failure, &shown) } else { failure })?
            }
            None if !edit.old_text.is_empty() => return Err(missing(self.files, path)),
            Some(_) | None => EditedFile::for_empty_file(&edit.new_text),
        };
        if let Some(help) = edited.tolerance {
            self.notes.push(format!("Edit {}: `old_text` is there with {}.", index + 1, help.difference()));
        }
        self.tallies[file].replacements += edited.lines.len();
        self.set.put(index, edited.bytes, EDIT);
        Ok(())
    }
}

/// Formats the result of the call. `changed` and `tallies` have the order of the files in the change set.
fn format_result(
    changed: Vec<ChangedFile>,
    tallies: &[FileEditTally],
    notes_on_edits: &[String],
    input: &Input,
    call: Option<String>,
) -> Result<ToolResult, ToolFailure> {
    let replacements = tallies.iter().map(|tally| tally.replacements).sum();
    let (edits, files) = (counted(input.edits.len(), "edit"), counted(changed.len(), "file"));
    let mut text = match input.dry_run {
        false => format!("Made {edits} in {files}."),
        true => format!("Would make {edits} in {files}; nothing was changed."),
    };
    for note in notes_on_edits {
        text.push_str(&format!(" {note}"));
    }
    let mut shown = SHOWN_PLACES;
    let mut output = Output { replacements, files: Vec::new(), dry_run: input.dry_run, call };
    for (one, tally) in changed.iter().zip(tallies) {
        let path = &one.shown;
        let created = one.before.is_none();
        let what = if created { "new".into() } else { counted(tally.replacements, "place") };
        text.push_str(&format!("\n`{path}`: {what}."));
        if tally.is_stale {
            text.push_str(&format!(" {}", changed_elsewhere(path)));
        }
        for note in notes(one) {
            text.push_str(&format!(" {note}"));
        }
        let plain = |text: String| in_lines(&text).replace("\r\n", "\n");
        let view = |bytes: &Option<Vec<u8>>| bytes.as_deref().and_then(text_of).map(plain);
        let texts = view(&one.old).zip(view(&one.new));
        if let Some((old, new)) = &texts {
            let lines: Vec<&str> = new.lines().collect();
            for range in changed_lines(old, new).into_iter().take(shown) {
                shown -= 1;
                text.push('\n');
                text.push_str(surroundings(&lines, range, RADIUS).trim_end_matches('\n'));
            }
        }
        output.files.push(FileEditOutput {
            replacements: tally.replacements,
            etag: etag_of(one),
            changed_elsewhere: tally.is_stale,
            diff: diff_of(one, input.dry_run),
            path: path.clone(),
            created,
        });
    }
    answer(text, &output)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::tests::Bench;

    #[test]
    fn a_dry_run_returns_a_diff_or_size_note_for_every_file() {
        let bench = Bench::new();
        bench.put("a", "one\n");
        let diffs = |new_text: &str, dry_run: bool| {
            let edits = json!([
                {"path": "a", "old_text": "one", "new_text": "two"},
                {"path": "b", "old_text": "", "new_text": new_text},
            ]);
            let result = bench.call("multi_edit", json!({"edits": edits, "dry_run": dry_run})).unwrap();
            let files = result.structured_content().unwrap()["files"].as_array().unwrap().clone();
            files.iter().map(|file| file["diff"].as_str().map(str::to_owned)).collect::<Vec<_>>()
        };
        let of_a = Some("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+two\n".to_owned());
        let of_b = Some("--- a/b\n+++ b/b\n@@ -0,0 +1 @@\n+new\n".to_owned());
        assert_eq!(diffs("new\n", true), [of_a.clone(), of_b]);
        let large = format!("--- a/b\n+++ b/b\n@@ -0,0 +1,25000 @@\n{}", "+new\n".repeat(25_000));
        assert!(diffs(&"new\n".repeat(25_000), true) == [of_a.clone(), Some(large)]);
        let too_large = Some("b/b: 4000000 bytes, which are not shown\n".to_owned());
        assert_eq!(diffs(&"new\n".repeat(1_000_000), true), [of_a.clone(), too_large]);
        assert_eq!(diffs("new\n", false), [of_a, None]);
    }

    #[test]
    fn edits_are_made_in_order_across_files() {
        let bench = Bench::new();
        bench.put("a", "one\ntwo\nthree\n");
        bench.put("b", "x\r\ny\r\n");
        let result = bench
            .call(
                "multi_edit",
                json!({"path": "a", "edits": [
                    {"old_text": "one", "new_text": "1"},
                    {"old_text": "1\ntwo", "new_text": "1\n2"},
                    {"path": "b", "old_text": "x\ny", "new_text": "x\nz"},
                    {"path": "./a", "old_text": "e", "new_text": "E", "count": 2},
                    {"path": "new", "old_text": "", "new_text": "n\n"},
                ]}),
            )
            .unwrap();
        assert_eq!(bench.get("a"), b"1\n2\nthrEE\n");
        assert_eq!((bench.get("b"), bench.get("new")), (b"x\r\nz\r\n".to_vec(), b"n\n".to_vec()));
        let outcome = result.joined_text();
        let expected = "Made 5 edits in 3 files. Edit 3: `old_text` is there with other line endings, which were kept.\n\
                        `a`: 4 places.\n     1\t1\n     2\t2\n     3\tthrEE\n\
                        `b`: 1 place.\n     1\tx\n     2\tz\n\
                        `new`: new.";
        assert_eq!(outcome, expected);
        let found = result.structured_content().unwrap();
        assert_eq!((&found["replacements"], found["files"].as_array().unwrap().len()), (&json!(6), 3));
        assert_eq!(bench.journal().entries().len(), 1);
    }

    #[test]
    fn no_edit_is_made_if_one_fails_and_the_error_names_that_edit() {
        let bench = Bench::new();
        bench.put("a", "one\n");
        bench.put("b", "two\ntwo\n");
        let text_of = |edits: Value| {
            let failure = bench.call("multi_edit", json!({"path": "a", "edits": edits})).unwrap_err();
            assert_eq!((bench.get("a"), bench.get("b")), (b"one\n".to_vec(), b"two\ntwo\n".to_vec()));
            assert!(bench.journal().entries().is_empty());
            failure.text()
        };
        let one = json!({"old_text": "one", "new_text": "1"});
        assert_eq!(
            text_of(json!([one, {"path": "b", "old_text": "two", "new_text": "2"}])),
            "edit 2 of 2: `old_text` occurs in 2 places of `b`: lines 1, 2. No edit was made. Give more of the lines \
             around it to make it unique, or set `replace_all`."
        );
        assert!(text_of(json!([one, one])).starts_with("edit 2 of 2: `old_text` does not occur in `a`"));
        assert!(text_of(json!([one, {"path": "c", "old_text": "x", "new_text": "y"}])).starts_with("edit 2 of 2: "));
        assert!(text_of(json!([{"old_text": "a", "new_text": "a"}])).contains("are the same"));
    }

    #[test]
    fn an_edit_needs_a_path() {
        let bench = Bench::new();
        let failure = bench.call("multi_edit", json!({"edits": [{"old_text": "a", "new_text": "b"}]})).unwrap_err();
        let expected =
            "edit 1 of 1 has no `path`, and there is none for all. Give `path` beside `edits`, or in each of them.";
        assert_eq!(failure.text(), expected);
        assert!(bench.call("multi_edit", json!({"path": "a", "edits": []})).is_err());
    }
}
