//! `toolstead-server`: serves the tools over streamable HTTP.

use super::{
    CommandResult,
    exit::{self, CommandError, Exit},
    global::GlobalFlags,
    output::StdoutWriter,
    server_log,
};
use crate::{
    app::App,
    composition_root::{RunningApp, StartupError},
    config::{
        Config,
        layers::environment::EnvironmentVariables,
        sections::token::{HttpServerToken, server_token},
    },
    cores::RuntimePool,
    mcp_server::http::{
        HttpServer,
        settings::{BearerToken, HttpSettings},
    },
    shutdown::ShutdownListener,
    suggestions::HttpSuggestions,
    telemetry::{self, SERVER},
};
use clap::Parser;
use serde_json::json;
use std::{net::SocketAddr, pin::pin, process::ExitCode, sync::Arc, time::Duration};
use tokio::{net::TcpListener, time::timeout};
use tokio_util::task::AbortOnDropHandle;
use toolstead_infrastructure::mcp::client::connection::question_kind;

/// Time after the drain for recording cancelled calls and closing connections and stores.
const LAST_WORK: Duration = Duration::from_millis(1_500);
/// Time after a second signal for closing connections and stores.
const LAST_WORK_AT_ONCE: Duration = Duration::from_millis(500);

/// Line of `/readyz` for a server whose tools have no folder to work in.
const NO_ROOT: &str = "no root: tools for files and commands cannot work; name a folder with `--root DIR` or \
                       `workspace.roots`";

/// Serves every tool over MCP (streamable HTTP), with one registry, one policy and one audit log.
#[derive(Debug, Parser)]
#[command(name = "toolstead-server", version, max_term_width = 120, after_help = exit::EXIT_CODES)]
pub struct ServeCommand {
    #[command(flatten)]
    global: GlobalFlags,
    /// Address to listen on; port 0 selects a free port, which is printed
    #[arg(long, value_name = "IP:PORT")]
    listen: Option<String>,
}

impl ServeCommand {
    /// Serves until a signal requests shutdown. Starts logging as configured.
    pub async fn run(self, cores: RuntimePool) -> ExitCode {
        let as_json = self.global.json;
        exit::conclude(self.serve(cores).await, as_json)
    }

    async fn serve(self, cores: RuntimePool) -> CommandResult {
        let mut shutdown = ShutdownListener::of_server()?;
        let environment = EnvironmentVariables::of_process();
        let (config, notes) = self.global.load_for_server(self.listen.clone())?;
        telemetry::start(self.global.log_of_server(config.server.log_calls), &environment);
        let token = server_token(&config, &environment).map_err(|problem| StartupError::Config(problem.into()))?;
        for problem in notes.iter().chain(&token.mended) {
            tracing::warn!(target: SERVER, "{problem}");
        }
        let listen = config.server.listen;
        let listener = TcpListener::bind(listen).await.map_err(|error| {
            CommandError::Usage(format!("cannot listen at {listen}: {error}; choose another address with `--listen`"))
        })?;
        let building = App::builder(config)
            .suggestions(Arc::new(HttpSuggestions))
            .client_capabilities(question_kind::all_capabilities())
            .starting_servers_when_used()
            .spread_over(cores.clone());
        let composing = async { self.global.watched(building.build().await?).await };
        let composition = tokio::select! {
            composed = composing => composed?,
            // The start of a required MCP server may take long, and nothing that needs an orderly shutdown is running
            // yet.
            () = shutdown.requested() => return Ok(Exit::Done),
        };
        let settings = settings(&composition.config, &token);
        let server = HttpServer::start_on(cores, listener, composition.app.clone(), settings)?;
        server_log::started(&composition.config, server.address());
        let ready = AbortOnDropHandle::new(tokio::spawn(server_log::ready(
            composition.app.registry.clone(),
            composition.config.sandbox.clone(),
        )));
        warn_of_network(server.address());
        warn_of_missing_root(&composition.config);
        announce(server.address(), &token, self.global.json, &mut StdoutWriter::new())?;
        shutdown.requested().await;
        drop(ready);
        close(server, composition, &mut shutdown).await;
        Ok(Exit::Done)
    }
}

/// Drains the server, closes the application, and closes the listener last. A second shutdown request cancels the calls
/// that are still running.
async fn close(server: HttpServer, composition: RunningApp, shutdown: &mut ShutdownListener) {
    let drain = Duration::from_secs(composition.config.server.drain_seconds);
    let open_calls = composition.app.open_calls.clone();
    let closing = async {
        server.drain(drain).await;
        composition.close_after(Duration::ZERO).await;
        drop(server);
    };
    let mut closing = pin!(closing);
    let closed = tokio::select! {
        closed = timeout(drain + LAST_WORK, &mut closing) => closed,
        () = shutdown.requested() => {
            let cancelled = open_calls.end();
            tracing::info!(target: SERVER, cancelled, "second signal: ending at once");
            timeout(LAST_WORK_AT_ONCE, &mut closing).await
        }
    };
    if closed.is_err() {
        tracing::warn!(target: SERVER, "the server ends before everything is closed: the shutdown timeout has passed");
    } else {
        tracing::info!(target: SERVER, "ended");
    }
}

fn settings(config: &Config, token: &HttpServerToken) -> HttpSettings {
    let (server, limits) = (&config.server, &config.limits);
    let mut settings = HttpSettings {
        tokens: vec![BearerToken { name: "server".into(), secret: token.token.expose().to_owned() }],
        max_connections: limits.connections,
        max_sessions: limits.sessions,
        session_idle: Duration::from_secs(server.session_idle_seconds),
        head_timeout: Duration::from_secs(server.head_timeout_seconds),
        max_in_flight: limits.calls_in_flight,
        ..HttpSettings::default()
    };
    let required = config.mcp_servers.iter().filter(|server| server.required && !server.disabled);
    settings.required_servers.extend(required.map(|server| server.name.to_string()));
    settings.ready_note = config.roots.start().is_none().then(|| NO_ROOT.into());
    settings.allowed_hosts.extend(server.allowed_hosts.iter().cloned());
    settings.allowed_origins.extend(server.allowed_origins.iter().cloned());
    settings
}

/// Warns if other machines can reach the server.
fn warn_of_network(address: SocketAddr) {
    if !address.ip().to_canonical().is_loopback() {
        tracing::warn!(
            target: SERVER,
            "{address} can be reached from the network, and speaks plain HTTP: the token and all that tools are asked and \
             answer can be read on the way. Listen at 127.0.0.1, or put a proxy with TLS before it"
        );
    }
}

/// Warns if tools have no folder to work in, for example because the server was started in `/`.
fn warn_of_missing_root(config: &Config) {
    if config.roots.start().is_none() {
        tracing::warn!(target: SERVER, "started in `{}`: {NO_ROOT}", config.folders.start.display());
    }
}

/// Prints the address, the location of the token, and a client configuration. Prints a new token itself only to a
/// terminal.
fn announce(
    address: SocketAddr,
    token: &HttpServerToken,
    as_json: bool,
    output: &mut StdoutWriter,
) -> std::io::Result<()> {
    let url = format!("http://{address}/mcp");
    if as_json {
        let (origin, file) = (token.origin.to_string(), token.file.as_ref().map(|file| file.display().to_string()));
        return output.json(&json!({"url": url, "token_origin": origin, "token_file": file}));
    }
    output.line(&format!("Toolstead serves MCP at {url}"))?;
    let shown = if token.is_new && output.is_terminal() {
        output.line(&format!("token (made just now, stored in {}): {}", token.origin, token.token.expose()))?;
        token.token.expose()
    } else {
        output.line(&format!("token: as in {}", token.origin))?;
        "TOKEN"
    };
    let client = json!({"mcpServers": {"toolstead": {
        "type": "http", "url": url, "headers": {"Authorization": format!("Bearer {shown}")},
    }}});
    output.line("to use it, paste this into the configuration of an MCP client:")?;
    output.json(&client)?;
    output.line("Ctrl-C ends it.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::layers::request::{ConfigFlags, ConfigRequest};
    use std::path::Path;

    fn loaded(home: &Path, text: &str) -> (Config, EnvironmentVariables) {
        let file = home.join("config.toml");
        std::fs::write(&file, text).unwrap();
        let environment = EnvironmentVariables::new([
            ("HOME", home.to_str().unwrap()),
            ("TOOLSTEAD_SERVER_TOKEN", "a-token-that-is-long-enough-for-any-server"),
        ]);
        let request = ConfigRequest {
            environment: environment.clone(),
            start: home.to_path_buf(),
            administrator: home.join("etc"),
            file: Some(file),
            flags: ConfigFlags::default(),
        };
        (Config::load(&request).unwrap(), environment)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn ordinary_tool_definitions_are_built_at_the_first_listing_and_not_at_startup() {
        let home = tempfile::tempdir().unwrap();
        let (config, _) = loaded(home.path(), "tools.select = \"echo\"\npermissions.allow = [\"echo\"]");
        let composition = App::builder(config).build().await.unwrap();
        let built = || {
            let snapshot = composition.app.registry.snapshot();
            let built = snapshot.tools().iter().filter(|one| one.tool.is_built());
            built.map(|one| one.tool.name().to_string()).collect::<Vec<_>>()
        };
        // The description of `skill` depends on files; the others find or call tools.
        assert_eq!(built(), ["batch", "call_tool", "skill", "subagent", "tool_search"]);
        let listed = composition.app.list_tools.handle(&Default::default()).unwrap();
        listed.tools.iter().for_each(|tool| assert!(!tool.wire().get().is_empty()));
        assert_eq!(built(), ["batch", "call_tool", "echo", "skill", "subagent", "tool_search"]);
        composition.close().await;
    }

    #[test]
    fn the_configuration_sets_the_limits_for_clients_and_their_connections() {
        let text = r#"
            [limits]
            sessions = 3
            connections = 4
            [server]
            session_idle_seconds = 5
            head_timeout_seconds = 6
            allowed_origins = ["https://app.example"]
        "#;
        let home = tempfile::tempdir().unwrap();
        let (config, environment) = loaded(home.path(), text);
        let settings = settings(&config, &server_token(&config, &environment).unwrap());
        assert_eq!((settings.max_sessions, settings.max_connections), (3, 4));
        assert_eq!(settings.session_idle, Duration::from_secs(5));
        assert_eq!(settings.head_timeout, Duration::from_secs(6));
        assert_eq!(settings.allowed_origins, ["https://app.example"]);
    }
}
