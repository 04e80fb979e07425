//! The tool systems whose spellings are understood.

use toolstead_domain::alias::Dialect;

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
