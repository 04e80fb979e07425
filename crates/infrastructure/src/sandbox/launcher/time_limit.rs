//! The wall-clock time of a run, which ends it whether or not somebody waits for it.

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

/// The time that one run has.
#[derive(Debug)]
pub(super) struct TimeLimit {
    time: Duration,
    is_over: Arc<AtomicBool>,
    _timer: AbortOnDropHandle<()>,
}

impl TimeLimit {
    /// Kills by `kill` when the time is over, unless this value has gone away before.
    pub(super) fn of(time: Duration, kill: impl FnOnce() + Send + 'static) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let noted = is_over.clone();
        let timer = tokio::spawn(async move {
            sleep(time).await;
            // Before the kill: who hears of it finds the reason.
            noted.store(true, Ordering::Release);
            kill();
        });
        Self { time, is_over, _timer: AbortOnDropHandle::new(timer) }
    }

    /// The end of a run that was killed: by this limit, if its time is over.
    pub(super) fn told_of(&self, exit: Exit) -> Exit {
        if self.is_over.load(Ordering::Acquire) { Exit::TimedOut(self.time) } else { exit }
    }
}
