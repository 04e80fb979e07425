//! A launch: what is asked for, how it can fail, and how it ends.

use crate::sandbox::control_group::OutOfMemory;
use std::{fmt, io, path::PathBuf, time::Duration};
use toolstead_domain::{descriptor_limit::DescriptorLimit, sandbox_policy::SandboxPolicy};

/// What to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchSpec {
    /// A path (relative ones from `working_dir`), or a name that is looked for in the `PATH` of the child's
    /// environment.
    pub program: String,
    /// Its arguments, without the program's name.
    pub args: Vec<String>,
    /// The folder that it starts in; absolute.
    pub working_dir: PathBuf,
    /// What its standard input is.
    pub input: Input,
    /// Its environment, which is all of it, and what it may touch.
    pub policy: SandboxPolicy,
}

/// The standard input of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// A pipe, at [`Child::stdin`](super::launcher::Child::stdin).
    Pipe,
    /// At its end from the beginning, so that nothing waits for somebody to type.
    Nothing,
    /// A terminal of this size, which is its output, too: the child's `stdin` types, its `stdout` reads the screen, and
    /// its `stderr` is at its end. Reading ends with the error `EIO` when nobody holds the terminal any more. For confined
    /// children alone.
    Terminal {
        /// Lines.
        rows: u16,
        /// Characters of a line.
        columns: u16,
    },
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// By the kernel, with all that it had started.
    OutOfMemory(OutOfMemory),
    /// By the time that its limits give it, with all that it had started.
    TimedOut(Duration),
}

/// A signal that may be sent to a child and its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ChildSignal {
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

/// A child that could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// No such program.
    #[error("the program `{program}` was not found; it was looked for in {places}")]
    NotFound {
        /// As it was named.
        program: String,
        /// The folders, or the one path.
        places: String,
    },
    /// Its folder is not there.
    #[error("the working folder `{}` does not exist", .0.display())]
    NoWorkingFolder(PathBuf),
    /// The system refused.
    #[error("could not start `{}`", program.display())]
    Start {
        /// The program that was found.
        program: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A step of the confinement failed. It is never tried again with less.
    #[error("the program was not started, because it could not be confined: {0}")]
    Confine(String),
    /// The same, because something that was to be closed was moved or removed after it was looked up. Another look at
    /// the disk may help.
    #[error("the program was not started, because it could not be confined: {0}")]
    Moved(String),
    /// No program can be confined on this machine.
    #[error("no program is run here, because it could not be confined: {missing}; {remedy}")]
    Unconfinable {
        /// What is missing.
        missing: String,
        /// What helps, as in "allow user namespaces".
        remedy: String,
    },
    /// File descriptors ran out.
    #[error("the program was not started: {0}")]
    OutOfDescriptors(DescriptorLimit),
    /// It was to be offered tools, and what would lead to them cannot be there.
    #[error("no tools can be offered to a program here: {0}")]
    NoTools(&'static str),
    /// The launching thread is gone.
    #[error("no child can be started any more")]
    Stopped,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "it ended with code {code}"),
            Self::Signal(signal) => write!(f, "it was ended by signal {signal}"),
            Self::OutOfMemory(whose) => write!(f, "it was ended because {whose}"),
            Self::TimedOut(time) => write!(f, "it was ended because its time was over, {} seconds", time.as_secs_f64()),
        }
    }
}
