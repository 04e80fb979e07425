//! Copy of a schema for providers that accept JSON Schema (draft 2020-12). Only invalid keywords are omitted.

use super::{SizeBudget, property_names::PropertyNameMapping, reference, sentence};
use serde_json::{Map, Value, json};

/// Kind of a keyword's value.
#[derive(Clone, Copy, PartialEq)]
enum KeywordValueKind {
    Schema,
    Schemas,
    SchemasByName,
    Properties,
    Types,
    Names,
    NamesByName,
    Values,
    Text,
    Number,
    Count,
    Flag,
}

const SHAPES: &[(&str, KeywordValueKind)] = &[
    ("items", KeywordValueKind::Schema),
    ("additionalProperties", KeywordValueKind::Schema),
    ("contains", KeywordValueKind::Schema),
    ("not", KeywordValueKind::Schema),
    ("if", KeywordValueKind::Schema),
    ("then", KeywordValueKind::Schema),
    ("else", KeywordValueKind::Schema),
    ("propertyNames", KeywordValueKind::Schema),
    ("unevaluatedItems", KeywordValueKind::Schema),
    ("unevaluatedProperties", KeywordValueKind::Schema),
    ("contentSchema", KeywordValueKind::Schema),
    ("allOf", KeywordValueKind::Schemas),
    ("anyOf", KeywordValueKind::Schemas),
    ("oneOf", KeywordValueKind::Schemas),
    ("prefixItems", KeywordValueKind::Schemas),
    ("properties", KeywordValueKind::Properties),
    ("dependentSchemas", KeywordValueKind::Properties),
    ("patternProperties", KeywordValueKind::SchemasByName),
    ("$defs", KeywordValueKind::SchemasByName),
    ("definitions", KeywordValueKind::SchemasByName),
    ("type", KeywordValueKind::Types),
    ("required", KeywordValueKind::Names),
    ("dependentRequired", KeywordValueKind::NamesByName),
    ("enum", KeywordValueKind::Values),
    ("examples", KeywordValueKind::Values),
    ("pattern", KeywordValueKind::Text),
    ("format", KeywordValueKind::Text),
    ("title", KeywordValueKind::Text),
    ("description", KeywordValueKind::Text),
    ("$comment", KeywordValueKind::Text),
    ("contentEncoding", KeywordValueKind::Text),
    ("contentMediaType", KeywordValueKind::Text),
    ("minimum", KeywordValueKind::Number),
    ("maximum", KeywordValueKind::Number),
    ("exclusiveMinimum", KeywordValueKind::Number),
    ("exclusiveMaximum", KeywordValueKind::Number),
    ("multipleOf", KeywordValueKind::Number),
    ("minLength", KeywordValueKind::Count),
    ("maxLength", KeywordValueKind::Count),
    ("minItems", KeywordValueKind::Count),
    ("maxItems", KeywordValueKind::Count),
    ("minContains", KeywordValueKind::Count),
    ("maxContains", KeywordValueKind::Count),
    ("minProperties", KeywordValueKind::Count),
    ("maxProperties", KeywordValueKind::Count),
    ("uniqueItems", KeywordValueKind::Flag),
    ("deprecated", KeywordValueKind::Flag),
    ("readOnly", KeywordValueKind::Flag),
    ("writeOnly", KeywordValueKind::Flag),
];

const TYPES: &[&str] = &["array", "boolean", "integer", "null", "number", "object", "string"];

/// Copier of a schema whose root is an object.
pub(super) struct JsonSchemaCopier<'a> {
    pub(super) root: &'a Value,
    pub(super) names: &'a PropertyNameMapping,
    pub(super) room: SizeBudget,
    /// `true` if the provider requires `properties` for every object and `items` for every array, and rejects boolean
    /// schemas.
    pub(super) is_complete: bool,
}

impl JsonSchemaCopier<'_> {
    pub(super) fn copy(&mut self) -> Value {
        self.schema(self.root, 0)
    }

    fn schema(&mut self, schema: &Value, depth: usize) -> Value {
        let Value::Object(members) = schema else {
            return match schema {
                Value::Bool(_) if !self.is_complete => schema.clone(),
                Value::Bool(false) => json!({"not": {}}),
                _ => json!({}),
            };
        };
        let mut copy = Map::new();
        if !self.room.take(members, depth) {
            sentence::add(&mut copy, super::CUT);
            return copy.into();
        }
        for (keyword, value) in members {
            self.keyword(&mut copy, members, keyword, value, depth);
        }
        if self.is_complete {
            let is = |copy: &Map<String, Value>, name: &str| copy.get("type").is_some_and(|one| one == name);
            if is(&copy, "object") && !copy.contains_key("properties") {
                copy.insert("properties".into(), json!({}));
            }
            if is(&copy, "array") && !copy.contains_key("items") {
                copy.insert("items".into(), json!({}));
            }
        }
        copy.into()
    }

    fn keyword(
        &mut self,
        copy: &mut Map<String, Value>,
        members: &Map<String, Value>,
        keyword: &str,
        value: &Value,
        depth: usize,
    ) {
        let text = match (keyword, value) {
            // These keywords would change the targets of references or the meaning of keywords.
            ("$schema" | "$id" | "id" | "$anchor" | "$dynamicAnchor" | "$recursiveAnchor" | "$vocabulary", _) => None,
            ("$ref", Value::String(name)) if reference::target(self.root, name).is_some() => {
                copy.insert(keyword.into(), self.names.in_reference(name).into());
                None
            }
            ("$ref" | "$dynamicRef" | "$recursiveRef", _) => sentence::of("$ref", value),
            // Forms of earlier drafts.
            ("items", Value::Array(first)) => {
                if !first.is_empty() {
                    copy.insert("prefixItems".into(), first.iter().map(|one| self.schema(one, depth + 1)).collect());
                }
                if let Some(others) = members.get("additionalItems") {
                    copy.insert("items".into(), self.schema_or_flag(others, depth));
                }
                None
            }
            ("additionalItems", _) => None,
            ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(is_exclusive)) => {
                let bound = if keyword == "exclusiveMinimum" { "minimum" } else { "maximum" };
                if let Some(number) = members.get(bound).filter(|one| *is_exclusive && one.is_number()) {
                    copy.insert(keyword.into(), number.clone());
                }
                None
            }
            _ => match SHAPES.iter().find(|(name, _)| *name == keyword) {
                None => {
                    copy.insert(keyword.into(), value.clone());
                    None
                }
                Some((_, shape)) => match self.shaped(*shape, value, depth) {
                    Some(value) => {
                        self.put(copy, keyword, value);
                        None
                    }
                    None => sentence::of(keyword, value),
                },
            },
        };
        if let Some(text) = text {
            sentence::add(copy, &text);
        }
    }

    fn put(&self, copy: &mut Map<String, Value>, keyword: &str, value: Value) {
        // The description may already have sentences for preceding keywords.
        match (keyword, value) {
            ("description", Value::String(text)) => {
                let description = copy.shift_remove("description");
                copy.insert(keyword.into(), text.into());
                if let Some(Value::String(description)) = description {
                    sentence::add(copy, &description);
                }
            }
            (_, value) => {
                copy.insert(keyword.into(), value);
            }
        }
    }

    /// Returns a copy of a keyword's value; `None` if it is not of the right kind.
    fn shaped(&mut self, shape: KeywordValueKind, value: &Value, depth: usize) -> Option<Value> {
        match (shape, value) {
            (KeywordValueKind::Schema, Value::Object(_) | Value::Bool(_)) => Some(self.schema_or_flag(value, depth)),
            (KeywordValueKind::Schemas, Value::Array(all)) if !all.is_empty() => {
                Some(all.iter().map(|one| self.schema(one, depth + 1)).collect())
            }
            (KeywordValueKind::SchemasByName, Value::Object(all)) => {
                let copied = all.iter().map(|(name, one)| (name.clone(), self.schema(one, depth + 1)));
                Some(copied.collect::<Map<_, _>>().into())
            }
            (KeywordValueKind::Properties, Value::Object(all)) => {
                let mut copied = Map::new();
                for (name, one) in all {
                    let mut one = self.schema(one, depth + 1);
                    let theirs = self.names.provider_name(name);
                    if let Some(property) = one.as_object_mut().filter(|_| theirs != name) {
                        sentence::add(property, &super::stands_for(name));
                    }
                    copied.insert(theirs.to_owned(), one);
                }
                Some(copied.into())
            }
            (KeywordValueKind::Types, Value::String(name)) => TYPES.contains(&name.as_str()).then(|| value.clone()),
            (KeywordValueKind::Types, Value::Array(names)) => {
                let is_type = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
                let once = without_doubles(names);
                (!once.is_empty() && once.iter().all(is_type)).then(|| once.into())
            }
            (KeywordValueKind::Names, Value::Array(_)) => self.required(value).map(Value::from),
            (KeywordValueKind::NamesByName, Value::Object(all)) => {
                let spelled = all.iter().map(|(name, names)| {
                    Some((self.names.provider_name(name).to_owned(), self.required(names)?.into()))
                });
                Some(spelled.collect::<Option<Map<_, _>>>()?.into())
            }
            (KeywordValueKind::Values, Value::Array(values)) if !values.is_empty() => Some(value.clone()),
            (KeywordValueKind::Text, Value::String(_))
            | (KeywordValueKind::Number, Value::Number(_))
            | (KeywordValueKind::Flag, Value::Bool(_)) => Some(value.clone()),
            (KeywordValueKind::Count, Value::Number(number)) => {
                number.as_f64().filter(|number| *number >= 0.0 && number.fract() == 0.0).map(|_| value.clone())
            }
            _ => None,
        }
    }

    /// Returns the provider's names of these properties, without duplicates; `None` if they are not a list of texts.
    fn required(&self, names: &Value) -> Option<Vec<Value>> {
        let names = names.as_array()?;
        let names: Option<Vec<&str>> = names.iter().map(Value::as_str).collect();
        let spelled: Vec<Value> = names?.into_iter().map(|name| self.names.provider_name(name).into()).collect();
        Some(without_doubles(&spelled))
    }

    fn schema_or_flag(&mut self, value: &Value, depth: usize) -> Value {
        if value.is_boolean() { value.clone() } else { self.schema(value, depth + 1) }
    }
}

fn without_doubles(values: &[Value]) -> Vec<Value> {
    let mut seen = std::collections::BTreeSet::new();
    values.iter().filter(|value| value.as_str().is_none_or(|text| seen.insert(text))).cloned().collect()
}
