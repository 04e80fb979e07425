//! Lookups on disks that may not respond.

use super::LaunchError;
use std::time::Duration;
use tokio::{sync::Semaphore, task::spawn_blocking, time::timeout};

/// Limits the number of concurrent lookups. One that hangs keeps its permit, so that it cannot use up the threads of
/// the runtime.
#[derive(Debug)]
pub(super) struct PathLookupLimiter {
    places: Semaphore,
    time: Duration,
}

impl PathLookupLimiter {
    pub(super) const fn new(places: usize, time: Duration) -> Self {
        Self { places: Semaphore::const_new(places), time }
    }

    /// Waits for a permit, runs a lookup and returns its result, all within the time limit.
    ///
    /// # Errors
    /// [`LaunchError::Confine`] if the time is exceeded.
    pub(super) async fn done<T: Send + 'static>(
        &'static self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, LaunchError> {
        let doing = async {
            let place = self.places.acquire().await.map_err(|_| LaunchError::Stopped)?;
            let work = move || {
                let done = work();
                drop(place);
                done
            };
            spawn_blocking(work).await.map_err(|_| LaunchError::Stopped)
        };
        timeout(self.time, doing).await.unwrap_or_else(|_| {
            let seconds = self.time.as_secs();
            let reason = format!("resolving its folders took more than {seconds} seconds; one of them may not respond");
            Err(LaunchError::Confine(reason))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    };

    #[tokio::test]
    async fn look_ups_that_hang_take_no_further_threads() {
        static LOOK_UPS: PathLookupLimiter = PathLookupLimiter::new(2, Duration::from_millis(50));
        let begun = Arc::new(AtomicUsize::new(0));
        let mut hanging = Vec::new();
        for _ in 0..5 {
            let (end, is_ended) = mpsc::channel::<()>();
            let begun = begun.clone();
            let hangs = move || {
                begun.fetch_add(1, Ordering::Relaxed);
                is_ended.recv().is_err()
            };
            let said = LOOK_UPS.done(hangs).await.unwrap_err().to_string();
            assert!(said.contains("may not respond"), "{said}");
            hanging.push(end);
        }
        drop(hanging);
        while LOOK_UPS.places.available_permits() < 2 {
            tokio::task::yield_now().await;
        }
        assert_eq!(begun.load(Ordering::Relaxed), 2);
        assert_eq!(LOOK_UPS.done(|| 7).await.unwrap(), 7);
    }
}
