//! MCP on raw JSON: the wire format, and the client as a tool provider.

pub mod client;
pub mod mcp_client;
pub mod wire;
