//! `file:` URIs: a single form of percent-encoding, decoded once, and paths without `.` or `..`.

use std::fmt::Write;
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};

/// Prefix of every URI of a file on this machine; the path follows without its first slash.
const PREFIX: &str = "file:///";

/// Returns the absolute path that a URI names.
///
/// # Errors
/// `invalid_input` for another scheme, a host, a query or fragment, an invalid escape, invalid UTF-8, NUL, and `.` or
/// `..`, written plainly or escaped.
pub(crate) fn path_of(uri: &str) -> Result<String, ToolFailure> {
    let Some(rest) = uri.strip_prefix(PREFIX) else {
        return Err(wrong(uri, "it must begin with `file:///`: files of other hosts are not read"));
    };
    let path = format!("/{}", decoded(rest).map_err(|reason| wrong(uri, reason))?);
    match path.split('/').any(|name| matches!(name, "." | "..")) {
        true => Err(wrong(uri, "it holds `.` or `..`: name the file by its whole path")),
        false => Ok(path),
    }
}

/// Decodes percent-encoding once: `%2541` becomes `%41`, not `A`.
///
/// # Errors
/// The reason why the text is invalid.
pub(crate) fn decoded(text: &str) -> Result<String, &'static str> {
    if text.contains(['?', '#']) {
        return Err("a path holds `?` as `%3F` and `#` as `%23`");
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(rest.next()), digit(rest.next()));
        let escaped = high.zip(low).and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        bytes.push(escaped.ok_or("a `%` is followed by two hexadecimal digits, and stands for itself as `%25`")?);
    }
    let decoded = String::from_utf8(bytes).map_err(|_| "the escaped bytes must be UTF-8")?;
    if decoded.contains('\0') { Err("it holds a NUL character") } else { Ok(decoded) }
}

/// Encodes a path for a URI; slashes stay unescaped.
pub(crate) fn encoded(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => text.push(char::from(byte)),
            // Writing to a text cannot fail.
            _ => _ = write!(text, "%{byte:02X}"),
        }
    }
    text
}

fn wrong(uri: &str, reason: &str) -> ToolFailure {
    let shown: String = uri.chars().take(128).collect();
    ToolFailure::new(ErrorKind::InvalidInput, format!("`{shown}` cannot be read as a file: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_uri_is_parsed_into_an_absolute_path() {
        for (uri, path) in [
            ("file:///a/b.txt", "/a/b.txt"),
            ("file:///a%20b/%C3%A4", "/a b/ä"),
            ("file:///ä", "/ä"),
            ("file:///a%252e%252e/b", "/a%2e%2e/b"),
            ("file:///a+b", "/a+b"),
            ("file:////a", "//a"),
            ("file:///...", "/..."),
        ] {
            assert_eq!(path_of(uri).unwrap(), path);
        }
    }

    #[test]
    fn rejects_file_uris_with_other_hosts_dot_segments_or_invalid_encoding() {
        for (uri, said) in [
            ("file://host/a", "other hosts"),
            ("file:/a", "file:///"),
            ("FILE:///a", "file:///"),
            ("http:///a", "file:///"),
            ("file:///..", "`..`"),
            ("file:///a/../b", "`..`"),
            ("file:///..%2f..%2Fetc", "`..`"),
            ("file:///a/%2e%2E/b", "`..`"),
            ("file:///a/./b", "`.`"),
            ("file:///a%00b", "NUL"),
            ("file:///a\0b", "NUL"),
            ("file:///a%2", "hexadecimal"),
            ("file:///a%zz", "hexadecimal"),
            ("file:///a%+1", "hexadecimal"),
            ("file:///%ff", "UTF-8"),
            ("file:///a?b", "%3F"),
            ("file:///a#b", "%23"),
        ] {
            let failure = path_of(uri).unwrap_err();
            assert_eq!(failure.kind, ErrorKind::InvalidInput);
            assert!(failure.message.contains(said), "{uri}: {failure}");
        }
    }

    proptest! {
        #[test]
        fn decoding_an_encoded_text_returns_the_original_text(text in "[^\0]*") {
            prop_assert_eq!(decoded(&encoded(&text)).unwrap(), text);
        }

        #[test]
        fn no_file_uri_yields_a_path_with_parent_segments(rest in "([.%/a2eEfF5]|%2e|%2f|%252e){0,12}") {
            if let Ok(path) = path_of(&format!("file:///{rest}")) {
                prop_assert!(path.starts_with('/') && !path.split('/').any(|name| name == ".."), "{}", path);
            }
        }
    }
}
