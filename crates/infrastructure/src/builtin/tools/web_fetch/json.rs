//! Indents JSON. Everything except white space is preserved: digits, order, repeated names.

use serde::de::IgnoredAny;

/// Maximum size of the result, in bytes. Deep nesting multiplies the indentation.
const MAX_BYTES: usize = 16 << 20;
const INDENT: usize = 2;

/// Returns the indented text; `None` if it is not valid JSON or would become too large.
pub(super) fn indented(text: &str) -> Option<String> {
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let (mut depth, mut in_text, mut is_escaped) = (0_usize, false, false);
    let mut rest = text.trim().chars().peekable();
    let break_line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', depth * INDENT));
    };
    while let Some(char) = rest.next() {
        if out.len() > MAX_BYTES {
            return None;
        }
        if in_text {
            out.push(char);
            in_text = is_escaped || char != '"';
            is_escaped = !is_escaped && char == '\\';
            continue;
        }
        match char {
            '"' => {
                in_text = true;
                out.push(char);
            }
            '{' | '[' => {
                out.push(char);
                while rest.next_if(char::is_ascii_whitespace).is_some() {}
                match rest.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => out.push(end),
                    None => {
                        depth += 1;
                        break_line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                break_line(&mut out, depth);
                out.push(char);
            }
            ',' => {
                out.push(char);
                break_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            char if char.is_ascii_whitespace() => {}
            char => out.push(char),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn json_is_indented_and_nothing_else_of_it_changes() {
        for (text, expected) in [
            (r#"{"b":1,"a":[ ],"b":{}}"#, Some("{\n  \"b\": 1,\n  \"a\": [],\n  \"b\": {}\n}")),
            ("[1.10, 12345678901234567890123,\n-0e1]", Some("[\n  1.10,\n  12345678901234567890123,\n  -0e1\n]")),
            (r#"["a,\"{ \\",true]"#, Some("[\n  \"a,\\\"{ \\\\\",\n  true\n]")),
            ("7", Some("7")),
            ("{\"a\":1}\n{\"a\":2}", None),
            ("no", None),
        ] {
            assert_eq!(indented(text).as_deref(), expected, "{text}");
        }
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        assert_eq!(indented(&deep).map(|text| text.lines().count()), Some(199));
        let wide = format!("{}{}{}", "[".repeat(100), ["1"; 100_000].join(","), "]".repeat(100));
        assert_eq!(indented(&wide), None, "its indents have 20 MB");
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<i64>().prop_map(Value::from), ".{0,9}".prop_map(Value::from), Just(Value::Null)];
        leaf.prop_recursive(4, 30, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((".{0,4}", inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn indented_json_equals_serde_json_pretty_output(value in value()) {
            prop_assert_eq!(indented(&value.to_string()), Some(serde_json::to_string_pretty(&value).unwrap()));
            prop_assert_eq!(indented(&json!([value]).to_string()).is_some(), true);
        }
    }
}
