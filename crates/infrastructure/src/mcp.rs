//! MCP on raw JSON: the messages on the wire, and the client side as a tool provider.

pub mod client;
pub mod mcp_client;
pub mod wire;
