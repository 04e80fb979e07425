//! The capabilities of the client of one request.

use serde_json::{Map, Value};
use std::fmt;

/// Supported revisions of MCP, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProtocolVersion {
    /// 2024-11-05.
    V20241105,
    /// 2025-03-26.
    V20250326,
    /// 2025-06-18.
    V20250618,
    /// 2025-11-25, the last with sessions and `initialize`.
    V20251125,
    /// 2026-07-28, stateless, with `server/discover`.
    V20260728,
}

/// Way in which a revision negotiates version and capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProtocolGeneration {
    /// `initialize`, then a session.
    Legacy,
    /// Version and capabilities are sent with every request.
    Modern,
}

impl ProtocolVersion {
    /// All revisions, oldest first.
    pub const ALL: &[Self] = &[Self::V20241105, Self::V20250326, Self::V20250618, Self::V20251125, Self::V20260728];
    /// The newest revision that has `initialize`.
    pub const NEWEST_LEGACY: Self = Self::V20251125;
    /// The newest revision.
    pub const NEWEST: Self = Self::V20260728;

    /// Returns the date of the revision.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V20241105 => "2024-11-05",
            Self::V20250326 => "2025-03-26",
            Self::V20250618 => "2025-06-18",
            Self::V20251125 => "2025-11-25",
            Self::V20260728 => "2026-07-28",
        }
    }

    /// Returns the revision with this date; `None` if it is not supported.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|version| version.as_str() == text)
    }

    /// Returns the generation of the revision.
    pub fn generation(self) -> ProtocolGeneration {
        if self >= Self::V20260728 { ProtocolGeneration::Modern } else { ProtocolGeneration::Legacy }
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Severity of a message, and minimum severity that a client requests (RFC 5424, MCP `LoggingLevel`), least severe
/// first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// Details for debugging.
    Debug,
    /// General information.
    Info,
    /// Normal but noteworthy.
    Notice,
    /// May become a problem.
    Warning,
    /// Something failed.
    Error,
    /// A component failed.
    Critical,
    /// The operator must act at once.
    Alert,
    /// Nothing works.
    Emergency,
}

impl LogLevel {
    /// All levels, least severe first.
    pub const ALL: &[Self] = &[
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// Returns the name of the level in MCP.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// Returns the level with this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|level| level.as_str() == text)
    }
}

/// Names of clients (`clientInfo.name`) that defer tools themselves. They search the whole list, so their lists are
/// never deferred. In this order: Claude Code, Codex, Qwen Code, the command line of Copilot, Copilot in Visual Studio
/// Code.
pub const SELF_DEFERRING_CLIENTS: &[&str] = &[
    "claude-code",
    "codex-mcp-client",
    "qwen-code-mcp-client",
    "github-copilot-developer",
    "Visual Studio Code",
    "Visual Studio Code - Insiders",
];

/// Client of one request. Clients with a handshake have the same profile for a whole session; later ones send it with
/// each request.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientProfile {
    /// Revision in use; `None` for callers without MCP (the CLI, embedding applications).
    pub protocol: Option<ProtocolVersion>,
    /// `ClientCapabilities` of MCP, as declared.
    pub capabilities: Map<String, Value>,
    /// Name and version of the client in one text, for the audit log.
    pub client: String,
    /// Minimum severity of log messages to send; `None` for no messages.
    pub log_level: Option<LogLevel>,
}

impl ClientProfile {
    /// Creates the profile of a caller that does not use MCP and answers no questions.
    pub fn without_protocol(client: &str) -> Self {
        Self { protocol: None, capabilities: Map::new(), client: client.into(), log_level: None }
    }

    /// Returns `true` if the client is one of [`SELF_DEFERRING_CLIENTS`], in any version.
    ///
    /// ```
    /// use toolstead_domain::ClientProfile;
    ///
    /// assert!(ClientProfile::without_protocol("claude-code 2.1.240").is_self_deferring());
    /// assert!(!ClientProfile::without_protocol("claude-code-proxy 1.0").is_self_deferring());
    /// ```
    pub fn is_self_deferring(&self) -> bool {
        let is_version = |rest: &str| rest.is_empty() || rest.strip_prefix(' ').is_some_and(|rest| !rest.contains(' '));
        SELF_DEFERRING_CLIENTS.iter().any(|name| self.client.strip_prefix(name).is_some_and(is_version))
    }
}
