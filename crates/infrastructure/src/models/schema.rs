//! Schemas of arguments, in a copy for each provider: what it does not take is told in descriptions, and nothing is lost
//! in silence.

mod property_names;
mod reference;
mod root;
mod sentence;
mod subset;
mod whole;

use self::{property_names::PropertyNames, subset::Subset, whole::Whole};
use super::settings::ProviderKind;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The deepest nesting that is copied.
const MAX_DEPTH: usize = 32;

/// The largest copy, in bytes, as far as they can be told beforehand.
const MAX_BYTES: usize = 256 << 10;

/// The least that a schema is counted for, in bytes.
const OF_A_SCHEMA: usize = 64;

/// The description of what did not fit into a copy.
const CUT: &str = "Any value: the schema is too large or too deep to be told here.";

/// The copy of a schema that such a provider takes. Whatever the schema is, the copy's root is an object with `properties`,
/// and it is bounded.
pub fn schema_copy(kind: ProviderKind, schema: &Value) -> Value {
    let refused: &[&str] = if kind == ProviderKind::Anthropic { &[] } else { &["enum", "const", "not"] };
    let (root, names) = (&root::plain(schema, refused), &PropertyNames::of(schema, taken_by(kind)));
    let room = Room { bytes: MAX_BYTES };
    let copy = match kind {
        ProviderKind::Gemini => Subset { root, names, room, open: Vec::new() }.copy(),
        kind => Whole { root, names, room, is_complete: kind != ProviderKind::Anthropic }.copy(),
    };
    // Not even its root found room.
    let is_cut = copy.get("type").is_none_or(|kind| kind != "object");
    if is_cut { json!({"type": "object", "properties": {}, "description": CUT}) } else { copy }
}

/// The names of members of arguments there and back, where a provider refuses some of a schema's.
#[derive(Debug)]
pub(super) struct ArgumentNames {
    schema: Arc<Value>,
    names: PropertyNames,
}

impl ArgumentNames {
    /// `None` where all names are the same there: nearly always.
    pub(super) fn of(kind: ProviderKind, schema: &Arc<Value>) -> Option<Self> {
        let names = PropertyNames::of(schema, taken_by(kind));
        (!names.is_empty()).then(|| Self { schema: schema.clone(), names })
    }

    /// Arguments as the provider was told of their members.
    pub(super) fn told(&self, arguments: &Map<String, Value>) -> Map<String, Value> {
        self.names.there(&self.schema, arguments)
    }

    /// Arguments of the provider as the tool knows their members.
    pub(super) fn meant(&self, arguments: &Map<String, Value>) -> Map<String, Value> {
        self.names.back(&self.schema, arguments)
    }
}

/// The names of members that a provider takes.
fn taken_by(kind: ProviderKind) -> fn(&str) -> bool {
    match kind {
        ProviderKind::Anthropic => property_names::is_word,
        ProviderKind::OpenAi | ProviderKind::OpenAiResponses => property_names::is_anything,
        ProviderKind::Gemini => property_names::is_identifier,
    }
}

/// The room that is left in a copy.
struct Room {
    bytes: usize,
}

impl Room {
    /// Takes the room of one schema without those within it.
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

/// The sentence for a member whose name had to be changed.
fn stands_for(name: &str) -> String {
    format!("Stands for {}.", sentence::json(&name.into()))
}

#[cfg(test)]
mod tests;
