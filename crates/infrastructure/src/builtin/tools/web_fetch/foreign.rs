//! Names and titles of texts of the web.

use crate::builtin::files::etag::digest_of;

/// Digits of a text's digest in its name: so many that nobody finds a text by trial that holds its own.
const DIGITS: usize = 32;

/// The name of a text, which it cannot hold itself.
pub(super) fn mark(text: &str) -> String {
    format!("web page {}", &digest_of(text.as_bytes()).to_string()[..DIGITS])
}

/// A text in one line and so many characters.
pub(super) fn one_line(text: &str, characters: usize) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((at, _)) = line.char_indices().nth(characters) {
        line.truncate(at);
        line.push('…');
    }
    line
}
