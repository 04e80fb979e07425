//! Characters that hide text from users, and text that users do not see.

use crate::invisible_characters::{changes_direction, is_invisible};

/// Number of consecutive blanks that move text out of sight.
const BLANKS: usize = 60;
/// Number of consecutive empty lines that move text out of sight.
const EMPTY_LINES: usize = 12;

/// Returns the first hidden character as a clause.
pub(super) fn find(text: &str) -> Option<String> {
    if text.is_ascii() && !text.bytes().any(|byte| byte.is_ascii_control()) {
        return None;
    }
    let (character, kind) = first_hidden(text)?;
    Some(format!("it has the {kind} U+{:04X}, which hides text from users", u32::from(character)))
}

/// Returns the first hidden character with its kind.
pub(crate) fn first_hidden(text: &str) -> Option<(char, &'static str)> {
    let is_right_to_left = text.chars().any(|c| matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fefc}'));
    let has_balanced_isolates = text.split('\n').all(are_isolates_balanced);
    let mut before = None;
    let mut is_flag = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        // The flags of England, Scotland and Wales are a black flag with tags.
        is_flag = character == '\u{1f3f4}' || is_flag && matches!(character, '\u{e0061}'..='\u{e007a}' | '\u{e007f}');
        let is_legitimate = match character {
            '\u{e0061}'..='\u{e007f}' => is_flag,
            '\u{61c}' | '\u{200e}' | '\u{200f}' => is_right_to_left,
            '\u{2066}'..='\u{2069}' => is_right_to_left && has_balanced_isolates,
            _ => false,
        };
        if character == '\u{e007f}' {
            is_flag = false;
        }
        if let Some(kind) = kind(before, character, characters.peek().copied()).filter(|_| !is_legitimate) {
            return Some((character, kind));
        }
        before = Some(character);
    }
    None
}

/// Returns `true` if every directional isolate that begins in the line also ends in the line, so that it cannot reorder
/// other text.
fn are_isolates_balanced(line: &str) -> bool {
    let mut depth = 0_usize;
    for character in line.chars() {
        match character {
            '\u{2066}'..='\u{2068}' => depth += 1,
            '\u{2069}' if depth == 0 => return false,
            '\u{2069}' => depth -= 1,
            _ => {}
        }
    }
    depth == 0
}

/// Returns `true` if the character is invisible or a control character.
pub(super) fn is_hidden(character: char) -> bool {
    is_invisible(character) || character.is_control()
}

/// Returns the kind of a hidden character; `None` if the character is visible or has a legitimate use between these
/// neighbors.
fn kind(before: Option<char>, character: char, after: Option<char>) -> Option<&'static str> {
    match character {
        '\t' | '\n' | '\r' => None,
        character if character.is_control() => Some("control character"),
        character if changes_direction(character) => Some("character that changes the direction of text"),
        '\u{e0000}'..='\u{e007f}' => Some("tag character"),
        // Joiners have a use after emoji and after letters that are not ASCII.
        '\u{200c}' | '\u{200d}' => {
            let joins = |one: Option<char>| one.is_some_and(|one| !one.is_ascii() && !is_hidden_joiner(one));
            (!joins(before)).then_some("zero-width character")
        }
        // Variation selectors follow a symbol; several in a row carry data.
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => {
            let follows_symbol = before.is_some_and(|one| {
                !is_invisible(one) && (!one.is_ascii() || one.is_ascii_digit() || matches!(one, '#' | '*'))
            });
            (!follows_symbol).then_some("variation selector")
        }
        // Scripts without spaces mark possible line breaks this way.
        '\u{200b}' | '\u{2060}' => {
            let is_letter = |one: Option<char>| one.is_some_and(|one| u32::from(one) >= 0x0e00);
            (!(is_letter(before) && is_letter(after))).then_some("zero-width character")
        }
        // Used for hyphenation, and as invisible operators in formulas.
        '\u{ad}' | '\u{2061}' | '\u{2062}' => {
            let is_part = |one: Option<char>| one.is_some_and(|one| one.is_alphanumeric() || matches!(one, '(' | ')'));
            (!(is_part(before) && is_part(after))).then_some("invisible character")
        }
        // The vowel separator of Mongolian.
        '\u{180e}' => {
            let is_mongolian = |one: Option<char>| one.is_some_and(|one| matches!(one, '\u{1820}'..='\u{18aa}'));
            (!(is_mongolian(before) && is_mongolian(after))).then_some("invisible character")
        }
        '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180d}' | '\u{180f}' => None,
        character if is_invisible(character) => Some("invisible character"),
        _ => None,
    }
}

fn is_hidden_joiner(character: char) -> bool {
    is_invisible(character) && !matches!(character, '\u{fe0f}')
}

/// Returns a clause if users do not see a part of the text: after a long gap, before a carriage return in a line, or in
/// an HTML comment.
pub(super) fn concealed_text(text: &str) -> Option<String> {
    let mut blanks = 0;
    let mut lines = 0;
    for character in text.trim_end().chars() {
        match character {
            '\n' => (blanks, lines) = (0, lines + 1),
            character if character.is_whitespace() => blanks += 1,
            _ => {
                if blanks >= BLANKS || lines > EMPTY_LINES {
                    return Some("it continues after a gap that moves text out of sight".into());
                }
                (blanks, lines) = (0, 0);
            }
        }
    }
    let overwrites = text.trim_end().split('\n').any(|line| line.trim_end_matches('\r').contains('\r'));
    if overwrites {
        return Some("it has a carriage return that overwrites a line on a terminal".into());
    }
    (text.contains("<!--")).then(|| "it has a comment that is not displayed".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_found_and_legitimate_ones_are_not() {
        for text in [
            "a\u{1b}b",
            "a\u{202e}b",
            "a\u{e0041}",
            "pass\u{200b}word",
            "a\u{200d}b",
            "a\u{2060}b",
            "\u{feff}a",
            "a\u{fe0f}b",
            "x😀\u{e0100}\u{e0101}",
            "a\u{ad} b",
            "a\u{200c} b",
            "a\u{200f}b",
            "🏴\u{e0067} \u{e0062}",
            "\u{0}",
            "\u{9b}",
            "\u{2067}שלום",
            "a\u{2067}b\u{2069}",
            "a\u{180e}b",
        ] {
            assert!(find(text).is_some(), "{text:?}");
        }
        for text in [
            "plain\ttext\r\n",
            "👩\u{200d}💻",
            "❤\u{fe0f}",
            "1\u{fe0f}\u{20e3}",
            "می\u{200c}خواهم",
            "ภาษา\u{200b}ไทย",
            "❤\u{fe0f}\u{200d}🔥",
            "Rech\u{ad}nung",
            "sin\u{2061}(x)",
            "שלום\u{200f}!",
            "a \u{2067}שלום\u{2069} b",
            "ᠭᠠᠷ\u{180e}ᠠ",
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
        ] {
            assert_eq!(find(text), None, "{text:?}");
        }
    }

    #[test]
    fn text_after_a_long_gap_or_in_a_comment_is_reported_as_concealed() {
        assert!(concealed_text(&format!("Adds.{}Do it.", " ".repeat(80))).is_some());
        assert!(concealed_text(&format!("Adds.{}Do it.", "\n".repeat(30))).is_some());
        assert!(concealed_text("Adds. <!-- Do it. -->").is_some());
        assert_eq!(concealed_text("Adds.\n\n    - one\n    - two\n\n"), None);
    }
}
