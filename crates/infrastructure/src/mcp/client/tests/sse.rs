//! Servers behind the old HTTP+SSE transport.

use super::{
    http_server::{HttpEnd, Piece, Reply, Request, http_server},
    line_server::plain_answer,
    provider_calls::{Listener, SOON, call, call_with, config, start, tool_names, until, until_ready},
};
use crate::mcp::client::{
    Upstream, UpstreamStatus,
    config::{HttpUpstream, McpTransport, UpstreamConfig},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    net::TcpListener,
    sync::{
        mpsc::{UnboundedSender, unbounded_channel},
        watch,
    },
    time::timeout,
};
use toolstead_domain::{ProtocolVersion, ProviderState, ToolProvider, error_kind::ErrorKind};
use url::Url;

const ENDPOINT: &str = "event: endpoint\ndata: /messages?session=1\n\n";

/// Received requests of the server, and its newest stream.
#[derive(Clone, Default)]
struct Old {
    log: Arc<watch::Sender<Vec<Request>>>,
    stream: Arc<Mutex<Option<UnboundedSender<Vec<u8>>>>>,
}

impl Old {
    /// Starts a server that answers on its stream, unless `reply` returns a reply to the post.
    async fn serve(reply: impl Fn(&Self, &Request) -> Option<Reply> + Send + Sync + 'static) -> (HttpEnd, Self) {
        let old = Self::default();
        let seen = old.clone();
        let end = http_server(move |request| {
            seen.log.send_modify(|log| log.push(request.clone()));
            match (request.method.as_str(), request.target.as_str()) {
                ("GET", "/mcp") => seen.open(),
                ("POST", "/messages?session=1") => reply(&seen, &request).unwrap_or_else(|| {
                    if let Some(result) = plain_answer(&request.message) {
                        seen.say(&request.result_message(&result.unwrap_or_default()));
                    }
                    accepted()
                }),
                _ => Reply::Whole(405, vec![], vec![]),
            }
        })
        .await;
        (end, old)
    }

    fn open(&self) -> Reply {
        let (sender, pieces) = unbounded_channel();
        *self.stream.lock().unwrap() = Some(sender);
        Reply::Stream(vec![Piece::Bytes(ENDPOINT.into()), Piece::From(pieces)])
    }

    fn say(&self, message: &Value) {
        self.say_bytes(format!("event: message\ndata: {message}\n\n"));
    }

    fn say_bytes(&self, bytes: impl Into<Vec<u8>>) {
        let stream = self.stream.lock().unwrap();
        let _ = stream.as_ref().unwrap().send(bytes.into());
    }

    fn close_stream(&self) {
        *self.stream.lock().unwrap() = None;
    }

    fn requests(&self, rpc: &str) -> Vec<Request> {
        self.log.borrow().iter().filter(|request| request.rpc() == rpc).cloned().collect()
    }

    /// Waits until `count` matching requests have arrived.
    async fn noted(&self, count: usize, wanted: impl Fn(&Request) -> bool) {
        let mut log = self.log.subscribe();
        let waiting = log.wait_for(|log| log.iter().filter(|request| wanted(request)).count() >= count);
        timeout(SOON, waiting).await.expect("the request comes").unwrap();
    }
}

fn accepted() -> Reply {
    Reply::Whole(202, vec![], b"Accepted".to_vec())
}

fn reached_at(url: &Url) -> HttpUpstream {
    let headers = BTreeMap::from([("Authorization".to_owned(), "Bearer secret".to_owned())]);
    HttpUpstream { url: url.clone(), headers }
}

fn by_sse(end: &HttpEnd) -> UpstreamConfig {
    config(McpTransport::Sse(reached_at(&end.url)))
}

async fn ready(
    reply: impl Fn(&Old, &Request) -> Option<Reply> + Send + Sync + 'static,
) -> (HttpEnd, Old, Arc<Upstream>) {
    let (end, old) = Old::serve(reply).await;
    let server = start(by_sse(&end));
    until_ready(&server).await;
    (end, old, server)
}

fn failed_with(status: &UpstreamStatus, words: &str) -> bool {
    matches!(&status.state, ProviderState::Failed { reason } if reason.contains(words))
}

#[tokio::test]
async fn messages_are_posted_to_the_endpoint_event_address_and_answered_on_the_stream() {
    let (_end, old, server) = ready(|_, _| None).await;
    let status = server.status();
    assert_eq!((status.protocol, status.transport), (Some(ProtocolVersion::V20251125), "sse"));
    assert_eq!(tool_names(&server).await, ["mcp__s__echo"]);
    let result = call(&server, "echo", json!({"a": 1})).await.unwrap();
    assert_eq!(result, r#"{"content":[],"structuredContent":{"a":1}}"#);
    timeout(SOON, server.close()).await.unwrap();
    let stream = old.stream.lock().unwrap().clone().unwrap();
    timeout(SOON, stream.closed()).await.expect("the stream is closed with the connection");
    let log = old.log.borrow();
    let said: Vec<_> = log.iter().map(|request| (request.method.as_str(), request.rpc())).collect();
    let posted = ["initialize", "notifications/initialized", "tools/list", "tools/call"].map(|rpc| ("POST", rpc));
    assert_eq!(said, [&[("GET", "")], posted.as_slice()].concat());
    for request in log.iter() {
        let accept = if request.method == "GET" { "text/event-stream" } else { "application/json, text/event-stream" };
        assert_eq!(request.header("accept"), Some(accept));
        assert_eq!(request.header("authorization"), Some("Bearer secret"));
    }
}

#[tokio::test]
async fn the_stream_delivers_progress_logs_and_pings_before_an_answer() {
    let (_end, old, server) = ready(|old, request| {
        if request.rpc() != "tools/call" {
            return None;
        }
        let token = &request.message["params"]["_meta"]["progressToken"];
        let note = |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
        old.say_bytes(": a comment\n\nevent: other\ndata: {}\n\ndata: no message\n\n");
        old.say(&note("notifications/progress", json!({"progressToken": token, "progress": 1})));
        old.say(&note("notifications/message", json!({"level": "info", "data": "hello"})));
        old.say(&json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}));
        old.say(&json!({"jsonrpc": "2.0", "id": 987, "result": {}}));
        old.say(&request.result_message(&json!({"content": [], "right": 1})));
        // The response arrives before the post is acknowledged.
        Some(Reply::Hang)
    })
    .await;
    let listener = Listener::default();
    let result = call_with(&server, "echo", json!({}), &listener, SOON).await.unwrap();
    assert!(result.contains(r#""right":1"#), "{result}");
    let heard = (listener.progress.lock().unwrap().clone(), listener.logs.lock().unwrap().clone());
    assert_eq!(heard, (vec![1.0], vec![json!("hello")]));
    let pong = json!({"jsonrpc": "2.0", "id": "p", "result": {}});
    old.noted(1, |request| request.message == pong).await;
    let notes = server.status().notes;
    assert_eq!(notes, ["lines of its output that were not messages: 1", "answers without a pending request: 1"]);
}

#[tokio::test]
async fn a_hundred_calls_at_once_each_get_their_own_answer() {
    let (_end, _old, server) = ready(|_, _| None).await;
    let calls = (0..100).map(|n| {
        let server = server.clone();
        async move { (n, call(&server, "echo", json!({"n": n})).await.unwrap()) }
    });
    for (n, result) in futures::future::join_all(calls).await {
        assert_eq!(result, format!(r#"{{"content":[],"structuredContent":{{"n":{n}}}}}"#));
    }
}

#[tokio::test]
async fn a_list_changed_notification_refreshes_the_tool_list() {
    let lists = AtomicUsize::new(0);
    let (_end, old, server) = ready(move |old, request| {
        (request.rpc() == "tools/list" && lists.fetch_add(1, Ordering::SeqCst) > 0).then(|| {
            old.say(&request.result_message(&json!({"tools": [{"name": "a"}, {"name": "b"}]})));
            accepted()
        })
    })
    .await;
    old.say(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    until(&server, |status| status.tools == Some(2)).await;
}

#[tokio::test]
async fn a_stream_that_ends_fails_its_call_and_the_connection_is_reopened() {
    let (_end, old, server) = ready(|old, request| {
        (request.message["params"]["arguments"]["end"] == true).then(|| {
            old.close_stream();
            accepted()
        })
    })
    .await;
    let (kind, text) = call(&server, "echo", json!({"end": true})).await.unwrap_err();
    assert_eq!(kind, ErrorKind::UpstreamProtocol);
    assert!(text.contains("it closed its stream") && text.contains("Check before you repeat it."), "{text}");
    old.noted(2, |request| request.rpc() == "notifications/initialized").await;
    until_ready(&server).await;
    call(&server, "echo", json!({})).await.unwrap();
}

#[tokio::test]
async fn an_event_over_the_size_limit_ends_and_reopens_the_connection() {
    let (end, old) = Old::serve(|old, request| {
        (request.message["params"]["arguments"]["long"] == true).then(|| {
            // The client stops reading at the limit, so a gigabyte would make no difference.
            old.say_bytes("data: ");
            (0..40).for_each(|_| old.say_bytes(vec![b'x'; 1 << 10]));
            accepted()
        })
    })
    .await;
    let mut config = by_sse(&end);
    config.limits.message_bytes = 16 << 10;
    let server = start(config);
    until_ready(&server).await;
    let (kind, text) = call(&server, "echo", json!({"long": true})).await.unwrap_err();
    assert_eq!(kind, ErrorKind::UpstreamProtocol);
    assert!(text.contains("longer than 16384 bytes"), "{text}");
    old.noted(2, |request| request.rpc() == "notifications/initialized").await;
}

#[tokio::test]
async fn a_timed_out_call_is_cancelled_at_the_server() {
    let (_end, old, server) = ready(|_, request| (request.rpc() == "tools/call").then(accepted)).await;
    let time = Duration::from_millis(300);
    let (kind, _) = call_with(&server, "echo", json!({}), &Listener::default(), time).await.unwrap_err();
    assert_eq!(kind, ErrorKind::Timeout);
    let [call] = old.requests("tools/call").try_into().unwrap();
    old.noted(1, |request| {
        request.rpc() == "notifications/cancelled" && request.message["params"]["requestId"] == call.message["id"]
    })
    .await;
}

#[tokio::test]
async fn a_rejected_message_fails_only_its_call_and_a_lost_session_is_reopened() {
    let (_end, old, server) = ready(|_, request| {
        let status = request.message["params"]["arguments"]["status"].as_u64()?;
        Some(Reply::Whole(u16::try_from(status).unwrap(), vec![], b"so it is".to_vec()))
    })
    .await;
    for (status, kind) in
        [(400, ErrorKind::UpstreamHttp), (429, ErrorKind::RateLimited), (307, ErrorKind::UpstreamHttp)]
    {
        let (failed, text) = call(&server, "echo", json!({"status": status})).await.unwrap_err();
        assert_eq!(failed, kind, "{text}");
        assert!(text.contains(&format!("HTTP status {status}: so it is")), "{text}");
    }
    assert_eq!((server.state(), old.requests("initialize").len()), (ProviderState::Ready, 1));
    call(&server, "echo", json!({"status": 404})).await.unwrap_err();
    old.noted(2, |request| request.rpc() == "initialize").await;
    until_ready(&server).await;
    assert!(old.requests("notifications/cancelled").is_empty());
}

#[tokio::test]
async fn a_retry_after_of_the_message_endpoint_is_recorded_as_a_requested_pause() {
    let busy = || {
        let until = ("retry-after", "Wed, 21 Oct 2026 07:38:00 GMT".to_owned());
        Reply::Whole(429, vec![("date", "Wed, 21 Oct 2026 07:28:00 GMT".to_owned()), until], vec![])
    };
    let (_end, _old, server) = ready(move |_, request| (request.rpc() == "tools/call").then(busy)).await;
    let connection = server.shared.current().connection.clone().unwrap();
    assert_eq!(connection.transport.peer().requested_pause(), None);
    assert_eq!(call(&server, "echo", json!({})).await.unwrap_err().0, ErrorKind::RateLimited);
    assert!(connection.transport.peer().requested_pause().is_some());
}

/// Checks that a stream with this beginning is rejected with a reason that contains `words`, and that nothing is
/// posted.
async fn check_start(reply: impl Fn() -> Reply + Send + Sync + 'static, words: &str) {
    let posted = Arc::new(AtomicUsize::new(0));
    let counted = posted.clone();
    let end = http_server(move |request| {
        counted.fetch_add(usize::from(request.method != "GET"), Ordering::SeqCst);
        reply()
    })
    .await;
    let mut config = by_sse(&end);
    config.timeouts.connect = Duration::from_secs(2);
    config.limits.message_bytes = 64 << 10;
    let server = start(config);
    let status = until(&server, |status| status.state != ProviderState::Connecting).await;
    assert!(failed_with(&status, words), "{words}: {:?}", status.state);
    assert_eq!(posted.load(Ordering::SeqCst), 0, "{words}");
}

#[tokio::test]
async fn an_invalid_stream_start_is_reported_and_no_message_is_posted() {
    let stream = |bytes: &'static [u8]| move || Reply::Stream(vec![Piece::Bytes(bytes.to_vec()), Piece::StayOpen]);
    let html = || vec![("content-type", "text/html".to_owned())];
    check_start(move || Reply::Whole(200, html(), b"<html>".to_vec()), "text/html instead of a stream").await;
    check_start(|| Reply::Whole(204, vec![], vec![]), "nothing instead of a stream").await;
    check_start(|| Reply::Whole(404, vec![], b"not here".to_vec()), "HTTP status 404: not here").await;
    check_start(|| Reply::Whole(302, vec![("location", "/else".into())], vec![]), "redirects are not followed").await;
    check_start(stream(b"data: {}\n\n"), "an event of the type `message` instead of `endpoint`").await;
    check_start(stream(b"event: hello\ndata: {}\n\n"), "an event of the type `hello` instead of `endpoint`").await;
    check_start(|| Reply::Stream(vec![Piece::Bytes(b"event: endpoint\n".to_vec())]), "stream ended before").await;
    check_start(|| Reply::Stream(vec![Piece::Bytes(vec![b'x'; 100 << 10])]), "longer than 65536 bytes").await;
    check_start(stream(b"event: endpoint\ndata: \xff\n\n"), "cannot be used").await;
    check_start(stream(b"event: endpoint\ndata: http://\n\n"), "cannot be used").await;
    let long = || format!("event: endpoint\ndata: /{}\n\n", "x".repeat(9000)).into_bytes();
    check_start(move || Reply::Stream(vec![Piece::Bytes(long()), Piece::StayOpen]), "cannot be used").await;
    check_start(stream(b": no event ever\n\n"), "it was not ready within 2 s").await;
    check_start(|| Reply::Hang, "it was not ready within 2 s").await;
}

#[tokio::test]
async fn no_message_goes_to_another_origin() {
    let trap = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = trap.local_addr().unwrap().port();
    for address in [
        format!("http://127.0.0.1:{port}/messages"),
        format!("//127.0.0.1:{port}/messages"),
        format!("http://localhost:{port}/messages"),
        format!("https://127.0.0.1:{port}/messages"),
        format!("http://user:word@127.0.0.1:{port}/messages"),
        "https://example.com/messages".to_owned(),
        "file:///etc/passwd".to_owned(),
        "javascript:alert(1)".to_owned(),
    ] {
        let named = format!("event: endpoint\ndata: {address}\n\n").into_bytes();
        check_start(move || Reply::Stream(vec![Piece::Bytes(named.clone()), Piece::StayOpen]), "requests messages at")
            .await;
    }
    let came = timeout(Duration::ZERO, trap.accept()).await;
    assert!(came.is_err(), "nobody came to the other origin");
}

#[tokio::test]
async fn an_absolute_endpoint_url_of_the_same_origin_is_accepted() {
    let old = Old::default();
    let answers = old.clone();
    let end = http_server(move |request| match request.method.as_str() {
        "GET" => {
            let (sender, pieces) = unbounded_channel();
            *answers.stream.lock().unwrap() = Some(sender);
            let host = request.header("host").unwrap().to_ascii_uppercase();
            let named = format!("event: endpoint\ndata:  HTTP://{host}/messages\n\n");
            Reply::Stream(vec![Piece::Bytes(named.into_bytes()), Piece::From(pieces)])
        }
        _ => {
            if let Some(result) = plain_answer(&request.message) {
                answers.say(&request.result_message(&result.unwrap_or_default()));
            }
            accepted()
        }
    })
    .await;
    let server = start(by_sse(&end));
    until_ready(&server).await;
}

#[tokio::test]
async fn a_required_login_is_reported_from_the_stream_or_the_message_endpoint() {
    let login = || Reply::Whole(401, vec![("www-authenticate", "Bearer realm=\"r\"".to_owned())], vec![]);
    let end = http_server(move |_| login()).await;
    for transport in [McpTransport::Sse(reached_at(&end.url)), McpTransport::Http(reached_at(&end.url))] {
        let server = start(config(transport));
        until(&server, |status| matches!(status.state, ProviderState::NeedsAuthorization { .. })).await;
    }
    let (_end, _old, server) = ready(move |_, request| (request.rpc() == "tools/call").then(login)).await;
    let (kind, text) = call(&server, "echo", json!({})).await.unwrap_err();
    assert_eq!(kind, ErrorKind::AuthRequired, "{text}");
}

#[tokio::test]
async fn an_address_that_rejects_posts_is_tried_as_sse_unless_the_transport_is_fixed() {
    let (end, old) = Old::serve(|_, _| None).await;
    let server = start(config(McpTransport::Http(reached_at(&end.url))));
    assert_eq!(until_ready(&server).await.transport, "sse");
    call(&server, "echo", json!({"a": 1})).await.unwrap();
    // The client reconnects after the stream has ended.
    old.close_stream();
    old.noted(2, |request| request.rpc() == "notifications/initialized").await;
    until_ready(&server).await;
    call(&server, "echo", json!({"a": 1})).await.unwrap();
    assert_eq!(old.requests("server/discover").len(), 1);

    let fixed = start(config(McpTransport::StreamableHttp(reached_at(&end.url))));
    let opened = || old.log.borrow().iter().filter(|request| request.method == "GET").count();
    let before = opened();
    until(&fixed, |status| failed_with(status, "HTTP status 405") && status.transport == "http").await;
    assert_eq!(opened(), before, "who names the transport gets that one");
}

#[tokio::test]
async fn an_address_of_neither_transport_keeps_the_error_of_the_first_message() {
    type Answer = fn(&Request) -> Reply;
    let gets: [Answer; 4] = [
        |_| Reply::Whole(405, vec![], vec![]),
        |_| Reply::Whole(200, vec![("content-type", "text/html".into())], vec![]),
        |_| Reply::Stream(vec![Piece::Bytes(b"data: {}\n\n".to_vec()), Piece::StayOpen]),
        |_| Reply::Stream(vec![Piece::StayOpen]),
    ];
    for get in gets {
        let end = http_server(move |request| match request.method.as_str() {
            "GET" => get(&request),
            _ => Reply::Whole(404, vec![], b"no such page".to_vec()),
        })
        .await;
        let mut config = config(McpTransport::Http(reached_at(&end.url)));
        config.timeouts.probe = Duration::from_millis(100);
        let server = start(config);
        until(&server, |status| failed_with(status, "HTTP status 404: no such page")).await;
    }
}

#[tokio::test]
async fn a_configured_revision_without_sse_support_is_rejected() {
    let (end, _old) = Old::serve(|_, _| None).await;
    let mut config = by_sse(&end);
    config.protocol = Some(ProtocolVersion::NEWEST);
    let server = start(config);
    until(&server, |status| failed_with(status, "not 2026-07-28, which the configuration requires")).await;
}
