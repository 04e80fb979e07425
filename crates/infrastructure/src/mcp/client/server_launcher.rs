//! The port that starts MCP servers as child processes.
//!
//! With the feature `mcp-stdio` the adapter is `StdioLauncher`, which confines them. Without it, servers are reached by
//! HTTP or by streams.

use crate::mcp::client::config::{BoxedReader, BoxedWriter, McpServerConfig, StdioServer};
use async_trait::async_trait;
use std::{fmt, path::PathBuf, time::Duration};

/// Starts MCP servers.
#[async_trait]
pub trait ServerLauncher: fmt::Debug + Send + Sync {
    /// Returns the folder in which a server is meant to start, whether or not the server sees it.
    fn folder(&self, server: &StdioServer, config: &McpServerConfig) -> PathBuf;

    /// Starts a server.
    ///
    /// # Errors
    /// The reason, as text for the user.
    async fn launch(&self, server: &StdioServer, config: &McpServerConfig) -> Result<StartedServer, String>;
}

/// A started server with its standard streams.
pub struct StartedServer {
    /// Its standard input.
    pub stdin: BoxedWriter,
    /// Its standard output.
    pub stdout: BoxedReader,
    /// Its standard error.
    pub stderr: BoxedReader,
    /// Its process.
    pub process: Box<dyn ServerProcess>,
}

impl fmt::Debug for StartedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartedServer").field("process", &self.process).finish_non_exhaustive()
    }
}

/// The process of a server. Dropping it kills the process and everything that it started.
#[async_trait]
pub trait ServerProcess: fmt::Debug + Send {
    /// Waits for the end of the process and returns its exit status, as text for the user.
    async fn exited(&mut self) -> String;

    /// Ends the process within `grace`, by force if it does not end by itself. The caller has closed its input.
    async fn terminate(self: Box<Self>, grace: Duration);
}
