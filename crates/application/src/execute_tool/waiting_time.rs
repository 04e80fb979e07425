//! The time that a call waits for answers. It does not count towards the call's timeout.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// Polling interval for questions that are open when the call's time has elapsed.
const AT_THE_END: Duration = Duration::from_millis(10);

/// Time that a call has waited for answers to its own questions and to those about its nested calls.
#[derive(Debug, Clone, Default)]
pub(super) struct WaitingTime {
    waits: Arc<Mutex<WaitingTimeState>>,
    /// Waiting time of the parent call, which waits as well.
    above: Option<Arc<WaitingTime>>,
}

#[derive(Debug, Default)]
struct WaitingTimeState {
    open: usize,
    since: Option<Instant>,
    before: Duration,
}

impl WaitingTime {
    /// Creates a waiting time of zero. Waits count for `above` as well.
    pub(super) fn below(above: Option<&Self>) -> Self {
        Self { waits: Arc::default(), above: above.cloned().map(Arc::new) }
    }

    /// Starts a wait that ends when the guard is dropped.
    pub(super) fn begin(&self) -> WaitingTimeGuard {
        for one in self.with_those_above() {
            let mut waits = one.lock();
            waits.open += 1;
            waits.since.get_or_insert_with(Instant::now);
        }
        WaitingTimeGuard(self.clone())
    }

    /// Returns the waiting time so far, including the current wait.
    pub(super) fn so_far(&self) -> Duration {
        let waits = self.lock();
        waits.before + waits.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Returns the number of pending answers.
    pub(super) fn open(&self) -> usize {
        self.lock().open
    }

    fn with_those_above(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |one| one.above.as_deref())
    }

    fn lock(&self) -> MutexGuard<'_, WaitingTimeState> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard of one pending answer.
#[derive(Debug)]
pub(super) struct WaitingTimeGuard(WaitingTime);

impl Drop for WaitingTimeGuard {
    fn drop(&mut self) {
        for one in self.0.with_those_above() {
            let mut waits = one.lock();
            waits.open -= 1;
            if waits.open == 0
                && let Some(since) = waits.since.take()
            {
                waits.before += since.elapsed();
            }
        }
    }
}

/// Waits until `end`, extended by the time that was waited for answers.
pub(super) async fn over(end: Instant, waited_by_now: impl Fn() -> Duration) {
    let mut waited = waited_by_now();
    loop {
        tokio::time::sleep_until(end + waited).await;
        let by_now = waited_by_now();
        if by_now == waited {
            return;
        }
        waited = by_now;
        // Without this pause, a question at the very end would cause a busy loop until its answer.
        tokio::time::sleep(AT_THE_END).await;
    }
}
