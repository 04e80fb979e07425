//! Requests of a client about a call that continues as a task (MCP extension `io.modelcontextprotocol/tasks`).

use crate::{
    client_profile::{ClientProfile, ProtocolGeneration},
    tool::Tool,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Name of the extension, as both sides declare it among their capabilities.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Request about one task.
#[derive(Debug, Clone)]
pub struct TaskMethodRequest {
    /// Method of the request.
    pub method: TaskMethod,
    /// Tool whose call became the task.
    pub tool: Arc<Tool>,
    /// Id of the task at its provider.
    pub id: String,
    /// Other parameters, such as answers to its questions.
    pub params: Map<String, Value>,
    /// `_meta` of the request, without members that are valid only on the client's connection.
    pub meta: Map<String, Value>,
}

/// Methods for requests about a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskMethod {
    /// Returns the state of the task.
    Get,
    /// Answers questions of the task.
    Update,
    /// Cancels the task.
    Cancel,
}

impl TaskMethod {
    /// Returns the MCP method.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "tasks/get",
            Self::Update => "tasks/update",
            Self::Cancel => "tasks/cancel",
        }
    }

    /// Returns the method with this name.
    pub fn parse(method: &str) -> Option<Self> {
        [Self::Get, Self::Update, Self::Cancel].into_iter().find(|one| one.as_str() == method)
    }
}

/// Returns `true` if the client accepts a task in place of a result. A client up to MCP 2025-11-25 cannot follow tasks,
/// whatever it declares.
pub fn takes_tasks(client: &ClientProfile) -> bool {
    let is_legacy = client.protocol.is_some_and(|version| version.generation() == ProtocolGeneration::Legacy);
    let declared = client.capabilities.get("extensions").and_then(|all| all.get(TASKS));
    !is_legacy && declared.is_some_and(Value::is_object)
}

/// Returns MCP's `ClientCapabilities` or `ServerCapabilities` that declare only the extension [`TASKS`].
pub fn tasks_declared() -> Map<String, Value> {
    Map::from_iter([("extensions".to_owned(), json!({TASKS: {}}))])
}

/// Returns the client without the capability for [`TASKS`], for calls that it does not make itself: their caller waits
/// for results.
pub fn without_tasks(client: &Arc<ClientProfile>) -> Arc<ClientProfile> {
    if !takes_tasks(client) {
        return client.clone();
    }
    let mut client = ClientProfile::clone(client);
    if let Some(Value::Object(extensions)) = client.capabilities.get_mut("extensions") {
        extensions.shift_remove(TASKS);
    }
    Arc::new(client)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_profile::ProtocolVersion;

    #[test]
    fn without_tasks_removes_only_the_task_extension_from_the_client() {
        let mut client = ClientProfile::without_protocol("test");
        client.capabilities = json!({"extensions": {TASKS: {}, "com.example/x": {}}}).as_object().unwrap().clone();
        let client = Arc::new(client);
        assert!(takes_tasks(&client));
        let inner = without_tasks(&client);
        assert_eq!(Value::Object(inner.capabilities.clone()), json!({"extensions": {"com.example/x": {}}}));
        assert!(!takes_tasks(&inner) && Arc::ptr_eq(&without_tasks(&inner), &inner));
    }

    #[test]
    fn a_client_accepts_tasks_if_it_declares_them_and_its_protocol_supports_them() {
        let declared = Value::Object(tasks_declared());
        for (protocol, capabilities, expected) in [
            (None, &declared, true),
            (Some(ProtocolVersion::NEWEST), &declared, true),
            (Some(ProtocolVersion::NEWEST_LEGACY), &declared, false),
            (Some(ProtocolVersion::NEWEST), &json!({}), false),
            (Some(ProtocolVersion::NEWEST), &json!({"extensions": 1}), false),
            (Some(ProtocolVersion::NEWEST), &json!({"extensions": {TASKS: true}}), false),
        ] {
            let capabilities = capabilities.as_object().unwrap().clone();
            let client = ClientProfile { protocol, capabilities, ..ClientProfile::without_protocol("test") };
            assert_eq!(takes_tasks(&client), expected, "{client:?}");
        }
    }
}
