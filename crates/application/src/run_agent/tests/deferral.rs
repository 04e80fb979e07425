//! Runs whose tools are deferred.

use super::*;
use crate::orchestration::{OrchestrationToolExamples, OrchestrationTools};
use toolstead_domain::{CallId, ModelRequest, ToolSelection};

const EXAMPLES: OrchestrationToolExamples = OrchestrationToolExamples {
    batch: r#"{"invocations": [{"tool_name": "echo"}]}"#,
    subagent: r#"{"prompt": "p"}"#,
    tool_search: r#"{"query": "q"}"#,
    call_tool: r#"{"name": "echo"}"#,
};

/// Returns a house with ten tools that defers lists of more than this number.
async fn house(above: usize) -> House {
    let deferral =
        ToolDeferral { above_tools: Some(above), loaded_tools: ["read".into()].into(), ..Default::default() };
    let house = Plan { deferral, ..Plan::default() }.house(Arc::new(provider())).await;
    house.registry.register(Arc::new(OrchestrationTools::new(EXAMPLES, |_| Vec::new(), None))).await.unwrap();
    house
}

fn offered(model: &ScriptedModel) -> Vec<Vec<String>> {
    let names = |request: &ModelRequest| request.tools.iter().map(|tool| tool.name.clone()).collect();
    model.requests().iter().map(names).collect()
}

#[tokio::test]
async fn a_model_finds_a_deferred_tool_and_calls_it() {
    let house = house(3).await;
    let model = model([
        ScriptedAnswer::call("c1", "tool_search", json!({"query": "other", "limit": 1})),
        ScriptedAnswer::call("c2", "call_tool", json!({"name": "other"})),
        text("done"),
    ]);
    let ran = house.run(&model, "go").await;
    assert_eq!(ran.end(), "finished");
    // The list is the same in each request, so that a provider's cache of it stays valid.
    assert_eq!(offered(&model), vec![["call_tool", "read", "tool_search"]; 3]);
    let history = house.history().await;
    assert!(history[2].contains("{\"name\":\"other\",\"description\":\"Does what other does.\""), "{}", history[2]);
    assert_eq!(history[4], "result c2: ho");
    let rows = house.log.rows();
    let rows: Vec<(&str, Option<CallId>)> = rows.iter().map(|row| (row.tool.as_str(), row.parent)).collect();
    let parent = house.log.rows()[1].id;
    assert_eq!(rows, [("tool_search", None), ("call_tool", None), ("other", Some(parent))]);
}

#[tokio::test]
async fn a_deferred_tool_may_also_be_called_by_its_own_name() {
    let house = house(3).await;
    let model = model([call("c1", "other"), text("done")]);
    let offered = OfferedTools::Chosen(ToolSelection::only(["o*", "e*"]));
    let ran = house.ran(RunAgentCommand { offered, ..house.command(&model, "go") }).await;
    assert_eq!((ran.end(), house.history().await[2].clone()), ("finished".to_owned(), "result c1: ho".to_owned()));
}

#[tokio::test]
async fn a_tool_that_was_not_chosen_cannot_be_called_through_another() {
    let house = house(3).await;
    let model = model([ScriptedAnswer::call("c1", "call_tool", json!({"name": "write"})), text("done")]);
    let offered = OfferedTools::Chosen(ToolSelection::only(["o*", "e*"]));
    house.ran(RunAgentCommand { offered, ..house.command(&model, "go") }).await;
    let refused = "error c1 (never made): Unknown tool: write. Call one of the tools that are offered.";
    assert_eq!(house.history().await[2], refused);
    assert!(house.log.rows().is_empty());
}

#[tokio::test]
async fn tools_chosen_by_exact_name_are_listed_instead_of_deferred() {
    let house = house(3).await;
    let model = model([text("done")]);
    let chosen = OfferedTools::Chosen(ToolSelection::only(["echo", "o*", "e*", "read"]));
    house.ran(RunAgentCommand { offered: chosen, ..house.command(&model, "go") }).await;
    assert_eq!(offered(&model), [["call_tool", "read", "tool_search", "echo"]]);
}

#[tokio::test]
async fn a_list_up_to_the_threshold_has_no_search_tools() {
    let house = house(50).await;
    let model = model([text("done")]);
    house.run(&model, "go").await;
    let names = &offered(&model)[0];
    assert!(names.len() > 5 && !names.iter().any(|name| name == "tool_search" || name == "call_tool"), "{names:?}");
}
