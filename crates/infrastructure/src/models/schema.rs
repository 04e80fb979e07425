//! Copies of argument schemas for each provider. Keywords that a provider does not accept are explained in
//! descriptions, so that nothing is lost silently.

mod json_schema_copier;
mod open_api_copier;
mod property_names;
mod reference;
mod root;
mod sentence;

use self::{json_schema_copier::JsonSchemaCopier, open_api_copier::OpenApiCopier, property_names::PropertyNameMapping};
use super::settings::ProviderKind;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Maximum nesting depth to copy.
const MAX_DEPTH: usize = 32;

/// Maximum estimated size of a copy, in bytes.
const MAX_BYTES: usize = 256 << 10;

/// Minimum size counted for a schema, in bytes.
const OF_A_SCHEMA: usize = 64;

/// Description of a schema that did not fit into the copy.
const CUT: &str = "Any value: the schema is too large or too deep to include.";

/// Returns a copy of the schema that this kind of provider accepts. The root of the copy is always an object with
/// `properties`, and its size is limited.
pub fn schema_copy(kind: ProviderKind, schema: &Value) -> Value {
    let refused: &[&str] = if kind == ProviderKind::Anthropic { &[] } else { &["enum", "const", "not"] };
    let (root, names) = (&root::plain(schema, refused), &PropertyNameMapping::of(schema, taken_by(kind)));
    let room = SizeBudget { bytes: MAX_BYTES };
    let copy = match kind {
        ProviderKind::Gemini => OpenApiCopier { root, names, room, open: Vec::new() }.copy(),
        kind => JsonSchemaCopier { root, names, room, is_complete: kind != ProviderKind::Anthropic }.copy(),
    };
    // The root itself was too large.
    let is_cut = copy.get("type").is_none_or(|kind| kind != "object");
    if is_cut { json!({"type": "object", "properties": {}, "description": CUT}) } else { copy }
}

/// Conversion of property names in arguments, for a schema with names that the provider rejects.
#[derive(Debug)]
pub(super) struct ArgumentNameMapping {
    schema: Arc<Value>,
    names: PropertyNameMapping,
}

impl ArgumentNameMapping {
    /// Returns the conversion; `None` if no name is replaced, which is almost always the case.
    pub(super) fn of(kind: ProviderKind, schema: &Arc<Value>) -> Option<Self> {
        let names = PropertyNameMapping::of(schema, taken_by(kind));
        (!names.is_empty()).then(|| Self { schema: schema.clone(), names })
    }

    /// Returns arguments with the provider's names.
    pub(super) fn to_provider(&self, arguments: &Map<String, Value>) -> Map<String, Value> {
        self.names.to_provider(&self.schema, arguments)
    }

    /// Returns arguments of the provider with the tool's names.
    pub(super) fn to_tool(&self, arguments: &Map<String, Value>) -> Map<String, Value> {
        self.names.to_tool(&self.schema, arguments)
    }
}

/// Returns the check for property names that the provider accepts.
fn taken_by(kind: ProviderKind) -> fn(&str) -> bool {
    match kind {
        ProviderKind::Anthropic => property_names::is_word,
        ProviderKind::OpenAi | ProviderKind::OpenAiResponses => property_names::is_anything,
        ProviderKind::Gemini => property_names::is_identifier,
    }
}

/// Remaining size of a copy.
struct SizeBudget {
    bytes: usize,
}

impl SizeBudget {
    /// Reserves the size of one schema without its subschemas. Returns `false` if it does not fit or is nested too
    /// deeply.
    fn take(&mut self, members: &Map<String, Value>, depth: usize) -> bool {
        let shallow = |value: &Value| match value {
            Value::String(text) => text.len(),
            Value::Array(values) => values.iter().map(|value| value.as_str().map_or(OF_A_SCHEMA, str::len)).sum(),
            Value::Object(members) => members.keys().map(|name| name.len() + OF_A_SCHEMA).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        };
        let bytes: usize = members.iter().map(|(name, value)| name.len() + shallow(value)).sum::<usize>() + OF_A_SCHEMA;
        let fits = depth <= MAX_DEPTH && bytes <= self.bytes;
        if fits {
            self.bytes -= bytes;
        }
        fits
    }
}

/// Returns the sentence for a property whose name was replaced.
fn stands_for(name: &str) -> String {
    format!("Stands for {}.", sentence::json(&name.into()))
}

#[cfg(test)]
mod tests;
