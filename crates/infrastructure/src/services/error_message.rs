//! Messages of services in error answers.

use crate::services::{foreign_text::clean_text, one_line::one_line};
use serde_json::Value;
use toolstead_domain::Secret;

/// Maximum length of a message, in characters.
const WORDS: usize = 300;
const PLACES: [&str; 6] = ["/error/detail", "/error/message", "/error", "/detail/error", "/detail", "/message"];

/// Returns the message in an error answer of any known shape; empty if there is none. A service may repeat the refused
/// key, so it is removed.
pub(super) fn extract_message(body: &[u8], key: Option<&Secret>) -> String {
    let said = match serde_json::from_slice::<Value>(body) {
        Ok(document) => {
            PLACES.iter().find_map(|place| document.pointer(place)?.as_str().map(str::to_owned)).unwrap_or_default()
        }
        Err(_) => {
            let beginning = String::from_utf8_lossy(&body[..body.len().min(8 * WORDS)]).into_owned();
            // An HTML page is not a useful message.
            if beginning.trim_start().starts_with('<') { String::new() } else { beginning }
        }
    };
    one_line(&without_keys(&said, key.map(Secret::expose)), WORDS)
}

/// Returns the text without invisible characters, and then without these keys: a key with invisible characters in it
/// would not be found, but would be readable.
pub(super) fn without_keys<'a>(text: &str, keys: impl IntoIterator<Item = &'a str>) -> String {
    let keys = keys.into_iter().filter(|key| !key.is_empty());
    keys.fold(clean_text(text), |text, key| text.replace(key, "…"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_messages_are_extracted_from_every_format_without_the_key() {
        let key = Secret::new("key-1");
        for (body, expected) in [
            (r#"{"error": {"code": 7, "message": "a\nb"}}"#, "a b"),
            (r#"{"error": "no key-1 here"}"#, "no … here"),
            (r#"{"detail": {"error": "x"}}"#, "x"),
            (r#"{"message": "x"}"#, "x"),
            (r#"{"x": "y"}"#, ""),
            ("key-1 is wrong", "… is wrong"),
            ("<html>key-1", ""),
            ("", ""),
            ("no k\u{200b}ey\u{7}-1 here", "no … here"),
        ] {
            assert_eq!(extract_message(body.as_bytes(), Some(&key)), expected, "{body}");
        }
    }
}
