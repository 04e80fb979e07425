//! Starts the MCP servers of the configuration and of the embedding application.

use super::{StartupError, accounts::upstream_accounts};
use crate::{
    config::{Config, servers::mcp_server::ConfiguredServer},
    cores::RuntimePool,
};
use serde_json::{Map, Value};
use std::{pin::Pin, sync::Arc, time::Duration};
use toolstead_domain::{Clock, ServerName, ToolRepository};
use toolstead_infrastructure::{
    child_environment,
    egress::connector::{Connector, SystemNetwork},
    http::client::HttpClient,
    mcp::client::{
        Upstream,
        config::{
            CredentialsOwner, LaunchCheck, McpTimeouts, ServerConfinement, UpstreamConfig, UpstreamCredentials,
            UpstreamSizeLimits,
        },
        connection::{UpstreamDeps, question_kind::ServedClients},
        transport::stdio::StdioLauncher,
    },
    sandbox::launcher::Launcher,
    web::web_client::WebClient,
};

/// Selection of the configured MCP servers to start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ServerSelection {
    /// All servers that are not disabled.
    #[default]
    All,
    /// The server with this name only.
    Only(String),
    /// No server.
    None,
}

impl ServerSelection {
    fn includes(&self, server: &ConfiguredServer) -> bool {
        match self {
            Self::All => true,
            Self::Only(name) => server.name.as_str() == name,
            Self::None => false,
        }
    }
}

/// Clients that will call the application.
pub(super) enum ExpectedClients {
    /// Any number of clients, with the capabilities that they may have.
    Any(Map<String, Value>),
    /// A single client, with the capabilities that it declares.
    One(Pin<Box<dyn Future<Output = Map<String, Value>> + Send>>),
}

impl Default for ExpectedClients {
    fn default() -> Self {
        Self::Any(Map::new())
    }
}

impl ExpectedClients {
    async fn resolve(self) -> ServedClients {
        match self {
            Self::Any(capabilities) => ServedClients::Any(capabilities),
            Self::One(capabilities) => ServedClients::One(capabilities.await),
        }
    }
}

/// Servers to start, and the way in which they are started.
#[derive(Default)]
pub(super) struct UpstreamOptions {
    pub(super) selection: ServerSelection,
    pub(super) clients: ExpectedClients,
    /// `true` if a server whose tools are known from an earlier run is started on first use, unless it is required.
    pub(super) starts_when_used: bool,
    /// Runtimes to which servers are assigned in turn; `None`: the runtime of the caller.
    pub(super) cores: Option<RuntimePool>,
}

/// Stage that starts the MCP servers.
pub(super) struct UpstreamStarter {
    options: UpstreamOptions,
    repository: Arc<dyn ToolRepository>,
    /// Client for sign-ins.
    web: WebClient,
    /// Clock for sign-ins.
    clock: Arc<dyn Clock>,
}

impl UpstreamStarter {
    /// Creates the stage. The client and the clock are for sign-ins.
    pub(super) fn new(
        options: UpstreamOptions,
        repository: Arc<dyn ToolRepository>,
        web: WebClient,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { options, repository, web, clock }
    }

    /// Returns the selected servers that will not be available, each with the reason.
    pub(super) fn absent<'a>(&'a self, config: &'a Config) -> impl Iterator<Item = (&'a str, String)> {
        let selected = config.mcp_servers.iter().filter(|server| self.options.selection.includes(server));
        selected.filter_map(|server| {
            let why = match &server.transport {
                _ if server.disabled => format!("it is switched off by `mcp_servers.{}.disabled`", server.name),
                Err(reason) => format!("it cannot be started: {reason}"),
                Ok(_) => return None,
            };
            Some((server.name.as_str(), why))
        })
    }

    /// Starts the selected servers that are valid and not disabled, and those of the embedding application, without
    /// waiting for any of them. Awaits the capabilities of the client only if a server is started.
    pub(super) async fn start(
        self,
        config: &Config,
        added: Vec<UpstreamConfig>,
    ) -> Result<Vec<Arc<Upstream>>, StartupError> {
        let is_selected = |server: &&ConfiguredServer| !server.disabled && self.options.selection.includes(server);
        let configured = config.mcp_servers.iter().filter(is_selected);
        let configured = configured.filter_map(|server| self.converted(server, config));
        let servers: Vec<UpstreamConfig> = configured.chain(added).collect();
        if servers.is_empty() {
            return Ok(Vec::new());
        }
        let Self { options, repository, .. } = self;
        let clients = options.clients.resolve().await;
        let deps = UpstreamDeps { launcher: Some(Arc::new(launcher(config)?)), http: http_client(), clients };
        let required = |name: &ServerName| config.mcp_servers.iter().any(|one| one.required && one.name == *name);
        let mut started = Vec::new();
        for server in servers {
            let is_known = options.starts_when_used
                && !required(&server.name)
                && !repository.catalogue(&deps.identity_of(&server)).await?.tools.is_empty();
            // Tasks of the server run on the runtime that is entered when it is created.
            let _runtime = options.cores.as_ref().map(|cores| cores.next_runtime().enter());
            started.push(match is_known {
                true => Upstream::start_when_used(server, deps.clone()),
                false => Upstream::start(server, deps.clone()),
            });
        }
        Ok(started)
    }

    /// Converts a server. Returns `None` if its transport is invalid; `toolstead servers` reports the reason.
    fn converted(&self, server: &ConfiguredServer, config: &Config) -> Option<UpstreamConfig> {
        Some(UpstreamConfig {
            configured_in: server.origin.place(),
            protocol: server.protocol,
            names: server.names,
            only_tools: server.only_tools.clone(),
            may_ask: server.may_ask.clone(),
            output: server.output,
            timeouts: McpTimeouts {
                connect: server.connect_timeout,
                call: Duration::from_secs(config.limits.max_timeout_seconds),
                ..McpTimeouts::default()
            },
            ends_unused_after: server.ends_unused_after,
            stateful: server.stateful,
            limits: UpstreamSizeLimits { tools: server.max_tools, ..UpstreamSizeLimits::default() },
            confinement: ServerConfinement {
                profile: server.profile,
                roots: server.roots.clone(),
                limits: config.sandbox_limits(),
            },
            on_change: server.on_change,
            launch_check: {
                let programs = server.programs.clone();
                LaunchCheck::new(move || programs.check())
            },
            credentials: self.credentials(server, config),
            ..UpstreamConfig::new(server.name.clone(), server.transport.clone().ok()?)
        })
    }

    /// Returns the credentials for a server. Without an `auth` table it receives the sign-in of the local user, if
    /// there is one. Returns `None` if the server is not reached by HTTP, or has an `Authorization` header.
    fn credentials(&self, server: &ConfiguredServer, config: &Config) -> Option<UpstreamCredentials> {
        let accounts = upstream_accounts(server, config, self.web.clone(), self.clock.clone())?;
        let is_shared = server.auth.as_ref().is_some_and(|auth| auth.is_shared());
        Some(UpstreamCredentials {
            resource: accounts.resource(),
            source: Arc::new(accounts),
            owner: if is_shared { CredentialsOwner::Program } else { CredentialsOwner::Principal },
            is_optional: server.auth.is_none(),
            can_sign_in: server.auth.as_ref().is_none_or(|auth| auth.is_sign_in()),
        })
    }
}

/// Returns the launcher of servers over stdio.
fn launcher(config: &Config) -> Result<StdioLauncher, StartupError> {
    let launcher = Launcher::start().map_err(StartupError::Launcher)?;
    Ok(StdioLauncher {
        launcher: launcher
            .requiring_landlock(config.sandbox.requires_landlock)
            .allowing_tier_2(config.sandbox.allows_tier_2())
            .for_user(config.folders.home.as_deref())
            .with_other_roots(&config.roots.write),
        environment: child_environment::base(|name| config.environment.get(name).map(str::to_owned)),
        working_dir: config.roots.start().unwrap_or(&config.folders.start).to_path_buf(),
        roots: config.roots.clone(),
        // The folder of the database is not accessible to tools.
        homes: Some(config.database.homes()),
        sealed: config.sealed.clone(),
    })
}

/// Returns the HTTP client for configured servers and models. They are named in trusted files and often run on this
/// machine, so any address is allowed. The client follows no redirects and no addresses of sign-in pages; it only
/// reports them.
pub(super) fn http_client() -> HttpClient {
    HttpClient::new(Connector::to_configured_hosts(Arc::new(SystemNetwork::default())))
}
