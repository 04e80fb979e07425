//! Whether programs can be confined on this machine: tried before the first of them, and remembered.

use super::{LaunchError, Launcher};
use crate::sandbox::self_test::{self, Tier};
use futures::future::BoxFuture;
use std::{
    fmt,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Mutex, time::Instant};

/// So long a try that failed counts. What was missing may be there then.
const TIME_TO_COUNT: Duration = Duration::from_secs(30);

/// A fact about the machine, and so the same for all launchers.
static OF_PROCESS: LazyLock<Arc<Gate>> =
    LazyLock::new(|| Arc::new(Gate::new(|launcher| Box::pin(self_test::tier(launcher)))));

type Trying = for<'a> fn(&'a Launcher) -> BoxFuture<'a, Tier>;

/// Lets nobody through to a confinement that does not hold.
pub(super) struct Gate {
    trying: Trying,
    /// It was tried, and holds.
    is_open: AtomicBool,
    failed: Mutex<Option<Failed>>,
}

struct Failed {
    when: Instant,
    missing: String,
    remedy: String,
}

impl Gate {
    /// The one of this process.
    pub(super) fn of_process() -> Arc<Self> {
        OF_PROCESS.clone()
    }

    fn new(trying: Trying) -> Self {
        Self { trying, is_open: AtomicBool::new(false), failed: Mutex::new(None) }
    }

    /// Returns where programs can be confined. Who comes while it is tried waits.
    ///
    /// # Errors
    /// [`LaunchError::Unconfinable`].
    pub(super) async fn pass(&self, launcher: &Launcher) -> Result<(), LaunchError> {
        if self.is_open.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut failed = self.failed.lock().await;
        if self.is_open.load(Ordering::Acquire) {
            return Ok(());
        }
        if failed.as_ref().is_none_or(|failed| failed.when.elapsed() >= TIME_TO_COUNT) {
            match (self.trying)(launcher).await {
                Tier::First { .. } => {
                    self.is_open.store(true, Ordering::Release);
                    return Ok(());
                }
                Tier::Third { missing, remedy } => *failed = Some(Failed { when: Instant::now(), missing, remedy }),
            }
        }
        failed.as_ref().map_or(Ok(()), |Failed { missing, remedy, .. }| {
            Err(LaunchError::Unconfinable { missing: missing.clone(), remedy: remedy.clone() })
        })
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("is_open", &self.is_open).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[tokio::test(start_paused = true)]
    async fn what_holds_is_tried_once_and_what_does_not_is_tried_again_after_a_while() {
        static TRIES: AtomicUsize = AtomicUsize::new(0);
        let gate = Gate::new(|_| {
            Box::pin(async {
                match TRIES.fetch_add(1, Ordering::Relaxed) {
                    0 => Tier::Third { missing: "something".into(), remedy: "help it".into() },
                    _ => Tier::First { notes: Vec::new() },
                }
            })
        });
        let launcher = Launcher::start().unwrap();
        for (passed, is_open, tries) in [(0, false, 1), (29, false, 1), (2, true, 2), (100, true, 2)] {
            tokio::time::advance(Duration::from_secs(passed)).await;
            let refusal = "no program is run here, because it could not be confined: something; help it";
            let expected = if is_open { Ok(()) } else { Err(refusal.to_owned()) };
            assert_eq!(gate.pass(&launcher).await.map_err(|error| error.to_string()), expected);
            assert_eq!(TRIES.load(Ordering::Relaxed), tries);
        }
    }
}
