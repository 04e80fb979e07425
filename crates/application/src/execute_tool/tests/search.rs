//! Search and calls of tools that are not in a list.

use super::{nesting::calls, *};

async fn done(house: &House, arguments: Value) -> ToolResult {
    match house.handler.handle(command("tool_search", arguments)).await {
        Ok(CallOutcome::Done(result)) => result,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_search_returns_definitions_of_tools_that_the_scope_may_call() {
    let plan = Plan { rules: vec![(Effect::Deny, "write")], ..Plan::default() };
    let house = plan.house_that_nests().await;
    let result = done(&house, json!({"query": "does what read does", "limit": 1})).await;
    let content = result.structured_content().unwrap();
    assert_eq!(content["tools"][0]["name"], "read");
    assert_eq!(content["tools"][0]["inputSchema"]["required"], json!(["path"]));
    assert_eq!(content["tools"].as_array().unwrap().len(), 1);
    let text = result.joined_text();
    assert!(
        text.starts_with("Call one with `call_tool`.\n{\"name\":\"read\",") && text.contains("Further tools: "),
        "{text}"
    );
    // Neither denied nor unavailable tools are found, and neither are those that search.
    for query in ["write", "away", "tool_search", "call_tool"] {
        let result = done(&house, json!({"query": query, "limit": 20})).await;
        let found = result.joined_text();
        assert!(!found.contains(&format!("{{\"name\":\"{query}\"")), "{query}: {found}");
    }
}

#[tokio::test]
async fn a_search_without_a_match_names_the_origins_of_tools() {
    let house = Plan::default().house_that_nests().await;
    let answer = house.call("tool_search", json!({"query": "weather"})).await;
    let expected = "No tool matches. Use other words, and fewer with `+`. Tools by origin: built-in (11), maker (2).";
    assert_eq!(answer, expected);
}

#[tokio::test]
async fn a_tool_called_through_call_tool_is_decided_validated_and_recorded_as_itself() {
    let approver = Arc::new(ScriptedApprover::granting(1));
    let house = Plan { approver: approver.clone(), ..Plan::default() }.house_that_nests().await;
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    assert_eq!(house.call("call_tool", call("echo", json!({}))).await, "hi");
    assert_eq!(house.call("call_tool", call("write", json!({}))).await, "written");
    assert_eq!(approver.questions()[0].within.as_deref(), Some("call_tool"));
    let answer = house.call("call_tool", call("read", json!({"limit": "many"}))).await;
    assert!(answer.starts_with("failed invalid_input: ") && answer.contains("\"path\""), "{answer}");
    let answer = house.call("call_tool", call("nowhere", json!({}))).await;
    assert_eq!(answer, "failed not_found: Unknown tool: nowhere. Find the name of the tool with `tool_search`.");
    for name in ["call_tool", "tool_search"] {
        let answer = house.call("call_tool", call(name, json!({}))).await;
        assert_eq!(
            answer,
            format!("failed invalid_input: `{name}` cannot be called by `call_tool`. Call it directly.")
        );
    }
    let rows = house.log.rows();
    let rows: Vec<_> = rows.iter().map(|row| (row.tool.as_str(), row.parent.is_some())).collect();
    let tree = |name| [("call_tool", false), (name, true)];
    let mut expected: Vec<_> = ["echo", "write", "read", "nowhere"].into_iter().flat_map(tree).collect();
    expected.extend([("call_tool", false); 2]);
    assert_eq!(rows, expected);
}

#[tokio::test]
async fn a_denied_tool_cannot_be_called_through_another() {
    let plan = Plan { rules: vec![(Effect::Deny, "echo")], ..Plan::default() };
    let house = plan.house_that_nests().await;
    let answer = house.call("call_tool", json!({"name": "echo"})).await;
    assert!(answer.starts_with("failed permission_denied: "), "{answer}");
    assert_eq!(house.provider.calls().len(), 0);
}

#[tokio::test]
async fn a_long_result_is_bounded_once() {
    let house = Plan::default().house_that_nests().await;
    let direct = house.call("long", json!({})).await;
    assert_eq!(house.call("call_tool", json!({"name": "long"})).await, direct);
}

#[tokio::test]
async fn a_batch_rejects_call_tool_as_a_nested_call() {
    let house = Plan::default().house_that_nests().await;
    let one = json!({"tool_name": "call_tool", "parameters": {"name": "echo"}});
    let answer = house.call("batch", json!({"invocations": [one]})).await;
    assert!(answer.contains("invocations[0] (`call_tool`): it must be called on its own"), "{answer}");
    assert_eq!(house.call("make", calls(json!([["call_tool", {"name": "echo"}]]))).await, "hi");
}
