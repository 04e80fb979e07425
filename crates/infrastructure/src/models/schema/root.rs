//! Conversion of a schema's root to a plain object, as every provider requires for the arguments of a tool.

use super::{reference, sentence};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of subschemas of the root to examine.
const MAX_PARTS: usize = 64;

/// Keywords that apply to the whole root or do not restrict values.
const OF_THE_WHOLE: &[&str] = &["$schema", "$id", "$comment", "$defs", "definitions", "$anchor", "title", "type"];

/// Returns the schema with `type: object` and `properties` at its root, and without references, alternatives and the
/// other `refused` keywords there. Their properties and jointly required names become members of the root; the rest is
/// added to its description.
pub(super) fn plain(schema: &Value, refused: &[&str]) -> Value {
    let mut root = RootSchemaBuilder { whole: schema, refused, object: Map::new(), parts: MAX_PARTS };
    if let Value::Object(members) = schema {
        root.object.insert("type".into(), "object".into());
        let is_composed = |name: &str| matches!(name, "$ref" | "allOf" | "anyOf" | "oneOf") || refused.contains(&name);
        for (keyword, value) in members.iter().filter(|(keyword, _)| !is_composed(keyword) && *keyword != "type") {
            root.object.insert(keyword.clone(), value.clone());
        }
        for (keyword, value) in members.iter().filter(|(keyword, _)| is_composed(keyword)) {
            root.compose(keyword, value);
        }
    } else {
        root.object.insert("type".into(), "object".into());
    }
    if !root.object.get("properties").is_some_and(Value::is_object) {
        root.object.insert("properties".into(), json!({}));
    }
    root.object.into()
}

struct RootSchemaBuilder<'a> {
    whole: &'a Value,
    refused: &'a [&'a str],
    object: Map<String, Value>,
    /// Number of subschemas that may still be examined.
    parts: usize,
}

impl<'a> RootSchemaBuilder<'a> {
    /// Replaces a keyword that is not allowed at the root: merges the schemas to which it leads into the root, or
    /// describes it in the description.
    fn compose(&mut self, keyword: &str, value: &'a Value) {
        match (keyword, value) {
            ("$ref", Value::String(name)) => match reference::target(self.whole, name) {
                Some(part) if !std::ptr::eq(part, self.whole) => self.absorb(part),
                _ => self.describe_keyword(keyword, value),
            },
            ("allOf", Value::Array(parts)) => parts.iter().for_each(|part| self.absorb(part)),
            ("anyOf" | "oneOf", Value::Array(parts)) => self.choose(keyword, parts),
            _ => self.describe_keyword(keyword, value),
        }
    }

    /// Merges a subschema that applies in addition to all others.
    fn absorb(&mut self, part: &'a Value) {
        let Value::Object(members) = part else { return };
        if self.parts == 0 {
            return self.describe_keyword("allOf", &json!([part]));
        }
        self.parts -= 1;
        for (keyword, value) in members {
            match (keyword.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    for (name, property) in properties {
                        self.offer(name, || property.clone());
                    }
                }
                ("required", Value::Array(names)) => self.require(names.iter().filter_map(Value::as_str).collect()),
                ("$ref" | "allOf" | "anyOf" | "oneOf", _) => self.compose(keyword, value),
                ("description", Value::String(text)) => sentence::add(&mut self.object, text),
                (word, _) if OF_THE_WHOLE.contains(&word) => {}
                (word, _) if self.refused.contains(&word) => self.describe_keyword(word, value),
                // Next to other properties the keyword would have another meaning.
                ("additionalProperties" | "unevaluatedProperties", _) => self.describe_keyword(keyword, value),
                _ if self.object.contains_key(keyword) => self.describe_keyword(keyword, value),
                _ => {
                    self.object.insert(keyword.clone(), value.clone());
                }
            }
        }
    }

    /// Merges alternatives: the properties of each are allowed, and the names that all of them require are required.
    fn choose(&mut self, keyword: &str, parts: &'a [Value]) {
        let mut offered: BTreeMap<&String, Vec<&Value>> = BTreeMap::new();
        let mut required: Option<BTreeSet<&str>> = None;
        for part in parts.iter().take(self.parts) {
            let part = self.followed(part);
            if let Some(Value::Object(properties)) = part.get("properties") {
                for (name, property) in properties {
                    let others = offered.entry(name).or_default();
                    if !others.contains(&property) {
                        others.push(property);
                    }
                }
            }
            let names = part.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let names: BTreeSet<&str> = names.iter().filter_map(Value::as_str).collect();
            required = Some(match required {
                None => names,
                Some(before) => before.intersection(&names).copied().collect(),
            });
        }
        let is_whole = parts.len() <= self.parts;
        self.parts = self.parts.saturating_sub(parts.len());
        for (name, schemas) in offered {
            self.offer(name, || match &schemas[..] {
                [only] => (*only).clone(),
                several => json!({"anyOf": several}),
            });
        }
        if let Some(names) = required.filter(|_| is_whole) {
            self.require(names);
        }
        if let Some(text) = sentence::alternatives(keyword, parts) {
            sentence::add(&mut self.object, &text);
        }
    }

    /// Returns the schema that a reference leads to; any other schema is returned unchanged.
    fn followed(&self, mut part: &'a Value) -> &'a Value {
        for _ in 0..MAX_PARTS {
            let Some(name) = part.get("$ref").and_then(Value::as_str) else { break };
            let Some(target) = reference::target(self.whole, name) else { break };
            part = target;
        }
        part
    }

    fn offer(&mut self, name: &str, schema: impl FnOnce() -> Value) {
        let properties = self.object.entry("properties").or_insert_with(|| json!({}));
        if let Value::Object(properties) = properties
            && !properties.contains_key(name)
        {
            properties.insert(name.to_owned(), schema());
        }
    }

    fn require(&mut self, mut names: BTreeSet<&str>) {
        if names.is_empty() {
            return;
        }
        let required = self.object.entry("required").or_insert_with(|| json!([]));
        if let Value::Array(required) = required {
            for known in required.iter().filter_map(Value::as_str) {
                names.remove(known);
            }
            required.extend(names.into_iter().map(Value::from));
        }
    }

    fn describe_keyword(&mut self, keyword: &str, value: &Value) {
        if let Some(text) = sentence::of(keyword, value) {
            sentence::add(&mut self.object, &text);
        }
    }
}
