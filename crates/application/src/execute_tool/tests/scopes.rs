//! Tools that a view hides, and aliases that a dialect prefers.

use super::*;
use crate::get_tool::{GetToolHandler, GetToolQuery};
use toolstead_domain::{PermissionMode, View};

fn here() -> RequestScope {
    RequestScope::of(Principal::local(), "s")
}

/// Returns a view with these additional rules.
fn view(name: &str, rules: &[(Effect, &str)]) -> Arc<View> {
    let parse = |(effect, text): &(Effect, &str)| {
        Arc::new(PermissionRule::parse(*effect, text, RuleOrigin::Program, &PatternContext::default()).unwrap())
    };
    let roots = WorkspaceRoots { write: vec!["/w".into()], ..Default::default() };
    let rules = rules.iter().map(parse).collect();
    View::new(name, Arc::new(PermissionPolicy { rules, roots, ..Default::default() }))
}

#[tokio::test]
async fn a_tool_denied_by_a_view_is_hidden_and_refused_in_that_view_alone() {
    let allowed = Plan { rules: vec![(Effect::Allow, "Write")], ..Default::default() };
    let house = allowed.house(provider()).await;
    let list = ListToolsHandler::new(house.registry.clone(), house.permissions.clone());
    let get = GetToolHandler::new(house.registry.clone(), house.permissions.clone());
    let reading = here().through(view("reading", &[(Effect::Deny, "write"), (Effect::Allow, "Write")]));
    let names = |scope: &RequestScope, cursor: Option<String>| {
        let query = ListToolsQuery { scope: scope.clone(), cursor, page: PageLimit::Tools(2), ..Default::default() };
        let page = list.handle(&query)?;
        let names: Vec<String> = page.tools.iter().map(|one| one.tool.name().to_string()).collect();
        Ok::<_, InvalidCursor>((names, page.next_cursor))
    };
    let is_listed = |scope: &RequestScope| {
        let query = ListToolsQuery { scope: scope.clone(), ..Default::default() };
        list.handle(&query).unwrap().tools.iter().any(|one| one.tool.name().as_str() == "write")
    };
    let hidden = |scope: &RequestScope| {
        get.handle(&GetToolQuery { scope: scope.clone(), name: "write".into() }).unwrap().hidden_because
    };
    assert!(is_listed(&here()) && !is_listed(&reading) && is_listed(&here()));
    assert_eq!((hidden(&here()), hidden(&reading)), (None, Some("a rule denies every call of it".into())));
    assert!(house.execute(command("write", json!({})).within(reading.clone())).await.starts_with("permission_denied"));
    assert_eq!(
        house.execute(command("outside", json!({})).within(reading.clone())).await.split(':').next(),
        Some("permission_denied")
    );
    assert_eq!(house.call("write", json!({})).await, "written");
    let (_, cursor) = names(&here(), None).unwrap();
    assert_eq!(names(&reading, cursor.clone()).unwrap_err(), InvalidCursor::Foreign);
    assert!(names(&here(), cursor).is_ok());
}

#[tokio::test]
async fn a_session_approval_given_in_a_view_applies_only_to_that_view_of_the_session() {
    let yes = || ApprovalOutcome::Granted { by: "ann".into(), scopes: vec![ApprovalScope::Session] };
    let approver = Arc::new(ScriptedApprover::answering([yes()]));
    let house = Plan { approver: approver.clone(), ..Default::default() }.house(provider()).await;
    let (one, other) = (here().through(view("one", &[])), here().through(view("other", &[])));
    for _ in 0..2 {
        assert_eq!(house.execute(command("write", json!({})).within(one.clone())).await, "written");
    }
    for elsewhere in [here(), other] {
        assert!(house.execute(command("write", json!({})).within(elsewhere)).await.starts_with("permission_denied"));
    }
    let offered = &approver.questions()[0].parts[0].scopes;
    assert_eq!(*offered, [ApprovalScope::Once, ApprovalScope::Session], "nothing beyond a session gets past a view");
    house.permissions.forget(&Principal::local(), &"s".into());
    assert!(house.execute(command("write", json!({})).within(one)).await.starts_with("permission_denied"));
}

#[tokio::test]
async fn a_view_in_dont_ask_mode_refuses_calls_that_require_approval() {
    let roots = WorkspaceRoots { write: vec!["/w".into()], ..Default::default() };
    let policy = PermissionPolicy { mode: PermissionMode::DontAsk, roots, ..Default::default() };
    let approver = Arc::new(ScriptedApprover::answering([ApprovalOutcome::once("ann")]));
    let house = Plan { approver: approver.clone(), ..Default::default() }.house(provider()).await;
    let scope = here().through(View::new("quiet", Arc::new(policy)));
    assert!(house.execute(command("write", json!({})).within(scope)).await.starts_with("permission_denied"));
    assert!(approver.questions().is_empty());
}

#[tokio::test]
async fn an_alias_shared_by_two_dialects_resolves_to_the_tool_of_the_callers_dialect() {
    let spelled = |tool: &str, dialect: &'static str, parameter: &'static str| {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"],
            "additionalProperties": false});
        let mut tool = tool_with_schema(tool, schema);
        let rewrites: &'static [Rewrite] = match parameter {
            "message" => &[Rewrite::Rename("message", "text")],
            _ => &[Rewrite::Rename("said", "text")],
        };
        tool.aliases = vec![Alias::new("Say", Dialect(dialect), rewrites)];
        let name = tool.name().to_string();
        ScriptedTool::of(tool).answers(ToolResult::text(name))
    };
    let provider =
        ScriptedProvider::new("built-in").with(spelled("say_a", "a", "message")).with(spelled("say_b", "b", "said"));
    let house = Plan::default().house(provider).await;
    for (dialect, arguments, expected) in [
        (Some("a"), json!({"message": "hi"}), "say_a"),
        (Some("b"), json!({"said": "hi"}), "say_b"),
        (None, json!({"said": "hi"}), "not_found"),
        (Some("c"), json!({"said": "hi"}), "not_found"),
    ] {
        let scope = here().in_dialect(dialect.map(Dialect));
        let message = house.execute(command("Say", arguments).within(scope)).await;
        assert!(message.starts_with(expected), "{dialect:?}: {message}");
    }
}
