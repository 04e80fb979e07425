//! Deadline for the head of the next request of a connection.
//!
//! hyper starts a new timer for every request. This timer only stores the time, and a single timer of the connection is
//! extended when it fires too early.

use hyper::rt::{Sleep, Timer};
use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::{Duration, Instant},
};

/// Deadline for a head while the connection waits for one.
#[derive(Debug, Clone, Default)]
pub(super) struct HeadDeadline(Arc<Mutex<Option<Instant>>>);

impl HeadDeadline {
    /// Returns `true` while the connection waits for a head.
    pub(super) fn is_set(&self) -> bool {
        self.lock().is_some()
    }

    /// Removes the deadline after the head is complete.
    pub(super) fn clear(&self) {
        *self.lock() = None;
    }

    /// Waits until the deadline of any head of the connection has passed. The client has `timeout` for a head, from the
    /// time at which the connection waits for it.
    pub(super) async fn passed(&self, timeout: Duration) {
        let mut next = tokio::time::Instant::now() + timeout;
        loop {
            tokio::time::sleep_until(next).await;
            let now = tokio::time::Instant::now();
            next = match *self.lock() {
                // A later head has the whole timeout.
                None => now + timeout,
                Some(deadline) if deadline <= now.into_std() => return,
                Some(deadline) => deadline.into(),
            };
        }
    }

    fn set(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        *self.lock() = Some(deadline);
        Box::pin(EndlessSleep)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        // No code panics while the lock is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Timer for HeadDeadline {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.set(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        self.set(deadline)
    }

    fn reset(&self, _: &mut Pin<Box<dyn Sleep>>, deadline: Instant) {
        *self.lock() = Some(deadline);
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }
}

/// Sleep without an end for hyper: the connection itself ends at the deadline. Its box allocates nothing.
struct EndlessSleep;

impl Future for EndlessSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

impl Sleep for EndlessSleep {}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use tokio::time::advance;

    const TIMEOUT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_head_deadline_expires_only_while_a_request_head_is_pending() {
        let deadline = HeadDeadline::default();
        let mut passed = Box::pin(deadline.passed(TIMEOUT));
        // A call may take longer than the timeout for heads.
        advance(TIMEOUT * 3 / 2).await;
        assert!(passed.as_mut().now_or_never().is_none());
        drop(deadline.sleep_until(deadline.now() + TIMEOUT));
        advance(TIMEOUT - Duration::from_secs(1)).await;
        assert!(passed.as_mut().now_or_never().is_none(), "the head has one more second");
        deadline.clear();
        advance(TIMEOUT * 2).await;
        assert!(passed.as_mut().now_or_never().is_none(), "its head came in time");
        let begun = tokio::time::Instant::now();
        drop(deadline.sleep(TIMEOUT));
        passed.await;
        let took = begun.elapsed();
        assert!((TIMEOUT..TIMEOUT + Duration::from_millis(10)).contains(&took), "{took:?}");
    }
}
