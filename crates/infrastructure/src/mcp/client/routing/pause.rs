//! Pauses between attempts to reach a server.

use crate::{http::pause, mcp::client::config::Backoff};
use std::time::Duration;

/// Returns the pause after this number of consecutive failures, reduced at random by up to a quarter, but not below
/// `first`.
pub(in crate::mcp::client) fn pause_after(failures: u32, retry: Backoff) -> Duration {
    let Backoff { first, longest, .. } = retry;
    pause::pause_after(failures, first, longest).max(first.min(longest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_maximum_with_random_variation() {
        let retry = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(60) };
        for (failures, seconds) in [(1, 1.0), (2, 2.0), (4, 8.0), (7, 60.0), (40, 60.0), (u32::MAX, 60.0)] {
            for _ in 0..50 {
                let pause = pause_after(failures, retry).as_secs_f64();
                assert!(pause <= seconds && pause >= (seconds * 0.75).max(1.0) - 1e-9, "{failures}: {pause}");
            }
        }
        let pauses: std::collections::BTreeSet<Duration> = (0..50).map(|_| pause_after(7, retry)).collect();
        assert!(pauses.len() > 10);
    }
}
