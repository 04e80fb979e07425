//! The nesting depth of a JSON value.

use serde_json::Value;

/// Returns `true` if the value is nested more than `levels` levels deep. Uses an explicit stack, so that hostile
/// nesting cannot exhaust the call stack.
pub fn is_deeper_than(value: &Value, levels: usize) -> bool {
    let mut stack = vec![(value, 0)];
    while let Some((value, depth)) = stack.pop() {
        if depth > levels {
            return true;
        }
        match value {
            Value::Array(items) => stack.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => stack.extend(members.values().map(|member| (member, depth + 1))),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_depth_is_counted_in_levels_below_the_root_value() {
        for (value, levels) in [(json!(1), 0), (json!([]), 0), (json!([1]), 1), (json!({"a": [], "b": [{"c": 1}]}), 3)]
        {
            assert!(!is_deeper_than(&value, levels), "{value} {levels}");
            assert!(levels == 0 || is_deeper_than(&value, levels - 1), "{value} {levels}");
        }
    }
}
