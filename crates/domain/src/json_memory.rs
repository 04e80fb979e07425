//! The memory that the values of a JSON text need, computed before it is parsed.
//!
//! A value is many times larger than its text: `0,` has two bytes as text, and 72 as a value. Untrusted texts are
//! therefore measured before they are parsed.

use serde_json::Value;

/// Maximum memory of the values of one JSON text, in bytes: three times the maximum size of a message.
const MAX_VALUE_BYTES: usize = 48 << 20;

const VALUE: usize = size_of::<Value>();
/// Memory of a member of an object, in bytes: its value, name, hash and index entry.
const MEMBER: usize = VALUE + size_of::<String>() + 16;
/// Initial capacity of lists and objects.
const AT_ONCE: usize = 4;
/// Overhead of an allocation, in bytes.
const ALLOCATION: usize = 16;

/// Member name with which serde_json passes raw JSON internally. If an object begins with this member, its text is
/// parsed as values in place of the object.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// Returns `true` if the values of a JSON text need more than 48 MiB of memory, or cannot be counted because the text
/// [hides some](hides_values). A text that is not JSON is measured by the characters it contains.
pub fn has_too_many_values(json: &[u8]) -> bool {
    has_too_much_memory(json) || hides_values(json)
}

/// Returns `true` if the values of a JSON text that [hides none](hides_values) need more than 48 MiB of memory.
pub fn has_too_much_memory(json: &[u8]) -> bool {
    // The value with the most memory for each byte of its text is an object with one nameless member.
    json.len() > MAX_VALUE_BYTES / (AT_ONCE * MEMBER) && memory(json) > MAX_VALUE_BYTES
}

/// Returns `true` if a JSON text may contain a string that is parsed as values of the whole text. The number of such
/// values is unlimited, and they may be nested so deep that the stack overflows.
pub fn hides_values(json: &[u8]) -> bool {
    let follows = |byte: u8, text: &[u8]| {
        json.contains(&byte) && json.split(|one| *one == byte).skip(1).any(|part| part.starts_with(text))
    };
    // Characters of the name may be escaped as `\u00XX`.
    if !follows(b'$', b"serde_j") && !follows(b'\\', b"u00") {
        return false;
    }
    let lengths = RAW_VALUE.len() + 2..=6 * RAW_VALUE.len() + 2;
    let mut at = 0;
    while let Some(begin) = json.iter().skip(at).position(|byte| *byte == b'"').map(|quote| at + quote) {
        at = after_string(json, begin + 1);
        let string = json.get(begin..at).filter(|string| lengths.contains(&string.len()));
        if string.is_some_and(|string| serde_json::from_slice::<String>(string).is_ok_and(|name| name == RAW_VALUE)) {
            return true;
        }
    }
    false
}

/// Returns an upper estimate of the memory that the values of a JSON text need, in bytes, without the bytes of their
/// strings.
pub fn memory(json: &[u8]) -> usize {
    let mut memory = VALUE;
    let mut in_object = Vec::new();
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        at += 1;
        match byte {
            b'"' => {
                at = after_string(json, at);
                memory += ALLOCATION;
            }
            b'[' | b'{' => {
                let is_empty =
                    json[at..].iter().find(|byte| !byte.is_ascii_whitespace()).is_none_or(|next| *next == byte + 2);
                let each = if *byte == b'{' { MEMBER } else { VALUE };
                memory += if is_empty { 0 } else { AT_ONCE * each + ALLOCATION };
                in_object.push(*byte == b'{');
            }
            b']' | b'}' => {
                in_object.pop();
            }
            // Lists grow by doubling: spare capacity of the same size, or the smaller list while it is copied.
            b',' => memory += 2 * if in_object.last() == Some(&true) { MEMBER } else { VALUE },
            _ => {}
        }
    }
    memory
}

/// Returns the position after the closing quote of the string that contains the position `at`. If the quote is missing,
/// returns a position at or after the end.
fn after_string(json: &[u8], mut at: usize) -> usize {
    while let Some(byte) = json.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: usize) {
        assert_eq!(memory(json.as_bytes()), expected, "{json}");
    }

    #[test]
    fn estimated_memory_includes_container_capacity_and_ignores_string_contents() {
        check("0", VALUE);
        check("[]", VALUE);
        check("[ ]", VALUE);
        check("[0]", VALUE + 4 * VALUE + 16);
        check("[0,0]", VALUE + 6 * VALUE + 16);
        check(r#"{"a":0,"b":1}"#, VALUE + 6 * MEMBER + 16 + 2 * 16);
        check(r#""[0,0,\"[0,""#, VALUE + 16);
    }

    #[test]
    fn json_values_hidden_in_a_raw_value_string_are_detected() {
        let parsed = serde_json::from_str::<Value>(r#"{"$serde_json::private::RawValue":"[0,0]"}"#).unwrap();
        assert_eq!(parsed, serde_json::json!([0, 0]));
        for json in [
            r#"{"$serde_json::private::RawValue":"[0,0]"}"#,
            r#"[{ "\u0024serde_json::private::RawValue" :"0"}]"#,
            r#"{"\\":"\"","a":{"$\u0073erde_json::private::Raw\u0056alue":"0"}}"#,
        ] {
            assert!(hides_values(json.as_bytes()) && has_too_many_values(json.as_bytes()), "{json}");
        }
        for json in [
            r#"{"a":"$serde_json::private::RawValue is a name"}"#,
            r#"{"a":"{\"$serde_json::private::RawValue\":\"0\"}","b":"\u0024"}"#,
            r#"{"$serde_json::private::Number":"0"}"#,
            "\"$serde_json\\",
            "\\u00\"",
        ] {
            assert!(!hides_values(json.as_bytes()), "{json}");
        }
    }

    #[test]
    fn json_texts_with_too_many_values_are_detected() {
        let zeros = |count: usize| format!("[0{}]", ",0".repeat(count));
        assert!(!has_too_many_values(zeros(300_000).as_bytes()));
        assert!(has_too_many_values(zeros(400_000).as_bytes()));
        for dense in ["{\"\":0},", "[0],", "{},", "[[]],", "0,"] {
            let text = format!("[{}0]", dense.repeat((16 << 20) / dense.len()));
            assert!(has_too_many_values(text.as_bytes()), "{dense}");
        }
        let texts = format!("[{}0]", format!("\"{}\",", "x".repeat(1_000)).repeat(16_000));
        assert!(!has_too_many_values(texts.as_bytes()));
        for broken in ["]]}}", "\"", "[", "{\\"] {
            assert!(!has_too_many_values(broken.as_bytes()));
        }
    }
}
