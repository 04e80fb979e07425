//! The only place that writes to standard output and, beside logging, to standard error.

use super::columns::{beginning, usable};
use std::io::{self, IsTerminal, Write};
use toolstead_domain::unseen::moves;

/// Standard output, buffered.
#[derive(Debug)]
pub struct Output {
    writer: io::BufWriter<io::Stdout>,
}

impl Output {
    /// Writes to standard output.
    pub fn new() -> Self {
        Self { writer: io::BufWriter::new(io::stdout()) }
    }

    /// Writes one line.
    ///
    /// # Errors
    /// When it cannot be written, also because nobody reads any more.
    pub fn line(&mut self, text: &str) -> io::Result<()> {
        self.writer.write_all(text.as_bytes())?;
        self.writer.write_all(b"\n")?;
        self.writer.flush()
    }

    /// Writes a piece of text at once. On a terminal it steers nothing.
    ///
    /// # Errors
    /// As [`line`](Self::line).
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        let shown = if io::stdout().is_terminal() { visible(text) } else { text.to_owned() };
        self.writer.write_all(shown.as_bytes())?;
        self.writer.flush()
    }

    /// Writes a value as JSON on one line.
    ///
    /// # Errors
    /// As [`line`](Self::line).
    pub fn json_line(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        let text = serde_json::to_string(value)?;
        self.line(&if io::stdout().is_terminal() { harmless_json(&text) } else { text })
    }

    /// Writes a value as indented JSON.
    ///
    /// # Errors
    /// As [`line`](Self::line).
    pub fn json(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        let text = serde_json::to_string_pretty(value)?;
        self.line(&if io::stdout().is_terminal() { harmless_json(&text) } else { text })
    }

    /// Returns `true` if standard output is a terminal, so that a secret shown there does not end up in a file or journal.
    pub fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// The width of the terminal; `None` where the output goes elsewhere.
    pub fn width(&self) -> Option<usize> {
        let stdout = io::stdout();
        let size = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout).ok()).flatten()?;
        Some(usable(size.ws_col))
    }
}

impl Default for Output {
    fn default() -> Self {
        Self::new()
    }
}

/// Tells something to the person at the terminal, beside the result.
pub fn note(text: &str) {
    // Nobody can be told that nobody can be told.
    let _ = writeln!(io::stderr(), "{}", visible(text));
}

/// Shows a line at the terminal that the next one takes the place of; an empty one takes it away. Nothing where standard
/// error is no terminal.
pub fn passing(text: &str) {
    let stderr = io::stderr();
    if stderr.is_terminal() {
        let width = rustix::termios::tcgetwinsize(&stderr).map(|size| usable(size.ws_col)).unwrap_or(80);
        // A line that is full would begin another one.
        let shown = beginning(&visible(text).replace(['\n', '\t'], " "), width - 1);
        let _ = write!(stderr.lock(), "\r\x1b[K{shown}");
    }
}

/// The text with control characters made visible, except line breaks and tabs: what comes from a tool or a server must
/// not steer the terminal. What nobody sees and moves nothing stays: the output of a tool is shown as it is.
pub fn visible(text: &str) -> String {
    text.chars().map(|c| if moves(c) { c.escape_unicode().to_string() } else { c.to_string() }).collect()
}

/// JSON with what would steer a terminal written as `\\u` escapes, which mean the same. JSON escapes the rest itself.
pub(crate) fn harmless_json(text: &str) -> String {
    text.chars().map(|c| if moves(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() }).collect()
}

/// The text on one line, cut to the width.
pub fn cut(text: &str, width: Option<usize>) -> String {
    let line = text.lines().next().unwrap_or("");
    match width {
        Some(width) if line.chars().count() > width => {
            line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
        }
        _ => line.to_owned(),
    }
}

/// A table without frames.
pub fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_header(head);
    for row in rows {
        table.add_row(row.iter().map(|cell| visible(cell)));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_steer_the_terminal_is_made_visible() {
        assert_eq!(visible("a\tb\n\u{1b}[31m\u{202e}\u{61c}"), "a\tb\n\\u{1b}[31m\\u{202e}\\u{61c}");
    }

    #[test]
    fn json_for_a_terminal_means_the_same_and_steers_nothing() {
        let text = serde_json::json!({"a": "\u{9b}\u{202e}ä"}).to_string();
        let harmless = harmless_json(&text);
        assert_eq!(harmless, r#"{"a":"\u009b\u202eä"}"#);
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&harmless).unwrap(),
            serde_json::json!({"a": "\u{9b}\u{202e}ä"})
        );
    }

    #[test]
    fn a_line_is_cut_on_a_character() {
        assert_eq!(cut("äöüß\nx", Some(3)), "äö…");
        assert_eq!(cut("äöü", Some(3)), "äöü");
    }
}
