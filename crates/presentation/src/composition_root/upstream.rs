//! The configured MCP servers, started.

use super::{Servers, StartupError};
use crate::config::{
    Config,
    environment::Environment,
    mcp_server::{McpNames, McpProfile, McpServerConfig as Configured, McpTransport as ConfiguredTransport},
};
use std::sync::Arc;
use toolstead_infrastructure::{
    mcp::client::{
        McpServer,
        config::{
            HttpServer, LaunchCheck, McpLimits, McpServerConfig, McpTimeouts, McpTransport, RetryPolicy,
            ServerConfinement, ServerProfile, StdioServer, ToolNames,
        },
        connection::McpServerDeps,
        http_connector::HttpConnector,
    },
    sandbox::{child_environment, launcher::Launcher},
};

/// The configured servers that were wanted and will not be there, each with the reason.
pub(super) fn absent<'a>(config: &'a Config, wanted: &'a Servers) -> impl Iterator<Item = (&'a str, String)> {
    let is_wanted = |server: &&Configured| match wanted {
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

/// Starts the servers that are wanted, can be reached and are not disabled. None is waited for.
pub(super) fn start(
    config: &Config,
    wanted: &Servers,
    environment: &Environment,
) -> Result<Vec<Arc<McpServer>>, StartupError> {
    let is_wanted = |server: &&Configured| match wanted {
        Servers::All => !server.disabled,
        Servers::Only(name) => !server.disabled && server.name.as_str() == name,
        Servers::None => false,
    };
    let servers: Vec<McpServerConfig> =
        config.mcp_servers.iter().filter(is_wanted).filter_map(|server| converted(server, config)).collect();
    if servers.is_empty() {
        return Ok(Vec::new());
    }
    let deps = McpServerDeps {
        launcher: Launcher::start()
            .map_err(StartupError::Launcher)?
            .requiring_landlock(config.sandbox.requires_landlock)
            .allowing_tier_2(config.sandbox.allows_tier_2())
            .beside(&config.roots.write),
        http: Arc::new(HttpConnector::default()),
        environment: child_environment::base(|name| environment.get(name).map(str::to_owned)),
        working_dir: config.roots.start().unwrap_or(&config.folders.start).to_path_buf(),
        roots: config.roots.clone(),
        // Beside the database: no tool reaches that folder.
        homes: Some(config.database.homes()),
        sealed: config.sealed.clone(),
    };
    Ok(servers.into_iter().map(|server| McpServer::start(server, deps.clone())).collect())
}

/// `None` for a server of which it is not known how to reach it; `toolstead servers` says why.
fn converted(server: &Configured, config: &Config) -> Option<McpServerConfig> {
    let transport = match server.transport.as_ref().ok()? {
        ConfiguredTransport::Stdio { command, args, env, cwd } => McpTransport::Stdio(StdioServer {
            command: command.clone(),
            args: args.clone(),
            env: env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect(),
            working_dir: cwd.clone(),
        }),
        ConfiguredTransport::Http { url, headers } => McpTransport::Http(HttpServer {
            url: url.clone(),
            headers: headers
                .iter()
                .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
                .collect(),
        }),
    };
    Some(McpServerConfig {
        name: server.name.clone(),
        configured_in: server.origin.place(),
        transport,
        protocol: server.protocol,
        names: match server.names {
            McpNames::Qualified => ToolNames::Qualified,
            McpNames::Plain => ToolNames::Plain,
        },
        timeouts: McpTimeouts {
            connect: server.connect_timeout,
            call: std::time::Duration::from_secs(config.limits.max_timeout_seconds),
            ..McpTimeouts::default()
        },
        limits: McpLimits { tools: server.max_tools, ..McpLimits::default() },
        retry: RetryPolicy::default(),
        confinement: ServerConfinement {
            profile: match server.profile {
                McpProfile::Guarded => ServerProfile::Guarded,
                McpProfile::Strict => ServerProfile::Strict,
                McpProfile::Open => ServerProfile::Open,
            },
            roots: server.roots.clone(),
            limits: config.sandbox_limits(),
        },
        launch_check: {
            let programs = server.programs.clone();
            LaunchCheck::new(move || programs.check())
        },
    })
}
