//! Each service over real HTTP, with answers as documented.

use super::*;
use crate::{
    egress::{connector::SystemNetwork, host::HostPatterns},
    helper_port::NoHelpers,
    web::testing::{ReceivedRequest, Reply, TestServer},
};
use serde_json::json;
use std::time::{Duration, Instant};
use toolstead_domain::{
    DomainFilter, Freshness, Timestamp, ToolFailure, error_kind::ErrorKind, testing::fixed_clock::FixedClock,
};

const KEY: &str = "key-0123456789";
/// 2026-03-01T12:00:00Z.
const NOW: Timestamp = Timestamp(1_772_366_400_000_000);

fn query(text: &str) -> WebQuery {
    WebQuery { text: text.into(), count: 5, page: 0, domains: DomainFilter::All, freshness: None }
}

fn of(domains: &[&str]) -> Vec<String> {
    domains.iter().map(ToString::to_string).collect()
}

fn service(provider: SearchProvider, base_url: Url, key: Option<&str>) -> SearchService {
    let settings = SearchSettings { provider, base_url, key: key.map(Secret::new) };
    let reach = WebClient::new(Arc::new(SystemNetwork::default()), HostPatterns::default());
    SearchService::new(settings, reach, Arc::new(NoHelpers), Arc::new(FixedClock::at(NOW)))
}

/// Runs one search with a service behind a gateway with a path, which gives this answer. Returns the requests and the
/// result.
async fn asked(
    provider: SearchProvider,
    query: &WebQuery,
    reply: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static,
) -> (ReceivedRequest, Result<Vec<WebHit>, WebSearchError>) {
    let server = TestServer::plain(reply).await;
    let service = service(provider, server.url("/gate/way"), Some(KEY));
    assert_eq!(service.host(), Some("127.0.0.1"));
    let bounds = WebSearchContext { deadline: Instant::now() + Duration::from_secs(120), may_reach: &|_| Ok(()) };
    let found = service.search(query, bounds).await;
    let seen = server.requests();
    assert!(seen.iter().all(|seen| !seen.target.contains(KEY)), "the key stands in an address: {seen:?}");
    (seen.into_iter().next().unwrap_or_else(|| panic!("nothing was asked: {found:?}")), found)
}

/// Runs a search like [`asked`], and returns title, address, description and age of each hit.
async fn found(provider: SearchProvider, query: &WebQuery, document: Value) -> (ReceivedRequest, Vec<[String; 4]>) {
    let (seen, found) = asked(provider, query, move |_| Reply::json(&document)).await;
    let shown = |hit: WebHit| [hit.title, hit.url, hit.description, hit.age.unwrap_or_default()];
    (seen, found.unwrap().into_iter().map(shown).collect())
}

/// Returns the failure for a status with this body and these headers.
async fn refused(
    provider: SearchProvider,
    status: u16,
    headers: &'static [(&'static str, &'static str)],
    body: &str,
) -> ToolFailure {
    let body = body.to_owned();
    let answer = move |_: &ReceivedRequest| {
        headers.iter().fold(Reply::new(status, body.clone()), |reply, (name, value)| reply.header(name, value))
    };
    let (_, found) = asked(provider, &query("rust"), answer).await;
    let failure = found.unwrap_err().into_failure();
    assert!(!failure.text().contains(KEY), "the key stands in an error: {}", failure.text());
    failure
}

/// Header for a status that would otherwise be retried after a long pause.
const SOON: (&str, &str) = ("Retry-After", "0");

#[tokio::test]
async fn brave_requests_and_responses_follow_its_api_documentation() {
    let document = json!({"type": "search", "query": {"original": "rust mcp", "more_results_available": true},
        "web": {"type": "search", "results": [
            {"title": "A &amp; B", "url": "https://example.com/a", "description": "About <strong>A</strong>&#x27;s", "age": "2 days ago", "language": "en"},
            {"title": "Script", "url": "javascript:alert(1)", "description": ""},
            {"title": "B", "url": "https://example.com/b", "page_age": "2026-02-01T00:00:00"},
            7, {}]}});
    let (seen, hits) = found(SearchProvider::Brave, &query("rust mcp"), document).await;
    assert_eq!(
        hits,
        [
            ["A & B", "https://example.com/a", "About A's", "2 days ago"],
            ["B", "https://example.com/b", "", "2026-02-01T00:00:00"],
        ]
        .map(|hit| hit.map(str::to_owned))
    );
    assert_eq!((seen.method.as_str(), seen.path()), ("GET", "/gate/way/res/v1/web/search"));
    assert_eq!(seen.target, "/gate/way/res/v1/web/search?q=rust+mcp&count=5");
    assert_eq!((seen.header("x-subscription-token"), seen.header("accept")), (KEY, "application/json"));
    // `web` is absent if nothing matches.
    let (_, hits) = found(SearchProvider::Brave, &query("rust"), json!({"type": "search", "query": {}})).await;
    assert!(hits.is_empty());
    let narrow = WebQuery {
        domains: DomainFilter::Only(of(&["a.example", "b.example"])),
        freshness: Some(Freshness::Week),
        page: 2,
        ..query("rust")
    };
    let nothing = || json!({"type": "search"});
    let (seen, _) = found(SearchProvider::Brave, &narrow, nothing()).await;
    let asked = ["q", "count", "offset", "freshness"].map(|name| seen.query(name).unwrap());
    assert_eq!(asked, ["rust site:a.example OR site:b.example", "20", "2", "pw"]);
    let without = WebQuery { domains: DomainFilter::Without(of(&["a.example"])), ..query("rust") };
    let (seen, _) = found(SearchProvider::Brave, &without, nothing()).await;
    assert_eq!(seen.query("q").unwrap(), "rust -site:a.example");
    // A query has at most 50 words; otherwise the hits are filtered.
    let long = WebQuery { text: vec!["x"; 50].join(" "), domains: DomainFilter::Only(of(&["a.example"])), ..query("") };
    let other = json!({"type": "search", "web": {"results": [{"title": "B", "url": "https://b.example/"}]}});
    let (seen, hits) = found(SearchProvider::Brave, &long, other).await;
    assert_eq!((seen.query("q"), hits.len()), (Some(long.text), 0));
}

#[tokio::test]
async fn a_key_that_a_search_service_echoes_is_removed_from_all_hits() {
    let hidden = format!("{}\u{200b}{}", &KEY[..5], &KEY[5..]);
    let encoded = KEY.replace('k', "%6B");
    let hit = |title: &str, url: &str| json!({"title": title, "url": url, "description": title, "age": title});
    let document = json!({"type": "search", "web": {"results": [
        hit(&format!("Your key {KEY} works"), "https://a.example/1"),
        hit(&format!("<b>key-</b>{}", &KEY[4..]), "https://a.example/2"),
        hit(&hidden, "https://a.example/3"),
        hit("A", &format!("https://a.example/?key={KEY}")),
        hit("A", &format!("https://a.example/?key={encoded}")),
    ]}});
    let (_, hits) = found(SearchProvider::Brave, &query("rust"), document).await;
    let found: Vec<(&str, &str)> = hits.iter().map(|[title, url, ..]| (title.as_str(), url.as_str())).collect();
    assert_eq!(
        found,
        [("Your key … works", "https://a.example/1"), ("…", "https://a.example/2"), ("…", "https://a.example/3")]
    );
    assert!(hits.iter().flatten().all(|text| !text.contains(KEY)), "{hits:?}");
}

#[tokio::test]
async fn searxng_requests_and_responses_follow_its_api_documentation() {
    let document = json!({"query": "rust", "number_of_results": 0, "results": [
        {"title": "A", "url": "https://example.com/a", "content": "Vec<T> of A", "publishedDate": "2026-02-01T00:00:00", "engine": "x"},
        {"title": "B", "url": "https://other.example/b", "content": null, "publishedDate": null}],
        "answers": [], "unresponsive_engines": [["slow", "timeout"]]});
    let narrow = WebQuery {
        domains: DomainFilter::Only(of(&["example.com"])),
        freshness: Some(Freshness::Month),
        page: 1,
        ..query("rust")
    };
    let (seen, hits) = found(SearchProvider::Searxng, &narrow, document).await;
    assert_eq!(hits, [["A", "https://example.com/a", "Vec<T> of A", "2026-02-01T00:00:00"].map(str::to_owned)]);
    assert_eq!((seen.method.as_str(), seen.path()), ("GET", "/gate/way/search"));
    let asked = ["q", "format", "pageno", "time_range"].map(|name| seen.query(name).unwrap());
    assert_eq!(asked, ["rust site:example.com", "json", "2", "month"]);
    assert_eq!(seen.header("authorization"), format!("Bearer {KEY}"));
    let nobody = json!({"results": [], "unresponsive_engines": [["google", "timeout"], ["bing", "CAPTCHA"]]});
    let (_, none) = asked_for(SearchProvider::Searxng, nobody).await;
    let failure = none.unwrap_err().into_failure();
    assert!(
        failure.kind == ErrorKind::UpstreamHttp && failure.text().contains("google (timeout), bing (CAPTCHA)"),
        "{}",
        failure.text()
    );
}

async fn asked_for(
    provider: SearchProvider,
    document: Value,
) -> (ReceivedRequest, Result<Vec<WebHit>, WebSearchError>) {
    asked(provider, &query("rust"), move |_| Reply::json(&document)).await
}

#[tokio::test]
async fn tavily_requests_and_responses_follow_its_api_documentation() {
    let hit = |number: usize| json!({"title": format!("T{number}"), "url": format!("https://example.com/{number}"), "content": "c", "score": 0.9});
    let document = json!({"query": "rust", "answer": null, "images": [], "results": [hit(0), hit(1), hit(2), hit(3)], "response_time": 1.2});
    let narrow = WebQuery {
        count: 2,
        page: 1,
        domains: DomainFilter::Only(of(&["example.com"])),
        freshness: Some(Freshness::Year),
        ..query("rust")
    };
    let (seen, hits) = found(SearchProvider::Tavily, &narrow, document.clone()).await;
    assert_eq!(hits.iter().map(|hit| &*hit[0]).collect::<Vec<_>>(), ["T2", "T3"]);
    assert_eq!((seen.method.as_str(), seen.path()), ("POST", "/gate/way/search"));
    assert_eq!(
        seen.json(),
        json!({"query": "rust", "max_results": 4, "search_depth": "basic", "include_domains": ["example.com"], "time_range": "year"})
    );
    assert_eq!(seen.header("authorization"), format!("Bearer {KEY}"));
    assert_eq!(seen.header("content-type"), "application/json");
    let without = WebQuery { domains: DomainFilter::Without(of(&["example.com"])), ..query("rust") };
    let (seen, hits) = found(SearchProvider::Tavily, &without, document).await;
    assert_eq!((&seen.json()["exclude_domains"], hits.len()), (&json!(["example.com"]), 0));
}

#[tokio::test]
async fn exa_requests_and_responses_follow_its_api_documentation() {
    let document = json!({"requestId": "r", "resolvedSearchType": "neural", "results": [
        {"id": "i", "title": "A", "url": "https://example.com/a", "publishedDate": "2026-02-27T00:00:00.000Z", "author": "X", "highlights": ["one", "two"]},
        {"title": null, "url": "https://example.com/b"}]});
    let narrow = WebQuery {
        domains: DomainFilter::Without(of(&["b.example"])),
        freshness: Some(Freshness::Day),
        ..query("rust")
    };
    let (seen, hits) = found(SearchProvider::Exa, &narrow, document).await;
    assert_eq!(
        hits,
        [
            ["A", "https://example.com/a", "one … two", "2026-02-27T00:00:00.000Z"],
            ["example.com", "https://example.com/b", "", ""],
        ]
        .map(|hit| hit.map(str::to_owned))
    );
    assert_eq!((seen.method.as_str(), seen.path()), ("POST", "/gate/way/search"));
    assert_eq!(
        seen.json(),
        json!({"query": "rust", "numResults": 5, "contents": {"highlights": true}, "excludeDomains": ["b.example"],
            "startPublishedDate": "2026-02-28T12:00:00.000Z"})
    );
    assert_eq!(seen.header("x-api-key"), KEY);
}

#[tokio::test]
async fn every_documented_error_has_its_kind() {
    use ErrorKind::{AuthRequired, InvalidInput, RateLimited, UpstreamHttp};
    use SearchProvider::{Brave, Exa, Searxng, Tavily};
    let brave = |status: u16, code: &str| {
        format!(
            r#"{{"type":"ServiceRefusal","error":{{"id":"1","status":{status},"code":"{code}","detail":"it is {KEY}"}},"time":1}}"#
        )
    };
    let tavily = || r#"{"detail":{"error":"said so"}}"#.to_owned();
    let exa = |tag: &str| format!(r#"{{"requestId":"r","error":"said so","tag":"{tag}"}}"#);
    for (provider, status, body, kind, words) in [
        (Brave, 401, brave(401, "UNAUTHORIZED"), AuthRequired, "Brave rejected the key (HTTP 401): it is …."),
        (Brave, 422, brave(422, "SUBSCRIPTION_TOKEN_INVALID"), AuthRequired, "rejected the key"),
        (Brave, 422, brave(422, "VALIDATION"), InvalidInput, "rejected the query (HTTP 422)"),
        (Brave, 404, "<html>nothing".into(), UpstreamHttp, "Brave has no answer (HTTP 404)"),
        (Brave, 302, String::new(), UpstreamHttp, "(HTTP 302)"),
        (Searxng, 403, "<html>".into(), UpstreamHttp, "add `json` to `search: formats:`"),
        (
            Searxng,
            429,
            "Too Many Requests".into(),
            RateLimited,
            "received too many requests (HTTP 429): Too Many Requests",
        ),
        (Tavily, 400, tavily(), InvalidInput, "Tavily rejected the query (HTTP 400): said so"),
        (Tavily, 401, tavily(), AuthRequired, "said so"),
        (Tavily, 429, tavily(), RateLimited, "said so"),
        (Tavily, 432, tavily(), RateLimited, "has no quota left for this key"),
        (Tavily, 433, tavily(), RateLimited, "has no quota left for this key"),
        (Tavily, 500, tavily(), UpstreamHttp, "said so"),
        (Exa, 400, exa("INVALID_REQUEST_BODY"), InvalidInput, "said so"),
        (Exa, 401, exa("INVALID_API_KEY"), AuthRequired, "said so"),
        (Exa, 402, exa("NO_MORE_CREDITS"), RateLimited, "has no quota left for this key"),
        (Exa, 403, exa("FEATURE_DISABLED"), AuthRequired, "said so"),
        (Exa, 429, r#"{"error":"said so"}"#.into(), RateLimited, "said so"),
        (Exa, 503, String::new(), UpstreamHttp, "Exa has no answer (HTTP 503)"),
    ] {
        let failure = refused(provider, status, &[SOON], &body).await;
        assert!(failure.kind == kind && failure.text().contains(words), "{provider:?} {status}: {failure:?}");
    }
}

#[tokio::test]
async fn a_rate_limit_failure_states_the_time_to_wait() {
    const MONTH: &[(&str, &str)] = &[
        SOON,
        ("X-RateLimit-Limit", "1, 15000"),
        ("X-RateLimit-Remaining", "0, 0"),
        ("X-RateLimit-Reset", "1, 1419704"),
    ];
    for (provider, headers, words) in [
        (SearchProvider::Brave, MONTH, "Try again in 17 days."),
        (SearchProvider::Exa, &[("Retry-After", "3600")], "Try again in 60 minutes."),
    ] {
        let failure = refused(provider, 429, headers, "").await;
        assert!(failure.text().ends_with(words), "{}", failure.text());
    }
}

#[tokio::test]
async fn an_unparseable_response_is_an_error_and_not_an_empty_result() {
    let deep = format!(r#"{{"results": {}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    let long = format!(r#"{{"results": [], "x": "{}"}}"#, "x".repeat(BODY_BYTES));
    let providers = [SearchProvider::Brave, SearchProvider::Searxng, SearchProvider::Tavily, SearchProvider::Exa];
    for body in ["", "null", "[]", "{}", "<html>", r#"{"results": 7}"#, r#"{"web": {"results": {}}}"#, &deep, &long] {
        for provider in providers {
            let answer = body.to_owned();
            let (_, found) = asked(provider, &query("rust"), move |_| Reply::new(200, answer.clone())).await;
            let error = found.unwrap_err();
            let beginning: String = body.chars().take(40).collect();
            assert!(matches!(error, WebSearchError::Protocol(_)), "{provider:?} {beginning}: {error:?}");
        }
    }
}

#[tokio::test]
async fn a_page_beyond_the_range_of_a_provider_is_refused_without_a_request() {
    let server = TestServer::plain(|_| Reply::new(500, "")).await;
    for (provider, page) in [(SearchProvider::Brave, 10), (SearchProvider::Tavily, 4), (SearchProvider::Exa, 20)] {
        let far = WebQuery { page, ..query("rust") };
        let bounds = WebSearchContext { deadline: Instant::now() + Duration::from_secs(120), may_reach: &|_| Ok(()) };
        let error = service(provider, server.url(""), None).search(&far, bounds).await.unwrap_err();
        assert!(matches!(error, WebSearchError::QueryRefused(_)), "{provider:?}: {error:?}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_denied_host_receives_no_search_request_and_redirects_are_not_followed() {
    let other = Arc::new(TestServer::plain(|_| Reply::new(200, "{}")).await);
    let to = other.url("/").to_string();
    let server = TestServer::plain(move |_| Reply::redirect(307, &to)).await;
    let service = service(SearchProvider::Exa, server.url(""), Some(KEY));
    let deadline = Instant::now() + Duration::from_secs(120);
    let refuses = |host: &str| Err(ToolFailure::new(ErrorKind::PermissionDenied, format!("not {host}")));
    let error = service.search(&query("rust"), WebSearchContext { deadline, may_reach: &refuses }).await.unwrap_err();
    let failure = error.into_failure();
    assert_eq!((failure.kind, failure.text().as_str()), (ErrorKind::PermissionDenied, "not 127.0.0.1"));
    assert!(server.requests().is_empty());
    let error =
        service.search(&query("rust"), WebSearchContext { deadline, may_reach: &|_| Ok(()) }).await.unwrap_err();
    assert!(matches!(error, WebSearchError::Failed(_)), "{error:?}");
    assert_eq!((server.requests().len(), other.requests().len()), (1, 0));
}

#[tokio::test]
async fn a_search_service_without_a_key_receives_no_authorization_header() {
    let server = TestServer::plain(|_| Reply::json(&json!({"results": []}))).await;
    let bounds = WebSearchContext { deadline: Instant::now() + Duration::from_secs(120), may_reach: &|_| Ok(()) };
    let found = service(SearchProvider::Searxng, server.url(""), None).search(&query("rust"), bounds).await;
    assert_eq!(found.unwrap(), []);
    assert!(!server.requests()[0].headers.contains_key("authorization"));
}
