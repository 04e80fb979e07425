//! Providers that are registered, removed and changed while calls are made.

use super::*;

#[tokio::test]
async fn providers_and_their_tools_can_be_added_replaced_and_removed_at_run_time() {
    let house = Plan::default().house(provider()).await;
    let mut changes = house.registry.changes();
    let more =
        Arc::new(ScriptedProvider::new("more").with(ScriptedTool::named("fresh").answers(ToolResult::text("new"))));
    house.registry.register(more.clone()).await.unwrap();
    assert_eq!(house.call("fresh", json!({})).await, "new");
    changes.mark_unchanged();
    more.replace_tools([ScriptedTool::named("fresher").answers(ToolResult::text("newer"))]);
    changes.changed().await.unwrap();
    assert_eq!(house.call("fresher", json!({})).await, "newer");
    assert!(house.registry.register(more.clone()).await.unwrap_err().to_string().contains("registered already"));
    let clash = ScriptedProvider::new("clash").with(ScriptedTool::named("echo"));
    assert!(house.registry.register(Arc::new(clash)).await.unwrap_err().to_string().contains("offered by `built-in`"));
    let other =
        Arc::new(ScriptedProvider::new("more").with(ScriptedTool::named("other").answers(ToolResult::text("other"))));
    house.registry.replace(other).await.unwrap();
    assert!(more.is_closed());
    assert_eq!(house.call("other", json!({})).await, "other");
    house.registry.unregister("more").await.unwrap();
    assert!(house.call("other", json!({})).await.contains("Unknown tool: other"));
}

#[tokio::test]
async fn a_provider_that_is_down_shows_its_last_catalogue() {
    let repository = Arc::new(InMemoryToolRepository::new());
    let clock: Arc<dyn Clock> = Arc::new(FixedClock::at(Timestamp(1)));
    let known = samples::tool("known");
    let source = ToolSource::Embedded(ServerName::parse("up").unwrap());
    let stored = Tool::new(known.name().clone(), known.definition().clone(), Category::Mcp, source);
    let stored = StoredToolCatalogue { tools: vec![stored], changes: Vec::new() };
    repository.save_catalogue(&ProviderIdentity::of_program("up"), &stored, Timestamp(0)).await.unwrap();
    let registry = ToolRegistry::new(repository, clock).await.unwrap();
    let provider = Arc::new(ScriptedProvider::new("up").with(ScriptedTool::named("fresh")));
    provider.fail_list("not there yet");
    registry.register(provider.clone()).await.unwrap();
    assert!(registry.snapshot().resolve("known").is_ok());
    let mut changes = registry.changes();
    provider.mend_list();
    provider.announce_change();
    changes.changed().await.unwrap();
    assert!(registry.snapshot().resolve("fresh").is_ok() && registry.snapshot().resolve("known").is_err());
    assert_eq!(provider.list().await.unwrap().len(), 1);
}

/// Returns a provider that does not own its schemas, like an MCP server.
fn upstream(server: &str, tools: &[(&str, &str)]) -> ScriptedProvider {
    let provider = ScriptedProvider::new(server).with_foreign_schemas();
    tools.iter().fold(provider, |all, (name, description)| all.with(upstream_tool(server, name, description)))
}

fn upstream_tool(server: &str, name: &str, description: &str) -> ScriptedTool {
    let mut definition = samples::tool(name).definition().clone();
    definition.insert("description".into(), description.into());
    let answer = ToolResult::text(format!("{server} says {name}"));
    let server = ServerName::parse(server).unwrap();
    let source = ToolSource::McpServer { server: server.clone(), tool: name.into() };
    let tool = Tool::new(ToolName::for_upstream(&server, name), definition, Category::Mcp, source);
    ScriptedTool::of(tool).answers(answer)
}

#[tokio::test]
async fn a_tool_name_that_may_belong_to_an_unavailable_server_is_not_resolved_to_another() {
    let house = Plan { rules: vec![(Effect::Allow, "mcp__x__*")], ..Plan::default() }
        .house(ScriptedProvider::new("built-in"))
        .await;
    house.registry.register(Arc::new(upstream("x", &[("git_status", "")]))).await.unwrap();
    assert_eq!(house.call("mcp_git_status", json!({})).await, "x says git_status", "nobody else may be meant");
    let git = Arc::new(upstream("git", &[("status", "")]));
    let failed = |reason: &str| ProviderState::Failed { reason: reason.into() };
    git.fail_list("down");
    git.set_state(failed("no such program"));
    house.registry.register(git.clone()).await.unwrap();
    for name in ["mcp__git__status", "git__status", "mcp_git_status", "mcp_git_log"] {
        let said = house.call(name, json!({})).await;
        assert!(
            said.contains("MCP server `git` is not available") && !said.contains("no such program"),
            "{name}: {said}"
        );
    }
    for name in ["mcp__x__git_status", "x__git_status", "mcp_x_git_status"] {
        assert_eq!(house.call(name, json!({})).await, "x says git_status", "{name}");
    }
    assert!(house.call("github__status", json!({})).await.contains("Unknown tool"), "another server's name");
    git.mend_list();
    git.set_state(ProviderState::Ready);
    let mut news = house.registry.notices();
    git.announce_change();
    while !house.registry.absent().is_empty() {
        news.changed().await.unwrap();
    }
    assert!(house.call("mcp_git_status", json!({})).await.contains("could be several tools"));
    // Now that the server has listed its tools, a tool that it lacks is resolved to the other server's.
    git.replace_tools([]);
    while house.registry.resolve("mcp__git__status").is_ok() {
        news.changed().await.unwrap();
    }
    assert_eq!(house.call("mcp_git_status", json!({})).await, "x says git_status");
    house.registry.note_absent("git_status", "it is switched off");
    let said = house.call("mcp_git_status_now", json!({})).await;
    assert!(said.contains("`git_status` is not available. Use another tool or try later."), "{said}");
    assert_eq!(house.registry.absent().iter().map(|one| one.server.as_str()).collect::<Vec<_>>(), ["git_status"]);
}

#[tokio::test]
async fn a_call_waits_for_the_connecting_server_that_its_tool_name_refers_to() {
    let house = Plan { rules: vec![(Effect::Allow, "mcp__slow__*")], ..Plan::default() }
        .house(ScriptedProvider::new("built-in"))
        .await;
    let slow = Arc::new(upstream("slow", &[("old", ""), ("new", "")]));
    slow.fail_list("not there yet");
    slow.set_state(ProviderState::Connecting);
    house.registry.register(slow.clone()).await.unwrap();
    let (said, ()) = tokio::join!(house.call("mcp__slow__new", json!({})), async {
        slow.mend_list();
        slow.set_state(ProviderState::Ready);
        slow.announce_change();
    });
    assert_eq!(said, "slow says new");
}

#[tokio::test]
async fn changed_tool_definitions_are_reported_and_stored_across_runs() {
    let repository = Arc::new(InMemoryToolRepository::new());
    let clock: Arc<dyn Clock> = Arc::new(FixedClock::at(Timestamp(7)));
    let identity = ProviderIdentity::of_program("s");
    let noted = |changes: &[DefinitionChange]| -> Vec<String> {
        changes.iter().map(|one| format!("{} {:?} {}", one.tool, one.parts, one.at.0)).collect()
    };
    let run = async |server: ScriptedProvider| {
        let registry = ToolRegistry::new(repository.clone(), clock.clone()).await.unwrap();
        registry.register(Arc::new(server)).await.unwrap();
        let changes = noted(&registry.providers()[0].changes);
        let stored = repository.catalogue(&identity).await.unwrap();
        assert_eq!(noted(&stored.changes), changes, "what is told is kept");
        changes
    };
    let nothing: [String; 0] = [];
    assert_eq!(run(upstream("s", &[("a", "one"), ("b", "one")])).await, nothing, "what is new has not changed");
    let changed = ["mcp__s__a [Description] 7"];
    assert_eq!(run(upstream("s", &[("a", "two"), ("b", "one")])).await, changed);
    assert_eq!(run(upstream("s", &[("a", "two"), ("b", "one")])).await, changed, "the next run tells it, too");
    let more = ["mcp__s__a [Description] 7", "mcp__s__b [Description] 7"];
    assert_eq!(run(upstream("s", &[("a", "two"), ("b", "two"), ("c", "")])).await, more);
    assert_eq!(run(upstream("s", &[("c", "")])).await, nothing, "a change goes with its tool");
    // Also if a server reports the change while it runs.
    let registry = ToolRegistry::new(repository.clone(), clock.clone()).await.unwrap();
    let server = Arc::new(upstream("s", &[("c", "")]));
    registry.register(server.clone()).await.unwrap();
    let mut news = registry.notices();
    server.replace_tools([upstream_tool("s", "c", "other")]);
    while registry.providers()[0].changes.is_empty() {
        news.changed().await.unwrap();
    }
    assert_eq!(noted(&registry.providers()[0].changes), ["mcp__s__c [Description] 7"]);
}

#[tokio::test]
async fn a_stored_catalogue_of_a_differently_configured_server_is_not_listed() {
    let repository = Arc::new(InMemoryToolRepository::new());
    let clock: Arc<dyn Clock> = Arc::new(FixedClock::at(Timestamp(1)));
    let run = async |file: &str, start: &str, is_down: bool| {
        let registry = ToolRegistry::new(repository.clone(), clock.clone()).await.unwrap();
        let identity = ProviderIdentity { configured_in: file.into(), name: "s".into(), start: start.into() };
        let server = upstream("s", &[("a", "")]).with_identity(identity);
        if is_down {
            server.fail_list("down");
        }
        registry.register(Arc::new(server)).await.unwrap();
        registry.snapshot().tools().len()
    };
    assert_eq!(run("/a", "1", false).await, 1);
    for (file, start, shown) in [("/a", "1", 1), ("/b", "1", 0), ("/a", "2", 0)] {
        assert_eq!(run(file, start, true).await, shown, "{file} {start}");
    }
}

#[tokio::test]
async fn pages_follow_a_cursor_that_belongs_to_one_list() {
    let names: Vec<String> = (0..7).map(|n| format!("tool_{n}")).collect();
    let provider =
        names.iter().fold(ScriptedProvider::new("built-in"), |all, name| all.with(ScriptedTool::named(name)));
    let house = Plan::default().house(provider).await;
    let list = ListToolsHandler::new(house.registry.clone(), house.permissions.clone());
    let ask = |cursor: Option<String>, text: Option<&str>| {
        let filter = ToolFilter { text: text.map(str::to_owned), ..Default::default() };
        list.handle(&ListToolsQuery { filter, cursor, page: PageLimit::Tools(3), ..Default::default() })
    };
    let (mut seen, mut cursor) = (Vec::new(), None);
    let mut first_cursor = None;
    loop {
        let page = ask(cursor, None).unwrap();
        seen.extend(page.tools.iter().map(|one| one.tool.name().to_string()));
        first_cursor = first_cursor.or(page.next_cursor.clone());
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    assert_eq!(seen, names);
    assert_eq!(ask(first_cursor.clone(), Some("tool")).unwrap_err(), InvalidCursor::Foreign, "another filter");
    assert_eq!(ask(Some("nonsense".into()), None).unwrap_err(), InvalidCursor::Foreign);
    house.registry.set_enabled("tool_0", false).await.unwrap();
    assert_eq!(
        ask(first_cursor.clone(), None).unwrap().tools[0].tool.name().as_str(),
        "tool_3",
        "the old list is kept for a while"
    );
    for enabled in [true, false, true, false, true] {
        house.registry.set_enabled("tool_1", enabled).await.unwrap();
    }
    assert_eq!(ask(first_cursor, None).unwrap_err(), InvalidCursor::Stale);
}

#[tokio::test]
async fn a_provider_is_closed_if_its_stored_catalogue_cannot_be_read() {
    let repository = Arc::new(InMemoryToolRepository::new());
    let registry = ToolRegistry::new(repository.clone(), Arc::new(FixedClock::at(Timestamp(1)))).await.unwrap();
    let provider = Arc::new(ScriptedProvider::new("up"));
    provider.fail_list("not there yet");
    repository.fail_next_read();
    registry.register(provider.clone()).await.unwrap_err();
    assert!(provider.is_closed());
}
