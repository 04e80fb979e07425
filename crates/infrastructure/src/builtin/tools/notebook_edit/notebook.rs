//! A notebook as JSON text, with the ranges of its cells and its layout.
//!
//! An edit replaces the range of one cell. The rest of the text is not rewritten, so that all other cells keep their
//! bytes, whichever program wrote them.

use crate::builtin::tools::notebook_edit::{
    cell::{Cell, RawMembers, member_text},
    layout::Layout,
};
use serde_json::value::RawValue;
use std::ops::Range;
use uuid::Uuid;

/// First version of the format in which every cell has an id, as (`nbformat`, `nbformat_minor`).
const WITH_IDS: (u64, u64) = (4, 5);

/// Maximum number of cells.
const MAX_CELLS: usize = 100_000;

/// A notebook in format 4.
#[derive(Debug)]
pub(super) struct Notebook<'a> {
    text: &'a str,
    version: (u64, u64),
    /// Range of the list of cells, including its brackets.
    list: Range<usize>,
    cells: Vec<Cell<'a>>,
    layout: Layout,
}

/// Reason why a text is not a notebook that can be edited.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotebookError {
    #[error("it is not valid JSON: {0}")]
    Json(String),
    #[error("it has no valid member `{0}`")]
    Member(&'static str),
    #[error("it is in notebook format {0}, and only format 4 is supported")]
    Old(u64),
    #[error("it is in notebook format {0}, which is newer than the supported format 4")]
    New(u64),
    #[error("it has {0} cells, and at most {MAX_CELLS} are supported")]
    TooMany(usize),
    #[error("its cell {index} is not valid: {reason}")]
    Cell { index: usize, reason: String },
}

impl<'a> Notebook<'a> {
    /// Parses a notebook from JSON text without a byte order mark.
    pub(super) fn parse(text: &'a str) -> Result<Self, NotebookError> {
        let members = RawMembers::parse(text).map_err(|error| NotebookError::Json(error.to_string()))?;
        let number = |name: &'static str| {
            let member = members.get(name).and_then(|raw| raw.get().parse().ok());
            member.ok_or(NotebookError::Member(name))
        };
        let version = (number("nbformat")?, number("nbformat_minor").unwrap_or(0));
        match version.0 {
            4 => {}
            old @ 0..4 => return Err(NotebookError::Old(old)),
            new => return Err(NotebookError::New(new)),
        }
        let list = members.get("cells").ok_or(NotebookError::Member("cells"))?;
        let raw: Vec<&'a RawValue> = serde_json::from_str(list.get()).map_err(|_| NotebookError::Member("cells"))?;
        if raw.len() > MAX_CELLS {
            return Err(NotebookError::TooMany(raw.len()));
        }
        let cell = |(index, raw): (usize, &&'a RawValue)| {
            Cell::parse(raw.get(), range_in(text, raw.get()))
                .map_err(|reason| NotebookError::Cell { index, reason: reason.to_string() })
        };
        let cells = raw.iter().enumerate().map(cell).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { text, version, list: range_in(text, list.get()), cells, layout: Layout::of(text) })
    }

    pub(super) fn cells(&self) -> &[Cell<'a>] {
        &self.cells
    }

    /// Returns `true` if cells have ids in this version of the format.
    pub(super) fn has_ids(&self) -> bool {
        self.version >= WITH_IDS
    }

    /// Returns an unused id, in the form that Jupyter uses.
    pub(super) fn new_id(&self) -> String {
        loop {
            let mut id = Uuid::new_v4().simple().to_string();
            id.truncate(8);
            if self.cells.iter().all(|cell| cell.id() != Some(&id)) {
                return id;
            }
        }
    }

    /// Returns the text with other members for one cell.
    pub(super) fn with_replaced(&self, index: usize, members: &[(String, String)]) -> String {
        self.spliced(self.cells[index].range().clone(), &self.layout_of(index).object(members))
    }

    /// Returns the layout of a cell: some programs write each cell on one line.
    pub(super) fn layout_of(&self, index: usize) -> Layout {
        if self.cells[index].text().contains('\n') { self.layout.clone() } else { self.layout.compact() }
    }

    /// Returns the text with a new cell at this index.
    pub(super) fn with_inserted(&self, index: usize, members: &[(String, String)]) -> String {
        let cell = self.layout.object(members);
        if self.cells.is_empty() {
            return self.spliced(self.list.clone(), &self.layout.list_of(&cell));
        }
        let between = self.layout.between_cells();
        match index.checked_sub(1) {
            Some(before) => {
                let end = self.cells[before].range().end;
                self.spliced(end..end, &format!(",{between}{cell}"))
            }
            None => {
                let start = self.cells[0].range().start;
                self.spliced(start..start, &format!("{cell},{between}"))
            }
        }
    }

    /// Returns the text without a cell.
    pub(super) fn without(&self, index: usize) -> String {
        let range = self.cells[index].range();
        match (index.checked_sub(1), self.cells.get(index + 1)) {
            (_, Some(next)) => self.spliced(range.start..next.range().start, ""),
            (Some(before), None) => self.spliced(self.cells[before].range().end..range.end, ""),
            (None, None) => self.spliced(self.list.clone(), "[]"),
        }
    }

    /// Returns the members of a new cell, in the order of the notebook's other cells.
    pub(super) fn new_cell(&self, cell_type: &str, id: Option<&str>, source: &str) -> Vec<(String, String)> {
        let template = self.template(cell_type);
        let mut members = vec![("cell_type".to_owned(), member_text(cell_type))];
        if cell_type == "code" {
            members.push(("execution_count".into(), "null".into()));
        }
        if let Some(id) = id {
            members.push(("id".into(), member_text(id)));
        }
        members.push(("metadata".into(), "{}".into()));
        if cell_type == "code" {
            members.push(("outputs".into(), "[]".into()));
        }
        let is_list = template.is_none_or(Cell::has_source_as_list);
        members.push(("source".into(), self.layout.source(source, is_list)));
        if let Some(template) = template {
            members.sort_by_key(|(name, _)| template.members().position(name).unwrap_or(usize::MAX));
        }
        members
    }

    /// Returns the first cell of this type, or else the first cell, as the template for a new cell; `None` if there is
    /// no cell.
    fn template(&self, cell_type: &str) -> Option<&Cell<'a>> {
        self.cells.iter().find(|cell| cell.cell_type() == cell_type).or(self.cells.first())
    }

    fn spliced(&self, range: Range<usize>, new: &str) -> String {
        format!("{}{new}{}", &self.text[..range.start], &self.text[range.end..])
    }
}

/// Returns the range of a piece in the text that it is a slice of.
fn range_in(text: &str, piece: &str) -> Range<usize> {
    let start = piece.as_ptr().addr() - text.as_ptr().addr();
    start..start + piece.len()
}
