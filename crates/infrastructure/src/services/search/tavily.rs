//! Tavily's API: `POST /search`.

use super::{SearchEndpoint, ServiceRefusal, ServiceRequest, age, listed, no_such_page, text};
use crate::services::address::below;
use http::header;
use serde_json::{Value, json};
use toolstead_domain::{DomainFilter, Freshness, WebHit, WebQuery, WebSearchError};

/// Maximum number of hits of the only answer.
const HITS: usize = 20;

pub(super) fn order(service: &SearchEndpoint<'_>, query: &WebQuery) -> Result<ServiceRequest, WebSearchError> {
    let skipped = query.page.saturating_mul(query.count);
    if skipped >= HITS {
        return Err(no_such_page("Tavily"));
    }
    let mut body = json!({
        "query": query.text,
        "max_results": (skipped + query.count).min(HITS),
        "search_depth": "basic",
    });
    match &query.domains {
        DomainFilter::All => {}
        DomainFilter::Only(domains) => body["include_domains"] = json!(domains),
        DomainFilter::Without(domains) => body["exclude_domains"] = json!(domains),
    }
    if let Some(freshness) = query.freshness {
        body["time_range"] = match freshness {
            Freshness::Day => "day",
            Freshness::Week => "week",
            Freshness::Month => "month",
            Freshness::Year => "year",
        }
        .into();
    }
    let order = service.post(below(service.base_url, "search"), &body);
    Ok(ServiceRequest { skipped, ..service.with_key(order, header::AUTHORIZATION, "Bearer ")? })
}

pub(super) fn hits(document: &Value) -> Result<Vec<WebHit>, WebSearchError> {
    listed(document.get("results"), |hit| WebHit {
        title: text(hit, "title"),
        url: text(hit, "url"),
        description: text(hit, "content"),
        age: age(hit, &["published_date"]),
    })
}

pub(super) fn refusal(refusal: &ServiceRefusal<'_>) -> WebSearchError {
    match refusal.status {
        // The quota of the plan is exhausted, or the limit of additional costs is reached.
        432 | 433 => WebSearchError::RateLimited {
            message: refusal.describe("has no quota left for this key"),
            retry_after: None,
        },
        _ => refusal.usual(),
    }
}
