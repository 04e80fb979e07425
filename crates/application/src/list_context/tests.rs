use super::*;
use toolstead_domain::{
    Effect, PatternContext, PermissionRule, Principal, ToolSelection, View,
    permission::rule::RuleOrigin,
    testing::{in_memory_rule_store::InMemoryRuleStore, scripted_context::ScriptedContext},
};

fn policy(deny: &[&str]) -> PermissionPolicy {
    let rule = |text: &&str| {
        Arc::new(
            PermissionRule::parse(Effect::Deny, text, RuleOrigin::CommandLine, &PatternContext::default()).unwrap(),
        )
    };
    PermissionPolicy { rules: deny.iter().map(rule).collect(), ..PermissionPolicy::default() }
}

async fn handler(policy: PermissionPolicy) -> ListContextHandler {
    let registry = ContextRegistry::new();
    let own = ScriptedContext::new("built-in").with_resource("config://a").with_resource("status://b");
    registry.register(Arc::new(own.with_template("file:///{path}").with_prompt("p"))).await.unwrap();
    let team = ScriptedContext::new("team").with_resource("team://c").with_prompt("q");
    registry.register(Arc::new(team)).await.unwrap();
    let book = PermissionBook::new(Arc::new(policy), Arc::new(InMemoryRuleStore::new()));
    ListContextHandler::new(registry, Arc::new(book))
}

fn query(of: ContextListKind) -> ListContextQuery {
    ListContextQuery { of, scope: RequestScope::of(Principal::local(), "s"), cursor: None, page_bytes: 1 << 20 }
}

fn shown(handler: &ListContextHandler, query: impl Fn(ContextListKind) -> ListContextQuery) -> Vec<String> {
    let lists = [ContextListKind::Resources, ContextListKind::Templates, ContextListKind::Prompts];
    let all = lists.into_iter().flat_map(|of| handler.handle(&query(of)).unwrap().definitions);
    let name = |one: Map<String, Value>| one["name"].as_str().unwrap_or_default().to_owned();
    all.map(name).collect()
}

#[tokio::test]
async fn resources_and_prompts_that_a_rule_denies_entirely_are_not_listed() {
    for (deny, expected) in [
        (&[][..], &["config://a", "status://b", "team://c", "file:///{path}", "p", "q"][..]),
        (&["read_resource"], &["p", "q"]),
        (&["get_prompt(name:p)", "read_resource(uri:file://*)"], &["config://a", "status://b", "team://c", "q"]),
        (&["mcp__team__*"], &["config://a", "status://b", "file:///{path}", "p"]),
        (&["Resource"], &["p", "q"]),
        (&["Resource(built-in:config://*)", "Prompt(team:*)"], &["status://b", "team://c", "file:///{path}", "p"]),
        (&["Resource(*:file:///*)"], &["config://a", "status://b", "team://c", "p", "q"]),
        // Rules deny only some URIs of the template.
        (&["Resource(*:file:///etc/*)"], &["config://a", "status://b", "team://c", "file:///{path}", "p", "q"]),
        (&["Read(//etc/**)"], &["config://a", "status://b", "team://c", "file:///{path}", "p", "q"]),
    ] {
        assert_eq!(shown(&handler(policy(deny)).await, query), expected, "{deny:?}");
        let open = handler(policy(&[])).await;
        let through = |of| {
            let scope = query(of).scope.through(View::new("v", Arc::new(policy(deny))));
            ListContextQuery { scope, ..query(of) }
        };
        assert_eq!(shown(&open, through), expected, "through a view: {deny:?}");
    }
    let chosen = PermissionPolicy { selection: ToolSelection::only(["get_prompt"]), ..PermissionPolicy::default() };
    assert_eq!(shown(&handler(chosen).await, query), ["p", "q"]);
}

#[tokio::test]
async fn pages_join_without_gap_and_a_cursor_belongs_to_one_list() {
    let handler = handler(policy(&[])).await;
    let page = |cursor: Option<String>| ListContextQuery { cursor, page_bytes: 1, ..query(ContextListKind::Resources) };
    let (mut uris, mut cursor) = (Vec::new(), None);
    loop {
        let ContextPage { definitions, next_cursor, .. } = handler.handle(&page(cursor.take())).unwrap();
        uris.extend(definitions.into_iter().map(|one| one["uri"].clone()));
        let Some(next) = next_cursor else { break };
        let of_prompts = ListContextQuery { cursor: Some(next.clone()), ..query(ContextListKind::Prompts) };
        assert_eq!(handler.handle(&of_prompts), Err(InvalidContextCursor));
        cursor = Some(next);
    }
    assert_eq!(uris, ["config://a", "status://b", "team://c"]);
    for bad in ["", "x", "UmVzb3VyY2VzOjI6OTk"] {
        assert_eq!(handler.handle(&page(Some(bad.into()))), Err(InvalidContextCursor));
    }
}
