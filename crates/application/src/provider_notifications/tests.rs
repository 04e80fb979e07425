use super::*;
use toolstead_domain::{
    Effect, PatternContext, PermissionPolicy, PermissionRule, Principal, Timestamp, View,
    permission::rule::RuleOrigin,
    testing::{
        fixed_clock::FixedClock, in_memory_rule_store::InMemoryRuleStore,
        in_memory_tool_repository::InMemoryToolRepository, scripted_context::ScriptedContext,
    },
};

fn scope(principal: &str) -> RequestScope {
    RequestScope::of(Principal::new("token", principal), "s")
}

fn denying(rule: &str) -> PermissionPolicy {
    let rule = PermissionRule::parse(Effect::Deny, rule, RuleOrigin::CommandLine, &PatternContext::default()).unwrap();
    PermissionPolicy { rules: [Arc::new(rule)].into(), ..PermissionPolicy::default() }
}

async fn voices(providers: impl IntoIterator<Item = &Arc<ScriptedContext>>) -> Arc<ProviderInstructionsAndLogs> {
    let context = ContextRegistry::new();
    for provider in providers {
        context.register(provider.clone()).await.unwrap();
    }
    let clock = Arc::new(FixedClock::at(Timestamp(0)));
    let tools = ToolRegistry::new(Arc::new(InMemoryToolRepository::new()), clock).await.unwrap();
    let book = PermissionBook::new(Arc::new(PermissionPolicy::default()), Arc::new(InMemoryRuleStore::new()));
    ProviderInstructionsAndLogs::new(context, tools, Arc::new(book))
}

fn log(level: LogLevel, principal: Option<&RequestScope>) -> ContextEvent {
    let principal = principal.map(|scope| scope.principal.clone());
    let notice = ContextNotice::Log { message: LogMessage::new(level, "x"), principal };
    ContextEvent { provider: "git".into(), notice }
}

#[tokio::test]
async fn guidance_is_returned_only_for_providers_that_the_scope_may_use() {
    let git = Arc::new(ScriptedContext::new("git").with_prompt("p").with_instructions("Commit often."));
    let db = Arc::new(ScriptedContext::new("db").with_resource("db://a").with_instructions("Read only."));
    let empty = Arc::new(ScriptedContext::new("empty").with_instructions("Nothing to use."));
    let voices = voices([&git, &db, &empty]).await;
    let text_of = |deny: &str| voices.instructions(&scope("a").through(View::new(deny, Arc::new(denying(deny)))));
    assert_eq!(voices.instructions(&scope("a")).unwrap(), "## db\n    Read only.\n\n## git\n    Commit often.");
    assert_eq!(text_of("mcp__git").unwrap(), "## db\n    Read only.");
    assert_eq!(text_of("mcp__db__read_resource").unwrap(), "## git\n    Commit often.");
    assert_eq!(text_of("mcp__*"), None);
}

#[tokio::test]
async fn every_provider_receives_the_least_severe_log_level_that_any_listener_requests() {
    let git = Arc::new(ScriptedContext::new("git"));
    let voices = voices([&git]).await;
    let (mut one, mut two) = (voices.listen(scope("a")), voices.listen(scope("b")));
    one.set_level(Some(LogLevel::Error));
    git.wait_for_log_level(Some(LogLevel::Error)).await;
    two.set_level(Some(LogLevel::Debug));
    git.wait_for_log_level(Some(LogLevel::Debug)).await;
    let late = Arc::new(ScriptedContext::new("late"));
    voices.context.register(late.clone()).await.unwrap();
    late.wait_for_log_level(Some(LogLevel::Debug)).await;
    drop(two);
    git.wait_for_log_level(Some(LogLevel::Error)).await;
    one.set_level(None);
    git.wait_for_log_level(None).await;
}

#[tokio::test]
async fn a_log_message_reaches_only_listeners_in_its_scope_that_requested_its_level() {
    let git = Arc::new(ScriptedContext::new("git").with_prompt("p"));
    let voices = voices([&git]).await;
    let mut listener = voices.listen(scope("a"));
    assert_eq!(listener.matching_log(&log(LogLevel::Emergency, None)), None);
    listener.set_level(Some(LogLevel::Warning));
    for (heard, is_told) in [
        (log(LogLevel::Notice, None), false),
        (log(LogLevel::Warning, None), true),
        (log(LogLevel::Error, Some(&scope("a"))), true),
        (log(LogLevel::Error, Some(&scope("b"))), false),
        (ContextEvent { provider: "unknown".into(), ..log(LogLevel::Error, None) }, false),
    ] {
        assert_eq!(listener.matching_log(&heard).is_some(), is_told, "{heard:?}");
    }
    let closed = scope("a").through(View::new("v", Arc::new(denying("mcp__git"))));
    let mut closed = voices.listen(closed);
    closed.set_level(Some(LogLevel::Debug));
    assert_eq!(closed.matching_log(&log(LogLevel::Error, None)), None);
}
