//! JSON Schemas from Rust types, in the plain form that every client and model provider takes.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

/// Keyword that controls how a parameter is advertised: `#[schemars(extend("x-advertised" = …))]` with `false` for a
/// rare parameter that only the tool `help` shows, or with a text that replaces its description (empty if its name is
/// enough).
const ADVERTISED: &str = "x-advertised";

/// Returns the schema of a tool's arguments: an object without unknown members (JSON Schema 2020-12, everything
/// inline).
pub fn input_schema<T: JsonSchema>() -> Value {
    let mut schema = marked_schema::<T>();
    close(&mut schema);
    unmark(&mut schema);
    schema
}

/// Returns the schema of a tool's arguments for models: without rare parameters, with short descriptions, and without
/// the bounds, which the failure of a call that exceeds them names.
pub fn advertised_schema<T: JsonSchema>() -> Value {
    let mut schema = marked_schema::<T>();
    shorten(&mut schema);
    schema
}

fn marked_schema<T: JsonSchema>() -> Value {
    let mut schema =
        plain_schema(SchemaSettings::draft2020_12().for_deserialize().into_root::<T>(), NullHandling::LeftOut);
    if let Value::Object(members) = &mut schema {
        members.entry("properties").or_insert_with(|| json!({}));
        if !ALTERNATIVES.iter().any(|name| members.contains_key(*name)) {
            members.entry("additionalProperties").or_insert(Value::Bool(false));
        }
    }
    schema
}

/// Members of a schema that contain several schemas of the same value.
const ALTERNATIVES: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// Rejects unknown members of each object in the schema, unless its type specifies which others it accepts.
fn close(schema: &mut Value) {
    close_parts(schema, close);
    let Value::Object(members) = schema else { return };
    let is_open = |name: &str| !members.contains_key(name);
    if members.contains_key("properties") && is_open("additionalProperties") && is_open("unevaluatedProperties") {
        // Alternatives beside the members describe more members of the same object.
        let is_split = ALTERNATIVES.iter().any(|name| members.contains_key(*name));
        members.insert(if is_split { "unevaluatedProperties" } else { "additionalProperties" }.into(), false.into());
    }
}

/// Rejects unknown members in the parts of a schema, but not beside the members of the schema itself, which describes
/// only a part of an object.
fn close_below(schema: &mut Value) {
    close_parts(schema, close_below);
}

/// Rejects unknown members in the schemas of members and items. Alternatives are handled by `close_alternative`, or as
/// parts of the object that the schema itself describes.
fn close_parts(schema: &mut Value, close_alternative: fn(&mut Value)) {
    let Value::Object(members) = schema else { return };
    let close_alternative = if members.contains_key("properties") { close_below } else { close_alternative };
    for (name, part) in members {
        match (name.as_str(), part) {
            ("properties" | "$defs" | "patternProperties", Value::Object(parts)) => parts.values_mut().for_each(close),
            ("items" | "additionalProperties", part) => close(part),
            ("prefixItems", Value::Array(parts)) => parts.iter_mut().for_each(close),
            ("allOf", Value::Array(parts)) => parts.iter_mut().for_each(close_below),
            ("anyOf" | "oneOf", Value::Array(parts)) => parts.iter_mut().for_each(close_alternative),
            _ => {}
        }
    }
}

/// Returns the schema of a tool's structured content. Members that are `None` must be skipped in serialization
/// (`skip_serializing_if`).
pub fn output_schema<T: JsonSchema>() -> Value {
    plain_schema(SchemaSettings::draft2020_12().for_serialize().into_root::<T>(), NullHandling::LeftOut)
}

/// Returns the schema of the serialized type, if that is always an object. Members may be null where the type allows
/// it.
pub(in crate::builtin) fn answer_schema<T: JsonSchema>() -> Option<Value> {
    let mut schema = plain_schema(SchemaSettings::draft2020_12().for_serialize().into_root::<T>(), NullHandling::Kept);
    if !is_object(&schema) {
        return None;
    }
    if let Value::Object(members) = &mut schema {
        // MCP requires `type` even where all alternatives are objects.
        members.entry("type").or_insert_with(|| "object".into());
    }
    Some(schema)
}

fn is_object(schema: &Value) -> bool {
    let choices = ["anyOf", "oneOf"].into_iter().find_map(|name| schema.get(name)?.as_array());
    let are_objects = choices.is_some_and(|choices| !choices.is_empty() && choices.iter().all(is_object));
    schema.get("type").map_or(are_objects, |kind| kind == "object")
}

/// Treatment of "or null" in a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NullHandling {
    Kept,
    LeftOut,
}

trait SchemaSettingsExt {
    fn into_root<T: JsonSchema>(self) -> Value;
}

impl SchemaSettingsExt for SchemaSettings {
    fn into_root<T: JsonSchema>(self) -> Value {
        let inline = self.with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        });
        inline.into_generator().into_root_schema_for::<T>().to_value()
    }
}

fn plain_schema(mut schema: Value, null: NullHandling) -> Value {
    if let Value::Object(members) = &mut schema {
        // The tool has a title and a description of its own.
        members.shift_remove("title");
        members.shift_remove("description");
    }
    make_plain(&mut schema, null);
    schema
}

fn unmark(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.shift_remove(ADVERTISED);
            members.values_mut().for_each(unmark);
        }
        Value::Array(items) => items.iter_mut().for_each(unmark),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Shortens the schema of one value, and those of its members and items.
fn shorten(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    match members.shift_remove(ADVERTISED) {
        Some(Value::String(text)) if text.is_empty() => {
            members.shift_remove("description");
        }
        Some(text) => {
            members.insert("description".into(), text);
        }
        None => {}
    }
    for bound in ["minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "pattern"] {
        members.shift_remove(bound);
    }
    if members.get("additionalProperties") == Some(&Value::Bool(false)) {
        members.shift_remove("additionalProperties");
    }
    if members.get("default").is_some_and(says_nothing) {
        members.shift_remove("default");
    }
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        properties.retain(|_, property| property.get(ADVERTISED) != Some(&Value::Bool(false)));
        properties.values_mut().for_each(shorten);
    }
    if let Some(items) = members.get_mut("items") {
        shorten(items);
    }
}

/// Returns `true` for a default that readers expect without a description.
fn says_nothing(default: &Value) -> bool {
    match default {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

/// Removes what has a meaning only in Rust: "or null" of an `Option`, the widths of numbers, trivial defaults.
fn make_plain(schema: &mut Value, null: NullHandling) {
    match schema {
        Value::Object(members) => {
            if null == NullHandling::LeftOut {
                without_null(members);
            }
            if members.get("format").and_then(Value::as_str).is_some_and(is_width) {
                members.shift_remove("format");
            }
            if members.get("default").is_some_and(Value::is_null) {
                members.shift_remove("default");
            }
            if let Some(Value::String(description)) = members.get_mut("description") {
                // Doc comments contain line breaks of the source.
                *description = description.replace('\n', " ");
            }
            members.values_mut().for_each(|member| make_plain(member, null));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| make_plain(item, null)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_width(format: &str) -> bool {
    ["uint", "int", "float", "double"].iter().any(|prefix| format.starts_with(prefix))
}

fn without_null(members: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            members.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(values)) = members.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(choices)) = members.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type") != Some(&json!("null")));
        if let [Value::Object(only)] = &choices[..] {
            let only = only.clone();
            members.shift_remove("anyOf");
            // Keywords beside the alternatives, such as the description, apply to this use and take precedence.
            for (name, value) in only {
                members.entry(name).or_insert(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;
    use toolstead_domain::{FormatValidation, ToolInputSchema};

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Input {
        /// Path of the file.
        #[schemars(extend("x-advertised" = ""))]
        path: String,
        /// First line.
        #[schemars(range(min = 1))]
        #[schemars(extend("x-advertised" = "From 1."))]
        offset: Option<u32>,
        /// What to
        /// show.
        #[serde(default)]
        mode: Option<Mode>,
        #[serde(default)]
        all: bool,
        /// Seldom used.
        #[schemars(extend("x-advertised" = false))]
        rare: Option<Rare>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Rare {
        #[schemars(extend("x-advertised" = ""))]
        x: u8,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Mode {
        Text,
        HexDump,
    }

    #[derive(Deserialize, JsonSchema)]
    struct Nothing {}

    #[test]
    fn an_input_schema_has_no_references_and_allows_no_unknown_members() {
        let expected = json!({
            "type": "object",
            "properties": {
                "path": {"description": "Path of the file.", "type": "string"},
                "offset": {"description": "First line.", "type": "integer", "minimum": 1},
                "mode": {"description": "What to show.", "type": "string", "enum": ["text", "hex_dump"]},
                "all": {"type": "boolean", "default": false},
                "rare": {
                    "description": "Seldom used.",
                    "type": "object",
                    "properties": {"x": {"type": "integer", "minimum": 0, "maximum": 255}},
                    "required": ["x"],
                    "additionalProperties": false,
                },
            },
            "additionalProperties": false,
            "required": ["path"],
        });
        assert_eq!(input_schema::<Input>(), expected);
    }

    /// Checks that `taken` validates for the type, but not with an unknown member at any of `places` (JSON pointers).
    fn check_closed<T: JsonSchema>(taken: Value, places: &[&str]) {
        let schema = ToolInputSchema::compile(&input_schema::<T>(), FormatValidation::Asserted).unwrap();
        assert!(schema.validate(&taken).is_ok(), "{taken} by {}", input_schema::<T>());
        for place in places {
            let mut unknown = taken.clone();
            unknown.pointer_mut(place).unwrap()["unknown"] = json!(1);
            assert!(schema.validate(&unknown).is_err(), "{unknown} by {}", input_schema::<T>());
        }
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Order {
        lines: Vec<Line>,
        address: Option<Address>,
        by_name: BTreeMap<String, Line>,
        shape: Option<Shape>,
        tree: Option<Tree>,
        pair: Option<(Line, u8)>,
        free: Option<Map<String, Value>>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Line {
        name: String,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Address {
        street: String,
        #[serde(flatten)]
        line: Line,
        #[serde(flatten)]
        shape: Shape,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "kind", rename_all = "snake_case")]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Shape {
        Circle { radius: f64 },
        Square { side: f64 },
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Tree {
        line: Line,
        children: Vec<Tree>,
    }

    #[test]
    fn unknown_members_are_rejected_in_nested_types_as_well() {
        let order = |more: Value| {
            let mut order = json!({"lines": [{"name": "a"}], "by_name": {"x": {"name": "a"}}});
            order.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            order
        };
        check_closed::<Order>(order(json!({})), &["", "/lines/0", "/by_name/x"]);
        for shape in [json!({"kind": "circle", "radius": 1.0}), json!({"kind": "square", "side": 1.0})] {
            check_closed::<Order>(order(json!({"shape": shape})), &["/shape"]);
            let mut address = json!({"street": "s", "name": "n"});
            address.as_object_mut().unwrap().extend(shape.as_object().unwrap().clone());
            check_closed::<Order>(order(json!({"address": address})), &["/address"]);
        }
        let tree = json!({"line": {"name": "a"}, "children": [{"line": {"name": "b"}, "children": []}]});
        check_closed::<Order>(order(json!({"tree": tree})), &["/tree", "/tree/children/0", "/tree/children/0/line"]);
        check_closed::<Order>(order(json!({"pair": [{"name": "a"}, 1]})), &["/pair/0"]);
        check_closed::<Order>(order(json!({"free": {"anything": 1}})), &[]);
    }

    #[test]
    fn the_advertised_schema_omits_constraints_and_rare_members() {
        let expected = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "offset": {"description": "From 1.", "type": "integer"},
                "mode": {"description": "What to show.", "type": "string", "enum": ["text", "hex_dump"]},
                "all": {"type": "boolean"},
            },
            "required": ["path"],
        });
        assert_eq!(advertised_schema::<Input>(), expected);
    }

    #[test]
    fn a_tool_without_arguments_has_an_empty_closed_object_schema() {
        let expected = json!({"type": "object", "properties": {}, "additionalProperties": false});
        assert_eq!(input_schema::<Nothing>(), expected);
    }
}
