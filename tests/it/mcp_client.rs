//! One MCP server as a tool provider, against servers that nobody here wrote or that mean harm.

mod alone;
pub(crate) mod calling;
mod children;
mod hostile;
mod old_transport;
mod sdk_server;
