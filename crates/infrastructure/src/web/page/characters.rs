//! Texts of a page on one line, without invisible characters.

use crate::visible_text::VisibleText;

/// Returns the text on one line, without invisible characters.
pub(super) fn on_one_line(text: &str) -> String {
    let seen = VisibleText::of(text).map(|seen| seen.text);
    with_single_spaces(seen.as_deref().unwrap_or(text))
}

/// Returns the text on one line: each run of white space is a space.
pub(super) fn with_single_spaces(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Cuts a text to at most `characters`, with a mark at the cut.
pub(super) fn shortened(mut text: String, characters: usize) -> String {
    if let Some((at, _)) = text.char_indices().nth(characters) {
        text.truncate(at);
        text.push('…');
    }
    text
}
