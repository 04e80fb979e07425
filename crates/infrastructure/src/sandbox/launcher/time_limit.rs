//! Wall-clock time limit of a run, which applies whether or not a caller waits for the run.

use super::Exit;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

/// Time limit of one run.
#[derive(Debug)]
pub(super) struct TimeLimit {
    time: Duration,
    is_over: Arc<AtomicBool>,
    _timer: AbortOnDropHandle<()>,
}

impl TimeLimit {
    /// Calls `kill` when the time has passed, unless the returned value was dropped before.
    pub(super) fn of(time: Duration, kill: impl FnOnce() + Send + 'static) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let noted = is_over.clone();
        let timer = tokio::spawn(async move {
            sleep(time).await;
            // Set before the kill, so that the reader of the exit status finds the reason.
            noted.store(true, Ordering::Release);
            kill();
        });
        Self { time, is_over, _timer: AbortOnDropHandle::new(timer) }
    }

    /// Returns the outcome of a killed run: `TimedOut` if its time has passed.
    pub(super) fn classify_exit(&self, exit: Exit) -> Exit {
        if self.is_over.load(Ordering::Acquire) { Exit::TimedOut(self.time) } else { exit }
    }
}
