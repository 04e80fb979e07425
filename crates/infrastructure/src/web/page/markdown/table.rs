//! Tables: which of them contain data, and their lines in Markdown.

use super::super::tree::{NodeId, PageTree, WalkEvent};
use std::collections::HashSet;

/// Maximum number of columns of a table; the last one receives the text of further ones.
const MAX_COLUMNS: usize = 64;
/// Maximum number of rows that one cell spans.
const MAX_SPAN: usize = 1_000;

/// Returns the tables of a page that contain data. The others lay out parts of the page, which are written one below
/// the other.
pub(super) fn data_tables(tree: &PageTree) -> HashSet<NodeId> {
    let mut data = HashSet::new();
    let mut open: Vec<TableFacts> = Vec::new();
    for step in tree.walk(tree.root()) {
        match step {
            WalkEvent::Enter(node) => match tree.tag(node) {
                Some("table") => {
                    open.iter_mut().for_each(|table| table.has_blocks = true);
                    open.push(TableFacts::of(tree, node));
                }
                Some(tag) => {
                    if let Some(table) = open.last_mut() {
                        table.see(tag);
                    }
                }
                None => {}
            },
            WalkEvent::Leave(node) => {
                if tree.tag(node) == Some("table")
                    && let Some(table) = open.pop()
                    && table.holds_data()
                {
                    data.insert(node);
                }
            }
        }
    }
    data
}

/// Properties that distinguish a table of data from one for layout.
#[derive(Default)]
struct TableFacts {
    is_presentation: bool,
    has_heads: bool,
    has_blocks: bool,
    columns: usize,
    columns_of_row: usize,
}

impl TableFacts {
    fn of(tree: &PageTree, table: NodeId) -> Self {
        let is_presentation = matches!(tree.attribute(table, "role"), Some("presentation" | "none"));
        Self { is_presentation, ..Self::default() }
    }

    fn see(&mut self, tag: &str) {
        match tag {
            "tr" => self.columns_of_row = 0,
            "td" | "th" => {
                self.has_heads |= tag == "th";
                self.columns_of_row += 1;
                self.columns = self.columns.max(self.columns_of_row);
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "pre" | "blockquote" | "hr" | "article" | "section" => {
                self.has_blocks = true;
            }
            _ => {}
        }
    }

    fn holds_data(&self) -> bool {
        !self.is_presentation && self.columns > 1 && (self.has_heads || !self.has_blocks)
    }
}

/// A table that is being read.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Row>,
    /// By column, the cells of earlier rows that span the current one: the number of further rows, and their text.
    reaching: Vec<(usize, String)>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Row {
    cells: Vec<String>,
    has_data: bool,
}

impl Table {
    pub(super) fn begin_row(&mut self) {
        self.end_row();
        self.rows.push(Row::default());
    }

    /// Adds a cell with the number of columns and rows that it spans.
    pub(super) fn add(&mut self, text: String, is_head: bool, columns: usize, rows: usize) {
        if self.rows.is_empty() {
            self.rows.push(Row::default());
        }
        self.reach_down();
        self.bytes += text.len();
        let Some(row) = self.rows.last_mut() else { return };
        row.has_data |= !is_head;
        if row.cells.len() >= MAX_COLUMNS {
            if let Some(last) = row.cells.last_mut().filter(|_| !text.is_empty()) {
                last.push(' ');
                last.push_str(&text);
            }
            return;
        }
        for column in 0..columns.clamp(1, MAX_COLUMNS - row.cells.len()) {
            let at = row.cells.len();
            if rows > 1 {
                self.reaching.resize_with(self.reaching.len().max(at + 1), Default::default);
                self.reaching[at] = (rows.min(MAX_SPAN) - 1, if column == 0 { text.clone() } else { String::new() });
            }
            row.cells.push(if column == 0 { text.clone() } else { String::new() });
        }
    }

    /// Returns the number of bytes of its cells.
    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    /// Writes the cells of earlier rows that span this position.
    fn reach_down(&mut self) {
        let Some(row) = self.rows.last_mut() else { return };
        while let Some((left, text)) = self.reaching.get_mut(row.cells.len())
            && *left > 0
        {
            *left -= 1;
            self.bytes += text.len();
            row.cells.push(text.clone());
        }
    }

    fn end_row(&mut self) {
        self.reach_down();
    }

    /// Returns the lines of the table in Markdown; none if all cells are empty. A row of headings comes first; an empty
    /// one if there is none.
    pub(super) fn lines(mut self) -> Vec<String> {
        self.end_row();
        self.rows.retain(|row| row.cells.iter().any(|cell| !cell.is_empty()));
        let is_used =
            |column: usize| self.rows.iter().any(|row| row.cells.get(column).is_some_and(|cell| !cell.is_empty()));
        let columns = (0..MAX_COLUMNS).rev().find(|column| is_used(*column)).map_or(0, |column| column + 1);
        if self.rows.is_empty() {
            return Vec::new();
        }
        if self.rows[0].has_data {
            self.rows.insert(0, Row::default());
        }
        let mut lines: Vec<String> = self.rows.iter().map(|row| line(&row.cells, columns)).collect();
        lines.insert(1, format!("|{}", " --- |".repeat(columns)));
        lines
    }
}

fn line(cells: &[String], columns: usize) -> String {
    let mut line = String::from("|");
    for column in 0..columns {
        line.push(' ');
        if let Some(cell) = cells.get(column).filter(|cell| !cell.is_empty()) {
            line.push_str(cell);
            line.push(' ');
        }
        line.push('|');
    }
    line
}
