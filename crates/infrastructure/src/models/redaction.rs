//! Removal of keys from a provider's answers, including those split across pieces of a stream.

use serde_json::{Map, Value};
use std::mem::take;
use toolstead_domain::{Block, ModelEvent, SealedBlock, ToolArguments, ToolUse};

/// Minimum length of a secret to search for, in bytes. Shorter ones are placeholders for local servers (`ollama`) or
/// words of ordinary answers.
const MIN_SECRET: usize = 16;
const REDACTED: &str = "[redacted]";
/// Parts of the names of headers that contain secrets.
const SECRET_NAMES: [&str; 6] = ["auth", "cookie", "key", "password", "secret", "token"];

/// Secrets of one exchange, and the ends of its texts that may be the beginning of a secret.
#[derive(Debug, Default)]
pub(super) struct StreamRedactor {
    /// Longest first.
    secrets: Vec<String>,
    text: Tail,
    thinking: Tail,
}

/// End of a text that is withheld because a secret may begin there.
#[derive(Debug, Default)]
struct Tail(String);

impl StreamRedactor {
    /// Creates the redaction of a key and of configured headers with names that indicate a secret.
    pub(super) fn of<'a>(key: Option<&'a str>, headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let is_secret = |name: &str| SECRET_NAMES.iter().any(|part| name.to_ascii_lowercase().contains(part));
        let of_headers = headers.into_iter().filter(|(name, _)| is_secret(name)).map(|(_, value)| value);
        let with_words = |secret: &'a str| std::iter::once(secret).chain(secret.split_whitespace());
        let all = key.into_iter().chain(of_headers).flat_map(with_words);
        let mut secrets: Vec<String> = all.filter(|one| one.len() >= MIN_SECRET).map(str::to_owned).collect();
        // Longer secrets come first, because replacing a shorter one within them would leave the rest.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self { secrets, ..Self::default() }
    }

    /// Returns the events without secrets. The end of a text that may be the beginning of a secret is returned with a
    /// later call.
    pub(super) fn applied(&mut self, events: Vec<ModelEvent>) -> Vec<ModelEvent> {
        match self.secrets.is_empty() {
            true => events,
            false => events.into_iter().flat_map(|event| self.event(event)).collect(),
        }
    }

    fn event(&mut self, event: ModelEvent) -> Vec<ModelEvent> {
        let mut events = Vec::new();
        if !matches!(event, ModelEvent::TextDelta(_)) {
            events.extend(self.text.rest().map(ModelEvent::TextDelta));
        }
        if !matches!(event, ModelEvent::ThinkingDelta(_)) {
            events.extend(self.thinking.rest().map(ModelEvent::ThinkingDelta));
        }
        match event {
            ModelEvent::TextDelta(text) => events.extend(self.text.add(text, &self.secrets).map(ModelEvent::TextDelta)),
            ModelEvent::ThinkingDelta(text) => {
                events.extend(self.thinking.add(text, &self.secrets).map(ModelEvent::ThinkingDelta));
            }
            ModelEvent::CallBegun { name } => events.push(ModelEvent::CallBegun { name: self.clean(name) }),
            ModelEvent::Block(block) => events.extend(self.block(block).map(ModelEvent::Block)),
            other => events.push(other),
        }
        events
    }

    /// Returns the block without secrets; `None` for a sealed block with a secret, which cannot be changed. Providers
    /// do without it.
    fn block(&self, block: Block) -> Option<Block> {
        Some(match block {
            Block::Text { text } => Block::Text { text: self.clean(text) },
            Block::ToolUse(ToolUse { id, name, arguments, sealed }) => Block::ToolUse(ToolUse {
                id: self.clean(id),
                name: self.clean(name),
                arguments: match arguments {
                    ToolArguments::Object(members) => ToolArguments::Object(self.members(members)),
                    ToolArguments::Malformed(text) => ToolArguments::Malformed(self.clean(text)),
                },
                sealed: sealed.and_then(|sealed| self.sealed(sealed)),
            }),
            Block::Sealed(sealed) => Block::Sealed(self.sealed(sealed)?),
            other => other,
        })
    }

    fn sealed(&self, sealed: SealedBlock) -> Option<SealedBlock> {
        let has_secret = self.secrets.iter().any(|secret| sealed.raw.contains(secret.as_str()));
        (!has_secret).then(|| SealedBlock { shown: sealed.shown.map(|text| self.clean(text)), ..sealed })
    }

    fn members(&self, members: Map<String, Value>) -> Map<String, Value> {
        members.into_iter().map(|(name, value)| (self.clean(name), self.value(value))).collect()
    }

    fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.clean(text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => Value::Object(self.members(members)),
            plain => plain,
        }
    }

    fn clean(&self, text: String) -> String {
        replaced(text, &self.secrets)
    }
}

impl Tail {
    /// Adds a piece. Returns the text that can be shown.
    fn add(&mut self, text: String, secrets: &[String]) -> Option<String> {
        let mut text = replaced(take(&mut self.0) + &text, secrets);
        let held = secrets.iter().map(|secret| beginning_at_end(&text, secret)).max().unwrap_or(0);
        self.0 = text.split_off(text.len() - held);
        (!text.is_empty()).then_some(text)
    }

    /// Returns the withheld end, which is not a secret after all.
    fn rest(&mut self) -> Option<String> {
        Some(take(&mut self.0)).filter(|rest| !rest.is_empty())
    }
}

fn replaced(mut text: String, secrets: &[String]) -> String {
    for secret in secrets {
        if text.contains(secret.as_str()) {
            text = text.replace(secret.as_str(), REDACTED);
        }
    }
    text
}

/// Returns the length of the longest end of the text that is a beginning of the secret.
fn beginning_at_end(text: &str, secret: &str) -> usize {
    let longest = text.len().min(secret.len() - 1);
    (1..=longest).rev().find(|length| text.as_bytes().ends_with(&secret.as_bytes()[..*length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolstead_domain::{StopReason, TokenUsage};

    const KEY: &str = "sk-0123456789abcdef";

    fn redaction() -> StreamRedactor {
        let headers = [("X-Title", "a title of many letters"), ("X-Api-Token", "Bearer token-of-sixteen-or-more")];
        StreamRedactor::of(Some(KEY), headers)
    }

    /// Returns the text of the deltas.
    fn texts_of(events: &[ModelEvent]) -> String {
        let texts = events.iter().filter_map(|event| match event {
            ModelEvent::TextDelta(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    fn end() -> ModelEvent {
        ModelEvent::Finished { stop: StopReason::EndTurn, usage: TokenUsage::default() }
    }

    #[test]
    fn a_key_is_redacted_wherever_the_stream_is_split() {
        let text =
            format!("sk-01 ä {KEY}{KEY} token-of-sixteen-or-more sk-0123456789abcdeX a title of many letters sk-");
        let expected = "sk-01 ä [redacted][redacted] [redacted] sk-0123456789abcdeX a title of many letters sk-";
        let borders: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
        for first in &borders {
            for second in borders.iter().filter(|second| *second >= first) {
                let pieces = [&text[..*first], &text[*first..*second], &text[*second..]];
                let mut redaction = redaction();
                let deltas = pieces.map(|piece| ModelEvent::TextDelta(piece.to_owned()));
                let mut events: Vec<ModelEvent> =
                    deltas.into_iter().flat_map(|delta| redaction.applied(vec![delta])).collect();
                assert!(!texts_of(&events).contains("0123456789abcdef"), "{pieces:?}");
                events.extend(redaction.applied(vec![ModelEvent::Block(Block::text(text.clone())), end()]));
                assert_eq!(texts_of(&events), expected, "{pieces:?}");
                assert!(events.contains(&ModelEvent::Block(Block::text(expected))), "{events:?}");
            }
        }
    }

    #[test]
    fn withheld_text_is_emitted_before_the_next_event() {
        let mut redaction = redaction();
        assert_eq!(
            redaction.applied(vec![ModelEvent::TextDelta("ask-01".into())]),
            [ModelEvent::TextDelta("a".into())]
        );
        let thought = ModelEvent::ThinkingDelta("hm".into());
        let expected = [ModelEvent::TextDelta("sk-01".into()), thought.clone()];
        assert_eq!(redaction.applied(vec![thought]), expected);
    }

    #[test]
    fn a_key_in_a_call_is_redacted_and_a_sealed_block_with_a_key_is_dropped() {
        let call = |text: &str| {
            let arguments = json!({"command": format!("echo {text}"), "more": [{text: text}], "n": 1});
            let arguments = ToolArguments::Object(arguments.as_object().unwrap().clone());
            ModelEvent::Block(Block::ToolUse(ToolUse { id: "c".into(), name: "bash".into(), arguments, sealed: None }))
        };
        assert_eq!(redaction().applied(vec![call(KEY)]), [call(REDACTED)]);
        let sealed = |raw: &str, shown: &str| {
            let shown = Some(shown.to_owned());
            ModelEvent::Block(Block::Sealed(SealedBlock { provider: "anthropic".into(), raw: raw.into(), shown }))
        };
        let events = redaction().applied(vec![sealed(&format!("{{\"t\":\"{KEY}\"}}"), "a"), sealed("{}", KEY)]);
        assert_eq!(events, [sealed("{}", REDACTED)]);
    }

    #[test]
    fn short_keys_of_local_servers_are_not_redacted() {
        let events = vec![ModelEvent::TextDelta("run ollama".into())];
        assert_eq!(StreamRedactor::of(Some("ollama"), []).applied(events.clone()), events);
    }
}
