//! Sanitization of a provider's texts for users and models.

use toolstead_domain::{Secret, invisible_characters::is_invisible};

/// Maximum length of a text, in characters.
const MAX_CHARACTERS: usize = 600;
/// Minimum length of a secret, in bytes. A shorter one would occur in any text.
const MIN_SECRET: usize = 6;

/// Returns the text on one line, truncated, without secrets and without control and invisible characters.
pub(super) fn clean<'s>(text: &str, secrets: impl IntoIterator<Item = &'s Secret>) -> String {
    // Invisible characters are removed first, because a secret may contain some.
    let mut text: String = text.trim().chars().filter_map(visible).collect();
    let mut secrets: Vec<&str> = secrets.into_iter().map(Secret::expose).flat_map(with_words).collect();
    // Longer secrets come first, because replacing a shorter one within them would leave the rest.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    for secret in secrets.into_iter().filter(|secret| secret.len() >= MIN_SECRET) {
        text = text.replace(secret, "[redacted]");
    }
    if let Some((end, _)) = text.char_indices().nth(MAX_CHARACTERS) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Returns the secret and its words. Of `Bearer sk-1` a provider repeats only the last word.
fn with_words(secret: &str) -> impl Iterator<Item = &str> {
    std::iter::once(secret).chain(secret.split_whitespace())
}

fn visible(c: char) -> Option<char> {
    match c {
        '\n' | '\t' | '\u{2028}' | '\u{2029}' => Some(' '),
        // This includes joiners of letters and emoji, because a secret may contain some.
        c => (!is_invisible(c)).then_some(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_redacted_and_invisible_characters_are_removed() {
        let key = Secret::new("sk-123456");
        let message = clean("bad key sk-123456\u{1b}[31m\n(sk-123456)\u{202e}", [&key, &Secret::new("b")]);
        assert_eq!(message, "bad key [redacted][31m ([redacted])");
        assert_eq!(clean("a\u{2028}b\u{2029}c", []), "a b c");
        assert_eq!(clean(&"ä".repeat(10_000), []).chars().count(), MAX_CHARACTERS + 1);
    }

    #[test]
    fn keys_with_hidden_characters_in_headers_or_in_longer_keys_are_redacted() {
        let key = Secret::new("sk-123456");
        for hidden in ["\u{200b}", "\u{7}", "\u{200d}", "\u{ad}", "\u{fe0f}", "\u{e0101}"] {
            assert_eq!(clean(&format!("bad key sk-12{hidden}3456"), [&key]), "bad key [redacted]", "{hidden:?}");
        }
        let header = Secret::new("Bearer sk-654321");
        assert_eq!(clean("bad key sk-654321, Bearer sk-654321", [&header]), "bad key [redacted], [redacted]");
        let longer = Secret::new("sk-123456-and-more");
        assert_eq!(clean("bad key sk-123456-and-more", [&key, &longer]), "bad key [redacted]");
    }
}
