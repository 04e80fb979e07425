//! A configuration before anybody knows what it means: values, each with the place where it was written.

use crate::config::origin::Origin;
use std::{fmt, path::Path, sync::Arc};

/// Deeper than any key lies, and shallow enough for recursion.
pub(super) const MAX_DEPTH: usize = 32;

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) content: Content,
    pub(super) origin: Origin,
}

/// A value as its format tells it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    Boolean(bool),
    Integer(i64),
    Fraction(f64),
    Text(String),
    /// Text of the environment or of a flag, whose type follows from its key.
    Untyped(String),
    /// A permission rule that was derived from an entry of another program's file.
    DerivedRule {
        rule: String,
        entry: String,
    },
    List(Vec<Node>),
    Table(Vec<Member>),
    /// Something that no key takes, in words: a date, nothing.
    Other(&'static str),
}

/// One key of a table, in the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Member {
    pub(super) name: String,
    /// Where the name stands.
    pub(super) origin: Origin,
    pub(super) node: Node,
}

impl fmt::Display for Content {
    /// The value in words, for "got …".
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

/// Turns offsets into lines.
pub(super) struct Lines {
    file: Arc<Path>,
    starts: Vec<usize>,
}

impl Lines {
    pub(super) fn of(text: &str, file: &Arc<Path>) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { file: file.clone(), starts: std::iter::once(0).chain(breaks).collect() }
    }

    /// The place of the byte at `offset`.
    pub(super) fn origin(&self, offset: usize) -> Origin {
        Origin::File(self.file.clone(), self.starts.partition_point(|start| *start <= offset))
    }
}
