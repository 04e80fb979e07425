//! Fifth stage: registers the providers of tools, resources and prompts.

use super::{
    RunningApp, StartupError, added_providers::AddedProviders, environment::VERSION, models::tool_search,
    orchestration::orchestration_of, reports::reports, upstream::UpstreamStarter,
};
use std::sync::Arc;
use toolstead_domain::ContextProvider;
use toolstead_infrastructure::{
    builtin::{InProcessTools, ToolEnvironment, context::BuiltInContextProvider},
    mcp::client::{Upstream, config::UpstreamConfig},
};

/// Providers to register, in this order. A later one cannot take a name of an earlier one.
pub(super) struct ProviderRegistrar {
    /// Environment of the built-in resources and prompts.
    pub(super) environment: ToolEnvironment,
    pub(super) built_in: InProcessTools,
    pub(super) added: AddedProviders,
    /// `None` if the selection contains no tool of an MCP server, so that none is started.
    pub(super) upstreams: Option<UpstreamStarter>,
}

impl ProviderRegistrar {
    /// Registers all providers, and returns the started MCP servers.
    pub(super) async fn register(self, running: &RunningApp) -> Result<Vec<Arc<Upstream>>, StartupError> {
        let Self { environment, built_in, added, upstreams } = self;
        let tasks = environment.work_as_tasks();
        register_context(running, environment, added.context_providers).await?;

        let registry = &running.app.registry;
        registry.register(Arc::new(built_in)).await?;
        let orchestration = orchestration_of(&running.app, tasks, tool_search(&running.config)?);
        let orchestration = match running.config.server.output_schemas {
            true => orchestration.with_output_schemas(),
            false => orchestration,
        };
        registry.register(Arc::new(orchestration)).await?;
        running.tools.open().await?;
        for provider in added.providers {
            registry.register(provider).await?;
        }
        match upstreams {
            Some(upstreams) => start_upstreams(running, upstreams, added.upstreams).await,
            None => Ok(Vec::new()),
        }
    }
}

async fn register_context(
    running: &RunningApp,
    environment: ToolEnvironment,
    added: Vec<Arc<dyn ContextProvider>>,
) -> Result<(), StartupError> {
    let reports = reports(&running.config, &running.app, VERSION);
    running.app.context.register(Arc::new(BuiltInContextProvider::new(environment, reports)?)).await?;
    for provider in added {
        running.app.context.register(provider).await?;
    }
    Ok(())
}

/// Starts the MCP servers and registers them. Reports to the registry the selected servers that will not be available.
async fn start_upstreams(
    running: &RunningApp,
    upstreams: UpstreamStarter,
    added: Vec<UpstreamConfig>,
) -> Result<Vec<Arc<Upstream>>, StartupError> {
    let RunningApp { app, config, .. } = running;
    for (server, why) in upstreams.absent(config) {
        app.registry.note_absent(server, &why);
    }
    let servers = upstreams.start(config, added).await?;
    for server in &servers {
        app.registry.register(server.clone()).await?;
        app.context.register(server.clone()).await?;
    }
    Ok(servers)
}
