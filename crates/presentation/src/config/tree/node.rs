//! A parsed configuration file before its keys are interpreted: values, each with its origin.

use crate::config::tree::origin::Origin;
use serde_json::json;
use std::{fmt, path::Path, sync::Arc};

/// Maximum nesting depth: more than any key needs, and safe for recursion.
pub(in crate::config) const MAX_DEPTH: usize = 32;

/// A value and its origin.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::config) struct Node {
    pub(in crate::config) content: NodeContent,
    pub(in crate::config) origin: Origin,
}

/// A value as its format defines it.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::config) enum NodeContent {
    Boolean(bool),
    Integer(i64),
    Fraction(f64),
    Text(String),
    /// Text of an environment variable or a flag. Its type depends on the key.
    Untyped(String),
    /// A permission rule derived from an entry in a file of another system.
    DerivedRule {
        rule: String,
        entry: String,
    },
    List(Vec<Node>),
    Table(Vec<Member>),
    /// A value that no key accepts, described in words: a date, nothing.
    Other(&'static str),
}

/// A member of a table. Members are in the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::config) struct Member {
    pub(in crate::config) name: String,
    /// Origin of the name.
    pub(in crate::config) origin: Origin,
    pub(in crate::config) node: Node,
}

impl NodeContent {
    /// Returns the value as JSON, without origins.
    pub(in crate::config) fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Boolean(value) => json!(value),
            Self::Integer(value) => json!(value),
            Self::Fraction(value) => json!(value),
            Self::Text(text) | Self::Untyped(text) | Self::DerivedRule { rule: text, .. } => json!(text),
            Self::List(items) => items.iter().map(|item| item.content.to_json()).collect(),
            Self::Table(members) => {
                let members = members.iter().map(|member| (member.name.clone(), member.node.content.to_json()));
                serde_json::Value::Object(members.collect())
            }
            Self::Other(what) => json!([what]),
        }
    }
}

impl fmt::Display for NodeContent {
    /// Describes the value for messages such as "got …".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "the number {value}"),
            Self::Fraction(_) => f.write_str("a fraction"),
            Self::Text(text) | Self::Untyped(text) | Self::DerivedRule { rule: text, .. } => {
                let shown: String = text.chars().take(60).collect();
                write!(f, "the text {shown:?}")
            }
            Self::List(_) => f.write_str("a list"),
            Self::Table(_) => f.write_str("a table"),
            Self::Other(what) => f.write_str(what),
        }
    }
}

/// Converts byte offsets to line numbers.
pub(in crate::config) struct LineIndex {
    file: Arc<Path>,
    starts: Vec<usize>,
}

impl LineIndex {
    pub(in crate::config) fn of(text: &str, file: &Arc<Path>) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { file: file.clone(), starts: std::iter::once(0).chain(breaks).collect() }
    }

    /// Returns the origin of the byte at `offset`.
    pub(in crate::config) fn origin(&self, offset: usize) -> Origin {
        Origin::File(self.file.clone(), self.starts.partition_point(|start| *start <= offset))
    }
}
