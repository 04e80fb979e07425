//! Origin of a configuration value.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};
use toolstead_domain::permission::rule::RuleOrigin;

/// Origin of a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A line of a file (from 1); line 0 stands for the whole file.
    File(Arc<Path>, usize),
    /// The environment variable with this name.
    Environment(Arc<str>),
    /// The command-line flag with this name.
    Flag(&'static str),
    /// No origin: the value is the default.
    Default,
}

impl Origin {
    /// Returns the origin for a whole file.
    pub fn file(path: impl Into<Arc<Path>>) -> Self {
        Self::File(path.into(), 0)
    }

    /// Returns the file, variable or flag without the line.
    pub fn place(&self) -> String {
        match self {
            Self::File(path, _) => Self::file(path.clone()).to_string(),
            other => other.to_string(),
        }
    }

    /// Returns the same origin in the form that permission rules use.
    pub fn to_rule_origin(&self) -> RuleOrigin {
        match self {
            Self::File(path, line) => RuleOrigin::File(PathBuf::from(&**path), *line),
            Self::Environment(name) => RuleOrigin::Environment(name.to_string()),
            Self::Flag(_) => RuleOrigin::CommandLine,
            Self::Default => RuleOrigin::Program,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, 0) => write!(f, "{}", path.display()),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
            Self::Default => f.write_str("default"),
        }
    }
}
