//! Whole requests of each protocol with the system prompt of an agent, compared with stored ones.
//!
//! `surroundings.txt` is the text that the presentation layer writes for a fixed clock and workspace; its test compares
//! the same file. `UPDATE_GOLDEN=1` stores the present requests.

#![expect(clippy::disallowed_methods, reason = "tests read and store fixtures")]

use super::{
    of,
    test_streams::{body, conversation, settings},
};
use crate::models::settings::ProviderKind;
use std::{env, fs, path::Path};

const PROMPT: &str = "You are an agent that works with tools.";

#[track_caller]
fn check(kind: ProviderKind, base_url: &str, name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/system_prompt");
    let surroundings = fs::read_to_string(folder.join("surroundings.txt")).unwrap();
    let mut request = conversation();
    request.system = format!("{PROMPT}\n\n{}", surroundings.trim_end());
    let sent = format!("{:#}\n", body(of(kind), &settings(kind, base_url), &request));
    let golden = folder.join(name);
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, &sent).unwrap();
    }
    assert_eq!(sent, fs::read_to_string(&golden).unwrap(), "{name}");
}

#[test]
fn each_protocol_sends_the_whole_system_prompt_where_the_provider_expects_it() {
    check(ProviderKind::Anthropic, "https://api.anthropic.com", "anthropic.json");
    check(ProviderKind::OpenAi, "https://api.openai.com/v1", "openai_chat.json");
    check(ProviderKind::OpenAiResponses, "https://api.openai.com/v1", "openai_responses.json");
    check(ProviderKind::Gemini, "https://generativelanguage.googleapis.com/v1beta", "gemini.json");
}
