//! The tool systems whose spellings are understood.

use toolstead_domain::alias::Dialect;

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
