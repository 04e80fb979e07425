//! The time that a service wants to be left alone.

use chrono::DateTime;
use http::{HeaderMap, header};
use std::time::Duration;

/// `Retry-After` as seconds or as a date, which is measured from the service's own `Date`, so that no clock has to be
/// right.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let after = text(header::RETRY_AFTER)?;
    if let Ok(seconds) = after.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let at = DateTime::parse_from_rfc2822(after).ok()?;
    let now = DateTime::parse_from_rfc2822(text(header::DATE)?).ok()?;
    Some((at - now).to_std().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    #[track_caller]
    fn check(headers: &[(&'static str, &'static str)], expected: Option<u64>) {
        let pairs =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        assert_eq!(retry_after(&HeaderMap::from_iter(pairs)), expected.map(Duration::from_secs), "{headers:?}");
    }

    #[test]
    fn a_service_says_how_long_it_wants_to_be_left_alone() {
        check(&[], None);
        check(&[("retry-after", "7")], Some(7));
        let date = ("date", "Wed, 21 Oct 2026 07:28:00 GMT");
        check(&[date, ("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT")], Some(30));
        check(&[date, ("retry-after", "Wed, 21 Oct 2026 07:00:00 GMT")], Some(0));
        check(&[("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT")], None);
        for nonsense in ["-1", "inf", "NaN", "1e400", "soon", ""] {
            check(&[("retry-after", nonsense)], None);
        }
    }
}
