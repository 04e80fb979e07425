//! Minimum severity of log messages for a client.

use tokio::sync::watch;
use toolstead_domain::LogLevel;

/// Filters log messages by level. Clones share the level, so that `logging/setLevel` also affects running calls.
#[derive(Debug, Clone)]
pub(super) enum LogThreshold {
    /// For one request (MCP 2026-07-28): this level and above, or none.
    Request(Option<LogLevel>),
    /// For a session, in which it may change; `None` until the client sets it.
    Session(watch::Sender<Option<LogLevel>>),
}

/// Default level of a session (MCP 2025-11-25, server/utilities/logging, leaves it to the server). It applies to the
/// logs of calls; other logs are only sent to clients that set a level.
pub(super) const SESSION_LEVEL: LogLevel = LogLevel::Info;

impl LogThreshold {
    /// Creates the threshold of a new session.
    pub(super) fn session() -> Self {
        Self::Session(watch::Sender::new(None))
    }

    /// Returns `true` if a message of this level passes.
    pub(super) fn passes(&self, level: LogLevel) -> bool {
        match self {
            Self::Request(least) => least.is_some_and(|least| level >= least),
            Self::Session(chosen) => level >= chosen.borrow().unwrap_or(SESSION_LEVEL),
        }
    }

    /// Sets the level of a session. Has no effect on the threshold of a request.
    pub(super) fn set(&self, level: LogLevel) {
        if let Self::Session(chosen) = self {
            chosen.send_replace(Some(level));
        }
    }

    /// Returns the level that the client of a session set, and its changes.
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
