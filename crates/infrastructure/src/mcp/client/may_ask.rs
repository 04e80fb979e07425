//! The questions that a server may put to those who call it.

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A kind of question, by the capability that a client declares for it (MCP's `ClientCapabilities`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MayAsk {
    /// Forms and pages for a person.
    Elicitation,
    /// Questions to the client's model.
    Sampling,
    /// The folders that the client works in.
    Roots,
}

impl MayAsk {
    /// All kinds.
    pub const ALL: &[Self] = &[Self::Elicitation, Self::Sampling, Self::Roots];

    /// Its member in MCP's `ClientCapabilities`.
    pub fn capability(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        }
    }
}

/// What a process declares whose clients come and go: all that any of them may be able to answer (MCP's
/// `ClientCapabilities`).
pub fn everything() -> Map<String, Value> {
    let all = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}, "context": {}}, "roots": {}});
    all.as_object().cloned().unwrap_or_default()
}

/// What is declared to a server about a client that declared this to us: as much of it as the server may ask.
pub(super) fn declared(client: &Map<String, Value>, may_ask: &[MayAsk]) -> Map<String, Value> {
    let open = client.iter().filter(|(name, _)| may_ask.iter().any(|kind| kind.capability() == name.as_str()));
    open.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_hears_of_the_clients_capabilities_that_it_may_use() {
        let client =
            json!({"roots": {"listChanged": true}, "sampling": {"tools": {}}, "elicitation": {"url": {}}, "x": 1});
        let client = client.as_object().unwrap();
        assert_eq!(Value::Object(declared(client, &[MayAsk::Elicitation])), json!({"elicitation": {"url": {}}}));
        assert_eq!(declared(client, MayAsk::ALL).len(), 3);
        assert_eq!(declared(client, &[]), Map::new());
    }
}
