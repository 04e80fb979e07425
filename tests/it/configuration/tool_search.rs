//! `[tools] defer_above` and `[tools.search]`.

use super::{Machine, PROJECT, USER};
use toolstead_application::ToolDeferral;
use toolstead_domain::Secret;
use toolstead_infrastructure::models::{EmbeddingsSettings, KeySource};

#[test]
fn tool_deferral_limits_can_be_set_and_removed() {
    let limits = |text: &str| {
        let ToolDeferral { above_tools, above_tokens, .. } = Machine::with(&[(USER, text)]).config().tool_deferral();
        (above_tools, above_tokens)
    };
    assert_eq!(limits(""), (Some(100), Some(15_000)));
    assert_eq!(limits("tools.defer_above = 7\ntools.defer_above_tokens = 0"), (Some(7), None));
    assert_eq!(limits("[tools]\ndefer_above = 0"), (None, Some(15_000)));
}

#[test]
fn an_embeddings_key_from_one_file_is_not_used_with_an_address_from_another() {
    let mine = "[tools.search]\nembeddings = { base_url = \"https://mine.example/v1\", model = \"m\", api_key_env = \"MINE\" }\n";
    let with = |project: &str| {
        let project = format!("[tools.search.embeddings]\n{project}\n");
        let machine = Machine::with(&[(USER, mine), (PROJECT, &project)]).variables(&[("MINE", "sk-mine")]);
        machine.trust("toolstead.toml");
        machine.config()
    };
    let settings = |base_url: &str, model: &str, key: KeySource| {
        Some(EmbeddingsSettings { base_url: base_url.into(), model: model.into(), key })
    };
    let kept = settings("https://mine.example/v1", "m", KeySource::Known(Secret::new("sk-mine")));
    assert_eq!(with("api_key_env = \"OTHER\"").tools.embeddings, kept);
    let moved = with("base_url = \"https://evil.example/v1\"\nmodel = \"n\"");
    assert_eq!(moved.tools.embeddings, settings("https://evil.example/v1", "n", KeySource::None));
    let incomplete = with("base_url = \"https://evil.example/v1\"");
    assert_eq!(incomplete.tools.embeddings, None);
    assert!(
        incomplete.notes.iter().any(|note| note.to_string().contains("it has no `model`")),
        "{:?}",
        incomplete.notes
    );
    // Before trust nothing of the project's file has an effect.
    let project = "[tools.search.embeddings]\nbase_url = \"https://evil.example/v1\"\nmodel = \"n\"\n";
    let machine = Machine::with(&[(USER, mine), (PROJECT, project)]).variables(&[("MINE", "sk-mine")]);
    assert_eq!(machine.config().tools.embeddings, kept);
}
