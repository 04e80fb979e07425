//! Port that starts MCP servers as child processes.
//!
//! With the feature `mcp-stdio` the adapter is `StdioLauncher`, which confines them. Without it, servers can be reached
//! only over HTTP or streams.

use crate::mcp::client::config::{BoxedReader, BoxedWriter, StdioUpstream, UpstreamConfig};
use async_trait::async_trait;
use std::{fmt, path::PathBuf, time::Duration};

/// Launcher of MCP servers.
#[async_trait]
pub trait ServerLauncher: fmt::Debug + Send + Sync {
    /// Returns the folder that a server is meant to start in, even if the server has no access to it.
    fn folder(&self, server: &StdioUpstream, config: &UpstreamConfig) -> PathBuf;

    /// Starts a server.
    ///
    /// # Errors
    /// Returns the reason as text for the user.
    async fn launch(&self, server: &StdioUpstream, config: &UpstreamConfig) -> Result<StartedServer, String>;
}

/// Started server with its standard streams.
pub struct StartedServer {
    /// Standard input.
    pub stdin: BoxedWriter,
    /// Standard output.
    pub stdout: BoxedReader,
    /// Standard error.
    pub stderr: BoxedReader,
    /// Handle of the process.
    pub process: Box<dyn ServerProcess>,
}

impl fmt::Debug for StartedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartedServer").field("process", &self.process).finish_non_exhaustive()
    }
}

/// Process of a server. Dropping it kills the process and everything that it started.
#[async_trait]
pub trait ServerProcess: fmt::Debug + Send {
    /// Waits until the process has exited. Returns its exit status as text for the user.
    async fn exited(&mut self) -> String;

    /// Waits until the process has exited, and kills it after `grace`. The caller has closed its standard input.
    async fn terminate(self: Box<Self>, grace: Duration);
}
