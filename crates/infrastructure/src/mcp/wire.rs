//! JSON-RPC 2.0 as MCP uses it, shared by our server's edge and our client.

pub mod client_message;
pub mod cut_message;
pub mod headers;
pub mod incoming;
pub mod lines;
pub mod message;
pub mod meta;
pub mod numbers;
