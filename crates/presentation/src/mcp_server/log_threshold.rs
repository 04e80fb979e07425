//! From which severity on a client wants to hear.

use tokio::sync::watch;
use toolstead_domain::client_profile::LogLevel;

/// Lets log messages pass, or not. Clones share the level: `logging/setLevel` counts for calls that run already.
#[derive(Debug, Clone)]
pub(super) enum LogThreshold {
    /// For one request (MCP 2026-07-28): this level and above, or nothing.
    Request(Option<LogLevel>),
    /// For a session, where it may change; `None` until the client chose one.
    Session(watch::Sender<Option<LogLevel>>),
}

/// The level of a session whose client has not said anything (MCP 2025-11-25, server/utilities/logging, leaves it to
/// the server). It counts for calls; what belongs to none is told to clients that chose a level.
pub(super) const SESSION_LEVEL: LogLevel = LogLevel::Info;

impl LogThreshold {
    /// For a new session.
    pub(super) fn session() -> Self {
        Self::Session(watch::Sender::new(None))
    }

    /// Whether a message of this level passes.
    pub(super) fn passes(&self, level: LogLevel) -> bool {
        match self {
            Self::Request(least) => least.is_some_and(|least| level >= least),
            Self::Session(chosen) => level >= chosen.borrow().unwrap_or(SESSION_LEVEL),
        }
    }

    /// Changes the level of a session.
    pub(super) fn set(&self, level: LogLevel) {
        if let Self::Session(chosen) = self {
            chosen.send_replace(Some(level));
        }
    }

    /// The level that the client of a session chose, as it changes.
    pub(super) fn chosen(&self) -> watch::Receiver<Option<LogLevel>> {
        match self {
            Self::Request(least) => watch::Sender::new(*least).subscribe(),
            Self::Session(chosen) => chosen.subscribe(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_below_the_level_do_not_pass() {
        let session = LogThreshold::session();
        let (running, chosen) = (session.clone(), session.chosen());
        assert!(!running.passes(LogLevel::Debug) && running.passes(LogLevel::Info));
        assert_eq!(*chosen.borrow(), None);
        session.set(LogLevel::Error);
        assert!(!running.passes(LogLevel::Warning) && running.passes(LogLevel::Emergency));
        assert_eq!(*chosen.borrow(), Some(LogLevel::Error));
        assert!(!LogThreshold::Request(None).passes(LogLevel::Emergency));
        assert!(LogThreshold::Request(Some(LogLevel::Notice)).passes(LogLevel::Notice));
    }
}
