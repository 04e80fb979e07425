//! Pauses before a request is repeated.

use http::{HeaderMap, header};
use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};

/// Returns the pause after a number of attempts, from 1. It doubles from `first` to `longest`, less up to a quarter, so
/// that many clients do not repeat their requests at the same time.
pub fn pause_after(tries: u32, first: Duration, longest: Duration) -> Duration {
    let pause = first.saturating_mul(2_u32.saturating_pow(tries.saturating_sub(1))).min(longest);
    // The standard library uses a new seed for each one.
    let chance = RandomState::new().build_hasher().finish() % 1000;
    pause.mul_f64(1.0 - 0.25 * (chance as f64 / 1000.0))
}

/// Returns the pause that a server requests: `retry-after-ms`, else `Retry-After` as seconds or as a date. A date is
/// compared with the server's own `Date`, so that the clocks need not agree.
pub fn wanted_pause(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    if let Some(milliseconds) = text("retry-after-ms").and_then(number) {
        return Duration::try_from_secs_f64(milliseconds / 1000.0).ok();
    }
    let after = text(header::RETRY_AFTER.as_str())?;
    if let Some(seconds) = number(after) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let at = httpdate::parse_http_date(after).ok()?;
    let now = httpdate::parse_http_date(text(header::DATE.as_str())?).ok()?;
    Some(at.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    #[track_caller]
    fn check(headers: &[(&'static str, &'static str)], expected: Option<u64>) {
        let pairs =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        assert_eq!(wanted_pause(&HeaderMap::from_iter(pairs)), expected.map(Duration::from_millis), "{headers:?}");
    }

    #[test]
    fn retry_after_is_read_as_seconds_milliseconds_or_a_date() {
        check(&[], None);
        check(&[("retry-after", "7")], Some(7000));
        check(&[("retry-after", "0.5")], Some(500));
        check(&[("retry-after", "7"), ("retry-after-ms", "1500")], Some(1500));
        let date = ("date", "Wed, 21 Oct 2026 07:28:00 GMT");
        check(&[date, ("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT")], Some(30_000));
        check(&[date, ("retry-after", "Wed, 21 Oct 2026 07:00:00 GMT")], Some(0));
        check(&[("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT")], None);
        for nonsense in ["-1", "inf", "NaN", "1e400", "soon", ""] {
            check(&[("retry-after", nonsense)], None);
        }
    }

    #[test]
    fn pauses_double_up_to_a_maximum_with_random_variation() {
        let after = |tries| pause_after(tries, Duration::from_millis(500), Duration::from_secs(30));
        for (tries, milliseconds) in [(1, 500.0), (2, 1000.0), (4, 4000.0), (7, 30_000.0), (u32::MAX, 30_000.0)] {
            for _ in 0..50 {
                let pause = after(tries).as_secs_f64() * 1000.0;
                assert!(pause <= milliseconds && pause >= milliseconds * 0.75 - 1e-6, "{tries}: {pause}");
            }
        }
        let pauses: std::collections::BTreeSet<Duration> = (0..50).map(|_| after(7)).collect();
        assert!(pauses.len() > 10);
    }
}
