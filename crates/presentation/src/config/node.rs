//! A configuration before anybody knows what it means: values, each with the place where it was written.

use crate::config::{
    format::{json, toml, yaml},
    origin::Origin,
    problem::Problem,
};
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
    Text(String),
    /// Text of the environment or of a flag, whose type follows from its key.
    Untyped(String),
    List(Vec<Node>),
    Table(Vec<Member>),
    /// Something that no key takes, in words: a fraction, a date, nothing.
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

/// A format of configuration files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Toml,
    Json,
    Yaml,
}

impl Format {
    /// The endings of file names, in the order in which they are looked for.
    pub(super) const ENDINGS: &[(&str, Self)] =
        &[("toml", Self::Toml), ("json", Self::Json), ("yaml", Self::Yaml), ("yml", Self::Yaml)];

    /// The format of a file of that name.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?;
        Self::ENDINGS.iter().find(|(known, _)| *known == ending).map(|(_, format)| *format)
    }
}

impl Node {
    /// Reads a file's text as a tree whose root is a table.
    ///
    /// # Errors
    /// A [`Problem`] with the line where the text is not what the format wants.
    pub(super) fn read(format: Format, text: &str, file: &Arc<Path>) -> Result<Self, Problem> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let root = match format {
            Format::Toml => toml::read(text, file),
            Format::Json => json::read(text, file),
            Format::Yaml => yaml::read(text, file),
        }?;
        match root.content {
            Content::Table(_) => Ok(root),
            other => Err(Problem::new(root.origin, format!("the file must hold a table of keys, got {other}"))),
        }
    }
}

impl fmt::Display for Content {
    /// The value in words, for "got …".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "the number {value}"),
            Self::Text(text) | Self::Untyped(text) => {
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
