//! Identity of this server.

use serde_json::{Value, json};
use toolstead_infrastructure::mcp::wire::meta::SERVER_INFO;

/// Identity that `initialize` and `server/discover` return. It is informative; clients must not rely on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerIdentity {
    /// MCP's `serverInfo.name`.
    pub name: String,
    /// MCP's `serverInfo.version`.
    pub version: String,
    /// Guidance for models on how to use the tools; `None`: only the built-in guidance and that of upstream servers.
    pub instructions: Option<String>,
}

impl Default for ServerIdentity {
    fn default() -> Self {
        Self { name: "toolstead".into(), version: env!("CARGO_PKG_VERSION").into(), instructions: None }
    }
}

impl ServerIdentity {
    /// Returns MCP's `Implementation` object.
    pub(super) fn implementation(&self) -> Value {
        json!({"name": self.name, "version": self.version})
    }

    /// Returns the `_meta` of results that this server creates (MCP 2026-07-28, basic, "Per-response protocol fields").
    pub(super) fn result_meta(&self) -> Value {
        json!({SERVER_INFO: self.implementation()})
    }
}
