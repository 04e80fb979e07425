//! Resources and prompts from outside: over both transports, for both generations, and from the command line.

use crate::{
    binaries::{Home, Pipe, node_path, node_program, stderr, stdout},
    support::{HttpFront, StdioClient, TestApp, echo, legacy, modern, soon},
};
use serde_json::{Value, json};
use std::{os::unix::fs::symlink, sync::Arc};
use toolstead_domain::{AuditedRequestKind, testing::scripted_context::ScriptedContext};
use toolstead_presentation::mcp_server::stdio::StdioSettings;

async fn app() -> TestApp {
    let app = TestApp::with([echo()]).await;
    let provider =
        ScriptedContext::new("team").with_resource("team://a").with_template("team://{x}/b").with_prompt("p");
    app.app.context.register(Arc::new(provider)).await.unwrap();
    app
}

/// One way to one server.
enum Way {
    Stdio(Box<StdioClient>),
    Http { front: Box<HttpFront>, session: Option<String> },
}

impl Way {
    /// Every transport with every generation.
    async fn all(app: &TestApp) -> Vec<(bool, Self)> {
        let front = HttpFront::start(app).await;
        let session = Some(front.open_session().await);
        vec![
            (false, Self::Stdio(Box::new(StdioClient::legacy(app).await))),
            (true, Self::Stdio(Box::new(StdioClient::start(app, StdioSettings::default())))),
            (false, Self::Http { front: Box::new(front), session }),
            (true, Self::Http { front: Box::new(HttpFront::start(app).await), session: None }),
        ]
    }

    async fn ask(&mut self, is_modern: bool, method: &str, params: Value) -> Value {
        let request = if is_modern { modern(7, method, params) } else { legacy(7, method, params) };
        match self {
            Self::Stdio(client) => client.ask(request).await,
            Self::Http { front, session: Some(session) } => front.ask_in_session(session, &request).await.1,
            Self::Http { front, session: None } => {
                let response = soon(front.post_modern(&request).send()).await.unwrap();
                serde_json::from_str(&soon(response.text()).await.unwrap()).unwrap()
            }
        }
    }
}

#[tokio::test]
async fn unregistering_a_provider_removes_its_tools_and_resources() {
    let app = TestApp::with([echo()]).await;
    let of_the_same = ScriptedContext::new("scripted").with_resource("team://a");
    app.app.context.register(Arc::new(of_the_same)).await.unwrap();
    // Without a session, so that no notifications come between.
    let mut client = Way::Http { front: Box::new(HttpFront::start(&app).await), session: None };
    for left in [1, 0] {
        let tools = client.ask(true, "tools/list", json!({})).await["result"]["tools"].clone();
        let resources = client.ask(true, "resources/list", json!({})).await["result"]["resources"].clone();
        let counts = [&tools, &resources].map(|list| list.as_array().unwrap().len());
        assert_eq!(counts, [left, left], "{tools} {resources}");
        if left == 1 {
            app.app.unregister("scripted").await.unwrap();
        }
    }
}

/// The members that 2026-07-28 adds, taken away.
fn bare(mut result: Value) -> Value {
    for added in ["resultType", "ttlMs", "cacheScope", "_meta"] {
        result.as_object_mut().unwrap().shift_remove(added);
    }
    result
}

#[tokio::test]
async fn every_client_can_use_resources_prompts_and_completions() {
    let app = app().await;
    for (is_modern, mut way) in Way::all(&app).await {
        for (method, params, expected) in [
            (
                "resources/list",
                json!({}),
                json!({"resources": [{"uri": "team://a", "name": "team://a", "mimeType": "text/plain"}]}),
            ),
            (
                "resources/templates/list",
                json!({}),
                json!({"resourceTemplates": [{"uriTemplate": "team://{x}/b", "name": "team://{x}/b"}]}),
            ),
            ("prompts/list", json!({}), json!({"prompts": [{"name": "p"}]})),
            (
                "resources/read",
                json!({"uri": "team://1/b"}),
                json!({"contents": [{"uri": "team://1/b", "text": "team://1/b"}]}),
            ),
            (
                "prompts/get",
                json!({"name": "p", "arguments": {"a": "b"}}),
                json!({"messages": [{"role": "user", "content": {"type": "text", "text": "p {\"a\":\"b\"}"}}]}),
            ),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "b"}}),
                json!({"completion": {"values": ["b!"], "hasMore": false}}),
            ),
        ] {
            let answer = way.ask(is_modern, method, params).await;
            let result = &answer["result"];
            assert!(result.is_object(), "{method}: {answer}");
            assert_eq!(result["resultType"] == "complete", is_modern, "{method}: {answer}");
            if is_modern && (method.ends_with("list") || method == "resources/read") {
                assert!(result["ttlMs"].is_u64() && result["cacheScope"] == "private", "{answer}");
            }
            assert_eq!(bare(result.clone()), expected, "{method}");
        }
    }
    let kinds = |kind| app.log.rows().iter().filter(|row| row.kind == kind).count();
    assert_eq!(
        [AuditedRequestKind::Resource, AuditedRequestKind::Prompt, AuditedRequestKind::Completion].map(kinds),
        [4; 3]
    );
}

#[tokio::test]
async fn missing_items_and_malformed_requests_have_generation_specific_error_codes() {
    let app = app().await;
    for (is_modern, mut way) in Way::all(&app).await {
        let missing = if is_modern { -32602 } else { -32002 };
        for (method, params, code, kind) in [
            ("resources/read", json!({"uri": "team://none"}), missing, "not_found"),
            ("prompts/get", json!({"name": "none"}), -32602, "not_found"),
            ("prompts/get", json!({"name": "p", "arguments": {"a": 1}}), -32602, "invalid_input"),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "none"}, "argument": {"name": "a", "value": ""}}),
                -32602,
                "not_found",
            ),
            ("completion/complete", json!({"ref": {}}), -32602, "invalid_input"),
            ("prompts/list", json!({"cursor": "x"}), -32602, "invalid_input"),
            if is_modern {
                ("resources/subscribe", json!({}), -32601, "not_found")
            } else {
                ("resources/subscribe", json!({}), -32602, "invalid_input")
            },
        ] {
            let error = &way.ask(is_modern, method, params.clone()).await["error"];
            assert_eq!((&error["code"], &error["data"]["kind"]), (&json!(code), &json!(kind)), "{method} {params}");
            if method == "resources/read" {
                assert_eq!(error["data"]["uri"], "team://none");
            }
        }
    }
}

fn uri(home: &Home, name: &str) -> String {
    format!("file://{}/{name}", home.work().canonicalize().unwrap().display())
}

#[test]
fn the_configuration_resource_contains_no_secrets() {
    let home = Home::new();
    let config = r#"
        [limits]
        timeout_seconds = 77
        [mcp_servers.one]
        command = "one-server"
        args = ["--token", "secret-argument", "--url", "https://me:secret-password@h/"]
        env = { PLAIN = "secret-plain", NAMED = "${HOME}", HALF = "secret-half${HOME}", FALLBACK = "${NONE:-secret-default}" }
        [mcp_servers.two]
        url = "https://user:secret-url@127.0.0.1:9/mcp?token=secret-query"
        headers = { Authorization = "Bearer secret-header", X-Other = "secret-other" }
        [server]
        token_file = "secret-file"
        [permissions]
        ask = ["Bash(curl -H 'Authorization: Bearer secret-rule' *)"]
    "#;
    let config = home.config(config);
    let config = config.to_str().unwrap();
    let output = home.run(&["--config", config, "resources", "read", "config://server"]);
    let printed = stdout(&output);
    let json: Value =
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}{}", stderr(&output)));
    let settings = &json["settings"];
    assert_eq!(settings["limits.timeout_seconds"], 77);
    assert_eq!(settings["mcp_servers.one.command"], "one-server");
    assert_eq!(settings["mcp_servers.one.env"]["NAMED"], "${HOME}");
    assert!(!printed.contains("secret-"), "{printed}");
}

#[test]
fn file_resources_are_read_within_roots_and_rules_and_recorded_in_the_audit_log() {
    let home = Home::new();
    std::fs::write(home.work().join("a.txt"), "hello\n").unwrap();
    std::fs::create_dir(home.work().join("secret")).unwrap();
    std::fs::write(home.work().join("secret/key"), "key\n").unwrap();
    symlink("/etc/passwd", home.work().join("link")).unwrap();
    let secret = home.work().canonicalize().unwrap().join("secret");
    let rule = format!("Read(/{}/**)", secret.display());
    let config = home.config(&format!("[permissions]\ndeny = [{rule:?}, \"get_prompt(name:debug_help)\"]\n"));
    let config = config.to_str().unwrap();
    let read = |uri: &str| {
        let output = home.run(&["--config", config, "resources", "read", uri]);
        (output.status.code(), stdout(&output))
    };
    assert_eq!(read(&uri(&home, "a.txt")), (Some(0), "hello\n".to_owned()));
    for (name, code) in [
        ("secret/key", 3),
        ("link", 3),
        ("../config", 2),
        ("..%2f..%2fetc/passwd", 2),
        ("%252e%252e/config", 4),
        ("a.txt%00", 2),
        ("missing", 4),
    ] {
        assert_eq!(read(&uri(&home, name)), (Some(code), String::new()), "{name}");
    }
    assert_eq!(read("file://host/etc/passwd").0, Some(4));
    assert_eq!(read("file:///etc/passwd").0, Some(3));
    let prompts = stdout(&home.run(&["--config", config, "prompts"]));
    assert!(prompts.contains("code_review code [language]") && !prompts.contains("debug_help"), "{prompts}");
    let get = home.run(&["--config", config, "prompts", "get", "code_review", "--argument", "code=let x = 1;"]);
    assert!(stdout(&get).contains("let x = 1;"), "{}", stderr(&get));
    let denied = home.run(&["--config", config, "prompts", "get", "debug_help", "--argument", "code=x"]);
    assert_eq!(denied.status.code(), Some(3), "{}", stderr(&denied));
    let trail = home.run(&["--config", config, "--json", "executions", "list", "--kind", "resource", "--limit", "99"]);
    let trail: Value = serde_json::from_slice(&trail.stdout).unwrap();
    let rows = trail["executions"].as_array().unwrap();
    assert_eq!(rows.len(), 10);
    assert!(
        rows.iter().all(|row| row["kind"] == "resource" && row["called_as"].as_str().unwrap().starts_with("file:"))
    );
    let closed = home.config("[permissions]\ndeny = [\"read_resource\"]\n");
    let listed = home.run(&["--config", closed.to_str().unwrap(), "--json", "resources", "list"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed, json!({"resources": [], "resourceTemplates": []}));
}

#[test]
fn resources_and_prompts_of_two_real_servers_are_usable_and_distinguished() {
    let home = Home::new();
    let server = |name: &str| {
        let program = node_program("mcp-server-everything");
        format!(
            "[mcp_servers.{name}]\ncommand = {program:?}\nargs = [\"stdio\"]\nallow_tools = [\"*\"]\nenv = {{ PATH = {:?} }}\n",
            node_path()
        )
    };
    let config = home.config(&(server("one") + &server("two")));
    let mut command = home.toolstead(&["mcp", "--config"]);
    command.arg(config);
    let mut pipe = Pipe::start(command);
    pipe.initialize();
    let mut ask = |id: i64, method: &str, params: Value| {
        pipe.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        pipe.answer(id)
    };
    let features = "demo://resource/static/document/features.md";
    for (id, uri) in [
        (1, features.to_owned()),
        (2, format!("toolstead://one/{features}")),
        (3, format!("toolstead://two/{features}")),
    ] {
        let answer = ask(id, "resources/read", json!({"uri": uri}));
        let content = &answer["result"]["contents"][0];
        assert_eq!((&content["uri"], &content["mimeType"]), (&json!(uri), &json!("text/markdown")), "{answer}");
    }
    let uris = |answer: &Value, list: &str, member: &str| -> Vec<String> {
        let listed = answer["result"][list].as_array().unwrap_or_else(|| panic!("{answer}")).iter();
        listed.map(|one| one[member].as_str().unwrap().to_owned()).collect()
    };
    let listed = uris(&ask(4, "resources/list", json!({})), "resources", "uri");
    let of_both = listed.iter().filter(|uri| uri.ends_with("features.md")).count();
    assert!(of_both == 2 && listed.iter().any(|uri| uri == features), "{listed:?}");
    let templates = uris(&ask(5, "resources/templates/list", json!({})), "resourceTemplates", "uriTemplate");
    assert_eq!(templates.iter().filter(|text| text.ends_with("demo://resource/dynamic/text/{resourceId}")).count(), 2);
    let prompts = uris(&ask(6, "prompts/list", json!({})), "prompts", "name");
    for server in ["one", "two"] {
        assert!(prompts.contains(&format!("mcp__{server}__simple-prompt")), "{prompts:?}");
    }
    let got = ask(7, "prompts/get", json!({"name": "mcp__two__args-prompt", "arguments": {"city": "Rome"}}));
    assert!(got["result"]["messages"][0]["content"]["text"].as_str().unwrap().contains("Rome"), "{got}");
    let completed = ask(
        8,
        "completion/complete",
        json!({"ref": {"type": "ref/prompt", "name": "mcp__one__completable-prompt"},
            "argument": {"name": "department", "value": "E"}}),
    );
    assert_eq!(completed["result"]["completion"]["values"], json!(["Engineering"]), "{completed}");
    let watched = ask(9, "resources/subscribe", json!({"uri": features}));
    assert_eq!(watched["result"], json!({}), "{watched}");
    let missing = ask(10, "resources/read", json!({"uri": "demo://resource/none"}));
    assert_eq!(
        (&missing["error"]["code"], &missing["error"]["data"]["uri"]),
        (&json!(-32002), &json!("demo://resource/none"))
    );
}
