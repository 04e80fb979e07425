//! Brave's API: `GET /res/v1/web/search`.

use super::{SearchEndpoint, ServiceRefusal, ServiceRequest, age, listed, no_such_page, text, with_sites};
use crate::{
    http::pause::wanted_pause,
    services::{address::below, markup::plain},
};
use http::{HeaderMap, HeaderName};
use serde_json::Value;
use std::time::Duration;
use toolstead_domain::{DomainFilter, Freshness, WebHit, WebQuery, WebSearchError};

/// Maximum number of hits per answer, and of pages.
const HITS: usize = 20;
const PAGES: usize = 10;
/// Maximum length of a query, in characters.
const CHARACTERS: usize = 400;
/// Maximum length of a query, in words.
const WORDS: usize = 50;

pub(super) fn order(service: &SearchEndpoint<'_>, query: &WebQuery) -> Result<ServiceRequest, WebSearchError> {
    if query.page >= PAGES {
        return Err(no_such_page("Brave"));
    }
    let mut url = below(service.base_url, "res/v1/web/search");
    // Hits of other domains are removed, so the maximum number is requested.
    let count = if query.domains == DomainFilter::All { query.count.min(HITS) } else { HITS };
    let mut pairs = url.query_pairs_mut();
    pairs.append_pair("q", &with_sites(query, CHARACTERS, WORDS)).append_pair("count", &count.to_string());
    if query.page > 0 {
        pairs.append_pair("offset", &query.page.to_string());
    }
    if let Some(freshness) = query.freshness {
        let word = match freshness {
            Freshness::Day => "pd",
            Freshness::Week => "pw",
            Freshness::Month => "pm",
            Freshness::Year => "py",
        };
        pairs.append_pair("freshness", word);
    }
    drop(pairs);
    service.with_key(service.get(url), HeaderName::from_static("x-subscription-token"), "")
}

pub(super) fn hits(document: &Value) -> Result<Vec<WebHit>, WebSearchError> {
    // `web` is absent if nothing matches.
    let Some(web) = document.get("web").filter(|web| !web.is_null()) else {
        return match document.get("type").and_then(Value::as_str) {
            Some("search") => Ok(Vec::new()),
            _ => Err(WebSearchError::Protocol("it is not a `search`".into())),
        };
    };
    listed(web.get("results"), |hit| WebHit {
        title: plain(&text(hit, "title")),
        url: text(hit, "url"),
        description: plain(&text(hit, "description")),
        age: age(hit, &["age", "page_age"]),
    })
}

pub(super) fn refusal(refusal: &ServiceRefusal<'_>) -> WebSearchError {
    match (refusal.status, refusal.code.as_str()) {
        (_, "SUBSCRIPTION_TOKEN_INVALID") => WebSearchError::KeyRefused(refusal.describe("rejected the key")),
        (429, _) => refusal.rate_limited(wait(refusal.headers).or_else(|| wanted_pause(refusal.headers))),
        _ => refusal.usual(),
    }
}

/// Returns the time until all exhausted quotas are reset. The headers contain a number for each quota.
fn wait(headers: &HeaderMap) -> Option<Duration> {
    let numbers = |name: &str| -> Vec<u64> {
        let text = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        text.split(',').map_while(|number| number.trim().parse().ok()).collect()
    };
    let (remaining, resets) = (numbers("x-ratelimit-remaining"), numbers("x-ratelimit-reset"));
    let used_up = remaining.iter().zip(&resets).filter(|(remaining, _)| **remaining == 0).map(|(_, reset)| *reset);
    // If no quota is reported as exhausted, the earliest reset counts.
    used_up.max().or_else(|| resets.iter().copied().min()).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn the_wait_is_the_longest_reset_of_the_exhausted_rate_limits() {
        for (remaining, resets, expected) in [
            ("0, 1000", "1, 1419704", Some(1)),
            ("0, 0", "1, 1419704", Some(1_419_704)),
            ("1, 0", "1, 1419704", Some(1_419_704)),
            ("3, 9", "1, 1419704", Some(1)),
            ("", "1, 1419704", Some(1)),
            ("0", "", None),
            ("x, 0", "y", None),
        ] {
            let headers = HeaderMap::from_iter([
                (HeaderName::from_static("x-ratelimit-remaining"), HeaderValue::from_static(remaining)),
                (HeaderName::from_static("x-ratelimit-reset"), HeaderValue::from_static(resets)),
            ]);
            assert_eq!(wait(&headers), expected.map(Duration::from_secs), "{remaining} | {resets}");
        }
    }
}
