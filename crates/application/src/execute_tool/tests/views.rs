//! Tools that a view renames, with parameters that it fixes or hides.

use super::{nesting::calls, *};
use crate::get_tool::{GetToolHandler, GetToolQuery};
use std::collections::BTreeMap;
use toolstead_domain::{ToolOverlay, ToolSelection, View, ViewCallLimits, ViewContent};

fn overlay(name: &str, fixed: Value, hidden: &[&str]) -> ToolOverlay {
    ToolOverlay {
        name: ToolName::parse(name).ok(),
        description: None,
        fixed: fixed.as_object().unwrap().clone(),
        hidden: hidden.iter().map(|name| (*name).to_owned()).collect(),
    }
}

fn view(name: &str, overlays: impl IntoIterator<Item = (&'static str, ToolOverlay)>) -> Arc<View> {
    let overlays: BTreeMap<_, _> = overlays.into_iter().map(|(tool, one)| (tool.to_owned(), one)).collect();
    let limits = ViewCallLimits { output_characters: Some(1_000), ..ViewCallLimits::default() };
    let content = ViewContent::new(overlays).unwrap().with_limits(limits);
    let roots = WorkspaceRoots { write: vec!["/w".into()], ..Default::default() };
    let policy = PermissionPolicy { roots, ..Default::default() }.window(ToolSelection::all());
    View::with_content(name, Arc::new(policy), content)
}

/// The tool `read` as `peek`, at a fixed path.
fn peeking() -> RequestScope {
    let overlay = overlay("peek", json!({"path": "a.txt"}), &["limit"]);
    RequestScope::of(Principal::local(), "s").through(view("small", [("read", overlay)]))
}

#[tokio::test]
async fn a_call_in_a_view_uses_its_fixed_values_and_is_recorded_under_the_real_tool_name() {
    let house = Plan::default().house(provider()).await;
    for name in ["peek", "read", "Read"] {
        assert_eq!(house.execute(command(name, json!({})).within(peeking())).await, "content", "{name}");
    }
    let rows = house.calls_on_record();
    let output: Vec<_> = rows.iter().map(|row| (row.tool.as_str(), row.called_as.as_str(), &row.arguments)).collect();
    let arguments = json!({"path": "a.txt"});
    assert_eq!(output, ["peek", "read", "Read"].map(|name| ("read", name, &arguments)));
    let direct = Plan::default().house(provider()).await;
    assert_eq!(direct.call("read", arguments.clone()).await, "content");
    assert_eq!(rows[0].labels.get("toolstead/window"), Some("small"));
    assert_eq!(rows[0].arguments_digest, direct.only_row().arguments_digest);
    let query = ExplainCallQuery { tool: "peek".into(), arguments: Value::Null, scope: peeking() };
    let explained = house.handler.explain(query).await.unwrap();
    assert_eq!((explained.tool.name().as_str(), json!(explained.arguments)), ("read", arguments));
}

#[tokio::test]
async fn a_call_under_any_name_cannot_set_a_parameter_that_a_view_fixes_or_hides() {
    let house = Plan::default().house(provider()).await;
    for (name, arguments, outcome) in [
        ("peek", json!({"path": "b.txt"}), "The view `small` fixes the value of `path`."),
        ("read", json!({"path": "a.txt"}), "The view `small` fixes the value of `path`."),
        ("Read", json!({"file_path": "b.txt"}), "The view `small` fixes the value of `path`."),
        ("peek", json!({"limit": 1}), "The view `small` hides the parameter `limit`."),
    ] {
        let answer = house.execute(command(name, arguments.clone()).within(peeking())).await;
        assert_eq!(
            answer.split(" Call again").next(),
            Some(&*format!("invalid_input: {outcome}")),
            "{name} {arguments}"
        );
    }
    assert!(house.provider.calls().is_empty());
    assert!(house.execute(command("peek", json!({}))).await.starts_with("not_found"), "the name belongs to the view");
}

#[tokio::test]
async fn lists_and_lookups_show_tools_as_the_view_renames_and_restricts_them() {
    let house = Plan::default().house(provider()).await;
    let list = ListToolsHandler::new(house.registry.clone(), house.permissions.clone());
    let get = GetToolHandler::new(house.registry.clone(), house.permissions.clone());
    let names = |scope: &RequestScope| {
        let page = list.handle(&ListToolsQuery { scope: scope.clone(), ..Default::default() }).unwrap();
        page.tools.iter().map(|one| one.tool.name().to_string()).collect::<Vec<_>>()
    };
    let everything = names(&RequestScope::default());
    let in_view = names(&peeking());
    assert!(everything.contains(&"read".into()) && !everything.contains(&"peek".into()), "{everything:?}");
    assert!(!in_view.contains(&"read".into()) && in_view.contains(&"peek".into()), "{in_view:?}");
    let found = get.handle(&GetToolQuery { scope: peeking(), name: "peek".into() }).unwrap();
    assert_eq!((found.registered.tool.name().as_str(), found.registered.own.name().as_str()), ("peek", "read"));
    assert_eq!(found.registered.tool.input_schema()["properties"], json!({}));

    // The name of another tool, which the view then cannot show; and an overlay that does not fit.
    let taking = [("read", overlay("echo", json!({}), &[])), ("long", overlay("short", json!({}), &[]))];
    let taking = RequestScope::default().through(view("taking", taking));
    let found = get.handle(&GetToolQuery { scope: taking.clone(), name: "echo".into() }).unwrap();
    assert_eq!(found.registered.own.name().as_str(), "read");
    assert_eq!(names(&taking).iter().filter(|name| *name == "echo").count(), 1);
    assert_eq!(house.execute(command("echo", json!({"path": "a"})).within(taking)).await, "content");
    let unfit = RequestScope::default().through(view("unfit", [("read", overlay("peek", json!({}), &["path"]))]));
    assert!(!names(&unfit).contains(&"peek".into()) && !names(&unfit).contains(&"read".into()));
    let found = get.handle(&GetToolQuery { scope: unfit, name: "peek".into() }).unwrap();
    assert!(found.hidden_because.unwrap().contains("requires the parameter `path`"));
}

#[tokio::test]
async fn nested_calls_are_made_in_the_view_of_their_parent() {
    let house = Plan::default().house_that_nests().await;
    let made = calls(json!([["peek", {}], ["peek", {"path": "b"}]]));
    let message = house.execute(command("make", made).within(peeking())).await;
    assert!(message.starts_with("content\ninvalid_input: The view `small` fixes the value of `path`."), "{message}");
    let listed = house.execute(command("make", calls(json!([["?", null]]))).within(peeking())).await;
    assert!(listed.contains(",peek,") && !listed.contains(",read,"), "{listed}");
}

#[tokio::test]
async fn fixed_values_of_an_outer_view_and_tool_names_of_an_inner_view_take_precedence() {
    let house = Plan::default().house(provider()).await;
    let outer = view("outer", [("read", overlay("outer_name", json!({"path": "outer"}), &[]))]);
    let inner = view("inner", [("read", overlay("inner_name", json!({"path": "inner", "limit": 3}), &[]))]);
    let scope = RequestScope::of(Principal::local(), "s").through(outer).narrowed_to(inner);
    assert_eq!(house.execute(command("inner_name", json!({})).within(scope)).await, "content");
    assert_eq!(house.only_row().arguments, json!({"path": "outer", "limit": 3}));
}

#[tokio::test]
async fn the_limits_of_a_view_apply_to_its_calls() {
    let house = Plan::default().house(provider()).await;
    let (whole, cut) = (house.call("long", json!({})).await, command("long", json!({})).within(peeking()));
    assert!(house.execute(cut).await.chars().count() < 1_500 && whole.chars().count() > 20_000);
    let limits = ViewCallLimits { timeout: Some(Duration::from_secs(3)), ..ViewCallLimits::default() };
    let content = ViewContent::default().with_limits(limits);
    let policy = Arc::new(PermissionPolicy::default());
    let scope = RequestScope::default().through(View::with_content("quick", policy, content));
    let (settings, tool) = (CallSettings::default(), samples::tool("x"));
    let time =
        |wanted, scope: &RequestScope| settings.time_for(&tool, wanted, &command("x", json!({})).within(scope.clone()));
    assert_eq!(time(None, &scope), Duration::from_secs(3));
    assert_eq!(time(Some(Duration::from_secs(60)), &scope), Duration::from_secs(3));
    assert_eq!(time(Some(Duration::from_secs(1)), &scope), Duration::from_secs(1));
    assert_eq!(time(None, &RequestScope::default()), settings.default_timeout);
}
