//! Lock that decides which client's calls may use the catalogue connection, if there are several clients.
//!
//! Over standard streams a question does not name its call. Calls whose callers can answer questions therefore use this
//! connection one after the other; meanwhile other such calls use connections of the [`pool`](super::pool).

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;
use toolstead_domain::Principal;

/// Time for which a server may still ask questions for an abandoned call.
const LATE_MESSAGE_TIME: Duration = Duration::from_secs(60);

/// Lock on the catalogue connection. Its holder is the client that receives the connection's questions.
#[derive(Debug, Default)]
pub(in crate::mcp::client) struct CatalogueConnectionLock {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of current calls whose callers can answer questions.
    calls: usize,
    /// Principal and session that receive the connection's questions. They remain after their calls until another
    /// client takes the lock. `None` before the first call.
    holder: Option<(Principal, String)>,
    /// Time at which a call of the holder last ended without a response.
    given_up: Option<Instant>,
}

/// Use of the connection by a call whose caller can answer questions, until dropped.
#[derive(Debug)]
pub(in crate::mcp::client) struct CatalogueConnectionGuard {
    lock: Arc<CatalogueConnectionLock>,
    answered: AtomicBool,
}

impl CatalogueConnectionLock {
    /// Locks the connection for a call of this client. Returns `None` if the call's questions could reach another
    /// client. Calls of one principal share the connection if it separates the messages for different calls.
    pub(in crate::mcp::client) fn take(
        self: &Arc<Self>,
        (principal, session): (&Principal, &str),
        separates_calls: bool,
    ) -> Option<CatalogueConnectionGuard> {
        let mut state = self.state();
        let is_holder = state
            .holder
            .as_ref()
            .is_some_and(|(holder, its_session)| holder == principal && (separates_calls || its_session == session));
        let is_quiet = state.given_up.is_none_or(|at| at.elapsed() >= LATE_MESSAGE_TIME);
        let is_free = match state.calls {
            0 => is_holder || is_quiet,
            _ => is_holder && separates_calls,
        };
        if !is_free {
            return None;
        }
        if !is_holder {
            state.holder = Some((principal.clone(), session.to_owned()));
            state.given_up = None;
        }
        state.calls += 1;
        Some(CatalogueConnectionGuard { lock: self.clone(), answered: AtomicBool::new(false) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CatalogueConnectionGuard {
    /// Records that the call has its response, so that no further message can arrive for it.
    pub(in crate::mcp::client) fn answered(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }
}

impl Drop for CatalogueConnectionGuard {
    fn drop(&mut self) {
        let mut state = self.lock.state();
        state.calls = state.calls.saturating_sub(1);
        if !self.answered.load(Ordering::Relaxed) {
            state.given_up = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn calls_that_can_answer_questions_use_the_connection_one_at_a_time() {
        let lock = Arc::<CatalogueConnectionLock>::default();
        let take = |name: &str, session| lock.take((&Principal::token(name), session), false);
        let first = take("a", "one").unwrap();
        assert!(take("a", "one").is_none() && take("b", "two").is_none());
        first.answered();
        drop(first);
        let given_up = take("b", "two").unwrap();
        drop(given_up);
        assert!(take("a", "one").is_none() && take("b", "three").is_none());
        let again = take("b", "two").unwrap();
        again.answered();
        drop(again);
        assert!(take("a", "one").is_none(), "the call before it may still ask");
        advance(LATE_MESSAGE_TIME).await;
        assert!(take("a", "one").is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_calls_of_one_principal_share_a_connection_that_separates_calls() {
        let lock = Arc::<CatalogueConnectionLock>::default();
        let take = |name: &str, session| lock.take((&Principal::token(name), session), true);
        let both = (take("a", "one").unwrap(), take("a", "two").unwrap());
        assert!(take("b", "three").is_none());
        both.0.answered();
        both.1.answered();
        drop(both);
        assert!(take("b", "three").is_some());
    }
}
