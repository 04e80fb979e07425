//! How a command ends: the exit codes, in one table.

use crate::composition_root::StartupError;
use std::{error::Error, io, process::ExitCode};
use toolstead_application::execute_tool::ExecuteToolError;
use toolstead_domain::{error_kind::ErrorKind, ports::tool_repository::StoreError};

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
    /// The store failed: 70.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Reading or writing failed: 70, or a quiet 0 where nobody reads on.
    #[error("could not read or write")]
    Io(#[from] io::Error),
}

/// Tells a failure on standard error and turns the outcome into the exit code.
pub(super) fn conclude(outcome: super::Outcome) -> ExitCode {
    let failed = match outcome {
        Ok(exit) => return ExitCode::from(exit.code()),
        Err(failed) => failed,
    };
    // Whoever reads our output has seen enough, as in `toolstead tools | head`.
    if matches!(&failed, Failed::Io(error) if error.kind() == io::ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    super::output::note(&format!("error: {}", chain(&failed)));
    ExitCode::from(failed.code())
}

/// The error with all its causes, on one line each.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = match error.downcast_ref::<Failed>() {
        Some(Failed::Call(
            ExecuteToolError::NotCallable(failure)
            | ExecuteToolError::Refused(failure)
            | ExecuteToolError::Failed(failure),
        )) => failure.text(),
        _ => error.to_string(),
    };
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}\n  because: {said}");
        }
        source = cause.source();
    }
    text
}

impl Exit {
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::ToolError | Self::Unmet => 1,
            Self::Problems => 2,
            Self::Denied => 3,
            Self::Of(code) => code,
        }
    }
}

impl Failed {
    pub(super) fn code(&self) -> u8 {
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
            Self::Call(error) => kind_code(error.kind()),
            Self::Store(_) | Self::Io(_) => 70,
        }
    }
}

fn kind_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::InvalidInput => 2,
        ErrorKind::PermissionDenied | ErrorKind::ApprovalTimeout => 3,
        ErrorKind::NotFound | ErrorKind::Disabled | ErrorKind::Unavailable => 4,
        ErrorKind::Timeout | ErrorKind::Cancelled => 5,
        ErrorKind::Internal => 70,
        ErrorKind::ExecutionFailed
        | ErrorKind::Io
        | ErrorKind::StaleFile
        | ErrorKind::NotRead
        | ErrorKind::AmbiguousMatch
        | ErrorKind::NoMatch
        | ErrorKind::TooLarge
        | ErrorKind::UnsupportedType
        | ErrorKind::RateLimited
        | ErrorKind::AuthRequired
        | ErrorKind::UpstreamHttp
        | ErrorKind::UpstreamProtocol
        | ErrorKind::BudgetExhausted
        | ErrorKind::SessionNotReady
        | ErrorKind::AlreadyInitialized
        | ErrorKind::UnsupportedVersion
        | ErrorKind::MissingCapability => 1,
    }
}
