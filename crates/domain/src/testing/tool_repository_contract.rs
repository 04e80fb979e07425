//! Contract of every tool repository.

use super::samples;
use crate::{
    alias::{Alias, Dialect},
    category::Category,
    ports::{
        clock::Timestamp,
        tool_repository::{DefinitionChange, StoredToolCatalogue, ToolRepository},
    },
    provider_identity::ProviderIdentity,
    server_name::ServerName,
    tool::{Availability, DefinitionPart, Tool, ToolSource},
    tool_name::ToolName,
};
use serde_json::{Value, json};

/// Checks each guarantee of [`ToolRepository`] on an empty repository.
///
/// # Panics
/// If a guarantee is violated; the message names it.
pub async fn tool_repository_contract(repository: &dyn ToolRepository) {
    an_empty_repository_knows_nothing(repository).await;
    a_catalogue_comes_back_as_it_was(repository).await;
    saving_replaces_one_catalogue_alone(repository).await;
    a_catalogue_is_that_of_one_place_one_name_and_one_start(repository).await;
    changes_are_stored_with_their_tools(repository).await;
    enabled_flags_are_separate_from_catalogues(repository).await;
}

async fn an_empty_repository_knows_nothing(repository: &dyn ToolRepository) {
    assert_eq!(tools_of(repository, "nobody").await, [], "a catalogue that was never saved is empty");
    assert!(repository.disabled().await.unwrap().is_empty(), "nothing is switched off at first");
}

async fn a_catalogue_comes_back_as_it_was(repository: &dyn ToolRepository) {
    let tools = diverse_tools();
    save(repository, "diverse", &tools, at(1)).await;
    let found = tools_of(repository, "diverse").await;
    let mut expected = tools;
    expected.iter_mut().for_each(|tool| tool.aliases.clear());
    expected.sort_by(|a, b| a.name().cmp(b.name()));
    assert_eq!(found, expected, "tools come back sorted by name, without aliases");
    // The text shows the order of members and the notation of numbers, which equality does not.
    let texts = |tools: &[Tool]| -> Vec<String> {
        tools.iter().map(|tool| Value::Object(tool.definition().clone()).to_string()).collect()
    };
    assert_eq!(texts(&found), texts(&expected), "a definition keeps its members in their order");
}

async fn saving_replaces_one_catalogue_alone(repository: &dyn ToolRepository) {
    let names = |tools: &[Tool]| -> Vec<String> { tools.iter().map(|tool| tool.name().to_string()).collect() };
    let [a, b, c] = ["a", "b", "c"].map(samples::tool);
    let changed = described("b", "Does something else now.");
    save(repository, "one", &[a.clone(), b.clone()], at(1)).await;
    save(repository, "two", std::slice::from_ref(&b), at(2)).await;
    save(repository, "one", &[c.clone(), changed.clone()], at(3)).await;
    assert_eq!(tools_of(repository, "one").await, [changed, c.clone()], "tools that are gone are forgotten");
    assert_eq!(tools_of(repository, "two").await, [b], "other catalogues stay");
    save(repository, "one", &[c, a], at(4)).await;
    assert_eq!(names(&tools_of(repository, "one").await), ["a", "c"], "a tool may come back");
    save(repository, "one", &[], at(5)).await;
    assert_eq!(tools_of(repository, "one").await, [], "a catalogue may become empty");
    assert_eq!(names(&tools_of(repository, "two").await), ["b"], "other catalogues stay");
    let many: Vec<Tool> = (0..1000).map(|number| samples::tool(&format!("tool_{number:04}"))).collect();
    save(repository, "many", &many, at(6)).await;
    assert_eq!(tools_of(repository, "many").await, many, "a large catalogue comes back whole");
}

async fn enabled_flags_are_separate_from_catalogues(repository: &dyn ToolRepository) {
    let enabled = |tools: Vec<Tool>| -> Vec<(String, bool)> {
        tools.iter().map(|tool| (tool.name().to_string(), tool.enabled)).collect()
    };
    let both = |a: bool, b: bool| vec![("on_a".to_owned(), a), ("on_b".to_owned(), b)];
    let [a, b] = ["on_a", "on_b"].map(samples::tool);
    let mut off = a.clone();
    off.enabled = false;
    save(repository, "switched", &[off, b.clone()], at(1)).await;
    let catalogue = async || enabled(tools_of(repository, "switched").await);
    assert_eq!(catalogue().await, both(true, true), "`enabled` of a saved tool is not looked at");
    for tool in ["on_b", "unknown", "on_b", "Z"] {
        repository.set_enabled(tool, false).await.unwrap();
    }
    assert_eq!(repository.disabled().await.unwrap(), ["Z", "on_b", "unknown"], "sorted, each once, known or not");
    assert_eq!(catalogue().await, both(true, false), "a catalogue shows what is switched off");
    save(repository, "switched", &[a, b], at(2)).await;
    assert_eq!(catalogue().await, both(true, false), "saving switches nothing");
    for tool in ["on_b", "unknown", "never switched off", "Z"] {
        repository.set_enabled(tool, true).await.unwrap();
    }
    assert!(repository.disabled().await.unwrap().is_empty(), "what is switched on again is not listed");
    assert_eq!(catalogue().await, both(true, true), "what is switched on again is on");
}

async fn a_catalogue_is_that_of_one_place_one_name_and_one_start(repository: &dyn ToolRepository) {
    let identity = |configured_in: &str, name: &str, start: &str| ProviderIdentity {
        configured_in: configured_in.into(),
        name: name.into(),
        start: start.into(),
    };
    let all = [
        identity("/a/toolstead.toml", "same", "1"),
        identity("/b/toolstead.toml", "same", "1"),
        identity("/a/toolstead.toml", "same", "2"),
        identity("/a/toolstead.toml", "other", "1"),
        identity("", "same", ""),
    ];
    for (number, one) in all.iter().enumerate() {
        assert_eq!(
            repository.catalogue(one).await.unwrap(),
            StoredToolCatalogue::default(),
            "the catalogue belongs to another provider: {one:?}"
        );
        let tools = vec![samples::tool(&format!("of_{number}"))];
        repository.save_catalogue(one, &StoredToolCatalogue { tools, changes: Vec::new() }, at(1)).await.unwrap();
    }
    for (number, one) in all.iter().enumerate() {
        let tools = repository.catalogue(one).await.unwrap().tools;
        assert_eq!(tools, [samples::tool(&format!("of_{number}"))], "its own: {one:?}");
    }
}

async fn changes_are_stored_with_their_tools(repository: &dyn ToolRepository) {
    let provider = ProviderIdentity::of_program("changing");
    let change = |tool: &str, parts: &[DefinitionPart], second| DefinitionChange {
        tool: tool.into(),
        parts: parts.to_vec(),
        at: at(second),
    };
    let [a, b] = ["a", "b"].map(samples::tool);
    let both = vec![
        change("a", &[DefinitionPart::Description], 1),
        change("b", &[DefinitionPart::InputSchema, DefinitionPart::Annotations], 2),
    ];
    let catalogue = StoredToolCatalogue { tools: vec![a.clone(), b.clone()], changes: both };
    repository.save_catalogue(&provider, &catalogue, at(2)).await.unwrap();
    assert_eq!(repository.catalogue(&provider).await.unwrap(), catalogue, "changes come back");
    let later = vec![change("b", &[DefinitionPart::Title], 3)];
    let catalogue = StoredToolCatalogue { tools: vec![a, b.clone()], changes: later.clone() };
    repository.save_catalogue(&provider, &catalogue, at(3)).await.unwrap();
    assert_eq!(repository.catalogue(&provider).await.unwrap().changes, later, "those that were given last count");
    let catalogue = StoredToolCatalogue { tools: Vec::new(), changes: later };
    repository.save_catalogue(&provider, &catalogue, at(4)).await.unwrap();
    assert_eq!(
        repository.catalogue(&provider).await.unwrap(),
        StoredToolCatalogue::default(),
        "a change goes with its tool"
    );
}

async fn tools_of(repository: &dyn ToolRepository, provider: &str) -> Vec<Tool> {
    repository.catalogue(&ProviderIdentity::of_program(provider)).await.unwrap().tools
}

async fn save(repository: &dyn ToolRepository, provider: &str, tools: &[Tool], now: Timestamp) {
    let catalogue = StoredToolCatalogue { tools: tools.to_vec(), changes: Vec::new() };
    repository.save_catalogue(&ProviderIdentity::of_program(provider), &catalogue, now).await.unwrap();
}

/// Returns one tool for each property that may get lost.
fn diverse_tools() -> Vec<Tool> {
    let server = ServerName::parse("git").unwrap();
    let upstream_name = "git status \u{0} 'x' \"y\" 🦀";
    let upstream = ToolSource::McpServer { server: server.clone(), tool: upstream_name.into() };
    let odd = json!({
        "z": 1,
        "name": "replaced in place",
        "description": "line\nbreak \u{0} \u{202e} '; DROP TABLE tools; --",
        "inputSchema": {"type": "object", "properties": {"b": {"maximum": u64::MAX}, "a": {"minimum": i64::MIN}}},
        "annotations": {"readOnlyHint": true, "title": "T", "unknown": null},
        "execution": {"taskSupport": "optional"},
        "_meta": {"double": 1.0e-7, "whole": 1.0, "": [[]]},
        "a": 2,
    });
    let odd = odd.as_object().unwrap().clone();
    let mut upstream = Tool::new(ToolName::for_upstream(&server, upstream_name), odd, Category::Mcp, upstream);
    upstream.tags = vec![String::new(), "\"quoted\"".into(), "a,b".into()];
    let weather = samples::tool("Weather.now");
    let source = ToolSource::Embedded(ServerName::parse("weather-1").unwrap());
    let mut embedded = Tool::new(weather.name().clone(), weather.definition().clone(), Category::Web, source);
    embedded.availability = Availability::Unavailable("a key is missing: set `WEATHER_KEY`".into());
    let mut aliased = samples::tool("read_file");
    aliased.aliases = vec![Alias::new("Read", Dialect("other"), &[])];
    let mut tools = vec![upstream, embedded, aliased, samples::tool("_"), samples::tool("B"), samples::tool("a")];
    tools.extend(Category::ALL.iter().map(|category| {
        let mut tool = samples::tool(&format!("of_{category}"));
        tool.category = *category;
        tool
    }));
    tools
}

fn described(name: &str, description: &str) -> Tool {
    let mut definition = samples::tool(name).definition().clone();
    definition.insert("description".into(), description.into());
    Tool::new(ToolName::parse(name).unwrap(), definition, Category::Utility, ToolSource::BuiltIn)
}

fn at(second: i64) -> Timestamp {
    Timestamp(samples::START.0 + second * 1_000_000)
}
