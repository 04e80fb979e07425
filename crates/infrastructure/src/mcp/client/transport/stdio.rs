//! MCP servers as confined child processes: the sandbox adapter of [`ServerLauncher`].

mod launch_spec;

pub use launch_spec::named_data;

use crate::{
    mcp::client::{
        config::{StdioUpstream, UpstreamConfig},
        transport::server_launcher::{ServerLauncher, ServerProcess, StartedServer},
    },
    sandbox::launcher::{Child, Launcher},
};
use async_trait::async_trait;
use std::{collections::BTreeMap, path::PathBuf, time::Duration};
use toolstead_domain::{WorkspaceRoots, error_chain::with_causes};

/// Launcher of MCP servers by their profiles ([`ServerSandboxProfile`](crate::mcp::client::config::ServerSandboxProfile)).
#[derive(Debug, Clone)]
pub struct StdioLauncher {
    /// Launcher of the processes. It must know the folders that commands write to ([`Launcher::with_other_roots`]),
    /// because servers run concurrently with commands.
    pub launcher: Launcher,
    /// Base environment of every server ([`crate::child_environment::base`]).
    pub environment: BTreeMap<String, String>,
    /// Absolute working folder of strict and open servers whose configuration specifies none.
    pub working_dir: PathBuf,
    /// Workspace. Guarded servers start in its first root and have access to it. Its forbidden paths are hidden from
    /// all confined servers.
    pub roots: WorkspaceRoots,
    /// Paths that are read-only for confined servers in every folder: programs that later run with the same or more
    /// permissions.
    pub sealed: Vec<PathBuf>,
    /// Folder of the persistent homes of guarded servers. With `None` a home is deleted with its server.
    pub homes: Option<PathBuf>,
}

#[async_trait]
impl ServerLauncher for StdioLauncher {
    fn folder(&self, server: &StdioUpstream, config: &UpstreamConfig) -> PathBuf {
        launch_spec::folder(server, config.confinement.profile, self)
    }

    async fn launch(&self, server: &StdioUpstream, config: &UpstreamConfig) -> Result<StartedServer, String> {
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
