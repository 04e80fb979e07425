//! Retries of requests that got no response.

use crate::mcp::client::{config::Backoff, connection::request_error::RequestError, routing::pause::pause_after};
use std::time::Duration;

/// Maximum number of attempts, including the first.
pub(in crate::mcp::client) const ATTEMPTS: u32 = 5;
/// Maximum pause that a server may request (`Retry-After`).
const LONGEST_WISH: Duration = Duration::from_secs(30);
/// Pauses if the server requests none.
const PAUSES: Backoff = Backoff { first: Duration::from_millis(200), longest: Duration::from_secs(5) };

/// Returns `true` if a request of this method can be repeated. Tool calls never are, because a server's claims that a
/// tool only reads or is idempotent are not trusted.
pub(in crate::mcp::client) fn only_reads(method: &str) -> bool {
    matches!(
        method,
        "resources/read"
            | "prompts/get"
            | "completion/complete"
            | "tools/list"
            | "resources/list"
            | "resources/templates/list"
            | "prompts/list"
    )
}

/// Returns `true` if the error may be temporary: the connection was lost or not established, or the HTTP status shows a
/// busy or failed server. A timeout does not count.
pub(in crate::mcp::client) fn may_pass(error: &RequestError) -> bool {
    match error {
        RequestError::Lost(_) | RequestError::Unreachable(_) => true,
        RequestError::Http { status, .. } => matches!(status, 408 | 429 | 500..=599),
        RequestError::Rpc(_)
        | RequestError::Malformed(_)
        | RequestError::Late(_)
        | RequestError::Unauthorized(_)
        | RequestError::TooLarge { .. } => false,
    }
}

/// Returns the pause before the next attempt: the one that the server requests, up to a maximum, or an increasing one.
pub(in crate::mcp::client) fn pause(attempt: u32, wish: Option<Duration>) -> Duration {
    wish.map_or_else(|| pause_after(attempt, PAUSES), |wish| wish.min(LONGEST_WISH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_read_requests_are_repeated_and_only_after_transient_errors() {
        assert!(only_reads("resources/read") && only_reads("completion/complete"));
        assert!(!only_reads("tools/call") && !only_reads("resources/subscribe") && !only_reads("logging/setLevel"));
        let http = |status| RequestError::Http { status, detail: String::new() };
        assert!([408, 429, 500, 503, 599].map(http).iter().all(may_pass));
        assert!(![400, 401, 403, 404, 600].map(http).iter().any(may_pass));
        assert!(may_pass(&RequestError::Lost(String::new())) && !may_pass(&RequestError::Late(Duration::ZERO)));
    }

    #[test]
    fn a_pause_requested_by_the_server_is_kept_up_to_a_maximum() {
        assert_eq!(pause(1, Some(Duration::from_secs(2))), Duration::from_secs(2));
        assert_eq!(pause(1, Some(Duration::from_secs(86400))), LONGEST_WISH);
        assert!((1..ATTEMPTS).all(|attempt| pause(attempt, None) <= PAUSES.longest));
    }
}
