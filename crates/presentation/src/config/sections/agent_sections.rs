//! The sections that refer to each other: models, profiles, views, and the settings of agents.

use crate::config::{
    layers::{ResolvedSettings, environment::EnvironmentVariables, folders::StandardFolders},
    sections::{
        agent::{self, AgentSettings},
        models::{self, ConfiguredModels, ModelSectionInputs},
        profiles::{self, AgentProfile},
    },
    servers::mcp_server::ConfiguredServer,
    tree::{problem::Problem, value::TextItem},
    trust::programs,
    views::{self, ConfiguredView},
};
use std::path::Path;
use toolstead_domain::{ServerName, WorkspaceRoots};

/// Inputs for reading the sections about models, profiles, views and agents.
pub(in crate::config) struct AgentSectionInputs<'a> {
    pub(in crate::config) folders: &'a StandardFolders,
    pub(in crate::config) environment: &'a EnvironmentVariables,
    pub(in crate::config) roots: &'a WorkspaceRoots,
    pub(in crate::config) servers: &'a [ConfiguredServer],
}

/// Models, profiles, views, and the settings of agents.
pub(in crate::config) struct AgentSections {
    pub(in crate::config) models: ConfiguredModels,
    pub(in crate::config) profiles: Vec<AgentProfile>,
    pub(in crate::config) views: Vec<ConfiguredView>,
    pub(in crate::config) agent: AgentSettings,
    /// Every tool name in the profiles and views.
    pub(in crate::config) selected: Vec<TextItem>,
}

impl AgentSections {
    pub(in crate::config) fn of(
        resolved: &mut ResolvedSettings,
        inputs: &AgentSectionInputs<'_>,
        problems: &mut Vec<Problem>,
        notes: &mut Vec<Problem>,
    ) -> Self {
        let AgentSectionInputs { folders, environment, roots, servers } = inputs;
        let inputs = ModelSectionInputs {
            environment,
            home: folders.home.as_deref().unwrap_or(Path::new("/")),
            written: &programs::written_by_tools(servers, roots),
        };
        let models = models::models(resolved, &inputs, problems, notes);
        let servers: Vec<&ServerName> = servers.iter().map(|server| &server.name).collect();
        let (profiles, mut selected) = profiles::profiles(resolved, &models, &servers, problems, notes);
        let (views, in_views) = views::views(resolved, folders, problems, notes);
        selected.extend(in_views);
        views::check_profiles(&profiles, &views, problems);
        let agent = agent::agent(resolved, &models, problems);
        Self { models, profiles, views, agent, selected }
    }
}
