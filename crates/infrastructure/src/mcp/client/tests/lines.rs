//! Servers on byte streams.

use super::{
    line_server::{LineEnd, line_server, modern_answer},
    provider_calls::{Listener, SOON, call, call_with, config, start, tool_names, until, until_ready},
};
use crate::mcp::client::{
    Upstream,
    config::{Backoff, UpstreamConfig},
    connection::{in_flight::RequestPurpose, peer::UpstreamConnectionState, relay::relay},
    transport::lines::LineTransport,
};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{duplex, split},
    sync::{Notify, mpsc},
    time::timeout,
};
use toolstead_domain::{
    Caller, InputRequest, InputResponse, LogMessage, NotAnswered, Progress, ProtocolVersion, ProviderState, ServerName,
    ToolProvider, error_kind::ErrorKind,
};

/// Methods that each connection received.
type Heard = Arc<Mutex<Vec<Vec<String>>>>;

fn note(heard: &Heard, connection: usize, message: &Value) {
    let mut heard = heard.lock().unwrap();
    while heard.len() <= connection {
        heard.push(Vec::new());
    }
    heard[connection].push(message["method"].as_str().unwrap_or("answer").to_owned());
}

/// Returns a server that records every message. `react` may answer it; otherwise the server answers like a legacy
/// server.
fn noting<F>(react: F) -> (UpstreamConfig, Heard)
where
    F: AsyncReact + Send + Sync + Clone + 'static,
{
    let heard = Heard::default();
    let noted = heard.clone();
    let transport = line_server(move |connection, mut end| {
        let (noted, react) = (noted.clone(), react.clone());
        Box::pin(async move {
            while let Some(message) = end.hear().await {
                note(&noted, connection, &message);
                match react.react(connection, &message) {
                    Reaction::Plain => end.answer_plainly(&message).await,
                    Reaction::Silence => {}
                    Reaction::Result(result) => end.answer(&message, result).await,
                    Reaction::Error(code) => end.fail(&message, code, "refused").await,
                    Reaction::End => return,
                }
            }
        })
    });
    (config(transport), heard)
}

enum Reaction {
    Plain,
    Silence,
    Result(Value),
    Error(i64),
    End,
}

trait AsyncReact {
    fn react(&self, connection: usize, message: &Value) -> Reaction;
}

impl<F: Fn(usize, &str, &Value) -> Reaction> AsyncReact for F {
    fn react(&self, connection: usize, message: &Value) -> Reaction {
        self(connection, message["method"].as_str().unwrap_or(""), message)
    }
}

fn plain() -> UpstreamConfig {
    config(line_server(|_, mut end| Box::pin(async move { end.serve_plainly().await })))
}

#[tokio::test]
async fn a_legacy_server_is_initialized_listed_and_called() {
    let (config, heard) = noting(|_: usize, _: &str, _: &Value| Reaction::Plain);
    let server = start(config);
    let status = until_ready(&server).await;
    assert_eq!((status.protocol, status.server.as_deref()), (Some(ProtocolVersion::V20251125), Some("plain 1.0")));
    assert_eq!((status.tools, status.transport, status.notes), (Some(1), "in-process", vec![]));
    assert_eq!(heard.lock().unwrap()[0], ["server/discover", "initialize", "notifications/initialized", "tools/list"]);
    let tools = server.list().await.unwrap();
    assert_eq!((tools[0].name().as_str(), &tools[0].definition()["x-kept"]), ("mcp__s__echo", &json!(1)));
    let result = call(&server, "echo", json!({"z": 1, "a": 9_007_199_254_740_993_i64})).await;
    assert_eq!(result.unwrap(), r#"{"content":[],"structuredContent":{"z":1,"a":9007199254740993}}"#);
}

#[tokio::test]
async fn a_modern_server_receives_log_level_and_metadata_and_may_request_input() {
    let server = start(config(line_server(|_, mut end| {
        Box::pin(async move {
            while let Some(message) = end.hear().await {
                match (modern_answer(&message), message["params"]["arguments"]["ask"] == true) {
                    (Some(Ok(_)), true) => {
                        assert_eq!(message["params"]["_meta"]["io.modelcontextprotocol/logLevel"], "info");
                        assert_eq!(message["params"]["_meta"]["example.com/trace"], "t");
                        end.answer(&message, json!({"resultType": "input_required", "requestState": "st"})).await;
                    }
                    (Some(Ok(result)), false) => end.answer(&message, result).await,
                    (Some(Err(code)), _) => end.fail(&message, code, "no").await,
                    (None, _) => {}
                }
            }
        })
    })));
    let status = until_ready(&server).await;
    assert_eq!((status.protocol, status.server.as_deref()), (Some(ProtocolVersion::V20260728), Some("modern 2.0")));
    let result = call(&server, "echo", json!({"a": 1})).await.unwrap();
    assert_eq!(result, r#"{"content":[],"structuredContent":{"a":1}}"#);
    assert!(call(&server, "echo", json!({"ask": true})).await.unwrap().contains("Some(\"st\")"));
}

#[tokio::test]
async fn a_server_that_ends_on_an_unknown_request_is_restarted_with_initialize() {
    let (config, heard) = noting(|connection: usize, method: &str, _: &Value| match (connection, method) {
        (_, "server/discover") | (1, "tools/call") => Reaction::End,
        _ => Reaction::Plain,
    });
    let server = start(config);
    until_ready(&server).await;
    assert_eq!(call(&server, "echo", json!({})).await.unwrap_err().0, ErrorKind::UpstreamProtocol);
    until(&server, |status| status.state == ProviderState::Ready && heard.lock().unwrap().len() == 3).await;
    let handshake = ["initialize", "notifications/initialized", "tools/list"];
    let heard = heard.lock().unwrap();
    assert_eq!(
        (heard[0].as_slice(), &heard[1][..3], &heard[2][..3]),
        (&["server/discover".to_owned()][..], &handshake.map(String::from)[..], &handshake.map(String::from)[..])
    );
}

#[tokio::test]
async fn a_server_that_ignores_discover_is_initialized_on_the_same_connection() {
    let (mut config, heard) = noting(|_: usize, method: &str, _: &Value| match method {
        "server/discover" => Reaction::Silence,
        _ => Reaction::Plain,
    });
    config.timeouts.probe = Duration::from_millis(20);
    let server = start(config);
    assert_eq!(until_ready(&server).await.protocol, Some(ProtocolVersion::V20251125));
    assert_eq!(heard.lock().unwrap()[0], ["server/discover", "initialize", "notifications/initialized", "tools/list"]);
}

#[tokio::test]
async fn a_modern_server_slow_to_answer_discover_is_reconnected_without_initialize() {
    let heard = Heard::default();
    let noted = heard.clone();
    let transport = line_server(move |connection, mut end| {
        let noted = noted.clone();
        Box::pin(async move {
            let mut late = None;
            while let Some(message) = end.hear().await {
                note(&noted, connection, &message);
                match (message["method"].as_str(), modern_answer(&message)) {
                    (Some("server/discover"), _) if connection == 0 => late = Some(message),
                    (Some("initialize"), _) => {
                        let late = late.take().unwrap();
                        end.answer(&late, modern_answer(&late).unwrap().unwrap()).await;
                        end.fail(&message, -32022, "the initialize handshake is not accepted").await;
                    }
                    (_, Some(Ok(result))) => end.answer(&message, result).await,
                    (_, Some(Err(code))) => end.fail(&message, code, "no").await,
                    (_, None) => {}
                }
            }
        })
    });
    let mut config = config(transport);
    config.timeouts.probe = Duration::from_millis(20);
    let server = start(config);
    assert_eq!(until_ready(&server).await.protocol, Some(ProtocolVersion::V20260728));
    let heard = heard.lock().unwrap();
    assert_eq!(
        (&heard[0][..], &heard[1][..2]),
        (
            &["server/discover", "initialize"].map(String::from)[..],
            &["server/discover", "tools/list"].map(String::from)[..]
        )
    );
}

#[tokio::test]
async fn a_server_that_rejects_initialize_after_discover_receives_a_new_connection() {
    let (config, heard) = noting(|connection: usize, method: &str, _: &Value| match (connection, method) {
        (0, "server/discover" | "initialize") => Reaction::Error(-32022),
        _ => Reaction::Plain,
    });
    let server = start(config);
    assert_eq!(until_ready(&server).await.protocol, Some(ProtocolVersion::V20251125));
    assert_eq!(heard.lock().unwrap()[1][0], "initialize");
}

#[tokio::test]
async fn unsupported_or_unwanted_protocol_versions_are_reported() {
    for (fixed, said, reason) in [
        (None, "1999-01-01", "it requests protocol version `1999-01-01`"),
        (Some(ProtocolVersion::V20241105), "2025-06-18", "it speaks protocol version 2025-06-18 and not 2024-11-05"),
    ] {
        let (mut config, heard) = noting(move |_: usize, method: &str, _: &Value| match method {
            "initialize" => Reaction::Result(json!({"protocolVersion": said})),
            _ => Reaction::Plain,
        });
        config.protocol = fixed;
        let server = start(config);
        until(&server, |status| failed_with(&status.state, reason)).await;
        let discovered = heard.lock().unwrap()[0].contains(&"server/discover".to_owned());
        assert_eq!(discovered, fixed.is_none());
    }
}

#[tokio::test]
async fn a_fixed_version_is_offered_and_agreed_on() {
    for version in [ProtocolVersion::V20241105, ProtocolVersion::V20250326, ProtocolVersion::V20251125] {
        let mut config = plain();
        config.protocol = Some(version);
        let server = start(config);
        assert_eq!(until_ready(&server).await.protocol, Some(version));
    }
}

fn is_of_a_call(message: &Value) -> bool {
    matches!(message["method"].as_str(), Some("tools/call" | "notifications/cancelled"))
}

/// Returns a server that answers calls only when the test does so.
fn held_calls() -> (UpstreamConfig, mpsc::UnboundedReceiver<(Value, mpsc::UnboundedSender<Value>)>) {
    let (calls, queue) = mpsc::unbounded_channel();
    let transport = line_server(move |_, mut end: LineEnd| {
        let calls = calls.clone();
        Box::pin(async move {
            let (sender, mut said) = mpsc::unbounded_channel();
            loop {
                tokio::select! {
                    Some(message) = said.recv() => end.say(message).await,
                    message = end.hear() => match message {
                        Some(message) if is_of_a_call(&message) => {
                            let _ = calls.send((message, sender.clone()));
                        }
                        Some(message) => end.answer_plainly(&message).await,
                        None => return,
                    },
                }
            }
        })
    });
    (config(transport), queue)
}

fn answer(request: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request["id"], "result": result})
}

#[tokio::test]
async fn an_aborted_call_is_cancelled_and_its_late_answer_does_not_affect_other_calls() {
    let (config, mut queue) = held_calls();
    let server = start(config);
    until_ready(&server).await;
    let dropped = tokio::spawn({
        let server = server.clone();
        async move { call(&server, "echo", json!({})).await }
    });
    let (request, say) = queue.recv().await.unwrap();
    dropped.abort();
    let (cancelled, _) = queue.recv().await.unwrap();
    assert_eq!(
        (&cancelled["method"], &cancelled["params"]["requestId"]),
        (&json!("notifications/cancelled"), &request["id"])
    );
    say.send(answer(&request, json!({"content": [], "late": true}))).unwrap();
    let next = tokio::spawn({
        let server = server.clone();
        async move { call(&server, "echo", json!({})).await }
    });
    let (request, say) = queue.recv().await.unwrap();
    for _ in 0..2 {
        say.send(answer(&request, json!({"content": [], "late": false}))).unwrap();
    }
    assert_eq!(next.await.unwrap().unwrap(), r#"{"content":[],"late":false}"#);
    until(&server, |status| status.notes == ["answers without a pending request: 2"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_past_its_deadline_fails_with_a_timeout_and_is_cancelled() {
    let (config, mut queue) = held_calls();
    let server = start(config);
    until_ready(&server).await;
    let (kind, text) =
        call_with(&server, "echo", json!({}), &Listener::default(), Duration::from_millis(100)).await.unwrap_err();
    assert_eq!(kind, ErrorKind::Timeout);
    assert!(text.starts_with("`echo` of the MCP server `s` did not answer within 0.1 s"), "{text}");
    let methods =
        [queue.recv().await.unwrap().0, queue.recv().await.unwrap().0].map(|message| message["method"].clone());
    assert_eq!(methods, ["tools/call", "notifications/cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn progress_resets_the_idle_timeout_that_ends_a_silent_call() {
    let (mut config, mut queue) = held_calls();
    config.timeouts.idle = Some(Duration::from_secs(1));
    let server = start(config);
    until_ready(&server).await;
    let calling = tokio::spawn({
        let server = server.clone();
        async move { call(&server, "echo", json!({})).await }
    });
    let (request, say) = queue.recv().await.unwrap();
    for step in 1..=4 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let params = json!({"progressToken": request["params"]["_meta"]["progressToken"], "progress": step});
        say.send(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})).unwrap();
    }
    assert!(!calling.is_finished());
    assert_eq!(calling.await.unwrap().unwrap_err().0, ErrorKind::Timeout);
}

#[tokio::test]
async fn progress_and_logs_reach_the_caller_unless_progress_is_ignored() {
    let server = start(config(line_server(|_, mut end| {
        Box::pin(async move {
            while let Some(message) = end.hear_method("tools/call").await {
                let token = message["params"]["_meta"]["progressToken"].clone();
                for progress in [1.0, 3.0, 2.0, 4.0] {
                    end.notify("notifications/progress", json!({"progressToken": token, "progress": progress})).await;
                    end.notify("notifications/progress", json!({"progressToken": "nobody", "progress": progress}))
                        .await;
                }
                end.notify("notifications/message", json!({"level": "info", "data": {"a": 1}})).await;
                end.answer(&message, json!({"content": [], "token": token})).await;
                end.notify("notifications/progress", json!({"progressToken": token, "progress": 5.0})).await;
            }
        })
    })));
    let listener = Listener::default();
    call_with(&server, "echo", json!({}), &listener, SOON).await.unwrap();
    // Progress reports that arrive faster than they are read are merged.
    let progress = listener.progress.lock().unwrap().clone();
    assert!(progress.is_sorted() && progress.last() == Some(&4.0) && !progress.contains(&2.0), "{progress:?}");
    assert_eq!(*listener.logs.lock().unwrap(), [json!({"a": 1})]);
    let deaf = Listener { ignores_progress: true, ..Listener::default() };
    let result = call_with(&server, "echo", json!({}), &deaf, SOON).await.unwrap();
    assert!(result.contains(r#""token":null"#) && deaf.progress.lock().unwrap().is_empty(), "{result}");
}

#[tokio::test]
async fn a_server_that_ends_during_a_call_is_reconnected() {
    let (config, _) = noting(|connection: usize, method: &str, _: &Value| match (connection, method) {
        (0, "tools/call") => Reaction::End,
        _ => Reaction::Plain,
    });
    let server = start(config);
    until_ready(&server).await;
    let (kind, text) = call(&server, "echo", json!({})).await.unwrap_err();
    assert_eq!(kind, ErrorKind::UpstreamProtocol);
    assert!(text.contains("it closed its output") && text.contains("Check before you repeat it"), "{text}");
    assert_eq!(tool_names(&server).await, ["mcp__s__echo"]);
    until_ready(&server).await;
    assert!(call(&server, "echo", json!({})).await.is_ok());
}

#[tokio::test]
async fn a_call_waits_for_a_server_that_is_still_starting() {
    let may_begin = Arc::new(Notify::new());
    let gate = may_begin.clone();
    let server = start(config(line_server(move |_, mut end| {
        let gate = gate.clone();
        Box::pin(async move {
            gate.notified().await;
            end.serve_plainly().await;
        })
    })));
    assert!(server.list().await.is_err());
    let calling = tokio::spawn({
        let server = server.clone();
        async move { call(&server, "echo", json!({})).await }
    });
    let (kind, _) =
        call_with(&server, "echo", json!({}), &Listener::default(), Duration::from_millis(20)).await.unwrap_err();
    assert_eq!(kind, ErrorKind::Timeout);
    may_begin.notify_one();
    assert!(calling.await.unwrap().is_ok());
}

fn is_down(state: &ProviderState) -> bool {
    failed_with(state, "")
}

fn failed_with(state: &ProviderState, words: &str) -> bool {
    matches!(state, ProviderState::Failed { reason } if reason.contains(words))
}

#[tokio::test]
async fn calls_to_a_failed_server_are_rejected_without_waiting_for_the_next_attempt() {
    let (mut config, heard) = noting(|_: usize, _: &str, _: &Value| Reaction::End);
    config.retry.first = Duration::from_secs(3600);
    let server = start(config);
    until(&server, |status| is_down(&status.state)).await;
    let (kind, text) = call(&server, "echo", json!({})).await.unwrap_err();
    assert_eq!((kind, heard.lock().unwrap().len()), (ErrorKind::Unavailable, 2));
    assert!(text.contains("cannot be called now: it closed its output"), "{text}");
}

#[tokio::test]
async fn a_call_to_a_failed_server_triggers_an_immediate_retry() {
    let (mut config, heard) = noting(|connection: usize, _: &str, _: &Value| match connection {
        0..=3 => Reaction::End,
        _ => Reaction::Plain,
    });
    config.retry.first = Duration::from_millis(200);
    let server = start(config);
    // The server is down for the second time. An automatic retry would take at least 300 ms.
    until(&server, |status| is_down(&status.state) && heard.lock().unwrap().len() == 4).await;
    let called = async {
        loop {
            if call(&server, "echo", json!({})).await.is_ok() {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, called).await.unwrap();
}

#[tokio::test]
async fn a_call_after_the_loss_of_a_server_waits_for_one_reconnect() {
    let (mut config, _) = noting(|connection: usize, method: &str, _: &Value| match (connection, method) {
        (0, "tools/call") => Reaction::End,
        _ => Reaction::Plain,
    });
    config.retry.first = Duration::from_millis(200);
    let server = start(config);
    until_ready(&server).await;
    assert!(call(&server, "echo", json!({})).await.is_err());
    call(&server, "echo", json!({})).await.unwrap();
}

#[tokio::test]
async fn a_call_is_refused_after_one_reconnect_that_fails() {
    let (mut config, heard) = noting(|connection: usize, method: &str, _: &Value| match (connection, method) {
        (0, "tools/call") | (1.., _) => Reaction::End,
        _ => Reaction::Plain,
    });
    config.retry = Backoff { first: Duration::from_millis(50), longest: Duration::from_secs(60) };
    let server = start(config);
    until_ready(&server).await;
    assert!(call(&server, "echo", json!({})).await.is_err());
    let before = heard.lock().unwrap().len();
    let (kind, text) = call(&server, "echo", json!({})).await.unwrap_err();
    assert!(kind == ErrorKind::Unavailable && text.contains("cannot be called now"), "{text}");
    assert_eq!(heard.lock().unwrap().len(), before + 1);
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_list_changed_notifications_causes_few_listings() {
    let heard = Heard::default();
    let noted = heard.clone();
    let server = start(config(line_server(move |connection, mut end| {
        let noted = noted.clone();
        Box::pin(async move {
            let mut lists = 0;
            while let Some(message) = end.hear().await {
                note(&noted, connection, &message);
                if message["method"] == "tools/list" {
                    lists += 1;
                    let tools: Vec<Value> = (0..lists.min(2)).map(|n| json!({"name": format!("t{n}")})).collect();
                    end.answer(&message, json!({"tools": tools})).await;
                    if lists == 1 {
                        for _ in 0..1000 {
                            end.notify("notifications/tools/list_changed", json!({})).await;
                        }
                    }
                } else {
                    end.answer_plainly(&message).await;
                }
            }
        })
    })));
    until(&server, |status| status.tools == Some(2)).await;
    assert_eq!(tool_names(&server).await, ["mcp__s__t0", "mcp__s__t1"]);
    let unchanged = timeout(Duration::from_millis(500), server.changed()).await;
    let lists = heard.lock().unwrap()[0].iter().filter(|method| *method == "tools/list").count();
    assert!(unchanged.is_err() && lists <= 3, "{lists}");
}

#[tokio::test]
async fn a_modern_server_reports_list_changes_after_a_subscription() {
    let server = start(config(line_server(|_, mut end| {
        Box::pin(async move {
            let mut tools = 1;
            while let Some(message) = end.hear().await {
                match (message["method"].as_str(), modern_answer(&message)) {
                    (Some("subscriptions/listen"), _) => {
                        assert_eq!(message["params"]["notifications"], json!({"toolsListChanged": true}));
                        let meta = json!({"io.modelcontextprotocol/subscriptionId": message["id"]});
                        end.notify("notifications/subscriptions/acknowledged", json!({"_meta": meta})).await;
                        tools = 2;
                        end.notify("notifications/tools/list_changed", json!({"_meta": meta})).await;
                    }
                    (Some("tools/list"), Some(Ok(_))) => {
                        let tools: Vec<Value> = (0..tools).map(|n| json!({"name": format!("t{n}")})).collect();
                        end.answer(&message, json!({"resultType": "complete", "tools": tools})).await;
                    }
                    (_, Some(Ok(result))) => end.answer(&message, result).await,
                    (_, Some(Err(code))) => end.fail(&message, code, "no").await,
                    (_, None) => {}
                }
            }
        })
    })));
    until(&server, |status| status.tools == Some(2)).await;
}

#[tokio::test]
async fn non_message_lines_are_counted_and_overlong_lines_fail_only_their_call() {
    let (mut config, _) = held_calls();
    config.limits.message_bytes = 10_000;
    config.transport = line_server(|_, mut end| {
        Box::pin(async move {
            for noise in ["starting", "", "{\"x\":", "\u{1b}[31m100%\u{1b}[0m", "[1,2]", "7"] {
                end.say_line(noise).await;
            }
            while let Some(message) = end.hear_method("tools/call").await {
                let padding = message["params"]["arguments"]["padding"].as_u64().unwrap_or(0) as usize;
                end.answer(&message, json!({"content": [], "x": "x".repeat(padding)})).await;
            }
        })
    });
    let server = start(config);
    until_ready(&server).await;
    let (long, short) =
        tokio::join!(call(&server, "echo", json!({"padding": 20_000})), call(&server, "echo", json!({"padding": 1})),);
    assert_eq!((long.unwrap_err().0, short.is_ok()), (ErrorKind::UpstreamProtocol, true));
    let too_large = call(&server, "echo", json!({"x": "x".repeat(20_000)})).await.unwrap_err();
    assert_eq!(too_large.0, ErrorKind::TooLarge);
    until(&server, |status| status.notes == ["lines of its output that were not messages: 6"]).await;
}

#[tokio::test]
async fn an_endless_tool_list_is_cut_off_and_its_listed_tools_are_callable() {
    for (cursor, pages, note) in
        [("again", 1000, "cut off after 2 pages: the server repeats a cursor"), ("", 7, "cut off after 7 pages")]
    {
        let (mut config, _) = noting(move |_: usize, method: &str, message: &Value| {
            if method != "tools/list" {
                return Reaction::Plain;
            }
            let page = message["params"]["cursor"].as_str().map_or(0, |cursor| cursor.len() as u64 + 1);
            let next = if cursor.is_empty() { "c".repeat(page as usize) } else { cursor.into() };
            Reaction::Result(json!({"tools": [{"name": format!("t{page}")}], "nextCursor": next}))
        });
        config.limits.pages = pages;
        let server = start(config);
        let status = until_ready(&server).await;
        assert!(status.notes.iter().any(|one| one.contains(note)), "{:?}", status.notes);
        assert!(status.tools >= Some(2) && call(&server, "t0", json!({})).await.is_ok(), "{status:?}");
    }
}

#[tokio::test]
async fn a_server_without_tools_is_ready_and_a_server_with_a_failing_list_is_not() {
    for (code, ready) in [(-32601, true), (-32603, false)] {
        let (config, _) = noting(move |_: usize, method: &str, _: &Value| match method {
            "tools/list" => Reaction::Error(code),
            _ => Reaction::Plain,
        });
        let server = start(config);
        let status = until(&server, |status| status.state != ProviderState::Connecting).await;
        assert_eq!(status.state == ProviderState::Ready, ready, "{status:?}");
    }
}

#[tokio::test]
async fn a_silent_server_fails_at_its_connection_deadline() {
    let (mut config, heard) = noting(|_: usize, _: &str, _: &Value| Reaction::Silence);
    config.timeouts.probe = Duration::from_millis(10);
    config.timeouts.connect = Duration::from_millis(100);
    let server = start(config);
    until(&server, |status| failed_with(&status.state, "not ready within 0.1 s")).await;
    until(&server, |_| heard.lock().unwrap().len() >= 2).await;
    assert_eq!(heard.lock().unwrap()[1][0], "initialize");
}

#[tokio::test]
async fn closing_a_server_ends_pending_calls_and_rejects_later_calls() {
    let (config, mut queue) = held_calls();
    let server = start(config);
    until_ready(&server).await;
    let calling = tokio::spawn({
        let server = server.clone();
        async move { call(&server, "echo", json!({})).await }
    });
    let _held = queue.recv().await.unwrap();
    timeout(SOON, server.close()).await.unwrap();
    assert_eq!(calling.await.unwrap().unwrap_err().0, ErrorKind::UpstreamProtocol);
    assert_eq!((server.state(), server.status().tools), (ProviderState::Closed, Some(1)));
    assert_eq!(call(&server, "echo", json!({})).await.unwrap_err().0, ErrorKind::Unavailable);
    timeout(SOON, server.close()).await.unwrap();
}

#[tokio::test]
async fn a_refresh_requests_the_tool_list_again() {
    let (config, heard) = noting(|_: usize, _: &str, _: &Value| Reaction::Plain);
    let server = start(config);
    until_ready(&server).await;
    timeout(SOON, server.refresh()).await.unwrap();
    let lists = heard.lock().unwrap()[0].iter().filter(|method| *method == "tools/list").count();
    assert_eq!(lists, 2);
}

/// Caller that accepts every question.
#[derive(Debug)]
struct Yes;

#[async_trait::async_trait]
impl Caller for Yes {
    fn progress(&self, _: Progress) {}
    fn log(&self, _: LogMessage) {}
    async fn ask(&self, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        Ok(InputResponse(json!({"action": "accept", "asked": request.params["message"]})))
    }
}

#[tokio::test]
async fn a_question_during_a_call_reaches_a_caller_that_declares_elicitation() {
    let capabilities = json!({"elicitation": {}}).as_object().unwrap().clone();
    let peer = Arc::new(UpstreamConnectionState::new(ServerName::parse("s").unwrap(), capabilities));
    let (ours, theirs) = duplex(1 << 16);
    let (reader, writer) = split(ours);
    let transport = LineTransport::over(Box::new(reader), Box::new(writer), peer, 1 << 20);
    let request = transport.begin(RequestPurpose::Call { progress: false }, true).unwrap();
    let serving = async {
        let (reader, writer) = split(theirs);
        let mut end = LineEnd::new(reader, writer);
        let call = end.hear().await.unwrap();
        end.say(json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"message": "sure?"}}))
            .await;
        let answered = end.hear().await.unwrap();
        end.answer(&call, answered["result"].clone()).await;
        end
    };
    let text = json!({"jsonrpc": "2.0", "id": request.waiting.id, "method": "tools/call"}).to_string().into_bytes();
    let calling = relay(&transport, &request.waiting, &Yes, None, request.exchange(text));
    let (outcome, _end) = tokio::join!(calling, serving);
    let result = outcome.unwrap().into_outcome().unwrap().unwrap();
    assert_eq!(result, json!({"action": "accept", "asked": "sure?"}));
}

/// Caller that refuses each question with an error of its own, and never answers the one about `page`.
#[derive(Default)]
struct Refuses {
    pages: Mutex<Vec<String>>,
    dropped: Arc<Notify>,
}

/// Notifies when dropped.
struct Gone(Arc<Notify>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[async_trait::async_trait]
impl Caller for Refuses {
    fn progress(&self, _: Progress) {}
    fn log(&self, _: LogMessage) {}
    fn elicitation_completed(&self, id: &str) {
        self.pages.lock().unwrap().push(id.to_owned());
    }
    async fn ask(&self, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        if request.params["mode"] == "url" {
            let _gone = Gone(self.dropped.clone());
            return std::future::pending().await;
        }
        Err(NotAnswered::Refused { code: -1, message: "the user rejected it".into() })
    }
}

#[tokio::test]
async fn a_legacy_server_receives_the_callers_error_and_may_withdraw_a_question() {
    let capabilities = json!({"elicitation": {"form": {}, "url": {}}}).as_object().unwrap().clone();
    let peer = Arc::new(UpstreamConnectionState::new(ServerName::parse("s").unwrap(), capabilities));
    let (ours, theirs) = duplex(1 << 16);
    let (reader, writer) = split(ours);
    let transport = LineTransport::over(Box::new(reader), Box::new(writer), peer, 1 << 20);
    let request = transport.begin(RequestPurpose::Call { progress: false }, true).unwrap();
    let caller = Refuses::default();
    let dropped = caller.dropped.clone();
    let serving = async {
        let (reader, writer) = split(theirs);
        let mut end = LineEnd::new(reader, writer);
        let call = end.hear().await.unwrap();
        let ask = |id: i64, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params});
        let page = json!({"mode": "url", "url": "https://a.org", "elicitationId": "e", "message": "m"});
        // Both questions are open at once.
        end.say(ask(1, page)).await;
        end.say(ask(2, json!({"message": "sure?"}))).await;
        let refused = end.hear().await.unwrap();
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(2), &json!(-1)));
        assert_eq!(refused["error"]["message"], "the user rejected it");
        end.notify("notifications/elicitation/complete", json!({"elicitationId": "other"})).await;
        end.notify("notifications/elicitation/complete", json!({"elicitationId": "e"})).await;
        end.notify("notifications/cancelled", json!({"requestId": 1, "reason": "never mind"})).await;
        dropped.notified().await;
        // The cancelled question gets no answer, and the call continues.
        end.say(ask(3, json!({"message": "still?"}))).await;
        assert_eq!(end.hear().await.unwrap()["id"], 3);
        end.answer(&call, json!({"content": []})).await;
        end
    };
    let text = json!({"jsonrpc": "2.0", "id": request.waiting.id, "method": "tools/call"}).to_string().into_bytes();
    let calling = relay(&transport, &request.waiting, &caller, None, request.exchange(text));
    let (outcome, _end) = timeout(SOON, async { tokio::join!(calling, serving) }).await.unwrap();
    assert!(outcome.is_ok());
    assert_eq!(*caller.pages.lock().unwrap(), ["e"]);
}

#[tokio::test]
async fn a_hundred_calls_at_once_each_get_their_own_answer() {
    let (config, mut queue) = held_calls();
    let server = start(config);
    until_ready(&server).await;
    let calls: Vec<_> = (0..100)
        .map(|n| {
            let server: Arc<Upstream> = server.clone();
            tokio::spawn(async move { (n, call(&server, "echo", json!({"n": n})).await.unwrap()) })
        })
        .collect();
    let mut held = Vec::new();
    while held.len() < 100 {
        held.push(queue.recv().await.unwrap());
    }
    // The order is neither first in, first out, nor its reverse.
    held.sort_by_key(|(request, _)| request["params"]["arguments"]["n"].as_i64().unwrap() * 37 % 101);
    for (request, say) in held {
        say.send(answer(&request, json!({"content": [], "n": request["params"]["arguments"]["n"]}))).unwrap();
    }
    for call in calls {
        let (n, result) = call.await.unwrap();
        assert_eq!(result, format!(r#"{{"content":[],"n":{n}}}"#));
    }
}
