//! A SearXNG server: `GET /search?format=json`.

use super::{SearchEndpoint, ServiceRefusal, ServiceRequest, age, listed, text, with_sites};
use crate::services::{address::below, foreign_text::clean_text, one_line::one_line};
use http::header;
use serde_json::Value;
use toolstead_domain::{Freshness, WebHit, WebQuery, WebSearchError};

/// Maximum length of a query that its engines accept, in characters and in words.
const CHARACTERS: usize = 400;
const WORDS: usize = 50;

pub(super) fn order(service: &SearchEndpoint<'_>, query: &WebQuery) -> Result<ServiceRequest, WebSearchError> {
    let mut url = below(service.base_url, "search");
    let mut pairs = url.query_pairs_mut();
    pairs.append_pair("q", &with_sites(query, CHARACTERS, WORDS)).append_pair("format", "json");
    if query.page > 0 {
        pairs.append_pair("pageno", &(query.page + 1).to_string());
    }
    if let Some(freshness) = query.freshness {
        let word = match freshness {
            Freshness::Day => "day",
            Freshness::Week => "week",
            Freshness::Month => "month",
            Freshness::Year => "year",
        };
        pairs.append_pair("time_range", word);
    }
    drop(pairs);
    service.with_key(service.get(url), header::AUTHORIZATION, "Bearer ")
}

pub(super) fn hits(document: &Value) -> Result<Vec<WebHit>, WebSearchError> {
    let hits = listed(document.get("results"), |hit| WebHit {
        title: text(hit, "title"),
        url: text(hit, "url"),
        description: text(hit, "content"),
        age: age(hit, &["publishedDate"]),
    })?;
    let silent = silent_engines(document);
    match hits.is_empty() && !silent.is_empty() {
        // Some or all engines did not search.
        true => Err(WebSearchError::Failed(format!(
            "the SearXNG server found nothing, and these engines did not answer: {silent}"
        ))),
        false => Ok(hits),
    }
}

/// Returns the engines that did not answer, each with the reason.
fn silent_engines(document: &Value) -> String {
    let engines = document.get("unresponsive_engines").and_then(Value::as_array);
    let engine = |engine: &Value| {
        let part = |at| engine.get(at).and_then(Value::as_str).map(|text| one_line(&clean_text(text), 60));
        part(0).map(|name| part(1).map_or(name.clone(), |why| format!("{name} ({why})")))
    };
    let names: Vec<String> = engines.into_iter().flatten().filter_map(engine).take(10).collect();
    names.join(", ")
}

pub(super) fn refusal(refusal: &ServiceRefusal<'_>) -> WebSearchError {
    match refusal.status {
        403 => WebSearchError::Failed(
            "the SearXNG server returns no JSON (HTTP 403): add `json` to `search: formats:` in its `settings.yml`"
                .into(),
        ),
        _ => refusal.usual(),
    }
}
