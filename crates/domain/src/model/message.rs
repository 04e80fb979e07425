//! Messages of a conversation with a model.

use crate::{json_depth::is_deeper_than, json_memory::hides_values};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The speaker of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Role {
    /// The person, and the results of calls.
    User,
    /// The model.
    Assistant,
}

/// One message.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Message {
    /// The speaker.
    pub role: Role,
    /// Its blocks, in order.
    pub blocks: Vec<Block>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "type", rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Block {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image(Image),
    /// The model calls a tool.
    ToolUse(ToolUse),
    /// The answer of a call.
    ToolResult(ToolResultBlock),
    /// A block that only its provider understands.
    Sealed(SealedBlock),
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Image {
    /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub media_type: String,
    /// The bytes in base64.
    pub data: Arc<str>,
}

/// A call that a model asks for.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ToolUse {
    /// The provider's id of the call, unique in its message. Its result bears the same.
    pub id: String,
    /// The tool as it was offered: a provider's own spelling of it is undone.
    pub name: String,
    /// The arguments.
    pub arguments: ToolArguments,
    /// A block that its provider wants to see again with the call, such as Gemini's `thoughtSignature`.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub sealed: Option<SealedBlock>,
}

/// The arguments of a call as the model wrote them.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum ToolArguments {
    /// A JSON object. No text at all is an empty one.
    Object(Map<String, Value>),
    /// Text that is no JSON object: the call cannot be made, and its result says so.
    Malformed(String),
}

/// The answer of a call, as the model gets it.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ToolResultBlock {
    /// The [`ToolUse::id`].
    pub id: String,
    /// The tool as it was called: some providers want to hear it again.
    pub name: String,
    /// Texts and images.
    pub content: Vec<Block>,
    /// The call failed.
    pub is_error: bool,
}

/// A block that only its provider understands: signed or redacted thinking, encrypted reasoning. Other providers leave it
/// out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SealedBlock {
    /// The protocol that it belongs to: `anthropic`, `openai`, `openai_responses`, `gemini`.
    pub provider: String,
    /// JSON text, which goes back byte for byte.
    pub raw: String,
    /// The part of it that people may read: the thinking, or a summary of it.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub shown: Option<String>,
}

impl Message {
    /// A message of the person.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, blocks: vec![Block::text(text)] }
    }

    /// A message of the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self { role: Role::Assistant, blocks: vec![Block::text(text)] }
    }

    /// The calls in it.
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUse> {
        self.blocks.iter().filter_map(|block| match block {
            Block::ToolUse(call) => Some(call),
            _ => None,
        })
    }

    /// All its text, joined as it stands.
    pub fn text(&self) -> String {
        self.blocks
            .iter()
            .filter_map(|block| match block {
                Block::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }
}

impl Block {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// Arguments are nested no deeper. Those that a reader of JSON barely takes could not be read back once they stand in the
/// event of a conversation, which is nested itself.
const MAX_LEVELS: usize = 100;

impl ToolArguments {
    /// Reads what a model wrote. Nothing but white space is an empty object, as some models leave it out.
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            "" => Self::Object(Map::new()),
            trimmed if hides_values(trimmed.as_bytes()) => Self::Malformed(text.to_owned()),
            trimmed => match serde_json::from_str(trimmed) {
                Ok(value) if is_deeper_than(&value, MAX_LEVELS) => Self::Malformed(text.to_owned()),
                Ok(Value::Object(object)) => Self::Object(object),
                _ => Self::Malformed(text.to_owned()),
            },
        }
    }
}

#[cfg(all(test, feature = "serde"))]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_are_read_can_be_read_back_from_the_message_that_holds_them() {
        let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        for levels in 1..127 {
            let arguments = ToolArguments::parse(&nested(levels));
            assert_eq!(matches!(arguments, ToolArguments::Object(_)), levels <= MAX_LEVELS, "{levels}");
            let call = ToolUse { id: "c".into(), name: "t".into(), arguments, sealed: None };
            let message = Message { role: Role::Assistant, blocks: vec![Block::ToolUse(call)] };
            let text = serde_json::to_string(&message).unwrap();
            assert_eq!(serde_json::from_str::<Message>(&text).unwrap(), message, "{levels}");
        }
    }

    #[test]
    fn arguments_that_hide_others_in_a_text_are_malformed() {
        let text = r#"{"$serde_json::private::RawValue":"{\"a\":1}"}"#;
        assert_eq!(ToolArguments::parse(text), ToolArguments::Malformed(text.to_owned()));
    }
}
