//! Starts the configured MCP servers.

use super::{Servers, StartupError, accounts::upstream_accounts};
use crate::{
    config::{Config, servers::mcp_server::ConfiguredServer},
    cores::RuntimePool,
};
use std::sync::Arc;
use toolstead_domain::{Clock, ServerName, ToolRepository};
use toolstead_infrastructure::{
    child_environment,
    egress::connector::{Connector, SystemNetwork},
    http::client::HttpClient,
    mcp::client::{
        Upstream,
        config::{
            CredentialsOwner, LaunchCheck, McpLimits, McpTimeouts, ServerConfinement, UpstreamConfig,
            UpstreamCredentials,
        },
        connection::{UpstreamDeps, question_kind::Clients},
        transport::stdio::StdioLauncher,
    },
    sandbox::launcher::Launcher,
    web::web_client::WebClient,
};

/// Returns the HTTP client for configured servers and models. They are named in trusted files and often run on this
/// machine, so any address is allowed. The client follows no redirects and no addresses of sign-in pages; it only
/// reports them.
pub(super) fn http_client() -> HttpClient {
    HttpClient::new(Connector::to_configured_hosts(Arc::new(SystemNetwork::default())))
}

/// Returns the selected servers that will not be available, each with the reason.
pub(super) fn absent<'a>(config: &'a Config, wanted: &'a Servers) -> impl Iterator<Item = (&'a str, String)> {
    let is_wanted = |server: &&ConfiguredServer| match wanted {
        Servers::All => true,
        Servers::Only(name) => server.name.as_str() == name,
        Servers::None => false,
    };
    config.mcp_servers.iter().filter(is_wanted).filter_map(|server| {
        let why = match &server.transport {
            _ if server.disabled => format!("it is switched off by `mcp_servers.{}.disabled`", server.name),
            Err(reason) => format!("it cannot be started: {reason}"),
            Ok(_) => return None,
        };
        Some((server.name.as_str(), why))
    })
}

/// Starts the selected servers that are valid and not disabled, and those of the embedding application, without waiting
/// for any of them. A server whose tools
/// `known` contains from an earlier run is started on first use, unless it is required. `clients` is only awaited if a
/// server is started. Servers are assigned to the runtimes of `cores` in turn. `web` and `clock` are for sign-ins.
pub(super) async fn start(
    config: &Config,
    wanted: &Servers,
    added: Vec<UpstreamConfig>,
    clients: impl Future<Output = Clients>,
    known: Option<Arc<dyn ToolRepository>>,
    cores: Option<&RuntimePool>,
    (web, clock): (&WebClient, &Arc<dyn Clock>),
) -> Result<Vec<Arc<Upstream>>, StartupError> {
    let is_wanted = |server: &&ConfiguredServer| match wanted {
        Servers::All => !server.disabled,
        Servers::Only(name) => !server.disabled && server.name.as_str() == name,
        Servers::None => false,
    };
    let configured = config.mcp_servers.iter().filter(is_wanted);
    let configured = configured.filter_map(|server| converted(server, config, web, clock));
    let servers: Vec<UpstreamConfig> = configured.chain(added).collect();
    if servers.is_empty() {
        return Ok(Vec::new());
    }
    let clients = clients.await;
    let launcher = StdioLauncher {
        launcher: Launcher::start()
            .map_err(StartupError::Launcher)?
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
    };
    let deps = UpstreamDeps { launcher: Some(Arc::new(launcher)), http: http_client(), clients };
    let required = |name: &ServerName| config.mcp_servers.iter().any(|one| one.required && one.name == *name);
    let mut started = Vec::new();
    for server in servers {
        let is_known = match &known {
            Some(known) if !required(&server.name) => {
                !known.catalogue(&deps.identity_of(&server)).await?.tools.is_empty()
            }
            Some(_) | None => false,
        };
        // Tasks of the server run on the runtime that is entered when it is created.
        let _runtime = cores.map(|cores| cores.next_runtime().enter());
        started.push(match is_known {
            true => Upstream::start_when_used(server, deps.clone()),
            false => Upstream::start(server, deps.clone()),
        });
    }
    Ok(started)
}

/// Converts a server. Returns `None` if its transport is invalid; `toolstead servers` reports the reason.
fn converted(
    server: &ConfiguredServer,
    config: &Config,
    web: &WebClient,
    clock: &Arc<dyn Clock>,
) -> Option<UpstreamConfig> {
    Some(UpstreamConfig {
        configured_in: server.origin.place(),
        protocol: server.protocol,
        names: server.names,
        only_tools: server.only_tools.clone(),
        may_ask: server.may_ask.clone(),
        output: server.output,
        timeouts: McpTimeouts {
            connect: server.connect_timeout,
            call: std::time::Duration::from_secs(config.limits.max_timeout_seconds),
            ..McpTimeouts::default()
        },
        ends_unused_after: server.ends_unused_after,
        stateful: server.stateful,
        limits: McpLimits { tools: server.max_tools, ..McpLimits::default() },
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
        credentials: credentials(server, config, web, clock),
        ..UpstreamConfig::new(server.name.clone(), server.transport.clone().ok()?)
    })
}

/// Returns the credentials for a server. Without an `auth` table it receives the sign-in of the local user, if there is
/// one.
fn credentials(
    server: &ConfiguredServer,
    config: &Config,
    web: &WebClient,
    clock: &Arc<dyn Clock>,
) -> Option<UpstreamCredentials> {
    let accounts = upstream_accounts(server, config, web.clone(), clock.clone())?;
    let is_shared = server.auth.as_ref().is_some_and(|auth| auth.is_shared());
    Some(UpstreamCredentials {
        resource: accounts.resource(),
        source: Arc::new(accounts),
        owner: if is_shared { CredentialsOwner::Program } else { CredentialsOwner::Principal },
        is_optional: server.auth.is_none(),
        can_sign_in: server.auth.as_ref().is_none_or(|auth| auth.is_sign_in()),
    })
}
