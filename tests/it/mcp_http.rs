//! The MCP server over streamable HTTP.

use crate::support::{
    Events, HttpFront, PATIENCE, TOKEN, TestApp, call, echo, endless, initialize, legacy, messages, modern, only, soon,
    text_of,
};
use reqwest::{Method, StatusCode};
use rmcp::{
    ServiceExt,
    model::{CallToolRequestParams, ClientConfig, ProtocolVersion, SubscriptionFilter},
    service::{ClientLifecycleMode, ClientServiceExt},
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};
use toolstead_application::CallSettings;
use toolstead_domain::{
    CancelReason, Category, ExecutionOutcome, InputRequest, InputRequired, LogLevel, LogMessage, Progress,
    ProviderState, Tool, ToolName, ToolProvider, ToolResult, ToolSource,
    error_kind::ErrorKind,
    testing::{
        samples,
        scripted_provider::{ObservedCallEnd, ScriptedProvider, scripted_tool::ScriptedTool},
    },
};
use toolstead_presentation::mcp_server::http::settings::BearerToken;

fn tool(definition: Value) -> ScriptedTool {
    let name = ToolName::parse(definition["name"].as_str().unwrap()).unwrap();
    let definition = definition.as_object().unwrap().clone();
    ScriptedTool::of(Tool::new(name, definition, Category::Utility, ToolSource::BuiltIn))
}

fn noisy() -> ScriptedTool {
    let progress = Progress::at;
    ScriptedTool::named("noisy")
        .reports(progress(1.0))
        .logs(LogMessage::new(LogLevel::Info, "half"))
        .reports(progress(2.0))
        .answers(ToolResult::text("done"))
}

/// Requests progress for a call of the noisy tool.
fn with_token(mut request: Value) -> Value {
    request["params"]["_meta"]["progressToken"] = 7.into();
    request
}

#[track_caller]
fn check_error(answer: &(u16, Value), status: u16, code: i64, kind: &str) {
    let (given, answer) = answer;
    let error = &answer["error"];
    assert_eq!(
        (*given, error["code"].as_i64(), error["data"]["kind"].as_str()),
        (status, Some(code), Some(kind)),
        "{answer}"
    );
}

async fn status(request: reqwest::RequestBuilder) -> u16 {
    soon(request.send()).await.unwrap().status().as_u16()
}

/// Waits until the audit log contains this number of finished calls.
async fn recorded(app: &TestApp, calls: usize) -> Vec<ExecutionOutcome> {
    soon(async {
        loop {
            let outcomes = app.outcomes();
            if outcomes.len() == calls && !outcomes.contains(&ExecutionOutcome::Running) {
                return outcomes;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

#[tokio::test]
async fn a_legacy_client_opens_a_session_lists_and_calls_tools_and_ends_the_session() {
    let app = TestApp::with([echo()]).await;
    let front = HttpFront::start(&app).await;
    let response = soon(front.post(&initialize("2025-06-18")).send()).await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/json");
    let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let opened = only(messages(response).await);
    assert_eq!(opened["result"]["protocolVersion"], "2025-06-18");
    assert!(session.len() >= 22 && session.bytes().all(|byte| byte.is_ascii_graphic()), "{session}");

    let (status_code, list) = front.ask_in_session(&session, &legacy(1, "tools/list", json!({}))).await;
    assert_eq!((status_code, &list["result"]), (200, &json!({"tools": [samples::tool("echo").definition()]})));
    let request = legacy(2, "tools/call", call("echo", json!({"message": "hi"})));
    let (_, answer) = front.ask_in_session(&session, &request).await;
    assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 2, "result": {"content": [{"type": "text", "text": "hi"}]}}));
    assert_eq!(front.ask_in_session(&session, &legacy(3, "ping", json!({}))).await.1["result"], json!({}));
    let row = app.log.rows().remove(0);
    assert_eq!((row.principal.as_str(), row.session, row.client.as_str()), ("token:test", session.clone(), "test 1"));

    check_error(&front.ask_in_session(&session, &initialize("2025-06-18")).await, 400, -32600, "already_initialized");
    // An error is an answer like any other.
    check_error(&front.ask_in_session(&session, &legacy(4, "no/such", json!({}))).await, 200, -32601, "not_found");

    let end = |session: &str| front.request(Method::DELETE).header("mcp-session-id", session);
    assert_eq!(status(end(&session)).await, 204);
    assert_eq!(status(end(&session)).await, 404);
    check_error(&front.ask_in_session(&session, &legacy(5, "ping", json!({}))).await, 404, -32600, "session_not_ready");
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(status(front.in_session(&session, &notification)).await, 404);
}

#[tokio::test]
async fn a_legacy_request_requires_a_session_opened_with_the_same_token() {
    let app = TestApp::with([echo()]).await;
    let front = HttpFront::with(&app, |settings| {
        settings.tokens.push(BearerToken { name: "other".into(), secret: "another-token".into() });
    })
    .await;
    let response = soon(front.post(&legacy(1, "tools/list", json!({}))).send()).await.unwrap();
    check_error(&(response.status().as_u16(), only(messages(response).await)), 400, -32600, "session_not_ready");
    assert_eq!(status(front.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))).await, 400);
    assert_eq!(status(front.post(&json!({"jsonrpc": "2.0", "id": 1, "result": {}}))).await, 400);
    assert_eq!(status(front.request(Method::DELETE)).await, 400);
    assert_eq!(status(front.request(Method::GET).header("accept", "text/event-stream")).await, 400);

    let session = front.open_session().await;
    assert_eq!(status(front.in_session(&session, &json!({"jsonrpc": "2.0", "id": 1, "result": {}}))).await, 202);
    let foreign = |request: reqwest::RequestBuilder| {
        let mut request = request.build().unwrap();
        request.headers_mut().insert("authorization", "Bearer another-token".parse().unwrap());
        front.client.execute(request)
    };
    let theirs = foreign(front.in_session(&session, &legacy(1, "ping", json!({}))));
    assert_eq!(soon(theirs).await.unwrap().status(), 404);
    let theirs = foreign(front.request(Method::DELETE).header("mcp-session-id", &session));
    assert_eq!(soon(theirs).await.unwrap().status(), 404);
    let theirs = foreign(front.request(Method::GET).header("mcp-session-id", &session));
    assert_eq!(soon(theirs).await.unwrap().status(), 404);
    assert_eq!(front.ask_in_session(&session, &legacy(1, "ping", json!({}))).await.0, 200);
}

#[tokio::test]
async fn a_modern_client_needs_no_session_and_receives_none() {
    let app = TestApp::with([echo()]).await;
    let front = HttpFront::start(&app).await;
    let request = modern(1, "server/discover", json!({}));
    let response = soon(front.post_modern(&request).header("mcp-session-id", "ignored").send()).await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(!response.headers().contains_key("mcp-session-id"));
    let found = only(messages(response).await);
    assert_eq!(found["result"]["supportedVersions"][0], "2026-07-28");
    let (_, list) = front.ask_modern(&modern(2, "tools/list", json!({}))).await;
    assert_eq!(list["result"]["tools"], json!([samples::tool("echo").definition()]));
    let (_, answer) = front.ask_modern(&modern(3, "tools/call", call("echo", json!({"message": "hi"})))).await;
    assert_eq!(answer["result"], json!({"resultType": "complete", "content": [{"type": "text", "text": "hi"}]}));

    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "no/such"]
    {
        check_error(&front.ask_modern(&modern(4, method, json!({}))).await, 404, -32601, "not_found");
    }
    for method in [Method::GET, Method::DELETE] {
        let request = front.request(method).header("mcp-protocol-version", "2026-07-28");
        let response = soon(request.header("accept", "text/event-stream").send()).await.unwrap();
        assert_eq!((response.status().as_u16(), &response.headers()["allow"]), (405, &"POST".parse().unwrap()));
    }
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(status(front.post(&notification).header("mcp-protocol-version", "2026-07-28")).await, 202);
    let response = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    assert_eq!(status(front.post(&response).header("mcp-protocol-version", "2026-07-28")).await, 400);
}

#[tokio::test]
async fn headers_and_body_of_a_modern_request_must_agree() {
    let mirrored = json!({"name": "mirrored", "inputSchema": {"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"}, "n": {"type": "integer", "x-mcp-header": "N"}}}});
    let app = TestApp::with([tool(mirrored), ScriptedTool::named("naïve")]).await;
    let front = HttpFront::start(&app).await;
    let arguments = json!({"region": "Hello, 世界", "n": 42});
    let request = modern(1, "tools/call", call("mirrored", arguments));
    let check = async |headers: &[(&str, Option<&str>)], status: u16| {
        let mut sent = front.post_modern(&request).build().unwrap();
        let fitting = [("mcp-param-region", Some("=?base64?SGVsbG8sIOS4lueVjA==?=")), ("MCP-Param-N", Some(" 42.0 "))];
        for (name, value) in fitting.iter().chain(headers) {
            let name = reqwest::header::HeaderName::from_bytes(name.as_bytes()).unwrap();
            match value {
                Some(value) => sent.headers_mut().insert(name, value.parse().unwrap()),
                None => sent.headers_mut().remove(name),
            };
        }
        let response = soon(front.client.execute(sent)).await.unwrap();
        let answer = (response.status().as_u16(), only(messages(response).await));
        match status {
            200 => {
                assert_eq!((answer.0, answer.1["result"]["resultType"].as_str()), (200, Some("complete")), "{answer:?}")
            }
            _ => check_error(&answer, 400, -32020, "invalid_input"),
        }
        assert_eq!(answer.1["id"], 1);
    };
    check(&[], 200).await;
    check(&[("mcp-name", Some("=?base64?bWlycm9yZWQ=?="))], 200).await;
    for wrong in [
        ("mcp-protocol-version", None),
        ("mcp-protocol-version", Some("2025-11-25")),
        ("mcp-method", None),
        ("mcp-method", Some("tools/list")),
        ("mcp-method", Some("TOOLS/CALL")),
        ("mcp-name", None),
        ("mcp-name", Some("other")),
        ("mcp-name", Some("=?base64?%%%?=")),
        ("mcp-param-region", None),
        ("mcp-param-region", Some("us-west1")),
        ("mcp-param-n", Some("41")),
        ("mcp-param-n", None),
    ] {
        check(&[wrong], 400).await;
    }
    // The body itself is wrong.
    let mut request = modern(2, "tools/list", json!({}));
    request["params"]["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    check_error(&front.ask_modern(&request).await, 400, -32602, "invalid_input");
    check_error(&front.ask_modern(&legacy(3, "tools/list", json!({}))).await, 400, -32602, "invalid_input");
    let response = soon(front.post(&legacy(4, "server/discover", json!({}))).send()).await.unwrap();
    check_error(&(response.status().as_u16(), only(messages(response).await)), 400, -32602, "invalid_input");
    let mut request = modern(5, "tools/list", json!({}));
    request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "v999".into();
    let sent = front.post(&request).header("mcp-protocol-version", "v999").header("mcp-method", "tools/list");
    let response = soon(sent.send()).await.unwrap();
    let answer = (response.status().as_u16(), only(messages(response).await));
    check_error(&answer, 400, -32022, "unsupported_version");
    assert_eq!((&answer.1["error"]["data"]["requested"], &answer.1["id"]), (&json!("v999"), &json!(5)));
}

#[tokio::test]
async fn requests_without_a_valid_token_host_or_origin_are_rejected() {
    let app = TestApp::with([echo()]).await;
    let front = HttpFront::start(&app).await;
    let ping = legacy(1, "ping", json!({}));
    let plain =
        || front.client.post(front.url("/mcp")).header("content-type", "application/json").body(ping.to_string());
    let response = soon(plain().send()).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["www-authenticate"]),
        (401, &"Bearer".parse().unwrap())
    );
    assert_eq!(status(plain().bearer_auth("wrong")).await, 401);
    let in_url = format!("{}?access_token={TOKEN}", front.url("/mcp"));
    assert_eq!(status(front.client.post(in_url).body(ping.to_string())).await, 401);
    for (header, value) in [("host", "evil.example"), ("origin", "http://evil.example"), ("origin", "null")] {
        assert_eq!(status(front.post(&ping).header(header, value)).await, 403, "{header}: {value}");
        assert_eq!(status(plain().header(header, value)).await, 403);
    }
    // Another program of this machine, or a page that it serves; and a page of this server itself.
    let from = |origin: String| front.post(&initialize("2025-11-25")).header("origin", origin);
    assert_eq!(status(from("http://localhost:6274".into())).await, 403);
    assert_eq!(status(from(format!("http://127.0.0.1:{}", front.address.port() ^ 1))).await, 403);
    assert_eq!(status(from(front.url(""))).await, 200);
    for method in [Method::GET, Method::DELETE, Method::OPTIONS] {
        assert_eq!(status(front.client.request(method, front.url("/mcp"))).await, 401);
    }
    assert_eq!(status(front.request(Method::OPTIONS)).await, 405);
    assert_eq!(status(front.client.get(front.url("/"))).await, 404);
    assert!(app.log.rows().is_empty());
}

#[tokio::test]
async fn every_bad_request_gets_its_status_and_the_next_one_works() {
    let app = TestApp::with([echo()]).await;
    let front = HttpFront::with(&app, |settings| settings.max_body_bytes = 10_000).await;
    let session = front.open_session().await;
    let good = legacy(1, "tools/call", call("echo", json!({"message": "ok"})));
    let raw = |body: &str| {
        let request = front.in_session(&session, &json!({})).body(body.to_owned());
        async { soon(request.send()).await.unwrap() }
    };
    for (body, id, code) in [
        ("{not json", Value::Null, -32700),
        ("", Value::Null, -32700),
        ("[]", Value::Null, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, json!(1), -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\ud800"}}"#, json!(1), -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1e400}}"#, json!(1), -32602),
        // A client's own error does not come back to it.
        (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-31999,"message":"mine"}}"#, Value::Null, -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, Value::Null, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, Value::Null, -32600),
        (r#"{"id":"x","method":"ping"}"#, json!("x"), -32600),
    ] {
        let response = raw(body).await;
        assert_eq!(response.status(), 400, "{body}");
        let answer = only(messages(response).await);
        assert_eq!((&answer["id"], answer["error"]["code"].as_i64()), (&id, Some(code)), "{body}: {answer}");
        assert_eq!(answer["error"]["data"]["kind"], "invalid_input", "{body}: {answer}");
    }
    for (body, code) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":[]}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ecco"}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"elsewhere"}}"#, -32602),
    ] {
        let response = raw(body).await;
        assert_eq!(response.status(), 200, "{body}");
        assert_eq!(only(messages(response).await)["error"]["code"], code, "{body}");
    }
    assert_eq!(raw(&"x".repeat(10_001)).await.status(), 413);
    // One that does not say how long it is.
    let chunks = (0..20).map(|_| Ok::<_, std::io::Error>("x".repeat(1000)));
    let unsized_body = reqwest::Body::wrap_stream(futures::stream::iter(chunks));
    assert_eq!(status(front.in_session(&session, &good).body(unsized_body)).await, 413);
    let sent = |header: &str, value: &str| {
        let mut request = front.in_session(&session, &good).build().unwrap();
        request
            .headers_mut()
            .insert(reqwest::header::HeaderName::from_bytes(header.as_bytes()).unwrap(), value.parse().unwrap());
        let response = front.client.execute(request);
        async { soon(response).await.unwrap().status().as_u16() }
    };
    assert_eq!(sent("content-type", "text/plain").await, 415);
    assert_eq!(sent("accept", "text/html").await, 406);
    assert_eq!(sent("accept", "*/*").await, 200);
    assert_eq!(sent("mcp-protocol-version", "2099-01-01").await, 400);
    assert_eq!(sent("mcp-protocol-version", "2025-03-26").await, 200);
    let strange = |request: reqwest::RequestBuilder| request.header("mcp-protocol-version", "2099-01-01");
    assert_eq!(status(strange(front.request(Method::DELETE))).await, 400);
    assert_eq!(
        status(strange(front.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})))).await,
        400
    );
    let (_, answer) = front.ask_in_session(&session, &good).await;
    assert_eq!(text_of(&answer), "ok");
}

#[tokio::test]
async fn a_response_is_plain_json_unless_notifications_precede_it() {
    let app = TestApp::with([noisy()]).await;
    let front = HttpFront::start(&app).await;
    let session = front.open_session().await;
    let request = with_token(legacy(1, "tools/call", call("noisy", json!({}))));
    let response = soon(front.in_session(&session, &request).send()).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(
        (&response.headers()["cache-control"], &response.headers()["x-accel-buffering"]),
        (&"no-cache".parse().unwrap(), &"no".parse().unwrap())
    );
    let said = messages(response).await;
    let methods: Vec<&str> = said.iter().filter_map(|message| message["method"].as_str()).collect();
    assert_eq!(methods, ["notifications/progress", "notifications/message", "notifications/progress"]);
    assert_eq!(said[0]["params"], json!({"progressToken": 7, "progress": 1}));
    assert_eq!((said.len(), text_of(&said[3])), (4, "done"));

    // A new client that requested no notifications receives none, so its response is plain JSON.
    let response = soon(front.post_modern(&modern(2, "tools/call", call("noisy", json!({})))).send()).await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(text_of(&only(messages(response).await)), "done");
    let mut request = with_token(modern(3, "tools/call", call("noisy", json!({}))));
    request["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "info".into();
    let response = soon(front.post_modern(&request).send()).await.unwrap();
    assert_eq!(messages(response).await.len(), 4);

    // A client that accepts only one content type receives that type.
    let taking = |accept: &str| {
        let mut sent =
            front.in_session(&session, &with_token(legacy(4, "tools/call", call("noisy", json!({}))))).build().unwrap();
        sent.headers_mut().insert("accept", accept.parse().unwrap());
        let response = front.client.execute(sent);
        async { messages(soon(response).await.unwrap()).await }
    };
    assert_eq!(text_of(&only(taking("application/json").await)), "done");
    assert_eq!(taking("text/event-stream").await.len(), 4);
    let mut sent = front.in_session(&session, &legacy(5, "ping", json!({}))).build().unwrap();
    sent.headers_mut().insert("accept", "text/event-stream".parse().unwrap());
    let response = soon(front.client.execute(sent)).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(only(messages(response).await)["result"], json!({}));
}

#[tokio::test]
async fn an_idle_stream_sends_keep_alive_comments() {
    let slow = ScriptedTool::named("slow").reports(Progress::at(1.0)).never_ends();
    let app = TestApp::with([slow]).await;
    let front = HttpFront::with(&app, |settings| settings.keep_alive = Duration::from_millis(20)).await;
    let session = front.open_session().await;
    let request = with_token(legacy(1, "tools/call", call("slow", json!({}))));
    let mut events = Events::of(soon(front.in_session(&session, &request).send()).await.unwrap());
    events.next().await;
    let listening = front.request(Method::GET).header("mcp-session-id", &session).header("accept", "text/event-stream");
    let mut stream = Events::of(soon(listening.send()).await.unwrap());
    for silent in [&mut events, &mut stream] {
        silent.pulse().await;
        silent.pulse().await;
    }
    assert_eq!(status(front.request(Method::DELETE).header("mcp-session-id", &session)).await, 204);
    assert_eq!((events.try_next().await, stream.try_next().await), (None, None));
}

#[tokio::test]
async fn a_legacy_client_receives_list_changes_on_its_latest_stream() {
    let app = TestApp::with([echo()]).await;
    let front = HttpFront::start(&app).await;
    let session = front.open_session().await;
    let listen = async || {
        let request = front.request(Method::GET).header("mcp-session-id", &session);
        Events::of(soon(request.header("accept", "text/event-stream").send()).await.unwrap())
    };
    let refused = front.request(Method::GET).header("mcp-session-id", &session).header("accept", "application/json");
    assert_eq!(status(refused).await, 406);
    let mut first = listen().await;
    app.provider.replace_tools([endless()]);
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    assert_eq!(first.next().await, changed);
    let mut second = listen().await;
    assert_eq!(first.try_next().await, None);
    app.provider.replace_tools([echo()]);
    assert_eq!(second.next().await, changed);
    assert_eq!(status(front.request(Method::DELETE).header("mcp-session-id", &session)).await, 204);
    assert_eq!(second.try_next().await, None);
}

#[tokio::test]
async fn a_modern_subscription_receives_list_changes_and_a_final_response() {
    let app = TestApp::with([echo()]).await;
    let mut front = HttpFront::start(&app).await;
    let request =
        modern(9, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true, "unknownChanged": true}}));
    let mut events = Events::of(soon(front.post_modern(&request).send()).await.unwrap());
    let meta = json!({"io.modelcontextprotocol/subscriptionId": 9});
    let acknowledged = events.next().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"], json!({"_meta": meta, "notifications": {"toolsListChanged": true}}));
    app.provider.replace_tools([endless()]);
    let changed = events.next().await;
    assert_eq!(
        (&changed["method"], &changed["params"]),
        (&json!("notifications/tools/list_changed"), &json!({"_meta": meta}))
    );
    check_error(&front.ask_modern(&modern(10, "subscriptions/listen", json!({}))).await, 200, -32602, "invalid_input");
    let stopping = tokio::spawn(front.server.take().unwrap().stop(Duration::ZERO));
    let end = events.next().await;
    assert_eq!((&end["id"], &end["result"]["resultType"]), (&json!(9), &json!("complete")));
    assert_eq!(end["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 9);
    assert_eq!(events.try_next().await, None);
    soon(stopping).await.unwrap();
}

#[tokio::test]
async fn a_modern_client_that_disconnects_cancels_its_call() {
    let app = TestApp::with([endless()]).await;
    let front = HttpFront::start(&app).await;
    let request = front.post_modern(&modern(1, "tools/call", call("endless", json!({})))).send();
    tokio::select! {
        response = request => panic!("{response:?}"),
        () = soon(app.provider.began(1)) => {}
    }
    soon(app.provider.ended(1)).await;
    assert_eq!(app.provider.ends()[0].1, ObservedCallEnd::Dropped);
    assert_eq!(recorded(&app, 1).await, [ExecutionOutcome::Cancelled(CancelReason::Client)]);
}

#[tokio::test]
async fn a_modern_client_that_disconnects_during_a_stream_cancels_its_call() {
    let slow = ScriptedTool::named("slow").reports(Progress::at(1.0)).never_ends();
    let app = TestApp::with([slow]).await;
    let front = HttpFront::start(&app).await;
    let request = with_token(modern(1, "tools/call", call("slow", json!({}))));
    let mut events = Events::of(soon(front.post_modern(&request).send()).await.unwrap());
    assert_eq!(events.next().await["params"]["progress"], 1);
    drop(events);
    soon(app.provider.ended(1)).await;
    assert_eq!(recorded(&app, 1).await, [ExecutionOutcome::Cancelled(CancelReason::Client)]);
}

/// Says more than the buffers of a connection hold, and does not end.
fn flood() -> ScriptedTool {
    let log = || LogMessage::new(LogLevel::Error, "x".repeat(256 << 10));
    (0..64).fold(ScriptedTool::named("flood").never_ends(), |flood, _| flood.logs(log()))
}

/// Posts a request, reads the status of its response and nothing more.
async fn post_and_stop_reading(front: &HttpFront, request: reqwest::RequestBuilder) -> TcpStream {
    let request = request.build().unwrap();
    let mut text = format!("POST /mcp HTTP/1.1\r\nhost: {}\r\n", front.address);
    let body = request.body().unwrap().as_bytes().unwrap();
    for (name, value) in request.headers() {
        text.push_str(&format!("{name}: {}\r\n", value.to_str().unwrap()));
    }
    text.push_str(&format!("content-length: {}\r\n\r\n{}", body.len(), std::str::from_utf8(body).unwrap()));
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(front.address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    soon(stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    stream
}

#[tokio::test]
async fn a_client_that_stops_reading_does_not_hold_up_the_end_of_its_call() {
    let settings =
        CallSettings { default_timeout: Duration::from_secs(1), grace: Duration::ZERO, ..CallSettings::default() };
    let flooding = || Arc::new(ScriptedProvider::new("scripted").with(flood()));
    let app = TestApp::with_settings(flooding(), settings).await;
    let front = HttpFront::start(&app).await;
    let mut request = modern(1, "tools/call", call("flood", json!({})));
    request["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "info".into();
    let _unread = post_and_stop_reading(&front, front.post_modern(&request)).await;
    let outcomes = recorded(&app, 1).await;
    assert!(matches!(&outcomes[..], [ExecutionOutcome::Failed(ErrorKind::Timeout, _)]), "{outcomes:?}");

    let app = TestApp::of(flooding()).await;
    let mut front = HttpFront::start(&app).await;
    let session = front.open_session().await;
    let request = legacy(1, "tools/call", call("flood", json!({})));
    let _unread = post_and_stop_reading(&front, front.in_session(&session, &request)).await;
    // By the answers to these the response has filled all buffers.
    for id in 2..20 {
        front.ask_in_session(&session, &legacy(id, "ping", json!({}))).await;
    }
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(status(front.in_session(&session, &cancel)).await, 202);
    assert_eq!(recorded(&app, 1).await, [ExecutionOutcome::Cancelled(CancelReason::Client)]);

    let mut request = modern(2, "tools/call", call("flood", json!({})));
    request["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "info".into();
    let _unread_either = post_and_stop_reading(&front, front.post_modern(&request)).await;
    for _ in 0..20 {
        assert_eq!(status(front.client.get(front.url("/healthz"))).await, 200);
    }
    soon(front.server.take().unwrap().stop(Duration::ZERO)).await;
    assert_eq!(app.outcomes()[1], ExecutionOutcome::Cancelled(CancelReason::Shutdown));
}

#[tokio::test]
async fn a_session_call_continues_after_its_client_disconnects_until_it_is_cancelled() {
    let app = TestApp::with([echo(), endless()]).await;
    let front = HttpFront::start(&app).await;
    let session = front.open_session().await;
    let request = front.in_session(&session, &legacy(1, "tools/call", call("endless", json!({})))).send();
    tokio::select! {
        response = request => panic!("{response:?}"),
        () = soon(app.provider.began(1)) => {}
    }
    // Other requests run beside it; by the answers to these the server has seen that the connection is gone.
    for _ in 0..20 {
        let (_, answer) = front.ask_in_session(&session, &legacy(2, "tools/call", call("echo", json!({})))).await;
        assert_eq!(text_of(&answer), "nothing");
    }
    assert_eq!(app.provider.ends().iter().filter(|(_, end)| *end == ObservedCallEnd::Dropped).count(), 0);
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(status(front.in_session(&session, &cancel)).await, 202);
    soon(app.provider.ended(21)).await;
    assert!(recorded(&app, 21).await.contains(&ExecutionOutcome::Cancelled(CancelReason::Client)));
}

#[tokio::test]
async fn a_call_whose_client_disconnected_occupies_no_connection_slot() {
    let app = TestApp::with([endless()]).await;
    let front = HttpFront::with(&app, |settings| settings.max_connections = 4).await;
    let session = front.open_session().await;
    for id in 1..=4_u32 {
        let request = legacy(id.into(), "tools/call", call("endless", json!({})));
        tokio::select! {
            response = front.in_session(&session, &request).send() => panic!("{response:?}"),
            () = soon(app.provider.began(id.into())) => {}
        }
    }
    assert_eq!(front.ask_in_session(&session, &legacy(5, "ping", json!({}))).await.0, 200);
    assert!(app.provider.ends().is_empty());
}

#[tokio::test]
async fn a_cancelled_call_receives_no_response() {
    let app = TestApp::with([endless()]).await;
    let front = HttpFront::start(&app).await;
    let session = front.open_session().await;
    let request = front.in_session(&session, &legacy(1, "tools/call", call("endless", json!({})))).send();
    let cancel = async {
        soon(app.provider.began(1)).await;
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
        status(front.in_session(&session, &cancel)).await
    };
    let (response, cancelled) = tokio::join!(soon(request), cancel);
    assert_eq!(cancelled, 202);
    assert_eq!(messages(response.unwrap()).await, Vec::<Value>::new());
    assert_eq!(recorded(&app, 1).await, [ExecutionOutcome::Cancelled(CancelReason::Client)]);
}

#[tokio::test]
async fn input_requests_fail_if_the_client_did_not_declare_the_capability() {
    let question = InputRequest { method: "sampling/createMessage".into(), params: json!({"maxTokens": 1}) };
    let questions = InputRequired { requests: [("q".to_owned(), question)].into(), state: None };
    let app = TestApp::with([
        ScriptedTool::named("asks").needs_input(questions),
        ScriptedTool::named("lacks").fails(ErrorKind::MissingCapability, "needs sampling"),
        ScriptedTool::named("panics").panics("ouch"),
    ])
    .await;
    let front = HttpFront::start(&app).await;
    let answer = front.ask_modern(&modern(1, "tools/call", call("asks", json!({})))).await;
    check_error(&answer, 400, -32021, "missing_capability");
    assert_eq!(answer.1["error"]["data"]["requiredCapabilities"], json!({"sampling": {}}));
    check_error(
        &front.ask_modern(&modern(2, "tools/call", call("lacks", json!({})))).await,
        400,
        -32021,
        "missing_capability",
    );
    let mut able = modern(3, "tools/call", call("asks", json!({})));
    able["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"sampling": {}});
    let (_, answer) = front.ask_modern(&able).await;
    assert_eq!(answer["result"]["resultType"], "input_required");
    let session = front.open_session().await;
    for (tool, kind) in [("asks", "unavailable"), ("lacks", "missing_capability"), ("panics", "internal")] {
        let (status, answer) = front.ask_in_session(&session, &legacy(1, "tools/call", call(tool, json!({})))).await;
        let kind_told = &answer["result"]["_meta"]["toolstead/errorKind"];
        assert_eq!((status, &answer["result"]["isError"], kind_told), (200, &json!(true), &json!(kind)), "{tool}");
    }
}

#[tokio::test]
async fn requests_over_the_limit_are_refused_and_ending_a_session_frees_its_slot() {
    let app = TestApp::with([endless()]).await;
    let front = HttpFront::with(&app, |settings| {
        settings.max_in_flight = 1;
        settings.max_sessions = 1;
    })
    .await;
    let session = front.open_session().await;
    let running = front.in_session(&session, &legacy(1, "tools/call", call("endless", json!({})))).send();
    let refused = async {
        soon(app.provider.began(1)).await;
        let refused = front.ask_in_session(&session, &legacy(2, "ping", json!({}))).await;
        check_error(&refused, 503, -32603, "rate_limited");
        status(front.request(Method::DELETE).header("mcp-session-id", &session)).await
    };
    let (response, ended) = tokio::join!(soon(running), refused);
    assert_eq!((response.unwrap().status(), ended), (StatusCode::OK, 204));
    soon(front.open_session()).await;
}

#[tokio::test]
async fn idle_sessions_are_evicted_for_new_sessions_and_connected_sessions_remain() {
    let app = TestApp::with([endless()]).await;
    let front = HttpFront::with(&app, |settings| settings.max_sessions = 2).await;
    let ping = legacy(1, "ping", json!({}));
    // The first one listens, so that it is in use; the others are left without a word.
    let listening = front.open_session().await;
    let get = front.request(Method::GET).header("accept", "text/event-stream").header("mcp-session-id", &listening);
    let stream = soon(get.send()).await.unwrap();
    assert_eq!(stream.status(), 200);
    let mut left = front.open_session().await;
    for _ in 0..5 {
        let new = front.open_session().await;
        assert_eq!(front.ask_in_session(&left, &ping).await.0, 404);
        left = new;
    }
    assert_eq!(front.ask_in_session(&listening, &ping).await.0, 200);
    // If all connections are in use, a further one is rejected.
    let get = front.request(Method::GET).header("accept", "text/event-stream").header("mcp-session-id", &left);
    let other = soon(get.send()).await.unwrap();
    let response = soon(front.post(&initialize("2025-11-25")).send()).await.unwrap();
    check_error(&(response.status().as_u16(), only(messages(response).await)), 503, -32603, "rate_limited");
    assert_eq!((stream.status(), other.status()), (StatusCode::OK, StatusCode::OK));
}

/// A connection on which tests say what goes over the wire.
struct Wire(TcpStream);

impl Wire {
    async fn open(front: &HttpFront) -> Self {
        Self(soon(TcpStream::connect(front.address)).await.unwrap())
    }

    async fn send(&mut self, text: &str) {
        soon(self.0.write_all(text.as_bytes())).await.unwrap();
    }

    /// Asks with the token for something that is not there, and returns the status.
    async fn ask_with_token(&mut self) -> String {
        self.send(&format!("PUT /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\r\n")).await;
        self.status().await
    }

    /// The status of the next answer, of which the rest is read and dropped.
    async fn status(&mut self) -> String {
        let mut answer = Vec::new();
        while !answer.ends_with(b"served here") && !answer.ends_with(b"alive\n") {
            let byte = soon(self.0.read_u8()).await.unwrap();
            answer.push(byte);
        }
        String::from_utf8(answer[9..12].to_vec()).unwrap()
    }

    /// Returns when the server has closed it.
    async fn closed(mut self) {
        let mut rest = Vec::new();
        // A reset says the same.
        let _ = soon(self.0.read_to_end(&mut rest)).await;
        assert_eq!(rest, b"");
    }
}

#[tokio::test]
async fn connections_without_a_token_do_not_block_authenticated_clients() {
    let app = TestApp::with([echo()]).await;
    let front = HttpFront::with(&app, |settings| settings.max_connections = 4).await;
    let mut client = Wire::open(&front).await;
    assert_eq!(client.ask_with_token().await, "405");
    let mut flood = Vec::new();
    for at in 0..20 {
        let mut wire = Wire::open(&front).await;
        // Nothing, half a head, or a whole one with a token that is none.
        match at % 3 {
            0 => {}
            1 => wire.send("POST /mcp HTTP/1.1\r\nhost: loc").await,
            _ => wire.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: ").await,
        }
        flood.push(wire);
    }
    let health = front.client.get(front.url("/healthz"));
    assert_eq!(status(health).await, 200);
    assert_eq!(front.ask_in_session(&front.open_session().await, &legacy(1, "ping", json!({}))).await.0, 200);
    assert_eq!(client.ask_with_token().await, "405", "who has shown a token is left alone");
    // The oldest ones made room.
    for wire in flood.into_iter().take(16) {
        wire.closed().await;
    }
}

#[tokio::test]
async fn a_client_over_the_connection_limit_waits_for_a_free_connection() {
    let app = TestApp::with([echo()]).await;
    let front = HttpFront::with(&app, |settings| settings.max_connections = 1).await;
    let mut first = Wire::open(&front).await;
    assert_eq!(first.ask_with_token().await, "405");
    let mut second = Wire::open(&front).await;
    let mut waiting = Box::pin(second.ask_with_token());
    let early = tokio::time::timeout(Duration::from_millis(200), &mut waiting).await;
    assert!(early.is_err(), "{early:?}");
    drop(first);
    assert_eq!(waiting.await, "405");
}

#[tokio::test]
async fn a_page_of_an_allowed_origin_may_call_and_read_the_answers() {
    const PAGE: &str = "https://app.example";
    let app = TestApp::with([echo()]).await;
    let front = HttpFront::with(&app, |settings| settings.allowed_origins.push(PAGE.into())).await;
    let preflight = |origin: &str| {
        let request = front.client.request(Method::OPTIONS, front.url("/mcp")).header("origin", origin.to_owned());
        let request = request.header("access-control-request-method", "POST");
        request.header("access-control-request-headers", "authorization,content-type,mcp-session-id,mcp-param-region")
    };
    // Without a token, as browsers ask.
    let response = soon(preflight(PAGE).send()).await.unwrap();
    assert_eq!(response.status(), 204);
    let header = |response: &reqwest::Response, name: &str| {
        let values = response.headers().get_all(name).iter().map(|value| value.to_str().unwrap().to_owned());
        values.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(header(&response, "access-control-allow-origin"), PAGE);
    assert_eq!(header(&response, "access-control-allow-methods"), "GET, POST, DELETE");
    assert_eq!(
        header(&response, "access-control-allow-headers"),
        "authorization, content-type, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name, last-event-id, \
         mcp-param-region"
    );
    assert!(header(&response, "vary").contains("Origin"));
    assert!(!response.headers().contains_key("access-control-allow-credentials"));

    let check = async |request: reqwest::RequestBuilder, status: u16| {
        let response = soon(request.header("origin", PAGE).send()).await.unwrap();
        assert_eq!(response.status(), status);
        assert_eq!(header(&response, "access-control-allow-origin"), PAGE, "{status}");
        assert!(header(&response, "access-control-expose-headers").contains("mcp-session-id"));
        assert_eq!(header(&response, "vary"), "Origin");
        response
    };
    let opened = check(front.post(&initialize("2025-11-25")), 200).await;
    let session = header(&opened, "mcp-session-id");
    check(front.in_session(&session, &legacy(1, "ping", json!({}))), 200).await;
    check(front.post_modern(&modern(2, "tools/list", json!({}))), 200).await;
    let get = front.request(Method::GET).header("accept", "text/event-stream").header("mcp-session-id", &session);
    check(get, 200).await;
    check(front.post(&json!([])), 400).await;
    check(front.client.post(front.url("/mcp")), 401).await;
    check(front.request(Method::DELETE).header("mcp-session-id", &session), 204).await;
    check(front.client.get(front.url("/healthz")), 200).await;

    for stranger in ["https://evil.example", "null", "http://localhost:6274"] {
        let response = soon(preflight(stranger).send()).await.unwrap();
        assert_eq!(response.status(), 403);
        assert!(!response.headers().contains_key("access-control-allow-origin"));
        let response = soon(front.client.get(front.url("/healthz")).header("origin", stranger).send()).await.unwrap();
        assert!(!response.headers().contains_key("access-control-allow-origin"));
    }
    let rebound = preflight(PAGE).header("host", "evil.example");
    assert_eq!(status(rebound).await, 403);
    let response = soon(front.post(&initialize("2025-11-25")).send()).await.unwrap();
    assert!(!response.headers().contains_key("access-control-allow-origin"), "no page asks");
}

#[tokio::test]
async fn slow_request_headers_and_bodies_time_out() {
    let app = TestApp::with([]).await;
    let front = HttpFront::with(&app, |settings| {
        settings.head_timeout = Duration::from_millis(100);
        settings.body_timeout = Duration::from_millis(100);
    })
    .await;
    let mut head = TcpStream::connect(front.address).await.unwrap();
    head.write_all(b"POST /mcp HTTP/1.1\r\nhost: loc").await.unwrap();
    let mut rest = Vec::new();
    soon(head.read_to_end(&mut rest)).await.unwrap();
    let mut body = TcpStream::connect(front.address).await.unwrap();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{{"
    );
    body.write_all(request.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    soon(body.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408");
}

#[tokio::test]
async fn readiness_fails_while_a_required_server_is_down_and_names_only_that_server() {
    let provider = Arc::new(ScriptedProvider::new("scripted").with(endless()));
    let app = TestApp::of(provider.clone()).await;
    let front = HttpFront::with(&app, |settings| settings.required_servers.push("scripted".into())).await;
    let readyz = async || {
        let response = soon(front.client.get(front.url("/readyz")).send()).await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    soon(async { while readyz().await.0 != 200 {} }).await;
    provider.set_state(ProviderState::Failed { reason: "token hunter2 refused".into() });
    assert_eq!(readyz().await, (503, "the MCP server `scripted` is required and is failed\n".into()));
    provider.set_state(ProviderState::Idle);
    assert_eq!(readyz().await.0, 200, "the next call starts it");
}

#[tokio::test]
async fn readiness_follows_the_providers_and_the_audit_log_and_ends_at_shutdown() {
    let starting = Arc::new(ScriptedProvider::new("scripted").with(endless()));
    starting.fail_list("still starting");
    starting.set_state(ProviderState::Connecting);
    let app = TestApp::of(starting.clone()).await;
    let mut front = HttpFront::start(&app).await;
    let server = front.server.take().unwrap();
    let healthz = || status(front.client.get(front.url("/healthz")));
    let readyz = || status(front.client.get(front.url("/readyz")));
    assert_eq!((healthz().await, readyz().await), (200, 503));
    starting.mend_list();
    starting.set_state(ProviderState::Ready);
    starting.announce_change();
    soon(async { while readyz().await != 200 {} }).await;
    app.log.be_full(true);
    assert_eq!((healthz().await, readyz().await), (200, 503), "no call can be recorded");
    app.log.be_full(false);
    assert_eq!(readyz().await, 200);

    // A call is running.
    let running = tokio::spawn(front.post_modern(&modern(1, "tools/call", call("endless", json!({})))).send());
    soon(app.provider.began(1)).await;
    let stopping = tokio::spawn(server.stop(PATIENCE / 2));
    soon(async { while readyz().await == 200 {} }).await;
    // Every request has a connection of its own, which the listener accepts until the end.
    let stranger = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
    let draining = || status(stranger.get(front.url("/readyz")));
    assert_eq!((draining().await, draining().await, healthz().await), (503, 503, 200));
    for refused in [modern(2, "tools/call", call("endless", json!({}))), modern(3, "server/discover", json!({}))] {
        assert_eq!(status(front.post_modern(&refused)).await, 503);
    }
    assert_eq!(status(front.request(Method::GET)).await, 503);
    // The time of the call passes at once; then the call is cancelled and answered.
    tokio::time::pause();
    tokio::time::advance(PATIENCE / 2).await;
    tokio::time::resume();
    let response = soon(running).await.unwrap().unwrap();
    check_error(&(response.status().as_u16(), only(messages(response).await)), 200, -32603, "cancelled");
    soon(stopping).await.unwrap();
    assert_eq!(app.outcomes(), [ExecutionOutcome::Cancelled(CancelReason::Shutdown)]);
    assert!(app.provider.is_closed());
    assert!(TcpStream::connect(front.address).await.is_err(), "the listener is closed last");
}

#[tokio::test]
async fn a_tool_list_waits_briefly_for_providers_that_are_still_starting() {
    let starting = Arc::new(ScriptedProvider::new("scripted").with(echo()));
    starting.fail_list("still starting");
    starting.set_state(ProviderState::Connecting);
    let app = TestApp::of(starting.clone()).await;
    let front = HttpFront::start(&app).await;
    let request = modern(1, "tools/list", json!({}));
    let ready = async {
        tokio::task::yield_now().await;
        starting.mend_list();
        starting.set_state(ProviderState::Ready);
        starting.announce_change();
    };
    let ((_, list), ()) = tokio::join!(front.ask_modern(&request), ready);
    assert_eq!(list["result"]["tools"][0]["name"], "echo");
    assert_eq!(starting.name(), "scripted");
}

#[tokio::test]
async fn the_official_sdk_is_served_in_both_generations() {
    let app = TestApp::with([echo(), noisy()]).await;
    let front = HttpFront::start(&app).await;
    let transport = || {
        let config = StreamableHttpClientTransportConfig::with_uri(front.url("/mcp")).auth_header(TOKEN);
        StreamableHttpClientTransport::with_client(front.client.clone(), config)
    };
    let arguments = |text: &str| json!({"message": text}).as_object().unwrap().clone();

    let old = soon(Box::pin(ClientConfig::default().serve(transport()))).await.unwrap();
    assert_eq!(old.peer_info().unwrap().protocol_version, ProtocolVersion::V_2025_11_25);
    assert_eq!(soon(old.list_all_tools()).await.unwrap().len(), 2);
    let call = CallToolRequestParams::new("echo").with_arguments(arguments("old"));
    let result = serde_json::to_value(soon(old.call_tool(call)).await.unwrap()).unwrap();
    assert_eq!(result["content"][0]["text"], "old");
    soon(old.call_tool(CallToolRequestParams::new("noisy"))).await.unwrap();
    old.cancel().await.unwrap();

    let discover = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let new = soon(Box::pin(ClientConfig::default().serve_with_lifecycle(transport(), discover))).await.unwrap();
    assert_eq!(new.peer_info().unwrap().protocol_version, ProtocolVersion::V_2026_07_28);
    let mut subscription = soon(new.listen(SubscriptionFilter::builder().tools_list_changed().build())).await.unwrap();
    let call = CallToolRequestParams::new("echo").with_arguments(arguments("new"));
    let result = serde_json::to_value(soon(new.call_tool(call)).await.unwrap()).unwrap();
    assert_eq!(result["content"][0]["text"], "new");
    app.provider.replace_tools([endless()]);
    assert!(soon(subscription.next()).await.unwrap().is_some());
    assert_eq!(soon(new.list_all_tools()).await.unwrap()[0].name, "endless");
    new.cancel().await.unwrap();
}
