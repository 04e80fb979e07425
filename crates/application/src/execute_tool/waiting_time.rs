//! The time in which a call waits for answers, which is none of the call.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// So often it is looked whether a question that was asked at the end of a call's time is still open.
const AT_THE_END: Duration = Duration::from_millis(10);

/// The time that a call has waited for answers: to what it asked, and to what was asked about the calls that it makes.
#[derive(Debug, Clone, Default)]
pub(super) struct WaitingTime {
    waits: Arc<Mutex<Waits>>,
    /// That of the call that makes it, which waits with it.
    above: Option<Arc<WaitingTime>>,
}

#[derive(Debug, Default)]
struct Waits {
    open: usize,
    since: Option<Instant>,
    before: Duration,
}

impl WaitingTime {
    /// None so far. What is waited here is waited above as well.
    pub(super) fn below(above: Option<&Self>) -> Self {
        Self { waits: Arc::default(), above: above.cloned().map(Arc::new) }
    }

    /// An answer is waited for from now on, until this is dropped.
    pub(super) fn begin(&self) -> Wait {
        for one in self.with_those_above() {
            let mut waits = one.lock();
            waits.open += 1;
            waits.since.get_or_insert_with(Instant::now);
        }
        Wait(self.clone())
    }

    /// The time so far, with that for the answer that is waited for now.
    pub(super) fn so_far(&self) -> Duration {
        let waits = self.lock();
        waits.before + waits.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// The number of answers that are waited for.
    pub(super) fn open(&self) -> usize {
        self.lock().open
    }

    fn with_those_above(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |one| one.above.as_deref())
    }

    fn lock(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One answer that is waited for.
#[derive(Debug)]
pub(super) struct Wait(WaitingTime);

impl Drop for Wait {
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

/// Returns when the time is over, later by what was waited for answers.
pub(super) async fn over(end: Instant, waited_by_now: impl Fn() -> Duration) {
    let mut waited = waited_by_now();
    loop {
        tokio::time::sleep_until(end + waited).await;
        let by_now = waited_by_now();
        if by_now == waited {
            return;
        }
        waited = by_now;
        // What is asked at the very end would otherwise keep this busy until it is answered.
        tokio::time::sleep(AT_THE_END).await;
    }
}
