//! The origin of a permission rule.

use std::{fmt, path::PathBuf};

/// Origin of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleOrigin {
    /// Configuration file, with the line (from 1).
    File(PathBuf, usize),
    /// Command line.
    CommandLine,
    /// Environment variable with this name.
    Environment(String),
    /// Embedding application, or Toolstead itself.
    Program,
    /// Approval by the user, until the session ends.
    Session,
}

impl fmt::Display for RuleOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Most paths are valid text, and are formatted for every call.
            Self::File(path, line) => match path.to_str() {
                Some(path) => write!(f, "{path}:{line}"),
                None => write!(f, "{}:{line}", path.display()),
            },
            Self::CommandLine => f.write_str("the command line"),
            Self::Environment(name) => write!(f, "the environment variable {name}"),
            Self::Program => f.write_str("the program"),
            Self::Session => f.write_str("the approvals of this session"),
        }
    }
}
