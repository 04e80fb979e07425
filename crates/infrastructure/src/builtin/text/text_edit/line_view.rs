//! A text as models write it, with line feeds only, mapped to the original text.

use crate::builtin::text::line_ending::{ends_in_returns, in_lines};
use std::{borrow::Cow, ops::Range};

/// A text with every `\r\n` as `\n`; in a text whose lines end in `\r`, each `\r` becomes `\n`. Positions are in bytes.
#[derive(Debug)]
pub(super) struct LineFeedView<'a> {
    original: &'a str,
    text: Cow<'a, str>,
    /// Positions in `text` of the line feeds whose carriage returns are left out, ascending.
    without_return: Vec<usize>,
    ends_in_returns: bool,
    /// `true` if the view is the original text, and replacements are inserted unchanged.
    is_exact: bool,
}

impl<'a> LineFeedView<'a> {
    pub(super) fn of(original: &'a str) -> Self {
        let ends_in_returns = ends_in_returns(original);
        if ends_in_returns || !original.contains("\r\n") {
            return Self { ends_in_returns, is_exact: false, text: in_lines(original), ..Self::exact(original) };
        }
        let mut text = String::with_capacity(original.len());
        let mut without_return = Vec::new();
        let mut pieces = original.split("\r\n");
        text.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            without_return.push(text.len());
            text.push('\n');
            text.push_str(piece);
        }
        Self { text: Cow::Owned(text), without_return, is_exact: false, ..Self::exact(original) }
    }

    /// Creates a view of the exact text, with its carriage returns.
    pub(super) fn exact(original: &'a str) -> Self {
        let text = Cow::Borrowed(original);
        Self { original, text, without_return: Vec::new(), ends_in_returns: false, is_exact: true }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn original(&self) -> &'a str {
        self.original
    }

    /// Returns the corresponding range in the original. It includes a line break with its carriage return or not at
    /// all.
    pub(super) fn in_original(&self, range: Range<usize>) -> Range<usize> {
        let moved = |at: usize| at + self.without_return.partition_point(|place| *place < at);
        moved(range.start)..moved(range.end)
    }

    /// Converts a new text (with line feeds) for a range of the original to the line endings of that place: those in
    /// the range, else the next, else the previous. Without any it stays unchanged.
    pub(super) fn with_endings_of<'n>(&self, range: &Range<usize>, new: &'n str) -> Cow<'n, str> {
        if self.is_exact || !new.contains('\n') {
            return Cow::Borrowed(new);
        }
        match self.ending_at(range) {
            Some("\n") | None => Cow::Borrowed(new),
            Some(ending) => Cow::Owned(new.replace('\n', ending)),
        }
    }

    /// Returns the new text for a range of the view, as the view will contain it: a lone carriage return among line
    /// feeds is visible.
    pub(super) fn as_it_will_be(&self, range: &Range<usize>, new: &str) -> String {
        let range = self.in_original(range.clone());
        let new = self.with_endings_of(&range, new);
        match (self.is_exact, self.ends_in_returns) {
            (true, _) => new.into_owned(),
            (false, true) => new.replace('\r', "\n"),
            (false, false) => new.replace("\r\n", "\n"),
        }
    }

    fn ending_at(&self, range: &Range<usize>) -> Option<&'static str> {
        // Among line feeds a lone carriage return is not a line ending, unless it is the first break replaced.
        let is_old = !self.original.contains('\n');
        let is_ending = |c: char| c == '\n' || (is_old && c == '\r');
        let inside = &self.original[range.clone()];
        if let Some(at) = inside.find(['\n', '\r'])
            && inside[at..].starts_with('\r')
            && !inside[at..].starts_with("\r\n")
        {
            return Some("\r");
        }
        let next = self.original[range.start..].find(is_ending).map(|at| range.start + at);
        let at = next.or_else(|| self.original[..range.start].rfind(is_ending))?;
        match (&self.original.as_bytes()[at], at.checked_sub(1).map(|before| self.original.as_bytes()[before])) {
            (b'\n', Some(b'\r')) => Some("\r\n"),
            (b'\n', _) => Some("\n"),
            _ => Some("\r"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_the_line_feed_view_map_back_to_the_original() {
        let view = LineFeedView::of("a\r\nb\nc\r\n");
        assert_eq!(view.text(), "a\nb\nc\n");
        let original = |range| &view.original()[view.in_original(range)];
        assert_eq!(original(0..1), "a");
        assert_eq!(original(1..2), "\r\n");
        assert_eq!(original(0..4), "a\r\nb\n");
        assert_eq!(original(4..6), "c\r\n");
        assert_eq!(original(2..2), "");
    }

    #[test]
    fn new_lines_use_the_line_endings_of_neighboring_lines() {
        let check = |original: &str, range: Range<usize>, expected: &str| {
            assert_eq!(LineFeedView::of(original).with_endings_of(&range, "x\ny"), expected, "{original:?}");
        };
        check("a\r\nb\n", 0..0, "x\r\ny");
        check("a\r\nb\n", 3..3, "x\ny");
        check("a\r\nb", 4..4, "x\r\ny");
        check("a", 0..1, "x\ny");
        check("a\rb\rc", 2..3, "x\ry");
        check("a\rb\nc", 2..3, "x\ny");
        check("a\rb\nc", 0..3, "x\ry");
    }
}
