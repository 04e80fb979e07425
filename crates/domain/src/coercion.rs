//! Safe repairs of arguments with the right value in the wrong type.

use crate::json_memory::hides_values;
use serde_json::{Map, Value};

/// Maximum size in bytes of a text that is parsed as JSON: the parsed values could be many times larger.
const MAX_JSON_BYTES: usize = 1 << 20;

/// Converts arguments whose type the schema does not allow to the intended type, without loss: `"10"` to `10`, `"true"`
/// to `true`, `null` to absent, one value to a list of one, JSON text to the expected object or list. Everything else
/// is left for validation to report. Uses only the `properties` of the schema itself, not those behind `$ref`. Returns
/// `true` if an argument changed.
///
/// ```
/// use serde_json::json;
/// use toolstead_domain::coercion::coerce;
///
/// let schema = json!({"properties": {"limit": {"type": "integer"}, "paths": {"type": "array"}}});
/// let mut arguments = json!({"limit": "10", "paths": "src"}).as_object().unwrap().clone();
/// assert!(coerce(&schema, &mut arguments));
/// assert_eq!(serde_json::Value::from(arguments), json!({"limit": 10, "paths": ["src"]}));
/// ```
pub fn coerce(schema: &Value, arguments: &mut Map<String, Value>) -> bool {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return false };
    let given = arguments.len();
    let required = |name: &str| {
        schema.get("required").and_then(Value::as_array).is_some_and(|all| all.iter().any(|one| one == name))
    };
    arguments.retain(|name, value| {
        let Some(types) = properties.get(name).and_then(types) else { return true };
        !(value.is_null() && !types.contains(&"null") && !required(name))
    });
    let mut is_changed = arguments.len() != given;
    for (name, value) in arguments.iter_mut() {
        if let Some(property) = properties.get(name) {
            is_changed |= coerce_value(property, value);
        }
    }
    is_changed
}

fn coerce_value(schema: &Value, value: &mut Value) -> bool {
    let Some(types) = types(schema) else { return false };
    if types.iter().any(|name| is(value, name)) {
        return false;
    }
    let text = value.as_str().filter(|text| text.len() <= MAX_JSON_BYTES && !hides_values(text.as_bytes()));
    let parsed = text.and_then(|text| serde_json::from_str::<Value>(text.trim()).ok());
    // A number that would change its value when parsed remains a text.
    let parsed = parsed.filter(|parsed| {
        !parsed.is_number()
            || parsed.is_i64()
            || parsed.is_u64()
            || value.as_str().map(str::trim) == Some(&parsed.to_string())
    });
    if let Some(parsed) = parsed
        && types.iter().any(|name| *name != "null" && is(&parsed, name))
    {
        *value = parsed;
        true
    } else if types.contains(&"array") && !value.is_null() {
        let mut item = value.take();
        if let Some(items) = schema.get("items") {
            coerce_value(items, &mut item);
        }
        *value = Value::Array(vec![item]);
        true
    } else {
        false
    }
}

fn types(schema: &Value) -> Option<Vec<&str>> {
    match schema.get("type")? {
        Value::String(name) => Some(vec![name]),
        Value::Array(names) => Some(names.iter().filter_map(Value::as_str).collect()),
        _ => None,
    }
}

fn is(value: &Value, name: &str) -> bool {
    match name {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(property: Value, given: Value, expected: Value) {
        let mut arguments = json!({"x": given}).as_object().unwrap().clone();
        let before = arguments.clone();
        let is_changed = coerce(&json!({"properties": {"x": property}}), &mut arguments);
        assert_eq!(is_changed, arguments != before);
        assert_eq!(
            Value::Object(arguments),
            if expected == json!("absent") { json!({}) } else { json!({"x": expected}) }
        );
    }

    #[test]
    fn unambiguous_values_are_coerced_to_the_type_in_the_schema() {
        check(json!({"type": "integer"}), json!("10"), json!(10));
        check(json!({"type": "boolean"}), json!("true"), json!(true));
        check(json!({"type": "integer"}), json!(null), json!("absent"));
        check(json!({"type": "array", "items": {"type": "integer"}}), json!("7"), json!([7]));
        check(json!({"type": "array", "items": {"type": "string"}}), json!("a"), json!(["a"]));
        check(json!({"type": "array"}), json!("[1,2]"), json!([1, 2]));
        check(json!({"type": "object"}), json!("{\"a\":1}"), json!({"a": 1}));
    }

    #[test]
    fn ambiguous_or_oversized_values_are_not_coerced() {
        check(json!({"type": "integer"}), json!("ten"), json!("ten"));
        let hidden = json!({"$serde_json::private::RawValue": "{\"a\":1}"}).to_string();
        check(json!({"type": "object"}), json!(hidden), json!(hidden));
        check(json!({"type": "integer"}), json!("1.5"), json!("1.5"));
        check(json!({"type": "integer"}), json!("12345678901234567890123"), json!("12345678901234567890123"));
        check(json!({"type": "string"}), json!(10), json!(10));
        check(json!({"type": ["string", "integer"]}), json!("10"), json!("10"));
        check(json!({"type": ["integer", "null"]}), json!(null), json!(null));
        check(json!({}), json!("10"), json!("10"));
        let large = json!(format!("[{}0]", "0,".repeat(1 << 20)));
        check(json!({"type": ["array", "string", "null"]}), large.clone(), large.clone());
        check(json!({"type": "object"}), large.clone(), large);
    }
}
