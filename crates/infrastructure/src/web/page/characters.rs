//! Texts of a page on one line, without characters that no reader sees.

use toolstead_domain::unseen::seen;

/// The text on one line: each run of white space is a space.
pub(super) fn on_one_line(text: &str) -> String {
    let seen = seen(text).map(|(text, _)| text);
    let text = seen.as_deref().unwrap_or(text);
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// No longer than so many characters, with a mark where it was cut.
pub(super) fn shortened(mut text: String, characters: usize) -> String {
    if let Some((at, _)) = text.char_indices().nth(characters) {
        text.truncate(at);
        text.push('…');
    }
    text
}
