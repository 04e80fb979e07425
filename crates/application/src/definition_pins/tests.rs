use super::*;
use serde_json::json;
use toolstead_domain::{
    Availability, Category, ChangePolicy, ServerName, ToolName,
    pinning::change::ItemChangeKind,
    testing::{fixed_clock::FixedClock, in_memory_definition_store::InMemoryDefinitionStore, samples::START},
};

fn pins() -> DefinitionPins {
    DefinitionPins::new(Arc::new(InMemoryDefinitionStore::default()), Arc::new(FixedClock::at(START)))
}

fn pinning() -> ServerPinningSettings {
    let server = PinnedServerKey { configured_in: "/config.toml".into(), name: "s".into() };
    ServerPinningSettings { server, on_change: ChangePolicy::Pin, launch: json!({"command": "s"}) }
}

fn members(definition: Value) -> Map<String, Value> {
    definition.as_object().unwrap().clone()
}

fn tool(definition: Value) -> Tool {
    let server = ServerName::parse("s").unwrap();
    let name = ToolName::for_upstream(&server, "t");
    Tool::new(name, members(definition), Category::Utility, ToolSource::McpServer { server, tool: "t".into() })
}

async fn served(pins: &DefinitionPins, offered: Value) -> Tool {
    let served = pins.tools(&pinning(), vec![tool(offered)], &BTreeSet::new()).await.unwrap();
    served.tools.into_iter().next().unwrap()
}

/// Returns many items of each kind, all with this description.
fn many(description: &str) -> ContextCatalogue {
    const NUMBER: usize = 600;
    let resource =
        |n: usize| Resource::new(members(json!({"uri": format!("a://{n}"), "name": "r", "description": description})));
    let template = |n: usize| {
        let definition = json!({"uriTemplate": format!("a://{n}/{{b}}"), "name": "t", "description": description});
        ResourceTemplate::new(members(definition))
    };
    let prompt = |n: usize| Prompt::new(members(json!({"name": format!("p{n}"), "description": description})));
    ContextCatalogue {
        resources: (0..NUMBER).map(|n| resource(n).unwrap()).collect(),
        templates: (0..NUMBER).map(|n| template(n).unwrap()).collect(),
        prompts: (0..NUMBER).map(|n| prompt(n).unwrap()).collect(),
    }
}

#[tokio::test]
async fn every_resource_template_and_prompt_is_pinned_and_scanned() {
    let (pins, pinning) = (pins(), pinning());
    let listed = async |offered| pins.context(&pinning, offered, None, true).await.unwrap().catalogue;
    assert_eq!(listed(many("As approved.")).await, many("As approved."));
    assert_eq!(listed(many("Changed.")).await, many("As approved."), "the approved definitions are served");
    let hidden = listed(many("As approved.\u{202e}")).await;
    assert_eq!(hidden, ContextCatalogue::default(), "hidden text is not served");
}

#[tokio::test]
async fn a_tool_with_hidden_text_in_an_icon_is_unavailable_until_that_text_is_approved() {
    let (pins, pinning) = (pins(), pinning());
    let offered = |description: &str| {
        json!({
            "description": description,
            "inputSchema": {"type": "object"},
            "icons": [{"src": "data:image/png;base64,iVBORw0KGgo=\u{e0041}"}],
        })
    };
    for description in ["Adds.", "Adds and more.", "Adds."] {
        let served = served(&pins, offered(description)).await;
        let Availability::Unavailable(reason) = &served.availability else { panic!("{description}: {served:?}") };
        assert!(reason.contains("tag character U+E0041") && reason.contains("`servers approve s`"), "{reason}");
    }
    let items = pins.unapproved(&pinning.server).await.unwrap();
    pins.approve(&pinning.server, &items, "user").await.unwrap();
    assert_eq!(served(&pins, offered("Adds.")).await.availability, Availability::Available);
    // The approved definition continues to be served after another change.
    let later = served(&pins, json!({"description": "Adds more.", "inputSchema": {"type": "object"}})).await;
    assert_eq!((later.description(), &later.availability), ("Adds.", &Availability::Available));
    // New hidden text is not what was approved.
    let mut other = offered("Adds.");
    other["title"] = json!("A\u{202e}");
    assert!(matches!(served(&pins, other).await.availability, Availability::Unavailable(_)));
}

#[tokio::test]
async fn an_approval_applies_to_the_shown_versions_and_a_digest_names_them() {
    let (pins, pinning) = (pins(), pinning());
    let described = |text: &str| json!({"description": text, "inputSchema": {"type": "object"}});
    served(&pins, described("One.")).await;
    served(&pins, described("Two.")).await;
    let shown = pins.unapproved(&pinning.server).await.unwrap();
    // Another process records a newer version between `servers diff` and `servers approve`.
    served(&pins, described("Three.")).await;
    let now = pins.unapproved(&pinning.server).await.unwrap();
    assert_ne!(digest_of(&pinning.server, &shown), digest_of(&pinning.server, &now));
    assert_eq!(digest_of(&pinning.server, &now), digest_of(&pinning.server, &now.clone()));
    pins.approve(&pinning.server, &shown, "user").await.unwrap();
    assert_eq!(served(&pins, described("Three.")).await.description(), "Two.");
    let rest = pins.unapproved(&pinning.server).await.unwrap();
    let [item] = &rest[..] else { panic!("{rest:?}") };
    assert_eq!((item.label(), item.approved.as_ref().map(|one| one.number), item.latest.number), ("t", Some(2), 3));
}

#[tokio::test]
async fn a_stored_tool_has_the_definition_that_was_approved_meanwhile() {
    let (pins, pinning) = (pins(), pinning());
    let described = |text: &str| json!({"description": text, "inputSchema": {"type": "object"}});
    served(&pins, described("One.")).await;
    let stored = served(&pins, described("Two.")).await;
    assert_eq!(stored.description(), "One.");
    let stored_description = async || {
        let served = pins.stored_tools(&pinning, vec![stored.clone()]).await.unwrap();
        served.tools[0].description().to_owned()
    };
    assert_eq!(stored_description().await, "One.");
    let items = pins.unapproved(&pinning.server).await.unwrap();
    pins.approve(&pinning.server, &items, "user").await.unwrap();
    assert_eq!(stored_description().await, "Two.");
}

#[tokio::test]
async fn a_stored_tool_that_its_server_no_longer_offers_is_not_served() {
    let (pins, pinning) = (pins(), pinning());
    let stored = served(&pins, json!({"description": "One.", "inputSchema": {"type": "object"}})).await;
    // Another process lists the tools of the server without this one.
    pins.tools(&pinning, Vec::new(), &BTreeSet::new()).await.unwrap();
    let served = pins.stored_tools(&pinning, vec![stored]).await.unwrap();
    assert_eq!(served.tools, []);
}

#[tokio::test]
async fn the_history_has_no_item_that_the_server_never_offered() {
    let (pins, pinning) = (pins(), pinning());
    pins.context(&pinning, ContextCatalogue::default(), None, true).await.unwrap();
    let history = pins.history(&pinning.server).await.unwrap();
    assert!(history.iter().all(|version| version.key.kind == ItemKind::Instructions), "{history:?}");
}

#[tokio::test]
async fn removing_a_tool_requires_one_approval_and_removing_a_resource_requires_none() {
    let (pins, pinning) = (pins(), pinning());
    served(&pins, json!({"description": "One.", "inputSchema": {"type": "object"}})).await;
    pins.context(&pinning, many("One."), None, true).await.unwrap();
    pins.tools(&pinning, Vec::new(), &BTreeSet::new()).await.unwrap();
    pins.context(&pinning, ContextCatalogue::default(), None, true).await.unwrap();
    let items = pins.unapproved(&pinning.server).await.unwrap();
    let classes: Vec<_> = items.iter().map(|item| (item.label(), item.classes())).collect();
    assert_eq!(classes, [("t", [ItemChangeKind::Removed].into())]);
    pins.approve(&pinning.server, &items, "user").await.unwrap();
    assert_eq!(pins.unapproved(&pinning.server).await.unwrap(), []);
    let returned = served(&pins, json!({"description": "One.", "inputSchema": {"type": "object"}})).await;
    assert_eq!((returned.description(), returned.pending.is_none()), ("One.", true), "it is as it was approved");
}
