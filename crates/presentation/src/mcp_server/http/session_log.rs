//! Log lines about the start and the end of sessions. The id is that of the session in audit records.

use crate::{mcp_server::protocol_error::quoted, telemetry::SERVER};
use toolstead_domain::{ClientProfile, Principal};

/// Reason for the end of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionEndReason {
    /// The client ended the session.
    Client,
    /// The session was idle for too long.
    Idle,
    /// A new session needed the place.
    Replaced,
}

impl SessionEndReason {
    /// Logs the end of a session.
    pub(super) fn log(self, session: &str, principal: &Principal) {
        let reason = match self {
            Self::Client => "ended by its client",
            Self::Idle => "idle",
            Self::Replaced => "replaced by a new session, because `limits.sessions` are open",
        };
        tracing::info!(target: SERVER, session, principal = principal.id(), reason, "session ended");
    }
}

/// Logs the start of a session up to MCP 2025-11-25.
pub(super) fn log_start(session: &str, principal: &Principal, profile: &ClientProfile) {
    log_start_of(session, principal, &profile.client);
}

/// Logs the start of a session of the client with this name.
pub(super) fn log_start_of(session: &str, principal: &Principal, client: &str) {
    tracing::info!(target: SERVER, session, principal = principal.id(), client = quoted(client), "session started");
}
