//! Specification, errors and outcome of a launch.

use crate::sandbox::control_group::OutOfMemoryCause;
use std::{fmt, io, path::PathBuf, time::Duration};
use toolstead_domain::{FileDescriptorExhaustion, SandboxPolicy};

/// Program to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchSpec {
    /// Path of the program, where a relative one starts in `working_dir`, or a name that is searched on the `PATH` of
    /// the child's environment.
    pub program: String,
    /// Arguments, without the name of the program.
    pub args: Vec<String>,
    /// Absolute path of the folder in which the program starts.
    pub working_dir: PathBuf,
    /// Standard input.
    pub input: ChildInput,
    /// Complete environment of the program, and its permissions.
    pub policy: SandboxPolicy,
}

/// Standard input of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildInput {
    /// A pipe. The caller writes to [`Child::stdin`](super::launcher::Child::stdin).
    Pipe,
    /// At its end from the beginning, so that the child does not wait for input.
    Nothing,
    /// A terminal of this size, which is also the output: writing to the child's `stdin` types, reading its `stdout`
    /// reads the screen, and its `stderr` is at its end. Reading fails with `EIO` once no process has the terminal
    /// open. Only for confined children.
    Terminal {
        /// Number of lines.
        rows: u16,
        /// Number of characters in a line.
        columns: u16,
    },
}

/// Outcome of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// Exit with this code.
    Code(i32),
    /// End by this signal.
    Signal(i32),
    /// Killed by the kernel with all processes that it started.
    OutOfMemory(OutOfMemoryCause),
    /// Killed with all processes that it started, because it exceeded this time limit.
    TimedOut(Duration),
}

/// Signal that can be sent to a child and its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ProcessSignal {
    /// `SIGHUP`.
    Hangup,
    /// `SIGINT`, as Ctrl-C sends it.
    Interrupt,
    /// `SIGQUIT`.
    Quit,
    /// `SIGTERM`.
    Terminate,
    /// `SIGKILL`.
    Kill,
    /// `SIGUSR1`.
    User1,
    /// `SIGUSR2`.
    User2,
}

/// Reason why a child was not started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// There is no such program.
    #[error("the program `{program}` was not found; it was looked for in {places}")]
    NotFound {
        /// Name as given.
        program: String,
        /// Searched folders, or the single path.
        places: String,
    },
    /// The working folder does not exist.
    #[error("the working folder `{}` does not exist", .0.display())]
    NoWorkingFolder(PathBuf),
    /// The system refused to start the program.
    #[error("could not start `{}`", program.display())]
    Start {
        /// Path of the program.
        program: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
    /// A step of the confinement failed. The launch is never repeated with weaker confinement.
    #[error("the program was not started, because this step of its confinement failed: {0}")]
    Confine(String),
    /// A step of the confinement failed, because a path that should have been protected was moved or removed after it
    /// was resolved. Another attempt may succeed.
    #[error("the program was not started, because this step of its confinement failed: {0}")]
    Moved(String),
    /// No program can be confined on this machine.
    #[error("no program is started, because it could not be confined: {missing}; {remedy}")]
    Unconfinable {
        /// Missing requirement.
        missing: String,
        /// Suggestion, such as "allow user namespaces".
        remedy: String,
    },
    /// File descriptors are exhausted.
    #[error("the program was not started: {0}")]
    OutOfDescriptors(FileDescriptorExhaustion),
    /// Tools should have been offered to the program, but the path to them is unavailable.
    #[error("tools cannot be offered to this program: {0}")]
    NoTools(&'static str),
    /// The launching thread has ended.
    #[error("the launcher has stopped, so no child can be started")]
    Stopped,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "it ended with code {code}"),
            Self::Signal(signal) => write!(f, "it was ended by signal {signal}"),
            Self::OutOfMemory(whose) => write!(f, "it was ended because {whose}"),
            Self::TimedOut(time) => write!(f, "it was ended after its time limit of {} seconds", time.as_secs_f64()),
        }
    }
}
