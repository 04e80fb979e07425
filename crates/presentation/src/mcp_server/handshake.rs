//! How clients get to know this server: `initialize` up to MCP 2025-11-25, `server/discover` since 2026-07-28.

use super::{
    McpServer,
    answer::Answer,
    log_threshold::SESSION_LEVEL,
    protocol_error::{invalid_params, supported_versions},
    request_meta::client_label,
    server_identity::ServerIdentity,
};
use serde_json::{Map, Value, json};
use toolstead_domain::{
    client_profile::{ClientProfile, Generation, ProtocolVersion},
    task_request::TASKS,
};
use toolstead_infrastructure::mcp::wire::message::{Id, RpcError};

/// How long a client may keep what `server/discover` said, in milliseconds. It changes with a new release only.
const DISCOVERY_TTL_MS: u32 = 300_000;

impl McpServer {
    /// Answers `initialize`, as [`ServerIdentity::initialize`].
    ///
    /// # Errors
    /// Likewise.
    pub(super) fn initialize(
        &self,
        id: &Id,
        params: &mut Map<String, Value>,
    ) -> Result<(Answer, ClientProfile), RpcError> {
        self.identity.initialize(id, params)
    }

    /// Answers `server/discover`.
    pub(super) fn discover(&self, id: &Id) -> Answer {
        self.identity.discover(id)
    }
}

impl ServerIdentity {
    /// Answers `initialize`, and says who the client is for as long as its session lasts.
    ///
    /// The version is the client's where it has a handshake, else the newest that has one (MCP 2025-11-25,
    /// basic/lifecycle, "Version Negotiation").
    ///
    /// # Errors
    /// -32602 when the parameters do not fit.
    pub(super) fn initialize(
        &self,
        id: &Id,
        params: &mut Map<String, Value>,
    ) -> Result<(Answer, ClientProfile), RpcError> {
        let Some(offered) = params.get("protocolVersion").and_then(Value::as_str) else {
            return Err(invalid_params("`protocolVersion` must be a text such as `2025-11-25`"));
        };
        let offered = ProtocolVersion::parse(offered).filter(|version| version.generation() == Generation::Legacy);
        let version = offered.unwrap_or(ProtocolVersion::NEWEST_LEGACY);
        let capabilities = match params.swap_remove("capabilities") {
            Some(Value::Object(capabilities)) => capabilities,
            None | Some(Value::Null) => Map::new(),
            Some(_) => return Err(invalid_params("`capabilities` must be an object")),
        };
        let client = params.get("clientInfo").map_or_else(String::new, client_label);
        let profile = ClientProfile { protocol: Some(version), capabilities, client, log_level: Some(SESSION_LEVEL) };
        let mut result = json!({
            "protocolVersion": version.as_str(),
            "capabilities": capabilities_offered(),
            "serverInfo": self.implementation(),
        });
        self.instruct(&mut result);
        Ok((Answer::result(id, &result), profile))
    }

    /// Answers `server/discover`.
    pub(super) fn discover(&self, id: &Id) -> Answer {
        let mut result = json!({
            "resultType": "complete",
            "supportedVersions": supported_versions(),
            "capabilities": modern_capabilities(),
            "ttlMs": DISCOVERY_TTL_MS,
            "cacheScope": "private",
            "_meta": self.result_meta(),
        });
        self.instruct(&mut result);
        Answer::result(id, &result)
    }

    fn instruct(&self, result: &mut Value) {
        if let Some(instructions) = &self.instructions {
            result["instructions"] = instructions.as_str().into();
        }
    }
}

/// With the extension of 2026-07-28 that is spoken here.
fn modern_capabilities() -> Value {
    let mut capabilities = capabilities_offered();
    capabilities["extensions"] = json!({TASKS: {}});
    capabilities
}

fn capabilities_offered() -> Value {
    json!({"tools": {"listChanged": true}, "resources": {}, "prompts": {}, "completions": {}, "logging": {}})
}
