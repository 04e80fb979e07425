//! Words of others as one line of plain text.

/// The text on one line, without characters that are not seen, and with so many characters at most.
pub(super) fn one_line(text: &str, characters: usize) -> String {
    let mut line = String::new();
    let mut count = 0;
    // A word may be as long as the text.
    let seen = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(|c| !is_unseen(*c));
    let mut is_space_due = false;
    for c in seen {
        if c == ' ' {
            is_space_due = !line.is_empty();
            continue;
        }
        if count + usize::from(is_space_due) >= characters {
            line.push('…');
            break;
        }
        if std::mem::take(&mut is_space_due) {
            line.push(' ');
            count += 1;
        }
        line.push(c);
        count += 1;
    }
    line
}

/// Characters that steer a terminal, turn the direction of text round, or hide words from people.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_shows_all_that_it_holds() {
        for (text, expected) in [
            ("  a\t\n b\u{a0}c ", "a b c"),
            ("a\u{1b}[31mb\u{0}", "a[31mb"),
            ("a\u{202e}b\u{200b}c\u{e0041}", "abc"),
            ("a\u{85}b\u{2028}c", "a b c"),
            ("12345678901", "1234567890…"),
            ("1234 6789 x", "1234 6789…"),
            ("1234567890", "1234567890"),
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
            prop_assert!(!line.chars().any(|c| c.is_control() || is_unseen(c)) && line.trim() == line);
        }
    }
}
