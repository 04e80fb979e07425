//! Conversion of property names to those that a provider accepts, and back.

use super::reference;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Maximum length of a name that providers accept.
const MAX_NAME: usize = 64;

/// Maximum number of schemas to consider for one value.
const MAX_SCHEMAS: usize = 64;

/// Maximum depth to which values are converted.
const MAX_DEPTH: usize = 128;

/// Property names of a schema that a provider rejects, with their replacements. Almost always empty.
#[derive(Debug, Default)]
pub(super) struct PropertyNameMapping {
    provider_names: BTreeMap<String, String>,
    original_names: BTreeMap<String, String>,
}

#[derive(Clone, Copy)]
enum Direction {
    ToProvider,
    ToTool,
}

/// Returns `true` if the name consists of 1 to 64 ASCII letters, digits, `_`, `.` and `-`.
pub(super) fn is_word(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

/// Returns `true` if [`is_word`] accepts the name and it begins with a letter or `_`.
pub(super) fn is_identifier(name: &str) -> bool {
    is_word(name) && !name.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '.' | '-'))
}

/// Returns `true` for every name.
pub(super) fn is_anything(_: &str) -> bool {
    true
}

impl PropertyNameMapping {
    /// Collects the property names in a schema that the provider does not accept (`taken` returns `false`), and chooses
    /// replacements.
    pub(super) fn of(schema: &Value, taken: fn(&str) -> bool) -> Self {
        let all = names_in(schema);
        let mut names = Self::default();
        let mut used: HashMap<String, u32> = HashMap::new();
        for name in all.iter().filter(|name| !taken(name)) {
            let base = spelled(name);
            let count = used.entry(base.clone()).or_default();
            let free = loop {
                *count += 1;
                let candidate = match *count {
                    1 => base.clone(),
                    number => {
                        let number = format!("_{number}");
                        format!("{}{number}", &base[..base.len().min(MAX_NAME - number.len())])
                    }
                };
                if !all.contains(candidate.as_str()) && !names.original_names.contains_key(&candidate) {
                    break candidate;
                }
            };
            names.provider_names.insert((*name).to_owned(), free.clone());
            names.original_names.insert(free, (*name).to_owned());
        }
        names
    }

    /// Returns `true` if no name is replaced.
    pub(super) fn is_empty(&self) -> bool {
        self.provider_names.is_empty()
    }

    /// Returns the provider's name of a property, which is unchanged if the provider accepts it.
    pub(super) fn provider_name<'a>(&'a self, name: &'a str) -> &'a str {
        self.provider_names.get(name).map_or(name, String::as_str)
    }

    /// Returns a `$ref` with its property names replaced by those that the provider receives.
    pub(super) fn in_reference(&self, reference: &str) -> String {
        if self.provider_names.is_empty() {
            return reference.to_owned();
        }
        let mut is_name = false;
        let spelled = reference.split('/').map(|word| {
            let plain = word.replace("~1", "/").replace("~0", "~");
            let provider_name = if is_name { self.provider_names.get(&plain).map(String::as_str) } else { None };
            is_name = word == "properties";
            provider_name.unwrap_or(word)
        });
        spelled.collect::<Vec<_>>().join("/")
    }

    /// Returns arguments with the provider's names.
    pub(super) fn to_provider(&self, schema: &Value, arguments: &Map<String, Value>) -> Map<String, Value> {
        self.renamed(schema, arguments, Direction::ToProvider)
    }

    /// Returns arguments with the original names.
    pub(super) fn to_tool(&self, schema: &Value, arguments: &Map<String, Value>) -> Map<String, Value> {
        self.renamed(schema, arguments, Direction::ToTool)
    }

    fn renamed(&self, schema: &Value, arguments: &Map<String, Value>, direction: Direction) -> Map<String, Value> {
        self.members(schema, &[schema], arguments, direction, 0)
    }

    fn value(&self, root: &Value, schemas: &[&Value], value: &Value, direction: Direction, depth: usize) -> Value {
        match value {
            Value::Object(members) if depth < MAX_DEPTH => {
                self.members(root, schemas, members, direction, depth).into()
            }
            Value::Array(values) if depth < MAX_DEPTH => {
                let items: Vec<&Value> = holding(root, schemas)
                    .iter()
                    .flat_map(|schema| {
                        let list = |name| schema.get(name).and_then(Value::as_array).into_iter().flatten();
                        schema.get("items").into_iter().chain(list("items")).chain(list("prefixItems"))
                    })
                    .collect();
                values.iter().map(|value| self.value(root, &items, value, direction, depth + 1)).collect()
            }
            other => other.clone(),
        }
    }

    fn members(
        &self,
        root: &Value,
        schemas: &[&Value],
        members: &Map<String, Value>,
        direction: Direction,
        depth: usize,
    ) -> Map<String, Value> {
        let schemas = holding(root, schemas);
        let is_declared = |name: &str| {
            schemas.iter().any(|schema| {
                let required = schema.get("required").and_then(Value::as_array);
                schema.get("properties").is_some_and(|properties| properties.get(name).is_some())
                    || required.is_some_and(|names| names.iter().any(|one| one == name))
            })
        };
        let mut renamed = Map::new();
        for (key, value) in members {
            let (ours, new) = match direction {
                Direction::ToProvider => {
                    (key, self.provider_names.get(key).filter(|_| is_declared(key)).unwrap_or(key))
                }
                Direction::ToTool => {
                    let ours = self.original_names.get(key).filter(|ours| is_declared(ours)).unwrap_or(key);
                    (ours, ours)
                }
            };
            let named: Vec<&Value> = schemas.iter().filter_map(|schema| schema.get("properties")?.get(ours)).collect();
            let below = match named.is_empty() {
                true => schemas.iter().copied().flat_map(of_others).collect(),
                false => named,
            };
            renamed.insert(new.clone(), self.value(root, &below, value, direction, depth + 1));
        }
        renamed
    }
}

/// Returns the schemas that may apply to a value: `schemas`, and those that they refer to or combine, at most
/// [`MAX_SCHEMAS`].
fn holding<'a>(root: &'a Value, schemas: &[&'a Value]) -> Vec<&'a Value> {
    let mut all: Vec<&Value> = Vec::new();
    let mut waiting: Vec<&Value> = schemas.iter().rev().copied().collect();
    while let Some(schema) = waiting.pop().filter(|_| all.len() < MAX_SCHEMAS) {
        if all.iter().any(|known| std::ptr::eq(*known, schema)) {
            continue;
        }
        all.push(schema);
        let reference = schema.get("$ref").and_then(Value::as_str);
        waiting.extend(reference.and_then(|name| reference::target(root, name)));
        for keyword in ["allOf", "anyOf", "oneOf"] {
            waiting.extend(schema.get(keyword).and_then(Value::as_array).into_iter().flatten());
        }
        waiting.extend(["then", "else", "if"].into_iter().filter_map(|keyword| schema.get(keyword)));
    }
    all
}

/// Returns the schemas of properties that are not listed in `properties`.
fn of_others(schema: &Value) -> impl Iterator<Item = &Value> {
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    schema.get("additionalProperties").into_iter().chain(patterns.into_iter().flat_map(Map::values))
}

/// Returns everything in a schema that may be a property name.
fn names_in(schema: &Value) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    let mut waiting = vec![schema];
    while let Some(value) = waiting.pop() {
        match value {
            Value::Array(values) => waiting.extend(values),
            Value::Object(members) => {
                if let Some(Value::Object(properties)) = members.get("properties") {
                    names.extend(properties.keys().map(String::as_str));
                }
                if let Some(Value::Array(required)) = members.get("required") {
                    names.extend(required.iter().filter_map(Value::as_str));
                }
                waiting.extend(members.values());
            }
            _ => {}
        }
    }
    names
}

/// Returns the closest name that every provider accepts.
fn spelled(name: &str) -> String {
    let mut word: String = name
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '_' })
        .take(MAX_NAME)
        .collect();
    if !is_identifier(&word) {
        word.insert(0, '_');
        word.truncate(MAX_NAME);
    }
    word
}
