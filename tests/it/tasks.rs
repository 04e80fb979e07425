//! Calls of an MCP server's tools that continue as tasks: who may follow them, and who must not learn of them.

use crate::{
    mcp_client::provider_calls::{config, deps, http},
    support::{HttpFront, PATIENCE, StdioClient, TOKEN, TestApp, call, initialize, legacy, modern, soon, text_of},
};
use axum::{extract::State, http::HeaderMap, routing::post};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use toolstead_application::{CallSettings, ExecuteToolCommand, ForwardTaskCommand, SetToolEnabledCommand};
use toolstead_domain::{
    AuditedRequestKind, ClientProfile, Effect, ExecutionOutcome, PatternContext, PermissionPolicy, PermissionRule,
    Principal, RequestScope, TaskMethod, View,
    error_kind::ErrorKind,
    permission::rule::RuleOrigin,
    task_request::tasks_declared,
    testing::{scripted_context::ScriptedContext, scripted_provider::ScriptedProvider},
};
use toolstead_infrastructure::mcp::client::Upstream;
use toolstead_presentation::mcp_server::{http::settings::BearerToken, stdio::StdioSettings};

const OTHER: &str = "the-token-of-somebody-else";

/// All that the upstream heard, and whether its task has its answer or was cancelled.
#[derive(Debug, Default)]
struct TaskUpstream {
    heard: Vec<Value>,
    state: &'static str,
}

type Shared = Arc<Mutex<TaskUpstream>>;

/// A server of 2026-07-28 whose tool `slow` is a task for clients that take one.
async fn serve(
    State(upstream): State<Shared>,
    headers: HeaderMap,
    body: String,
) -> ([(&'static str, &'static str); 1], String) {
    let message = serde_json::from_str(&body).unwrap();
    ([("content-type", "application/json")], answer(&upstream, &headers, &message).to_string())
}

fn answer(upstream: &Shared, headers: &HeaderMap, message: &Value) -> Value {
    let mut upstream = upstream.lock().unwrap();
    upstream.heard.push(message.clone());
    let params = &message["params"];
    let declared = &params["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"];
    let task = |more: Value| {
        let mut task = json!({"taskId": "theirs", "createdAt": "2026-11-01T10:00:00Z", "ttlMs": null,
            "lastUpdatedAt": "2026-11-01T10:00:00Z", "x-kept": {"a": 1}, "_meta": {"toolstead/errorKind": "denied"}});
        task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        task
    };
    let method = message["method"].as_str().unwrap();
    if method.starts_with("tasks/") && headers["mcp-name"] != params["taskId"].as_str().unwrap() {
        return json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32020, "message": "Header mismatch"}});
    }
    let result = match method {
        "server/discover" => json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}, "extensions": tasks_declared()["extensions"]}}),
        "tools/list" => {
            json!({"resultType": "complete", "tools": [{"name": "slow", "inputSchema": {"type": "object"}}]})
        }
        "tools/call" if *declared == tasks_declared()["extensions"] => {
            task(json!({"resultType": "task", "status": "working"}))
        }
        "tools/call" => json!({"resultType": "complete", "content": [{"type": "text", "text": "at once"}]}),
        "tasks/get" if upstream.state == "forgetful" => {
            return json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "tasks?"}});
        }
        "tasks/get" if params["taskId"] == "theirs" => task(match upstream.state {
            "" => json!({"resultType": "complete", "status": "input_required", "inputRequests": {
                "q": {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object"}}}}}),
            "hostile" => json!({"resultType": "complete", "status": "input_required", "inputRequests": {
                "q": {"method": "sampling/createMessage", "params": {}}}}),
            "cancelled" => json!({"resultType": "complete", "status": "cancelled"}),
            "links" => json!({"resultType": "complete", "status": "completed", "result": {
                "content": [{"type": "resource_link", "uri": "a://x", "name": "x"}]}}),
            _ => json!({"resultType": "complete", "status": "completed", "result": {
                "content": [{"type": "text", "text": "done"}], "_meta": {"toolstead/errorKind": "denied"}}}),
        }),
        "tasks/update" if params["inputResponses"]["q"]["action"] == "accept" => {
            upstream.state = "answered";
            json!({"resultType": "complete"})
        }
        "tasks/cancel" => {
            upstream.state = "cancelled";
            json!({"resultType": "complete"})
        }
        _ => return json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": "no"}}),
    };
    json!({"jsonrpc": "2.0", "id": message["id"], "result": result})
}

struct House {
    test: TestApp,
    front: HttpFront,
    upstream: Shared,
    _server: Arc<Upstream>,
}

impl House {
    async fn open() -> Self {
        let policy = PermissionPolicy { rules: vec![rule(Effect::Allow)], ..PermissionPolicy::default() };
        let provider = Arc::new(ScriptedProvider::new("scripted"));
        let test = TestApp::with_policy(provider, CallSettings::default(), policy).await;
        let upstream = Shared::default();
        let service = axum::Router::new().route("/mcp", post(serve)).with_state(upstream.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, service).await });
        let server = Upstream::start(config("s", http(&url)), deps());
        test.app.registry.register(server.clone()).await.unwrap();
        test.app.registry.settled(PATIENCE).await;
        let other = BearerToken { name: "other".into(), secret: OTHER.into() };
        let front = HttpFront::with(&test, |settings| settings.tokens.push(other)).await;
        Self { test, front, upstream, _server: server }
    }

    async fn ask(&self, token: &str, request: &Value) -> Value {
        self.ask_with_status(token, request).await.1
    }

    async fn ask_with_status(&self, token: &str, request: &Value) -> (u16, Value) {
        let params = &request["params"];
        let name = params["name"].as_str().or(params["taskId"].as_str()).unwrap();
        let post = self.front.client.post(self.front.url("/mcp")).bearer_auth(token).body(request.to_string());
        let post = post.header("accept", "application/json, text/event-stream").header("mcp-name", name);
        let post = post.header("content-type", "application/json").header("mcp-protocol-version", "2026-07-28");
        let sent = soon(post.header("mcp-method", request["method"].as_str().unwrap()).send()).await.unwrap();
        (sent.status().as_u16(), serde_json::from_str(&soon(sent.text()).await.unwrap()).unwrap())
    }

    /// A request about the task.
    async fn about(&self, token: &str, method: &str, task: &str) -> Value {
        let params = json!({"taskId": task, "inputResponses": {"q": {"action": "accept", "content": {}}}});
        self.ask(token, &taking_tasks(modern(2, method, params))).await
    }

    /// The name of a new task of the test's.
    async fn task(&self) -> String {
        let answer =
            self.ask(TOKEN, &taking_tasks(modern(1, "tools/call", call("mcp__s__slow", json!({"a": 1}))))).await;
        answer["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    fn heard(&self, method: &str) -> Vec<Value> {
        let upstream = self.upstream.lock().unwrap_or_else(PoisonError::into_inner);
        upstream.heard.iter().filter(|message| message["method"] == method).cloned().collect()
    }
}

fn rule(effect: Effect) -> Arc<PermissionRule> {
    let rule = PermissionRule::parse(effect, "mcp__s", RuleOrigin::Program, &PatternContext::default());
    Arc::new(rule.unwrap())
}

fn capabilities() -> Map<String, Value> {
    let mut capabilities = tasks_declared();
    capabilities.insert("elicitation".into(), json!({}));
    capabilities
}

fn taking_tasks(mut request: Value) -> Value {
    request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities().into();
    request
}

#[tokio::test]
async fn only_its_owner_can_follow_a_call_that_continues_as_a_task() {
    let house = House::open().await;
    let request = taking_tasks(modern(1, "tools/call", call("mcp__s__slow", json!({"a": 1}))));
    let created = house.ask(TOKEN, &request).await["result"].clone();
    let task = created["taskId"].as_str().unwrap();
    assert_ne!(task, "theirs");
    assert_eq!(
        (&created["resultType"], &created["status"], &created["x-kept"], &created["_meta"]),
        (&json!("task"), &json!("working"), &json!({"a": 1}), &json!({})),
    );
    let row = house.test.log.rows().into_iter().find(|row| row.kind == AuditedRequestKind::Tool).unwrap();
    assert_eq!((row.outcome, row.metadata), (ExecutionOutcome::Succeeded, json!({"task": task, "status": "working"})));

    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for (token, name) in [(OTHER, task), (TOKEN, "theirs"), (TOKEN, "nothing")] {
            let answer = house.about(token, method, name).await;
            assert_eq!(answer["error"]["code"], -32602, "{method} {name}: {answer}");
            assert_eq!(answer["error"]["message"], "Failed to retrieve task: Task not found");
        }
        assert!(house.heard(method).is_empty(), "{method}");
    }

    let asked = house.about(TOKEN, "tasks/get", task).await["result"].clone();
    assert_eq!((&asked["status"], &asked["taskId"]), (&json!("input_required"), &json!(task)));
    assert_eq!(asked["inputRequests"]["q"]["method"], "elicitation/create");
    assert_eq!(house.about(TOKEN, "tasks/update", task).await["result"], json!({"resultType": "complete"}));
    let done = house.about(TOKEN, "tasks/get", task).await["result"].clone();
    assert_eq!((&done["resultType"], &done["status"]), (&json!("complete"), &json!("completed")));
    assert_eq!(done["result"], json!({"content": [{"type": "text", "text": "done"}], "_meta": {}}));
    assert_eq!(house.about(TOKEN, "tasks/cancel", task).await["result"], json!({"resultType": "complete"}));
    assert_eq!(house.about(TOKEN, "tasks/get", task).await["result"]["status"], "cancelled");
    for (method, count) in [("tasks/get", 3), ("tasks/update", 1), ("tasks/cancel", 1)] {
        let heard = house.heard(method);
        assert_eq!(heard.len(), count, "{method}");
        assert!(heard.iter().all(|message| message["params"]["taskId"] == "theirs"));
    }
    let rows: Vec<_> = house.test.log.rows().into_iter().filter(|row| row.kind == AuditedRequestKind::Task).collect();
    let refused =
        rows.iter().filter(|row| matches!(row.outcome, ExecutionOutcome::Refused(ErrorKind::NotFound, _))).count();
    let done: Vec<&str> =
        rows.iter().filter(|row| row.outcome == ExecutionOutcome::Succeeded).map(|row| &*row.tool).collect();
    assert_eq!((refused, done), (9, vec!["mcp__s__slow"; 5]));
}

#[tokio::test]
async fn a_client_without_task_support_receives_results_instead_of_tasks() {
    let house = House::open().await;
    let answer = house.ask(TOKEN, &modern(1, "tools/call", call("mcp__s__slow", json!({})))).await;
    assert_eq!(text_of(&answer), "at once");
    let heard = house.heard("tools/call");
    assert_eq!(heard[0]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"], json!({}));
    let task = house.task().await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let answer = house.ask(TOKEN, &modern(2, method, json!({"taskId": task}))).await;
        assert_eq!(answer["error"]["code"], -32021, "{answer}");
        assert_eq!(answer["error"]["data"]["requiredCapabilities"], Value::Object(tasks_declared()));
        let mut client = StdioClient::legacy(&house.test).await;
        let answer = client.answer_to(legacy(3, method, json!({"taskId": task}))).await;
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
        assert!(house.heard(method).is_empty(), "{method}");
    }
    let mut client = StdioClient::legacy(&house.test).await;
    let mut params = call("mcp__s__slow", json!({}));
    params["task"] = json!({"ttl": 60_000});
    assert_eq!(text_of(&client.answer_to(legacy(4, "tools/call", params)).await), "at once");
    // It declares the extension, and has no way to follow a task.
    let mut client = StdioClient::start(&house.test, StdioSettings::default());
    let mut opening = initialize("2025-11-25");
    opening["params"]["capabilities"] = capabilities().into();
    client.ask(opening).await;
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    let params = call("mcp__s__slow", json!({}));
    assert_eq!(text_of(&client.answer_to(legacy(5, "tools/call", params)).await), "at once");
    assert!(house.heard("tools/call").iter().all(|message| message["params"].get("task").is_none()));
}

#[tokio::test]
async fn an_unknown_task_method_error_of_a_server_is_forwarded_with_status_200() {
    let house = House::open().await;
    let task = house.task().await;
    house.upstream.lock().unwrap().state = "forgetful";
    let request = taking_tasks(modern(2, "tasks/get", json!({"taskId": task})));
    let (status, answer) = house.ask_with_status(TOKEN, &request).await;
    assert_eq!(
        (status, &answer["error"]["code"], &answer["error"]["message"]),
        (200, &json!(-32601), &json!("tasks?"))
    );
}

#[tokio::test]
async fn resource_links_in_a_task_result_have_the_same_uris_as_listed_resources() {
    let house = House::open().await;
    let task = house.task().await;
    for server in ["first", "s"] {
        let offer = ScriptedContext::new(server).of_server().with_resource("a://x");
        house.test.app.context.register(Arc::new(offer)).await.unwrap();
    }
    house.upstream.lock().unwrap().state = "links";
    let done = house.about(TOKEN, "tasks/get", &task).await["result"].clone();
    assert_eq!(done["result"]["content"][0]["uri"], "toolstead://s/a://x", "{done}");
}

#[tokio::test]
async fn tasks_of_a_denied_or_disabled_tool_are_inaccessible() {
    let house = House::open().await;
    let task = house.task().await;
    let ask = async |scope: RequestScope| {
        let client = ClientProfile { capabilities: capabilities(), ..ClientProfile::without_protocol("test") };
        let call = ExecuteToolCommand::new("", Value::Null).within(scope);
        let call = ExecuteToolCommand { client: Arc::new(client), ..call };
        let (method, params) = (TaskMethod::Get, Map::new());
        let command = ForwardTaskCommand { method, task: task.clone(), params, call };
        house.test.app.forward_task.handle(command).await.map_err(|error| error.kind())
    };
    let owner = house.test.log.rows().into_iter().find(|row| row.kind == AuditedRequestKind::Tool).unwrap().principal;
    let (kind, name) = owner.split_once(':').unwrap();
    let scope = || RequestScope::of(Principal::new(kind, name), "session");
    let denying = PermissionPolicy { rules: vec![rule(Effect::Deny)], ..PermissionPolicy::default() };
    let before = house.heard("tasks/get").len();
    let denied = ask(scope().through(View::new("narrow", Arc::new(denying)))).await.unwrap_err();
    assert!(matches!(denied, ErrorKind::PermissionDenied | ErrorKind::NotFound), "{denied:?}");
    let off = SetToolEnabledCommand { name: "mcp__s__slow".into(), enabled: false };
    house.test.app.set_tool_enabled.handle(&off).await.unwrap();
    assert_eq!(ask(scope()).await.unwrap_err(), ErrorKind::NotFound);
    assert_eq!(house.heard("tasks/get").len(), before);
    let on = SetToolEnabledCommand { name: "mcp__s__slow".into(), enabled: true };
    house.test.app.set_tool_enabled.handle(&on).await.unwrap();
    assert_eq!(ask(scope()).await.unwrap()["taskId"], task.as_str());
    // A question of a kind that was not declared to the server is not delivered.
    house.upstream.lock().unwrap().state = "hostile";
    assert_eq!(ask(scope()).await.unwrap_err(), ErrorKind::UpstreamProtocol);
}
