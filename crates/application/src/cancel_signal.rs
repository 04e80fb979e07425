//! The signal that ends a call from outside, with its reason.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use tokio::sync::Notify;
use toolstead_domain::CancelReason;

/// Signal that ends one call, or a group of them, with a reason. Cheap to clone, and clones are the same signal; the
/// first reason counts.
///
/// ```
/// use toolstead_application::cancel_signal::CancelSignal;
/// use toolstead_domain::CancelReason;
///
/// let run = CancelSignal::new();
/// let call = run.child();
/// run.cancel(CancelReason::Shutdown);
/// assert_eq!(call.reason(), Some(CancelReason::Shutdown));
/// ```
#[derive(Debug, Clone, Default)]
pub struct CancelSignal(Arc<SignalState>);

#[derive(Debug, Default)]
struct SignalState {
    reason: OnceLock<CancelReason>,
    given: Notify,
    /// Signals that are also given when this one is.
    below: Mutex<Vec<Weak<SignalState>>>,
    /// Parent signal: giving it also gives this one. Held so that the chain to the signals above remains intact.
    _above: Option<Arc<SignalState>>,
}

impl CancelSignal {
    /// Returns a signal that is not given yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a signal that is given with this one, with its reason, and can be given alone.
    #[must_use]
    pub fn child(&self) -> Self {
        let child = Self(Arc::new(SignalState { _above: Some(self.0.clone()), ..SignalState::default() }));
        let mut below = self.0.lock();
        match self.reason() {
            Some(reason) => _ = child.0.reason.set(reason),
            None => {
                if below.len() == below.capacity() {
                    below.retain(|child| child.strong_count() > 0);
                }
                below.push(Arc::downgrade(&child.0));
            }
        }
        drop(below);
        child
    }

    /// Gives the signal and its children this reason, and wakes all that wait for them. Does nothing if the signal has
    /// a reason.
    pub fn cancel(&self, reason: CancelReason) {
        self.0.cancel(reason);
    }

    /// Returns when the signal is given, with its reason.
    pub async fn cancelled(&self) -> CancelReason {
        loop {
            // Created first: it is notified of everything that follows.
            let given = self.0.given.notified();
            if let Some(reason) = self.reason() {
                return reason;
            }
            given.await;
        }
    }

    /// Returns the reason once the signal is given.
    pub fn reason(&self) -> Option<CancelReason> {
        self.0.reason.get().copied()
    }
}

impl SignalState {
    fn cancel(&self, reason: CancelReason) {
        let below = {
            // A child that is added later reads the reason under this lock.
            let mut below = self.lock();
            if self.reason.set(reason).is_err() {
                return;
            }
            std::mem::take(&mut *below)
        };
        self.given.notify_waiters();
        for child in below.iter().filter_map(Weak::upgrade) {
            child.cancel(reason);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Self>>> {
        // Nothing panics while it is held.
        self.below.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancelling_a_signal_cancels_its_descendants_with_the_same_reason_but_not_its_parent() {
        let above = CancelSignal::new();
        let (one, other) = (above.child(), above.child());
        let below = one.child();
        one.cancel(CancelReason::Deadline);
        assert_eq!(below.reason(), Some(CancelReason::Deadline));
        assert_eq!((above.reason(), other.reason()), (None, None));
        above.cancel(CancelReason::Shutdown);
        one.cancel(CancelReason::Client);
        let late = above.child();
        late.cancel(CancelReason::Client);
        assert_eq!(late.reason(), Some(CancelReason::Shutdown), "the first reason stands");
        assert_eq!(other.child().reason(), Some(CancelReason::Shutdown), "also of one that comes later");
        assert_eq!((one.reason(), below.reason()), (Some(CancelReason::Deadline), Some(CancelReason::Deadline)));
    }

    #[tokio::test]
    async fn waiting_on_a_child_signal_returns_the_cancel_reason_of_its_ancestor() {
        let above = CancelSignal::new();
        let below = above.child().child();
        for _ in 0..100 {
            drop(above.child());
        }
        assert!(above.0.lock().capacity() < 100, "children that are gone take no room");
        let (reason, ()) = tokio::join!(below.cancelled(), async { above.cancel(CancelReason::Shutdown) });
        assert_eq!((reason, below.cancelled().await), (CancelReason::Shutdown, CancelReason::Shutdown));
    }
}
