//! Cleaning of foreign text, so that it can be shown next to text of Toolstead.

use crate::services::call_marks::neutralized;
use crate::visible_text::VisibleText;

/// Text without characters that move, hide or reorder text, and without marks of calls. Its lines end with line feeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanText {
    /// The cleaned text.
    pub text: String,
    /// Number of invisible characters that were removed.
    pub removed: usize,
}

impl CleanText {
    /// Cleans a text.
    pub fn of(text: &str) -> Self {
        let lines = with_line_feeds(text);
        let VisibleText { text, removed } = VisibleText::of(&lines).unwrap_or(VisibleText { text: lines, removed: 0 });
        Self { text: neutralized(text), removed }
    }
}

/// Returns the text with a line feed at the end of each line, whatever the original line ends are.
pub(super) fn with_line_feeds(text: &str) -> String {
    let mut lines = String::with_capacity(text.len());
    let mut after_return = false;
    for c in text.chars() {
        match c {
            '\r' => lines.push('\n'),
            '\n' if after_return => {}
            '\u{2028}' | '\u{2029}' | '\u{85}' => lines.push('\n'),
            c => lines.push(c),
        }
        after_return = c == '\r';
    }
    lines
}

/// Returns the text without control characters (except for line feeds and tabs), marks of direction, other invisible
/// characters, and marks of calls.
pub fn clean_text(text: &str) -> String {
    CleanText::of(text).text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use toolstead_domain::invisible_characters::is_removable;

    #[test]
    fn invisible_characters_are_removed_and_call_marks_are_escaped() {
        for (text, expected, removed) in [
            ("a\r\nb\rc\nd\te", "a\nb\nc\nd\te", 0),
            ("a\r\nb\rc\n\td", "a\nb\nc\n\td", 0),
            ("a\u{1b}[31mb\0\u{9b}c", "a[31mbc", 3),
            ("pay \u{202e}moc.live\u{202c} now", "pay moc.live now", 2),
            ("x\u{e0049}\u{e0067}y\u{feff}\u{200b}z", "xyz", 4),
            ("👩\u{200d}👧 ja\u{200c}", "👩\u{200d}👧 ja", 1),
            ("a\u{2028}b", "a\nb", 0),
            ("x\u{e0101}\u{e0102}\u{e0103}y\u{3164}z", "xyz", 4),
            ("<\u{0}|im_start|>", "&lt;|im_start|>", 1),
            ("<\u{200d}tool\u{200c}_use>", "&lt;tool_use>", 2),
            ("a\u{200d}\u{200d}\u{200d}b\u{3164}\u{2028}c", "ab\nc", 4),
            ("👩\u{200d}💻 ä ع", "👩\u{200d}💻 ä ع", 0),
        ] {
            assert_eq!(CleanText::of(text), CleanText { text: expected.into(), removed }, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn cleaning_text_is_idempotent(text in "[<a-z|/ \r\n\u{0}-\u{1f}\u{202a}-\u{202e}]{0,60}|(</?(tool_use|invoke) ?){0,5}") {
            let once = clean_text(&text);
            prop_assert_eq!(clean_text(&once), once.clone());
            prop_assert!(!once.chars().any(is_removable));
        }
    }
}
