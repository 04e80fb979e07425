//! Line endings of a text.

use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;

/// Maximum size of a text in which lone carriage returns may end lines, in bytes of UTF-8. All code that counts lines
/// reads a file up to this size as a whole, whatever its encoding, so that all results agree.
const MAX_BYTES_IN_RETURNS: usize = 250_000;

/// Returns `true` if lone carriage returns end the lines of a whole text: there is no other line ending, and the text
/// is small enough.
pub(crate) fn ends_in_returns(text: &str) -> bool {
    text.len() <= MAX_BYTES_IN_RETURNS && text.contains('\r') && !text.contains('\n')
}

/// Returns a whole text with line feeds as its line endings. No character changes its position.
pub(crate) fn in_lines(text: &str) -> Cow<'_, str> {
    if ends_in_returns(text) { Cow::Owned(text.replace('\r', "\n")) } else { Cow::Borrowed(text) }
}

/// The line ending of a whole text, or of its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LineEnding {
    Lf,
    CrLf,
    Cr,
    Mixed,
}

impl LineEnding {
    /// Returns the line ending; `None` if there is no complete line.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let (mut feeds, mut pairs, mut returns) = (0_usize, 0, 0);
        let bytes = text.as_bytes();
        for at in memchr::memchr2_iter(b'\n', b'\r', bytes) {
            match (bytes[at], bytes.get(at + 1)) {
                (b'\r', Some(b'\n')) => pairs += 1,
                // The character after the end is unknown.
                (b'\r', None) => {}
                (b'\r', _) => returns += 1,
                _ => feeds += 1,
            }
        }
        // Each pair was counted at its feed as well.
        match (feeds - pairs, pairs, returns) {
            (0, 0, 0) => None,
            (_, 0, 0) => Some(Self::Lf),
            (0, _, 0) => Some(Self::CrLf),
            (0, 0, _) => Some(Self::Cr),
            _ => Some(Self::Mixed),
        }
    }

    /// Returns a description; `None` for the usual ending.
    pub(crate) fn note(self, ends_in_returns: bool) -> Option<&'static str> {
        match self {
            Self::Lf => None,
            Self::CrLf => Some("line endings: CRLF"),
            Self::Cr if ends_in_returns => Some("line endings: CR alone"),
            Self::Cr => Some("line endings: CR alone, which do not count as line breaks in so large a file"),
            Self::Mixed => Some("line endings: mixed; `show_ends` marks each"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_the_line_endings_of_a_text() {
        for (text, expected) in [
            ("", None),
            ("a", None),
            ("a\nb\n", Some(LineEnding::Lf)),
            ("a\r\nb\r\n", Some(LineEnding::CrLf)),
            ("a\r\nb\r", Some(LineEnding::CrLf)),
            ("a\rb", Some(LineEnding::Cr)),
            ("a\r\nb\n", Some(LineEnding::Mixed)),
            ("a\rb\n", Some(LineEnding::Mixed)),
        ] {
            assert_eq!(LineEnding::of(text), expected, "{text:?}");
        }
    }
}
