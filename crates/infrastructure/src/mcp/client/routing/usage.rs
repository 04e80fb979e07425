//! Count of the current uses of a server, and the time of the last one.

use std::{
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until},
};

/// Minimum time between two checks whether a server is still in use.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);

/// Counter of the uses of a server: calls, subscriptions and listings.
#[derive(Debug)]
pub(in crate::mcp::client) struct ServerUsageCounter {
    users: AtomicUsize,
    /// Notified when the first use begins.
    begun: Notify,
    /// Time at which a use ended most recently.
    ended_at: Mutex<Instant>,
}

/// Use of the server until dropped. It starts an idle server and keeps a running one from being closed as idle.
#[derive(Debug)]
pub(in crate::mcp::client) struct ServerUseGuard {
    usage: Arc<ServerUsageCounter>,
}

impl ServerUsageCounter {
    /// Creates the counter of an unused server.
    pub(in crate::mcp::client) fn new() -> Arc<Self> {
        Arc::new(Self { users: AtomicUsize::new(0), begun: Notify::new(), ended_at: Mutex::new(Instant::now()) })
    }

    /// Begins a use of the server.
    pub(in crate::mcp::client) fn begin(self: &Arc<Self>) -> ServerUseGuard {
        if self.users.fetch_add(1, Ordering::AcqRel) == 0 {
            self.begun.notify_waiters();
        }
        ServerUseGuard { usage: self.clone() }
    }

    /// Returns `true` while the server is in use.
    pub(in crate::mcp::client) fn is_used(&self) -> bool {
        self.users.load(Ordering::Acquire) > 0
    }

    /// Waits until the server is in use.
    pub(in crate::mcp::client) async fn used(&self) {
        loop {
            let mut begun = pin!(self.begun.notified());
            begun.as_mut().enable();
            if self.is_used() {
                return;
            }
            begun.await;
        }
    }

    /// Waits until the server has been unused for this time.
    pub(in crate::mcp::client) async fn unused_for(&self, time: Duration) {
        loop {
            if self.is_used() {
                // The time begins now at the earliest.
                sleep(time.max(SHORTEST_SLEEP)).await;
                continue;
            }
            let due = *self.ended_at() + time;
            if due <= Instant::now() {
                return;
            }
            sleep_until(due).await;
        }
    }

    fn ended_at(&self) -> MutexGuard<'_, Instant> {
        self.ended_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ServerUseGuard {
    fn drop(&mut self) {
        // Set before the count is lowered, so that a count of zero always comes with the time of the last use.
        *self.usage.ended_at() = Instant::now();
        self.usage.users.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{advance, timeout};

    #[tokio::test(start_paused = true)]
    async fn a_server_is_unused_only_after_the_full_time_since_its_last_use() {
        let (usage, long) = (ServerUsageCounter::new(), Duration::from_secs(900));
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
