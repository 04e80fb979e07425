//! From which severity on a client wants to hear.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};
use toolstead_domain::client_profile::LogLevel;

/// Lets log messages pass, or not. Clones share the level: `logging/setLevel` counts for calls that run already.
#[derive(Debug, Clone)]
pub(super) enum LogThreshold {
    /// For one request (MCP 2026-07-28): this level and above, or nothing.
    Request(Option<LogLevel>),
    /// For a session, where it may change.
    Session(Arc<AtomicU8>),
}

/// The level of a session whose client has not said anything (MCP 2025-11-25, server/utilities/logging, leaves it to
/// the server).
pub(super) const SESSION_LEVEL: LogLevel = LogLevel::Info;

impl LogThreshold {
    /// For a new session.
    pub(super) fn session() -> Self {
        Self::Session(Arc::new(AtomicU8::new(SESSION_LEVEL as u8)))
    }

    /// Whether a message of this level passes.
    pub(super) fn passes(&self, level: LogLevel) -> bool {
        match self {
            Self::Request(least) => least.is_some_and(|least| level >= least),
            // A single number that guards nothing else.
            Self::Session(least) => level as u8 >= least.load(Ordering::Relaxed),
        }
    }

    /// Changes the level of a session.
    pub(super) fn set(&self, level: LogLevel) {
        if let Self::Session(least) = self {
            least.store(level as u8, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_below_the_level_do_not_pass() {
        let session = LogThreshold::session();
        let running = session.clone();
        assert!(!running.passes(LogLevel::Debug) && running.passes(LogLevel::Info));
        session.set(LogLevel::Error);
        assert!(!running.passes(LogLevel::Warning) && running.passes(LogLevel::Emergency));
        assert!(!LogThreshold::Request(None).passes(LogLevel::Emergency));
        assert!(LogThreshold::Request(Some(LogLevel::Notice)).passes(LogLevel::Notice));
    }
}
