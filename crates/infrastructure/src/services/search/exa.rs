//! Exa's API: `POST /search`.

use super::{SearchEndpoint, ServiceRefusal, ServiceRequest, age, listed, no_such_page, text};
use crate::services::address::below;
use http::HeaderName;
use serde_json::{Value, json};
use toolstead_domain::{DomainFilter, Timestamp, WebHit, WebQuery, WebSearchError};

/// Maximum number of hits of the only answer.
const HITS: usize = 100;

pub(super) fn order(
    service: &SearchEndpoint<'_>,
    query: &WebQuery,
    now: Timestamp,
) -> Result<ServiceRequest, WebSearchError> {
    let skipped = query.page.saturating_mul(query.count);
    if skipped >= HITS {
        return Err(no_such_page("Exa"));
    }
    let mut body = json!({
        "query": query.text,
        "numResults": (skipped + query.count).min(HITS),
        "contents": {"highlights": true},
    });
    match &query.domains {
        DomainFilter::All => {}
        DomainFilter::Only(domains) => body["includeDomains"] = json!(domains),
        DomainFilter::Without(domains) => body["excludeDomains"] = json!(domains),
    }
    if let Some(freshness) = query.freshness {
        let microseconds = i64::try_from(freshness.length().as_micros()).unwrap_or(i64::MAX);
        body["startPublishedDate"] = Timestamp(now.0.saturating_sub(microseconds)).to_string().into();
    }
    let order = service.post(below(service.base_url, "search"), &body);
    Ok(ServiceRequest { skipped, ..service.with_key(order, HeaderName::from_static("x-api-key"), "")? })
}

pub(super) fn hits(document: &Value) -> Result<Vec<WebHit>, WebSearchError> {
    listed(document.get("results"), |hit| {
        let highlights = hit.get("highlights").and_then(Value::as_array);
        let words: Vec<&str> = highlights.into_iter().flatten().filter_map(Value::as_str).collect();
        WebHit {
            title: text(hit, "title"),
            url: text(hit, "url"),
            description: words.join(" … "),
            age: age(hit, &["publishedDate"]),
        }
    })
}

pub(super) fn refusal(refusal: &ServiceRefusal<'_>) -> WebSearchError {
    match refusal.status {
        402 => WebSearchError::RateLimited {
            message: refusal.describe("has no quota left for this key"),
            retry_after: None,
        },
        _ => refusal.usual(),
    }
}
