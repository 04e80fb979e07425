//! Texts that strangers wrote, made fit to stand beside ours.

use toolstead_domain::unseen::seen;

/// The text without what moves, hides or reorders others: control characters but for line breaks and tabs, marks of
/// direction, and characters that look like nothing and may carry words all the same. Line breaks are `\n`.
pub fn clean_text(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut after_return = false;
    for c in text.chars() {
        match c {
            '\r' => clean.push('\n'),
            '\n' if after_return => {}
            '\u{2028}' | '\u{2029}' | '\u{85}' => clean.push('\n'),
            c => clean.push(c),
        }
        after_return = c == '\r';
    }
    seen(&clean).map_or(clean, |(seen, _)| seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_hides_or_moves_text_is_left() {
        for (text, expected) in [
            ("a\r\nb\rc\nd\te", "a\nb\nc\nd\te"),
            ("a\u{1b}[31mb\0\u{9b}c", "a[31mbc"),
            ("pay \u{202e}moc.live\u{202c} now", "pay moc.live now"),
            ("x\u{e0049}\u{e0067}y\u{feff}\u{200b}z", "xyz"),
            ("👩\u{200d}👧 ja\u{200c}", "👩\u{200d}👧 ja\u{200c}"),
            ("a\u{2028}b", "a\nb"),
            ("x\u{e0101}\u{e0102}\u{e0103}y\u{3164}z", "xyz"),
        ] {
            assert_eq!(clean_text(text), expected, "{text:?}");
        }
    }
}
