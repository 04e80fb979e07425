//! Where a value of the configuration was written.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};
use toolstead_domain::permission::rule::RuleOrigin;

/// The place of a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Origin {
    /// In this file, at this line (from 1); line 0 is the file as a whole.
    File(Arc<Path>, usize),
    /// In the environment variable of this name.
    Environment(Arc<str>),
    /// In the flag of this name on the command line.
    Flag(&'static str),
    /// Nowhere: it is the default.
    Default,
}

impl Origin {
    /// The whole file.
    pub fn file(path: impl Into<Arc<Path>>) -> Self {
        Self::File(path.into(), 0)
    }

    /// The file, variable or flag, whatever the line.
    pub fn place(&self) -> String {
        match self {
            Self::File(path, _) => Self::file(path.clone()).to_string(),
            other => other.to_string(),
        }
    }

    /// The same, as rules tell it.
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
