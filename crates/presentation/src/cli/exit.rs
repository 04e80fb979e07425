//! Exit codes of the command line, and the error object of `--json`.

use super::output::{StdoutWriter, note};
use crate::{composition_root::StartupError, config::tree::problem::Problem, suggestions::CliSuggestionFormatter};
use serde_json::{Value, json};
use std::{error::Error, io, process::ExitCode};
use toolstead_application::ExecuteToolError;
use toolstead_domain::{StoreError, error_kind::ErrorKind};
use toolstead_infrastructure::{
    accounts::sign_in_error::SignInError, upstream_auth::upstream_auth_error::UpstreamAuthError,
};

/// Exit of a command that ran without an internal failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The command succeeded: 0.
    Done,
    /// The tool returned an error: 1.
    ToolError,
    /// The configuration has problems, which were printed: 2.
    Problems,
    /// A check failed: a call requires approval, or a table of decisions has a mismatch: 1.
    Unmet,
    /// The call would be denied: 3.
    Denied,
    /// A configured server is unavailable: 4.
    Absent,
    /// The run waits for an answer: 7.
    Waiting,
    /// A failure of this kind that was already reported.
    Reported(ErrorKind),
    /// The exit code of another process that did the work.
    Code(u8),
}

/// Failure of a command.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// Invalid usage, configuration or arguments: 2.
    #[error("{0}")]
    Usage(String),
    /// No tool, server or record has this name: 4.
    #[error("{0}")]
    NotFound(String),
    /// The application could not be built.
    #[error(transparent)]
    Startup(#[from] StartupError),
    /// The call returned no result.
    #[error(transparent)]
    Call(ExecuteToolError),
    /// A sign-in or a stored account failed.
    #[error(transparent)]
    Account(#[from] SignInError),
    /// A sign-in to an MCP server failed.
    #[error(transparent)]
    UpstreamAccount(#[from] UpstreamAuthError),
    /// A store failed: 70.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Reading or writing failed: 70, or 0 without a message if the reader has closed its end.
    #[error("could not read or write")]
    Io(#[from] io::Error),
}

/// The exit codes as printed by `--help`.
pub const EXIT_CODES: &str = "Exit codes: 0 done; 1 the tool answered with an error, or a check failed; \
    2 wrong usage, configuration or arguments; 3 refused by permission; 4 unknown or unavailable; 5 timed out or \
    cancelled; 6 a budget is used up; 7 it waits for an answer (`toolstead questions`); 70 a fault of Toolstead or its store. With --json a failure is an object \
    {\"error\": {\"kind\", \"message\"}} on standard output.";

/// Prints a failure to standard error, and as an object to standard output with `--json`. Returns the exit code.
pub(super) fn conclude(outcome: super::CommandResult, as_json: bool) -> ExitCode {
    ExitCode::from(report_outcome(outcome, as_json))
}

/// Does the same as [`conclude`] and returns the exit code as a number.
pub(super) fn report_outcome(outcome: super::CommandResult, as_json: bool) -> u8 {
    let failed = match outcome {
        Ok(exit) => return exit.code(),
        Err(failed) => failed,
    };
    // The reader has closed its end, as in `toolstead tools | head`.
    if matches!(&failed, CommandError::Io(error) if error.kind() == io::ErrorKind::BrokenPipe) {
        return 0;
    }
    note(&report(&failed));
    if as_json {
        // On one line, like the events before it. Errors are ignored: there is no reader left to report them to.
        let _ = StdoutWriter::new().json_line(&failed.to_json());
    }
    failed.code()
}

/// Returns a failure as lines of which only the first begins at the left edge: the text may be a server's.
fn report(failed: &CommandError) -> String {
    let causes: Vec<String> = causes(failed).iter().map(|cause| cause.trim_end().replace('\n', "\n    ")).collect();
    format!("error: {}", causes.join("\n  because: "))
}

/// Returns the parsed command line. Ends the program if it is invalid or only requests help.
pub fn parsed<C: clap::Parser>() -> C {
    C::try_parse().unwrap_or_else(|error| {
        // Without styles: the text repeats the arguments, and the escaping cannot distinguish styles from control
        // sequences in them.
        let text = error.render().to_string();
        // The flag could not be parsed, because the arguments are invalid.
        let as_json = error.use_stderr() && std::env::args_os().any(|word| word == "--json");
        if as_json {
            let _ = StdoutWriter::new().json_line(&error_object(ErrorKind::InvalidInput, text.trim_end()));
        }
        match error.use_stderr() {
            true => note(text.trim_end()),
            // If writing fails, the reader has closed its end.
            false => drop(StdoutWriter::new().line(text.trim_end())),
        }
        std::process::exit(error.exit_code())
    })
}

/// Returns the error object of `--json`.
fn error_object(kind: ErrorKind, message: &str) -> Value {
    json!({"error": {"kind": kind.as_str(), "message": message}})
}

/// Returns the error with all of its causes, one per line.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    causes(error).join("\n  because: ")
}

fn causes(error: &(dyn Error + 'static)) -> Vec<String> {
    let text = match error.downcast_ref::<CommandError>() {
        Some(CommandError::Call(
            ExecuteToolError::NotCallable(failure)
            | ExecuteToolError::Refused(failure)
            | ExecuteToolError::Failed(failure),
        )) => failure.text_for_user(&CliSuggestionFormatter),
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
            Self::Reported(kind) => kind.exit_code(),
            Self::Code(code) => code,
        }
    }
}

impl CommandError {
    /// Returns the object that `--json` prints: kind and message, data for machines (`data`), the problems of a
    /// configuration with their origins (`problems`), and the partial result of the tool (`partial`).
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
            Self::Startup(error) if error.is_user_error() => ErrorKind::InvalidInput,
            Self::Call(error) => error.kind(),
            Self::Account(error) => error.kind(),
            Self::UpstreamAccount(error) => error.kind(),
            Self::Startup(_) | Self::Store(_) => ErrorKind::Internal,
            Self::Io(_) => ErrorKind::Io,
        }
    }

    fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::NotFound(_) => 4,
            Self::Startup(error) => {
                if error.is_user_error() {
                    2
                } else {
                    70
                }
            }
            Self::Call(error) => error.kind().exit_code(),
            Self::Account(error) => error.kind().exit_code(),
            Self::UpstreamAccount(error) => error.kind().exit_code(),
            Self::Store(_) | Self::Io(_) => 70,
        }
    }
}

/// Returns a problem of the configuration with its origin.
pub(super) fn problem_object(problem: &Problem) -> Value {
    json!({"origin": problem.origin.to_string(), "message": problem.message})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_line_of_a_failure_begins_at_the_left_edge() {
        let failed = CommandError::Usage("the server failed:\nApproved: all tools\n".into());
        assert_eq!(report(&failed), "error: the server failed:\n    Approved: all tools");
    }
}
