//! MCP on raw JSON: the wire format, and the client as a tool provider.

pub mod client;
pub mod mcp_client;
#[cfg(feature = "rmcp")]
pub mod rmcp_server;
pub mod wire;
