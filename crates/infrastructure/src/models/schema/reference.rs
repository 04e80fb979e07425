//! References within a schema.

use serde_json::Value;

/// Returns the schema at `#` or `#/…`; `None` for every other reference and for a missing target.
pub(super) fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(&decoded(reference.strip_prefix('#')?)?)
}

/// Returns the last segment of a reference, for display.
pub(super) fn name(reference: &str) -> &str {
    reference.rsplit(['/', '#']).find(|word| !word.is_empty()).unwrap_or("the whole")
}

/// Decodes the percent-encoding of a URI fragment; `None` if the result is not UTF-8.
fn decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, tail @ ..] = rest {
        let hexadecimal = tail.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        match (first, hexadecimal.and_then(|pair| u8::from_str_radix(pair, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).ok()
}
