//! The tool `notebook_edit`.

mod cell;
mod edit;
mod layout;
mod notebook;

use crate::{
    builtin::{
        files::{
            change_set::{ChangeSet, recording::ChangeRecorder},
            etag::{digest_of, etag},
            written_file::{missing, notes, only},
        },
        text::{snippet::surroundings, unified_diff::unified_diff, wording::counted},
        tool_kit::{
            answer::answer, built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext,
            tool_environment::ToolEnvironment,
        },
        tools::notebook_edit::edit::{EditedNotebook, edited},
    },
    sandbox::workspace::{granted_workspace::GrantedWorkspace, write::WriteOptions},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolstead_domain::{Access, Category, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind};

/// UTF-8 byte order mark, which some editors write.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Tool that changes one cell of a Jupyter notebook.
pub(crate) struct NotebookEdit;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Path of the notebook, an `.ipynb` file: absolute, or relative to the working directory.
    #[schemars(length(min = 1))]
    #[schemars(extend("x-advertised" = ""))]
    path: String,
    /// The id of the cell, or `cell-0` for the first one. A new cell comes after it; without an id, at the top.
    #[schemars(extend("x-advertised" = "A new cell comes after it."))]
    cell_id: Option<String>,
    /// The index of the cell, from 0, instead of its id.
    #[schemars(extend("x-advertised" = false))]
    cell_index: Option<usize>,
    /// The new text of the cell.
    #[schemars(extend("x-advertised" = ""))]
    new_source: Option<String>,
    /// The type of the cell; a new one must have it.
    #[schemars(extend("x-advertised" = ""))]
    cell_type: Option<CellType>,
    /// Replace the text of the cell, insert a new cell, or delete the cell.
    #[serde(default)]
    #[schemars(extend("x-advertised" = ""))]
    edit_mode: EditMode,
    /// Keep the cell's outputs. Otherwise a code cell whose text is replaced loses them.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    keep_outputs: bool,
    /// Change nothing, and show what would change.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    dry_run: bool,
}

#[derive(Deserialize, Serialize, JsonSchema, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum CellType {
    Code,
    Markdown,
    Raw,
}

#[derive(Deserialize, Serialize, JsonSchema, Debug, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum EditMode {
    #[default]
    Replace,
    Insert,
    Delete,
}

impl CellType {
    /// Returns the name that notebooks use.
    fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
            Self::Raw => "raw",
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// Relative to the working directory, or absolute outside of it.
    path: String,
    /// The cell's id; absent if the notebook's format has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    cell_id: Option<String>,
    /// The cell's index, from 0; for a deleted cell, its former index.
    cell_index: usize,
    cell_type: String,
    edit_mode: EditMode,
    /// Number of cells of the notebook now.
    cells: usize,
    /// Etag of the new content.
    etag: String,
    /// `true` for `dry_run`: nothing was changed.
    dry_run: bool,
    /// The changes of the cell's text, as a unified diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

impl BuiltInTool for NotebookEdit {
    const NAME: &str = "notebook_edit";
    const TITLE: &str = "Edit notebook";
    const DESCRIPTION: &str = "Replaces, inserts or deletes one cell of a Jupyter notebook (.ipynb); all other cells \
         keep every byte. Read the notebook first, for the ids of its cells. Replacing the text of a code \
         cell clears its outputs.";
    const BRIEF: &str = "Replaces, inserts or deletes one cell of a Jupyter notebook.";
    const CATEGORY: Category = Category::File;
    const TAGS: &[&str] = &["edit", "jupyter", "notebook", "write"];
    const KEYWORDS: &str = "change ipython modify";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::WRITING;
    const EXAMPLE: &str = r#"{"path": "study.ipynb", "cell_id": "8f2c11ab", "new_source": "print(sum(values))"}"#;
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
        let recording = ChangeRecorder::of(run);
        let limit = run.environment().files().limits().result_bytes;
        run.on_files(move |files| edit(files, &input, &recording, limit)).await
    }
}

fn edit(
    files: &GrantedWorkspace,
    input: &Input,
    recording: &ChangeRecorder,
    limit: u64,
) -> Result<ToolResult, ToolFailure> {
    let mut set = ChangeSet::take(files, &[&input.path])?;
    let path = set.shown(0).to_owned();
    if !path.to_ascii_lowercase().ends_with(".ipynb") {
        return Err(ToolFailure::new(
            ErrorKind::UnsupportedType,
            format!("`{path}` is not a notebook: its name does not end in .ipynb"),
        )
        .next("Use `edit_file` for other files."));
    }
    let Some(content) = set.content(0, limit)?.map(|content| content.into_owned()) else {
        return Err(missing(files, &input.path));
    };
    // The caller names a cell of the notebook that was read. If the file changed since, the name may refer to another
    // cell.
    if set.is_stale(0, digest_of(&content), recording)? {
        let message = format!("`{path}` changed since it was read");
        return Err(ToolFailure::new(ErrorKind::StaleFile, message)
            .next("Nothing was changed. Read it again: its cells may be different now."));
    }
    let (mark, body) = content.split_at(if content.starts_with(MARK) { MARK.len() } else { 0 });
    let text = std::str::from_utf8(body).map_err(|error| {
        let message =
            format!("`{path}` cannot be edited: notebooks are in UTF-8, and byte {} is not", error.valid_up_to());
        ToolFailure::new(ErrorKind::UnsupportedType, message)
    })?;
    let edited = edited(text, &path, input)?;
    let bytes = [mark, edited.text.as_bytes()].concat();
    if bytes.len() as u64 > limit {
        let message = format!("the notebook would have {} bytes, and at most {limit} are written", bytes.len());
        return Err(ToolFailure::new(ErrorKind::TooLarge, message).next("Nothing was changed."));
    }
    let etag = etag(&digest_of(&bytes));
    set.put(0, bytes, WriteOptions { create_folders: false, overwrite: true, mode: None });
    let changed = only(set.commit(recording, input.dry_run)?)?;
    let mut edited = edited;
    edited.notes.extend(notes(&changed));

    let how_to_undo = recording.undo_instruction(!input.dry_run && changed.is_change());
    let text = describe_change(&edited, &path, input, how_to_undo);
    let output = Output {
        diff: unified_diff(&path, &ended(edited.source_before), &ended(edited.source_after)),
        path,
        cell_id: edited.id,
        cell_index: edited.index,
        cell_type: edited.cell_type,
        edit_mode: input.edit_mode,
        cells: edited.cells,
        etag,
        dry_run: input.dry_run,
    };
    answer(text, &output)
}

/// Describes the changed cell and its new source to the model.
fn describe_change(edited: &EditedNotebook, path: &str, input: &Input, how_to_undo: Option<String>) -> String {
    let verb = match (input.edit_mode, input.dry_run) {
        (EditMode::Replace, false) => "Replaced",
        (EditMode::Replace, true) => "Would replace",
        (EditMode::Insert, false) => "Inserted",
        (EditMode::Insert, true) => "Would insert",
        (EditMode::Delete, false) => "Deleted",
        (EditMode::Delete, true) => "Would delete",
    };
    let id = edited.id.as_deref().map(|id| format!("`{}`, ", id.escape_debug())).unwrap_or_default();
    let cell_type = edited.cell_type.escape_debug();
    let cells = counted(edited.cells, "cell");
    let mut text = format!("{verb} cell {} ({id}{cell_type}) of `{path}`, which then has {cells}.", edited.index);
    for note in &edited.notes {
        text.push_str(&format!(" {note}"));
    }
    if let Some(how) = how_to_undo {
        text.push_str(&format!(" {how}"));
    }
    let lines: Vec<&str> = edited.source_after.lines().collect();
    if !lines.is_empty() {
        text.push('\n');
        text.push_str(&surroundings(&lines, 0..lines.len(), 0));
    }
    text.trim_end_matches('\n').to_owned()
}

/// Adds a final line break to a source that is not empty and has none, so that the diff does not mention its absence.
fn ended(mut source: String) -> String {
    if !source.is_empty() && !source.ends_with('\n') {
        source.push('\n');
    }
    source
}

#[cfg(test)]
mod tests;
