//! Problems of a configuration, with their origins.

use crate::config::tree::origin::Origin;
use std::fmt;

/// An error or a remark, with its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Origin of the problem.
    pub origin: Origin,
    /// Description, as a clause in lower case without a full stop.
    pub message: String,
}

impl Problem {
    /// Creates a problem with this origin.
    pub fn new(origin: Origin, message: impl Into<String>) -> Self {
        Self { origin, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.message)
    }
}

/// Error of loading a configuration: all of its problems, in the order of the files. Never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// The problems.
    pub problems: Vec<Problem>,
}

impl ConfigError {
    /// Returns `Ok` if there is no problem.
    ///
    /// # Errors
    /// The error with all problems.
    pub fn unless_none(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self { problems }) }
    }
}

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> Self {
        Self { problems: vec![problem] }
    }
}

impl fmt::Display for ConfigError {
    /// Writes one problem per line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}
