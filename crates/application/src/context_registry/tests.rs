use super::*;
use serde_json::{Value, json};
use toolstead_domain::testing::scripted_context::ScriptedContext;

async fn registered(providers: impl IntoIterator<Item = ScriptedContext>) -> Result<Arc<ContextRegistry>, String> {
    let registry = ContextRegistry::new();
    for provider in providers {
        registry.register(Arc::new(provider)).await.map_err(|error| error.to_string())?;
    }
    Ok(registry)
}

#[tokio::test]
async fn registration_rejects_duplicate_providers_resources_templates_and_prompts() {
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
async fn lists_are_sorted_and_refreshed_when_their_provider_reports_a_change() {
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
    assert_eq!(*changes.borrow(), ContextListVersions { resources: 0, prompts: 2 });
}

#[tokio::test]
async fn every_listener_receives_a_notice_that_a_provider_sends() {
    let provider = Arc::new(ScriptedContext::new("one"));
    let registry = ContextRegistry::new();
    registry.register(provider.clone()).await.unwrap();
    let mut listeners = [registry.notices(), registry.notices()];
    let notice = ContextNotice::ResourceUpdated { uri: "a://x".into() };
    provider.send_notice(notice.clone());
    for listener in &mut listeners {
        assert_eq!(*listener.recv().await.unwrap(), ContextEvent { provider: "one".into(), notice: notice.clone() });
    }
}

fn uris(registry: &ContextRegistry) -> Vec<String> {
    let snapshot = registry.snapshot();
    let resources = snapshot.resources().iter().map(|one| one.definition.uri().to_owned());
    let templates = snapshot.templates().iter().map(|one| one.definition.template().as_str().to_owned());
    resources.chain(templates).collect()
}

fn provider_of(registry: &ContextRegistry, uri: &str) -> Option<(String, String)> {
    let (provider, own) = registry.snapshot().provider_of(uri)?;
    Some((provider.name().to_owned(), own))
}

#[tokio::test]
async fn only_ambiguous_uris_of_servers_are_prefixed_with_the_server_name() {
    let server = |name: &str| ScriptedContext::new(name).of_server();
    let own = ScriptedContext::new("built-in").with_resource("config://a").with_template("file:///{path}");
    let registry = registered([
        own,
        server("one").with_resource("a://x").with_resource("a://only").with_template("b://{y}"),
        server("two").with_resource("a://x").with_template("b://{y}").with_template("c://{z}"),
        server("sly")
            .with_resource("config://a")
            .with_resource("file:///etc/passwd")
            .with_resource("toolstead://one/a://x")
            .with_template("file:///{path}")
            .with_template("{+all}"),
    ])
    .await
    .unwrap();
    assert_eq!(
        uris(&registry),
        [
            "a://only",
            "a://x",
            "config://a",
            "toolstead://sly/config://a",
            "toolstead://sly/file:///etc/passwd",
            "toolstead://sly/toolstead://one/a://x",
            "toolstead://two/a://x",
            "b://{y}",
            "c://{z}",
            "file:///{path}",
            "toolstead://sly/file:///{path}",
            "toolstead://sly/{+all}",
            "toolstead://two/b://{y}",
        ]
    );
    for (uri, provider, own) in [
        ("a://x", "one", "a://x"),
        ("toolstead://two/a://x", "two", "a://x"),
        ("toolstead://one/a://x", "one", "a://x"),
        ("b://7", "one", "b://7"),
        ("toolstead://two/b://7", "two", "b://7"),
        ("c://7", "two", "c://7"),
        ("config://a", "built-in", "config://a"),
        ("file:///etc/passwd", "built-in", "file:///etc/passwd"),
        ("toolstead://sly/file:///etc/passwd", "sly", "file:///etc/passwd"),
        ("toolstead://sly/toolstead://one/a://x", "sly", "toolstead://one/a://x"),
    ] {
        assert_eq!(provider_of(&registry, uri), Some((provider.into(), own.into())), "{uri}");
        let public = registry.snapshot().public_uri(provider, own).into_owned();
        assert!(public == uri || uri == "toolstead://one/a://x", "{uri} {public}");
    }
    for unknown in ["d://x", "toolstead://three/a://x", "toolstead://built-in/config://a"] {
        assert_eq!(provider_of(&registry, unknown), None, "{unknown}");
    }
}

#[tokio::test]
async fn the_first_server_to_offer_a_uri_or_prompt_keeps_it_when_another_offers_the_same() {
    let servers = ["one", "two"].map(|name| Arc::new(ScriptedContext::new(name).of_server()));
    let registry = ContextRegistry::new();
    for server in &servers {
        registry.register(server.clone()).await.unwrap();
    }
    let offer = || ScriptedContext::new("").with_resource("a://x").with_prompt("p");
    let mut changes = registry.changes();
    for server in [&servers[1], &servers[0]] {
        changes.mark_unchanged();
        server.replace(&offer());
        changes.changed().await.unwrap();
    }
    assert_eq!(uris(&registry), ["a://x", "toolstead://one/a://x"]);
    assert_eq!(provider_of(&registry, "a://x").unwrap().0, "two");
    assert_eq!(registry.snapshot().prompts()[0].provider(), "two");
    changes.mark_unchanged();
    servers[1].replace(&ScriptedContext::new(""));
    changes.changed().await.unwrap();
    assert_eq!(uris(&registry), ["a://x"]);
    registry.unregister("one");
    assert!(uris(&registry).is_empty());
}

#[tokio::test]
async fn results_and_notifications_of_a_server_contain_the_public_uris_of_its_resources() {
    let server = |name: &str| ScriptedContext::new(name).of_server().with_resource("a://x").with_template("b://{y}");
    let (one, two) = (Arc::new(server("one").with_resource("c://of-one")), Arc::new(server("two")));
    let registry = ContextRegistry::new();
    registry.register(one.clone()).await.unwrap();
    registry.register(two.clone()).await.unwrap();
    let link = |uri: &str| json!({"type": "resource_link", "uri": uri, "name": "n"});
    let embedded = |uri: &str| json!({"type": "resource", "resource": {"uri": uri, "text": "t"}});
    let result = |uris: [&str; 3]| {
        let blocks = json!([link(uris[0]), embedded(uris[1]), {"type": "text", "text": uris[0], "uri": uris[2]}]);
        let message = json!({"role": "user", "content": embedded(uris[0])});
        json!({"content": blocks, "messages": [message], "contents": [{"uri": uris[1]}, {"uri": uris[2]}]})
    };
    for (provider, expected) in [
        ("one", ["a://x", "b://7", "c://z"]),
        ("two", ["toolstead://two/a://x", "toolstead://two/b://7", "c://z"]),
        ("built-in", ["a://x", "b://7", "c://z"]),
    ] {
        let mut members = result(["a://x", "b://7", "c://z"]).as_object().unwrap().clone();
        registry.snapshot().publish_uris(provider, &mut members);
        let mut expected = result(expected);
        expected["content"][2]["text"] = "a://x".into();
        assert_eq!(Value::Object(members), expected, "{provider}");
    }
    let mut heard = registry.notices();
    two.send_notice(ContextNotice::ResourceUpdated { uri: "b://7".into() });
    one.send_notice(ContextNotice::ResourceUpdated { uri: "a://x".into() });
    two.send_notice(ContextNotice::ResourceUpdated { uri: "c://of-one".into() });
    let mut output = Vec::new();
    for _ in 0..4 {
        match &heard.recv().await.unwrap().notice {
            ContextNotice::ResourceUpdated { uri } => output.push(uri.clone()),
            notice => panic!("{notice:?}"),
        }
    }
    output.sort();
    // A watcher of the distinct form is notified, too. For a resource of another provider, only that provider notifies.
    assert_eq!(output, ["a://x", "toolstead://one/a://x", "toolstead://two/b://7", "toolstead://two/c://of-one"]);
}
