//! Faults of schemas and of arguments.

use std::fmt;

/// Treatment of `format` in schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatValidation {
    /// Checked: schemas of Toolstead's own tools.
    Asserted,
    /// Ignored: schemas of MCP servers, as the validators of their authors do.
    Annotations,
}

/// One fault of arguments.
///
/// ```
/// use toolstead_domain::tool_input_schema::Violation;
///
/// let violation = Violation { path: "/limit".into(), expected: "at most 10".into(), got: "12".into() };
/// assert_eq!(violation.to_string(), "/limit: expected at most 10, got 12");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer into the arguments; empty for the arguments as a whole.
    pub path: String,
    /// Description of the value that the schema requires there, such as `at most 10`.
    pub expected: String,
    /// Actual value as JSON, shortened; its length if that is the fault, or `nothing` if it is missing.
    pub got: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "the arguments" } else { &self.path };
        write!(f, "{path}: expected {}, got {}", self.expected, self.got)
    }
}

/// Arguments that violate a schema. The text lists each violation on a line, followed by the number of further ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{more}", violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct InvalidArguments {
    /// First violations, sorted by path. Never empty.
    pub violations: Vec<Violation>,
    /// Number of further violations, as far as it is known.
    pub more: UnlistedViolations,
}

/// Number of violations that are not listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnlistedViolations {
    /// None.
    None,
    /// Exactly this number.
    Exactly(usize),
    /// Unknown: the arguments are too large to count.
    Unknown,
}

impl fmt::Display for UnlistedViolations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Exactly(count) => write!(f, "\n… and {count} more"),
            Self::Unknown => f.write_str("\n… and possibly more: there is too much to check all of it"),
        }
    }
}

/// Schema that cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schema cannot be used: {reason}")]
pub struct InvalidSchema {
    pub(super) reason: String,
}

impl InvalidSchema {
    /// Creates the error for a schema that another process could not compile.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }

    /// Returns the reason, as a clause.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}
