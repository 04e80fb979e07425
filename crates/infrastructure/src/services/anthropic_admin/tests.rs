//! Reports over real HTTP, in the shapes that the API documents.

use super::{
    report::{ReportKind, ReportRequest},
    *,
};
use crate::{
    egress::{connector::SystemNetwork, host::HostPatterns},
    web::testing::{ReceivedRequest, Reply, TestServer},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use toolstead_domain::Secret;

const KEY: &str = "sk-ant-admin-0123456789";

async fn asked(
    query: &ReportQuery,
    max_pages: usize,
    reply: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static,
) -> (Vec<ReceivedRequest>, Result<AdminReport, ToolFailure>) {
    let server = TestServer::plain(reply).await;
    let settings = AnthropicAdminSettings { base_url: server.url("/gate"), key: Secret::new(KEY) };
    let reach = WebClient::new(Arc::new(SystemNetwork::default()), HostPatterns::default());
    let deadline = Instant::now() + Duration::from_secs(120);
    let api = AdminApi { settings: &settings, reach: &reach, judge: &|_| Ok(()), deadline };
    let report = api.report(query, max_pages).await;
    let seen = server.requests();
    assert!(seen.iter().all(|seen| !seen.target.contains(KEY)), "the key stands in an address: {seen:?}");
    (seen, report)
}

fn query() -> ReportQuery {
    ReportKind::Cost.query(&ReportRequest { starting_at: "2026-01-01".into(), ..ReportRequest::default() }).unwrap()
}

/// One page of three: each names the next.
fn page(seen: &ReceivedRequest) -> Reply {
    let number: u32 = seen.query("page").map_or(0, |page| page.trim_start_matches("page_").parse().unwrap());
    let next = (number < 2).then(|| format!("page_{}", number + 1));
    Reply::json(&json!({"data": [{"starting_at": number}], "has_more": next.is_some(), "next_page": next}))
}

#[tokio::test]
async fn pages_are_read_up_to_the_limit_and_the_next_page_is_returned() {
    for (max_pages, pages, next) in [(1, 1, Some("page_1")), (2, 2, Some("page_2")), (50, 3, None)] {
        let (seen, report) = asked(&query(), max_pages, page).await;
        let report = report.unwrap();
        assert_eq!((report.pages, report.data.len(), report.next_page.as_deref()), (pages, pages, next));
        assert_eq!(seen.len(), pages);
    }
    let from = ReportQuery { page: Some("page_2".into()), ..query() };
    let (seen, report) = asked(&from, 5, page).await;
    assert_eq!((report.unwrap().data, seen.len()), (vec![json!({"starting_at": 2})], 1));
}

#[tokio::test]
async fn a_report_request_has_the_documented_path_query_and_headers() {
    let wish = ReportRequest {
        starting_at: "2026-01-01T00:00:00Z".into(),
        bucket_width: Some("1h".into()),
        group_by: vec!["model".into(), "speed".into()],
        filters: [("models".to_owned(), vec!["claude a".to_owned()])].into(),
        limit: Some(24),
        ..ReportRequest::default()
    };
    let (seen, _) = asked(&ReportKind::Usage.query(&wish).unwrap(), 1, page).await;
    let seen = &seen[0];
    assert_eq!(
        (seen.method.as_str(), seen.target.as_str()),
        (
            "GET",
            "/gate/v1/organizations/usage_report/messages?starting_at=2026-01-01T00%3A00%3A00Z&bucket_width=1h\
             &group_by%5B%5D=model&group_by%5B%5D=speed&models%5B%5D=claude+a&limit=24"
        )
    );
    let headers = ["x-api-key", "anthropic-version", "anthropic-beta"].map(|name| seen.header(name));
    assert_eq!(headers, [KEY, "2023-06-01", "fast-mode-2026-02-01"]);
    for (action, path) in [
        (ReportKind::Cost, "/gate/v1/organizations/cost_report"),
        (ReportKind::ClaudeCode, "/gate/v1/organizations/usage_report/claude_code"),
    ] {
        let wish = ReportRequest { starting_at: "2026-01-01".into(), ..ReportRequest::default() };
        let (seen, _) = asked(&action.query(&wish).unwrap(), 1, page).await;
        assert_eq!((seen[0].path(), seen[0].header("anthropic-beta")), (path, ""));
    }
}

#[tokio::test]
async fn every_documented_error_has_its_kind() {
    for (status, word, kind, next) in [
        (400, "invalid_request_error", ErrorKind::InvalidInput, "Correct what"),
        (401, "authentication_error", ErrorKind::AuthRequired, "check the key"),
        (403, "permission_error", ErrorKind::AuthRequired, "sk-ant-admin…"),
        (404, "not_found_error", ErrorKind::NotFound, "check its address"),
        (429, "rate_limit_error", ErrorKind::RateLimited, "Try again in 0 s."),
        (500, "api_error", ErrorKind::UpstreamHttp, "Try again later."),
        (529, "overloaded_error", ErrorKind::RateLimited, "Try again in 0 s."),
    ] {
        let body = json!({"type": "error", "error": {"type": word, "message": format!("not with {KEY}")}, "request_id": "req_1"});
        let reply = move |_: &ReceivedRequest| Reply::json(&body).status(status).header("Retry-After", "0");
        let failure = asked(&query(), 1, reply).await.1.unwrap_err();
        let text = failure.text();
        assert!(failure.kind == kind && text.contains("not with ….") && text.contains(next), "{status}: {text}");
        assert!(text.contains(&format!("(HTTP {status})")) && !text.contains(KEY), "{text}");
    }
    let reply = |_: &ReceivedRequest| Reply::new(429, "").header("Retry-After", "3600");
    let failure = asked(&query(), 1, reply).await.1.unwrap_err();
    assert_eq!(failure.data, json!({"retry_after_seconds": 3600.0}));
}

#[tokio::test]
async fn rejects_responses_that_are_not_reports() {
    let endless = json!({"data": [], "has_more": true, "next_page": "page_1"}).to_string();
    for body in ["", "[]", "{}", r#"{"data": 1}"#, r#"{"data": [1]}"#, r#"{"data": [], "has_more": true}"#, &endless] {
        let answer = body.to_owned();
        let report = asked(&query(), 50, move |_| Reply::new(200, answer.clone())).await.1;
        assert_eq!(report.unwrap_err().kind, ErrorKind::UpstreamProtocol, "{body}");
    }
}
