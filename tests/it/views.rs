//! Views: what clients of `/mcp/NAME` and of `toolstead mcp --view NAME` receive and may call.

use crate::{
    binaries::{Home, Pipe, Server, TOKEN, stderr, stdout},
    support::{HttpFront, StdioClient, TestApp, call, echo, initialize, legacy, messages, modern, only, soon},
};
use rmcp::{
    ServiceExt,
    model::{CallToolRequestParams, ClientConfig, ProtocolVersion},
    service::{ClientLifecycleMode, ClientServiceExt},
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use toolstead_domain::{
    Category, ServerName, Tool, ToolName, ToolOverlay, ToolSelection, ToolSource, View, ViewContent,
    testing::{scripted_context::ScriptedContext, scripted_provider::scripted_tool::ScriptedTool},
};
use toolstead_presentation::mcp_server::stdio::StdioSettings;

/// A tool of the server `git` with two parameters, one of which is required.
fn log() -> ScriptedTool {
    let server = ServerName::parse("git").unwrap();
    let schema = json!({
        "type": "object",
        "properties": {"repo_path": {"type": "string"}, "max_count": {"type": "integer"}, "since": {"type": "string"}},
        "required": ["repo_path"],
    });
    let definition = json!({"description": "Shows commits.", "inputSchema": schema}).as_object().unwrap().clone();
    let name = ToolName::for_upstream(&server, "git_log");
    let source = ToolSource::McpServer { server, tool: "git_log".into() };
    ScriptedTool::of(Tool::new(name, definition, Category::Mcp, source))
}

fn overlay(name: &str, fixed: Value) -> ToolOverlay {
    ToolOverlay {
        name: ToolName::parse(name).ok(),
        description: Some("The last twenty commits.".into()),
        fixed: fixed.as_object().unwrap().clone(),
        hidden: Vec::new(),
    }
}

/// An application with the view `review`: the renamed log, one of two resources, one of two prompts.
async fn app(tools: impl IntoIterator<Item = ScriptedTool>) -> TestApp {
    let mut app = TestApp::with([echo(), log()].into_iter().chain(tools)).await;
    let context = ScriptedContext::new("team")
        .with_resource("team://open/a")
        .with_resource("team://closed/a")
        .with_template("team://open/{x}")
        .with_template("other://{x}")
        .with_prompt("shown")
        .with_prompt("unshown");
    app.app.context.register(Arc::new(context)).await.unwrap();
    let overlay = overlay("history", json!({"repo_path": ".", "max_count": 20}));
    let content = ViewContent::new(BTreeMap::from([("mcp__git__git_log".to_owned(), overlay)])).unwrap();
    let content = content.with_resources(["team://open/*".to_owned()]).with_prompts(["shown".to_owned()]);
    let tools = ToolSelection::only(["mcp__git__*", "extra_*", "read_resource", "get_prompt"]);
    let view = View::with_content("review", Arc::new(app.app.policy.window(tools)), content);
    app.app.views = Arc::new(BTreeMap::from([("review".to_owned(), view)]));
    app
}

/// Client of the view over one transport.
enum ViewClient {
    Stdio(Box<StdioClient>),
    Http(Box<HttpFront>, Option<String>),
}

fn post(front: &HttpFront, path: &str, message: &Value) -> reqwest::RequestBuilder {
    let post = front.client.post(front.url(path)).bearer_auth(crate::support::TOKEN);
    let post = post.header("accept", "application/json, text/event-stream").header("content-type", "application/json");
    post.body(message.to_string())
}

fn post_modern(front: &HttpFront, path: &str, message: &Value) -> reqwest::RequestBuilder {
    let post = post(front, path, message).header("mcp-protocol-version", "2026-07-28");
    let post = post.header("mcp-method", message["method"].as_str().unwrap());
    let params = &message["params"];
    match params["name"].as_str().or(params["uri"].as_str()) {
        Some(name) => post.header("mcp-name", name),
        None => post,
    }
}

async fn open_session(front: &HttpFront, path: &str) -> String {
    let response = soon(post(front, path, &initialize("2025-11-25")).send()).await.unwrap();
    assert_eq!(response.status(), 200);
    response.headers()["mcp-session-id"].to_str().unwrap().to_owned()
}

fn in_session(front: &HttpFront, path: &str, session: &str, message: &Value) -> reqwest::RequestBuilder {
    post(front, path, message).header("mcp-session-id", session).header("mcp-protocol-version", "2025-11-25")
}

impl ViewClient {
    /// Every transport with every generation.
    async fn all(app: &TestApp) -> Vec<(bool, Self)> {
        let settings = || StdioSettings { view: Some("review".into()), ..StdioSettings::default() };
        let mut old = StdioClient::start(app, settings());
        old.ask(initialize("2025-11-25")).await;
        old.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        let front = HttpFront::start(app).await;
        let session = open_session(&front, "/mcp/review").await;
        vec![
            (false, Self::Stdio(Box::new(old))),
            (true, Self::Stdio(Box::new(StdioClient::start(app, settings())))),
            (false, Self::Http(Box::new(front), Some(session))),
            (true, Self::Http(Box::new(HttpFront::start(app).await), None)),
        ]
    }

    async fn ask(&mut self, is_modern: bool, method: &str, params: Value) -> Value {
        let request = if is_modern { modern(7, method, params) } else { legacy(7, method, params) };
        let sent = match self {
            Self::Stdio(client) => return client.ask(request).await,
            Self::Http(front, Some(session)) => in_session(front, "/mcp/review", session, &request),
            Self::Http(front, None) => post_modern(front, "/mcp/review", &request),
        };
        only(messages(soon(sent.send()).await.unwrap()).await)
    }

    async fn list(&mut self, is_modern: bool, method: &str, member: &str, key: &str) -> Vec<String> {
        let answer = self.ask(is_modern, method, json!({})).await;
        let list = answer["result"][member].as_array().unwrap_or_else(|| panic!("{answer}")).clone();
        list.iter().map(|one| one[key].as_str().unwrap().to_owned()).collect()
    }
}

#[tokio::test]
async fn every_client_of_a_view_receives_its_tools_and_calls_them_by_their_names_there() {
    let app = app([]).await;
    for (is_modern, mut way) in ViewClient::all(&app).await {
        let answer = way.ask(is_modern, "tools/list", json!({})).await;
        let shown = json!([{
            "description": "The last twenty commits.",
            "inputSchema": {"type": "object", "properties": {"since": {"type": "string"}}},
            "name": "history",
        }]);
        assert_eq!(answer["result"]["tools"], shown, "{answer}");
        let calls = app.provider.calls().len();
        for name in ["history", "mcp__git__git_log"] {
            let answer = way.ask(is_modern, "tools/call", call(name, json!({"since": "May"}))).await;
            assert!(answer["result"]["content"].is_array() && answer["result"]["isError"] != true, "{answer}");
        }
        let made = app.provider.calls();
        let arguments = json!({"since": "May", "repo_path": ".", "max_count": 20});
        for made in &made[calls..] {
            assert_eq!((made.tool.name().as_str(), &json!(made.arguments)), ("mcp__git__git_log", &arguments));
        }
        assert_eq!(made.len(), calls + 2);

        let fixed = way.ask(is_modern, "tools/call", call("history", json!({"max_count": 20}))).await;
        let text = fixed["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{fixed}"));
        assert!(text.contains("The view `review` fixes the value of `max_count`."), "{text}");
        assert!(text.contains("Call again without `max_count`."), "{text}");
        let outside = way.ask(is_modern, "tools/call", call("echo", json!({"message": "hi"}))).await;
        assert!(outside["result"]["isError"] == true || outside["error"].is_object(), "{outside}");
        assert_eq!(app.provider.calls().len(), calls + 2);
    }
    let rows = app.log.rows();
    let history: Vec<_> = rows.iter().filter(|row| row.called_as == "history").collect();
    assert_eq!(history.len(), 8);
    assert!(history.iter().all(|row| row.tool == "mcp__git__git_log"));
    let complete = history.iter().filter(|row| row.arguments["max_count"] == 20 && row.arguments["since"] == "May");
    assert_eq!(complete.count(), 4, "records have the complete arguments");
}

#[tokio::test]
async fn a_view_selects_resources_and_prompts() {
    let app = app([]).await;
    for (is_modern, mut way) in ViewClient::all(&app).await {
        assert_eq!(way.list(is_modern, "resources/list", "resources", "uri").await, ["team://open/a"]);
        let templates = way.list(is_modern, "resources/templates/list", "resourceTemplates", "uriTemplate").await;
        assert_eq!(templates, ["team://open/{x}"]);
        assert_eq!(way.list(is_modern, "prompts/list", "prompts", "name").await, ["shown"]);
        for (method, params, is_offered) in [
            ("resources/read", json!({"uri": "team://open/b"}), true),
            ("resources/read", json!({"uri": "team://closed/a"}), false),
            ("resources/read", json!({"uri": "other://b"}), false),
            ("prompts/get", json!({"name": "shown"}), true),
            ("prompts/get", json!({"name": "unshown"}), false),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "shown"}, "argument": {"name": "a", "value": "b"}}),
                true,
            ),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "unshown"}, "argument": {"name": "a", "value": "b"}}),
                false,
            ),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/resource", "uri": "other://{x}"}, "argument": {"name": "x", "value": "b"}}),
                false,
            ),
        ] {
            let answer = way.ask(is_modern, method, params.clone()).await;
            assert_eq!(answer["result"].is_object(), is_offered, "{method} {params}: {answer}");
            assert!(is_offered || answer["error"]["data"]["kind"] == "not_found", "{answer}");
        }
    }
}

#[tokio::test]
async fn pages_of_a_view_have_its_tools_only_and_changes_are_reported() {
    let long = |number: usize| {
        let definition = json!({"description": "x".repeat(60_000), "inputSchema": {"type": "object"}});
        let (group, name) = if number.is_multiple_of(2) { ("extra", number) } else { ("left", number) };
        let name = ToolName::parse(&format!("{group}_{name:02}")).unwrap();
        let definition = definition.as_object().unwrap().clone();
        ScriptedTool::of(Tool::new(name, definition, Category::Utility, ToolSource::BuiltIn))
    };
    let app = app((0..50).map(long)).await;
    for (is_modern, mut way) in ViewClient::all(&app).await {
        let (mut names, mut cursor, mut pages) = (Vec::new(), Value::Null, 0);
        while pages == 0 || !cursor.is_null() {
            let params = if pages == 0 { json!({}) } else { json!({"cursor": cursor}) };
            let answer = way.ask(is_modern, "tools/list", params).await;
            let page = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}")).clone();
            names.extend(page.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
            cursor = answer["result"]["nextCursor"].clone();
            pages += 1;
        }
        let expected = (0..25).map(|number| format!("extra_{:02}", 2 * number)).chain(["history".to_owned()]);
        assert_eq!((names, pages), (expected.collect::<Vec<_>>(), 2));
    }
    let settings = StdioSettings { view: Some("review".into()), ..StdioSettings::default() };
    let mut client = StdioClient::start(&app, settings);
    client.ask(initialize("2025-11-25")).await;
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    client.ask(legacy(1, "tools/list", json!({}))).await;
    app.provider.replace_tools([log()]);
    assert_eq!(client.next().await["method"], "notifications/tools/list_changed");
    let answer = client.ask(legacy(2, "tools/list", json!({}))).await;
    assert_eq!(answer["result"]["tools"].as_array().unwrap().len(), 1, "{answer}");
}

#[tokio::test]
async fn a_session_belongs_to_its_view_and_an_unknown_view_is_not_found() {
    let app = app([]).await;
    let front = HttpFront::start(&app).await;
    let (of_view, of_all) = (open_session(&front, "/mcp/review").await, open_session(&front, "/mcp").await);
    let list = legacy(1, "tools/list", json!({}));
    for (path, session, status) in
        [("/mcp/review", &of_view, 200), ("/mcp", &of_view, 404), ("/mcp", &of_all, 200), ("/mcp/review", &of_all, 404)]
    {
        let response = soon(in_session(&front, path, session, &list).send()).await.unwrap();
        assert_eq!(response.status(), status, "{path}");
    }
    let end = front.client.delete(front.url("/mcp")).bearer_auth(crate::support::TOKEN);
    assert_eq!(soon(end.header("mcp-session-id", &of_view).send()).await.unwrap().status(), 404);

    let request = modern(1, "tools/list", json!({}));
    let response = soon(post_modern(&front, "/mcp/reviw", &request).send()).await.unwrap();
    assert_eq!(response.status(), 404);
    assert_eq!(soon(response.text()).await.unwrap(), "no view is called `reviw`; did you mean `review`?\n");
    for path in ["/mcp/", "/mcp/review/x", "/mcp/REVIEW"] {
        let response = soon(post_modern(&front, path, &request).send()).await.unwrap();
        assert_eq!(response.status(), 404, "{path}");
    }
    let without_token = front.client.post(front.url("/mcp/reviw")).body(request.to_string());
    assert_eq!(soon(without_token.send()).await.unwrap().status(), 401, "views are not revealed without a token");
}

#[tokio::test]
async fn a_real_client_of_each_generation_uses_a_view_over_http() {
    let app = app([]).await;
    let front = HttpFront::start(&app).await;
    let transport = || {
        let url = front.url("/mcp/review");
        let config = StreamableHttpClientTransportConfig::with_uri(url).auth_header(crate::support::TOKEN);
        StreamableHttpClientTransport::with_client(front.client.clone(), config)
    };
    let arguments = || json!({"since": "May"}).as_object().unwrap().clone();
    let old = soon(Box::pin(ClientConfig::default().serve(transport()))).await.unwrap();
    assert_eq!(soon(old.list_all_tools()).await.unwrap()[0].name, "history");
    soon(old.call_tool(CallToolRequestParams::new("history").with_arguments(arguments()))).await.unwrap();
    old.cancel().await.unwrap();
    let discover = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let new = soon(Box::pin(ClientConfig::default().serve_with_lifecycle(transport(), discover))).await.unwrap();
    assert_eq!(soon(new.list_all_tools()).await.unwrap()[0].name, "history");
    soon(new.call_tool(CallToolRequestParams::new("history").with_arguments(arguments()))).await.unwrap();
    new.cancel().await.unwrap();
    let made = app.provider.calls();
    assert_eq!(made.len(), 2);
    assert!(made.iter().all(|made| made.arguments["max_count"] == 20));
}

/// A view of built-in tools in a configuration.
const CONFIG: &str = r#"
[views.review]
tools = ["read_file", "grep", "echo"]
resources = ["config://*"]
deny = ["Read(secrets/**)"]
output_bytes = 1000
[views.review.overlay.echo]
name = "say"
description = "Says hello."
fixed = { message = "hello" }
"#;

fn check(home: &Home, arguments: &[&str], code: i32, texts: &[&str]) -> String {
    let output = home.run(arguments);
    let printed = format!("{}{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {printed}");
    for text in texts {
        assert!(printed.contains(text), "{arguments:?} does not say `{text}`: {printed}");
    }
    stdout(&output)
}

#[test]
fn a_view_is_served_over_stdio_with_its_rules_and_limits() {
    let home = Home::new();
    for (name, text) in [("secrets/key", "s3cret"), ("open.txt", "open"), ("long.txt", &"long line\n".repeat(1000))] {
        let path = home.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let config = home.config(CONFIG);
    let config = config.to_str().unwrap();
    let mut client = Pipe::start(home.toolstead(&["mcp", "--config", config, "--view", "review"]));
    client.initialize();
    let mut ask = |id: i64, method: &str, params: Value| {
        client.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        client.answer(id)["result"].clone()
    };
    let list = ask(1, "tools/list", json!({}));
    let names: Vec<_> = list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["grep", "read_file", "say"]);
    assert_eq!(list["tools"][2]["description"], "Says hello.");
    assert_eq!(ask(2, "tools/call", call("say", json!({})))["content"][0]["text"], "Echo: hello");
    let text = |result: &Value| result["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(text(&ask(3, "tools/call", call("read_file", json!({"path": "open.txt"})))).contains("open"));
    let denied = text(&ask(4, "tools/call", call("read_file", json!({"path": "secrets/key"}))));
    assert!(denied.contains("Read(secrets/**)") && !denied.contains("s3cret"), "{denied}");
    let long = text(&ask(5, "tools/call", call("read_file", json!({"path": "long.txt"}))));
    assert!(long.len() < 2_000, "{}", long.len());
    let resources = ask(6, "resources/list", json!({}));
    assert_eq!(resources["resources"].as_array().unwrap().len(), 1, "{resources}");
    assert_eq!(ask(7, "prompts/list", json!({}))["prompts"], json!([]));
    client.finish();
    check(
        &home,
        &["mcp", "--config", config, "--view", "reviw"],
        2,
        &["no view is called `reviw`; did you mean `review`?"],
    );
    let listed = check(&home, &["executions", "list", "--json", "--config", config], 0, &[]);
    assert!(listed.contains(r#""tool":"echo""#) || listed.contains(r#""tool": "echo""#), "{listed}");
    assert!(listed.contains(r#"hello"#), "{listed}");
}

#[test]
fn the_command_line_lists_and_calls_tools_through_a_view() {
    let home = Home::new();
    std::fs::create_dir(home.work().join("secrets")).unwrap();
    std::fs::write(home.work().join("secrets/key"), "s3cret").unwrap();
    let config = home.config(CONFIG);
    let in_view = |command: &'static str, view: &'static str, rest: &[&'static str]| {
        [&[command, "--config", config.to_str().unwrap(), "--view", view][..], rest]
            .concat()
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let run = |arguments: Vec<String>, code: i32, texts: &[&str]| {
        check(&home, &arguments.iter().map(String::as_str).collect::<Vec<_>>(), code, texts)
    };
    let listed = run(in_view("tools", "review", &[]), 0, &["read_file", "Says hello."]);
    assert!(!listed.contains("echo") && !listed.contains("bash"), "{listed}");
    let shown = run(in_view("tools", "review", &["say"]), 0, &["Says hello."]);
    assert!(!shown.contains("\"message\": {"), "{shown}");
    let sent = run(in_view("tools", "review", &["--provider", "anthropic"]), 0, &["\"say\""]);
    assert!(!sent.contains("\"echo\""), "{sent}");
    run(in_view("call", "review", &["say"]), 0, &["Echo: hello"]);
    run(
        in_view("call", "review", &["say", r#"{"message": "bye"}"#]),
        2,
        &["The view `review` fixes the value of `message`"],
    );
    run(in_view("call", "review", &["read_file", r#"{"path": "secrets/key"}"#]), 3, &["Read(secrets/**)"]);
    run(in_view("call", "review", &["glob", r#"{"pattern": "*"}"#]), 3, &["glob"]);
    let unknown = "no view is called `reviw`; did you mean `review`?";
    run(in_view("tools", "reviw", &[]), 2, &[unknown]);
    run(in_view("call", "reviw", &["say"]), 2, &[unknown]);
}

#[test]
fn a_view_limits_its_open_calls() {
    let home = Home::new();
    std::fs::write(home.work().join("a.txt"), "text").unwrap();
    let config = home.config("[views.one]\ntools = [\"read_file\", \"write_file\"]\ncalls_in_flight = 1\n");
    let mut client = Pipe::start(home.toolstead(&["mcp", "--config", config.to_str().unwrap(), "--view", "one"]));
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "test", "version": "1"}});
    client.send(legacy(0, "initialize", hello).to_string());
    client.answer(0);
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let read = |id| legacy(id, "tools/call", call("read_file", json!({"path": "a.txt"}))).to_string();
    client.send(legacy(1, "tools/call", call("write_file", json!({"path": "b.txt", "content": "x"}))).to_string());
    let question = client.receive();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    client.send(read(2));
    let refused = client.answer(2)["result"].take();
    assert_eq!(refused["_meta"]["toolstead/errorKind"], "rate_limited", "{refused}");
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("1 calls are open already in this view") && text.contains("Wait for a running call"),
        "{text}"
    );
    client.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}).to_string());
    client.answer(1);
    client.send(read(3));
    let result = client.answer(3)["result"].take();
    assert_eq!(result["isError"], json!(null), "{result}");
    client.finish();
}

#[tokio::test]
async fn the_server_serves_configured_views_beside_all_tools() {
    let home = Home::new();
    let server = Server::start(&home, CONFIG);
    // Another test may have installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let names = async |path: &str| {
        let request = modern(1, "tools/list", json!({}));
        let post = client.post(format!("{}{path}", server.url())).bearer_auth(TOKEN).body(request.to_string());
        let post = post.header("accept", "application/json, text/event-stream");
        let post = post.header("content-type", "application/json").header("mcp-method", "tools/list");
        let response = soon(post.header("mcp-protocol-version", "2026-07-28").send()).await.unwrap();
        let answer = only(messages(response).await);
        let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}")).clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("/review").await, ["grep", "read_file", "say"]);
    let all = names("").await;
    assert!(all.contains(&"echo".to_owned()) && !all.contains(&"say".to_owned()), "{all:?}");
}

#[test]
fn views_are_listed_shown_exported_and_imported() {
    let home = Home::new();
    let config = home.config(CONFIG);
    let config = config.to_str().unwrap();
    check(&home, &["views", "list", "--config", config], 0, &["review", "read_file, grep, echo", "config://*", "none"]);
    let shown = check(&home, &["views", "show", "review", "--config", config], 0, &["say", "echo"]);
    assert!(!shown.contains("message"), "{shown}");
    check(&home, &["views", "show", "none", "--config", config], 2, &["no view is called `none`; there are review"]);

    let exported = check(&home, &["views", "export", "review", "--config", config], 0, &["[views.review]"]);
    let as_json = check(&home, &["views", "export", "review", "--json", "--config", config], 0, &[]);
    let parsed: Value = serde_json::from_str(&as_json).unwrap();
    assert_eq!(parsed["views"]["review"]["overlay"]["echo"]["fixed"], json!({"message": "hello"}));
    let other = Home::new();
    for (name, text) in [("review.toml", &exported), ("review.json", &as_json)] {
        std::fs::write(other.work().join(name), text).unwrap();
    }
    check(&other, &["views", "import", "review.toml"], 0, &["added review to", "config.toml"]);
    check(&other, &["views", "import", "review.json"], 2, &["has a view `review` already: `--replace` replaces it"]);
    check(&other, &["views", "import", "review.json", "--replace"], 0, &["added review"]);
    assert_eq!(check(&other, &["views", "export", "review"], 0, &[]), exported);
    check(&other, &["views", "list"], 0, &["review"]);

    let before = check(&other, &["views", "export", "review"], 0, &[]);
    for (name, text, expected) in [
        ("a.toml", "[permissions]\nallow = [\"Bash\"]", "only the section `views` is imported"),
        ("b.toml", "[views.x]\ntool = [\"echo\"]", "unknown key `views.x.tool`; did you mean `tools`?"),
        ("c.toml", "[views.x.overlay.grep]\nhide = [\"pattern\"]", "requires the parameter `pattern`"),
        ("d.txt", "", "the name of the file must end in"),
        ("missing.toml", "-", "cannot be read"),
    ] {
        if text != "-" {
            std::fs::write(other.work().join(name), text).unwrap();
        }
        check(&other, &["views", "import", name], 2, &[expected]);
    }
    assert_eq!(check(&other, &["views", "export", "review"], 0, &[]), before);
    check(&other, &["views", "show", "x"], 2, &["no view is called `x`"]);
}

#[test]
fn overlays_that_do_not_fit_are_configuration_errors() {
    let home = Home::new();
    for (overlay, expected) in [
        (
            "overlay.grep]\nhide = [\"pattern\"]",
            "`views.v.overlay.grep`: the tool `grep` requires the parameter `pattern`",
        ),
        ("overlay.echo]\nfixed = { mesage = 1 }", "the tool `echo` has no parameter `mesage`; did you mean `message`?"),
        (
            "overlay.echo]\nfixed = { message = 1 }",
            "the fixed value at `/message` does not fit the tool: expected a string",
        ),
        ("overlay.ecko]\nname = \"x\"", "no tool is called `ecko`; did you mean `echo`?"),
        ("overlay.glob]\nname = \"x\"", "the view does not select the tool"),
        ("overlay.Read]\nname = \"x\"", "it is another name of `read_file`: use that one"),
        ("overlay.echo]\nname = \"grep\"", "`grep` is the name of another tool of the view"),
        ("overlay.echo]\nname = \"a b\"", "is not among"),
    ] {
        let config =
            home.config(&format!("[views.v]\ntools = [\"echo\", \"grep\", \"read_file\"]\n[views.v.{overlay}\n"));
        check(&home, &["config", "check", "--config", config.to_str().unwrap()], 2, &[expected]);
    }
    let config = home.config("[views.v]\ntools = [\"ecko\"]\n");
    check(&home, &["config", "check", "--config", config.to_str().unwrap()], 2, &["no tool is called `ecko`"]);
    let config = home.config("[views.v]\ntools = [\"nothing_*\"]\n");
    check(&home, &["config", "check", "--config", config.to_str().unwrap()], 0, &["`nothing_*` fits no tool"]);
}
