//! Sanitized display of text from servers, for users and models.

use toolstead_domain::invisible_characters::is_invisible;

/// Returns the text on one line, without control and direction characters, truncated after `limit` characters.
pub(in crate::mcp::client) fn shown(text: &str, limit: usize) -> String {
    let mut shown = String::with_capacity(text.len().min(limit));
    for (count, c) in text.trim().chars().enumerate() {
        if count == limit {
            shown.push('…');
            break;
        }
        match c {
            '\n' | '\t' | '\u{2028}' | '\u{2029}' => shown.push(' '),
            // This includes joiners of letters and emoji. Labels are readable without them.
            c if is_invisible(c) => {}
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_invisible_characters_are_removed_and_long_texts_are_cut() {
        assert_eq!(shown(" a\u{1b}[31m\nb\u{202e}c\r\u{9b}\u{e0041}\u{200d}\u{e0131}\u{ad} ", 100), "a[31m bc");
        assert_eq!(shown("a\u{2028}b\u{2029}c", 100), "a b c");
        assert_eq!(shown("äöüß", 3), "äöü…");
        assert_eq!(shown("äöü", 3), "äöü");
    }
}
