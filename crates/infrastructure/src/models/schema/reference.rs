//! References within a schema.

use serde_json::Value;

/// The schema that `#` or `#/…` names; `None` for every other reference, and for one that leads nowhere.
pub(super) fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(&decoded(reference.strip_prefix('#')?)?)
}

/// The last word of a reference: a name for those who read it.
pub(super) fn name(reference: &str) -> &str {
    reference.rsplit(['/', '#']).find(|word| !word.is_empty()).unwrap_or("the whole")
}

/// A fragment of a URI without its `%XX`.
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
