//! Web search by external services, one per file.

mod brave;
mod duckduckgo;
mod exa;
mod hits;
mod searxng;
mod tavily;
#[cfg(test)]
mod tests;

use crate::{
    helper_port::HelperPort,
    http::pause::wanted_pause,
    services::{
        error_message::{extract_message, without_keys},
        foreign_text::clean_text,
        settings::{SearchProvider, SearchSettings},
    },
    web::web_client::{RedirectPolicy, RetryPolicy, UrlSource, WebClient, WebRequest, WebResponse},
};
use async_trait::async_trait;
use bytes::Bytes;
use hits::of_query;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use percent_encoding::percent_decode_str;
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use toolstead_domain::{Clock, DomainFilter, Secret, WebHit, WebQuery, WebSearch, WebSearchContext, WebSearchError};
use url::Url;

/// Maximum size of an answer, in bytes.
const BODY_BYTES: usize = 4 << 20;

/// Name of the helper that parses result pages.
pub const PAGE_HELPER: &str = duckduckgo::HELPER;

/// Parses a result page: the work of the helper [`PAGE_HELPER`]. Call it only in a confined process.
pub fn page_answer(order: &str, input: &mut dyn std::io::Read) -> Vec<u8> {
    duckduckgo::answer(order, input)
}

/// A web search service.
pub struct SearchService {
    settings: SearchSettings,
    reach: WebClient,
    helpers: Arc<dyn HelperPort>,
    clock: Arc<dyn Clock>,
}

/// One request to a service.
struct ServiceRequest {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Bytes,
    /// Number of hits to skip, before the requested page.
    skipped: usize,
}

/// Address and key of a service.
struct SearchEndpoint<'a> {
    base_url: &'a Url,
    key: Option<&'a Secret>,
}

impl SearchService {
    /// Creates the service of the settings. The clock is used for filters by age; helpers parse its pages.
    pub fn new(
        settings: SearchSettings,
        reach: WebClient,
        helpers: Arc<dyn HelperPort>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { settings, reach, helpers, clock }
    }

    fn order(&self, query: &WebQuery) -> Result<ServiceRequest, WebSearchError> {
        let service = SearchEndpoint { base_url: &self.settings.base_url, key: self.settings.key.as_ref() };
        match self.settings.provider {
            SearchProvider::Brave => brave::order(&service, query),
            SearchProvider::Searxng => searxng::order(&service, query),
            SearchProvider::Tavily => tavily::order(&service, query),
            SearchProvider::Exa => exa::order(&service, query, self.clock.now()),
            SearchProvider::DuckDuckGo => duckduckgo::order(service.base_url, query),
        }
    }

    async fn hits(&self, answer: &WebResponse, bounds: WebSearchContext<'_>) -> Result<Vec<WebHit>, WebSearchError> {
        let document = || json(&answer.body);
        match self.settings.provider {
            SearchProvider::Brave => brave::hits(&document()?),
            SearchProvider::Searxng => searxng::hits(&document()?),
            SearchProvider::Tavily => tavily::hits(&document()?),
            SearchProvider::Exa => exa::hits(&document()?),
            SearchProvider::DuckDuckGo => {
                duckduckgo::hits(&*self.helpers, &answer.url, answer.body.clone(), bounds.deadline).await
            }
        }
    }

    /// Returns the error for the status and the message of an answer.
    fn refusal(&self, answer: &WebResponse) -> WebSearchError {
        let refusal = ServiceRefusal {
            name: self.name(),
            status: answer.status.as_u16(),
            headers: &answer.headers,
            words: extract_message(&answer.body, self.settings.key.as_ref()),
            code: json(&answer.body).ok().as_ref().and_then(code_of).unwrap_or_default(),
        };
        match self.settings.provider {
            SearchProvider::Brave => brave::refusal(&refusal),
            SearchProvider::Searxng => searxng::refusal(&refusal),
            SearchProvider::Tavily => tavily::refusal(&refusal),
            SearchProvider::Exa => exa::refusal(&refusal),
            SearchProvider::DuckDuckGo => duckduckgo::refusal(&refusal),
        }
    }

    fn name(&self) -> &'static str {
        match self.settings.provider {
            SearchProvider::Brave => "Brave",
            SearchProvider::Searxng => "the SearXNG server",
            SearchProvider::Tavily => "Tavily",
            SearchProvider::Exa => "Exa",
            SearchProvider::DuckDuckGo => "DuckDuckGo",
        }
    }
}

#[async_trait]
impl WebSearch for SearchService {
    fn host(&self) -> Option<&str> {
        self.settings.base_url.host_str()
    }

    async fn search<'s, 'q, 'b>(
        &'s self,
        query: &'q WebQuery,
        bounds: WebSearchContext<'b>,
    ) -> Result<Vec<WebHit>, WebSearchError> {
        let order = self.order(query)?;
        let skipped = order.skipped;
        let web_request = WebRequest {
            method: order.method,
            url: &order.url,
            headers: order.headers,
            body: order.body,
            url_source: UrlSource::Configuration,
            // The key must only be sent to the configured host.
            redirects: RedirectPolicy::None,
            retry: RetryPolicy::OnTransientFailure,
            body_bytes: BODY_BYTES,
            deadline: bounds.deadline,
        };
        let name = self.name();
        let sent = self.reach.send(web_request, bounds.may_reach).await;
        let answer = sent.map_err(|error| WebSearchError::NotReached(error.into_failure(name)))?;
        if !answer.status.is_success() {
            return Err(self.refusal(&answer));
        }
        if answer.is_cut {
            return Err(WebSearchError::Protocol(format!("the answer of {name} has more than {BODY_BYTES} bytes")));
        }
        let hits = self.hits(&answer, bounds).await.map_err(|error| match error {
            WebSearchError::Protocol(why) => {
                WebSearchError::Protocol(format!("the answer of {name} is invalid: {why}"))
            }
            other => other,
        })?;
        let hits = hits.into_iter().skip(skipped).filter_map(|hit| without_key(hit, self.settings.key.as_ref()));
        Ok(of_query(hits, query))
    }
}

impl std::fmt::Debug for SearchService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SearchService").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Removes the key that a service repeats. A hit whose address has it is left out.
fn without_key(hit: WebHit, key: Option<&Secret>) -> Option<WebHit> {
    let Some(key) = key.map(Secret::expose).filter(|key| !key.is_empty()) else { return Some(hit) };
    let has_key = |text: &str| clean_text(text).contains(key);
    let without = |text: String| if has_key(&text) { without_keys(&text, [key]) } else { text };
    let address = percent_decode_str(&hit.url).decode_utf8_lossy();
    if has_key(&hit.url) || has_key(&address) {
        return None;
    }
    Some(WebHit { title: without(hit.title), description: without(hit.description), age: hit.age.map(without), ..hit })
}

/// An error answer of a service.
struct ServiceRefusal<'a> {
    /// Name of the service for people.
    name: &'static str,
    status: u16,
    headers: &'a HeaderMap,
    /// Message of the service; empty if there is none.
    words: String,
    /// Error code of the service; empty if there is none.
    code: String,
}

impl ServiceRefusal<'_> {
    /// Returns the error for a status without a special meaning at the service.
    fn usual(&self) -> WebSearchError {
        match self.status {
            401 | 403 => WebSearchError::KeyRefused(self.describe("rejected the key")),
            429 => self.rate_limited(wanted_pause(self.headers)),
            400 | 422 => WebSearchError::QueryRefused(self.describe("rejected the query")),
            _ => WebSearchError::Failed(self.describe("has no answer")),
        }
    }

    fn rate_limited(&self, retry_after: Option<Duration>) -> WebSearchError {
        WebSearchError::RateLimited { message: self.describe("received too many requests"), retry_after }
    }

    /// Returns a message such as `Brave rejected the key (HTTP 401): MESSAGE`, where `what` is `rejected the key`.
    fn describe(&self, what: &str) -> String {
        let colon = if self.words.is_empty() { "" } else { ": " };
        format!("{} {what} (HTTP {}){colon}{}", self.name, self.status, self.words)
    }
}

impl SearchEndpoint<'_> {
    /// Creates a GET request for JSON.
    fn get(&self, url: Url) -> ServiceRequest {
        let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static("application/json"))]);
        ServiceRequest { method: Method::GET, url, headers, body: Bytes::new(), skipped: 0 }
    }

    /// Creates a POST request with a JSON body.
    fn post(&self, url: Url, body: &Value) -> ServiceRequest {
        let mut order = self.get(url);
        order.method = Method::POST;
        order.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        order.body = body.to_string().into();
        order
    }

    /// Adds the key to the request in the header `name`, after the text `before`. Adds nothing without a key.
    fn with_key(
        &self,
        mut order: ServiceRequest,
        name: HeaderName,
        before: &str,
    ) -> Result<ServiceRequest, WebSearchError> {
        if let Some(key) = self.key {
            let value = HeaderValue::try_from(format!("{before}{}", key.expose()));
            let mut value = value
                .map_err(|_| WebSearchError::KeyRefused("the key of the search contains invalid characters".into()))?;
            value.set_sensitive(true);
            order.headers.insert(name, value);
        }
        Ok(order)
    }
}

/// Creates the error for a page of hits that the service does not provide.
fn no_such_page(service: &str) -> WebSearchError {
    WebSearchError::QueryRefused(format!("{service} has no page of hits that far"))
}

fn json(body: &[u8]) -> Result<Value, WebSearchError> {
    let document: Value = serde_json::from_slice(body)
        .map_err(|error| WebSearchError::Protocol(format!("it is not valid JSON: {error}")))?;
    match document.is_object() {
        true => Ok(document),
        false => Err(WebSearchError::Protocol("it is not a JSON object".into())),
    }
}

/// Parses a list of hits. Members may be missing.
fn listed<'a>(list: Option<&'a Value>, hit: impl Fn(&'a Value) -> WebHit) -> Result<Vec<WebHit>, WebSearchError> {
    match list {
        Some(Value::Array(hits)) => Ok(hits.iter().map(hit).collect()),
        _ => Err(WebSearchError::Protocol("it has no list of results".into())),
    }
}

/// Returns a member that is a text; empty for anything else.
fn text(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Returns the date or the age of a hit: the first nonempty text among these members.
fn age(value: &Value, names: &[&str]) -> Option<String> {
    names.iter().map(|name| text(value, name)).find(|text| !text.is_empty())
}

/// Returns the error code in an error answer.
fn code_of(document: &Value) -> Option<String> {
    let places = ["/error/code", "/tag"];
    places.iter().find_map(|place| document.pointer(place)?.as_str().map(str::to_owned))
}

/// Returns the query with operators for the domains, if they fit into this number of characters and words. Hits of
/// other domains are removed later in any case.
fn with_sites(query: &WebQuery, characters: usize, words: usize) -> String {
    let fits = |text: &str| text.chars().count() <= characters && text.split_whitespace().count() <= words;
    let text = &query.text;
    match &query.domains {
        DomainFilter::All => text.clone(),
        DomainFilter::Only(domains) => {
            let sites: Vec<String> = domains.iter().map(|domain| format!("site:{domain}")).collect();
            Some(format!("{text} {}", sites.join(" OR "))).filter(|text| fits(text)).unwrap_or_else(|| text.clone())
        }
        DomainFilter::Without(domains) => domains.iter().fold(text.clone(), |text, domain| {
            Some(format!("{text} -site:{domain}")).filter(|longer| fits(longer)).unwrap_or(text)
        }),
    }
}
