//! The tool systems whose spellings are understood.

use toolstead_domain::{alias::Dialect, error_kind::ErrorKind};

/// All of them.
pub const ALL: &[Dialect] = &[MICRO_X, CLAI, CLAUDE_CODE, TFO, KODELET];

/// Micro-X.
pub const MICRO_X: Dialect = Dialect("micro_x");
/// clai.
pub const CLAI: Dialect = Dialect("clai");
/// Claude Code.
pub const CLAUDE_CODE: Dialect = Dialect("claude_code");
/// TelemetryFlow.
pub const TFO: Dialect = Dialect("tfo");
/// Kodelet.
pub const KODELET: Dialect = Dialect("kodelet");

/// The dialect of that name; `None` for our own spelling, and for what is no dialect.
pub fn named(name: &str) -> Option<Dialect> {
    ALL.iter().copied().find(|dialect| dialect.0 == name)
}

/// The number by which clients of the dialect know a tool that ran and failed so; `None` where they know none. What it did
/// not find is no tool.
pub fn failure_number(dialect: Option<Dialect>, kind: ErrorKind) -> Option<i64> {
    let kind = if kind == ErrorKind::Timeout { kind } else { ErrorKind::ExecutionFailed };
    error_number(dialect, kind)
}

/// The number by which clients of the dialect know an error of the protocol; `None` where they know none.
///
/// Those of TelemetryFlow are in its specification as far as tools fail, and in its code where they do not.
pub fn error_number(dialect: Option<Dialect>, kind: ErrorKind) -> Option<i64> {
    (dialect == Some(TFO)).then_some(match kind {
        ErrorKind::NotFound => -32001,
        ErrorKind::Disabled => -32004,
        ErrorKind::Timeout => -32006,
        ErrorKind::InvalidInput => -32602,
        ErrorKind::RateLimited => -32007,
        ErrorKind::SessionNotReady => -32008,
        ErrorKind::AlreadyInitialized => -32009,
        ErrorKind::UnsupportedVersion => -32010,
        ErrorKind::Internal => -32603,
        _ => -32005,
    })
}

/// The line in which models of the dialect are told that there is no tool of that name; `None` where it is ours.
pub fn unknown_tool(dialect: Option<Dialect>, name: &str) -> Option<String> {
    let dialect = dialect?;
    let name: String = name.chars().take(LONGEST_NAME).collect();
    match dialect {
        CLAI => Some(format!("ERROR: unknown tool call: {name}")),
        MICRO_X => Some(format!("Error: unknown tool \"{name}\"")),
        _ => None,
    }
}

/// Of a name that may be anything, as much is shown.
const LONGEST_NAME: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_dialect_numbers_errors_and_its_numbers_are_those_of_its_specification() {
        for (kind, number) in [
            (ErrorKind::NotFound, -32001),
            (ErrorKind::Disabled, -32004),
            (ErrorKind::ExecutionFailed, -32005),
            (ErrorKind::InvalidInput, -32602),
            (ErrorKind::Timeout, -32006),
        ] {
            assert_eq!(error_number(Some(TFO), kind), Some(number), "{kind}");
        }
        for dialect in ALL.iter().filter(|dialect| **dialect != TFO).copied().map(Some).chain([None]) {
            assert_eq!(error_number(dialect, ErrorKind::Timeout), None, "{dialect:?}");
        }
        let of_failures = [ErrorKind::Timeout, ErrorKind::NotFound, ErrorKind::PermissionDenied];
        assert_eq!(of_failures.map(|kind| failure_number(Some(TFO), kind)), [-32006, -32005, -32005].map(Some));
    }
}
