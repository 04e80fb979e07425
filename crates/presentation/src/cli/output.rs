//! The only module that writes to standard output and, except for logging, to standard error.

use super::columns::{beginning, usable};
use crate::escaping_writer::{EscapingWriter, escaped_json};
use std::io::{self, IsTerminal, Write};

pub(crate) use crate::escaping_writer::{escaped as visible, on_one_line};

/// Standard output, buffered.
#[derive(Debug)]
pub struct StdoutWriter {
    writer: io::BufWriter<io::Stdout>,
}

impl StdoutWriter {
    /// Creates a buffer for standard output.
    pub fn new() -> Self {
        Self { writer: io::BufWriter::new(io::stdout()) }
    }

    /// Writes a text and a line break, with control characters escaped, and flushes.
    ///
    /// # Errors
    /// An error if writing fails, also because the reader has closed its end.
    pub fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(EscapingWriter(&mut self.writer), "{text}")?;
        self.writer.flush()
    }

    /// Writes content and a line break: unchanged to files and pipes, escaped to a terminal.
    ///
    /// # Errors
    /// The errors of [`line`](Self::line).
    pub fn content(&mut self, text: &str) -> io::Result<()> {
        self.text(text)?;
        self.text("\n")
    }

    /// Writes a piece of content and flushes: unchanged to files and pipes, escaped to a terminal.
    ///
    /// # Errors
    /// The errors of [`line`](Self::line).
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        match io::stdout().is_terminal() {
            true => EscapingWriter(&mut self.writer).write_all(text.as_bytes())?,
            false => self.writer.write_all(text.as_bytes())?,
        }
        self.writer.flush()
    }

    /// Writes a value as JSON on one line.
    ///
    /// # Errors
    /// The errors of [`line`](Self::line).
    pub fn json_line(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        self.serialized(serde_json::to_string(value)?)
    }

    /// Writes a value as indented JSON.
    ///
    /// # Errors
    /// The errors of [`line`](Self::line).
    pub fn json(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        self.serialized(serde_json::to_string_pretty(value)?)
    }

    fn serialized(&mut self, json: String) -> io::Result<()> {
        self.content(&if io::stdout().is_terminal() { escaped_json(&json) } else { json })
    }

    /// Returns `true` if standard output is a terminal, so that a secret shown there does not end up in a file or journal.
    pub fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Returns the width of the terminal; `None` if standard output is not a terminal.
    pub fn width(&self) -> Option<usize> {
        let stdout = io::stdout();
        let size = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout).ok()).flatten()?;
        Some(usable(size.ws_col))
    }
}

impl Default for StdoutWriter {
    fn default() -> Self {
        Self::new()
    }
}

/// Writes a line to standard error, beside the result.
pub fn note(text: &str) {
    // A failure cannot be reported anywhere else.
    let _ = writeln!(EscapingWriter(io::stderr()), "{text}");
}

/// Shows a line on the terminal that the next such line replaces; an empty one removes it. Does nothing if standard
/// error is not a terminal.
pub fn passing(text: &str) {
    let stderr = io::stderr();
    if stderr.is_terminal() {
        let width = rustix::termios::tcgetwinsize(&stderr).map(|size| usable(size.ws_col)).unwrap_or(80);
        // A full line would start another row.
        let shown = beginning(&visible(text).replace(['\n', '\t'], " "), width - 1);
        let _ = write!(stderr.lock(), "\r\x1b[K{shown}");
    }
}

/// Returns text of another author, such as a server, with a mark before each line, so that none is mistaken for a line
/// of Toolstead.
pub fn quoted(text: &str) -> String {
    let lines: Vec<String> = text.trim_end_matches('\n').split('\n').map(|line| format!("  | {line}")).collect();
    visible(&lines.join("\n"))
}

/// Returns the first line of the text, truncated to the width.
pub fn cut(text: &str, width: Option<usize>) -> String {
    let line = text.lines().next().unwrap_or("");
    match width {
        Some(width) if line.chars().count() > width => {
            line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
        }
        _ => line.to_owned(),
    }
}

/// Formats a table without borders.
pub fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_header(head);
    for row in rows {
        table.add_row(row.iter().map(|cell| on_one_line(cell)));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_quoted_text_begins_at_the_left_edge() {
        assert_eq!(quoted("Adds.\nerror: x\r\u{1b}[2K\n"), "  | Adds.\n  | error: x\\u{d}\\u{1b}[2K");
    }

    #[test]
    fn a_table_cell_is_escaped_to_a_single_line() {
        assert_eq!(table(&["A"], [vec!["x\nerror: y".into()]]), " A\n x\\nerror: y");
    }

    #[test]
    fn a_line_is_cut_at_a_character_boundary() {
        assert_eq!(cut("äöüß\nx", Some(3)), "äö…");
        assert_eq!(cut("äöü", Some(3)), "äöü");
    }
}
