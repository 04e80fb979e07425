//! Defaults of the schema for missing arguments.

use serde_json::{Map, Value};

/// Inserts the `default` of each missing property into the arguments, also within objects that were given. Uses only
/// the `properties` of the schema itself: not those behind `$ref`, and not those of list items, so that no more is
/// added than the schema contains. Returns `true` if an argument was added.
///
/// ```
/// use serde_json::json;
/// use toolstead_domain::defaults::fill_defaults;
///
/// let schema = json!({"properties": {"limit": {"default": 10}}});
/// let mut arguments = serde_json::Map::new();
/// assert!(fill_defaults(&schema, &mut arguments));
/// assert_eq!(arguments["limit"], 10);
/// ```
pub fn fill_defaults(schema: &Value, arguments: &mut Map<String, Value>) -> bool {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return false };
    let mut is_changed = false;
    for (name, property) in properties {
        match (arguments.get_mut(name), property.get("default")) {
            (Some(Value::Object(given)), _) => is_changed |= fill_defaults(property, given),
            (None, Some(default)) => {
                arguments.insert(name.clone(), default.clone());
                is_changed = true;
            }
            (Some(_), _) | (None, None) => {}
        }
    }
    is_changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[track_caller]
    fn check(schema: Value, given: Value, expected: Value) {
        let mut arguments = given.as_object().unwrap().clone();
        assert_eq!(fill_defaults(&schema, &mut arguments), given != expected);
        assert_eq!(Value::Object(arguments), expected);
    }

    #[test]
    fn missing_properties_get_their_defaults_and_given_values_stay() {
        let schema = json!({"properties": {"n": {"default": 10}, "s": {"default": null}, "x": {"type": "string"}}});
        check(schema.clone(), json!({}), json!({"n": 10, "s": null}));
        check(schema.clone(), json!({"n": 1, "s": "a", "x": "b"}), json!({"n": 1, "s": "a", "x": "b"}));
        check(schema, json!({"n": null}), json!({"n": null, "s": null}));
        check(json!({}), json!({"a": 1}), json!({"a": 1}));
        check(json!(true), json!({}), json!({}));
    }

    #[test]
    fn defaults_are_inserted_into_given_objects_but_not_into_lists() {
        let inner = json!({"type": "object", "properties": {"deep": {"default": true}}});
        let schema = json!({"properties": {"o": inner.clone(), "l": {"items": inner}}});
        check(schema.clone(), json!({"o": {}, "l": [{}]}), json!({"o": {"deep": true}, "l": [{}]}));
        check(schema, json!({"l": []}), json!({"l": []}));
    }

    proptest! {
        #[test]
        fn filling_defaults_is_idempotent_and_changes_no_given_value(
            defaults in prop::collection::btree_map("[a-e]", prop::option::of(0..9), 0..5),
            given in prop::collection::btree_map("[a-g]", 0..9, 0..5),
        ) {
            let property = |default: &Option<i32>| default.map_or(json!({}), |default| json!({"default": default}));
            let properties: Map<String, Value> =
                defaults.iter().map(|(name, default)| (name.clone(), property(default))).collect();
            let schema = json!({"properties": properties});
            let mut filled: Map<String, Value> = given.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
            fill_defaults(&schema, &mut filled);
            prop_assert!(given.iter().all(|(name, value)| filled[name] == json!(value)));
            prop_assert!(!fill_defaults(&schema, &mut filled));
        }
    }
}
