//! Comparison of the values that two JSON Schemas accept, without their texts.

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Members of a schema that only describe.
const TEXTS: &[&str] = &[
    "title",
    "description",
    "default",
    "examples",
    "example",
    "$comment",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$schema",
    "$id",
];
/// Members that contain schemas by name.
const NAMED_SCHEMAS: &[&str] = &["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
/// Members that contain one schema or a list of schemas.
const SCHEMAS: &[&str] = &[
    "items",
    "additionalProperties",
    "additionalItems",
    "prefixItems",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "anyOf",
    "oneOf",
    "allOf",
    "unevaluatedProperties",
    "unevaluatedItems",
];
/// Upper limits: a higher value accepts more.
const MAXIMA: &[&str] = &["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"];
/// Lower limits: a lower value accepts more.
const MINIMA: &[&str] = &["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"];
/// Members that [`compare_objects`] compares.
const OBJECT_MEMBERS: &[&str] = &["properties", "required", "additionalProperties"];
/// Names of all types of JSON.
const TYPES: &[&str] = &["array", "boolean", "integer", "null", "number", "object", "string"];

/// Result of a comparison. Both are `true` where the effect of a difference is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ShapeWidthChange {
    /// `true` if the new schema accepts values, or offers parameters, that the old one does not.
    pub(super) is_wider: bool,
    /// `true` if the new schema rejects values that the old one accepts.
    pub(super) is_narrower: bool,
}

impl ShapeWidthChange {
    const WIDER: Self = Self { is_wider: true, is_narrower: false };
    const NARROWER: Self = Self { is_wider: false, is_narrower: true };
    const UNKNOWN: Self = Self { is_wider: true, is_narrower: true };

    fn add(&mut self, other: Self) {
        self.is_wider |= other.is_wider;
        self.is_narrower |= other.is_narrower;
    }
}

/// Compares two schemas. An absent schema accepts everything.
pub(super) fn compare(old: Option<&Value>, new: Option<&Value>) -> ShapeWidthChange {
    let anything = json!({});
    compare_shapes(&shape(old.unwrap_or(&anything)), &shape(new.unwrap_or(&anything)))
}

/// Returns the schema without the members that only describe. A property may have the name of such a member.
fn shape(schema: &Value) -> Value {
    let Value::Object(members) = schema else {
        return match schema {
            Value::Bool(true) | Value::Null => json!({}),
            Value::Array(schemas) => schemas.iter().map(shape).collect(),
            other => other.clone(),
        };
    };
    let kept = members.iter().filter(|(name, _)| !TEXTS.contains(&name.as_str()));
    let shaped = kept.map(|(name, value)| {
        let value = match value {
            Value::Object(named) if NAMED_SCHEMAS.contains(&name.as_str()) => {
                Value::Object(named.iter().map(|(name, schema)| (name.clone(), shape(schema))).collect())
            }
            value if SCHEMAS.contains(&name.as_str()) => shape(value),
            value => value.clone(),
        };
        (name.clone(), value)
    });
    Value::Object(shaped.collect())
}

fn compare_shapes(old: &Value, new: &Value) -> ShapeWidthChange {
    if old == new {
        return ShapeWidthChange::default();
    }
    let (old, new) = match (old, new) {
        (Value::Object(old), Value::Object(new)) => (old, new),
        (Value::Bool(false), Value::Object(_)) => return ShapeWidthChange::WIDER,
        (Value::Object(_), Value::Bool(false)) => return ShapeWidthChange::NARROWER,
        _ => return ShapeWidthChange::UNKNOWN,
    };
    let mut change = compare_objects(old, new);
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names.into_iter().filter(|name| !OBJECT_MEMBERS.contains(&name.as_str())) {
        let (before, after) = (old.get(name), new.get(name));
        if before != after {
            change.add(compare_members(name, before, after));
        }
    }
    change
}

fn compare_members(name: &str, old: Option<&Value>, new: Option<&Value>) -> ShapeWidthChange {
    match name {
        "type" => of_sets(&types(old), &types(new)),
        "enum" | "const" => match (old, new) {
            (Some(old), Some(new)) => of_sets(&values(old), &values(new)),
            (None, _) => ShapeWidthChange::NARROWER,
            (_, None) => ShapeWidthChange::WIDER,
        },
        "items" => match (old.unwrap_or(&json!({})), new.unwrap_or(&json!({}))) {
            (old @ Value::Object(_), new @ Value::Object(_)) => compare_shapes(old, new),
            _ => ShapeWidthChange::UNKNOWN,
        },
        name if MAXIMA.contains(&name) => of_limits(old, new),
        name if MINIMA.contains(&name) => {
            let ShapeWidthChange { is_wider, is_narrower } = of_limits(old, new);
            match (old, new) {
                (Some(_), Some(_)) => ShapeWidthChange { is_wider: is_narrower, is_narrower: is_wider },
                _ => ShapeWidthChange { is_wider, is_narrower },
            }
        }
        "pattern" | "format" | "multipleOf" | "uniqueItems" => match (old, new) {
            (None, _) => ShapeWidthChange::NARROWER,
            (_, None) => ShapeWidthChange::WIDER,
            _ => ShapeWidthChange::UNKNOWN,
        },
        _ => ShapeWidthChange::UNKNOWN,
    }
}

/// Compares upper limits. An absent limit accepts everything.
fn of_limits(old: Option<&Value>, new: Option<&Value>) -> ShapeWidthChange {
    match (old.and_then(Value::as_f64), new.and_then(Value::as_f64)) {
        (Some(_), None) => ShapeWidthChange::WIDER,
        (None, Some(_)) => ShapeWidthChange::NARROWER,
        (Some(old), Some(new)) if new > old => ShapeWidthChange::WIDER,
        (Some(old), Some(new)) if new < old => ShapeWidthChange::NARROWER,
        (Some(_), Some(_)) => ShapeWidthChange::default(),
        (None, None) => ShapeWidthChange::UNKNOWN,
    }
}

/// Compares the properties. A new property counts as wider even if unknown properties were accepted before, because
/// models now see it in the schema.
fn compare_objects(old: &Map<String, Value>, new: &Map<String, Value>) -> ShapeWidthChange {
    let mut change = ShapeWidthChange::default();
    let none = Map::new();
    let of = |schema: &Map<String, Value>| schema.get("properties").and_then(Value::as_object).cloned();
    let (before, after) = (of(old).unwrap_or_else(|| none.clone()), of(new).unwrap_or(none));
    for (name, schema) in &before {
        change.add(after.get(name).map_or(ShapeWidthChange::NARROWER, |now| compare_shapes(schema, now)));
    }
    if after.keys().any(|name| !before.contains_key(name)) {
        change.add(ShapeWidthChange::WIDER);
    }
    let required = |schema: &Map<String, Value>| schema.get("required").map(values).unwrap_or_default();
    let (before, after) = (required(old), required(new));
    change.is_narrower |= !after.is_subset(&before);
    change.is_wider |= !before.is_subset(&after);
    let others = |schema: &Map<String, Value>| schema.get("additionalProperties").cloned().unwrap_or_else(|| json!({}));
    change.add(compare_shapes(&others(old), &others(new)));
    change
}

fn of_sets(old: &BTreeSet<String>, new: &BTreeSet<String>) -> ShapeWidthChange {
    ShapeWidthChange { is_wider: !new.is_subset(old), is_narrower: !old.is_subset(new) }
}

fn types(named: Option<&Value>) -> BTreeSet<String> {
    let mut types: BTreeSet<String> = match named {
        Some(Value::String(one)) => [one.clone()].into(),
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => TYPES.iter().map(|one| (*one).to_owned()).collect(),
    };
    if types.contains("number") {
        types.insert("integer".into());
    }
    types
}

fn values(several: &Value) -> BTreeSet<String> {
    match several {
        Value::Array(items) => items.iter().map(Value::to_string).collect(),
        one => [one.to_string()].into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(old: Value, new: Value, is_wider: bool, is_narrower: bool) {
        assert_eq!(compare(Some(&old), Some(&new)), ShapeWidthChange { is_wider, is_narrower }, "{old} -> {new}");
        if is_wider != is_narrower {
            let reversed = compare(Some(&new), Some(&old));
            assert_eq!(reversed, ShapeWidthChange { is_wider: is_narrower, is_narrower: is_wider }, "{new} -> {old}");
        }
    }

    #[test]
    fn a_schema_is_wider_if_it_accepts_or_offers_more() {
        let object = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required});
        let text = json!({"type": "string"});
        check(object(json!({"a": text}), json!([])), object(json!({"a": text, "b": text}), json!([])), true, false);
        check(object(json!({"a": text}), json!(["a"])), object(json!({"a": text}), json!([])), true, false);
        check(object(json!({"a": text}), json!([])), object(json!({"a": text, "b": text}), json!(["b"])), true, true);
        check(object(json!({"a": text}), json!([])), object(json!({"c": text}), json!([])), true, true);
        check(json!({"enum": ["a"]}), json!({"enum": ["a", "b"]}), true, false);
        check(json!({"enum": ["a"]}), json!({}), true, false);
        check(json!({"type": "integer"}), json!({"type": "number"}), true, false);
        check(json!({"type": "string"}), json!({"type": ["string", "null"]}), true, false);
        check(json!({"type": "string"}), json!({}), true, false);
        check(json!({"maximum": 5}), json!({"maximum": 6}), true, false);
        check(json!({"minLength": 5}), json!({"minLength": 4}), true, false);
        check(json!({"minLength": 5}), json!({}), true, false);
        check(json!({"pattern": "a"}), json!({"pattern": "b"}), true, true);
        check(json!({"additionalProperties": false}), json!({}), true, false);
        check(json!({"items": {"maxLength": 1}}), json!({"items": {}}), true, false);
        check(json!({"anyOf": [{}]}), json!({"anyOf": [{"type": "string"}]}), true, true);
    }

    #[test]
    fn texts_and_defaults_are_no_part_of_the_shape() {
        let old = json!({"title": "T", "properties": {"description": {"type": "string", "description": "a"}}});
        let new = json!({"properties": {"description": {"type": "string", "description": "b", "default": "x"}}});
        check(old.clone(), new, false, false);
        check(old, json!({"properties": {}}), false, true);
        check(json!({"anyOf": [{"description": "a"}]}), json!({"anyOf": [{"description": "b"}]}), false, false);
        assert_eq!(compare(None, Some(&json!(true))), ShapeWidthChange::default());
    }
}
