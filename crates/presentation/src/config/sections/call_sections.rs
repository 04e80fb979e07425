//! The sections that decide calls together: roots, permissions, hooks and servers.

use crate::config::{
    config_file::ConfigFile,
    hooks::{self, ConfiguredHooks, HookLoadContext},
    layers::{ResolvedSettings, environment::EnvironmentVariables, folders::StandardFolders},
    sections::permission_settings::PermissionSettings,
    servers::ConfiguredServers,
    tree::problem::Problem,
    trust::{TrustList, programs},
    workspace,
};
use std::path::PathBuf;
use toolstead_domain::WorkspaceRoots;

/// Inputs for reading the sections about roots, permissions, hooks and servers.
pub(in crate::config) struct CallSectionInputs<'a> {
    pub(in crate::config) folders: &'a StandardFolders,
    pub(in crate::config) environment: &'a EnvironmentVariables,
    pub(in crate::config) trusted: &'a TrustList,
}

/// Roots, permissions, hooks and servers.
pub(in crate::config) struct CallDecisionSections {
    pub(in crate::config) roots: WorkspaceRoots,
    pub(in crate::config) permissions: PermissionSettings,
    pub(in crate::config) hooks: ConfiguredHooks,
    pub(in crate::config) servers: ConfiguredServers,
    /// Files that hooks and servers run. Rules keep tools from changing those within the roots.
    pub(in crate::config) sealed: Vec<PathBuf>,
}

impl CallDecisionSections {
    /// Returns the sections. Adds the files that hooks are imported from to `files`.
    pub(in crate::config) fn of(
        resolved: &mut ResolvedSettings,
        inputs: &CallSectionInputs<'_>,
        files: &mut Vec<ConfigFile>,
        problems: &mut Vec<Problem>,
        notes: &mut Vec<Problem>,
    ) -> Self {
        let CallSectionInputs { folders, environment, trusted } = *inputs;
        let roots = workspace::roots(folders, resolved, problems);
        let mut permissions = PermissionSettings::of(folders, resolved, &roots, problems);
        let inputs = HookLoadContext { folders, environment, roots: &roots, trusted };
        let hooks = hooks::hooks(resolved, &inputs, files, problems, notes);
        let servers = ConfiguredServers::of(resolved, folders, environment, &roots, problems, notes);
        let executed = [hooks.guarded(), &servers.programs].concat();
        permissions.rules.extend(programs::guarding_rules(&executed, &roots));
        let sealed = executed.into_iter().map(|(path, _)| path).collect();
        Self { roots, permissions, hooks, servers, sealed }
    }
}
