//! Rate limiting: one request at a time, with a pause between two.

use std::time::Duration;
use tokio::{
    sync::{Mutex, MutexGuard},
    time::{Instant, sleep_until},
};

/// Limiter that gives turns to requests, in the order of their arrival.
#[derive(Debug)]
pub struct RateLimiter {
    pause: Duration,
    last: Mutex<Option<Instant>>,
}

/// Permit for one request. The next permit is available after it is dropped and the pause has passed.
#[derive(Debug)]
pub(super) struct RateLimitPermit<'a> {
    last: MutexGuard<'a, Option<Instant>>,
}

impl RateLimiter {
    /// Returns the limiter of this process, which all callers share.
    pub fn of_process() -> &'static Self {
        static PACE: RateLimiter = RateLimiter::new(Duration::from_secs(1));
        &PACE
    }

    /// Creates a limiter with this pause between the end of a request and the start of the next one.
    pub const fn new(pause: Duration) -> Self {
        Self { pause, last: Mutex::const_new(None) }
    }

    /// Returns the pause between two requests.
    pub(super) fn pause(&self) -> Duration {
        self.pause
    }

    /// Waits for a turn.
    pub(super) async fn turn(&self) -> RateLimitPermit<'_> {
        let last = self.last.lock().await;
        if let Some(ended) = *last {
            sleep_until(ended + self.pause).await;
        }
        RateLimitPermit { last }
    }
}

impl Drop for RateLimitPermit<'_> {
    fn drop(&mut self) {
        *self.last = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::join_all;
    use std::sync::Mutex as StdMutex;
    use tokio::time::sleep;

    #[tokio::test(start_paused = true)]
    async fn requests_come_one_at_a_time_in_their_order_and_a_second_apart() {
        let pace = RateLimiter::new(Duration::from_secs(1));
        let (begun, times) = (Instant::now(), StdMutex::new(Vec::new()));
        let asking = async |number: u64| {
            let _turn = pace.turn().await;
            let from = begun.elapsed();
            sleep(Duration::from_millis(100 * number)).await;
            times.lock().unwrap().push((number, from.as_millis(), begun.elapsed().as_millis()));
        };
        join_all((1..=3).map(asking)).await;
        assert_eq!(*times.lock().unwrap(), [(1, 0, 100), (2, 1100, 1300), (3, 2300, 2600)]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_abandoned_wait_does_not_delay_other_requests() {
        let pace = RateLimiter::new(Duration::from_secs(1));
        let begun = Instant::now();
        drop(pace.turn().await);
        assert!(tokio::time::timeout(Duration::from_millis(10), pace.turn()).await.is_err());
        drop(pace.turn().await);
        assert_eq!(begun.elapsed(), Duration::from_secs(1));
    }
}
