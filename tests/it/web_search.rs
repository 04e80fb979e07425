//! Searches of the web and reports of usage through the binary, by services over real HTTP.

use crate::{
    binaries::{Home, stderr, stdout},
    web_server::{Reply, TestServer},
};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};
use tokio::task::block_in_place;

const KEY: &str = "secret-key-0123456789";

/// A home whose configuration names this server.
struct Place {
    home: Home,
    config: PathBuf,
    server: TestServer,
}

impl Place {
    async fn searching(provider: &str, reply: impl Fn() -> Reply + Send + Sync + 'static) -> Self {
        let server = TestServer::plain(move |_| reply()).await;
        let home = Home::new();
        let key = if provider == "duckduckgo" { "" } else { "api_key_env = \"SEARCH_KEY\"\n" };
        let config = home.config(&format!(
            "[search]\nprovider = {provider:?}\nbase_url = {:?}\n{key}",
            server.url("/gate").as_str()
        ));
        Self { home, config, server }
    }

    /// Runs `toolstead FLAGS… call TOOL ARGUMENTS` without a terminal, so that no approver is available. Returns the
    /// exit code and the output.
    fn call(&self, flags: &[&str], tool: &str, arguments: &Value) -> (Option<i32>, String) {
        let mut command =
            self.home.command("/usr/bin/setsid", &["--wait", env!("CARGO_BIN_EXE_toolstead"), "--config"]);
        command.arg(&self.config).args(flags).args(["call", tool]).arg(arguments.to_string());
        command.env("SEARCH_KEY", KEY).env("ADMIN_KEY", KEY).stdin(Stdio::null());
        let output = block_in_place(|| command.output().unwrap());
        let (printed, beside) = (stdout(&output), stderr(&output));
        assert!(!printed.contains(KEY) && !beside.contains(KEY), "the key was printed: {printed}{beside}");
        let message = if output.status.success() { printed } else { format!("{printed}{beside}") };
        (output.status.code(), message)
    }
}

/// The files below a folder that hold the key.
fn holding_key(folder: &Path) -> Vec<PathBuf> {
    let mut holding = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            holding.extend(holding_key(&path));
        } else if fs::read(&path).is_ok_and(|bytes| bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes())) {
            holding.push(path);
        }
    }
    holding
}

fn found() -> Reply {
    Reply::json(&json!({"type": "search", "web": {"results": [
        {"title": "Rust &amp; MCP", "url": "https://example.com/a", "description": "About <strong>Rust</strong>", "age": "2 days ago"},
        {"title": "Other", "url": "https://other.example/b", "description": ""}]}}))
}

#[test]
fn web_search_without_a_configured_provider_is_unavailable_with_the_reason() {
    let home = Home::new();
    let output = home.run(&["call", "web_search", r#"{"query": "rust"}"#]);
    let message = stderr(&output);
    assert!(output.status.code() == Some(4) && message.contains("`[search] provider` names one"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_requires_an_allow_rule_and_the_key_is_sent_only_in_its_header() {
    let place = Place::searching("brave", found).await;
    let asked = json!({"query": "rust mcp", "count": 2});
    let (code, answer) = place.call(&[], "web_search", &asked);
    assert!(code == Some(3) && place.server.requests().is_empty(), "{answer}");
    let ours =
        "1. Rust & MCP (2 days ago)\n   https://example.com/a\n   About Rust\n2. Other\n   https://other.example/b\n";
    let events = place.home.data().join("search.events");
    for rule in ["web_search", "WebSearch", "WebFetch(domain:127.0.0.1)"] {
        let flags = ["--allow", rule, "--events", events.to_str().unwrap()];
        let (code, answer) = place.call(&flags, "web_search", &asked);
        assert!(code == Some(0) && answer.starts_with(ours), "{rule}: {answer}");
    }
    let seen = place.server.requests();
    assert_eq!((seen.len(), seen[0].path()), (3, "/gate/res/v1/web/search"));
    assert!(seen.iter().all(|seen| seen.header("x-subscription-token") == KEY));
    assert!(fs::read_to_string(&events).unwrap().contains("web_search"));
    assert_eq!(holding_key(&place.home.data()), [] as [PathBuf; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_dialect_returns_search_results_in_its_own_format() {
    let place = Place::searching("brave", found).await;
    let call = |dialect: &str, tool: &str, arguments: Value| {
        place.call(&["--dialect", dialect, "--allow", "WebSearch"], tool, &arguments)
    };
    let (code, answer) = call("micro_x", "web_search", json!({"query": "rust mcp", "count": 5}));
    let text = "Search: \"rust mcp\"\nResults: 2\n\n1. Rust & MCP\n   https://example.com/a\n   About Rust\n\n2. Other\n   https://other.example/b";
    assert_eq!((code, answer.trim_end()), (Some(0), text));
    let (code, answer) = call("micro_x", "web_search", json!({"query": "  "}));
    assert!(code != Some(0) && answer.contains("Error: query must not be empty"), "{answer}");
    let (code, answer) =
        call("claude_code", "WebSearch", json!({"query": "rust mcp", "blocked_domains": ["other.example"]}));
    let text = "Web search results for query: \"rust mcp\"\n\nLinks: [{\"title\":\"Rust & MCP\",\"url\":\"https://example.com/a\"}]\n\nREMINDER: ";
    assert!(code == Some(0) && answer.starts_with(text) && answer.contains("Sources:"), "{answer}");
    let both = json!({"query": "rust", "allowed_domains": ["a.example"], "blocked_domains": ["b.example"]});
    let (code, answer) = call("claude_code", "WebSearch", both);
    assert!(code == Some(2) && answer.contains("are both given"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_limit_is_reported_with_the_time_to_wait() {
    let limited = || {
        Reply::new(429, r#"{"error":{"code":"RATE_LIMITED","detail":"Request rate limit exceeded for plan."}}"#)
            .header("Retry-After", "0")
            .header("X-RateLimit-Remaining", "0, 0")
            .header("X-RateLimit-Reset", "1, 1419704")
    };
    let place = Place::searching("brave", limited).await;
    let (code, answer) = place.call(&["--allow", "web_search"], "web_search", &json!({"query": "rust"}));
    let words =
        "Brave received too many requests (HTTP 429): Request rate limit exceeded for plan. Try again in 17 days.";
    assert!(code == Some(1) && answer.contains(words), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn duckduckgo_result_pages_are_parsed_and_a_captcha_is_an_error() {
    const FOUND: &str = r#"<div class="result web-result"><div class="links_main result__body"><h2 class="result__title">
        <a class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fexample.com%2Fa&amp;rut=x">The <b>Rust</b></a></h2>
        <a class="result__snippet" href="x">About <b>it</b></a></div></div>"#;
    let asked = json!({"query": "rust"});
    let place = Place::searching("duckduckgo", || Reply::html(FOUND)).await;
    let (code, answer) = place.call(&["--allow", "web_search"], "web_search", &asked);
    assert_eq!((code, answer.as_str()), (Some(0), "1. The Rust\n   https://example.com/a\n   About it\n"));
    assert_eq!(place.server.requests()[0].target, "/gate/html/?q=rust");
    let captcha =
        || Reply::html("<div class=\"anomaly-modal__title\">Unfortunately, bots use DuckDuckGo too.</div>").status(202);
    let place = Place::searching("duckduckgo", captcha).await;
    let (code, answer) = place.call(&["--allow", "web_search"], "web_search", &asked);
    assert!(code == Some(1) && answer.contains("DuckDuckGo requires a human check"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_micro_x_cost_report_rounds_the_total_after_adding_exact_amounts() {
    let item = |amount: &str| json!({"amount": amount, "currency": "USD", "model": "m"});
    let answer = json!({"data": [{"starting_at": "a", "results": [item("0.3"), item("123.45"), item("0.3")]}], "has_more": false, "next_page": null});
    let server = TestServer::plain(move |_| Reply::json(&answer)).await;
    let home = Home::new();
    let config = home
        .config(&format!("[anthropic_admin]\nbase_url = {:?}\napi_key_env = \"ADMIN_KEY\"\n", server.url("").as_str()));
    let place = Place { home, config, server };
    let asked = json!({"action": "cost", "starting_at": "2026-01-01T00:00:00Z", "bucket_width": "1d", "group_by": ["description"], "limit": 7});
    let (code, reply) = place.call(&["--dialect", "micro_x", "--allow", "anthropic_usage"], "anthropic_usage", &asked);
    let report = json!({"data": [{"starting_at": "a", "results": [
        {"amount_usd": 0, "currency": "USD", "model": "m"},
        {"amount_usd": 1.23, "currency": "USD", "model": "m"},
        {"amount_usd": 0, "currency": "USD", "model": "m"}]}],
        "has_more": false, "next_page": null, "total_amount_usd": 1.24});
    let (label, text) = reply.split_once('\n').unwrap();
    assert_eq!((code, label), (Some(0), "Cost Report:"), "{reply}");
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), report);
    let seen = &place.server.requests()[0];
    assert_eq!(
        seen.target,
        "/v1/organizations/cost_report?starting_at=2026-01-01T00%3A00%3A00Z&bucket_width=1d&group_by%5B%5D=description&limit=7"
    );
    assert_eq!(seen.header("x-api-key"), KEY);
    let (code, reply) = place.call(&[], "anthropic_usage", &asked);
    assert!(code == Some(3), "{reply}");
    let wrong = json!({"action": "spend", "starting_at": "2026-01-01"});
    let (_, reply) = place.call(&["--dialect", "micro_x"], "anthropic_usage", &wrong);
    assert!(reply.contains("Unknown action 'spend'. Must be one of: usage, cost, claude_code."), "{reply}");
    assert_eq!(holding_key(&place.home.data()), [] as [PathBuf; 0]);
}
