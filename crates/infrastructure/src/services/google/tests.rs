use super::*;
use crate::{
    egress::{connector::SystemNetwork, host::HostPatterns},
    web::testing::{ReceivedRequest, Reply, TestServer},
};
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tokio::sync::Notify;
use toolstead_domain::{SilentCaller, testing::fake_credentials::FakeCredentials};

const DOUBT: &str = "It may have been done.";

fn refusal(code: u16, reason: &str, message: &str) -> Reply {
    let error = json!({"code": code, "message": message, "errors": [{"reason": reason, "message": message}]});
    Reply::json(&json!({ "error": error })).status(code)
}

fn reads(server: &TestServer) -> GoogleRequest {
    GoogleRequest { url: server.url("/v1/x?y=z"), effect: RequestEffect::Reads, answer_bytes: 1_000 }
}

fn changes(server: &TestServer) -> GoogleRequest {
    let effect = RequestEffect::Changes { body: json!({"a": 1}), doubt: DOUBT };
    GoogleRequest { url: server.url("/v1/x"), effect, answer_bytes: 1_000 }
}

async fn call(
    server: &TestServer,
    credentials: &FakeCredentials,
    principal: &Principal,
    request: &GoogleRequest,
) -> Result<Value, ToolFailure> {
    let reach = WebClient::new(Arc::new(SystemNetwork::default()), HostPatterns::default());
    let account = GoogleApiClient {
        service: "Gmail",
        reach: &reach,
        credentials,
        principal,
        resource: resource("gmail", &server.url("/below")),
        judge: &|_| Ok(()),
        caller: &SilentCaller,
        deadline: Instant::now() + Duration::from_secs(9), // before a silent server is given up
    };
    account.call(request).await
}

fn holding() -> FakeCredentials {
    FakeCredentials::none().holding(&Principal::local(), "gmail", "t1")
}

/// Returns each reply once, and the last one forever.
async fn saying(replies: Vec<Reply>) -> TestServer {
    let next = AtomicUsize::new(0);
    TestServer::plain(move |_: &ReceivedRequest| {
        let at = next.fetch_add(1, Ordering::Relaxed).min(replies.len() - 1);
        replies[at].clone()
    })
    .await
}

#[tokio::test]
async fn a_request_uses_only_the_credentials_of_its_principal() {
    let server = saying(vec![Reply::json(&json!({"ok": true}))]).await;
    let other = Principal::token("other");
    let credentials = holding().holding(&other, "gmail", "t2");
    assert_eq!(call(&server, &credentials, &Principal::local(), &reads(&server)).await.unwrap(), json!({"ok": true}));
    call(&server, &credentials, &other, &changes(&server)).await.unwrap();
    let nobody = call(&server, &credentials, &Principal::token("third"), &reads(&server)).await.unwrap_err();
    assert_eq!(nobody.kind, ErrorKind::AuthRequired);
    assert!(nobody.text().ends_with("Ask your user to sign in."), "{}", nobody.text());
    let suggestion = Suggestion::SignIn { grant: "gmail".into(), principal: Some("token:third".into()) };
    assert_eq!(nobody.suggestion.as_deref(), Some(&suggestion));
    let [first, second] = &server.requests()[..] else { panic!("two requests") };
    assert_eq!((first.header("authorization"), first.method.as_str()), ("Bearer t1", "GET"));
    assert_eq!((second.header("authorization"), second.method.as_str()), ("Bearer t2", "POST"));
    assert_eq!(second.json(), json!({"a": 1}));
}

#[tokio::test]
async fn a_request_without_credentials_triggers_sign_in() {
    let server = saying(vec![Reply::json(&json!({}))]).await;
    let credentials = FakeCredentials::none().signing_in_as("t9");
    call(&server, &credentials, &Principal::local(), &reads(&server)).await.unwrap();
    assert_eq!(credentials.asked(), ["headers gmail", "sign_in gmail", "headers gmail"]);
    assert_eq!(server.requests()[0].header("authorization"), "Bearer t9");
}

#[tokio::test]
async fn refused_credentials_are_renewed_once() {
    let unauthorized = || refusal(401, "authError", "Request had invalid authentication credentials.");
    for request in [reads, changes] {
        let server = saying(vec![unauthorized(), Reply::json(&json!({"ok": 1}))]).await;
        let credentials = holding().renewing_to("t2");
        let answer = call(&server, &credentials, &Principal::local(), &request(&server)).await.unwrap();
        assert_eq!(answer, json!({"ok": 1}));
        let seen: Vec<String> = server.requests().iter().map(|seen| seen.header("authorization").to_owned()).collect();
        assert_eq!(seen, ["Bearer t1", "Bearer t2"]);

        let server = saying(vec![unauthorized()]).await;
        let credentials = holding().renewing_to("t2").renewing_to("t3");
        let failure = call(&server, &credentials, &Principal::local(), &request(&server)).await.unwrap_err();
        assert_eq!((failure.kind, server.requests().len()), (ErrorKind::AuthRequired, 2));
        assert!(!failure.text().contains("t1"), "{}", failure.text());
    }
    // The user signs in if the credentials cannot be renewed.
    let server = saying(vec![unauthorized(), Reply::json(&json!({}))]).await;
    let credentials = holding().signing_in_as("t4");
    call(&server, &credentials, &Principal::local(), &reads(&server)).await.unwrap();
    assert_eq!(server.requests()[1].header("authorization"), "Bearer t4");
}

#[tokio::test]
async fn google_errors_map_to_error_kinds_and_describe_the_next_step() {
    for (code, reason, kind, next) in [
        (400, "invalidArgument", ErrorKind::InvalidInput, ""),
        (403, "insufficientPermissions", ErrorKind::AuthRequired, "has not granted all of `gmail`"),
        (403, "accessNotConfigured", ErrorKind::PermissionDenied, ""),
        (403, "dailyLimitExceeded", ErrorKind::PermissionDenied, ""),
        (403, "rateLimitExceeded", ErrorKind::RateLimited, "Try again"),
        (404, "notFound", ErrorKind::NotFound, ""),
        (408, "requestTimeout", ErrorKind::UpstreamHttp, DOUBT),
        (409, "duplicate", ErrorKind::UpstreamHttp, ""),
        (410, "deleted", ErrorKind::UpstreamHttp, ""),
        (412, "conditionNotMet", ErrorKind::UpstreamHttp, ""),
        (429, "rateLimitExceeded", ErrorKind::RateLimited, "Retry-After: 120"),
        (500, "backendError", ErrorKind::UpstreamHttp, DOUBT),
        (503, "backendError", ErrorKind::UpstreamHttp, DOUBT),
    ] {
        let reply = refusal(code, reason, "No `that`\nis not so.\u{1b}").header("Retry-After", "120");
        let server = saying(vec![reply]).await;
        let failure = call(&server, &holding(), &Principal::local(), &changes(&server)).await.unwrap_err();
        assert_eq!(failure.kind, kind, "{code} {reason}");
        let text = failure.text();
        assert_eq!(text.contains(DOUBT), next == DOUBT, "{text}");
        let said = text.contains(&code.to_string()) && text.contains(reason) && text.contains("`No that is not so.`");
        assert!(said && text.contains(next) && !text.contains('\n'), "{text}");
        assert_eq!(server.requests().len(), 1, "what changes something is never repeated: {code}");
    }
}

#[tokio::test]
async fn a_read_request_is_retried_after_too_many_requests() {
    let too_many = || refusal(403, "userRateLimitExceeded", "slow down");
    let server = saying(vec![too_many(), Reply::json(&json!({"ok": 1}))]).await;
    let answer = call(&server, &holding(), &Principal::local(), &reads(&server)).await.unwrap();
    assert_eq!((answer, server.requests().len()), (json!({"ok": 1}), 2));
}

#[tokio::test]
async fn invalid_responses_fail_with_specific_error_kinds() {
    for (reply, kind) in [
        (Reply::new(200, "no JSON"), ErrorKind::UpstreamProtocol),
        (Reply::new(200, format!("{}{}", "[".repeat(400), "]".repeat(400))), ErrorKind::UpstreamProtocol),
        (Reply::new(200, " ".repeat(2_000)), ErrorKind::TooLarge),
        (Reply::redirect(302, "http://127.0.0.1:1/"), ErrorKind::UpstreamHttp),
    ] {
        let server = saying(vec![reply]).await;
        let failure = call(&server, &holding(), &Principal::local(), &reads(&server)).await.unwrap_err();
        assert_eq!((failure.kind, server.requests().len()), (kind, 1));
    }
    let server = saying(vec![Reply::new(204, "")]).await;
    assert_eq!(call(&server, &holding(), &Principal::local(), &changes(&server)).await.unwrap(), Value::Null);
}

#[tokio::test]
async fn a_change_with_a_lost_response_is_reported_as_possibly_made() {
    for reply in [
        Reply::raw("HTTP/1.1 2"),
        Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"),
        Reply::raw("HTTP/1.1 500 Broken\r\nContent-Length: 100\r\n\r\n{"),
        Reply::raw("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"),
        Reply::redirect(301, "http://127.0.0.1:1/"),
        Reply::redirect(302, "http://127.0.0.1:1/"),
        Reply::redirect(303, "/done"),
        Reply::redirect(307, "/v1/x"),
        Reply::redirect(308, "file:///x"),
        Reply::new(304, ""),
        Reply::new(408, ""),
    ] {
        let server = saying(vec![reply]).await;
        let failure = call(&server, &holding(), &Principal::local(), &changes(&server)).await.unwrap_err();
        assert!(failure.text().ends_with(DOUBT), "{}", failure.text());
        assert_eq!(server.requests().len(), 1);
    }
    // A request that was never sent had no effect.
    let server = saying(vec![Reply::new(204, "")]).await;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let unsent = GoogleRequest { url: format!("http://{nobody}/v1/x").parse().unwrap(), ..changes(&server) };
    let failure = call(&server, &holding(), &Principal::local(), &unsent).await.unwrap_err();
    assert!(!failure.text().contains(DOUBT), "{}", failure.text());
    // The server does not answer until the deadline.
    let arrived = Arc::new(Notify::new());
    let arrives = arrived.clone();
    let server = TestServer::plain(move |_| {
        arrives.notify_one();
        Reply::silence()
    })
    .await;
    let (credentials, principal, request) = (holding(), Principal::local(), changes(&server));
    let late = tokio::join!(call(&server, &credentials, &principal, &request), async {
        arrived.notified().await;
        tokio::time::pause();
    })
    .0
    .unwrap_err();
    assert_eq!(late.kind, ErrorKind::Timeout);
    assert!(late.text().ends_with(DOUBT), "{}", late.text());
}

#[test]
fn path_segments_are_encoded_and_credentials_are_bound_to_an_origin() {
    for (base, expected) in [
        ("https://gmail.googleapis.com", "https://gmail.googleapis.com/v1/a%2F..%2Fb?q=x%26y"),
        ("https://gw.corp.example:8443/google/", "https://gw.corp.example:8443/google/v1/a%2F..%2Fb?q=x%26y"),
    ] {
        let base = Url::parse(base).unwrap();
        assert_eq!(address(&base, &["v1", "a/../b"], &[("q", "x&y")]).as_str(), expected);
    }
    let origin = resource("gmail", &Url::parse("https://gw.corp.example:8443/google/?x").unwrap());
    assert_eq!((&*origin.grant, &*origin.origin), ("gmail", "https://gw.corp.example:8443"));
}

#[tokio::test]
async fn credentials_in_google_error_messages_are_redacted() {
    for message in ["no `Bearer t1` here", "no Bearer t\u{200b}1 here"] {
        let server = saying(vec![refusal(400, "invalid", message)]).await;
        let failure = call(&server, &holding(), &Principal::local(), &reads(&server)).await.unwrap_err();
        let text = failure.text();
        assert!(text.contains("Bearer …") && !text.contains("t1"), "{text}");
    }
}
