//! Writer for all output that may reach a terminal.

use std::io::{self, Write};
use toolstead_domain::invisible_characters::displaces_text;

/// Escapes characters that control a terminal or reorder its text.
///
/// Each write must consist of whole characters, like those of `write!` and of `write_all` on a `str`. Other bytes
/// become replacement characters.
#[derive(Debug)]
pub(crate) struct EscapingWriter<W>(pub(crate) W);

impl<W: Write> Write for EscapingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(escaped(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Returns the text with control characters (C0, C1 and DEL) and direction marks as `\\u{…}`, except line feeds and
/// tabs. Other invisible characters are unchanged, because they do not move text.
pub(crate) fn escaped(text: &str) -> String {
    text.chars().map(|c| if displaces_text(c) { c.escape_unicode().to_string() } else { c.to_string() }).collect()
}

/// Returns the text on one line: line feeds and tabs are escaped as well.
pub(crate) fn on_one_line(text: &str) -> String {
    escaped(&text.replace('\n', "\\n").replace('\t', "\\t"))
}

/// Returns JSON with the same characters as `\\uXXXX`, which are equivalent. JSON already escapes C0.
pub(crate) fn escaped_json(text: &str) -> String {
    text.chars().map(|c| if displaces_text(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() }).collect()
}

#[cfg(test)]
pub(crate) mod tests;
