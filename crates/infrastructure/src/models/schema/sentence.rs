//! Meaning of schema keywords as short sentences for the description of a property.

use serde_json::{Map, Value};
use std::io::{self, Write};

/// Maximum length of the JSON in a sentence, in bytes.
const MAX_JSON: usize = 300;

/// Length of a description in bytes from which no further sentences are added.
const MAX_DESCRIPTION: usize = 16 << 10;

/// Keywords that do not restrict values.
const SILENT: &[&str] = &[
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$id",
    "$recursiveAnchor",
    "$schema",
    "$vocabulary",
    "definitions",
    "id",
    "readOnly",
    "title",
    "description",
    "writeOnly",
];

/// JSON Schema keywords, from draft 4 on, that restrict values or help to choose one. All others are ignored.
const TELLING: &[&str] = &[
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "else",
    "enum",
    "example",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "required",
    "then",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

/// Returns the sentence for a keyword; `None` if the keyword has no effect.
pub(super) fn of(keyword: &str, value: &Value) -> Option<String> {
    if SILENT.contains(&keyword) || !TELLING.contains(&keyword) {
        return None;
    }
    let is_open = *value == Value::Bool(true) || value.as_object().is_some_and(Map::is_empty);
    Some(match keyword {
        "additionalItems"
        | "additionalProperties"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "items"
        | "contains"
        | "propertyNames"
            if is_open =>
        {
            return None;
        }
        "uniqueItems" | "deprecated" if *value != Value::Bool(true) => return None,
        "default" if value.is_null() => return None,
        "exclusiveMinimum" | "exclusiveMaximum" if *value == Value::Bool(false) => return None,
        "properties" | "patternProperties" | "dependentRequired" | "dependentSchemas" | "dependencies" if is_open => {
            return None;
        }
        "additionalProperties" | "unevaluatedProperties" if *value == Value::Bool(false) => "No other members.".into(),
        "additionalProperties" | "unevaluatedProperties" => format!("Other members fit {}.", json(value)),
        "additionalItems" | "unevaluatedItems" if *value == Value::Bool(false) => "No other items.".into(),
        "additionalItems" | "unevaluatedItems" => format!("Other items fit {}.", json(value)),
        "propertyNames" => format!("Names of members fit {}.", json(value)),
        "patternProperties" => format!("Members by patterns of their names: {}.", json(value)),
        "prefixItems" | "items" if value.is_array() => format!("The items in their order fit {}.", json(value)),
        "contains" => format!("Some item fits {}.", json(value)),
        "uniqueItems" => "No two items are equal.".into(),
        "deprecated" => "Deprecated.".into(),
        "exclusiveMinimum" if value.is_number() => format!("Greater than {value}."),
        "exclusiveMaximum" if value.is_number() => format!("Less than {value}."),
        "minimum" => format!("At least {}.", json(value)),
        "maximum" => format!("At most {}.", json(value)),
        "multipleOf" => format!("A multiple of {}.", json(value)),
        "const" => format!("Always {}.", json(value)),
        "enum" => format!("One of {}.", json(value)),
        "format" => format!("Format: {}.", text_or_json(value)),
        "pattern" => format!("Matches `{}`.", text_or_json(value)),
        "default" => format!("Default: {}.", json(value)),
        "example" | "examples" => format!("For example {}.", json(value)),
        "not" => format!("Does not fit {}.", json(value)),
        "if" => format!("If it fits {}, more conditions apply.", json(value)),
        "then" => format!("Then it fits {}.", json(value)),
        "else" => format!("Else it fits {}.", json(value)),
        "contentEncoding" | "contentMediaType" => format!("Content: {}.", text_or_json(value)),
        "$ref" | "$dynamicRef" | "$recursiveRef" => format!("As {} says.", text_or_json(value)),
        "oneOf" | "anyOf" | "allOf" => return alternatives(keyword, value.as_array().map_or(&[], Vec::as_slice)),
        _ => format!("`{keyword}`: {}.", json(value)),
    })
}

/// Returns the sentence for `oneOf`, `anyOf` or `allOf`, such as `Fits exactly one of …`; `None` without schemas.
pub(super) fn alternatives(keyword: &str, all: &[Value]) -> Option<String> {
    if all.is_empty() {
        return None;
    }
    let how = match keyword {
        "oneOf" => "Fits exactly one of",
        "anyOf" => "Fits at least one of",
        _ => "Fits all of",
    };
    let mut shown: Vec<String> = all.iter().take(8).map(json).collect();
    if all.len() > shown.len() {
        shown.push(format!("{} more", all.len() - shown.len()));
    }
    Some(format!("{how}: {}.", shown.join("; ")))
}

/// Adds a sentence to the description of a schema, unless the description contains the sentence already. A description
/// at its maximum length only gets a general sentence about more conditions.
pub(super) fn add(schema: &mut Map<String, Value>, sentence: &str) {
    let before = schema.get("description").and_then(Value::as_str).unwrap_or("").trim_end();
    let sentence = if before.len() < MAX_DESCRIPTION { sentence } else { "More conditions apply." };
    if before.contains(sentence) {
        return;
    }
    let joint = match before.chars().last() {
        None => "",
        Some('.' | '!' | '?' | ':' | ';' | ')') => " ",
        Some(_) => ". ",
    };
    let text = format!("{before}{joint}{sentence}");
    schema.insert("description".into(), text.into());
}

/// Returns a value as JSON, truncated to the maximum for a sentence. The rest of a large value is not serialized.
pub(super) fn json(value: &Value) -> String {
    let mut written = TruncatingWriter(Vec::new());
    let is_whole = serde_json::to_writer(&mut written, value).is_ok();
    let text = String::from_utf8_lossy(&written.0);
    if is_whole { text.into_owned() } else { format!("{}…", text.trim_end_matches('\u{fffd}')) }
}

fn text_or_json(value: &Value) -> String {
    match value {
        Value::String(text) if text.len() <= MAX_JSON => text.clone(),
        other => json(other),
    }
}

struct TruncatingWriter(Vec<u8>);

impl Write for TruncatingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = MAX_JSON - self.0.len();
        if room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = room.min(bytes.len());
        self.0.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
