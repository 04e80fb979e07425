//! Questions that a server may ask its callers.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolstead_domain::{ClientCapability, InputRequired, ServerName, ToolFailure, error_kind::ErrorKind};

/// Maximum size of a client capability that is declared to servers, in bytes of JSON. Larger ones are left out, because
/// connections are stored with their declared capabilities.
const MAX_CAPABILITY: usize = 4 << 10;

/// Kind of question, by the capability that a client declares for it (MCP's `ClientCapabilities`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// Forms and web pages for the user.
    Elicitation,
    /// Requests to the client's model.
    Sampling,
    /// Folders that the client works in.
    Roots,
}

impl QuestionKind {
    /// All kinds.
    pub const ALL: &[Self] = &[Self::Elicitation, Self::Sampling, Self::Roots];

    /// Returns the name of the kind's member in MCP's `ClientCapabilities`.
    pub fn capability(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        }
    }
}

/// MCP clients that this process serves, as far as they are known when it starts MCP servers.
#[derive(Debug, Clone, PartialEq)]
pub enum ServedClients {
    /// A single client, with its capabilities (MCP's `ClientCapabilities`).
    One(Map<String, Value>),
    /// Any number of clients, with all capabilities that one of them may have.
    Any(Map<String, Value>),
}

impl ServedClients {
    /// Returns the capabilities of the clients.
    pub fn capabilities(&self) -> &Map<String, Value> {
        match self {
            Self::One(capabilities) | Self::Any(capabilities) => capabilities,
        }
    }

    /// Returns `true` if there is a single client.
    pub fn are_one(&self) -> bool {
        matches!(self, Self::One(_))
    }
}

impl Default for ServedClients {
    /// Returns [`ServedClients::Any`] without capabilities.
    fn default() -> Self {
        Self::Any(Map::new())
    }
}

/// Returns the capabilities that a process with changing clients declares: all that any of them may have (MCP's
/// `ClientCapabilities`).
pub fn all_capabilities() -> Map<String, Value> {
    let all = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}, "context": {}}, "roots": {}});
    all.as_object().cloned().unwrap_or_default()
}

/// Returns the capabilities to declare to a server for a client with these capabilities: those that the server may use.
/// Overlong ones are left out.
pub(in crate::mcp::client) fn declared(client: &Map<String, Value>, may_ask: &[QuestionKind]) -> Map<String, Value> {
    declared_members(client, may_ask).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns the members of [`declared`] without copying them.
pub(in crate::mcp::client) fn declared_members<'a>(
    client: &'a Map<String, Value>,
    may_ask: &[QuestionKind],
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let open = client.iter().filter(|(name, _)| may_ask.iter().any(|kind| kind.capability() == name.as_str()));
    open.filter(|(_, value)| has_length_within(value, MAX_CAPABILITY))
}

/// Returns `true` if the JSON of a value has at most this number of bytes.
fn has_length_within(value: &Value, limit: usize) -> bool {
    let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
    // Most clients declare an empty object.
    is_empty(value) || value.to_string().len() <= limit
}

/// Checks that the server uses no capability that the client has but that was not declared to the server. Capabilities
/// that the client lacks are checked by the call path.
///
/// # Errors
/// Returns the failure of the call.
pub(in crate::mcp::client) fn check(
    required: &InputRequired,
    client: &Map<String, Value>,
    server: &ServerName,
    may_ask: &[QuestionKind],
) -> Result<(), ToolFailure> {
    let declared = declared(client, may_ask);
    let kept_from = required
        .requests
        .values()
        .filter_map(ClientCapability::of)
        .find(|capability| capability.is_declared(client) && !capability.is_declared(&declared));
    let Some(capability) = kept_from.map(ClientCapability::name) else { return Ok(()) };
    let message = format!("The MCP server `{server}` asks for `{capability}`, which is not permitted for this server.");
    let next = format!("To let it ask, add \"{capability}\" to `mcp_servers.{server}.may_ask`.");
    Err(ToolFailure::new(ErrorKind::UpstreamProtocol, message).next(next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::InputRequest;

    #[test]
    fn questions_of_forbidden_kinds_are_rejected_if_the_client_declares_that_kind() {
        let server = ServerName::parse("s").unwrap();
        let text_of = |method: &str, client: Value| {
            let request = InputRequest { method: method.into(), params: json!({}) };
            let required = InputRequired { requests: [("k".to_owned(), request)].into(), state: None };
            check(&required, client.as_object().unwrap(), &server, &[QuestionKind::Elicitation])
                .map_err(|failure| failure.text())
        };
        let all = || json!({"elicitation": {}, "sampling": {}, "roots": {}});
        assert_eq!(text_of("elicitation/create", all()), Ok(()));
        assert!(
            text_of("sampling/createMessage", all())
                .unwrap_err()
                .contains("add \"sampling\" to `mcp_servers.s.may_ask`")
        );
        assert!(text_of("roots/list", all()).is_err());
        assert_eq!(text_of("roots/list", json!({"elicitation": {}})), Ok(()));
    }

    #[test]
    fn only_permitted_client_capabilities_are_declared_to_a_server() {
        let client =
            json!({"roots": {"listChanged": true}, "sampling": {"tools": {}}, "elicitation": {"url": {}}, "x": 1});
        let client = client.as_object().unwrap();
        assert_eq!(Value::Object(declared(client, &[QuestionKind::Elicitation])), json!({"elicitation": {"url": {}}}));
        assert_eq!(declared(client, QuestionKind::ALL).len(), 3);
        assert_eq!(declared(client, &[]), Map::new());
        let long = json!({"elicitation": {"x": "y".repeat(MAX_CAPABILITY)}, "roots": {}});
        assert_eq!(Value::Object(declared(long.as_object().unwrap(), QuestionKind::ALL)), json!({"roots": {}}));
    }
}
