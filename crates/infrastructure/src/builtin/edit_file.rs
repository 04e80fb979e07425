//! The tool `edit_file`.

mod line_view;
mod nearest;
mod replacements;

use crate::{
    builtin::{
        answer::{answer, counted},
        built_in_tool::BuiltInTool,
        change_set::{ChangeSet, Recording},
        edit_file::{line_view::LineView, replacements::Replacement},
        run::Run,
        schema::output_schema,
        snippet::surroundings,
        text_encoding::{Detected, TextEncoding, detect},
        unified_diff::unified_diff,
        world::World,
        write_file,
    },
    sandbox::workspace::{granted::GrantedWorkspace, write::WriteOptions},
};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolstead_domain::{
    access::Access, category::Category, error_kind::ErrorKind, tool::ToolAnnotations, tool_failure::ToolFailure,
    tool_result::ToolResult,
};

/// The largest file that is edited.
const MAX_FILE_BYTES: u64 = 10 << 20;
/// The largest that an edit may make of it.
const MAX_RESULT_BYTES: usize = 50 << 20;
/// As many places are shown with their surroundings.
const SHOWN_PLACES: usize = 3;
/// As many lines stand before and after a place that is shown.
const RADIUS: usize = 3;

/// Replaces text in a file.
pub(super) struct EditFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Path of the file: absolute, or relative to the working directory.
    #[schemars(length(min = 1))]
    path: String,
    /// The text to replace, exactly as it stands in the file, without line numbers. Empty only to create a new file.
    old_text: String,
    /// The text to put in its place.
    new_text: String,
    /// Replace every place where it stands. Otherwise it must stand exactly once.
    #[serde(default)]
    replace_all: bool,
    /// Replace the first so many places.
    #[schemars(range(min = 1))]
    count: Option<usize>,
    /// Take `old_text` for a regular expression that matches within single lines; `new_text` may then refer to groups
    /// as $1 or ${name}, and $$ is a dollar sign.
    #[serde(default)]
    regex: bool,
    /// Look only from this line on, counted from 1.
    #[schemars(range(min = 1))]
    start_line: Option<usize>,
    /// Look only up to this line, which is included.
    #[schemars(range(min = 1))]
    end_line: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// Relative to the working directory, or absolute outside of it.
    path: String,
    /// How many places were replaced.
    replacements: usize,
    /// The line in which each replaced place begins now, at most the first 1000.
    lines: Vec<usize>,
    /// Whether the file is new.
    created: bool,
    /// What changed, as a unified diff; absent where it would be too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

#[async_trait]
impl BuiltInTool for EditFile {
    const NAME: &str = "edit_file";
    const TITLE: &str = "Edit file";
    const DESCRIPTION: &str = "Replaces text in a file; everything else in it stays as it is. Read the file first. `old_text` must stand in \
         the file exactly once: give enough of the lines around it, or set `replace_all`. With an empty `old_text` a \
         new file is created.";
    const CATEGORY: Category = Category::File;
    const TAGS: &[&str] = &["edit", "write"];
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations {
        read_only_hint: Some(false),
        destructive_hint: Some(true),
        idempotent_hint: Some(false),
        open_world_hint: Some(false),
    };
    const EXAMPLE: &str = r#"{"path": "src/main.rs", "old_text": "let x = 1;", "new_text": "let x = 2;"}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    async fn accesses(&self, input: &Input, world: &World) -> Result<Vec<Access>, ToolFailure> {
        let path = world.access(&input.path).await?;
        Ok(vec![Access::ReadPath(path.clone()), Access::WritePath(path)])
    }

    async fn run(&self, input: Input, run: &Run<'_>) -> Result<ToolResult, ToolFailure> {
        let recording = Recording::of(run);
        run.on_files(move |files| edit(files, &input, &recording)).await
    }
}

fn edit(files: &GrantedWorkspace, input: &Input, recording: &Recording) -> Result<ToolResult, ToolFailure> {
    if input.old_text == input.new_text && !input.regex {
        let same = ToolFailure::new(ErrorKind::InvalidInput, "`old_text` and `new_text` are the same");
        return Err(same.next("Nothing was changed; give the text as it is to become."));
    }
    let mut set = ChangeSet::take(files, &[&input.path])?;
    let path = set.shown(0).to_owned();
    let before = set.content(0, MAX_FILE_BYTES)?;
    let edited = match before.as_deref() {
        Some(bytes) if !(bytes.is_empty() && input.old_text.is_empty()) => edited(bytes, &path, input)?,
        Some(_) => Edited::whole(&input.new_text),
        None if input.old_text.is_empty() => Edited::whole(&input.new_text),
        None => {
            // Looked for as a reader does, so that the answer names what is near.
            files.find(&input.path)?;
            return Err(
                ToolFailure::new(ErrorKind::StaleFile, format!("`{path}` appeared just now")).next("Try again.")
            );
        }
    };
    drop(before);
    let options = WriteOptions { create_folders: true, overwrite: true, mode: None };
    set.put(0, edited.bytes.clone(), options);
    let changed = write_file::only(set.commit(recording, false)?)?;
    let Some(written) = changed.written else { return Err(too_large()) };

    let mut text = match written.created {
        true => format!("Created `{path}`."),
        false => format!("Replaced {} in `{path}`.", counted(edited.lines.len(), "place")),
    };
    for note in write_file::notes(&written) {
        text.push_str(&format!(" {note}"));
    }
    if !written.created {
        text.push_str(&edited.shown());
    }
    let output = Output {
        diff: unified_diff(&path, &edited.before, &edited.after),
        replacements: edited.lines.len(),
        lines: edited.lines.iter().map(|(first, _)| first + 1).take(1000).collect(),
        created: written.created,
        path,
    };
    answer(text.trim_end_matches('\n'), &output)
}

/// A file after its edit.
struct Edited {
    bytes: Vec<u8>,
    /// The texts, with line feeds only.
    before: String,
    after: String,
    /// The lines (from 0) of each replaced place in the text after: the first, and the one behind the last.
    lines: Vec<(usize, usize)>,
}

impl Edited {
    fn whole(text: &str) -> Self {
        Self { bytes: text.into(), before: String::new(), after: text.into(), lines: vec![(0, text.lines().count())] }
    }

    /// The replaced places as they read now.
    fn shown(&self) -> String {
        let lines: Vec<&str> = self.after.split('\n').collect();
        let mut text = String::new();
        for (first, end) in self.lines.iter().take(SHOWN_PLACES) {
            text.push('\n');
            text.push_str(&surroundings(&lines, *first..*end, RADIUS));
        }
        if self.lines.len() > SHOWN_PLACES {
            text.push_str(&format!("… and {}\n", counted(self.lines.len() - SHOWN_PLACES, "more place")));
        }
        text
    }
}

fn edited(bytes: &[u8], path: &str, input: &Input) -> Result<Edited, ToolFailure> {
    let unsupported = |message: String| Err(ToolFailure::new(ErrorKind::UnsupportedType, message));
    let encoding = match detect(bytes, true) {
        Detected::Text(encoding) => encoding,
        Detected::Binary(what) => return unsupported(format!("`{path}` is no text: it looks like {what}")),
    };
    let (mark, body) = bytes.split_at(encoding.mark_bytes());
    let Some(text) = encoding.decode_exactly(body) else {
        return unsupported(format!(
            "`{path}` is not valid in {}, and changing it would change other bytes as well",
            encoding.name()
        ));
    };
    let view = LineView::of(&text);
    let replacements = replacements::find(view.text(), path, input)?;
    let bytes = spliced(mark, &view, encoding, &replacements)?;
    let (after, lines) = applied(view.text(), &replacements);
    Ok(Edited { bytes, before: view.text().to_owned(), after, lines })
}

/// The file's bytes with the replacements; those outside of them are the same.
fn spliced(
    mark: &[u8],
    view: &LineView<'_>,
    encoding: TextEncoding,
    replacements: &[Replacement],
) -> Result<Vec<u8>, ToolFailure> {
    let encoded = |text: &str| {
        encoding.encode(text).map(Vec::from).map_err(|character| {
            let message = format!("the file is in {}, which has no `{character}`", encoding.name());
            ToolFailure::new(ErrorKind::InvalidInput, message)
                .next("Leave that character out, or write the whole file anew as UTF-8 with `write_file`.")
        })
    };
    let mut bytes = mark.to_vec();
    let mut done = 0;
    for replacement in replacements {
        // Where old and new agree nothing is touched, so that unusual line endings in there stay, too.
        let (range, new) = replacement.narrowed(view.text());
        let range = view.in_original(range);
        bytes.extend(encoded(&view.original()[done..range.start])?);
        bytes.extend(encoded(&view.with_endings_of(&range, new))?);
        done = range.end;
        if bytes.len() > MAX_RESULT_BYTES {
            return Err(too_large());
        }
    }
    bytes.extend(encoded(&view.original()[done..])?);
    Ok(bytes)
}

fn too_large() -> ToolFailure {
    ToolFailure::new(ErrorKind::TooLarge, format!("the file would have more than {MAX_RESULT_BYTES} bytes"))
}

/// The text after the replacements, and the lines of each.
fn applied(text: &str, replacements: &[Replacement]) -> (String, Vec<(usize, usize)>) {
    let (mut after, mut lines) = (String::with_capacity(text.len()), Vec::with_capacity(replacements.len()));
    let (mut done, mut line) = (0, 0);
    let breaks = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count();
    for replacement in replacements {
        let kept = &text[done..replacement.range.start];
        line += breaks(kept);
        after.push_str(kept);
        let first = line;
        line += breaks(&replacement.new);
        after.push_str(&replacement.new);
        lines.push((first, line + 1));
        done = replacement.range.end;
    }
    after.push_str(&text[done..]);
    (after, lines)
}

#[cfg(test)]
mod tests;
