//! Dialects: the tool systems whose names and formats are understood.

use toolstead_domain::{Dialect, error_kind::ErrorKind};

/// All known dialects.
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

/// Returns the dialect of this name. Returns `None` for Toolstead's own names, and for an unknown dialect.
pub fn named(name: &str) -> Option<Dialect> {
    ALL.iter().copied().find(|dialect| dialect.0 == name)
}

/// Returns the number that clients of the dialect expect for a tool that ran and failed in this way, or `None` if they
/// expect none. A file that the tool did not find is not reported as a missing tool.
pub fn failure_number(dialect: Option<Dialect>, kind: ErrorKind) -> Option<i64> {
    let kind = if kind == ErrorKind::Timeout { kind } else { ErrorKind::ExecutionFailed };
    error_number(dialect, kind)
}

/// Returns the number that clients of the dialect expect for a protocol error, or `None` if they expect none.
///
/// The numbers of TelemetryFlow are from its specification for failures of tools, and from its code for other errors.
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

/// Returns the text that reports an unknown tool to models of the dialect. Returns `None` for Toolstead's own names,
/// and for dialects without such a text.
pub fn unknown_tool(dialect: Option<Dialect>, name: &str) -> Option<String> {
    let dialect = dialect?;
    let name: String = name.chars().take(LONGEST_NAME).collect();
    match dialect {
        CLAI => Some(format!("ERROR: unknown tool call: {name}")),
        MICRO_X => Some(format!("Error: unknown tool \"{name}\"")),
        _ => None,
    }
}

/// Maximum number of characters of an arbitrary name in a message.
const LONGEST_NAME: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tfo_dialect_returns_error_numbers_and_uses_its_specified_codes() {
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
