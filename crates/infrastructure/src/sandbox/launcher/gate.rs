//! Whether programs can be confined on this machine: tried before the first of them, and remembered.

use super::{LaunchError, Launcher};
use crate::sandbox::{
    self_test::{self, Tier},
    zygote::Layers,
};
use futures::future::BoxFuture;
use std::{
    collections::HashSet,
    fmt,
    sync::{self, Arc, LazyLock, OnceLock, PoisonError},
    time::Duration,
};
use tokio::{sync::Mutex, time::Instant};

/// So long a try that failed counts. What was missing may be there then.
const TIME_TO_COUNT: Duration = Duration::from_secs(30);

/// A fact about the machine, and so the same for all launchers: for those that want every layer, and for those that do
/// with tier 2.
static OF_PROCESS: LazyLock<[Arc<Gate>; 2]> =
    LazyLock::new(|| [(); 2].map(|()| Arc::new(Gate::new(|launcher| Box::pin(self_test::tier(launcher))))));

type Trying = for<'a> fn(&'a Launcher) -> BoxFuture<'a, Tier>;

/// Lets nobody through to a confinement that does not hold.
pub(super) struct Gate {
    trying: Trying,
    /// It was tried, and holds.
    open: OnceLock<Open>,
    failed: Mutex<Option<Failed>>,
    /// The sessions that were warned, and the runs without one.
    warned: sync::Mutex<HashSet<Option<Arc<str>>>>,
}

struct Open {
    layers: Layers,
    warning: Option<String>,
}

struct Failed {
    when: Instant,
    missing: String,
    remedy: String,
}

impl Gate {
    /// The one of this process, for launchers that do with tier 2 or not.
    pub(super) fn of_process(allows_tier_2: bool) -> Arc<Self> {
        OF_PROCESS[usize::from(allows_tier_2)].clone()
    }

    fn new(trying: Trying) -> Self {
        Self { trying, open: OnceLock::new(), failed: Mutex::default(), warned: sync::Mutex::default() }
    }

    /// Returns where programs can be confined, by which layers. Who comes while it is tried waits. Where they are not all,
    /// each session is warned once.
    ///
    /// # Errors
    /// [`LaunchError::Unconfinable`].
    pub(super) async fn pass(&self, launcher: &Launcher, session: Option<&Arc<str>>) -> Result<Layers, LaunchError> {
        let Open { layers, warning } = match self.open.get() {
            Some(open) => open,
            None => self.opened(launcher).await?,
        };
        if let Some(warning) = warning
            && self.warned.lock().unwrap_or_else(PoisonError::into_inner).insert(session.cloned())
        {
            tracing::warn!("{warning}");
        }
        Ok(*layers)
    }

    async fn opened(&self, launcher: &Launcher) -> Result<&Open, LaunchError> {
        let mut failed = self.failed.lock().await;
        if let Some(open) = self.open.get() {
            return Ok(open);
        }
        let refused = |Failed { missing, remedy, .. }: &Failed| LaunchError::Unconfinable {
            missing: missing.clone(),
            remedy: remedy.clone(),
        };
        if let Some(failed) = failed.as_ref().filter(|failed| failed.when.elapsed() < TIME_TO_COUNT) {
            return Err(refused(failed));
        }
        let tier = (self.trying)(launcher).await;
        let warning = tier.to_string();
        let open = match tier {
            Tier::First { .. } => Open { layers: Layers::All, warning: None },
            Tier::Second { .. } => Open { layers: Layers::WithoutNamespaces, warning: Some(warning) },
            Tier::Third { missing, remedy } => {
                return Err(refused(failed.insert(Failed { when: Instant::now(), missing, remedy })));
            }
        };
        Ok(self.open.get_or_init(|| open))
    }

    /// A session has ended: one of the same name is another one.
    pub(super) fn forget(&self, session: &Arc<str>) {
        self.warned.lock().unwrap_or_else(PoisonError::into_inner).remove(&Some(session.clone()));
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("is_open", &self.open.get().is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

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
            let expected = if is_open { Ok(Layers::All) } else { Err(refusal.to_owned()) };
            assert_eq!(gate.pass(&launcher, None).await.map_err(|error| error.to_string()), expected);
            assert_eq!(TRIES.load(Ordering::Relaxed), tries);
        }
    }
}
