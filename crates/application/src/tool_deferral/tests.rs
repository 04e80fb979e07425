use super::*;
use toolstead_domain::{Category, ToolName, ToolSelection, testing::samples};

fn built_in(name: &str) -> Tool {
    Tool::new(ToolName::parse(name).unwrap(), Default::default(), Category::Utility, ToolSource::BuiltIn)
}

fn upstream(server: &str, tool: &str) -> Tool {
    let server = ServerName::parse(server).unwrap();
    let name = ToolName::for_upstream(&server, tool);
    Tool::new(name, Default::default(), Category::Mcp, ToolSource::McpServer { server, tool: tool.into() })
}

fn deferral() -> ToolDeferral {
    ToolDeferral {
        above_tools: Some(3),
        above_tokens: None,
        loaded_servers: [ServerName::parse("notes").unwrap()].into(),
        loaded_tools: ["grep".to_owned()].into(),
    }
}

fn tools() -> Vec<Tool> {
    let built_in = ["grep", "glob", "tool_search", "call_tool"].map(built_in);
    built_in.into_iter().chain([upstream("git", "log"), upstream("notes", "find")]).collect()
}

#[track_caller]
fn check(deferral: &ToolDeferral, form: ToolListForm, policy: &PermissionPolicy, bytes: usize, expected: &[&str]) {
    let listed = deferral.apply(form, tools(), policy, |tool| tool, |_| bytes);
    assert_eq!(listed.iter().map(|tool| tool.name().as_str()).collect::<Vec<_>>(), expected);
}

const WHOLE: [&str; 4] = ["grep", "glob", "mcp__git__log", "mcp__notes__find"];
const DEFERRED: [&str; 4] = ["grep", "tool_search", "call_tool", "mcp__notes__find"];

#[test]
fn a_tool_list_above_the_threshold_has_only_always_loaded_tools_and_search_tools() {
    let policy = PermissionPolicy::default();
    check(&deferral(), ToolListForm::Deferred, &policy, 0, &DEFERRED);
    check(&deferral(), ToolListForm::Whole, &policy, 0, &WHOLE);
    let all: Vec<Tool> = tools();
    let all: Vec<&str> = all.iter().map(|tool| tool.name().as_str()).collect();
    check(&deferral(), ToolListForm::WithSearchTools, &policy, 0, &all);
}

#[test]
fn a_list_up_to_the_threshold_is_whole_and_has_no_search() {
    let policy = PermissionPolicy::default();
    let four = ToolDeferral { above_tools: Some(4), ..deferral() };
    check(&four, ToolListForm::Deferred, &policy, 1_000, &WHOLE);
    check(&ToolDeferral::never(), ToolListForm::Deferred, &policy, 1_000, &WHOLE);
    // Four definitions of 25 tokens each.
    let tokens = |limit| ToolDeferral { above_tools: None, above_tokens: Some(limit), ..deferral() };
    check(&tokens(100), ToolListForm::Deferred, &policy, 100, &WHOLE);
    check(&tokens(99), ToolListForm::Deferred, &policy, 100, &DEFERRED);
}

#[test]
fn a_tool_that_is_selected_by_its_very_name_is_not_deferred() {
    let selecting = |text: &str| PermissionPolicy {
        selection: ToolSelection::all().adjusted(text).unwrap(),
        ..PermissionPolicy::default()
    };
    let expected = ["grep", "glob", "tool_search", "call_tool", "mcp__git__log", "mcp__notes__find"];
    check(&deferral(), ToolListForm::Deferred, &selecting("+glob,+mcp__git__log"), 0, &expected);
    check(&deferral(), ToolListForm::Deferred, &selecting("g*,mcp__*,tool_search,call_tool"), 0, &DEFERRED);
    let narrowed = PermissionPolicy::default().narrowed(&std::sync::Arc::new(selecting("glob,mcp__*")));
    check(
        &deferral(),
        ToolListForm::Deferred,
        &narrowed,
        0,
        &["grep", "glob", "tool_search", "call_tool", "mcp__notes__find"],
    );
}

#[test]
fn nothing_is_deferred_where_the_search_may_not_be_used() {
    let without: Vec<Tool> = tools().into_iter().filter(|tool| tool.name().as_str() != "call_tool").collect();
    let policy = PermissionPolicy::default();
    let listed = deferral().apply(ToolListForm::Deferred, without, &policy, |tool| tool, |_| 0);
    assert_eq!(listed.iter().map(|tool| tool.name().as_str()).collect::<Vec<_>>(), WHOLE);
}

#[test]
fn a_server_tool_named_like_a_search_tool_is_treated_as_an_ordinary_tool() {
    assert!(is_search_tool(&built_in("tool_search")) && !is_search_tool(&samples::tool("grep")));
    let server = ServerName::parse("x").unwrap();
    let source = ToolSource::McpServer { server, tool: "call_tool".into() };
    let disguised = Tool::new(ToolName::parse("call_tool").unwrap(), Default::default(), Category::Mcp, source);
    assert!(!is_search_tool(&disguised));
}
