//! Checks before the first confined program whether programs can be confined on this machine, and caches the result.

use super::{LaunchError, Launcher, TierProbe};
use crate::sandbox::{tier::SandboxTier, zygote::ConfinementLayers};
use std::{
    collections::BTreeSet,
    fmt,
    sync::{self, Arc, PoisonError},
    time::Duration,
};
use tokio::{sync::Mutex, time::Instant};

/// Time for which the result "cannot be confined" is valid. A missing requirement may be available afterwards.
const TIME_TO_COUNT: Duration = Duration::from_secs(30);
/// Time for which the result "tier 2" is valid. It is long, so that repeated tests cost nothing on a machine where it
/// stays that way.
const TIME_OF_TIER_2: Duration = Duration::from_secs(300);

/// Gate before each launch of a confined program: tests that programs can be confined, and stores the result.
pub(super) struct ConfinementProbeCache {
    probe: TierProbe,
    /// Last result and its time.
    found: Mutex<Option<(Instant, SandboxTier)>>,
    /// Sessions that were warned of missing layers. `None` represents runs without a session.
    warned: sync::Mutex<BTreeSet<Option<Arc<str>>>>,
}

impl ConfinementProbeCache {
    pub(super) const fn new(trying: TierProbe) -> Self {
        Self { probe: trying, found: Mutex::const_new(None), warned: sync::Mutex::new(BTreeSet::new()) }
    }

    /// Returns the layers that confine programs. Concurrent callers wait for a test in progress. If layers are missing,
    /// each session is warned once.
    ///
    /// # Errors
    /// [`LaunchError::Unconfinable`].
    pub(super) async fn pass(
        &self,
        launcher: &Launcher,
        session: Option<&Arc<str>>,
    ) -> Result<ConfinementLayers, LaunchError> {
        let mut found = self.found.lock().await;
        let tier = match found.take().filter(|(when, tier)| when.elapsed() < time_to_count(tier)) {
            Some(known) => &found.insert(known).1,
            None => {
                let tier = (self.probe)(launcher).await;
                &found.insert((Instant::now(), tier)).1
            }
        };
        match tier {
            SandboxTier::First { .. } => Ok(ConfinementLayers::All),
            SandboxTier::Second { .. } => {
                if self.warned.lock().unwrap_or_else(PoisonError::into_inner).insert(session.cloned()) {
                    tracing::warn!("{tier}");
                }
                Ok(ConfinementLayers::WithoutNamespaces)
            }
            SandboxTier::Third { missing, remedy } => {
                Err(LaunchError::Unconfinable { missing: missing.clone(), remedy: remedy.clone() })
            }
        }
    }

    /// Forgets that a session was warned, because it has ended. A later session with the same name is a different one.
    pub(super) fn forget(&self, session: &Arc<str>) {
        self.warned.lock().unwrap_or_else(PoisonError::into_inner).remove(&Some(session.clone()));
    }
}

fn time_to_count(tier: &SandboxTier) -> Duration {
    match tier {
        SandboxTier::First { .. } => Duration::MAX,
        SandboxTier::Second { .. } => TIME_OF_TIER_2,
        SandboxTier::Third { .. } => TIME_TO_COUNT,
    }
}

impl fmt::Debug for ConfinementProbeCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfinementProbeCache").field("found", &self.found).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test(start_paused = true)]
    async fn tier_1_is_cached_permanently_and_lower_tiers_are_probed_again_later() {
        static TRIES: AtomicUsize = AtomicUsize::new(0);
        let gate = ConfinementProbeCache::new(|_| {
            Box::pin(async {
                match TRIES.fetch_add(1, Ordering::Relaxed) {
                    0 => SandboxTier::Third { missing: "something".into(), remedy: "help it".into() },
                    1 => SandboxTier::Second { missing: "something".into() },
                    _ => SandboxTier::First { notes: Vec::new() },
                }
            })
        });
        let launcher = Launcher::start().unwrap();
        let refusal = "no program is started, because it could not be confined: something; help it";
        let (refused, second, first) =
            (Err(refusal.to_owned()), Ok(ConfinementLayers::WithoutNamespaces), Ok(ConfinementLayers::All));
        for (passed, expected, tries) in [
            (0, &refused, 1),
            (29, &refused, 1),
            (2, &second, 2),
            (299, &second, 2),
            (2, &first, 3),
            (1_000_000, &first, 3),
        ] {
            tokio::time::advance(Duration::from_secs(passed)).await;
            assert_eq!(gate.pass(&launcher, None).await.map_err(|error| error.to_string()), *expected);
            assert_eq!(TRIES.load(Ordering::Relaxed), tries);
        }
    }
}
