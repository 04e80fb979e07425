//! Introduction of the server to clients: `initialize` up to MCP 2025-11-25, `server/discover` since 2026-07-28.

use super::{
    McpServer,
    answer::SerializedResponse,
    list_tools::LIST_TTL_MS,
    log_threshold::SESSION_LEVEL,
    protocol_error::{invalid_params, supported_versions},
    request_meta::client_label,
    server_identity::ServerIdentity,
};
use serde_json::{Map, Value, json};
use toolstead_domain::{ClientProfile, ProtocolGeneration, ProtocolVersion, RequestScope, task_request::TASKS};
use toolstead_infrastructure::mcp::wire::message::{RequestId, RpcError};

/// Built-in guidance for models, valid for every configuration.
const INSTRUCTIONS: &str = include_str!("handshake/instructions.txt");

impl McpServer {
    /// Answers `initialize` for this scope, like [`ServerIdentity::initialize`].
    ///
    /// # Errors
    /// The errors of [`ServerIdentity::initialize`].
    pub(super) fn initialize(
        &self,
        id: &RequestId,
        params: &mut Map<String, Value>,
        scope: &RequestScope,
    ) -> Result<(SerializedResponse, ClientProfile), RpcError> {
        self.identity.initialize(id, params, self.app.provider_notifications.instructions(scope))
    }

    /// Answers `server/discover` for this scope.
    pub(super) fn discover(&self, id: &RequestId, scope: &RequestScope) -> SerializedResponse {
        self.identity.discover(id, self.app.provider_notifications.instructions(scope))
    }
}

impl ServerIdentity {
    /// Answers `initialize` with the guidance of upstream servers, and returns the profile of the client for its
    /// session.
    ///
    /// The version is the client's if it belongs to a generation with a handshake, or else the newest such version (MCP
    /// 2025-11-25, basic/lifecycle, "Version Negotiation").
    ///
    /// # Errors
    /// -32602 for invalid parameters.
    pub(super) fn initialize(
        &self,
        id: &RequestId,
        params: &mut Map<String, Value>,
        guidance: Option<String>,
    ) -> Result<(SerializedResponse, ClientProfile), RpcError> {
        let Some(offered) = params.get("protocolVersion").and_then(Value::as_str) else {
            return Err(invalid_params("`protocolVersion` must be a text such as `2025-11-25`"));
        };
        let offered =
            ProtocolVersion::parse(offered).filter(|version| version.generation() == ProtocolGeneration::Legacy);
        let version = offered.unwrap_or(ProtocolVersion::NEWEST_LEGACY);
        let capabilities = match params.swap_remove("capabilities") {
            Some(Value::Object(capabilities)) => capabilities,
            None | Some(Value::Null) => Map::new(),
            Some(_) => return Err(invalid_params("`capabilities` must be an object")),
        };
        let client = params.get("clientInfo").map_or_else(String::new, client_label);
        let profile = ClientProfile { protocol: Some(version), capabilities, client, log_level: Some(SESSION_LEVEL) };
        let result = json!({
            "protocolVersion": version.as_str(),
            "capabilities": capabilities_offered(),
            "serverInfo": self.implementation(),
            "instructions": self.instructions(guidance),
        });
        Ok((SerializedResponse::result(id, &result), profile))
    }

    /// Answers `server/discover` with the guidance of upstream servers. Servers may be added or removed, so the result
    /// may be cached only as long as a list.
    pub(super) fn discover(&self, id: &RequestId, guidance: Option<String>) -> SerializedResponse {
        let result = json!({
            "resultType": "complete",
            "supportedVersions": supported_versions(),
            "capabilities": modern_capabilities(),
            "instructions": self.instructions(guidance),
            "ttlMs": LIST_TTL_MS,
            "cacheScope": "private",
            "_meta": self.result_meta(),
        });
        SerializedResponse::result(id, &result)
    }

    /// Returns the instructions for models: the configured ones, the built-in ones, and those of upstream servers.
    fn instructions(&self, guidance: Option<String>) -> String {
        let parts = [self.instructions.as_deref(), Some(INSTRUCTIONS.trim_end()), guidance.as_deref()];
        parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
    }
}

/// Returns the server's capabilities for clients since 2026-07-28, which include the extension for tasks.
fn modern_capabilities() -> Value {
    let mut capabilities = capabilities_offered();
    capabilities["extensions"] = json!({TASKS: {}});
    capabilities
}

fn capabilities_offered() -> Value {
    json!({
        "tools": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true},
        "prompts": {"listChanged": true},
        "completions": {},
        "logging": {},
    })
}
