//! How long a server is left alone.

use crate::mcp::client::config::RetryPolicy;
use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};

/// The pause after so many failures in a row, less up to a quarter, so that many servers do not come back in step.
pub(super) fn pause_after(failures: u32, retry: RetryPolicy) -> Duration {
    let pause = retry.first.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(retry.longest);
    // std seeds it anew for each one.
    let chance = RandomState::new().build_hasher().finish() % 1000;
    pause.mul_f64(1.0 - 0.25 * (chance as f64 / 1000.0)).max(retry.first.min(pause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_differ() {
        let retry = RetryPolicy { first: Duration::from_secs(1), longest: Duration::from_secs(60) };
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
