//! Messages of a conversation with a model.

use crate::{json_depth::is_deeper_than, json_memory::hides_values};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Role {
    /// User, and results of calls.
    User,
    /// Model.
    Assistant,
}

/// One message.
///
/// ```
/// use toolstead_domain::model::message::{Block, Message, Role};
///
/// let message = Message::user("Summarize the README.");
/// assert_eq!(message.role, Role::User);
/// assert_eq!(message.blocks, [Block::text("Summarize the README.")]);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Message {
    /// Author of the message.
    pub role: Role,
    /// Blocks, in order.
    pub blocks: Vec<Block>,
}

/// Part of a message.
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
        /// The text itself.
        text: String,
    },
    /// An image.
    Image(Image),
    /// Call of a tool by the model.
    ToolUse(ToolUse),
    /// Result of a call.
    ToolResult(ToolResultBlock),
    /// Block that only its provider understands.
    Sealed(SealedBlock),
}

/// Image content.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Image {
    /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub media_type: String,
    /// Bytes in base64.
    pub data: Arc<str>,
}

/// Call that a model requests.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ToolUse {
    /// Id of the call from the provider, unique in its message. The result of the call has the same id.
    pub id: String,
    /// Name of the tool as it was offered, after any renaming for the provider is reversed.
    pub name: String,
    /// Arguments of the call.
    pub arguments: ToolArguments,
    /// Block that its provider requires again with the call, such as Gemini's `thoughtSignature`.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub sealed: Option<SealedBlock>,
}

/// Arguments of a call as the model wrote them.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum ToolArguments {
    /// JSON object; empty if the model sent an empty text.
    Object(Map<String, Value>),
    /// Text that is not a JSON object: the call cannot be made, and its result reports that.
    Malformed(String),
}

/// Result of a call, as the model receives it.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ToolResultBlock {
    /// [`ToolUse::id`] of the call.
    pub id: String,
    /// Name of the tool as it was called: some providers require it again.
    pub name: String,
    /// Texts and images.
    pub content: Vec<Block>,
    /// `true` if the call failed.
    pub is_error: bool,
}

/// Block that only its provider understands: signed or redacted thinking, encrypted reasoning. Other providers leave it
/// out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SealedBlock {
    /// Protocol that it belongs to: `anthropic`, `openai`, `openai_responses`, `gemini`.
    pub provider: String,
    /// JSON text, which is sent back byte for byte.
    pub raw: String,
    /// Part that users may read: the thinking, or a summary of it.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub shown: Option<String>,
}

impl Message {
    /// Creates a message of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, blocks: vec![Block::text(text)] }
    }

    /// Creates a message of the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self { role: Role::Assistant, blocks: vec![Block::text(text)] }
    }

    /// Returns the calls in the message.
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUse> {
        self.blocks.iter().filter_map(|block| match block {
            Block::ToolUse(call) => Some(call),
            _ => None,
        })
    }

    /// Returns all text of the message, concatenated.
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
    /// Creates a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// Maximum nesting of arguments. The parser has a limit, and the event of a conversation that contains the arguments is
/// nested itself: deeper arguments could not be parsed again.
const MAX_LEVELS: usize = 100;

impl ToolArguments {
    /// Parses the text that a model wrote. White space alone is an empty object, because some models omit it.
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
    fn a_message_with_deeply_nested_arguments_round_trips_through_json() {
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
    fn arguments_hidden_in_a_raw_value_string_are_malformed() {
        let text = r#"{"$serde_json::private::RawValue":"{\"a\":1}"}"#;
        assert_eq!(ToolArguments::parse(text), ToolArguments::Malformed(text.to_owned()));
    }
}
