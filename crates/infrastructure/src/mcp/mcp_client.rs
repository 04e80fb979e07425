//! Client of one MCP server, for applications that need nothing else of Toolstead.

use crate::{
    egress::connector::{Connector, SystemNetwork},
    http::client::HttpClient,
    mcp::client::{
        Upstream, UpstreamStatus,
        config::{HttpUpstream, McpTransport, StdioUpstream, ToolNaming, UpstreamConfig},
        connection::{UpstreamDeps, question_kind::ServedClients},
        transport::server_launcher::ServerLauncher,
    },
};
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    io,
    sync::Arc,
    time::{Duration, Instant},
};
use toolstead_domain::{
    CallContext, CallId, CallOutcome, CallPermissions, ClientProfile, InvalidServerName, Principal, ProviderState,
    ServerName, Tool, ToolCall, ToolFailure, ToolProvider, ToolResult, ToolSource, error_kind::ErrorKind,
};
use url::Url;
use uuid::Uuid;

/// Name of the server if the application gives none.
const UNNAMED: &str = "server";
/// Maximum number of tool names listed in the error for an unknown tool.
const NAMES_TOLD: usize = 20;

/// Connection to one MCP server. It lists tools, calls them and closes. Calls are not checked by permission rules and
/// not recorded in the audit log; for both, register the server with an application.
///
/// The next call reopens a lost connection. Dropping the client ends the server's process.
///
/// ```no_run
/// # use toolstead_infrastructure::mcp::mcp_client::McpClient;
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = McpClient::start("npx", ["-y", "@modelcontextprotocol/server-everything"]).await?;
/// let sum = client.call("get-sum", serde_json::json!({"a": 1, "b": 2})).await?;
/// println!("{}", sum.joined_text());
/// client.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct McpClient {
    server: Arc<Upstream>,
    /// Timeout of one call.
    time: Duration,
}

/// Reason why the connection to a server failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpConnectError {
    /// This process cannot start child processes.
    #[error("MCP servers cannot be started here")]
    Launcher(#[source] io::Error),
    /// This process has no working folder.
    #[error("the folder that this program was started in cannot be found")]
    WorkingFolder(#[source] io::Error),
    /// The URL is invalid.
    #[error("`{address}` is not a valid address of an MCP server: write it in full, as in `https://example.com/mcp`")]
    Address {
        /// URL as given.
        address: String,
        /// Error of the URL parser.
        #[source]
        source: url::ParseError,
    },
    /// The server name is invalid.
    #[error(transparent)]
    Name(#[from] InvalidServerName),
    /// The server did not start, did not respond or rejected the connection.
    #[error("no connection to the MCP server: {reason}")]
    NotReady {
        /// Reason, followed by the last lines of the server's standard error.
        reason: String,
    },
}

impl McpClient {
    /// Starts a program that serves MCP on its standard streams and connects to it. The program is confined by the
    /// profile `guarded` and gets the environment of every child process (`docs/internals/sandbox.md`). Call this within a
    /// tokio runtime; `helper::enter_if_helper()` must be the first line of `main`.
    ///
    /// # Errors
    /// Returns [`McpConnectError`]; no process is left running. Without the feature `mcp-stdio` every such server is
    /// unavailable.
    pub async fn start<A: Into<String>>(
        command: impl Into<String>,
        args: impl IntoIterator<Item = A>,
    ) -> Result<Self, McpConnectError> {
        let args = args.into_iter().map(Into::into).collect();
        let stdio = StdioUpstream { command: command.into(), args, env: BTreeMap::new(), working_dir: None };
        Self::connect(McpTransport::Stdio(stdio)).await
    }

    /// Connects to the server at this URL, `http` or `https`.
    ///
    /// # Errors
    /// Same as [`start`](Self::start).
    pub async fn at(address: &str) -> Result<Self, McpConnectError> {
        let url = Url::parse(address);
        let url = url.map_err(|source| McpConnectError::Address { address: address.into(), source })?;
        Self::connect(McpTransport::Http(HttpUpstream { url, headers: BTreeMap::new() })).await
    }

    /// Connects to a server over a transport with its own environment variables, headers or streams.
    ///
    /// # Errors
    /// Same as [`start`](Self::start).
    pub async fn connect(transport: McpTransport) -> Result<Self, McpConnectError> {
        let launcher = match &transport {
            McpTransport::Stdio(_) => own_launcher()?,
            McpTransport::Http(_)
            | McpTransport::StreamableHttp(_)
            | McpTransport::Sse(_)
            | McpTransport::Streams(_) => None,
        };
        let deps = UpstreamDeps {
            launcher,
            http: HttpClient::new(Connector::to_configured_hosts(Arc::new(SystemNetwork::default()))),
            clients: ServedClients::default(),
        };
        let config = UpstreamConfig { names: ToolNaming::Plain, ..UpstreamConfig::new(name(UNNAMED)?, transport) };
        Self::connect_with(config, deps).await
    }

    /// Connects to a server with custom timeouts, limits, confinement and dependencies.
    ///
    /// # Errors
    /// Same as [`start`](Self::start).
    pub async fn connect_with(config: UpstreamConfig, deps: UpstreamDeps) -> Result<Self, McpConnectError> {
        let time = config.timeouts.call;
        let server = Upstream::start(config, deps);
        server.refresh().await;
        let status = server.status();
        if status.state == ProviderState::Ready {
            return Ok(Self { server, time });
        }
        server.close().await;
        let reason = [vec![status.state.to_string()], status.stderr].concat().join("\n");
        Err(McpConnectError::NotReady { reason })
    }

    /// Returns the state of the server: its own name, the protocol version and the warnings.
    pub fn status(&self) -> UpstreamStatus {
        self.server.status()
    }

    /// Returns the tools as last listed. The list is refreshed when the server reports a change.
    ///
    /// # Errors
    /// Returns [`ToolFailure`] if the server has never listed its tools.
    pub async fn tools(&self) -> Result<Vec<Tool>, ToolFailure> {
        let listed = self.server.list().await;
        listed.map_err(|error| ToolFailure::new(ErrorKind::Unavailable, error.to_string()))
    }

    /// Calls a tool by the server's own name for it. `arguments` is a JSON object. A failure that the tool reports in
    /// its result is `Ok` with `isError`. Dropping the future cancels the call.
    ///
    /// # Errors
    /// Returns [`ToolFailure`] if the tool does not exist, the arguments are not an object, the server is unavailable,
    /// timed out or refused the call, or the tool requires input, because no user is available to provide it.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<ToolResult, ToolFailure> {
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            other => {
                let shown: String = other.to_string().chars().take(80).collect();
                let message = format!("the arguments of `{tool}` are not a JSON object: {shown}");
                return Err(ToolFailure::new(ErrorKind::InvalidInput, message));
            }
        };
        let tool = Arc::new(self.find(tool).await?);
        let call = ToolCall {
            id: CallId(Uuid::now_v7()),
            principal: Principal::local(),
            session: UNNAMED.into(),
            called_as: tool.name().to_string(),
            tool: tool.clone(),
            arguments,
            meta: Map::new(),
        };
        let grant = CallPermissions::new(Arc::default(), tool, Vec::new());
        let client = ClientProfile::without_protocol(UNNAMED);
        let context = CallContext::new(&call, &grant, &client, Instant::now() + self.time);
        match self.server.call(&call, &context).await? {
            CallOutcome::Done(result) => Ok(result),
            CallOutcome::InputRequired(required) => {
                let asked: Vec<&str> = required.requests.keys().map(String::as_str).collect();
                let message = format!("the server asks for input, which is not supported here: {}", asked.join(", "));
                Err(ToolFailure::new(ErrorKind::Unavailable, message))
            }
        }
    }

    /// Closes the connection, ends the server's process and waits until it has exited.
    pub async fn close(self) {
        self.server.close().await;
    }

    async fn find(&self, name: &str) -> Result<Tool, ToolFailure> {
        let tools = self.tools().await?;
        if let Some(tool) = tools.iter().find(|tool| own_name(tool) == Some(name)) {
            return Ok(tool.clone());
        }
        let mut names: Vec<&str> = tools.iter().filter_map(own_name).take(NAMES_TOLD).collect();
        if tools.len() > NAMES_TOLD {
            names.push("…");
        }
        let message = format!("the server has no tool `{name}`");
        Err(ToolFailure::new(ErrorKind::NotFound, message).next(format!("It has {}.", names.join(", "))))
    }
}

/// Returns a launcher with this process's environment and working folder.
#[cfg(feature = "mcp-stdio")]
fn own_launcher() -> Result<Option<Arc<dyn ServerLauncher>>, McpConnectError> {
    Ok(Some(Arc::new(crate::mcp::client::transport::stdio::StdioLauncher {
        launcher: crate::sandbox::launcher::Launcher::start().map_err(McpConnectError::Launcher)?,
        environment: crate::child_environment::base(|name| std::env::var(name).ok()),
        working_dir: std::env::current_dir().map_err(McpConnectError::WorkingFolder)?,
        roots: toolstead_domain::workspace_roots::WorkspaceRoots::default(),
        sealed: Vec::new(),
        homes: None,
    })))
}

#[cfg(not(feature = "mcp-stdio"))]
fn own_launcher() -> Result<Option<Arc<dyn ServerLauncher>>, McpConnectError> {
    Ok(None)
}

fn name(text: &str) -> Result<ServerName, McpConnectError> {
    Ok(ServerName::parse(text)?)
}

/// Returns the server's own name of a tool.
fn own_name(tool: &Tool) -> Option<&str> {
    match tool.source() {
        ToolSource::McpServer { tool, .. } => Some(tool),
        ToolSource::BuiltIn | ToolSource::Embedded(_) => None,
    }
}
