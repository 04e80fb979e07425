//! One request to a model.

use super::message::Message;
use serde_json::Value;
use std::sync::Arc;

/// A request to a model. It is a value: the same one can be sent again, and to another provider.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ModelRequest {
    /// Instructions that stand before everything; empty for none. It does not change within a conversation, so that
    /// providers can keep what they made of it.
    pub system: String,
    /// The conversation. It begins with the person, and each call in it has its result in the message after it.
    pub messages: Vec<Message>,
    /// The tools on offer, in an order that does not change within a conversation. Without any, the request has no `tools`.
    pub tools: Vec<OfferedTool>,
    /// Tokens that the answer may have; `None`: the model's configured number.
    pub max_output_tokens: Option<u64>,
    /// Names what may be kept of earlier requests: the conversation.
    pub cache_key: Option<Arc<str>>,
}

/// A tool as a model is told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    /// Its name in the spelling of the scope. Providers that cannot take it spell it their own way and undo that.
    pub name: String,
    /// Its purpose, for the model.
    pub description: String,
    /// The schema of its arguments, whole.
    pub input_schema: Arc<Value>,
}

impl ModelRequest {
    /// A request with these messages and nothing else.
    pub fn of(messages: Vec<Message>) -> Self {
        Self { messages, ..Self::default() }
    }
}
