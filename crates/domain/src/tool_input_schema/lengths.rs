//! Lists, texts and objects that are longer than their schema allows, found without a look at what they hold.

use super::{Violation, bounds};
use serde_json::{Map, Value};

/// The parts of a value that are too long, where the schema says so plainly: along `properties` and `items`. No more
/// than `most` of them.
pub(super) fn too_long(schema: &Value, value: &Value, most: usize) -> Vec<Violation> {
    let mut search = Search { root: schema, found: Vec::new(), most };
    search.look(schema, value, &mut String::new());
    search.found
}

struct Search<'a> {
    root: &'a Value,
    found: Vec<Violation>,
    most: usize,
}

impl Search<'_> {
    /// As deep as the value is.
    fn look(&mut self, schema: &Value, value: &Value, path: &mut String) {
        let Some(schema) = bounds::resolved(self.root, schema).and_then(Value::as_object) else { return };
        if self.found.len() >= self.most {
            return;
        }
        match value {
            Value::String(text) => {
                if let Some(limit) = limit(schema, "maxLength")
                    // Bytes are never fewer than characters.
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
                // A list in place of one schema is for single items.
                if let Some(each) = schema.get("items").filter(|each| each.is_object()) {
                    for (at, item) in items.iter().enumerate().filter(|(_, item)| !item.is_number()) {
                        self.below(each, item, path, &at.to_string());
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
                        self.below(schema, member, path, &name.replace('~', "~0").replace('/', "~1"));
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn below(&mut self, schema: &Value, value: &Value, path: &mut String, name: &str) {
        let length = path.len();
        path.push('/');
        path.push_str(name);
        self.look(schema, value, path);
        path.truncate(length);
    }

    fn compare(&mut self, path: &str, length: usize, limit: u64, what: &str) -> bool {
        let is_longer = length as u64 > limit;
        if is_longer {
            let expected = format!("at most {limit} {what}");
            self.found.push(Violation { path: path.to_owned(), expected, got: length.to_string() });
        }
        is_longer
    }
}

fn limit(schema: &Map<String, Value>, keyword: &str) -> Option<u64> {
    schema.get(keyword)?.as_u64()
}
