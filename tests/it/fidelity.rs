//! Messages of a server reach the client unchanged, and vice versa: members, order and digits, between old and new
//! clients and servers, over stdio and HTTP.

mod upstream;
mod wild;

use crate::{
    mcp_client::provider_calls::{config, deps, until_ready},
    support::{Events, HttpFront, StdioClient, TestApp, legacy, modern, soon},
};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use toolstead_application::CallSettings;
use toolstead_domain::{
    PermissionMode, PermissionPolicy, ProtocolGeneration, ProtocolVersion, ToolProvider,
    testing::scripted_provider::ScriptedProvider,
};
use toolstead_infrastructure::mcp::client::{
    Upstream,
    config::{OutputSizePolicy, ToolNaming},
};
use toolstead_presentation::mcp_server::stdio::StdioSettings;
use upstream::{Recorder, Saying, TOKEN};
use wild::Wild;

/// Calls of one cell; each is a request, a report, a log message and an answer.
const CALLS: usize = 50;
const TOOLS: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Lines,
    Http,
}

/// A recording client.
enum Door {
    Lines(Box<StdioClient>),
    Http { front: Box<HttpFront>, session: Option<String> },
}

/// Both ends, with Toolstead between them.
struct Cell {
    recorder: Recorder,
    server: Arc<Upstream>,
    door: Door,
    client: ProtocolGeneration,
    wild: Wild,
    next: i64,
}

impl Cell {
    async fn open(
        way: Way,
        client: ProtocolGeneration,
        server: ProtocolVersion,
        definitions: Vec<Value>,
        output: OutputSizePolicy,
    ) -> Self {
        let recorder = Recorder::new(server, definitions, list_members());
        let transport = match way {
            Way::Lines => recorder.over_lines(),
            Way::Http => recorder.over_http().await,
        };
        let mut config = config("recorder", transport);
        (config.protocol, config.names, config.output) = (Some(server), ToolNaming::Plain, output);
        let server = Upstream::start(config, deps());
        until_ready(&server).await;
        let policy = PermissionPolicy { mode: PermissionMode::Bypass, ..Default::default() };
        let nothing = Arc::new(ScriptedProvider::new("scripted"));
        let app = TestApp::with_policy(nothing, CallSettings::default(), policy).await;
        app.app.registry.register(server.clone()).await.unwrap();
        let context = &app.app.context;
        let mut changes = context.changes();
        context.register(server.clone()).await.unwrap();
        soon(async {
            while context.snapshot().prompts().is_empty() || context.snapshot().resources().is_empty() {
                changes.changed().await.unwrap();
            }
        })
        .await;
        let door = match (way, client) {
            (Way::Lines, ProtocolGeneration::Legacy) => Door::Lines(Box::new(StdioClient::legacy(&app).await)),
            (Way::Lines, ProtocolGeneration::Modern) => {
                Door::Lines(Box::new(StdioClient::start(&app, StdioSettings::default())))
            }
            (Way::Http, _) => {
                let front = HttpFront::start(&app).await;
                let session = match client {
                    ProtocolGeneration::Legacy => Some(front.open_session().await),
                    ProtocolGeneration::Modern => None,
                };
                Door::Http { front: Box::new(front), session }
            }
        };
        Self { recorder, server, door, client, wild: Wild::of(4), next: 0 }
    }

    /// Sends a request with these parameters and returns what came back, notifications first.
    async fn exchange(&mut self, method: &str, params: Map<String, Value>) -> Vec<Value> {
        self.next += 1;
        let request = match self.client {
            ProtocolGeneration::Legacy => legacy(self.next, method, params.into()),
            ProtocolGeneration::Modern => {
                let mut request = modern(self.next, method, params.into());
                request["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "debug".into();
                request
            }
        };
        let text = self.wild.write(&request);
        let mut all = Vec::new();
        match &mut self.door {
            Door::Lines(client) => {
                client.send_line(&text).await;
                while all.last().is_none_or(|last: &Value| last.get("id").is_none()) {
                    all.push(client.next().await);
                }
            }
            Door::Http { front, session } => {
                let post = match session {
                    Some(session) => front.in_session(session, &request),
                    None => front.post_modern(&request),
                };
                let mut events = Events::of(soon(post.body(text).send()).await.unwrap());
                while let Some(message) = events.try_next().await {
                    all.push(message);
                }
            }
        }
        all
    }
}

#[track_caller]
fn check_same(heard: impl Into<Value>, said: impl Into<Value>) {
    // As texts: members in their order, and 1.0 is not 1.
    assert_eq!(heard.into().to_string(), said.into().to_string());
}

fn list_members() -> Map<String, Value> {
    json!({"x": [1.0], "_meta": {"b": null, "a": {"c": []}}, "y": {}}).as_object().unwrap().clone()
}

fn definitions(wild: &mut Wild) -> Vec<Value> {
    let mut definition = |n: usize| {
        let icons = json!([{"src": "https://example.com/i.png", "sizes": ["48x48"], "x": wild.value(1)}]);
        let hints = wild.among(&[("readOnlyHint", true.into()), ("title", "T".into())]);
        let schema = wild.among(&[("type", "object".into())]);
        let mut members = vec![("name", format!("t{n:02}").into()), ("inputSchema", Value::Object(schema))];
        members.extend(wild.some_of(&[
            ("title", "A title".into()),
            ("description", "What it does.".into()),
            ("icons", icons),
            ("annotations", hints.into()),
            ("execution", json!({"taskSupport": "optional"})),
            ("outputSchema", json!({"type": "object", "x-y": 1.0})),
        ]));
        Value::Object(wild.among(&members))
    };
    (0..TOOLS).map(&mut definition).collect()
}

fn block(wild: &mut Wild) -> Value {
    let text = || ("text", Value::from("\u{1b}\u{202e}text"));
    let uri = || ("uri", Value::from("a://b"));
    let of = |kind: &str| ("type", Value::from(kind));
    let known = match wild.below(6) {
        0 => vec![of("text"), ("text", wild.text().into())],
        1 => vec![of("image"), ("data", "AAAA".into()), ("mimeType", "image/png".into())],
        2 => vec![of("audio"), ("data", "AAAA".into()), ("mimeType", "audio/wav".into())],
        3 => vec![of("resource_link"), uri(), ("name", wild.text().into())],
        4 => vec![of("resource"), ("resource", wild.among(&[uri(), text()]).into())],
        _ => vec![of("hologram")],
    };
    let audience = json!({"audience": ["user"], "priority": wild.number(), "x": wild.value(1)});
    let beside = wild.some_of(&[("annotations", audience), ("icons", json!([]))]);
    wild.among(&[known, beside].concat()).into()
}

fn result(wild: &mut Wild) -> Map<String, Value> {
    let content: Vec<Value> = (0..wild.below(4)).map(|_| block(wild)).collect();
    let structured = wild.object(3).into();
    let verdict = wild.pick(&[true, false]).into();
    let beside = wild.some_of(&[("structuredContent", structured), ("isError", verdict)]);
    wild.among(&[vec![("content", content.into())], beside].concat())
}

fn error(wild: &mut Wild) -> Value {
    let code = wild.pick(&[-32042, -32602, -32601, -32600, -32603, -32000, -32002, -32099, -1, 0, 7]);
    let mut error = json!({"code": code, "message": wild.text()});
    if wild.one_in(2) {
        error["data"] = wild.pick(&[
            json!({"elicitations": [{"mode": "url", "elicitationId": "e", "url": "https://example.com", "message": "m"}]}),
            json!({"kind": "permission_denied", "next": "x"}),
            Value::Null,
            json!([]),
        ]);
    } else if wild.one_in(2) {
        error["data"] = wild.value(3);
    }
    error
}

fn saying(wild: &mut Wild) -> Saying {
    let (at, total, message, data) = (wild.number(), wild.number(), wild.text(), wild.value(3));
    let beside = wild.some_of(&[("total", total), ("message", message.into())]);
    let report = wild.among(&[vec![("progressToken", TOKEN.into()), ("progress", at)], beside].concat());
    let (level, logger) = (wild.pick(&["info", "error", "emergency"]), wild.text());
    let beside = wild.some_of(&[("logger", logger.into())]);
    let log = wild.among(&[vec![("level", level.into()), ("data", data)], beside].concat());
    let mut before = vec![("notifications/progress", report), ("notifications/message", log)];
    if wild.one_in(2) {
        before.swap(0, 1);
    }
    Saying { before, answer: if wild.one_in(3) { Err(error(wild)) } else { Ok(result(wild)) } }
}

/// Checks that the client receives what the server sent. Members that concern only one connection are removed on both
/// sides.
async fn check_call(cell: &mut Cell, wild: &mut Wild) {
    let saying = saying(wild);
    let tool = format!("t{:02}", wild.below(TOOLS));
    let arguments = Value::Object(wild.object(3));
    let params = wild.among(&[("name", tool.as_str().into()), ("arguments", arguments)]);
    check_exchange(cell, "tools/call", params, saying).await;
}

/// The same of a request for a resource, a prompt or a completion.
async fn check_request(cell: &mut Cell, wild: &mut Wild) {
    let text = wild.text();
    let (method, asked, outcome) = match wild.below(3) {
        0 => {
            let contents = wild.among(&[("uri", "a://b".into()), ("text", text.into())]);
            ("resources/read", vec![("uri", "a://b".into())], ("contents", json!([contents])))
        }
        1 => {
            let content = block(wild);
            let message = wild.among(&[("role", "user".into()), ("content", content)]);
            ("prompts/get", vec![("name", "p".into())], ("messages", json!([message])))
        }
        _ => {
            let completion = wild.among(&[("values", json!([text])), ("total", 1.into()), ("hasMore", false.into())]);
            let of = json!({"type": "ref/prompt", "name": "p"});
            let argument = json!({"name": "a", "value": "v"});
            let asked = vec![("ref", of), ("argument", argument)];
            ("completion/complete", asked, ("completion", completion.into()))
        }
    };
    let mut saying = saying(wild);
    saying.answer = match saying.answer {
        // The code of a resource that there is not is fitted to the client.
        Err(said) if said["code"] == -32002 || said["code"] == -32602 => Err(json!({"code": -32042, "message": "m"})),
        Err(said) => Err(said),
        Ok(_) => Ok(wild.among(&[outcome])),
    };
    let params = wild.among(&asked);
    check_exchange(cell, method, params, saying).await;
}

/// Makes the request and compares what either side heard with what the other one said.
async fn check_exchange(cell: &mut Cell, method: &str, mut params: Map<String, Value>, saying: Saying) {
    cell.recorder.will_say(saying.clone());
    let token = json!("theirs");
    let meta = params.entry("_meta").or_insert_with(|| json!({}));
    meta["progressToken"] = token.clone();
    let mut heard = cell.exchange(method, params.clone()).await;
    let answer = heard.pop().unwrap();
    for (outcome, (method, said)) in heard.iter().zip(&saying.before) {
        assert_eq!(outcome["method"], *method, "{heard:?}");
        let mut said = said.clone();
        if said.contains_key("progressToken") {
            said["progressToken"] = token.clone();
        }
        check_same(outcome["params"].clone(), said);
    }
    assert_eq!(heard.len(), saying.before.len(), "{heard:?}");
    match saying.answer {
        Ok(said) => {
            let mut heard = answer["result"].as_object().unwrap_or_else(|| panic!("{answer}")).clone();
            heard.retain(|name, _| !matches!(name.as_str(), "resultType" | "ttlMs" | "cacheScope"));
            check_same(heard, said);
        }
        Err(said) => check_same(answer["error"].clone(), said),
    }

    let heard = cell.recorder.heard();
    let [heard] = &heard[..] else { panic!("{heard:?}") };
    check_same(without_hop(heard), without_hop(&params));
}

/// Returns the parameters of the method, `_meta` without the members that concern only one connection, and then the
/// unknown members in their order.
fn without_hop(params: &Map<String, Value>) -> Map<String, Value> {
    let mut rest = params.clone();
    let mut of_call = Map::new();
    for name in ["name", "arguments", "uri", "ref", "argument", "_meta"] {
        of_call.insert(name.into(), rest.shift_remove(name).unwrap_or_default());
    }
    if let Some(Value::Object(meta)) = of_call.get_mut("_meta") {
        meta.retain(|name, _| name != "progressToken" && !name.starts_with("io.modelcontextprotocol/"));
    }
    of_call.extend(rest);
    of_call
}

async fn check_cell(way: Way, client: ProtocolGeneration, server: ProtocolVersion) {
    let mut wild = Wild::of(16);
    wild.is_tame = true;
    let definitions = definitions(&mut wild);
    wild.is_tame = false;
    let mut cell = Cell::open(way, client, server, definitions.clone(), OutputSizePolicy::Bounded).await;
    let listed = cell.exchange("tools/list", Map::new()).await.pop().unwrap();
    let mut list = listed["result"].as_object().unwrap_or_else(|| panic!("{listed}")).clone();
    let listed = list.shift_remove("tools").unwrap().as_array().unwrap().clone();
    list.retain(|name, _| !matches!(name.as_str(), "resultType" | "ttlMs" | "cacheScope"));
    list["_meta"].as_object_mut().unwrap().shift_remove("io.modelcontextprotocol/serverInfo");
    check_same(list, list_members());
    assert_eq!(listed.len(), TOOLS, "{listed:?} {:?}", cell.server.status());
    for (listed, said) in listed.into_iter().zip(definitions) {
        check_same(listed, said);
    }
    for _ in 0..CALLS {
        check_call(&mut cell, &mut wild).await;
    }
    for _ in 0..CALLS {
        check_request(&mut cell, &mut wild).await;
    }
    cell.server.close().await;
}

#[tokio::test]
async fn a_legacy_client_receives_messages_of_a_legacy_server_unchanged() {
    for way in [Way::Lines, Way::Http] {
        check_cell(way, ProtocolGeneration::Legacy, ProtocolVersion::V20251125).await;
    }
}

#[tokio::test]
async fn a_legacy_client_receives_messages_of_a_modern_server_unchanged() {
    for way in [Way::Lines, Way::Http] {
        check_cell(way, ProtocolGeneration::Legacy, ProtocolVersion::V20260728).await;
    }
}

#[tokio::test]
async fn a_modern_client_receives_messages_of_a_legacy_server_unchanged() {
    for way in [Way::Lines, Way::Http] {
        check_cell(way, ProtocolGeneration::Modern, ProtocolVersion::V20251125).await;
    }
}

#[tokio::test]
async fn a_modern_client_receives_messages_of_a_modern_server_unchanged() {
    for way in [Way::Lines, Way::Http] {
        check_cell(way, ProtocolGeneration::Modern, ProtocolVersion::V20260728).await;
    }
}

/// Calls a tool of a server with this `output` setting, and returns the result.
async fn answered_with(output: OutputSizePolicy, said: Map<String, Value>) -> Value {
    let definitions = vec![json!({"name": "t00", "inputSchema": {"type": "object"}})];
    let mut cell =
        Cell::open(Way::Lines, ProtocolGeneration::Legacy, ProtocolVersion::V20251125, definitions, output).await;
    cell.recorder.will_say(Saying { before: Vec::new(), answer: Ok(said) });
    let params = json!({"name": "t00"}).as_object().unwrap().clone();
    let result = cell.exchange("tools/call", params).await.pop().unwrap()["result"].take();
    cell.server.close().await;
    result
}

#[tokio::test]
async fn a_large_result_is_forwarded_whole_only_if_the_server_is_configured_for_it() {
    let blocks: Vec<Value> = (0..300).map(|n| json!({"text": "x".repeat(1000), "type": "text", "n": n})).collect();
    let said =
        json!({"_meta": {"a": "y".repeat(40_000)}, "content": blocks, "structuredContent": {"z": "z".repeat(40_000)}});
    let said = said.as_object().unwrap().clone();
    check_same(answered_with(OutputSizePolicy::Whole, said.clone()).await, said.clone());
    let cut = answered_with(OutputSizePolicy::Bounded, said).await;
    assert!(cut.to_string().len() < 100_000 && cut["structuredContent"].is_null(), "{cut:.2000}");
}

#[tokio::test]
async fn protocol_errors_of_a_server_are_reported_as_upstream_errors() {
    for (client, server) in [
        (ProtocolGeneration::Legacy, ProtocolVersion::V20251125),
        (ProtocolGeneration::Modern, ProtocolVersion::V20260728),
    ] {
        let definitions = vec![json!({"name": "t00", "inputSchema": {"type": "object"}})];
        let mut cell = Cell::open(Way::Lines, client, server, definitions, OutputSizePolicy::Bounded).await;
        for code in [-32700, -32020, -32022] {
            let said = json!({"code": code, "message": "theirs", "data": {"supported": ["1900-01-01"]}});
            cell.recorder.will_say(Saying { before: Vec::new(), answer: Err(said) });
            let params = json!({"name": "t00", "arguments": {}}).as_object().unwrap().clone();
            let answer = cell.exchange("tools/call", params).await.pop().unwrap();
            assert_eq!(answer["result"]["isError"], true, "{answer}");
            assert_eq!(answer["result"]["_meta"]["toolstead/errorKind"], "upstream_protocol", "{answer}");
        }
        cell.server.close().await;
    }
}
