//! A schema's and its arguments' faults.

use std::fmt;

/// The weight of `format`: a remark, or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Formats {
    /// Checked: our own tools.
    Asserted,
    /// Ignored: schemas of MCP servers, as their authors' validators do.
    Annotations,
}

/// One thing that is wrong with arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The place: a JSON pointer into the arguments, empty for the whole.
    pub path: String,
    /// The value that the schema wants there.
    pub expected: String,
    /// The value that stands there, shortened.
    pub got: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "the arguments" } else { &self.path };
        write!(f, "{path}: expected {}, got {}", self.expected, self.got)
    }
}

/// Arguments that do not fit a schema. The text lists violations on lines of their own, and says how many more there are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{more}", violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct InvalidArguments {
    /// The first ones, sorted by path, never empty.
    pub violations: Vec<Violation>,
    /// More of them, as far as they are counted.
    pub more: More,
}

/// Violations that are not told one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum More {
    /// There are no others.
    None,
    /// So many.
    Exactly(usize),
    /// Nobody looked: there is too much of it.
    Unknown,
}

impl fmt::Display for More {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Exactly(count) => write!(f, "\n… and {count} more"),
            Self::Unknown => f.write_str("\n… and maybe more: there is too much to look at all of it"),
        }
    }
}

/// A schema that cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schema cannot be used: {reason}")]
pub struct InvalidSchema {
    pub(super) reason: String,
}

impl InvalidSchema {
    /// A schema that somebody else could not compile.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }

    /// The reason, as a clause.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}
