//! Servers written with `rmcp`, the official Rust SDK, as upstream servers in this process.
//!
//! The server speaks MCP over a pair of streams in memory, so definitions and results reach clients with all members
//! that `rmcp` writes.

use crate::mcp::client::config::{InProcessUpstream, McpTransport, UpstreamConfig};
use rmcp::{
    RoleServer,
    service::{Service, ServiceExt},
};
use std::sync::Arc;
use tokio::io::{duplex, split};
use toolstead_domain::{InvalidServerName, ServerName};

/// Size of the buffer of each direction, in bytes.
const BUFFER_BYTES: usize = 64 << 10;

/// Returns the configuration of an upstream server that runs in this process. `server` creates the service of each
/// connection. To share state between connections, return clones of one value.
///
/// ```
/// use rmcp::ServerHandler;
/// use toolstead_infrastructure::mcp::rmcp_server::rmcp_server;
///
/// #[derive(Clone)]
/// struct Notes;
///
/// impl ServerHandler for Notes {}
///
/// let config = rmcp_server("notes", || Notes)?;
/// assert_eq!(config.name.as_str(), "notes");
/// # Ok::<(), toolstead_domain::InvalidServerName>(())
/// ```
///
/// # Errors
/// [`InvalidServerName`] if the name is not valid.
pub fn rmcp_server<S: Service<RoleServer>>(
    name: &str,
    server: impl Fn() -> S + Send + Sync + 'static,
) -> Result<UpstreamConfig, InvalidServerName> {
    let name = ServerName::parse(name)?;
    let shown = name.clone();
    let open = move || {
        let (ours, theirs) = duplex(BUFFER_BYTES);
        let (service, name) = (server(), shown.clone());
        // The task ends once the connection is closed.
        tokio::spawn(async move {
            match service.serve(split(theirs)).await {
                Ok(running) => {
                    if let Err(error) = running.waiting().await {
                        tracing::warn!(server = %name, %error, "the in-process server ended with an error");
                    }
                }
                Err(error) => tracing::debug!(server = %name, %error, "the in-process server did not start"),
            }
        });
        let (reader, writer) = split(ours);
        (Box::new(reader) as _, Box::new(writer) as _)
    };
    Ok(UpstreamConfig::new(name, McpTransport::Streams(InProcessUpstream { open: Arc::new(open) })))
}
