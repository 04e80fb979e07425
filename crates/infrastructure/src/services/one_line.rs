//! Foreign text on one line.

/// Returns the text on one line: at most `characters` characters, and `…` if it was longer. Invisible characters are
/// not removed: the caller that reports their number removes them.
pub fn one_line(text: &str, characters: usize) -> String {
    let mut line = String::new();
    let mut left = characters;
    for word in text.split_whitespace() {
        let space = usize::from(!line.is_empty());
        let length = word.chars().count();
        if length + space > left {
            line.push_str(&" "[..space]);
            line.extend(word.chars().take(left.saturating_sub(space)));
            line.truncate(line.trim_end().len());
            line.push('…');
            break;
        }
        line.push_str(&" "[..space]);
        line.push_str(word);
        left -= length + space;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn whitespace_is_collapsed_and_long_text_is_cut_with_an_ellipsis() {
        for (text, expected) in [
            ("  a\t\n b\u{a0}c ", "a b c"),
            ("a\u{85}b\u{2028}c", "a b c"),
            ("12345678901", "1234567890…"),
            ("1234 6789 x", "1234 6789…"),
            ("1234567890", "1234567890"),
            ("\u{1f469}\u{200d}\u{1f4bb}", "\u{1f469}\u{200d}\u{1f4bb}"),
            ("", ""),
        ] {
            assert_eq!(one_line(text, 10), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_becomes_one_bounded_line(text in "\\PC{0,80}|[ \n\t\u{1b}\u{202e}a]{0,80}", most in 1_usize..40) {
            let line = one_line(&text, most);
            prop_assert!(line.chars().count() <= most + 1);
            prop_assert!(!line.contains(['\n', '\t']) && line.trim() == line);
        }
    }
}
