//! Marks and titles of texts from the web.

use crate::builtin::files::etag::digest_of;

/// Number of digits of a text's digest in its mark: enough that an author cannot find a text that contains its own
/// mark.
const DIGITS: usize = 32;

/// Returns the mark of a text, which the text itself cannot contain.
pub(super) fn mark(text: &str) -> String {
    format!("web page {}", &digest_of(text.as_bytes()).to_string()[..DIGITS])
}

/// Returns a text as one line, cut to this number of characters.
pub(super) fn one_line(text: &str, characters: usize) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((at, _)) = line.char_indices().nth(characters) {
        line.truncate(at);
        line.push('…');
    }
    line
}
