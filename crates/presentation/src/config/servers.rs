//! The MCP servers of the configuration, including those in files of other clients.

pub(crate) mod foreign_servers;
pub mod mcp_server;
pub(super) mod server_auth;
pub mod server_programs;
pub(super) mod server_times;
