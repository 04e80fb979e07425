//! How a command ends: the exit codes, in one table, and the error object of `--json`.

use super::output::{Output, note};
use crate::{composition_root::StartupError, config::problem::Problem, suggestions::CommandLineSuggestions};
use serde_json::{Value, json};
use std::{error::Error, io, process::ExitCode};
use toolstead_application::execute_tool::ExecuteToolError;
use toolstead_domain::{error_kind::ErrorKind, ports::tool_repository::StoreError};
use toolstead_infrastructure::accounts::sign_in_error::SignInError;

/// How a command ended, when it ended as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done: 0.
    Done,
    /// The tool answered with an error: 1.
    ToolError,
    /// The configuration has problems, which were printed: 2.
    Problems,
    /// What was asked for is not so: a call is not allowed without asking, or a table does not come out as expected: 1.
    Unmet,
    /// The call would be denied: 3.
    Denied,
    /// A server that is configured is not there: 4.
    Absent,
    /// It waits for somebody to answer: 7.
    Waiting,
    /// It ended as a failure of this kind does, which was told already.
    Told(ErrorKind),
    /// As another process says that did the work.
    Of(u8),
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// Wrong usage, configuration or arguments: 2.
    #[error("{0}")]
    Usage(String),
    /// No tool, server or row of that name: 4.
    #[error("{0}")]
    NotFound(String),
    /// The runtime could not be put together.
    #[error(transparent)]
    Startup(#[from] StartupError),
    /// The call gave no result.
    #[error(transparent)]
    Call(ExecuteToolError),
    /// A sign-in, or what is kept of one.
    #[error(transparent)]
    Account(#[from] SignInError),
    /// The store failed: 70.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Reading or writing failed: 70, or a quiet 0 where nobody reads on.
    #[error("could not read or write")]
    Io(#[from] io::Error),
}

/// The exit codes as `--help` tells them.
pub const EXIT_CODES: &str = "Exit codes: 0 done; 1 the tool answered with an error, or what was asked for is not so; \
    2 wrong usage, configuration or arguments; 3 refused by permission; 4 unknown or unavailable; 5 timed out or \
    cancelled; 6 a budget is used up; 7 it waits for an answer (`toolstead questions`); 70 a fault of Toolstead or its store. With --json a failure is an object \
    {\"error\": {\"kind\", \"message\"}} on standard output.";

/// Tells a failure on standard error, and with `--json` as an object on standard output, and turns the outcome into the
/// exit code.
pub(super) fn conclude(outcome: super::Outcome, as_json: bool) -> ExitCode {
    ExitCode::from(told(outcome, as_json))
}

/// The same as a number.
pub(super) fn told(outcome: super::Outcome, as_json: bool) -> u8 {
    let failed = match outcome {
        Ok(exit) => return exit.code(),
        Err(failed) => failed,
    };
    // Whoever reads our output has seen enough, as in `toolstead tools | head`.
    if matches!(&failed, Failed::Io(error) if error.kind() == io::ErrorKind::BrokenPipe) {
        return 0;
    }
    note(&report(&failed));
    if as_json {
        // On one line, as events before it are. Nobody is left to hear that nobody reads.
        let _ = Output::new().json_line(&failed.to_json());
    }
    failed.code()
}

/// Returns a failure as lines of which only the first begins at the left edge: the text may be a server's.
fn report(failed: &Failed) -> String {
    let causes: Vec<String> = causes(failed).iter().map(|cause| cause.trim_end().replace('\n', "\n    ")).collect();
    format!("error: {}", causes.join("\n  because: "))
}

/// Returns the parsed command line. Ends the program if it is invalid or only requests help.
pub fn parsed<C: clap::Parser>() -> C {
    C::try_parse().unwrap_or_else(|error| {
        // Without styles: the text repeats what was typed, and escaping tells no style from a sequence in it.
        let text = error.render().to_string();
        // It could not be read out of the words: they are wrong.
        let as_json = error.use_stderr() && std::env::args_os().any(|word| word == "--json");
        if as_json {
            let _ = Output::new().json_line(&error_object(ErrorKind::InvalidInput, text.trim_end()));
        }
        match error.use_stderr() {
            true => note(text.trim_end()),
            // A reader that has closed its end has seen enough.
            false => drop(Output::new().line(text.trim_end())),
        }
        std::process::exit(error.exit_code())
    })
}

/// What `--json` prints of a failure.
fn error_object(kind: ErrorKind, message: &str) -> Value {
    json!({"error": {"kind": kind.as_str(), "message": message}})
}

/// The error with all its causes, each on a line of its own.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    causes(error).join("\n  because: ")
}

fn causes(error: &(dyn Error + 'static)) -> Vec<String> {
    let text = match error.downcast_ref::<Failed>() {
        Some(Failed::Call(
            ExecuteToolError::NotCallable(failure)
            | ExecuteToolError::Refused(failure)
            | ExecuteToolError::Failed(failure),
        )) => failure.text_for_user(&CommandLineSuggestions),
        _ => error.to_string(),
    };
    let mut causes = vec![text];
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if causes.iter().all(|known| !known.contains(&text)) {
            causes.push(text);
        }
        source = cause.source();
    }
    causes
}

impl Exit {
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::ToolError | Self::Unmet => 1,
            Self::Problems => 2,
            Self::Denied => 3,
            Self::Absent => 4,
            Self::Waiting => 7,
            Self::Told(kind) => kind.exit_code(),
            Self::Of(code) => code,
        }
    }
}

impl Failed {
    /// The object that `--json` prints: kind and message, what the failure tells machines (`data`), each problem of a
    /// configuration with its place (`problems`), and what there was before it failed (`partial`, a tool's result).
    fn to_json(&self) -> Value {
        let mut object = error_object(self.kind(), &chain(self));
        match self {
            Self::Call(
                ExecuteToolError::NotCallable(failure)
                | ExecuteToolError::Refused(failure)
                | ExecuteToolError::Failed(failure),
            ) => {
                if !failure.data.is_null() {
                    object["error"]["data"] = failure.data.clone();
                }
                if let Some(partial) = &failure.partial {
                    object["error"]["partial"] = Value::Object(partial.as_object().clone());
                }
            }
            Self::Startup(StartupError::Config(error)) => {
                object["error"]["problems"] = error.problems.iter().map(problem_object).collect();
            }
            _ => {}
        }
        object
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::Usage(_) => ErrorKind::InvalidInput,
            Self::NotFound(_) => ErrorKind::NotFound,
            Self::Startup(error) if error.is_users() => ErrorKind::InvalidInput,
            Self::Call(error) => error.kind(),
            Self::Account(error) => error.kind(),
            Self::Startup(_) | Self::Store(_) => ErrorKind::Internal,
            Self::Io(_) => ErrorKind::Io,
        }
    }

    fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::NotFound(_) => 4,
            Self::Startup(error) => {
                if error.is_users() {
                    2
                } else {
                    70
                }
            }
            Self::Call(error) => error.kind().exit_code(),
            Self::Account(error) => error.kind().exit_code(),
            Self::Store(_) | Self::Io(_) => 70,
        }
    }
}

/// A problem of the configuration with its place.
pub(super) fn problem_object(problem: &Problem) -> Value {
    json!({"origin": problem.origin.to_string(), "message": problem.message})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_line_of_a_failure_begins_at_the_left_edge() {
        let failed = Failed::Usage("the server failed:\nApproved: all tools\n".into());
        assert_eq!(report(&failed), "error: the server failed:\n    Approved: all tools");
    }
}
