//! A provider's own words, made fit for people's and models' eyes.

use toolstead_domain::secret::Secret;

/// So much of them is told, in characters.
const MAX_CHARACTERS: usize = 600;
/// What is shorter than this is found in any text, and is not taken for a secret in it.
const MIN_SECRET: usize = 6;

/// The text on one line, bounded, without the secrets and without what moves a cursor or hides text.
pub(super) fn clean<'s>(text: &str, secrets: impl IntoIterator<Item = &'s Secret>) -> String {
    let mut text = text.trim().to_owned();
    for secret in secrets.into_iter().map(Secret::expose).filter(|secret| secret.len() >= MIN_SECRET) {
        text = text.replace(secret, "[redacted]");
    }
    let mut shown = String::with_capacity(text.len().min(MAX_CHARACTERS));
    for (count, c) in text.chars().enumerate() {
        if count == MAX_CHARACTERS {
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
    fn a_key_does_not_get_through_and_neither_does_what_hides_text() {
        let key = Secret::new("sk-123456");
        let told = clean("bad key sk-123456\u{1b}[31m\n(sk-123456)\u{202e}", [&key, &Secret::new("b")]);
        assert_eq!(told, "bad key [redacted][31m ([redacted])");
        assert_eq!(clean(&"ä".repeat(10_000), []).chars().count(), MAX_CHARACTERS + 1);
    }
}
