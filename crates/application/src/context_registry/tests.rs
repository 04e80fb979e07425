use super::*;
use toolstead_domain::testing::scripted_context::ScriptedContext;

async fn registered(providers: impl IntoIterator<Item = ScriptedContext>) -> Result<Arc<ContextRegistry>, String> {
    let registry = ContextRegistry::new();
    for provider in providers {
        registry.register(Arc::new(provider)).await.map_err(|error| error.to_string())?;
    }
    Ok(registry)
}

#[tokio::test]
async fn what_is_offered_twice_is_refused_at_registration() {
    let one = || ScriptedContext::new("one").with_resource("a://x").with_template("b://{x}").with_prompt("p");
    let other = ScriptedContext::new("other");
    for (second, said) in [
        (ScriptedContext::new("one"), "named `one`"),
        (ScriptedContext::new("two").with_resource("a://x"), "the resource `a://x` of `two` is offered by `one`"),
        (ScriptedContext::new("two").with_template("b://{x}"), "the template `b://{x}` of `two`"),
        (ScriptedContext::new("two").with_prompt("q").with_prompt("q"), "the prompt `q` of `two` is offered by `two`"),
    ] {
        let error = registered([one(), second]).await.unwrap_err();
        assert!(error.contains(said), "{error}");
    }
    assert!(registered([one(), other.with_resource("a://y").with_prompt("o")]).await.is_ok());
}

#[tokio::test]
async fn lists_are_sorted_and_taken_again_when_a_provider_says_that_it_changed() {
    let provider = Arc::new(ScriptedContext::new("one").with_prompt("b").with_prompt("a"));
    let registry = ContextRegistry::new();
    registry.register(provider.clone()).await.unwrap();
    let names = |registry: &ContextRegistry| {
        registry.snapshot().prompts().iter().map(|one| one.definition.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&registry), ["a", "b"]);
    let mut changes = registry.changes();
    changes.mark_unchanged();
    provider.replace(&ScriptedContext::new("x").with_prompt("c"));
    changes.changed().await.unwrap();
    assert_eq!(names(&registry), ["c"]);
    assert_eq!(*changes.borrow(), ContextChanges { resources: 0, prompts: 2 });
}

#[tokio::test]
async fn what_a_provider_says_outside_of_requests_reaches_all_who_listen() {
    let provider = Arc::new(ScriptedContext::new("one"));
    let registry = ContextRegistry::new();
    registry.register(provider.clone()).await.unwrap();
    let mut listeners = [registry.heard(), registry.heard()];
    let notice = ContextNotice::ResourceUpdated { uri: "a://x".into() };
    provider.say(notice.clone());
    for listener in &mut listeners {
        assert_eq!(*listener.recv().await.unwrap(), Heard { provider: "one".into(), notice: notice.clone() });
    }
}
