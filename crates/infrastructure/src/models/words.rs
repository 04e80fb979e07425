//! A provider's own words, made fit for people's and models' eyes.

use toolstead_domain::{secret::Secret, unseen::is_invisible};

/// So much of them is told, in characters.
const MAX_CHARACTERS: usize = 600;
/// Characters of the shortest secret: a shorter one is found in any text.
const MIN_SECRET: usize = 6;

/// The text on one line, bounded, without the secrets and without what moves a cursor or hides text.
pub(super) fn clean<'s>(text: &str, secrets: impl IntoIterator<Item = &'s Secret>) -> String {
    // A secret that is written with hidden characters in it is one as soon as they are gone.
    let mut text: String = text.trim().chars().filter_map(visible).collect();
    let mut secrets: Vec<&str> = secrets.into_iter().map(Secret::expose).flat_map(with_words).collect();
    // A secret that is a part of another one would leave the rest of that.
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

/// The secret, and its words: of `Bearer sk-1` a provider repeats the last alone.
fn with_words(secret: &str) -> impl Iterator<Item = &str> {
    std::iter::once(secret).chain(secret.split_whitespace())
}

fn visible(c: char) -> Option<char> {
    match c {
        '\n' | '\t' | '\u{2028}' | '\u{2029}' => Some(' '),
        // Those that join letters and emoji go as well: a secret may be written with them in it.
        c => (!is_invisible(c)).then_some(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_does_not_get_through_and_neither_does_what_hides_text() {
        let key = Secret::new("sk-123456");
        let told = clean("bad key sk-123456\u{1b}[31m\n(sk-123456)\u{202e}", [&key, &Secret::new("b")]);
        assert_eq!(told, "bad key [redacted][31m ([redacted])");
        assert_eq!(clean("a\u{2028}b\u{2029}c", []), "a b c");
        assert_eq!(clean(&"ä".repeat(10_000), []).chars().count(), MAX_CHARACTERS + 1);
    }

    #[test]
    fn a_key_with_hidden_characters_in_a_header_or_within_a_longer_one_does_not_get_through() {
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
