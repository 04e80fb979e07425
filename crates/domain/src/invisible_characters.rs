//! Invisible characters, which can move, hide or carry text.

/// Returns `true` if the character is invisible and text reads the same without it: controls other than line feeds and
/// tabs, direction marks, tags, fillers, and characters without width that join nothing.
pub fn is_removable(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' => true,
        '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        '\u{e0000}'..='\u{e0fff}' => !is_joining(character),
        character => character.is_control(),
    }
}

/// Returns `true` if the character is invisible by itself and some scripts or emoji need it: it joins letters, varies
/// the preceding character, or fills a place in a syllable.
pub fn is_joining(character: char) -> bool {
    matches!(character,
        '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180d}' | '\u{180f}'
        | '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Returns `true` if the character is invisible by itself, even if text needs it: it is [unseen](is_removable), or
/// [joins letters](is_joining).
pub fn is_invisible(character: char) -> bool {
    is_removable(character) || is_joining(character)
}

/// Returns `true` if the character changes the direction of the text around it: a direction mark, embedding or isolate.
pub fn changes_direction(character: char) -> bool {
    matches!(character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns `true` if the character moves the text around it to an unexpected place: it [turns](changes_direction)
/// text, ends a line other than by a line feed, or is a control other than line feeds and tabs.
pub fn displaces_text(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{2028}' | '\u{2029}' => true,
        character => character.is_control() || changes_direction(character),
    }
}

/// Returns the sentence, without a full stop, that reports removed characters. `None` if there are none.
pub fn removal_note(removed: usize) -> Option<String> {
    match removed {
        0 => None,
        1 => Some("1 invisible character was removed".into()),
        removed => Some(format!("{removed} invisible characters were removed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use icu_properties::{CodePointSetData, props::DefaultIgnorableCodePoint};

    #[test]
    fn classes_of_invisible_and_text_displacing_characters_are_consistent() {
        let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
        for character in '\0'..=char::MAX {
            assert!(
                !changes_direction(character) || displaces_text(character) && is_removable(character),
                "{character:?}"
            );
            assert!(!(is_removable(character) && is_joining(character)), "{character:?}");
            assert!(!ignorable.contains(character) || is_invisible(character), "{character:?}");
        }
        assert!(
            displaces_text('\u{2028}')
                && displaces_text('\r')
                && displaces_text('\u{9b}')
                && !displaces_text('\n')
                && !displaces_text('\t')
                && !displaces_text('\u{200b}')
        );
    }
}
