//! Sanitization of hook texts for models and terminals.

use toolstead_domain::invisible_characters::is_removable;

/// Maximum length of a hook's text, in characters.
pub(super) const MAX_TEXT: usize = 10_000;

/// Returns the text trimmed and truncated, without terminal control sequences and invisible characters.
pub(super) fn clean(text: &str) -> String {
    let mut cleaned = String::new();
    let mut characters = text.trim().chars().peekable();
    let mut count = 0;
    while let Some(c) = characters.next() {
        match c {
            '\u{1b}' => skip_sequence(&mut characters),
            '\n' | '\t' => cleaned.push(c),
            c if is_removable(c) => continue,
            c => cleaned.push(c),
        }
        count += 1;
        if count == MAX_TEXT {
            cleaned.push('…');
            break;
        }
    }
    cleaned
}

/// Skips the rest of an escape sequence (ECMA-48: CSI until its final byte, OSC until BEL or ST).
fn skip_sequence(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match characters.next() {
        Some('[') => while characters.next().is_some_and(|c| !('\u{40}'..='\u{7e}').contains(&c)) {},
        Some(']') => {
            while let Some(c) = characters.next() {
                if c == '\u{7}' || (c == '\u{1b}' && characters.next_if_eq(&'\\').is_some()) {
                    return;
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_control_sequences_are_removed_and_long_texts_are_cut() {
        assert_eq!(clean(" \u{1b}[31mred\u{1b}[0m\u{1b}]0;title\u{7}!\r\n\u{202e}x\u{200b}\u{e0041} "), "red!\nx");
        assert_eq!(clean("\u{1b}]0;no end"), "");
        let long = clean(&"ä".repeat(MAX_TEXT + 5));
        assert_eq!(long.chars().count(), MAX_TEXT + 1);
    }
}
