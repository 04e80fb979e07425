//! The MCP servers of the configuration, including those in files of other clients.

pub(crate) mod foreign_servers;
pub mod mcp_server;
pub(super) mod server_auth;
pub mod server_programs;
pub(super) mod server_times;
pub mod untrusted_server;

use crate::config::{
    layers::{ResolvedSettings, environment::EnvironmentVariables, folders::StandardFolders},
    tree::{origin::Origin, problem::Problem, source_file},
    trust::programs,
};
use mcp_server::ConfiguredServer;
use std::path::PathBuf;
use toolstead_domain::WorkspaceRoots;
use untrusted_server::{UntrustedServer, untrusted_servers};

/// Servers of all files.
pub(super) struct ConfiguredServers {
    /// Servers, sorted by name, including disabled and unavailable ones.
    pub(super) all: Vec<ConfiguredServer>,
    /// Servers from files that the user does not trust yet.
    pub(super) untrusted: Vec<UntrustedServer>,
    /// Files that servers run and no tool may change, each with the origin that names it.
    pub(super) programs: Vec<(PathBuf, Origin)>,
}

impl ConfiguredServers {
    pub(super) fn of(
        resolved: &mut ResolvedSettings,
        folders: &StandardFolders,
        environment: &EnvironmentVariables,
        roots: &WorkspaceRoots,
        problems: &mut Vec<Problem>,
        notes: &mut Vec<Problem>,
    ) -> Self {
        let project = source_file::project_folders(folders).pop().unwrap_or_else(|| folders.start.clone());
        server_times::fill_in(resolved, environment, notes);
        let mut all = mcp_server::servers(resolved, environment, &project, problems, notes);
        let programs = programs::of_servers(&mut all, roots, folders, environment);
        Self { all, untrusted: untrusted_servers(resolved), programs }
    }
}
