//! What a client must have declared to be asked something.

use crate::ports::caller::InputRequest;
use serde_json::{Map, Value, json};

/// A client's capability to answer questions of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// It puts forms before a person.
    Elicitation,
    /// It sends a person to a page.
    UrlElicitation,
    /// It asks its model.
    Sampling,
    /// It names its folders.
    Roots,
}

impl Capability {
    /// What the question needs; `None` for one that MCP does not know.
    pub fn of(question: &InputRequest) -> Option<Self> {
        match question.method.as_str() {
            "elicitation/create" if question.params["mode"] == "url" => Some(Self::UrlElicitation),
            "elicitation/create" => Some(Self::Elicitation),
            "sampling/createMessage" => Some(Self::Sampling),
            "roots/list" => Some(Self::Roots),
            _ => None,
        }
    }

    /// Tells whether a client that declared this (MCP's `ClientCapabilities`) has it.
    pub fn is_declared(self, declared: &Map<String, Value>) -> bool {
        let elicitation = || declared.get("elicitation").and_then(Value::as_object);
        match self {
            // "An empty capabilities object is equivalent to declaring support for form mode only" (MCP 2025-11-25,
            // client/elicitation, "Capabilities").
            Self::Elicitation => {
                elicitation().is_some_and(|modes| modes.contains_key("form") || !modes.contains_key("url"))
            }
            Self::UrlElicitation => elicitation().is_some_and(|modes| modes.contains_key("url")),
            Self::Sampling => declared.contains_key("sampling"),
            Self::Roots => declared.contains_key("roots"),
        }
    }

    /// As MCP's `ClientCapabilities` would declare it.
    pub fn as_object(self) -> Map<String, Value> {
        let (name, value) = match self {
            Self::Elicitation => ("elicitation", json!({})),
            Self::UrlElicitation => ("elicitation", json!({"url": {}})),
            Self::Sampling => ("sampling", json!({})),
            Self::Roots => ("roots", json!({})),
        };
        Map::from_iter([(name.to_owned(), value)])
    }
}
