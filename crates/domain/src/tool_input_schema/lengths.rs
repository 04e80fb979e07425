//! Lists, texts and objects that are longer than their schema allows, found without examining their contents.

use super::{Violation, bounds};
use serde_json::{Map, Value};
use std::fmt;

/// Returns at most `most` violations of `maxLength`, `maxItems` and `maxProperties` in a value. Examines only the parts
/// that `properties`, `items` and `$ref` lead to, and nothing within a list or object that is too long.
pub(super) fn too_long(schema: &Value, value: &Value, most: usize) -> Vec<Violation> {
    let mut search = LengthChecker { root: schema, found: Vec::new(), most };
    search.look(schema, value, ValuePath::Root);
    search.found
}

struct LengthChecker<'a> {
    root: &'a Value,
    found: Vec<Violation>,
    most: usize,
}

/// Path of a value within the arguments. It is formatted only if the value is too long.
#[derive(Clone, Copy)]
enum ValuePath<'a> {
    Root,
    Member(&'a ValuePath<'a>, &'a str),
    Item(&'a ValuePath<'a>, usize),
}

impl fmt::Display for ValuePath<'_> {
    /// Writes a JSON Pointer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Member(parent, name) => write!(f, "{parent}/{}", name.replace('~', "~0").replace('/', "~1")),
            Self::Item(parent, index) => write!(f, "{parent}/{index}"),
        }
    }
}

impl LengthChecker<'_> {
    /// Adds the violations of a value and of its parts to `found`. Recurses as deep as the value is nested.
    fn look(&mut self, schema: &Value, value: &Value, path: ValuePath<'_>) {
        let Some(schema) = bounds::resolved(self.root, schema).and_then(Value::as_object) else { return };
        if self.found.len() >= self.most {
            return;
        }
        match value {
            Value::String(text) => {
                if let Some(limit) = limit(schema, "maxLength")
                    // A text never has fewer bytes than characters.
                    && text.len() as u64 > limit
                {
                    self.compare(path, text.chars().count(), limit, "characters");
                }
            }
            Value::Array(items) => {
                if let Some(limit) = limit(schema, "maxItems")
                    && self.compare(path, items.len(), limit, "items")
                {
                    return;
                }
                // A list of schemas applies to single items.
                if let Some(each) = schema.get("items").filter(|each| each.is_object()) {
                    for (at, item) in items.iter().enumerate().filter(|(_, item)| !item.is_number()) {
                        self.look(each, item, ValuePath::Item(&path, at));
                    }
                }
            }
            Value::Object(members) => {
                if let Some(limit) = limit(schema, "maxProperties")
                    && self.compare(path, members.len(), limit, "properties")
                {
                    return;
                }
                let known = schema.get("properties").and_then(Value::as_object);
                for (name, schema) in known.into_iter().flatten() {
                    if let Some(member) = members.get(name) {
                        self.look(schema, member, ValuePath::Member(&path, name));
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn compare(&mut self, path: ValuePath<'_>, length: usize, limit: u64, what: &str) -> bool {
        let is_longer = length as u64 > limit;
        if is_longer {
            let expected = format!("at most {limit} {what}");
            self.found.push(Violation { path: path.to_string(), expected, got: length.to_string() });
        }
        is_longer
    }
}

fn limit(schema: &Map<String, Value>, keyword: &str) -> Option<u64> {
    schema.get(keyword)?.as_u64()
}
