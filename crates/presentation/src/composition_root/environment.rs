//! First stage: the environment of the tools, and the parts of it that later stages use.

use super::{
    SessionLifetime, StartupError,
    accounts::accounts,
    command_settings::{browser_settings, command_settings},
    models::models,
    session_lifetime::tasks,
};
use crate::{
    agent_parts::AgentModels,
    config::{Config, agent_files::DefinitionFileCatalogue, sections::services::NetworkToolSettings},
};
use std::sync::Arc;
use toolstead_application::EventBus;
use toolstead_domain::{Clock, ModelProvider, WebSearch};
use toolstead_infrastructure::{
    browser::browsers::Browsers,
    builtin::{
        ToolEnvironment,
        commands::{programs::ProgramLauncher, tasks::Tasks},
    },
    egress::connector::{Network, SystemNetwork},
    sandbox::{
        helper::HelperLauncher,
        workspace::{UserPathAliases, Workspace},
    },
    system_clock::SystemClock,
    web::{address::InvalidAddress, web_client::WebClient},
};

/// Name and version of this program.
pub(super) const VERSION: &str = concat!("Toolstead ", env!("CARGO_PKG_VERSION"));

/// Parts of the environment that an embedding application replaces or adds.
pub(super) struct ExternalServiceOverrides {
    pub(super) models: Vec<Arc<dyn ModelProvider>>,
    pub(super) network: Arc<dyn Network>,
    pub(super) web_search: Option<Arc<dyn WebSearch>>,
    /// `None`: sessions end with the process.
    pub(super) session_lifetime: Option<SessionLifetime>,
}

impl Default for ExternalServiceOverrides {
    fn default() -> Self {
        let network = Arc::new(SystemNetwork::default());
        Self { models: Vec::new(), network, web_search: None, session_lifetime: None }
    }
}

/// Environment of the tools, before any store is open.
pub(super) struct EnvironmentStage {
    pub(super) tools: ToolEnvironment,
    pub(super) workspace: Arc<Workspace>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) events: Arc<EventBus>,
    pub(super) helpers: Arc<HelperLauncher>,
    pub(super) tasks: Arc<Tasks>,
    pub(super) browsers: Arc<Browsers>,
    /// Client for untrusted addresses, and for sign-in at services and servers.
    pub(super) web: WebClient,
    pub(super) models: AgentModels,
    pub(super) agent_files: Arc<DefinitionFileCatalogue>,
}

impl EnvironmentStage {
    /// Creates the environment. Opens the workspace; starts no process except launchers.
    pub(super) fn new(config: &Config, parts: ExternalServiceOverrides) -> Result<Self, StartupError> {
        let ExternalServiceOverrides { models: added_models, network, web_search, session_lifetime } = parts;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let workspace = Arc::new(open_workspace(config)?);
        let events = EventBus::new(clock.clone());
        let helpers = Arc::new(helpers(config));
        let tasks = Arc::new(tasks(session_lifetime, config));
        let agent_files = Arc::new(config.agent_files());
        let models = models(config, added_models)?;
        let browsers = Arc::new(Browsers::new(browser_settings(config, network.clone())));
        let web = web_client(network, &config.outside)?;
        let tools = ToolEnvironment::new(workspace.clone(), clock.clone(), VERSION.to_owned())
            .with_agents(agent_files.clone())
            .with_limits(config.file_limits.clone())
            .with_events(events.clone())
            .with_helpers(helpers.clone())
            .with_programs(Arc::new(ProgramLauncher::new(command_settings(config))))
            .with_tasks(tasks.clone())
            .with_models(Arc::new(models.clone()))
            .with_web_client(web.clone())
            .with_robots_check(config.outside.respects_robots)
            .with_services(Arc::new(config.outside.services.clone()))
            .with_credentials(Arc::new(accounts(config, web.clone(), clock.clone())))
            .with_browsers(browsers.clone());
        let tools = match web_search {
            Some(search) => tools.with_web_search(search),
            None => tools,
        };
        Ok(Self { tools, workspace, clock, events, helpers, tasks, browsers, web, models, agent_files })
    }
}

fn open_workspace(config: &Config) -> Result<Workspace, StartupError> {
    let names = || UserPathAliases { home: config.folders.home.clone(), aliases: Vec::new() };
    Ok(match config.roots.start() {
        Some(_) => Workspace::open(&config.roots, names())?,
        None => Workspace::closed(),
    })
}

fn helpers(config: &Config) -> HelperLauncher {
    HelperLauncher::default()
        .requiring_landlock(config.sandbox.requires_landlock)
        .allowing_tier_2(config.sandbox.allows_tier_2())
}

/// Returns the HTTP client for untrusted addresses, with the configured private hosts and proxy.
fn web_client(network: Arc<dyn Network>, outside: &NetworkToolSettings) -> Result<WebClient, InvalidAddress> {
    let client = WebClient::new(network, outside.private_hosts.clone());
    match &outside.proxy {
        Some(proxy) => client.with_proxy(proxy),
        None => Ok(client),
    }
}
