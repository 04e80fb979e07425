//! The port for unconfined programs of the user, such as a command that prints the key of a model.
//!
//! With the feature `sandbox` the adapter is `sandbox::user_programs::UserProgramRunner`, which limits the time and the
//! output of each run and ends all processes that it started.

use async_trait::async_trait;
use std::{fmt, time::Duration};

/// Runs programs of the user.
#[async_trait]
pub trait UserProgramPort: fmt::Debug + Send + Sync {
    /// Runs a program without input and returns its standard output as text. No shell is involved. Dropping the future
    /// ends the program and all processes that it started.
    ///
    /// # Errors
    /// [`UserProgramError`]. It contains no output of the program.
    async fn output(&self, program: &str, arguments: &[String], timeout: Duration) -> Result<String, UserProgramError>;
}

/// Failure of a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UserProgramError {
    /// The program did not start, for this reason.
    #[error("could not start it: {0}")]
    NotStarted(String),
    /// The program ended with an exit code other than 0, or by a signal.
    #[error("{0}; run it by hand to see why")]
    Failed(String),
    /// The program ran longer than its timeout, and was ended.
    #[error("it printed nothing within {} seconds; run it by hand to see why", .0.as_secs())]
    TimedOut(Duration),
    /// The program printed more than the maximum.
    #[error("it printed too much")]
    TooMuchOutput,
}
