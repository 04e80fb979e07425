//! How one MCP server is reached, and what it is allowed to take.

use serde::Deserialize;
use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc, time::Duration};
use tokio::io::{AsyncRead, AsyncWrite};
use toolstead_domain::{
    client_profile::ProtocolVersion, sandbox_policy::SandboxLimits, server_name::ServerName,
    tool_selection::wildcard_match,
};
use url::Url;

use crate::mcp::{client::may_ask::MayAsk, wire::lines::MAX_MESSAGE_BYTES};

/// One server of the configuration.
#[derive(Debug, Clone)]
pub struct McpServerConfig {
    /// Its name here.
    pub name: ServerName,
    /// The place that names it, such as a file of the configuration; empty where a program does.
    pub configured_in: String,
    /// How it is reached.
    pub transport: McpTransport,
    /// The revision to speak; `None`: whatever it speaks.
    pub protocol: Option<ProtocolVersion>,
    /// How its tools are named here.
    pub names: ToolNames,
    /// The tools that are listed.
    pub only_tools: OnlyTools,
    /// What goes on of its results.
    pub output: ToolOutput,
    /// The questions that it may put to those who call it.
    pub may_ask: Vec<MayAsk>,
    /// How long is waited for it.
    pub timeouts: McpTimeouts,
    /// How much is taken from it.
    pub limits: McpLimits,
    /// When it is tried again.
    pub retry: RetryPolicy,
    /// After so long without use a connection ends, and the next use makes it anew; `None`: it lasts.
    pub ends_unused_after: Option<Duration>,
    /// The server keeps state by the connection: each principal has one of its own, which ends with its last session.
    pub stateful: bool,
    /// How it is confined, if it is a child process.
    pub confinement: ServerConfinement,
    /// What is asked before each start, if it is a child process.
    pub launch_check: LaunchCheck,
}

/// The names of the tools that a server may offer, with `*` for any characters. The default is all tools.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OnlyTools(Option<Vec<String>>);

impl OnlyTools {
    /// Returns a list that includes the tools with these names, as the server spells them, and no others.
    pub fn of(patterns: Vec<String>) -> Self {
        Self(Some(patterns))
    }

    /// Returns `true` if the server may offer this tool.
    pub fn includes(&self, tool: &str) -> bool {
        self.0.as_ref().is_none_or(|patterns| patterns.iter().any(|pattern| wildcard_match(pattern, tool)))
    }

    /// Returns the patterns; `None` if all tools are included.
    pub fn patterns(&self) -> Option<&[String]> {
        self.0.as_deref()
    }
}

/// Says whether what a start would run is what somebody said yes to. It is asked before every start, as programs may change
/// in between; it may read files.
#[derive(Clone)]
pub struct LaunchCheck(Arc<dyn Fn() -> Result<(), String> + Send + Sync>);

impl LaunchCheck {
    /// A check that returns why the server is not started.
    pub fn new(check: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    pub(super) async fn passes(&self) -> Result<(), String> {
        let check = self.0.clone();
        let checked = tokio::task::spawn_blocking(move || check()).await;
        checked.unwrap_or_else(|panic| Err(panic.to_string()))
    }
}

impl Default for LaunchCheck {
    /// A check that finds nothing.
    fn default() -> Self {
        Self::new(|| Ok(()))
    }
}

impl fmt::Debug for LaunchCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LaunchCheck")
    }
}

/// How a server that is started here is confined.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerConfinement {
    /// The profile.
    pub profile: ServerProfile,
    /// Folders and files that it may read and write, beside those that the profile gives it.
    pub roots: Vec<PathBuf>,
    /// The bounds of its processes.
    pub limits: SandboxLimits,
}

/// What a server that is started here may reach. In all of them its environment is the declared one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerProfile {
    /// What the absolute paths among its arguments name, its declared roots, a private home, the machine's network.
    #[default]
    Guarded,
    /// Its declared roots and a private home. No network.
    Strict,
    /// Everything that the runtime's user may reach.
    Open,
}

impl ServerProfile {
    /// The profile as the configuration writes it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Guarded => "guarded",
            Self::Strict => "strict",
            Self::Open => "open",
        }
    }
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub enum McpTransport {
    /// As a child process, by its standard streams.
    Stdio(StdioServer),
    /// By HTTP: streamable, or the old HTTP+SSE where the server does not take the first message otherwise.
    Http(HttpServer),
    /// By streamable HTTP and nothing else.
    StreamableHttp(HttpServer),
    /// By the old HTTP+SSE (MCP 2024-11-05) and nothing else.
    Sse(HttpServer),
    /// In this process, by a pair of streams that speak as standard streams do.
    Streams(StreamServer),
}

/// A server that is started here.
#[derive(Clone, PartialEq, Eq)]
pub struct StdioServer {
    /// A path, or a name that is looked for in `PATH`.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables beside those of every child ([`crate::child_environment::base`]).
    pub env: BTreeMap<String, String>,
    /// Where it starts; `None`: where the runtime was started.
    pub working_dir: Option<PathBuf>,
}

/// A server that runs elsewhere.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpServer {
    /// Its MCP endpoint, `http` or `https`; with HTTP+SSE that of its stream.
    pub url: Url,
    /// Headers of every request, such as `Authorization`. Those of the protocol itself cannot be set.
    pub headers: BTreeMap<String, String>,
}

/// A server in this process. Each connection calls `open` once.
#[derive(Clone)]
pub struct StreamServer {
    /// Gives the two ends: what the server says, and what it hears.
    pub open: Arc<dyn Fn() -> (BoxedReader, BoxedWriter) + Send + Sync>,
}

/// What a server says.
pub type BoxedReader = Box<dyn AsyncRead + Send + Unpin>;
/// What a server hears.
pub type BoxedWriter = Box<dyn AsyncWrite + Send + Unpin>;

/// How a server's tools are named here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolNames {
    /// `mcp__{server}__{tool}`.
    #[default]
    Qualified,
    /// As the server names them.
    Plain,
}

/// What goes on of the results of a server's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutput {
    /// What is over the budget of a model is kept under a handle.
    #[default]
    Bounded,
    /// Everything that a message may hold.
    Whole,
}

/// How long is waited for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McpTimeouts {
    /// From the start of a connection to its first list of tools.
    pub connect: Duration,
    /// For the answer to `server/discover` before `initialize` is tried as well.
    pub probe: Duration,
    /// For one call, where the call itself allows as much.
    pub call: Duration,
    /// For any sign of a call (its answer, progress, a log message); `None`: as long as the call may take.
    pub idle: Option<Duration>,
    /// From the end of its input to the end of a child.
    pub close: Duration,
}

/// How much is taken from a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McpLimits {
    /// Tools.
    pub tools: usize,
    /// Pages of one list.
    pub pages: usize,
    /// Size of one message, in bytes (of an HTTP body after decompression).
    pub message_bytes: usize,
    /// Size of one tool's definition, in bytes: a description of 16 KiB and a schema of 256 KiB.
    pub definition_bytes: usize,
}

/// When a server that failed is tried again: after `first`, then twice as long each time, up to `longest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The shortest time between two attempts.
    pub first: Duration,
    /// The longest. A connection that lived as long as this has cleared its record.
    pub longest: Duration,
}

impl McpServerConfig {
    /// A server with the usual times and limits.
    pub fn new(name: ServerName, transport: McpTransport) -> Self {
        Self {
            name,
            configured_in: String::new(),
            transport,
            protocol: None,
            names: ToolNames::default(),
            only_tools: OnlyTools::default(),
            output: ToolOutput::default(),
            may_ask: vec![MayAsk::Elicitation],
            timeouts: McpTimeouts::default(),
            limits: McpLimits::default(),
            retry: RetryPolicy::default(),
            ends_unused_after: None,
            stateful: false,
            confinement: ServerConfinement::default(),
            launch_check: LaunchCheck::default(),
        }
    }
}

impl McpTransport {
    /// The transport as one word.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::Http(_) | Self::StreamableHttp(_) => "http",
            Self::Sse(_) => "sse",
            Self::Streams(_) => "in-process",
        }
    }
}

impl Default for McpTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            probe: Duration::from_secs(3),
            call: Duration::from_secs(120),
            idle: None,
            close: Duration::from_millis(1500),
        }
    }
}

impl Default for McpLimits {
    fn default() -> Self {
        Self { tools: 512, pages: 1000, message_bytes: MAX_MESSAGE_BYTES, definition_bytes: (256 + 16) << 10 }
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), longest: Duration::from_secs(60) }
    }
}

// What the configuration declares for a server may be a secret: arguments are shown, values of variables and headers
// are not.
impl fmt::Debug for StdioServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioServer")
            .field("command", &self.command)
            .field("args", &self.args)
            .field("env", &self.env.keys())
            .field("working_dir", &self.working_dir)
            .finish()
    }
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer").field("url", &shown_url(&self.url)).field("headers", &self.headers.keys()).finish()
    }
}

impl fmt::Debug for StreamServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StreamServer")
    }
}

/// An address without what may be a secret in it: user, password, query.
pub(super) fn shown_url(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_the_configuration_are_not_printed() {
        let secret = |name: &str| BTreeMap::from([(name.to_owned(), "secret".to_owned())]);
        let stdio = StdioServer { command: "npx".into(), args: vec![], env: secret("TOKEN"), working_dir: None };
        let url = Url::parse("https://user:secret@example.com/mcp?key=secret").unwrap();
        let http = HttpServer { url, headers: secret("authorization") };
        let printed = format!("{:?} {:?}", McpTransport::Stdio(stdio), McpTransport::Http(http));
        assert!(!printed.contains("secret"), "{printed}");
        assert!(printed.contains("TOKEN") && printed.contains("https://example.com/mcp"), "{printed}");
    }
}
