//! One MCP server as a tool provider, against third-party and hostile servers.

mod children;
mod hostile;
mod old_transport;
pub(crate) mod provider_calls;
mod sdk_server;
mod standalone_client;
