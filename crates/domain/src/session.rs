//! The connection or conversation of a client, and its states.

use crate::{error_kind::ErrorKind, principal::Principal};
use std::sync::Arc;

/// Session of a client. Clients up to MCP 2025-11-25 open one with `initialize`; later clients are served request by
/// request, in a session that is ready from the start.
///
/// ```
/// use toolstead_domain::{principal::Principal, session::Session};
///
/// let mut session = Session::created("s1", Principal::local());
/// assert!(session.check_ready().is_err());
/// session.initialize().unwrap();
/// assert!(session.check_ready().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Id of the session. Unguessable if it is sent over HTTP.
    pub id: Arc<str>,
    /// Owner of the session.
    pub principal: Principal,
    state: SessionState,
}

/// States of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// Opened; `initialize` has not arrived.
    Created,
    /// `initialize` was answered; `notifications/initialized` has not arrived.
    Initializing,
    /// Calls are served.
    Ready,
    /// Running calls complete, new ones are refused.
    Closing,
    /// Ended.
    Closed,
}

impl Session {
    /// Creates a session that waits for `initialize`.
    pub fn created(id: impl Into<Arc<str>>, principal: Principal) -> Self {
        Self { id: id.into(), principal, state: SessionState::Created }
    }

    /// Creates a session that serves calls at once: for the CLI, and for clients without a handshake.
    pub fn ready(id: impl Into<Arc<str>>, principal: Principal) -> Self {
        Self { id: id.into(), principal, state: SessionState::Ready }
    }

    /// Returns the state.
    pub fn state(&self) -> SessionState {
        self.state
    }

    /// Records that `initialize` arrived.
    ///
    /// # Errors
    /// [`SessionStateError::AlreadyInitialized`] the second time; [`SessionStateError::NotReady`] once it closes.
    pub fn initialize(&mut self) -> Result<(), SessionStateError> {
        match self.state {
            SessionState::Created => self.state = SessionState::Initializing,
            SessionState::Initializing | SessionState::Ready => return Err(SessionStateError::AlreadyInitialized),
            SessionState::Closing | SessionState::Closed => return Err(SessionStateError::NotReady(self.state)),
        }
        Ok(())
    }

    /// Records that `notifications/initialized` arrived. Repeating it is harmless.
    ///
    /// # Errors
    /// [`SessionStateError::NotReady`] before `initialize` and once it closes.
    pub fn initialized(&mut self) -> Result<(), SessionStateError> {
        match self.state {
            SessionState::Initializing | SessionState::Ready => self.state = SessionState::Ready,
            SessionState::Created | SessionState::Closing | SessionState::Closed => {
                return Err(SessionStateError::NotReady(self.state));
            }
        }
        Ok(())
    }

    /// Checks that calls are served. Calls right after `initialize`, before the notification arrives, are served as
    /// well: the two may be sent over different connections.
    ///
    /// # Errors
    /// [`SessionStateError::NotReady`] with the state that prevents it.
    pub fn check_ready(&self) -> Result<(), SessionStateError> {
        match self.state {
            SessionState::Initializing | SessionState::Ready => Ok(()),
            SessionState::Created | SessionState::Closing | SessionState::Closed => {
                Err(SessionStateError::NotReady(self.state))
            }
        }
    }

    /// Begins to close the session: it accepts no new calls.
    pub fn close(&mut self) {
        if self.state != SessionState::Closed {
            self.state = SessionState::Closing;
        }
    }

    /// Sets the state to [`SessionState::Closed`], because the last running call has ended.
    pub fn closed(&mut self) {
        self.state = SessionState::Closed;
    }
}

/// Message that is not valid in the state of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionStateError {
    /// Calls are not served in this state.
    #[error("{}", why_not_ready(*.0))]
    NotReady(SessionState),
    /// `initialize` arrived twice.
    #[error("the session is initialized already")]
    AlreadyInitialized,
}

fn why_not_ready(state: SessionState) -> &'static str {
    match state {
        SessionState::Created => "the session is not initialized; send `initialize` first",
        SessionState::Initializing | SessionState::Ready => "the session does not accept this request now",
        SessionState::Closing => "the session is closing and accepts no new requests",
        SessionState::Closed => "the session is closed; send `initialize` to open another one",
    }
}

impl SessionStateError {
    /// Returns the kind, for the wire.
    pub fn kind(self) -> ErrorKind {
        match self {
            Self::NotReady(_) => ErrorKind::SessionNotReady,
            Self::AlreadyInitialized => ErrorKind::AlreadyInitialized,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_goes_from_created_to_closed() {
        let mut session = Session::created("s", Principal::local());
        assert_eq!(session.check_ready(), Err(SessionStateError::NotReady(SessionState::Created)));
        session.initialize().unwrap();
        assert_eq!(session.initialize(), Err(SessionStateError::AlreadyInitialized));
        assert_eq!(session.check_ready(), Ok(()));
        session.initialized().unwrap();
        session.close();
        assert_eq!(session.check_ready(), Err(SessionStateError::NotReady(SessionState::Closing)));
        session.closed();
        assert_eq!(
            session.check_ready().unwrap_err().to_string(),
            "the session is closed; send `initialize` to open another one"
        );
        session.close();
        assert_eq!(session.state(), SessionState::Closed);
    }
}
