//! A request to a model.

use super::message::Message;
use serde_json::Value;
use std::sync::Arc;

/// Request to a model. It is a value: it can be sent again, and to another provider.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ModelRequest {
    /// Instructions before all messages; empty for none. They must not change within a conversation, so that providers
    /// can cache them.
    pub system: String,
    /// Messages of the conversation. They begin with the user, and each call has its result in the next message.
    pub messages: Vec<Message>,
    /// Offered tools, in an order that must not change within a conversation. If empty, the request has no `tools`.
    pub tools: Vec<OfferedTool>,
    /// Maximum number of tokens of the answer; `None` for the configured number of the model.
    pub max_output_tokens: Option<u64>,
    /// Key by which the provider finds cached parts of earlier requests: the id of the conversation; `None` for no key.
    pub cache_key: Option<Arc<str>>,
}

/// Description of a tool for a model.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    /// Name of the tool in the dialect of the scope. Providers that do not accept it rename the tool and reverse that
    /// in answers.
    pub name: String,
    /// Purpose of the tool, for the model.
    pub description: String,
    /// Complete schema of its arguments.
    pub input_schema: Arc<Value>,
}

impl ModelRequest {
    /// Creates a request with these messages and nothing else.
    pub fn of(messages: Vec<Message>) -> Self {
        Self { messages, ..Self::default() }
    }
}
