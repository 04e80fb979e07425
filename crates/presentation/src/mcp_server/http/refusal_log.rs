//! Log of refused requests, limited in rate, so that clients without a token cannot fill the disk.

use crate::telemetry::SERVER;
use http::{HeaderMap, StatusCode, header};
use std::{
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Maximum number of lines per period.
const LINES: u32 = 10;
/// Length of a period.
const WINDOW: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct RefusalLog {
    window: Mutex<RefusalLogPeriod>,
}

#[derive(Debug, Default)]
struct RefusalLogPeriod {
    began: Option<Instant>,
    lines: u32,
    left_out: u64,
}

impl RefusalLog {
    /// Logs a refusal with the peer's address, and no content of the request. Beyond the maximum number of lines in a
    /// period, it is only counted.
    pub(super) fn refused(&self, address: IpAddr, headers: &HeaderMap, status: StatusCode) {
        let (is_logged, left_out) = self.lock().admit(Instant::now());
        log_left_out(left_out);
        if !is_logged {
            return;
        }
        let status = status.as_u16();
        match (status, headers.contains_key(header::AUTHORIZATION)) {
            (401, true) => tracing::info!(target: SERVER, %address, status, "refused a wrong token"),
            (401, false) => tracing::info!(target: SERVER, %address, status, "refused a request without a token"),
            _ => tracing::info!(target: SERVER, %address, status, "refused a request"),
        }
    }

    /// Logs the number of omitted lines once their period has ended.
    pub(super) fn sweep(&self, now: Instant) {
        let left_out = self.lock().close_if_over(now);
        log_left_out(left_out);
    }

    fn lock(&self) -> MutexGuard<'_, RefusalLogPeriod> {
        // No code panics while the lock is held.
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn log_left_out(refused: u64) {
    if refused > 0 {
        tracing::info!(target: SERVER, refused, "refused more requests, which are not listed");
    }
}

impl RefusalLogPeriod {
    /// Returns `true` if the line is to be logged, and the number of omitted lines of the period before.
    fn admit(&mut self, now: Instant) -> (bool, u64) {
        let left_out = self.close_if_over(now);
        self.began.get_or_insert(now);
        let is_logged = self.lines < LINES;
        match is_logged {
            true => self.lines += 1,
            false => self.left_out += 1,
        }
        (is_logged, left_out)
    }

    fn close_if_over(&mut self, now: Instant) -> u64 {
        match self.began {
            Some(began) if now.saturating_duration_since(began) >= WINDOW => std::mem::take(self).left_out,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_is_logged_up_to_a_limit_and_then_only_counted() {
        let (mut window, start) = (RefusalLogPeriod::default(), Instant::now());
        let logged = (0..1_000).filter(|_| window.admit(start).0).count();
        assert_eq!(logged, LINES as usize);
        assert_eq!(window.close_if_over(start + WINDOW / 2), 0, "the window is open");
        assert_eq!(window.admit(start + WINDOW), (true, 1_000 - u64::from(LINES)));
        assert_eq!(window.admit(start + WINDOW), (true, 0));
        assert_eq!(window.close_if_over(start + 2 * WINDOW), 0, "nothing was left out");
    }
}
