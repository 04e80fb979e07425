//! Values that fit their keys.

use crate::config::{database_url::DatabaseUrl, origin::Origin};
use serde_json::{Map, json};
use std::fmt;

/// A checked value. Paths are absolute, selections and addresses known to be well-formed.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// On or off.
    Boolean(bool),
    /// A whole number within the bounds of its key.
    Integer(u64),
    /// A number within the bounds of its key.
    Number(f64),
    /// A text, word, path or URL.
    Text(String),
    /// Where the stores are.
    Database(DatabaseUrl),
    /// A list, each item with its place.
    List(Vec<Item>),
    /// Names with texts, in the order of the file.
    Map(Vec<(String, Item)>),
}

/// A text and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The text.
    pub text: String,
    /// Where it was written.
    pub origin: Origin,
    /// What a rule must match, and what it must not.
    pub examples: Vec<Example>,
    /// The entry of another program's file that a rule was derived from.
    pub entry: Option<String>,
}

/// Something that a rule is tried on when it is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// A command line, a path, a host, a tool's name or arguments, as the rule is about.
    pub text: String,
    /// Where it was written.
    pub origin: Origin,
    /// Whether the rule must match it.
    pub matches: bool,
}

impl Item {
    /// A text at its place.
    pub fn new(text: impl Into<String>, origin: Origin) -> Self {
        Self { text: text.into(), origin, examples: Vec::new(), entry: None }
    }
}

impl Value {
    /// The value as JSON, without places.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Boolean(value) => json!(value),
            Self::Integer(value) => json!(value),
            Self::Number(value) => json!(value),
            Self::Text(text) => json!(text),
            Self::Database(url) => json!(url.to_string()),
            Self::List(items) => items.iter().map(|item| item.text.as_str()).collect(),
            Self::Map(members) => {
                members.iter().map(|(name, item)| (name.clone(), json!(item.text))).collect::<Map<_, _>>().into()
            }
        }
    }

    /// Whether both say the same, wherever they were written.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.to_json() == other.to_json()
    }

    /// The text, where it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Boolean(_)
            | Self::Integer(_)
            | Self::Number(_)
            | Self::Database(_)
            | Self::List(_)
            | Self::Map(_) => None,
        }
    }

    /// The number, whole or not.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The items; none where it is no list.
    pub fn items(&self) -> &[Item] {
        match self {
            Self::List(items) => items,
            Self::Boolean(_)
            | Self::Integer(_)
            | Self::Number(_)
            | Self::Text(_)
            | Self::Database(_)
            | Self::Map(_) => &[],
        }
    }
}

impl fmt::Display for Value {
    /// The value as in a TOML file, in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Map(members) => {
                f.write_str("{ ")?;
                for (at, (name, item)) in members.iter().enumerate() {
                    write!(f, "{}{name} = {}", if at > 0 { ", " } else { "" }, json!(item.text))?;
                }
                f.write_str(" }")
            }
            Self::List(items) => {
                f.write_str("[")?;
                for (at, item) in items.iter().enumerate() {
                    write!(f, "{}{}", if at > 0 { ", " } else { "" }, json!(item.text))?;
                }
                f.write_str("]")
            }
            Self::Boolean(_) | Self::Integer(_) | Self::Number(_) | Self::Text(_) | Self::Database(_) => {
                self.to_json().fmt(f)
            }
        }
    }
}
