//! The place of a permission rule.

use std::{fmt, path::PathBuf};

/// The place of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleOrigin {
    /// In a configuration file, at this line (from 1).
    File(PathBuf, usize),
    /// On the command line.
    CommandLine,
    /// In the environment variable.
    Environment(String),
    /// In the program that embeds Toolstead, or in Toolstead itself.
    Program,
    /// Approved by a person, for as long as the session lasts.
    Session,
}

impl fmt::Display for RuleOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Most paths are text, and are told with every call.
            Self::File(path, line) => match path.to_str() {
                Some(path) => write!(f, "{path}:{line}"),
                None => write!(f, "{}:{line}", path.display()),
            },
            Self::CommandLine => f.write_str("the command line"),
            Self::Environment(name) => write!(f, "the environment variable {name}"),
            Self::Program => f.write_str("the program"),
            Self::Session => f.write_str("what was approved in this session"),
        }
    }
}
