//! JSON-RPC 2.0 as used by MCP, shared by the MCP server and the client.

pub mod client_message;
pub mod cut_message;
pub mod headers;
pub mod incoming;
pub mod lines;
pub mod message;
pub mod meta;
pub mod numbers;
