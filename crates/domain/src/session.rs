//! One client's connection or conversation, and the states it goes through.

use crate::{error_kind::ErrorKind, principal::Principal};
use std::sync::Arc;

/// A session. Clients up to MCP 2025-11-25 open one with `initialize`; later ones are served request by request and
/// get one that is ready from the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Unguessable where it travels over HTTP.
    pub id: Arc<str>,
    /// Whose it is.
    pub principal: Principal,
    state: SessionState,
}

/// The states of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// Opened, `initialize` has not come.
    Created,
    /// `initialize` was answered, `notifications/initialized` has not come.
    Initializing,
    /// Calls are served.
    Ready,
    /// Calls in flight end, new ones are refused.
    Closing,
    /// Over.
    Closed,
}

impl Session {
    /// A session that waits for `initialize`.
    pub fn created(id: impl Into<Arc<str>>, principal: Principal) -> Self {
        Self { id: id.into(), principal, state: SessionState::Created }
    }

    /// A session that serves calls at once: CLI, and clients without a handshake.
    pub fn ready(id: impl Into<Arc<str>>, principal: Principal) -> Self {
        Self { id: id.into(), principal, state: SessionState::Ready }
    }

    /// Its state.
    pub fn state(&self) -> SessionState {
        self.state
    }

    /// `initialize` came.
    ///
    /// # Errors
    /// [`SessionError::AlreadyInitialized`] the second time; [`SessionError::NotReady`] once it closes.
    pub fn initialize(&mut self) -> Result<(), SessionError> {
        match self.state {
            SessionState::Created => self.state = SessionState::Initializing,
            SessionState::Initializing | SessionState::Ready => return Err(SessionError::AlreadyInitialized),
            SessionState::Closing | SessionState::Closed => return Err(SessionError::NotReady(self.state)),
        }
        Ok(())
    }

    /// `notifications/initialized` came. Repeating it is harmless.
    ///
    /// # Errors
    /// [`SessionError::NotReady`] before `initialize` and once it closes.
    pub fn initialized(&mut self) -> Result<(), SessionError> {
        match self.state {
            SessionState::Initializing | SessionState::Ready => self.state = SessionState::Ready,
            SessionState::Created | SessionState::Closing | SessionState::Closed => {
                return Err(SessionError::NotReady(self.state));
            }
        }
        Ok(())
    }

    /// Tells whether calls are served. A client that calls right after `initialize`, before its notification arrived, is
    /// served as well: the two may travel on different connections.
    ///
    /// # Errors
    /// [`SessionError::NotReady`] with the state that stands in the way.
    pub fn check_ready(&self) -> Result<(), SessionError> {
        match self.state {
            SessionState::Initializing | SessionState::Ready => Ok(()),
            SessionState::Created | SessionState::Closing | SessionState::Closed => {
                Err(SessionError::NotReady(self.state))
            }
        }
    }

    /// No new calls from here on.
    pub fn close(&mut self) {
        if self.state != SessionState::Closed {
            self.state = SessionState::Closing;
        }
    }

    /// The last call ended.
    pub fn closed(&mut self) {
        self.state = SessionState::Closed;
    }
}

/// A message that does not fit the session's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// Calls are not served in this state.
    #[error("{}", why_not_ready(*.0))]
    NotReady(SessionState),
    /// `initialize` came twice.
    #[error("the session is initialized already")]
    AlreadyInitialized,
}

fn why_not_ready(state: SessionState) -> &'static str {
    match state {
        SessionState::Created => "the session is not initialized; send `initialize` first",
        SessionState::Initializing | SessionState::Ready => "the session does not take this request now",
        SessionState::Closing => "the session is closing and takes no new requests",
        SessionState::Closed => "the session is closed; send `initialize` to open another one",
    }
}

impl SessionError {
    /// The kind, for the wire.
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
        assert_eq!(session.check_ready(), Err(SessionError::NotReady(SessionState::Created)));
        session.initialize().unwrap();
        assert_eq!(session.initialize(), Err(SessionError::AlreadyInitialized));
        assert_eq!(session.check_ready(), Ok(()));
        session.initialized().unwrap();
        session.close();
        assert_eq!(session.check_ready(), Err(SessionError::NotReady(SessionState::Closing)));
        session.closed();
        assert_eq!(
            session.check_ready().unwrap_err().to_string(),
            "the session is closed; send `initialize` to open another one"
        );
        session.close();
        assert_eq!(session.state(), SessionState::Closed);
    }
}
