//! How this server introduces itself.

use serde_json::{Value, json};
use toolstead_infrastructure::mcp::wire::meta::SERVER_INFO;

/// What `initialize` and `server/discover` tell about this server. It informs people; no client may rely on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerIdentity {
    /// MCP's `serverInfo.name`.
    pub name: String,
    /// MCP's `serverInfo.version`.
    pub version: String,
    /// Guidance for models on how to use the tools; `None` leaves it out.
    pub instructions: Option<String>,
}

impl Default for ServerIdentity {
    fn default() -> Self {
        Self { name: "toolstead".into(), version: env!("CARGO_PKG_VERSION").into(), instructions: None }
    }
}

impl ServerIdentity {
    /// MCP's `Implementation` object.
    pub(super) fn implementation(&self) -> Value {
        json!({"name": self.name, "version": self.version})
    }

    /// The `_meta` of results of our own making (MCP 2026-07-28, basic, "Per-response protocol fields").
    pub(super) fn result_meta(&self) -> Value {
        json!({SERVER_INFO: self.implementation()})
    }
}
