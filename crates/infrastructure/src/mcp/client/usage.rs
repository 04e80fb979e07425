//! Who uses a server now, and since when nobody does.

use std::{sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

/// Counts those who use a server: calls, subscriptions, whoever wants its list.
#[derive(Debug)]
pub(super) struct Usage {
    state: watch::Sender<State>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    users: usize,
    /// When the number changed last.
    since: Instant,
}

/// Uses the server until it is dropped: one that rests is started, and none goes to rest meanwhile.
#[derive(Debug)]
pub(super) struct InUse {
    usage: Arc<Usage>,
}

impl Usage {
    /// A server that nobody uses.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { state: watch::Sender::new(State { users: 0, since: Instant::now() }) })
    }

    /// Uses the server from now on.
    pub(super) fn begin(self: &Arc<Self>) -> InUse {
        self.change(|users| users + 1);
        InUse { usage: self.clone() }
    }

    /// Whether somebody uses it.
    pub(super) fn is_used(&self) -> bool {
        self.state.borrow().users > 0
    }

    /// Returns when somebody uses it.
    pub(super) async fn used(&self) {
        // The sender lives in `self`, so that waiting cannot fail.
        let _ = self.state.subscribe().wait_for(|state| state.users > 0).await;
    }

    /// Returns when nobody has used it for so long.
    pub(super) async fn unused_for(&self, time: Duration) {
        let mut states = self.state.subscribe();
        loop {
            let state = *states.borrow_and_update();
            tokio::select! {
                () = sleep_until(state.since + time), if state.users == 0 => return,
                _ = states.changed() => {}
            }
        }
    }

    fn change(&self, users: impl FnOnce(usize) -> usize) {
        self.state.send_modify(|state| *state = State { users: users(state.users), since: Instant::now() });
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.usage.change(|users| users.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{advance, timeout};

    #[tokio::test(start_paused = true)]
    async fn what_is_used_does_not_become_unused_and_time_counts_from_the_last_use() {
        let (usage, long) = (Usage::new(), Duration::from_secs(900));
        let one = usage.begin();
        assert!(timeout(10 * long, usage.unused_for(long)).await.is_err());
        let other = usage.begin();
        drop(one);
        assert!(usage.is_used() && timeout(10 * long, usage.unused_for(long)).await.is_err());
        drop(other);
        advance(long / 2).await;
        drop(usage.begin());
        let began = Instant::now();
        usage.unused_for(long).await;
        assert_eq!(began.elapsed().as_secs(), long.as_secs());
    }
}
