//! The MCP server on a pair of byte streams.

use crate::support::{
    PATIENCE, StdioClient, TestApp, call, echo, endless, initialize, legacy, modern, serve_streams, soon, text_of,
};
use async_trait::async_trait;
use rmcp::{
    ServiceExt,
    model::{CallToolRequestParams, ClientConfig, ProtocolVersion, SubscriptionFilter},
    service::{ClientLifecycleMode, ClientServiceExt},
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;
use toolstead_domain::{
    CancelReason, ExecutionOutcome, LogLevel, LogMessage, Progress, ProviderState, Tool, ToolName, ToolResult,
    error_kind::ErrorKind,
    testing::{
        samples,
        scripted_provider::{ObservedCallEnd, ScriptedProvider, scripted_tool::ScriptedTool},
    },
};
use toolstead_presentation::{
    app::App,
    mcp_server::{
        server_identity::ServerIdentity,
        stdio::{
            StdioSettings,
            client_roots::{AppLauncher, FoldersByTrust},
            serve_stdio_in,
        },
    },
};

fn progress(progress: f64) -> Progress {
    Progress { total: Some(100.0), ..Progress::at(progress) }
}

fn log(level: LogLevel, text: &str) -> LogMessage {
    LogMessage::new(level, text).by("tool")
}

#[track_caller]
fn check_error(answer: &Value, code: i64, kind: &str) {
    assert_eq!(
        (answer["error"]["code"].as_i64(), answer["error"]["data"]["kind"].as_str()),
        (Some(code), Some(kind)),
        "{answer}"
    );
}

fn capabilities() -> Value {
    json!({
        "tools": {"listChanged": true}, "resources": {"subscribe": true, "listChanged": true},
        "prompts": {"listChanged": true}, "completions": {}, "logging": {},
    })
}

#[tokio::test]
async fn a_legacy_client_initializes_and_lists_and_calls_tools() {
    let app = TestApp::with([echo()]).await;
    let identity = ServerIdentity { instructions: Some("Echo things.".into()), ..ServerIdentity::default() };
    let mut client = StdioClient::start(&app, StdioSettings { identity, ..StdioSettings::default() });
    let mut answer = client.ask(initialize("2025-06-18")).await;
    let instructions = answer["result"].as_object_mut().unwrap().remove("instructions").unwrap();
    assert!(instructions.as_str().unwrap().starts_with("Echo things.\n\n"), "{instructions}");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        answer,
        json!({"jsonrpc": "2.0", "id": "init", "result": {
            "protocolVersion": "2025-06-18",
            "capabilities": capabilities(),
            "serverInfo": {"name": "toolstead", "version": version}}})
    );
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    let list = client.ask(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
    assert_eq!(list["result"], json!({"tools": [samples::tool("echo").definition()]}));
    let answer = client.ask(legacy(2, "tools/call", call("echo", json!({"message": "hi"})))).await;
    assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 2, "result": {"content": [{"type": "text", "text": "hi"}]}}));
    let rows = app.log.rows();
    assert_eq!((rows[0].client.as_str(), rows[0].principal.as_str()), ("test 1", "local"));
    assert!(!rows[0].session.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_first_list_waits_for_a_server_that_is_slow_to_start() {
    let provider = Arc::new(ScriptedProvider::new("slow").with(echo()).with_foreign_schemas());
    provider.fail_list("not connected yet");
    provider.set_state(ProviderState::Connecting);
    let app = TestApp::of(provider.clone()).await;
    let mut client = StdioClient::legacy(&app).await;
    client.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
    // On the paused clock of the test, which advances only while all tasks are idle.
    tokio::time::sleep(Duration::from_secs(9)).await;
    provider.mend_list();
    provider.set_state(ProviderState::Ready);
    provider.announce_change();
    let answer = client.answer_to(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})).await;
    assert_eq!(answer["result"]["tools"][0]["name"], "echo", "{answer}");
}

#[tokio::test]
async fn initialize_selects_the_requested_legacy_version_or_the_newest_legacy_version() {
    let app = TestApp::with([]).await;
    for (offered, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let mut client = StdioClient::start(&app, StdioSettings::default());
        assert_eq!(client.ask(initialize(offered)).await["result"]["protocolVersion"], agreed);
    }
}

#[tokio::test]
async fn a_modern_client_discovers_lists_and_calls_without_a_handshake() {
    let app = TestApp::with([echo()]).await;
    let mut client = StdioClient::start(&app, StdioSettings::default());
    let found = &client.ask(modern(1, "server/discover", json!({}))).await["result"];
    assert_eq!(found["supportedVersions"][0], "2026-07-28");
    assert_eq!((&found["resultType"], &found["cacheScope"]), (&json!("complete"), &json!("private")));
    let mut offered = capabilities();
    offered["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
    assert_eq!(found["capabilities"], offered);
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "toolstead");

    let list = &client.ask(modern(2, "tools/list", json!({}))).await["result"];
    assert_eq!(list["tools"], json!([samples::tool("echo").definition()]));
    assert_eq!((&list["resultType"], &list["cacheScope"]), (&json!("complete"), &json!("private")));
    assert!(list["ttlMs"].is_u64());

    let mut request = modern(3, "tools/call", call("echo", json!({"message": "hi"})));
    request["params"]["_meta"]["com.example/a"] = 1.into();
    request["params"]["_meta"]["progressToken"] = 3.into();
    let answer = client.ask(request).await;
    assert_eq!(answer["result"], json!({"resultType": "complete", "content": [{"type": "text", "text": "hi"}]}));
    // What belongs to this hop does not go along with the call.
    assert_eq!(Value::Object(app.provider.calls()[0].meta.clone()), json!({"com.example/a": 1}));
}

#[tokio::test]
async fn a_modern_request_must_declare_its_protocol_version_and_client_capabilities() {
    let app = TestApp::with([echo()]).await;
    let mut client = StdioClient::start(&app, StdioSettings::default());
    check_error(&client.ask(legacy(1, "server/discover", json!({}))).await, -32602, "invalid_input");
    let mut request = modern(2, "tools/list", json!({}));
    request["params"]["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    check_error(&client.ask(request).await, -32602, "invalid_input");
    let mut request = modern(3, "tools/list", json!({}));
    request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "1900-01-01".into();
    let answer = client.ask(request).await;
    check_error(&answer, -32022, "unsupported_version");
    assert_eq!(answer["error"]["data"]["requested"], "1900-01-01");
    let supported = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
    assert_eq!(answer["error"]["data"]["supported"], json!(supported));
    let mut request = modern(4, "tools/list", json!({}));
    request["params"]["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientInfo");
    assert!(client.ask(request).await["result"]["tools"].is_array());
    // From here on it is one of the new generation, and its requests need the same each time.
    check_error(&client.ask(legacy(5, "tools/list", json!({}))).await, -32602, "invalid_input");
    for removed in ["ping", "logging/setLevel", "resources/subscribe", "no/such"] {
        check_error(&client.ask(modern(6, removed, json!({}))).await, -32601, "not_found");
    }
}

#[tokio::test]
async fn a_connection_rejects_requests_of_the_other_generation_once_it_has_one() {
    let app = TestApp::with([echo()]).await;
    let mut old = StdioClient::start(&app, StdioSettings::default());
    // These two leave it open.
    assert_eq!(old.ask(legacy(1, "ping", json!({}))).await["result"], json!({}));
    assert!(old.ask(modern(2, "server/discover", json!({}))).await["result"].is_object());
    assert!(old.ask(initialize("2025-11-25")).await["result"].is_object());
    let mixed = old.ask(modern(3, "tools/list", json!({}))).await;
    check_error(&mixed, -32600, "unsupported_version");
    assert!(mixed["error"]["message"].as_str().unwrap().contains("initialize"), "{mixed}");
    check_error(&old.ask(modern(4, "server/discover", json!({}))).await, -32600, "unsupported_version");
    check_error(&old.ask(legacy(5, "server/discover", json!({}))).await, -32601, "not_found");
    assert!(old.ask(legacy(6, "tools/list", json!({}))).await["result"].is_object());

    let mut new = StdioClient::start(&app, StdioSettings::default());
    assert!(new.ask(modern(1, "tools/list", json!({}))).await["result"].is_object());
    let mixed = new.ask(initialize("2025-11-25")).await;
    check_error(&mixed, -32600, "unsupported_version");
    assert!(mixed["error"]["message"].as_str().unwrap().contains("2026-07-28"), "{mixed}");
    assert!(new.ask(modern(2, "tools/list", json!({}))).await["result"].is_object());
}

#[tokio::test]
async fn a_session_begins_once_and_before_anything_else() {
    let app = TestApp::with([echo()]).await;
    let mut client = StdioClient::start(&app, StdioSettings::default());
    check_error(&client.ask(legacy(1, "tools/list", json!({}))).await, -32600, "session_not_ready");
    check_error(&client.ask(legacy(2, "initialize", json!({}))).await, -32602, "invalid_input");
    assert!(client.ask(initialize("2025-11-25")).await["result"].is_object());
    check_error(&client.ask(initialize("2025-11-25")).await, -32600, "already_initialized");
    assert!(client.ask(legacy(3, "tools/list", json!({}))).await["result"].is_object());
}

#[tokio::test]
async fn every_bad_message_gets_its_error_and_the_next_one_works() {
    let strict = json!({"name": "strict", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}},
        "required": ["n"], "additionalProperties": false}});
    let strict = Tool::new(
        ToolName::parse("strict").unwrap(),
        strict.as_object().unwrap().clone(),
        toolstead_domain::category::Category::Utility,
        toolstead_domain::tool::ToolSource::BuiltIn,
    );
    let app = TestApp::with([echo(), ScriptedTool::of(strict), ScriptedTool::named("off")]).await;
    app.app.registry.set_enabled("off", false).await.unwrap();
    let mut client = StdioClient::legacy(&app).await;
    let long =
        format!(r#"{{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{{"a":"{}"}}}}"#, "x".repeat(17 << 20));
    let long_with_id_last =
        format!(r#"{{"method":"tools/call","params":{{"a":"{}"}},"jsonrpc":"2.0","id":78}}"#, "x".repeat(17 << 20));
    let cases: &[(&str, Value, i64)] = &[
        ("{not json", Value::Null, -32700),
        ("nonsense", Value::Null, -32700),
        ("[]", Value::Null, -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, Value::Null, -32600),
        ("42", Value::Null, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, json!(1), -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, Value::Null, -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, Value::Null, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, Value::Null, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, json!(1), -32602),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"n":1e400}}}"#,
            json!(1),
            -32602,
        ),
        (r#"{"jsonrpc":"2.0","id":"a","method":"no/such"}"#, json!("a"), -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":7}}"#, json!(1), -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"elsewhere"}}"#, json!(1), -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":3}}"#, json!(1), -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#, json!(1), -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["echo"]}}"#, json!(1), -32602),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":"{}"}}"#,
            json!(1),
            -32602,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ecco"}}"#, json!(1), -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"off"}}"#, json!(1), -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}"#, json!(1), -32602),
        (&long, json!(77), -32600),
        (&long_with_id_last, json!(78), -32600),
    ];
    for (line, id, code) in cases {
        let shown = &line[..line.len().min(100)];
        client.send_line(line).await;
        let answer = client.next().await;
        assert_eq!((&answer["id"], answer["error"]["code"].as_i64()), (id, Some(*code)), "{shown}: {answer}");
        let answer = client.ask(legacy(1000, "tools/call", call("echo", json!({"message": shown})))).await;
        assert_eq!(text_of(&answer), shown);
    }

    // What a model can mend is a result.
    for arguments in [json!({}), json!({"n": "many"}), json!({"n": 1, "m": 2})] {
        let result = &client.ask(legacy(1, "tools/call", call("strict", arguments))).await["result"];
        assert_eq!(
            (&result["isError"], &result["_meta"]["toolstead/errorKind"]),
            (&json!(true), &json!("invalid_input"))
        );
    }
    let unknown = client.ask(legacy(1, "tools/call", call("ecco", json!({})))).await;
    assert_eq!(unknown["error"]["data"], json!({"kind": "not_found", "next": "Did you mean `echo`?"}));
    check_error(&client.ask(legacy(1, "tools/call", call("off", json!({})))).await, -32602, "disabled");
}

#[tokio::test]
async fn notifications_responses_and_blank_lines_receive_no_response() {
    let app = TestApp::with([]).await;
    let mut client = StdioClient::legacy(&app).await;
    for line in [
        "",
        " \t ",
        r#"{"jsonrpc":"2.0","method":"notifications/unheard/of","params":{"a":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"never sent"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#,
        r#"{"jsonrpc":"2.0","id":5,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":5,"result":{},"error":{"code":1}}"#,
        r#"{"jsonrpc":"2.0","id":5}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"what?"}}"#,
    ] {
        client.send_line(line).await;
    }
    assert_eq!(client.ask(legacy(1, "ping", json!({}))).await, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
}

#[tokio::test]
async fn requests_run_side_by_side_and_a_cancelled_one_is_stopped_and_not_answered() {
    let app = TestApp::with([echo(), endless()]).await;
    let mut client = StdioClient::legacy(&app).await;
    client.send(legacy(1, "tools/call", call("endless", json!({})))).await;
    soon(app.provider.began(1)).await;
    assert_eq!(client.ask(legacy(2, "ping", json!({}))).await["id"], 2);
    assert_eq!(client.ask(legacy(3, "tools/call", call("echo", json!({})))).await["id"], 3);
    // The id is in use.
    for method in ["ping", "tools/list", "tools/call"] {
        let answer = client.ask(legacy(1, method, call("echo", json!({})))).await;
        assert_eq!(answer["id"], 1);
        check_error(&answer, -32600, "invalid_input");
    }
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})).await;
    soon(app.provider.ended(2)).await;
    assert_eq!(app.provider.ends()[1].1, ObservedCallEnd::Dropped);
    // Cancelled twice, and after its end.
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})).await;
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}})).await;
    // The id is free again; no answer of the cancelled call came in between.
    soon(async {
        while app.outcomes().len() < 2 || app.outcomes().contains(&ExecutionOutcome::Running) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(app.outcomes().contains(&ExecutionOutcome::Cancelled(CancelReason::Client)));
    assert_eq!(client.ask(legacy(4, "ping", json!({}))).await["id"], 4);
    let again = soon(async {
        loop {
            let answer = client.ask(legacy(1, "tools/call", call("echo", json!({"message": "again"})))).await;
            if answer["error"].is_null() {
                return answer;
            }
        }
    })
    .await;
    assert_eq!(text_of(&again), "again");
}

#[tokio::test]
async fn a_queued_call_that_is_cancelled_never_runs() {
    let app = TestApp::with([echo(), endless()]).await;
    let settings = StdioSettings { max_in_flight: 1, ..StdioSettings::default() };
    let mut client = StdioClient::start(&app, settings);
    client.send(modern(1, "tools/call", call("endless", json!({})))).await;
    soon(app.provider.began(1)).await;
    client.send(modern(2, "tools/call", call("echo", json!({"message": "taken back"})))).await;
    client.send(modern(3, "tools/call", call("echo", json!({"message": "waits"})))).await;
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})).await;
    // It is answered beside the calls that wait.
    assert_eq!(client.ask(modern(4, "server/discover", json!({}))).await["id"], 4);
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})).await;
    let answer = client.next().await;
    assert_eq!((answer["id"].as_i64(), text_of(&answer)), (Some(3), "waits"));
    assert_eq!(app.provider.calls().len(), 2);
    let mut outcomes = app.outcomes();
    outcomes.sort_by_key(|outcome| format!("{outcome:?}"));
    let cancelled = || ExecutionOutcome::Cancelled(CancelReason::Client);
    assert_eq!(outcomes, [cancelled(), cancelled(), ExecutionOutcome::Succeeded]);
}

#[tokio::test]
async fn a_thousand_pipelined_calls_each_get_their_own_answer() {
    let app = TestApp::with([echo()]).await;
    let client = StdioClient::legacy(&app).await;
    let all: String = (0..1000)
        .map(|n| format!("{}\n", legacy(n, "tools/call", call("echo", json!({"message": format!("m{n}")})))))
        .collect();
    let (mut output, mut input) = (client.output, client.input);
    let writing = tokio::spawn(async move {
        output.write_all(all.as_bytes()).await.unwrap();
        output
    });
    let mut answered = BTreeSet::new();
    for _ in 0..1000 {
        let Some(toolstead_infrastructure::mcp::wire::lines::Line::Whole(line)) = soon(input.next()).await.unwrap()
        else {
            panic!("the server closed the connection");
        };
        let answer: Value = serde_json::from_slice(&line).unwrap();
        let id = answer["id"].as_i64().unwrap();
        assert_eq!(text_of(&answer), format!("m{id}"));
        assert!(answered.insert(id));
    }
    drop(writing.await.unwrap());
    assert_eq!(app.log.rows().len(), 1000);
}

#[tokio::test]
async fn a_client_that_does_not_read_does_not_make_the_server_work_without_end() {
    let app = TestApp::with([echo()]).await;
    let settings = StdioSettings { max_in_flight: 8, max_waiting_bytes: 100 * 4096, ..StdioSettings::default() };
    let client = StdioClient::start(&app, settings);
    let (mut output, mut input) = (client.output, client.input);
    let message = "x".repeat(2000);
    let writing = tokio::spawn(async move {
        let mut written = 0;
        // The server stops reading long before all of it is written.
        for n in 0..50_000 {
            let line = format!("{}\n", modern(n, "tools/call", call("echo", json!({"message": message}))));
            match timeout(Duration::from_millis(500), output.write_all(line.as_bytes())).await {
                Ok(written) => written.unwrap(),
                Err(_) => break,
            }
            written += 1;
        }
        (written, output)
    });
    let (written, output) = timeout(6 * PATIENCE, writing).await.unwrap().unwrap();
    let begun = app.provider.calls().len();
    assert!(written < 5000 && begun < 1000, "{written} requests were read and {begun} of them begun");
    // A client that reads again receives an answer to each request: a result, or that the limit was reached.
    let mut answers = 0;
    while answers < written {
        let line = soon(input.next()).await.unwrap();
        assert!(line.is_some());
        answers += 1;
    }
    drop(output);
}

#[tokio::test]
async fn progress_precedes_the_response_in_order_and_only_if_requested() {
    let noisy = ScriptedTool::named("noisy")
        .reports(progress(0.0))
        .logs(log(LogLevel::Info, "half"))
        .reports(progress(50.0))
        .reports(progress(20.0))
        .logs(log(LogLevel::Debug, "details"))
        .reports(progress(100.0))
        .answers(ToolResult::text("done"));
    let app = TestApp::with([noisy]).await;
    let mut client = StdioClient::legacy(&app).await;
    let mut request = legacy(1, "tools/call", call("noisy", json!({})));
    request["params"]["_meta"] = json!({"progressToken": "p"});
    client.send(request).await;
    let describe = |value: i64| {
        json!({"jsonrpc": "2.0", "method": "notifications/progress",
        "params": {"progressToken": "p", "progress": value, "total": 100}})
    };
    let logged = |level: &str, text: &str| {
        json!({"jsonrpc": "2.0", "method": "notifications/message",
        "params": {"level": level, "logger": "tool", "data": text}})
    };
    for expected in [describe(0), logged("info", "half"), describe(50), describe(100)] {
        assert_eq!(client.next().await, expected);
    }
    assert_eq!(text_of(&client.next().await), "done");

    // Without a token there is none, and the level may change.
    client.send(legacy(2, "logging/setLevel", json!({"level": "debug"}))).await;
    assert_eq!(client.next().await["result"], json!({}));
    client.send(legacy(3, "tools/call", call("noisy", json!({})))).await;
    for expected in [logged("info", "half"), logged("debug", "details")] {
        assert_eq!(client.next().await, expected);
    }
    assert_eq!(text_of(&client.next().await), "done");

    // A new client declares the level with each request, and receives no logs otherwise.
    let mut client = StdioClient::start(&app, StdioSettings::default());
    assert_eq!(text_of(&client.ask(modern(1, "tools/call", call("noisy", json!({})))).await), "done");
    let mut request = modern(2, "tools/call", call("noisy", json!({})));
    request["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "info".into();
    assert_eq!(client.ask(request).await, logged("info", "half"));
    assert_eq!(text_of(&client.next().await), "done");
}

#[tokio::test]
async fn each_kind_of_failure_is_reported_with_its_error_kind() {
    let app = TestApp::with([
        echo(),
        ScriptedTool::named("panics").panics("ouch"),
        ScriptedTool::named("fails").fails(ErrorKind::StaleFile, "it changed"),
        ScriptedTool::named("says_so").answers(ToolResult::error(ErrorKind::TooLarge, "too much")),
        ScriptedTool::named("plain").answers(ToolResult::error(ErrorKind::ExecutionFailed, "no")),
    ])
    .await;
    let mut client = StdioClient::legacy(&app).await;
    for (tool, kind) in [("panics", "internal"), ("fails", "stale_file"), ("says_so", "too_large")] {
        let result = &client.ask(legacy(1, "tools/call", call(tool, json!({})))).await["result"];
        assert_eq!(
            (&result["isError"], &result["_meta"]["toolstead/errorKind"]),
            (&json!(true), &json!(kind)),
            "{tool}"
        );
    }
    let plain = client.ask(legacy(1, "tools/call", call("plain", json!({})))).await;
    assert_eq!(plain["result"], json!({"content": [{"type": "text", "text": "no"}], "isError": true}));
    // A call that cannot be recorded does not run. The error says so, with the reason.
    app.log.fail_next_record();
    let answer = client.ask(legacy(1, "tools/call", call("echo", json!({"message": "secret"})))).await;
    check_error(&answer, -32603, "internal");
    assert!(!answer.to_string().contains("secret"), "{answer}");
    let message = "the call did not run: its start cannot be recorded: the test";
    assert!(answer["error"]["message"].as_str().unwrap().starts_with(message), "{answer}");
    assert_eq!(text_of(&client.ask(legacy(1, "tools/call", call("echo", json!({"message": "ok"})))).await), "ok");
}

#[tokio::test]
async fn a_legacy_client_is_notified_of_list_changes_and_bursts_are_coalesced() {
    let app = TestApp::with([echo()]).await;
    let mut client = StdioClient::legacy(&app).await;
    // Notifications are handled in order, so with this answer the one before it is done.
    client.ask(legacy(1, "ping", json!({}))).await;
    for n in 0..100 {
        app.app.registry.set_enabled("echo", n % 2 == 1).await.unwrap();
    }
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    assert_eq!(client.next().await, changed);
    let mut outcome = 1;
    while let Ok(line) = timeout(Duration::from_millis(600), client.input.next()).await {
        assert!(line.unwrap().is_some());
        outcome += 1;
    }
    assert!(outcome <= 10, "{outcome} notifications");
    app.provider.replace_tools([endless()]);
    assert_eq!(client.next().await, changed);
    assert_eq!(client.ask(legacy(2, "tools/list", json!({}))).await["result"]["tools"][0]["name"], "endless");
}

#[tokio::test]
async fn a_modern_client_receives_only_the_notifications_that_it_subscribed_to() {
    let app = TestApp::with([echo()]).await;
    let mut client = StdioClient::start(&app, StdioSettings::default());
    let filter = json!({"notifications": {"toolsListChanged": true, "unknownChanged": true}});
    let meta = json!({"io.modelcontextprotocol/subscriptionId": 5});
    let acknowledged = client.ask(modern(5, "subscriptions/listen", filter)).await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"], json!({"_meta": meta, "notifications": {"toolsListChanged": true}}));
    let silent =
        client.ask(modern(6, "subscriptions/listen", json!({"notifications": {"promptsListChanged": true}}))).await;
    assert_eq!(silent["params"]["notifications"], json!({"promptsListChanged": true}));
    app.provider.replace_tools([endless()]);
    let changed = client.next().await;
    assert_eq!(
        (&changed["method"], &changed["params"]),
        (&json!("notifications/tools/list_changed"), &json!({"_meta": meta}))
    );
    // Its own cancellation is answered by silence.
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 6}})).await;
    assert_eq!(client.ask(modern(7, "server/discover", json!({}))).await["id"], 7);
    // Our end is announced, then answered.
    client.stop.cancel();
    let cancelled = client.next().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!((&cancelled["params"]["requestId"], &cancelled["params"]["_meta"]), (&json!(5), &meta));
    let end = client.next().await;
    assert_eq!((&end["id"], &end["result"]["resultType"]), (&json!(5), &json!("complete")));
    assert_eq!(end["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 5);
    assert_eq!(client.try_next().await, None);
    client.serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_large_tool_list_is_paginated_and_a_stale_cursor_is_rejected() {
    let large = |n: usize| {
        let definition = json!({"name": "x", "description": "d".repeat(300 << 10), "inputSchema": {"type": "object"}});
        ScriptedTool::of(Tool::new(
            ToolName::parse(&format!("tool_{n}")).unwrap(),
            definition.as_object().unwrap().clone(),
            toolstead_domain::category::Category::Utility,
            toolstead_domain::tool::ToolSource::BuiltIn,
        ))
    };
    let app = TestApp::with((0..8).map(large)).await;
    let mut client = StdioClient::legacy(&app).await;
    let (mut names, mut params, mut pages) = (Vec::new(), json!({}), 0);
    let mut first_cursor = Value::Null;
    loop {
        let result = client.answer_to(legacy(1, "tools/list", params)).await["result"].take();
        assert!(result.to_string().len() < (1 << 20) + 1000);
        names.extend(result["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        pages += 1;
        if first_cursor.is_null() {
            first_cursor = result["nextCursor"].clone();
            // A page of the list that the client is reading stays the same when the list changes.
            app.app.registry.set_enabled("tool_7", false).await.unwrap();
        }
        let Some(cursor) = result.get("nextCursor") else { break };
        params = json!({"cursor": cursor});
    }
    assert_eq!((pages, names), (3, (0..8).map(|n| format!("tool_{n}")).collect::<Vec<_>>()));
    for n in 0..10 {
        app.app.registry.set_enabled("tool_7", n % 2 == 0).await.unwrap();
    }
    let stale = client.answer_to(legacy(2, "tools/list", json!({"cursor": first_cursor}))).await;
    check_error(&stale, -32602, "invalid_input");
}

#[tokio::test(start_paused = true)]
async fn end_of_input_returns_finished_results_and_cancels_the_remaining_calls() {
    let app = TestApp::with([echo(), endless()]).await;
    let mut client = StdioClient::start(&app, StdioSettings::default());
    client.send(modern(1, "tools/call", call("endless", json!({})))).await;
    soon(app.provider.began(1)).await;
    client.send(modern(2, "tools/call", call("echo", json!({"message": "last"})))).await;
    client.output.shutdown().await.unwrap();
    let begun = Instant::now();
    assert_eq!(text_of(&client.next().await), "last");
    assert_eq!(client.try_next().await, None);
    client.serving.await.unwrap().unwrap();
    assert!(begun.elapsed().as_secs_f64() < 1.0, "{:?}", begun.elapsed());
    assert_eq!(app.outcomes(), [ExecutionOutcome::Cancelled(CancelReason::Client), ExecutionOutcome::Succeeded]);
    assert!(app.app.open_calls.is_empty());
}

/// Creates its application after 30 seconds.
struct LateWorkplace(App);

#[async_trait(?Send)]
impl AppLauncher for LateWorkplace {
    async fn sort(&self, _: Vec<PathBuf>) -> FoldersByTrust {
        FoldersByTrust::default()
    }

    async fn trust(&self, _: PathBuf) {}

    async fn open(&self, _: Vec<PathBuf>) -> Option<App> {
        tokio::time::sleep(Duration::from_secs(30)).await;
        Some(self.0.clone())
    }

    async fn close_all(&self) {}

    async fn retire(&self) {}
}

#[tokio::test(start_paused = true)]
async fn a_list_is_answered_after_the_end_of_input_however_long_the_application_takes_to_start() {
    let app = TestApp::with([echo()]).await;
    for is_stopped in [false, true] {
        let (mut ours, theirs) = tokio::io::duplex(64 << 10);
        let (reader, writer) = tokio::io::split(theirs);
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        for message in [initialize("2025-11-25"), initialized, legacy(1, "tools/list", json!({}))] {
            ours.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        }
        ours.shutdown().await.unwrap();
        let (workplace, stop) = (LateWorkplace(app.app.clone()), CancellationToken::new());
        let serving = serve_stdio_in(&workplace, StdioSettings::default(), PATIENCE, reader, writer, stop.clone());
        let stopping = async {
            if is_stopped {
                tokio::time::sleep(Duration::from_secs(2)).await;
                stop.cancel();
            }
        };
        let begun = Instant::now();
        let (served, ()) = tokio::join!(serving, stopping);
        served.unwrap();
        let mut answers = String::new();
        ours.read_to_string(&mut answers).await.unwrap();
        assert_eq!(answers.contains("\"echo\""), !is_stopped, "{answers}");
        assert!(!is_stopped || begun.elapsed().as_secs_f64() < 3.0, "{:?}", begun.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn stopping_the_server_cancels_a_running_call_and_returns_an_error() {
    let app = TestApp::with([endless()]).await;
    let mut client = StdioClient::legacy(&app).await;
    client.send(legacy(1, "tools/call", call("endless", json!({})))).await;
    soon(app.provider.began(1)).await;
    let begun = Instant::now();
    client.stop.cancel();
    check_error(&client.next().await, -32603, "cancelled");
    assert_eq!(client.try_next().await, None);
    client.serving.await.unwrap().unwrap();
    assert!(begun.elapsed().as_secs_f64() < 1.0, "{:?}", begun.elapsed());
    assert_eq!(app.outcomes(), [ExecutionOutcome::Cancelled(CancelReason::Shutdown)]);
}

#[tokio::test]
async fn disconnecting_cancels_the_calls_of_a_client() {
    let app = TestApp::with([endless()]).await;
    let mut client = StdioClient::legacy(&app).await;
    client.send(legacy(1, "tools/call", call("endless", json!({})))).await;
    soon(app.provider.began(1)).await;
    let StdioClient { input, output, serving, .. } = client;
    drop((input, output));
    soon(serving).await.unwrap().unwrap();
    assert_eq!(app.outcomes(), [ExecutionOutcome::Cancelled(CancelReason::Client)]);
}

#[tokio::test]
async fn the_official_sdk_is_served_in_both_generations() {
    let app = TestApp::with([echo()]).await;
    let start = || serve_streams(&app, StdioSettings::default()).0;
    let arguments = |text: &str| json!({"message": text}).as_object().unwrap().clone();

    let old = soon(ClientConfig::default().serve(start())).await.unwrap();
    assert_eq!(old.peer_info().unwrap().protocol_version, ProtocolVersion::V_2025_11_25);
    assert_eq!(soon(old.list_all_tools()).await.unwrap()[0].name, "echo");
    let call = CallToolRequestParams::new("echo").with_arguments(arguments("old"));
    let result = serde_json::to_value(soon(old.call_tool(call)).await.unwrap()).unwrap();
    assert_eq!(result["content"][0]["text"], "old");
    old.cancel().await.unwrap();

    let discover = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let new = soon(ClientConfig::default().serve_with_lifecycle(start(), discover)).await.unwrap();
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
