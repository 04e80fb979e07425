//! Copy of a schema for Gemini, which accepts a subset of OpenAPI schemas: no references, a single type, few keywords.
//! Other restrictions are added to descriptions.

use super::{SizeBudget, property_names::PropertyNameMapping, reference, sentence};
use serde_json::{Map, Value, json};

/// Keywords that a schema for Gemini may have.
#[cfg(test)]
pub(super) const KEYWORDS: &[&str] = &[
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "items",
    "minItems",
    "maxItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "anyOf",
];

/// Keywords that are valid only for a certain type.
const OF_TYPE: &[(&str, &[&str])] = &[
    ("object", &["properties", "required", "minProperties", "maxProperties"]),
    ("array", &["items", "minItems", "maxItems"]),
    ("string", &["enum", "pattern", "minLength", "maxLength", "format"]),
    ("number", &["minimum", "maximum", "format"]),
    ("integer", &["minimum", "maximum", "format"]),
    ("boolean", &[]),
];

/// Supported formats of each type.
const FORMATS: &[(&str, &[&str])] =
    &[("string", &["date-time", "enum"]), ("number", &["float", "double"]), ("integer", &["int32", "int64"])];

/// Copier of a schema whose root is an object.
pub(super) struct OpenApiCopier<'a> {
    pub(super) root: &'a Value,
    pub(super) names: &'a PropertyNameMapping,
    pub(super) room: SizeBudget,
    /// References that are being expanded.
    pub(super) open: Vec<String>,
}

impl<'a> OpenApiCopier<'a> {
    pub(super) fn copy(&mut self) -> Value {
        let root = self.root;
        let mut copy = finished(self.schema(root, 0));
        copy.entry("properties").or_insert_with(|| json!({}));
        copy.into()
    }

    fn copy_schema(&mut self, schema: &'a Value, depth: usize) -> Value {
        finished(self.schema(schema, depth)).into()
    }

    /// Returns a copy that may not have a type yet.
    fn schema(&mut self, schema: &'a Value, depth: usize) -> Map<String, Value> {
        let mut copy = Map::new();
        let Value::Object(members) = schema else {
            if *schema == Value::Bool(false) {
                sentence::add(&mut copy, "No value fits.");
            }
            return copy;
        };
        if !self.room.take(members, depth) {
            sentence::add(&mut copy, super::CUT);
            return copy;
        }
        if let Some(Value::String(text)) = members.get("description") {
            copy.insert("description".into(), text.as_str().into());
        }
        let mut types = Vec::new();
        for (keyword, value) in members {
            self.keyword(&mut copy, &mut types, (keyword, value), members, depth);
        }
        // Subschemas are processed after the schema's own keywords.
        for (keyword, value) in members {
            match (keyword.as_str(), value) {
                ("$ref", Value::String(name)) => self.reference(&mut copy, name, depth),
                ("allOf", Value::Array(parts)) => {
                    for part in parts {
                        let part = self.schema(part, depth + 1);
                        merge(&mut copy, part);
                    }
                }
                ("anyOf" | "oneOf", Value::Array(parts)) => self.alternatives(&mut copy, keyword, parts, depth),
                _ => {}
            }
        }
        several(&mut copy, &types);
        copy
    }

    fn keyword(
        &mut self,
        copy: &mut Map<String, Value>,
        types: &mut Vec<&'a str>,
        (keyword, value): (&'a str, &'a Value),
        members: &'a Map<String, Value>,
        depth: usize,
    ) {
        let mut keep = |value: Value| {
            copy.insert(keyword.into(), value);
        };
        match (keyword, value) {
            ("title", Value::String(_)) | ("nullable", Value::Bool(true)) | ("pattern", Value::String(_)) => {
                keep(value.clone());
            }
            ("nullable", Value::Bool(false)) => {}
            ("$ref", Value::String(_)) | ("allOf" | "anyOf" | "oneOf", Value::Array(_)) => {}
            ("minimum" | "maximum", Value::Number(number)) => {
                let exclusive = if keyword == "minimum" { "exclusiveMinimum" } else { "exclusiveMaximum" };
                match members.get(exclusive) {
                    Some(Value::Bool(true)) => describe_keyword(copy, exclusive, value),
                    _ => keep(number.clone().into()),
                }
            }
            ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(_)) => {}
            ("minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties", _) => {
                match value.as_u64().filter(|count| i64::try_from(*count).is_ok()) {
                    Some(count) => keep(count.into()),
                    None => describe_keyword(copy, keyword, value),
                }
            }
            ("type", Value::String(name)) => take_type(copy, types, name),
            ("type", Value::Array(names)) => {
                names.iter().filter_map(Value::as_str).for_each(|name| take_type(copy, types, name));
                if types.is_empty() {
                    describe_keyword(copy, keyword, value);
                }
            }
            ("enum", Value::Array(values)) => choose(copy, values, value),
            ("const", value) => choose(copy, std::slice::from_ref(value), &json!([value])),
            ("required", Value::Array(names)) => {
                let mut seen = std::collections::BTreeSet::new();
                let names = names.iter().filter_map(Value::as_str).filter(|name| seen.insert(*name));
                keep(names.map(|name| Value::from(self.names.provider_name(name))).collect());
            }
            ("properties", Value::Object(all)) => {
                let mut copied = Map::new();
                for (name, one) in all {
                    let mut one = self.schema(one, depth + 1);
                    let theirs = self.names.provider_name(name);
                    if theirs != name {
                        sentence::add(&mut one, &super::stands_for(name));
                    }
                    copied.insert(theirs.to_owned(), finished(one).into());
                }
                keep(copied.into());
            }
            ("items", Value::Object(_) | Value::Bool(true)) => keep(self.copy_schema(value, depth + 1)),
            ("description", Value::String(_)) => {}
            ("format", Value::String(_)) => keep(value.clone()),
            // The values of these keywords are schemas; their references are expanded before they are described.
            (
                "additionalProperties"
                | "unevaluatedProperties"
                | "additionalItems"
                | "unevaluatedItems"
                | "contains"
                | "not"
                | "if"
                | "then"
                | "else",
                Value::Object(members),
            ) if !members.is_empty() && members.contains_key("$ref") => {
                let copied = self.copy_schema(value, depth + 1);
                describe_keyword(copy, keyword, &copied);
            }
            _ => describe_keyword(copy, keyword, value),
        }
    }

    fn reference(&mut self, copy: &mut Map<String, Value>, name: &str, depth: usize) {
        let Some(target) = reference::target(self.root, name) else {
            return describe_keyword(copy, "$ref", &name.into());
        };
        if name == "#" || self.open.iter().any(|open| open == name) {
            // The schema contains itself and is described only once.
            sentence::add(copy, &format!("Recursive: like the enclosing `{}`.", reference::name(name)));
            if let Some(Value::String(kind)) = target.get("type") {
                take_type(copy, &mut Vec::new(), kind);
            }
            return;
        }
        self.open.push(name.to_owned());
        let target = self.schema(target, depth + 1);
        self.open.pop();
        merge(copy, target);
    }

    fn alternatives(&mut self, copy: &mut Map<String, Value>, keyword: &str, parts: &'a [Value], depth: usize) {
        let is_null = |part: &&Value| part.get("type").is_some_and(|kind| kind == "null");
        if parts.iter().any(|part| is_null(&part)) {
            copy.insert("nullable".into(), true.into());
        }
        let has_other_keywords = copy.keys().any(|name| !matches!(name.as_str(), "title" | "description" | "nullable"));
        let non_null_parts = parts.iter().filter(|part| !is_null(part));
        let mut parts: Vec<Map<String, Value>> = non_null_parts.map(|part| self.schema(part, depth + 1)).collect();
        if parts.len() == 1 {
            return merge(copy, parts.remove(0));
        }
        if let Some(choice) = one_choice(&parts) {
            return merge(copy, choice);
        }
        if has_other_keywords {
            let all: Vec<Value> = parts.iter().cloned().map(Value::from).collect();
            if let Some(text) = sentence::alternatives(keyword, &all) {
                sentence::add(copy, &text);
            }
            // Members that only one of the alternatives has can also be given.
            for part in &mut parts {
                if let Some(Value::Object(properties)) = part.remove("properties") {
                    offer(copy, properties);
                }
            }
        } else if !parts.is_empty() {
            let finished = parts.into_iter().map(|part| Value::from(finished(part)));
            copy.insert("anyOf".into(), finished.collect());
        }
    }
}

fn describe_keyword(copy: &mut Map<String, Value>, keyword: &str, value: &Value) {
    if let Some(text) = sentence::of(keyword, value) {
        sentence::add(copy, &text);
    }
}

fn take_type<'a>(copy: &mut Map<String, Value>, types: &mut Vec<&'a str>, name: &'a str) {
    match name {
        "null" => {
            copy.insert("nullable".into(), true.into());
        }
        _ if OF_TYPE.iter().any(|(known, _)| *known == name) => {
            types.push(name);
            copy.entry("type").or_insert_with(|| name.into());
        }
        _ => describe_keyword(copy, "type", &name.into()),
    }
}

/// Adds the values of an `enum` if all are non-empty strings or null, as Gemini requires; otherwise describes them in
/// the description.
fn choose(copy: &mut Map<String, Value>, values: &[Value], described: &Value) {
    let texts: Vec<&str> = values.iter().filter_map(Value::as_str).filter(|text| !text.is_empty()).collect();
    let nulls = values.iter().filter(|value| value.is_null()).count();
    if nulls > 0 {
        copy.insert("nullable".into(), true.into());
    }
    if !texts.is_empty() && texts.len() + nulls == values.len() {
        copy.insert("enum".into(), texts.into());
    } else {
        describe_keyword(copy, "enum", described);
    }
}

/// Replaces several types by an alternative for each type.
fn several(copy: &mut Map<String, Value>, types: &[&str]) {
    if types.len() < 2 {
        return;
    }
    copy.shift_remove("type");
    if let Some(before) = copy.shift_remove("anyOf").and_then(|all| all.as_array().cloned())
        && let Some(text) = sentence::alternatives("anyOf", &before)
    {
        sentence::add(copy, &text);
    }
    let mut alternatives = Vec::new();
    for (index, name) in types.iter().enumerate().filter(|(index, name)| !types[..*index].contains(name)) {
        let own = OF_TYPE.iter().find(|(known, _)| known == name).map_or(&[][..], |(_, own)| *own);
        let is_last = |keyword: &str| {
            let later = types[index + 1..].iter().filter_map(|other| OF_TYPE.iter().find(|(known, _)| known == other));
            !later.into_iter().any(|(_, keywords)| keywords.contains(&keyword))
        };
        let mut alternative = Map::from_iter([("type".to_owned(), Value::from(*name))]);
        for keyword in own {
            let value = if is_last(keyword) { copy.shift_remove(*keyword) } else { copy.get(*keyword).cloned() };
            if let Some(value) = value {
                alternative.insert((*keyword).to_owned(), value);
            }
        }
        alternatives.push(Value::from(finished(alternative)));
    }
    copy.insert("anyOf".into(), alternatives.into());
}

/// Returns one list of strings for alternatives that are all such lists, with the description of each string; `None`
/// for other alternatives.
fn one_choice(parts: &[Map<String, Value>]) -> Option<Map<String, Value>> {
    let mut texts: Vec<Value> = Vec::new();
    let mut choice = Map::new();
    for part in parts {
        let is_choice = part.iter().all(|(name, value)| match name.as_str() {
            "type" => value == "string",
            "title" | "description" | "enum" => true,
            _ => false,
        });
        let own = part.get("enum").and_then(Value::as_array).filter(|_| is_choice)?;
        texts.extend(own.iter().cloned());
        if let Some(said) = part.get("description").and_then(Value::as_str) {
            sentence::add(&mut choice, &format!("{}: {said}", sentence::json(&own.clone().into())));
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    let texts: Vec<Value> =
        texts.iter().filter(|one| one.as_str().is_some_and(|text| seen.insert(text))).cloned().collect();
    (!texts.is_empty()).then(|| {
        choice.insert("type".into(), "string".into());
        choice.insert("enum".into(), texts.into());
        choice
    })
}

/// Adds those of the properties that the schema `copy` does not have yet.
fn offer(copy: &mut Map<String, Value>, properties: Map<String, Value>) {
    if let Value::Object(known) = copy.entry("properties").or_insert_with(|| json!({})) {
        for (name, property) in properties {
            known.entry(name).or_insert(property);
        }
    }
}

/// Merges the finished schema `other` into `copy` and finishes the result.
fn merge_finished(copy: &mut Map<String, Value>, other: Map<String, Value>) {
    merge(copy, other);
    *copy = finished(std::mem::take(copy));
}

/// Merges the schema `other` into `copy`, so that both apply.
fn merge(copy: &mut Map<String, Value>, other: Map<String, Value>) {
    for (keyword, value) in other {
        let Some(known) = copy.get_mut(&keyword) else {
            copy.insert(keyword, value);
            continue;
        };
        if *known == value {
            continue;
        }
        match (keyword.as_str(), known, value) {
            ("description", _, Value::String(text)) => sentence::add(copy, &text),
            ("title", _, _) => {}
            ("required", Value::Array(known), Value::Array(names)) => {
                let mut seen: std::collections::BTreeSet<String> =
                    known.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect();
                known.extend(
                    names.into_iter().filter(|name| name.as_str().is_some_and(|name| seen.insert(name.into()))),
                );
            }
            ("properties", Value::Object(known), Value::Object(properties)) => {
                for (name, property) in properties {
                    match (known.get_mut(&name), property) {
                        (Some(Value::Object(known)), Value::Object(property)) => merge_finished(known, property),
                        (_, property) => {
                            known.insert(name, property);
                        }
                    }
                }
            }
            ("items", Value::Object(known), Value::Object(items)) => merge_finished(known, items),
            ("minimum" | "minLength" | "minItems" | "minProperties", known, value)
                if value.as_f64() > known.as_f64() =>
            {
                *known = value;
            }
            ("maximum" | "maxLength" | "maxItems" | "maxProperties", known, value)
                if value.as_f64() < known.as_f64() =>
            {
                *known = value;
            }
            ("minimum" | "minLength" | "minItems" | "minProperties", ..)
            | ("maximum" | "maxLength" | "maxItems" | "maxProperties", ..) => {}
            (_, _, value) => describe_keyword(copy, &keyword, &value),
        }
    }
}

/// Completes a copy as Gemini requires: with one type or with alternatives, with every required member in `properties`,
/// and only with the keywords of its type.
fn finished(mut copy: Map<String, Value>) -> Map<String, Value> {
    if copy.contains_key("anyOf") && !copy.contains_key("type") {
        let beside: Vec<String> = copy
            .keys()
            .filter(|name| !matches!(name.as_str(), "anyOf" | "title" | "description" | "nullable"))
            .cloned()
            .collect();
        for keyword in beside {
            if let Some(value) = copy.shift_remove(&keyword) {
                describe_keyword(&mut copy, &keyword, &value);
            }
        }
        return alone(copy);
    }
    if let Some(all) = copy.shift_remove("anyOf") {
        describe_keyword(&mut copy, "anyOf", &all);
    }
    let implied = OF_TYPE.iter().find(|(_, own)| own.iter().any(|own| *own != "format" && copy.contains_key(*own)));
    let kind = match (copy.get("type").and_then(Value::as_str), implied) {
        (Some(kind), _) => kind.to_owned(),
        (None, Some((kind, _))) => (*kind).to_owned(),
        (None, None) => {
            if let Some(format) = copy.shift_remove("format") {
                describe_keyword(&mut copy, "format", &format);
            }
            copy.insert("anyOf".into(), any_value());
            return alone(copy);
        }
    };
    let own = OF_TYPE.iter().find(|(known, _)| *known == kind).map_or(&[][..], |(_, own)| *own);
    let foreign: Vec<String> = copy
        .keys()
        .filter(|name| {
            !own.contains(&name.as_str()) && !matches!(name.as_str(), "type" | "title" | "description" | "nullable")
        })
        .cloned()
        .collect();
    for keyword in foreign {
        if let Some(value) = copy.shift_remove(&keyword) {
            describe_keyword(&mut copy, &keyword, &value);
        }
    }
    let formats = FORMATS.iter().find(|(of, _)| *of == kind).map_or(&[][..], |(_, formats)| *formats);
    if copy.get("format").is_some_and(|format| format.as_str().is_none_or(|format| !formats.contains(&format)))
        && let Some(format) = copy.shift_remove("format")
    {
        describe_keyword(&mut copy, "format", &format);
    }
    match kind.as_str() {
        "object" => {
            let required = copy.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            let any =
                required.iter().filter_map(Value::as_str).map(|name| (name.to_owned(), json!({"anyOf": any_value()})));
            offer(&mut copy, any.collect());
            if copy.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty) {
                copy.shift_remove("properties");
            }
            if required.is_empty() {
                copy.shift_remove("required");
            }
        }
        "array" => {
            copy.entry("items").or_insert_with(|| json!({"anyOf": any_value()}));
        }
        _ => {}
    }
    copy.insert("type".into(), kind.into());
    copy
}

/// Removes everything but the alternatives. Moves the common description and title to the first one, and `nullable` to
/// each.
fn alone(mut copy: Map<String, Value>) -> Map<String, Value> {
    let said = copy.shift_remove("description").and_then(|text| text.as_str().map(str::to_owned));
    let title = copy.shift_remove("title");
    let is_nullable = copy.shift_remove("nullable").is_some();
    if let Some(Value::Array(all)) = copy.get_mut("anyOf") {
        if let Some(Value::Object(first)) = all.first_mut() {
            if let Some(said) = said {
                let own = first.insert("description".into(), said.into());
                if let Some(Value::String(own)) = own {
                    sentence::add(first, &own);
                }
            }
            if let Some(title) = title {
                first.entry("title").or_insert(title);
            }
        }
        for one in all.iter_mut().filter_map(Value::as_object_mut).filter(|_| is_nullable) {
            nullable(one);
        }
    }
    copy
}

fn nullable(one: &mut Map<String, Value>) {
    match one.get_mut("anyOf") {
        Some(Value::Array(all)) => all.iter_mut().filter_map(Value::as_object_mut).for_each(nullable),
        _ => {
            one.insert("nullable".into(), true.into());
        }
    }
}

/// Returns the alternatives (`anyOf`) of a schema for any value: one for each type, because there is no keyword for
/// all.
pub(super) fn any_value() -> Value {
    let plain = json!([{"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "object"}]);
    let mut all = plain.as_array().cloned().unwrap_or_default();
    all.push(json!({"type": "array", "items": {"anyOf": plain}}));
    all.into()
}
