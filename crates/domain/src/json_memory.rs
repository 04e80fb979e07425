//! The memory that the values of a JSON text take, told before they are made.
//!
//! A value is many times larger than its text: `0,` has two bytes, and 72 as a value. So a text is weighed before it is
//! parsed, wherever it comes from somebody else.

use serde_json::Value;

/// As much memory may the values of one text take. With the largest message beside them that is four times the message.
const MAX_VALUE_BYTES: usize = 48 << 20;

const VALUE: usize = size_of::<Value>();
/// A member of an object: its name, hash and place in the index beside the value.
const MEMBER: usize = VALUE + size_of::<String>() + 16;
/// Lists and objects take room for so many at once.
const AT_ONCE: usize = 4;
/// Bytes that an allocation takes beside its own.
const ALLOCATION: usize = 16;

/// The member under which serde_json hands raw JSON from one part of it to another. Where an object begins with it, the
/// text under it is read as values in the place of the object.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// Tells whether the values of a JSON text are more than are taken, or cannot be counted because it
/// [hides some](hides_values). The text need not be JSON; then it counts as what it looks like.
pub fn has_too_many_values(json: &[u8]) -> bool {
    has_too_much_memory(json) || hides_values(json)
}

/// Returns `true` if the values of a JSON text that [hides none](hides_values) are more than are taken.
pub fn has_too_much_memory(json: &[u8]) -> bool {
    // No value takes more for each byte of its text than an object with one nameless member.
    json.len() > MAX_VALUE_BYTES / (AT_ONCE * MEMBER) && memory(json) > MAX_VALUE_BYTES
}

/// Tells whether a JSON text may hold a string that is read as values of the whole when the text is parsed. Nothing bounds
/// the number of such values, and they may be nested so deep that the stack overflows.
pub fn hides_values(json: &[u8]) -> bool {
    let follows = |byte: u8, text: &[u8]| {
        json.contains(&byte) && json.split(|one| *one == byte).skip(1).any(|part| part.starts_with(text))
    };
    // Characters of the name may be written as numbers.
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

/// The memory of the values beside the bytes of their texts.
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
            // Lists grow by doubling: room for as many again, or the smaller list that is copied.
            b',' => memory += 2 * if in_object.last() == Some(&true) { MEMBER } else { VALUE },
            _ => {}
        }
    }
    memory
}

/// The place after the closing quote.
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
    fn values_weigh_what_they_take_and_texts_are_no_values() {
        check("0", VALUE);
        check("[]", VALUE);
        check("[ ]", VALUE);
        check("[0]", VALUE + 4 * VALUE + 16);
        check("[0,0]", VALUE + 6 * VALUE + 16);
        check(r#"{"a":0,"b":1}"#, VALUE + 6 * MEMBER + 16 + 2 * 16);
        check(r#""[0,0,\"[0,""#, VALUE + 16);
    }

    #[test]
    fn values_that_hide_in_a_string_are_known() {
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
    fn texts_of_very_many_values_are_known() {
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
