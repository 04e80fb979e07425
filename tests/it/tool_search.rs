//! Deferred tools: the first list, the search and calls in both protocol generations, and figures of costs and recall.

mod catalogue;
mod embeddings;
mod figures;

use crate::support::{HttpFront, StdioClient, TestApp, call, legacy, modern, text_of};
use catalogue::{SearchApp, catalogue};
use serde_json::{Value, json};
use toolstead_domain::ServerName;
use toolstead_presentation::mcp_server::stdio::StdioSettings;

/// Four bytes are about a token.
fn tokens(tools: &[Value]) -> usize {
    tools.iter().map(|tool| tool.to_string().len() + 1).sum::<usize>() / 4
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

fn tools_in(answer: &mut Value) -> Vec<Value> {
    assert_eq!(answer["result"].get("nextCursor"), None, "{answer}");
    serde_json::from_value(answer["result"]["tools"].take()).unwrap_or_else(|_| panic!("{answer}"))
}

/// Returns the first list of a client of this name, in a session.
async fn listed_by(app: &TestApp, client: &str) -> Vec<Value> {
    let mut pipe = StdioClient::start(app, StdioSettings::default());
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": client, "version": "2.1"}});
    pipe.answer_to(legacy(1, "initialize", hello)).await;
    pipe.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    tools_in(&mut pipe.answer_to(legacy(2, "tools/list", json!({}))).await)
}

const DEFERRED: [&str; 7] = ["bash", "call_tool", "edit_file", "glob", "grep", "read_file", "tool_search"];

#[tokio::test]
async fn the_first_list_of_two_hundred_tools_costs_a_model_little() {
    let place = SearchApp::with("", catalogue(160)).await;
    let whole = listed_by(&place.app, "claude-code").await;
    assert!(whole.len() >= 200, "{}", whole.len());
    assert!(names(&whole).iter().all(|name| !["tool_search", "call_tool"].contains(name)), "{:?}", names(&whole));
    let first = listed_by(&place.app, "test").await;
    assert_eq!(names(&first), DEFERRED);
    println!("{} tools: {} tokens whole, {} tokens deferred", whole.len(), tokens(&whole), tokens(&first));
    assert!(tokens(&first) < 2_000, "{} tokens", tokens(&first));
    // The same over HTTP, without a session.
    let front = HttpFront::start(&place.app).await;
    let (status, mut answer) = front.ask_modern(&modern(1, "tools/list", json!({}))).await;
    assert_eq!((status, names(&tools_in(&mut answer))), (200, DEFERRED.to_vec()));
    let mut request = modern(1, "tools/list", json!({}));
    request["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] =
        json!({"name": "codex-mcp-client", "version": "1"});
    assert_eq!(tools_in(&mut front.ask_modern(&request).await.1).len(), whole.len());
    let session = front.open_session().await;
    let (_, mut answer) = front.ask_in_session(&session, &legacy(2, "tools/list", json!({}))).await;
    assert_eq!(names(&tools_in(&mut answer)), DEFERRED);
    place.close().await;
}

#[tokio::test]
async fn where_nothing_is_deferred_there_is_no_search() {
    let place = SearchApp::with("", catalogue(10)).await;
    let tools = listed_by(&place.app, "test").await;
    assert!(tools.len() > 50 && names(&tools).iter().all(|name| *name != "tool_search" && *name != "call_tool"));
    place.close().await;
    let never = "[tools]\ndefer_above = 0\ndefer_above_tokens = 0\n";
    let place = SearchApp::with(never, catalogue(200)).await;
    assert!(listed_by(&place.app, "test").await.len() > 240);
    place.close().await;
}

#[tokio::test]
async fn help_names_the_search_only_where_it_is_offered() {
    for (count, client, is_named) in [(10, "test", false), (140, "test", true), (140, "claude-code", false)] {
        let place = SearchApp::with("", catalogue(count)).await;
        let mut pipe = StdioClient::start(&place.app, StdioSettings::default());
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": client, "version": "2.1"}});
        pipe.answer_to(legacy(1, "initialize", hello)).await;
        pipe.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        let all = pipe.answer_to(legacy(2, "tools/call", call("help", json!({})))).await;
        assert!(text_of(&all).contains("- `batch`"), "{all}");
        let topic = call("help", json!({"topic": "tool_search"}));
        let one = pipe.answer_to(legacy(3, "tools/call", topic)).await;
        for text in [text_of(&all), text_of(&one)] {
            assert_eq!(text.contains("complete definitions"), is_named, "{count} {client}: {text}");
        }
        place.close().await;
    }
}

#[tokio::test]
async fn tools_are_deferred_above_a_token_limit_as_well_as_a_tool_limit() {
    let place = SearchApp::with("[tools]\ndefer_above_tokens = 4000\n", catalogue(30)).await;
    assert_eq!(names(&listed_by(&place.app, "test").await), DEFERRED);
    place.close().await;
}

#[tokio::test]
async fn tools_selected_by_name_are_never_deferred() {
    let settings = "[tools]\nselect = \"+think,+mcp__office__invoices_list_2\"\n";
    let place = SearchApp::with(settings, catalogue(140)).await;
    let mut expected = DEFERRED.to_vec();
    expected.extend(["mcp__office__invoices_list_2", "think"]);
    expected.sort_unstable();
    assert_eq!(names(&listed_by(&place.app, "test").await), expected);
    place.close().await;
    // A pattern selects the tools, and the search with them.
    let place = SearchApp::with("[tools]\nselect = \"mcp__office__*\"\n", catalogue(140)).await;
    assert_eq!(names(&listed_by(&place.app, "test").await), ["call_tool", "tool_search"]);
    place.close().await;
}

#[tokio::test]
async fn a_server_can_exclude_its_tools_from_deferral() {
    let place =
        SearchApp::with("[mcp_servers.notes]\nurl = \"http://127.0.0.1:9/\"\nalways_load = true\n", vec![]).await;
    let deferral = place.running.config.tool_deferral();
    assert_eq!((deferral.above_tools, deferral.above_tokens), (Some(100), Some(15_000)));
    assert_eq!(deferral.loaded_servers, [ServerName::parse("notes").unwrap()].into());
    place.close().await;
}

#[tokio::test]
async fn a_client_searches_and_calls_in_either_generation() {
    let settings =
        "[permissions]\nallow = [\"mcp__office__invoices_list_2\"]\ndeny = [\"mcp__office__tickets_list_0\"]\n";
    let place = SearchApp::with(settings, catalogue(140)).await;
    let search = || call("tool_search", json!({"query": "list invoices", "limit": 2}));
    let found = |answer: &Value| {
        let found = answer["result"]["structuredContent"]["tools"][0].clone();
        assert!(found["name"].as_str().unwrap().starts_with("mcp__office__invoices_list"), "{answer}");
        assert!(found["inputSchema"]["properties"].is_object(), "{answer}");
    };
    let use_it = || call("call_tool", json!({"name": "mcp__office__invoices_list_2", "arguments": {"limit": 2}}));
    let mut pipe = StdioClient::legacy(&place.app).await;
    found(&pipe.answer_to(legacy(1, "tools/call", search())).await);
    let answer = pipe.answer_to(legacy(2, "tools/call", use_it())).await;
    assert_eq!(text_of(&answer), "result of mcp__office__invoices_list_2");
    let front = HttpFront::start(&place.app).await;
    found(&front.ask_modern(&modern(1, "tools/call", search())).await.1);
    let (_, answer) = front.ask_modern(&modern(2, "tools/call", use_it())).await;
    assert_eq!(text_of(&answer), "result of mcp__office__invoices_list_2");
    // A denied tool is neither found nor called.
    let by_name = call("tool_search", json!({"query": "mcp__office__tickets_list_0", "limit": 20}));
    let answer = pipe.answer_to(legacy(3, "tools/call", by_name)).await;
    assert!(
        !names(answer["result"]["structuredContent"]["tools"].as_array().unwrap())
            .contains(&"mcp__office__tickets_list_0")
    );
    let denied = call("call_tool", json!({"name": "mcp__office__tickets_list_0"}));
    let answer = pipe.answer_to(legacy(4, "tools/call", denied)).await;
    assert_eq!(answer["result"]["_meta"]["toolstead/errorKind"], "permission_denied", "{answer}");
    // Invalid arguments are refused by the schema of the tool itself.
    let wrong = call("call_tool", json!({"name": "mcp__office__invoices_list_2", "arguments": {"limit": "many"}}));
    let answer = pipe.answer_to(legacy(5, "tools/call", wrong)).await;
    assert_eq!(answer["result"]["_meta"]["toolstead/errorKind"], "invalid_input", "{answer}");
    let rows = place.app.log.rows();
    let nested: Vec<_> = rows.iter().filter(|row| row.parent.is_some()).map(|row| row.tool.as_str()).collect();
    assert_eq!(
        nested,
        [
            "mcp__office__invoices_list_2",
            "mcp__office__invoices_list_2",
            "mcp__office__tickets_list_0",
            "mcp__office__invoices_list_2"
        ]
    );
    place.close().await;
}
