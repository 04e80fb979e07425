//! Values that were checked against their keys.

use crate::config::{sections::database_url::DatabaseUrl, tree::origin::Origin};
use serde_json::{Map, json};
use std::fmt;

/// A checked value. Paths are absolute, and selections and addresses are well-formed.
#[derive(Debug, Clone, PartialEq)]
pub enum ValidatedConfigValue {
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number within the bounds of its key.
    Integer(u64),
    /// A number within the bounds of its key.
    Number(f64),
    /// A text, word, path or URL.
    Text(String),
    /// URL of the database.
    Database(DatabaseUrl),
    /// A list of items, each with its origin.
    List(Vec<TextItem>),
    /// Names with texts, in the order of the file.
    Map(Vec<(String, TextItem)>),
    /// Names with values of any type, in the order of the file.
    Json(Map<String, serde_json::Value>),
}

/// A text and its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct TextItem {
    /// The text.
    pub text: String,
    /// Origin of the text.
    pub origin: Origin,
    /// Examples that a rule must match, and that it must not match.
    pub examples: Vec<RuleExample>,
    /// Entry in a file of another system from which a rule was derived; `None` if it was not derived.
    pub entry: Option<String>,
}

/// An example with which a rule is tested when it is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleExample {
    /// A command line, path, host, agent, resource, prompt, name of a tool, or JSON object of arguments, depending on
    /// the rule.
    pub text: String,
    /// Origin of the example.
    pub origin: Origin,
    /// `true` if the rule must match it, `false` if it must not.
    pub matches: bool,
}

impl TextItem {
    /// Creates an item.
    pub fn new(text: impl Into<String>, origin: Origin) -> Self {
        Self { text: text.into(), origin, examples: Vec::new(), entry: None }
    }
}

impl ValidatedConfigValue {
    /// Returns the value as JSON, without origins.
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
            Self::Json(members) => members.clone().into(),
        }
    }

    /// Returns `true` if both values are equal, regardless of their origins.
    pub(in crate::config) fn same(&self, other: &Self) -> bool {
        self.to_json() == other.to_json()
    }

    /// Returns the text; `None` for other types.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Boolean(_)
            | Self::Integer(_)
            | Self::Number(_)
            | Self::Database(_)
            | Self::List(_)
            | Self::Map(_)
            | Self::Json(_) => None,
        }
    }

    /// Returns the number, integer or fraction; `None` for other types.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the items; empty if the value is not a list.
    pub fn items(&self) -> &[TextItem] {
        match self {
            Self::List(items) => items,
            Self::Boolean(_)
            | Self::Integer(_)
            | Self::Number(_)
            | Self::Text(_)
            | Self::Database(_)
            | Self::Map(_)
            | Self::Json(_) => &[],
        }
    }
}

impl fmt::Display for ValidatedConfigValue {
    /// Writes the value on one line, as in a TOML file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Map(members) => {
                f.write_str("{ ")?;
                for (at, (name, item)) in members.iter().enumerate() {
                    write!(f, "{}{name} = {}", if at > 0 { ", " } else { "" }, json!(item.text))?;
                }
                f.write_str(" }")
            }
            Self::Json(members) => {
                f.write_str("{ ")?;
                for (at, (name, value)) in members.iter().enumerate() {
                    write!(f, "{}{name} = {value}", if at > 0 { ", " } else { "" })?;
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
