//! Applies an edit to the text of a notebook.

use crate::builtin::{
    text::wording::counted,
    tools::notebook_edit::{
        CellType, EditMode, Input,
        cell::{Cell, member_text},
        notebook::{Notebook, NotebookError},
    },
};
use std::collections::HashMap;
use toolstead_domain::{ToolFailure, error_kind::ErrorKind, tool_input_schema::nearest_name};

/// Maximum number of cells that are listed if the requested one does not exist.
const LISTED_CELLS: usize = 20;
/// Maximum number of characters shown of a cell's first line.
const SHOWN_CHARS: usize = 60;
/// Maximum length of an id in the notebook format, in characters.
const MAX_ID_CHARS: usize = 64;

/// A notebook after its edit, and the edited cell.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EditedNotebook {
    pub(super) text: String,
    /// Index of the cell, from 0; for a deleted cell, the index that it had.
    pub(super) index: usize,
    pub(super) id: Option<String>,
    pub(super) cell_type: String,
    /// Number of cells after the edit.
    pub(super) cells: usize,
    pub(super) source_before: String,
    pub(super) source_after: String,
    /// Further remarks for the result, as sentences.
    pub(super) notes: Vec<String>,
}

/// Applies the requested edit to the JSON text of a notebook, without a byte order mark, and checks that all other
/// cells keep their bytes. `path` is only for messages.
pub(super) fn edited(text: &str, path: &str, input: &Input) -> Result<EditedNotebook, ToolFailure> {
    let notebook = Notebook::parse(text).map_err(|error| not_editable(path, &error))?;
    let place = find(&notebook, path, input)?;
    let mut edited = match (input.edit_mode, place) {
        (EditMode::Insert, after) => inserted(&notebook, after, input)?,
        (EditMode::Replace, Some(index)) => replaced(&notebook, index, input)?,
        (EditMode::Delete, Some(index)) => deleted(&notebook, index),
        (EditMode::Replace | EditMode::Delete, None) => {
            let message = "`cell_id` or `cell_index` is required";
            return Err(ToolFailure::new(ErrorKind::InvalidInput, message).next(listing(&notebook, path)));
        }
    };
    check_the_rest(&notebook, &edited, input.edit_mode)?;
    edited.notes.extend(odd_ids(&edited.text));
    Ok(edited)
}

fn replaced(notebook: &Notebook<'_>, index: usize, input: &Input) -> Result<EditedNotebook, ToolFailure> {
    let cell = &notebook.cells()[index];
    if input.new_source.is_none() && input.cell_type.is_none() {
        let message = "`new_source` is missing: the new text of the cell";
        return Err(ToolFailure::new(ErrorKind::InvalidInput, message)
            .next("Set `edit_mode` to \"delete\" to remove the cell."));
    }
    let mut members = cell.members().to_texts();
    let mut notes = Vec::new();
    let source = input.new_source.as_deref().unwrap_or(cell.source());
    if source != cell.source() {
        set(&mut members, "source", notebook.layout_of(index).source(source, cell.has_source_as_list()));
    }
    let cell_type = input.cell_type.map_or(cell.cell_type(), |cell_type| cell_type.name());
    if cell_type != cell.cell_type() {
        set(&mut members, "cell_type", member_text(cell_type));
        notes.push(format!("It was a {} cell before.", cell.cell_type()));
    }
    let had_outputs = cell.has_outputs();
    if cell_type == CellType::Code.name() {
        members.retain(|(name, _)| name != "attachments");
        if cell_type != cell.cell_type() || !input.keep_outputs {
            set(&mut members, "execution_count", "null".into());
            set(&mut members, "outputs", "[]".into());
        }
    } else {
        members.retain(|(name, _)| name != "outputs" && name != "execution_count");
    }
    if had_outputs && !(cell_type == CellType::Code.name() && input.keep_outputs) {
        notes.push("Its outputs were cleared.".into());
    }
    Ok(EditedNotebook {
        text: notebook.with_replaced(index, &members),
        index,
        id: cell.id().map(str::to_owned),
        cell_type: cell_type.to_owned(),
        cells: notebook.cells().len(),
        source_before: cell.source().to_owned(),
        source_after: source.to_owned(),
        notes,
    })
}

fn inserted(notebook: &Notebook<'_>, after: Option<usize>, input: &Input) -> Result<EditedNotebook, ToolFailure> {
    let Some(cell_type) = input.cell_type.map(CellType::name) else {
        let message = "`cell_type` is missing: give \"code\", \"markdown\" or \"raw\"";
        return Err(ToolFailure::new(ErrorKind::InvalidInput, message));
    };
    let index = after.map_or(0, |after| after + 1);
    let id = notebook.has_ids().then(|| notebook.new_id());
    let source = input.new_source.as_deref().unwrap_or_default();
    let members = notebook.new_cell(cell_type, id.as_deref(), source);
    Ok(EditedNotebook {
        text: notebook.with_inserted(index, &members),
        index,
        id,
        cell_type: cell_type.to_owned(),
        cells: notebook.cells().len() + 1,
        source_before: String::new(),
        source_after: source.to_owned(),
        notes: Vec::new(),
    })
}

fn deleted(notebook: &Notebook<'_>, index: usize) -> EditedNotebook {
    let cell = &notebook.cells()[index];
    EditedNotebook {
        text: notebook.without(index),
        index,
        id: cell.id().map(str::to_owned),
        cell_type: cell.cell_type().to_owned(),
        cells: notebook.cells().len() - 1,
        source_before: cell.source().to_owned(),
        source_after: String::new(),
        notes: Vec::new(),
    }
}

/// Sets a member at its place, or appends it.
fn set(members: &mut Vec<(String, String)>, name: &str, value: String) {
    match members.iter_mut().find(|(other, _)| other == name) {
        Some((_, old)) => *old = value,
        None => members.push((name.to_owned(), value)),
    }
}

/// Returns the index of the requested cell; `None` if the call names none.
fn find(notebook: &Notebook<'_>, path: &str, input: &Input) -> Result<Option<usize>, ToolFailure> {
    let cells = notebook.cells();
    let index = match (&input.cell_id, input.cell_index) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            let message = "`cell_id` and `cell_index` are both given";
            return Err(ToolFailure::new(ErrorKind::InvalidInput, message).next("Give one of them."));
        }
        (None, Some(index)) => index,
        (Some(id), None) => {
            let found: Vec<usize> = (0..cells.len()).filter(|index| cells[*index].id() == Some(id)).collect();
            match (&found[..], id.strip_prefix("cell-").and_then(|number| number.parse().ok())) {
                ([only], _) => *only,
                ([], Some(index)) => index,
                ([], None) => return Err(unknown_id(notebook, path, id)),
                (several, _) => {
                    let places: Vec<String> = several.iter().take(LISTED_CELLS).map(usize::to_string).collect();
                    let message = format!("{} cells of `{path}` have the id `{id}`", several.len());
                    return Err(ToolFailure::new(ErrorKind::AmbiguousMatch, message)
                        .next(format!("Name one by `cell_index`: {}.", places.join(", "))));
                }
            }
        }
    };
    if index < cells.len() {
        return Ok(Some(index));
    }
    let message = format!("`{path}` has {}, and none has the index {index}", counted(cells.len(), "cell"));
    Err(ToolFailure::new(ErrorKind::NotFound, message).next(listing(notebook, path)))
}

fn unknown_id(notebook: &Notebook<'_>, path: &str, id: &str) -> ToolFailure {
    let nearest = nearest_name(id, notebook.cells().iter().filter_map(Cell::id));
    let nearest = nearest.map(|near| format!("; the nearest to it is `{near}`")).unwrap_or_default();
    ToolFailure::new(ErrorKind::NotFound, format!("`{path}` has no cell with the id `{id}`{nearest}"))
        .next(listing(notebook, path))
}

/// Lists the first cells, one per line, for a message; says how to insert one if the notebook has no cells.
fn listing(notebook: &Notebook<'_>, path: &str) -> String {
    let cells = notebook.cells();
    if cells.is_empty() {
        return "It has no cells; use `edit_mode` \"insert\".".into();
    }
    let mut text = format!("The cells of `{path}`, by index:\n");
    for (index, cell) in cells.iter().enumerate().take(LISTED_CELLS) {
        let id = cell.id().map(|id| format!("`{}` ", id.escape_debug())).unwrap_or_default();
        let first: String = cell.source().lines().next().unwrap_or_default().chars().take(SHOWN_CHARS).collect();
        text.push_str(&format!("{index:>6}\t{id}{}: {first}\n", cell.cell_type().escape_debug()));
    }
    if cells.len() > LISTED_CELLS {
        text.push_str(&format!("… and {} more; read the notebook to see all.\n", cells.len() - LISTED_CELLS));
    }
    text.trim_end().to_owned()
}

/// Checks that the result is a valid notebook in which all other cells have their old bytes.
fn check_the_rest(before: &Notebook<'_>, edited: &EditedNotebook, mode: EditMode) -> Result<(), ToolFailure> {
    let after = Notebook::parse(&edited.text).map_err(|error| internal(&error.to_string()))?;
    let this = Some(edited.index);
    let (old, new) = match mode {
        EditMode::Replace => (this, this),
        EditMode::Insert => (None, this),
        EditMode::Delete => (this, None),
    };
    if after.cells().len() == edited.cells && other_cells(before, old) == other_cells(&after, new) {
        return Ok(());
    }
    Err(internal("other cells would have changed"))
}

/// Returns the texts of all cells but one.
fn other_cells<'a>(notebook: &Notebook<'a>, but: Option<usize>) -> Vec<&'a str> {
    let cells = notebook.cells().iter().enumerate().filter(|(index, _)| Some(*index) != but);
    cells.map(|(_, cell)| cell.text()).collect()
}

fn internal(reason: &str) -> ToolFailure {
    ToolFailure::new(ErrorKind::Internal, "the edited notebook would be wrong: this is a fault of Toolstead")
        .next("Nothing was changed.")
        .caused_by(reason.to_owned())
}

/// Describes missing, shared and malformed ids in a notebook whose format requires ids; `None` if all ids are correct.
/// Programs accept such ids and do not repair them.
fn odd_ids(text: &str) -> Option<String> {
    let notebook = Notebook::parse(text).ok().filter(Notebook::has_ids)?;
    let mut times: HashMap<&str, usize> = HashMap::new();
    let mut without = 0;
    for cell in notebook.cells() {
        match cell.id() {
            Some(id) => *times.entry(id).or_default() += 1,
            None => without += 1,
        }
    }
    let is_valid = |id: &str| {
        (1..=MAX_ID_CHARS).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let shared = times.values().filter(|times| **times > 1).count();
    let malformed = times.keys().filter(|id| !is_valid(id)).count();
    let found = [
        (without, format!("{} without an id", counted(without, "cell"))),
        (shared, format!("{} of several cells", counted(shared, "id"))),
        (malformed, counted(malformed, "malformed id")),
    ];
    let found: Vec<String> = found.into_iter().filter(|(count, _)| *count > 0).map(|(_, what)| what).collect();
    (!found.is_empty()).then(|| format!("The notebook has what its format does not allow: {}.", found.join(", ")))
}

fn not_editable(path: &str, error: &NotebookError) -> ToolFailure {
    let failure = ToolFailure::new(ErrorKind::UnsupportedType, format!("`{path}` cannot be edited: {error}"));
    match error {
        NotebookError::Old(_) => failure.next(format!(
            "Convert it first: `jupyter nbconvert --to notebook --inplace {path}` brings it to format 4."
        )),
        NotebookError::New(_) => failure,
        NotebookError::Json(_) | NotebookError::Member(_) | NotebookError::Cell { .. } | NotebookError::TooMany(_) => {
            failure.next("Repair it with `edit_file`, which takes it as text.")
        }
    }
}
