//! One MCP server as a tool provider, against third-party and hostile servers.

mod alone;
pub(crate) mod calling;
mod children;
mod hostile;
mod old_transport;
mod sdk_server;
