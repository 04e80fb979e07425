//! MCP servers as confined child processes: the adapter of [`ServerLauncher`] over the sandbox.

mod launch_spec;

pub use launch_spec::named_data;

use crate::{
    mcp::client::{
        config::{McpServerConfig, StdioServer},
        server_launcher::{ServerLauncher, ServerProcess, StartedServer},
    },
    sandbox::launcher::{Child, Launcher},
};
use async_trait::async_trait;
use std::{collections::BTreeMap, path::PathBuf, time::Duration};
use toolstead_domain::{error_chain::with_causes, workspace_roots::WorkspaceRoots};

/// Starts MCP servers by their profiles ([`ServerProfile`](super::config::ServerProfile)).
#[derive(Debug, Clone)]
pub struct StdioLauncher {
    /// Starts the processes, beside commands that write into the workspace.
    pub launcher: Launcher,
    /// The environment that every server starts from ([`crate::child_environment::base`]).
    pub environment: BTreeMap<String, String>,
    /// Start folder of servers whose configuration names none, except guarded ones; absolute.
    pub working_dir: PathBuf,
    /// The workspace: guarded servers start in its first root, and work on it. Confined servers never see what is
    /// forbidden in it, wherever that is.
    pub roots: WorkspaceRoots,
    /// Paths that confined servers cannot change, in any folder: programs that later run with the rights of a server,
    /// or with more.
    pub sealed: Vec<PathBuf>,
    /// Folder of the lasting homes of guarded servers; `None`: a home ends with its server.
    pub homes: Option<PathBuf>,
}

#[async_trait]
impl ServerLauncher for StdioLauncher {
    fn folder(&self, server: &StdioServer, config: &McpServerConfig) -> PathBuf {
        launch_spec::folder(server, config.confinement.profile, self)
    }

    async fn launch(&self, server: &StdioServer, config: &McpServerConfig) -> Result<StartedServer, String> {
        let spec = launch_spec::of(server, config, self);
        let mut child = self.launcher.launch(spec).await.map_err(|error| with_causes(&error))?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("it has no standard streams".into());
        };
        let (stdin, stdout, stderr) = (Box::new(stdin), Box::new(stdout), Box::new(stderr));
        Ok(StartedServer { stdin, stdout, stderr, process: Box::new(child) })
    }
}

#[async_trait]
impl ServerProcess for Child {
    async fn exited(&mut self) -> String {
        Child::exited(self).await.to_string()
    }

    async fn terminate(self: Box<Self>, grace: Duration) {
        Child::terminate(*self, grace).await;
    }
}
