//! Servers behind streamable HTTP.

use super::{
    http_server::{HttpEnd, Piece, Reply, Request, event, http_server, http_server_at, json_reply},
    line_server::plain_answer,
    provider_calls::{Listener, SOON, call, call_with, config, start, tool_names, until, until_ready},
};
use crate::mcp::client::{
    Upstream,
    config::{HttpUpstream, McpTransport, UpstreamConfig},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};
use toolstead_domain::{ProtocolVersion, ProviderState, ToolProvider, error_kind::ErrorKind};
use url::Url;

/// Requests that a server received.
type Log = Arc<Mutex<Vec<Request>>>;

/// Starts a server that records every request before it replies.
async fn noting(reply: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (HttpEnd, UpstreamConfig, Log) {
    let log = Log::default();
    let noted = log.clone();
    let end = http_server(move |request| {
        noted.lock().unwrap().push(request.clone());
        reply(&request)
    })
    .await;
    let config = config(end.transport());
    (end, config, log)
}

fn requests(log: &Log, rpc: &str) -> Vec<Request> {
    log.lock().unwrap().iter().filter(|request| request.rpc() == rpc).cloned().collect()
}

async fn noted(log: &Log, wanted: impl Fn(&[Request]) -> bool) {
    let waiting = async {
        while !wanted(&log.lock().unwrap()) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(SOON, waiting).await.expect("the request comes");
}

fn failed_with(state: &ProviderState, words: &str) -> bool {
    matches!(state, ProviderState::Failed { reason } if reason.contains(words))
}

/// Starts a server that answers `tools/call` with `reply`.
async fn calling(reply: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (HttpEnd, Arc<Upstream>, Log) {
    let (end, config, log) = noting(move |request| match request.rpc() {
        "tools/call" => reply(request),
        _ => request.answer_plainly(Some("session-1")),
    })
    .await;
    let server = start(config);
    until_ready(&server).await;
    (end, server, log)
}

#[tokio::test]
async fn a_legacy_http_server_receives_session_and_version_headers_and_a_final_delete() {
    let (_end, config, log) = noting(|request| request.answer_plainly(Some("session-1"))).await;
    let server = start(config);
    let status = until_ready(&server).await;
    assert_eq!((status.protocol, status.transport), (Some(ProtocolVersion::V20251125), "http"));
    let result = call(&server, "echo", json!({"a": 1})).await.unwrap();
    assert_eq!(result, r#"{"content":[],"structuredContent":{"a":1}}"#);
    timeout(SOON, server.close()).await.unwrap();
    let log = log.lock().unwrap();
    for request in log.iter() {
        let opens = matches!(request.rpc(), "server/discover" | "initialize");
        let session = request.header("mcp-session-id");
        assert_eq!(session, if opens { None } else { Some("session-1") }, "{request:?}");
        assert_eq!(request.header("authorization"), Some("Bearer secret"));
        if request.method == "POST" {
            assert_eq!(request.header("accept"), Some("application/json, text/event-stream"));
        }
        match (request.rpc(), request.method.as_str()) {
            ("initialize", _) | (_, "DELETE") => assert_eq!(request.header("mcp-protocol-version"), None),
            ("server/discover", _) => assert_eq!(request.header("mcp-protocol-version"), Some("2026-07-28")),
            _ => assert_eq!(request.header("mcp-protocol-version"), Some("2025-11-25"), "{request:?}"),
        }
    }
    assert_eq!(log.iter().filter(|request| request.method == "DELETE").count(), 1);
}

#[tokio::test]
async fn a_modern_server_receives_mirrored_headers_and_its_invalid_tools_are_left_out() {
    let (_end, config, log) = noting(|request| match request.rpc() {
        "tools/list" => {
            let annotated = |kind: &str| json!({"properties": {"r": {"type": kind, "x-mcp-header": "Region"}}});
            let good = json!({"name": "gut ä", "inputSchema": annotated("string")});
            let bad = json!({"name": "bad", "inputSchema": annotated("object")});
            request.answer(&json!({"resultType": "complete", "tools": [good, bad]}))
        }
        _ => request.answer_as_new_server(),
    })
    .await;
    let server = start(config);
    let status = until_ready(&server).await;
    assert_eq!((status.protocol, status.tools), (Some(ProtocolVersion::V20260728), Some(1)));
    assert!(status.notes[0].contains("`bad`"), "{:?}", status.notes);
    call(&server, "gut ä", json!({"r": "eu\n"})).await.unwrap();
    let [request] = requests(&log, "tools/call").try_into().unwrap();
    for (name, value) in [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "=?base64?Z3V0IMOk?="),
        ("mcp-param-region", "=?base64?ZXUK?="),
    ] {
        assert_eq!(request.header(name), Some(value), "{name}");
    }
    assert!(log.lock().unwrap().iter().all(|request| request.method == "POST"));
}

#[tokio::test]
async fn a_call_with_stale_mirrored_headers_is_repeated_after_a_new_listing() {
    let lists = AtomicUsize::new(0);
    let (_end, config, log) = noting(move |request| match request.rpc() {
        "tools/list" => {
            let schema = match lists.fetch_add(1, Ordering::SeqCst) {
                0 => json!({}),
                _ => json!({"properties": {"r": {"type": "string", "x-mcp-header": "Region"}}}),
            };
            request.answer(&json!({"resultType": "complete", "tools": [{"name": "t", "inputSchema": schema}]}))
        }
        "tools/call" if request.header("mcp-param-region") != Some("eu") => {
            request.fail(400, -32020, "header mismatch")
        }
        _ => request.answer_as_new_server(),
    })
    .await;
    let server = start(config);
    until_ready(&server).await;
    call(&server, "t", json!({"r": "eu"})).await.unwrap();
    assert_eq!(requests(&log, "tools/call").len(), 2);
}

#[tokio::test]
async fn a_response_stream_delivers_progress_logs_pings_and_the_answer_of_its_call() {
    let (_end, server, log) = calling(|request| {
        let token = &request.message["params"]["_meta"]["progressToken"];
        let note = |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
        let mut bytes = Vec::new();
        for message in [
            note("notifications/progress", json!({"progressToken": token, "progress": 1})),
            note("notifications/message", json!({"level": "info", "data": "hello"})),
            json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}),
            json!({"jsonrpc": "2.0", "id": 987, "result": {"content": [], "wrong": 1}}),
            request.result_message(&json!({"content": [], "right": 1})),
            json!({"jsonrpc": "2.0", "id": request.message["id"], "result": {"content": [], "second": 1}}),
        ] {
            bytes.extend_from_slice(format!(": comment\r\nevent: message\r\ndata: {message}\r\n\r\n").as_bytes());
        }
        Reply::Stream(bytes.chunks(7).map(|chunk| Piece::Bytes(chunk.to_vec())).chain([Piece::StayOpen]).collect())
    })
    .await;
    let listener = Listener::default();
    let result = call_with(&server, "echo", json!({}), &listener, SOON).await.unwrap();
    assert!(result.contains(r#""right":1"#), "{result}");
    assert_eq!(
        (&*listener.progress.lock().unwrap(), &*listener.logs.lock().unwrap()),
        (&vec![1.0], &vec![json!("hello")])
    );
    let pong = json!({"jsonrpc": "2.0", "id": "p", "result": {}});
    assert_eq!(log.lock().unwrap().iter().filter(|request| request.message == pong).count(), 1);
    assert_eq!(server.status().notes, ["answers without a pending request: 1"]);
}

#[tokio::test]
async fn an_ended_session_is_reopened_once_for_all_pending_calls() {
    let sessions = Arc::new(AtomicUsize::new(0));
    let opened = sessions.clone();
    let (_end, config, log) = noting(move |request| {
        if request.rpc() == "initialize" {
            opened.fetch_add(1, Ordering::SeqCst);
        }
        let session = format!("session-{}", opened.load(Ordering::SeqCst));
        let is_over = session == "session-1" && request.rpc() == "tools/call";
        if is_over || request.header("mcp-session-id").is_some_and(|id| id != session) {
            return Reply::Whole(404, vec![], b"no such session".to_vec());
        }
        request.answer_plainly(Some(&session))
    })
    .await;
    let server = start(config);
    until_ready(&server).await;
    let results = futures::future::join_all((0..20).map(|n| call(&server, "echo", json!({"n": n})))).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!((sessions.load(Ordering::SeqCst), requests(&log, "notifications/initialized").len()), (2, 2));
}

#[tokio::test]
async fn a_session_that_ends_repeatedly_fails_the_call_after_one_retry() {
    for refusal in [404, 400] {
        let (_end, server, log) = calling(move |request| match refusal {
            404 => Reply::Whole(404, vec![], vec![]),
            _ => {
                let error = json!({"code": -32000, "message": "Bad Request: No valid session ID provided"});
                json_reply(400, &json!({"jsonrpc": "2.0", "id": null, "error": error, "x": request.rpc()}))
            }
        })
        .await;
        assert_eq!(call(&server, "echo", json!({})).await.unwrap_err().0, ErrorKind::UpstreamProtocol);
        assert_eq!((requests(&log, "initialize").len(), requests(&log, "tools/call").len()), (2, 2));
    }
}

#[tokio::test]
async fn a_request_error_does_not_end_the_session() {
    let (_end, server, log) = calling(|request| {
        let error = json!({"code": -32602, "message": "no browser session of this name"});
        json_reply(400, &json!({"jsonrpc": "2.0", "id": request.message["id"], "error": error}))
    })
    .await;
    let (_, text) = call(&server, "echo", json!({})).await.unwrap_err();
    assert!(text.contains("no browser session of this name"), "{text}");
    assert_eq!((requests(&log, "initialize").len(), requests(&log, "tools/call").len()), (1, 1));
}

#[tokio::test]
async fn a_broken_stream_is_resumed_at_its_last_event_after_the_retry_time() {
    let broken_at = Arc::new(Mutex::new(None::<Instant>));
    let at = broken_at.clone();
    let pending = Mutex::new(Value::Null);
    let (_end, config, log) =
        noting(move |request| match (request.method.as_str(), request.rpc(), request.header("last-event-id")) {
            (_, "tools/call", _) => {
                *pending.lock().unwrap() = request.message.clone();
                *at.lock().unwrap() = Some(Instant::now());
                Reply::Stream(vec![Piece::Bytes(b"id: e1\nretry: 200\ndata:\n\n".to_vec())])
            }
            ("GET", _, Some("e1")) => Reply::Stream(vec![event("e2", &json!({"jsonrpc": "2.0", "method": "x"}))]),
            ("GET", _, Some("e2")) => {
                let result = json!({"content": [], "resumed": true});
                let answer = json!({"jsonrpc": "2.0", "id": pending.lock().unwrap()["id"], "result": result});
                Reply::Stream(vec![event("e3", &answer), Piece::StayOpen])
            }
            _ => request.answer_plainly(Some("session-1")),
        })
        .await;
    let server = start(config);
    until_ready(&server).await;
    assert!(call(&server, "echo", json!({})).await.unwrap().contains(r#""resumed":true"#));
    assert!(broken_at.lock().unwrap().unwrap().elapsed() >= Duration::from_millis(400));
    let resumed: Vec<_> =
        log.lock().unwrap().iter().filter_map(|request| request.header("last-event-id").map(str::to_owned)).collect();
    assert_eq!(resumed, ["e1", "e2"]);
}

#[track_caller]
fn fails(
    kind: ErrorKind,
    words: &'static str,
    reply: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> impl Future<Output = ()> {
    let place = std::panic::Location::caller();
    async move {
        let (_end, config, _log) = noting(move |request| match request.rpc() {
            "tools/call" if request.message["params"]["arguments"]["bad"] == true => reply(request),
            _ => request.answer_plainly(None),
        })
        .await;
        let mut config = config;
        config.limits.message_bytes = 100_000;
        let server = start(config);
        until_ready(&server).await;
        let (found, text) = call(&server, "echo", json!({"bad": true})).await.unwrap_err();
        assert_eq!(found, kind, "{place}: {text}");
        assert!(text.contains(words) && text.contains("`echo` of the MCP server `s`"), "{place}: {text}");
        assert!(!text.contains("secret"), "{place}: {text}");
        if kind != ErrorKind::AuthRequired {
            assert!(call(&server, "echo", json!({})).await.is_ok(), "{place}: the next call");
        }
    }
}

#[tokio::test]
async fn every_invalid_reply_is_a_typed_failure_of_only_its_call() {
    use ErrorKind::{AuthRequired, InvalidInput, RateLimited, UpstreamHttp, UpstreamProtocol};
    let html =
        |status: u16| Reply::Whole(status, vec![("content-type", "text/html".into())], b"<h1>hello</h1>".to_vec());
    fails(UpstreamProtocol, "text/html instead of JSON", move |_| html(200)).await;
    fails(UpstreamProtocol, "HTTP status 202", |_| Reply::Whole(202, vec![], vec![])).await;
    fails(UpstreamHttp, "status 500: <h1>hello</h1>", move |_| html(500)).await;
    fails(UpstreamHttp, "redirects are not followed", |_| {
        Reply::Whole(307, vec![("location", "http://127.0.0.1:9/mcp?token=secret".into())], vec![])
    })
    .await;
    fails(RateLimited, "accepts no requests for 7 s", |_| Reply::Whole(429, vec![("retry-after", "7".into())], vec![]))
        .await;
    // A date is relative to the server's date, regardless of the local time.
    fails(RateLimited, "accepts no requests for 30 s", |_| {
        let until = ("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT".into());
        Reply::Whole(429, vec![("date", "Wed, 21 Oct 2026 07:28:00 GMT".into()), until], vec![])
    })
    .await;
    fails(AuthRequired, "403", |_| Reply::Whole(403, vec![], vec![])).await;
    fails(AuthRequired, "Bearer realm", |_| {
        Reply::Whole(401, vec![("www-authenticate", "Bearer realm=\"x\"".into())], vec![])
    })
    .await;
    fails(InvalidInput, "-32602", |request| request.fail(200, -32602, "no such thing")).await;
    fails(InvalidInput, "-32602", |request| request.fail(400, -32602, "no such thing")).await;
    fails(UpstreamProtocol, "id of another request", |request| {
        json_reply(200, &json!({"jsonrpc": "2.0", "id": request.message["id"].to_string(), "result": {}}))
    })
    .await;
    fails(UpstreamProtocol, "not JSON", |_| {
        Reply::Whole(200, vec![("content-type", "application/json".into())], b"{".to_vec())
    })
    .await;
    fails(UpstreamProtocol, "more than 100000 bytes", |request| request.answer(&json!({"x": "x".repeat(200_000)})))
        .await;
    fails(UpstreamProtocol, "longer than 100000 bytes", |request| {
        Reply::Stream(vec![event("1", &request.result_message(&json!({"x": "x".repeat(200_000)})))])
    })
    .await;
    fails(UpstreamProtocol, "stream ended before the answer", |_| {
        Reply::Stream(vec![Piece::Bytes(b": hello\n\n".to_vec())])
    })
    .await;
    fails(UpstreamProtocol, "connection failed", |_| Reply::Cut).await;
}

#[tokio::test]
async fn a_server_that_requires_a_login_reports_that_and_receives_no_further_calls() {
    for status in [401, 403] {
        let (_end, config, log) = noting(move |_| Reply::Whole(status, vec![], vec![])).await;
        let server = start(config);
        let wants = |state: &ProviderState| matches!(state, ProviderState::NeedsAuthorization { .. });
        until(&server, |status| wants(&status.state)).await;
        let before = log.lock().unwrap().len();
        assert_eq!(call(&server, "echo", json!({})).await.unwrap_err().0, ErrorKind::AuthRequired);
        assert_eq!(log.lock().unwrap().len(), before);
    }
}

#[tokio::test]
async fn an_unreachable_server_is_failed_and_becomes_ready_once_reachable_again() {
    let (end, config, _log) = noting(|request| request.answer_plainly(None)).await;
    let url = end.url.clone();
    let server = start(config);
    until_ready(&server).await;
    drop(end);
    // Open connections are still served.
    let down = |state: &ProviderState| failed_with(state, "cannot be reached");
    let failing = async {
        while !down(&server.state()) {
            let _ = futures::future::join_all((0..8).map(|n| call(&server, "echo", json!({"n": n})))).await;
        }
    };
    timeout(SOON, failing).await.unwrap();
    assert_eq!(tool_names(&server).await, ["mcp__s__echo"]);
    let address = url.socket_addrs(|| None).unwrap()[0];
    let _again = http_server_at(address, |request| request.answer_plainly(None)).await;
    until_ready(&server).await;
    assert!(call(&server, "echo", json!({})).await.is_ok());
}

#[tokio::test]
async fn a_timed_out_call_is_cancelled_at_a_legacy_server() {
    let (_end, server, log) = calling(|_| Reply::Hang).await;
    let (kind, _) =
        call_with(&server, "echo", json!({}), &Listener::default(), Duration::from_millis(300)).await.unwrap_err();
    assert_eq!(kind, ErrorKind::Timeout);
    noted(&log, |log| log.iter().any(|request| request.rpc() == "notifications/cancelled")).await;
    let [cancelled] = requests(&log, "notifications/cancelled").try_into().unwrap();
    let [called] = requests(&log, "tools/call").try_into().unwrap();
    assert_eq!(cancelled.message["params"]["requestId"], called.message["id"]);
    assert_eq!(cancelled.header("mcp-session-id"), Some("session-1"));
}

#[tokio::test]
async fn a_timed_out_call_at_a_modern_server_sends_no_cancellation_notification() {
    let (_end, config, log) = noting(|request| match request.rpc() {
        "tools/call" => Reply::Hang,
        _ => request.answer_as_new_server(),
    })
    .await;
    let server = start(config);
    until_ready(&server).await;
    call_with(&server, "echo", json!({}), &Listener::default(), Duration::from_millis(300)).await.unwrap_err();
    // After another exchange a notification would have arrived.
    timeout(SOON, server.refresh()).await.unwrap();
    assert!(requests(&log, "notifications/cancelled").is_empty());
}

#[tokio::test]
async fn server_notifications_arrive_on_a_separate_stream_that_is_resumed() {
    let streams = AtomicUsize::new(0);
    let lists = AtomicUsize::new(0);
    let (_end, config, log) = noting(move |request| match (request.method.as_str(), request.rpc()) {
        ("GET", _) => match streams.fetch_add(1, Ordering::SeqCst) {
            0 => Reply::Stream(vec![
                Piece::Bytes(b"retry: 10\n\n".to_vec()),
                event("e1", &json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})),
            ]),
            _ => Reply::Stream(vec![Piece::StayOpen]),
        },
        (_, "tools/list") if lists.fetch_add(1, Ordering::SeqCst) > 0 => {
            request.answer(&json!({"tools": [{"name": "a"}, {"name": "b"}]}))
        }
        _ => request.answer_plainly(Some("session-1")),
    })
    .await;
    let server = start(config);
    until(&server, |status| status.tools == Some(2)).await;
    noted(&log, |log| log.iter().any(|request| request.header("last-event-id") == Some("e1"))).await;
}

#[tokio::test]
async fn an_answer_that_comes_on_another_stream_reaches_its_call() {
    let (sender, calls) = std::sync::mpsc::channel();
    let calls = Mutex::new(calls);
    let (_end, config, _log) = noting(move |request| match (request.method.as_str(), request.rpc()) {
        ("GET", _) => {
            let waiting: Vec<Value> = calls.lock().unwrap().try_iter().collect();
            let answers = waiting.iter().map(|call: &Value| {
                let result = plain_answer(call).unwrap().unwrap();
                event("e", &json!({"jsonrpc": "2.0", "id": call["id"], "result": result}))
            });
            Reply::Stream(
                [Piece::Bytes(b"retry: 20\n\n".to_vec())]
                    .into_iter()
                    .chain(answers)
                    .chain([Piece::Wait(Duration::from_millis(20))])
                    .collect(),
            )
        }
        (_, "tools/call") => {
            sender.send(request.message.clone()).unwrap();
            Reply::Stream(vec![Piece::StayOpen])
        }
        _ => request.answer_plainly(Some("session-1")),
    })
    .await;
    let server = start(config);
    until_ready(&server).await;
    assert!(call(&server, "echo", json!({"a": 1})).await.unwrap().contains(r#"{"a":1}"#));
}

#[tokio::test]
async fn a_hundred_calls_at_once_each_get_their_own_answer() {
    let (_end, server, _log) =
        calling(|request| request.answer(&plain_answer(&request.message).unwrap().unwrap())).await;
    let results = futures::future::join_all((0..100).map(|n| {
        let server = server.clone();
        async move { (n, call(&server, "echo", json!({"n": n})).await.unwrap()) }
    }))
    .await;
    for (n, result) in results {
        assert_eq!(result, format!(r#"{{"content":[],"structuredContent":{{"n":{n}}}}}"#));
    }
}

#[tokio::test]
async fn an_unusable_configured_header_is_reported() {
    let (_end, mut config, _log) = noting(|request| request.answer_plainly(None)).await;
    let McpTransport::Http(http) = &mut config.transport else { unreachable!() };
    http.headers.insert("Mcp-Session-Id".into(), "x".into());
    let server = start(config);
    until(&server, |status| failed_with(&status.state, "`Mcp-Session-Id`")).await;
}

/// Redirect target that must not be visited. Counts its visits.
struct Trap {
    url: String,
    visits: Arc<AtomicUsize>,
    address: SocketAddr,
}

impl Trap {
    async fn set() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let visits = Arc::new(AtomicUsize::new(0));
        let noted = visits.clone();
        tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                noted.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { url: format!("http://{address}/mcp"), visits, address }
    }

    /// Checks that no client has connected. A connection of its own shows that visits are counted.
    async fn was_left_alone(&self) {
        let before = self.visits.load(Ordering::SeqCst);
        TcpStream::connect(self.address).await.unwrap();
        let counted = async {
            while self.visits.load(Ordering::SeqCst) == before {
                tokio::task::yield_now().await;
            }
        };
        timeout(SOON, counted).await.unwrap();
        assert_eq!(self.visits.load(Ordering::SeqCst), 1, "only we have come");
    }
}

/// Checks that a redirect in reply to the selected requests is not followed, and that the server is otherwise usable.
async fn check_led(where_asked: fn(&Request) -> bool, reply: fn(&str) -> Reply) {
    let trap = Trap::set().await;
    let (url, led) = (trap.url.clone(), Arc::new(AtomicUsize::new(0)));
    let noted = led.clone();
    let (_end, config, log) = noting(move |request| {
        if where_asked(request) {
            noted.fetch_add(1, Ordering::SeqCst);
            return reply(&url);
        }
        request.answer_plainly(Some("session-1"))
    })
    .await;
    let server = start(config);
    let tried = |state: &ProviderState| !matches!(state, ProviderState::Connecting);
    until(&server, |status| tried(&status.state)).await;
    if server.state() == ProviderState::Ready {
        noted_any(&log, "GET").await;
        let _ = call(&server, "echo", json!({})).await;
    }
    timeout(SOON, server.close()).await.unwrap();
    assert!(led.load(Ordering::SeqCst) > 0, "it was led astray");
    trap.was_left_alone().await;
}

async fn noted_any(log: &Log, method: &str) {
    noted(log, |requests| requests.iter().any(|request| request.method == method)).await;
}

#[tokio::test]
async fn redirects_are_not_followed_for_any_kind_of_request() {
    let asked: [fn(&Request) -> bool; 7] = [
        |request| request.rpc() == "server/discover",
        |request| request.rpc() == "initialize",
        |request| request.rpc() == "notifications/initialized",
        |request| request.rpc() == "tools/list",
        |request| request.rpc() == "tools/call",
        |request| request.method == "GET",
        |request| request.method == "DELETE",
    ];
    let redirects: [fn(&str) -> Reply; 3] = [
        |url| Reply::Whole(302, vec![("location", url.into())], vec![]),
        |url| Reply::Whole(307, vec![("location", url.into())], vec![]),
        |url| Reply::Whole(308, vec![("location", url.replace("127.0.0.1", "localhost"))], vec![]),
    ];
    for where_asked in asked {
        for redirect in redirects {
            check_led(where_asked, redirect).await;
        }
    }
}

#[tokio::test]
async fn a_login_challenge_does_not_cause_requests_to_other_addresses() {
    let challenge: fn(&str) -> Reply = |url| {
        let metadata = format!("Bearer resource_metadata=\"{url}\", authorization_uri=\"{url}\"");
        Reply::Whole(401, vec![("www-authenticate", metadata), ("location", url.into())], vec![])
    };
    check_led(|request| request.rpc() == "server/discover", challenge).await;
    check_led(|request| request.rpc() == "tools/call", challenge).await;
    check_led(|request| request.method == "GET", challenge).await;
}

#[tokio::test]
async fn a_link_local_server_is_failed_with_the_reason() {
    let url = Url::parse("http://169.254.169.254/mcp").unwrap();
    let transport = McpTransport::Http(HttpUpstream { url, headers: BTreeMap::new() });
    let server = start(config(transport));
    until(&server, |status| failed_with(&status.state, "169.254.169.254 is not a public address but a link-local one"))
        .await;
}
