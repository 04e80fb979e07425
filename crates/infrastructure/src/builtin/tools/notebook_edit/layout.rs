//! Detects the layout of a notebook's JSON text, so that a new cell looks like the others.

use crate::builtin::tools::notebook_edit::cell::member_text;

/// Indentation level of a cell: a list in an object contains it.
const CELL_DEPTH: usize = 2;

/// Line breaks and spaces between the parts of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// Line break and indentation of one level; `None` if everything is on one line.
    lines: Option<(&'static str, String)>,
    /// Separator between a name and its value.
    colon: &'static str,
    /// Separator between parts on the same line.
    comma: &'static str,
}

impl Layout {
    /// Detects the layout from the beginning of a JSON object.
    pub(super) fn of(text: &str) -> Self {
        let start = text.find('{').map_or(0, |at| at + 1);
        let spaces = &text[start..];
        let spaces = &spaces[..spaces.find(|c: char| !c.is_ascii_whitespace()).unwrap_or(spaces.len())];
        let lines = spaces
            .rsplit_once('\n')
            .map(|(before, step)| (if before.ends_with('\r') { "\r\n" } else { "\n" }, step.to_owned()));
        let is_tight = text[start..].find("\":").is_some_and(|at| !text[start + at + 2..].starts_with(' '));
        let colon = if is_tight { ":" } else { ": " };
        Self { lines, colon, comma: if is_tight { "," } else { ", " } }
    }

    /// Returns the layout with every object on one line.
    pub(super) fn compact(&self) -> Self {
        Self { lines: None, ..self.clone() }
    }

    /// Formats a cell with these members, whose values are JSON text.
    pub(super) fn object(&self, members: &[(String, String)]) -> String {
        let members = members.iter().map(|(name, value)| format!("{}{}{value}", member_text(name), self.colon));
        self.enclosed('{', members.collect(), '}', CELL_DEPTH)
    }

    /// Formats a list of cells that has one cell.
    pub(super) fn list_of(&self, cell: &str) -> String {
        self.enclosed('[', vec![cell.to_owned()], ']', CELL_DEPTH - 1)
    }

    /// Formats the source of a cell, as a list of its lines or as one string.
    pub(super) fn source(&self, source: &str, is_list: bool) -> String {
        if !is_list {
            return member_text(source);
        }
        self.enclosed('[', source.split_inclusive('\n').map(member_text).collect(), ']', CELL_DEPTH + 1)
    }

    /// Returns the white space between the comma after a cell and the next cell.
    pub(super) fn between_cells(&self) -> String {
        if self.lines.is_some() { self.line(CELL_DEPTH) } else { self.comma[1..].to_owned() }
    }

    /// Formats parts in brackets at an indentation level.
    fn enclosed(&self, open: char, parts: Vec<String>, close: char, depth: usize) -> String {
        if parts.is_empty() {
            return format!("{open}{close}");
        }
        match self.lines {
            Some(_) => {
                let line = self.line(depth + 1);
                format!("{open}{line}{}{}{close}", parts.join(&format!(",{line}")), self.line(depth))
            }
            None => format!("{open}{}{close}", parts.join(self.comma)),
        }
    }

    /// Returns a line break and the indentation of a level, or an empty text if everything is on one line.
    fn line(&self, depth: usize) -> String {
        self.lines.as_ref().map(|(ending, step)| format!("{ending}{}", step.repeat(depth))).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let members = [("a".to_owned(), "1".to_owned()), ("b".to_owned(), "[]".to_owned())];
        assert_eq!(Layout::of(text).object(&members), expected, "{text:?}");
    }

    #[test]
    fn a_cell_is_formatted_in_the_style_of_its_notebook() {
        check("{\n \"cells\": []}", "{\n   \"a\": 1,\n   \"b\": []\n  }");
        check("{\r\n\t\"cells\":[]}", "{\r\n\t\t\t\"a\":1,\r\n\t\t\t\"b\":[]\r\n\t\t}");
        check("{\"cells\": []}", "{\"a\": 1, \"b\": []}");
        check("{\"cells\":[]}", "{\"a\":1,\"b\":[]}");
        assert_eq!(Layout::of("{\n  \"x\": 1}").list_of("{}"), "[\n    {}\n  ]");
        assert_eq!(Layout::of("{}").list_of("{}"), "[{}]");
    }
}
