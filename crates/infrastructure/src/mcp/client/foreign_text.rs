//! Text of a server, made fit for people's and models' eyes.

/// The text on one line, without control and direction characters, cut off after `limit` characters.
pub(super) fn shown(text: &str, limit: usize) -> String {
    let mut shown = String::with_capacity(text.len().min(limit));
    for (count, c) in text.trim().chars().enumerate() {
        if count == limit {
            shown.push('…');
            break;
        }
        match c {
            '\n' | '\t' => shown.push(' '),
            // Zero-width, direction and tag characters hide text or turn it around.
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' => {}
            '\u{e0000}'..='\u{e007f}' => {}
            c if c.is_control() => {}
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_the_cursor_or_hides_text_gets_through() {
        assert_eq!(shown(" a\u{1b}[31m\nb\u{202e}c\r\u{9b}\u{e0041} ", 100), "a[31m bc");
        assert_eq!(shown("äöüß", 3), "äöü…");
        assert_eq!(shown("äöü", 3), "äöü");
    }
}
