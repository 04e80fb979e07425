//! Splits a text into lines with their line breaks.

use crate::builtin::text::line_ending::ends_in_returns;

/// A line and its line break: `\n`, `\r\n`, `\r`, or none at the end of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextLine<'a> {
    pub(super) text: &'a str,
    pub(super) ending: &'a str,
    /// The line as a patch carries it: with the carriage return before a line feed.
    pub(super) carried: &'a str,
}

/// Splits a text into lines. A lone carriage return ends a line only in a text that has no other line breaks; elsewhere
/// it is part of a line, as readers treat it.
pub(super) fn lines_of(text: &str) -> Vec<TextLine<'_>> {
    if !ends_in_returns(text) {
        return lines_by_feeds(text);
    }
    let bare = |whole| str::strip_suffix(whole, '\r').unwrap_or(whole);
    text.split_inclusive('\r').map(|whole| TextLine::of(whole, bare(whole), bare(whole))).collect()
}

/// Splits a text at line feeds only, as patch programs do.
pub(super) fn lines_by_feeds(text: &str) -> Vec<TextLine<'_>> {
    let line = |whole| match str::strip_suffix(whole, '\n') {
        Some(carried) => TextLine::of(whole, carried.strip_suffix('\r').unwrap_or(carried), carried),
        None => TextLine::of(whole, whole, whole),
    };
    text.split_inclusive('\n').map(line).collect()
}

impl<'a> TextLine<'a> {
    fn of(whole: &'a str, text: &'a str, carried: &'a str) -> Self {
        Self { text, ending: &whole[text.len()..], carried }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_lines_at_lf_and_crlf_or_at_cr_if_neither_occurs() {
        let check = |text: &str, expected: &[(&str, &str)]| {
            let lines: Vec<(&str, &str)> = lines_of(text).iter().map(|line| (line.text, line.ending)).collect();
            assert_eq!(lines, expected, "{text:?}");
        };
        check("", &[]);
        check("a", &[("a", "")]);
        check("a\n\r\nb\rc\r\n\n", &[("a", "\n"), ("", "\r\n"), ("b\rc", "\r\n"), ("", "\n")]);
        check("a\rb\r\r", &[("a", "\r"), ("b", "\r"), ("", "\r")]);
        check("a\r\r\nb\r", &[("a\r", "\r\n"), ("b\r", "")]);
    }
}
