//! Those who may be asked over the connection that a server's lists come from, where several clients come.
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

/// So long a server may still ask for a call that was given up.
const SPEAKS_ON: Duration = Duration::from_secs(60);

/// Whose questions one connection carries now.
#[derive(Debug, Default)]
pub(super) struct Floor {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Calls that can be asked.
    calls: usize,
    /// Principal and session of the last of them.
    holder: Option<(Principal, String)>,
    /// When one of the holder's was given up.
    given_up: Option<Instant>,
}

/// The connection for a call that can be asked, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    floor: Arc<Floor>,
    answered: AtomicBool,
}

impl Floor {
    /// A turn for a call of this client, if its questions reach nobody else. Calls of one principal go side by side where
    /// the connection tells them apart.
    pub(super) fn take(self: &Arc<Self>, (principal, session): (&Principal, &str), tells_apart: bool) -> Option<Turn> {
        let mut state = self.state();
        let is_theirs = state
            .holder
            .as_ref()
            .is_some_and(|(holder, its_session)| holder == principal && (tells_apart || its_session == session));
        let is_quiet = state.given_up.is_none_or(|at| at.elapsed() >= SPEAKS_ON);
        let is_free = match state.calls {
            0 => is_theirs || is_quiet,
            _ => is_theirs && tells_apart,
        };
        if !is_free {
            return None;
        }
        if !is_theirs {
            state.holder = Some((principal.clone(), session.to_owned()));
            state.given_up = None;
        }
        state.calls += 1;
        Some(Turn { floor: self.clone(), answered: AtomicBool::new(false) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// The call has its answer, so that nothing more comes for it.
    pub(super) fn answered(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.floor.state();
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
        let floor = Arc::<Floor>::default();
        let take = |name: &str, session| floor.take((&Principal::token(name), session), false);
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
        let floor = Arc::<Floor>::default();
        let take = |name: &str, session| floor.take((&Principal::token(name), session), true);
        let both = (take("a", "one").unwrap(), take("a", "two").unwrap());
        assert!(take("b", "three").is_none());
        both.0.answered();
        both.1.answered();
        drop(both);
        assert!(take("b", "three").is_some());
    }
}
