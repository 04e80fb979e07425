//! Dialect adapters: the calls to which they apply, and those that receive the tool's own answer.

use super::*;
use toolstead_domain::{
    AdaptedResult, AdapterInput, AdditionalContext, DialectAdapter, DialectToolDefinitions,
    testing::scripted_hook::ScriptedToolHook,
};

static DEFINITIONS: DialectToolDefinitions = DialectToolDefinitions::new(
    r#"{
        "Peek": {
            "description": "Peeks.",
            "inputSchema": {"type": "object", "properties": {"at": {"type": "string"}}}
        },
        "Break": {"description": "Breaks.", "inputSchema": {"type": "object"}}
    }"#,
);

/// Adapter that reports the arguments and the outcome.
static FACE: DialectAdapter =
    DialectAdapter::new("Peek", &DEFINITIONS).with_defaults(&[Rewrite::Default("limit", "7")]).with_answer(said);

fn said(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    let at = answered.text_argument("at").unwrap_or("nothing");
    match answered.outcome {
        Ok(result) => Some(AdaptedResult::text(format!("peeked at {at}: {}", result.tool_text()))),
        Err(failure) => Some(AdaptedResult::error(format!("no peek at {at}: {}", failure.kind))),
    }
}

fn faced(name: &str, alias: &'static str) -> Tool {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}});
    let mut tool = tool_with_schema(name, schema);
    let rewrites: &[Rewrite] = &[Rewrite::Rename("at", "path")];
    tool.aliases = vec![Alias { adapter: Some(&FACE), ..Alias::new(alias, Dialect("theirs"), rewrites) }];
    tool
}

fn looking() -> ScriptedProvider {
    let structured = json!({"lines": 1});
    let seen = ToolResult::text("a line").with_structured_content(structured);
    ScriptedProvider::new("built-in")
        .with(ScriptedTool::of(faced("look", "Peek")).answers(seen))
        .with(ScriptedTool::of(faced("fail", "PeekInVain")).fails(ErrorKind::Io, "the disk is gone"))
}

fn scope(dialect: Option<&'static str>) -> RequestScope {
    RequestScope::of(Principal::local(), "s").in_dialect(dialect.map(Dialect))
}

/// Returns the answer to a call in a dialect, and the arguments that the tool received.
async fn call_as(dialect: Option<&'static str>, name: &str, arguments: Value) -> (ToolResult, Value) {
    let house = Plan::default().house(looking()).await;
    let outcome = house.handler.handle(command(name, arguments).within(scope(dialect))).await.unwrap();
    let CallOutcome::Done(result) = outcome else { panic!("the call must not require input") };
    assert_eq!(house.only_row().tool, "look", "the row names the tool itself");
    assert_eq!(house.only_row().metadata["lines"], 1, "and holds what it said itself");
    (result, house.provider.calls().remove(0).arguments.into())
}

#[tokio::test]
async fn a_dialect_adapter_applies_to_its_alias_and_within_its_dialect_to_the_tool_name() {
    for (dialect, name, expected, given) in [
        (Some("theirs"), "Peek", "peeked at a: a line", json!({"path": "a", "limit": 7})),
        (None, "Peek", "peeked at a: a line", json!({"path": "a", "limit": 7})),
        (Some("other"), "Peek", "peeked at a: a line", json!({"path": "a", "limit": 7})),
        (Some("theirs"), "look", "peeked at nothing: a line", json!({"path": "a", "limit": 7})),
        (None, "look", "a line", json!({"path": "a"})),
        (Some("other"), "look", "a line", json!({"path": "a"})),
    ] {
        let argument = if name == "look" { "path" } else { "at" };
        let (result, arguments) = call_as(dialect, name, json!({argument: "a"})).await;
        assert_eq!((result.joined_text().as_str(), &arguments), (expected, &given), "{dialect:?} {name}");
        let is_ours = expected == "a line";
        assert_eq!(result.structured_content().is_some(), is_ours, "{dialect:?} {name}");
    }
}

#[tokio::test]
async fn a_dialect_adapter_keeps_the_error_kind_and_the_messages_of_hooks() {
    let says =
        || AfterCallResponse { context: vec![AdditionalContext::from("mind the gap")], ..AfterCallResponse::default() };
    let hook = ScriptedToolHook::named("guard").answering_after(says()).answering_after(says());
    let house = Plan { hooks: vec![Arc::new(hook)], ..Default::default() }.house(looking()).await;
    let answer = house.call("PeekInVain", json!({"at": "b"})).await;
    assert_eq!(answer, "failed io: no peek at b: io. [the hook `guard` says: mind the gap]");
    let answer = house.call("Peek", json!({"at": "b"})).await;
    assert_eq!(answer, "peeked at b: a line\n[the hook `guard` says: mind the gap]");
}

#[tokio::test]
async fn output_that_a_hook_replaced_is_not_passed_through_the_dialect_adapter() {
    let output = Some(ToolResult::text("hidden"));
    let hook =
        ScriptedToolHook::named("guard").answering_after(AfterCallResponse { output, ..AfterCallResponse::default() });
    let house = Plan { hooks: vec![Arc::new(hook)], ..Default::default() }.house(looking()).await;
    assert_eq!(house.call("Peek", json!({"at": "b"})).await, "hidden");
}

#[tokio::test]
async fn a_list_in_a_dialect_shows_alias_names_except_those_that_another_tool_has() {
    let provider = looking().with(ScriptedTool::of(faced("peer", "zoom"))).with(ScriptedTool::named("zoom"));
    let house = Plan { rules: vec![(Effect::Deny, "fail")], ..Default::default() }.house(provider).await;
    let lists = ListToolsHandler::new(house.registry.clone(), house.permissions.clone());
    let list = |dialect, text: Option<&str>, cursor, page| {
        let filter = ToolFilter { text: text.map(str::to_owned), ..Default::default() };
        lists.handle(&ListToolsQuery { scope: scope(dialect), filter, cursor, page, ..Default::default() })
    };
    for (dialect, text, expected) in [
        (None, None, &["look", "peer", "zoom"][..]),
        (Some("other"), None, &["look", "peer", "zoom"]),
        (Some("theirs"), None, &["Peek", "peer", "zoom"]),
        (Some("theirs"), Some("peeks"), &["Peek"]),
        (Some("theirs"), Some("look"), &[]),
    ] {
        let tools = list(dialect, text, None, PageLimit::Tools(9)).unwrap().tools;
        let names: Vec<&str> = tools.iter().map(|one| one.tool.name().as_str()).collect();
        assert_eq!(names, expected, "{dialect:?} {text:?}");
    }
    let first = list(Some("theirs"), None, None, PageLimit::Tools(1)).unwrap();
    assert_eq!(first.tools[0].tool.input_schema()["properties"]["at"]["type"], "string");
    let elsewhere = list(None, None, first.next_cursor, PageLimit::Tools(1));
    assert_eq!(elsewhere.unwrap_err(), InvalidCursor::Foreign);
}

/// Adapter that panics.
static BROKEN: DialectAdapter = DialectAdapter::new("Break", &DEFINITIONS).with_answer(|_| panic!("no words"));

#[tokio::test]
async fn a_failing_dialect_adapter_leaves_the_result_unchanged() {
    let mut tool = faced("look", "Peek");
    tool.aliases[0].adapter = Some(&BROKEN);
    let seen = ScriptedTool::of(tool).answers(ToolResult::text("a line"));
    let house = Plan::default().house(ScriptedProvider::new("built-in").with(seen)).await;
    assert_eq!(house.call("Peek", json!({"at": "b"})).await, "a line");
    assert_eq!(house.only_row().tool, "look");
}
