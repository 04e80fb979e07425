//! Decides whose calls the catalogue connection carries, where several clients come.
//!
//! Over standard streams a question names no call. So calls that can be asked have that connection one after the other;
//! meanwhile others have one of the [`pool`](super::pool).

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;
use toolstead_domain::principal::Principal;

/// Time in which a server may still ask for a call that was given up.
const SPEAKS_ON: Duration = Duration::from_secs(60);

/// The client whose questions the connection carries now.
#[derive(Debug, Default)]
pub(super) struct CatalogueConnectionLock {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Calls that can be asked.
    calls: usize,
    /// Principal and session of the last of them.
    holder: Option<(Principal, String)>,
    /// Time at which a call of the holder was given up.
    given_up: Option<Instant>,
}

/// The connection for a call that can be asked, until it is dropped.
#[derive(Debug)]
pub(super) struct CatalogueConnectionGuard {
    lock: Arc<CatalogueConnectionLock>,
    answered: AtomicBool,
}

impl CatalogueConnectionLock {
    /// Locks the connection for a call of this client, if its questions reach no other client. Calls of one principal
    /// share it where the connection keeps apart what comes for each call.
    pub(super) fn take(
        self: &Arc<Self>,
        (principal, session): (&Principal, &str),
        separates_calls: bool,
    ) -> Option<CatalogueConnectionGuard> {
        let mut state = self.state();
        let is_holder = state
            .holder
            .as_ref()
            .is_some_and(|(holder, its_session)| holder == principal && (separates_calls || its_session == session));
        let is_quiet = state.given_up.is_none_or(|at| at.elapsed() >= SPEAKS_ON);
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
    /// Notes that the call has its answer, so that nothing more comes for it.
    pub(super) fn answered(&self) {
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
    async fn calls_that_can_be_asked_have_the_connection_one_after_the_other() {
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
        advance(SPEAKS_ON).await;
        assert!(take("a", "one").is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn calls_of_one_principal_go_side_by_side_where_they_are_told_apart() {
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
