//! Configuration of one upstream MCP server: transport, confinement, timeouts and limits.

use serde::Deserialize;
use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc, time::Duration};
use tokio::io::{AsyncRead, AsyncWrite};
use toolstead_domain::{
    ChangePolicy, Credentials, Principal, ProtocolVersion, SandboxLimits, ServerName,
    ports::credentials::ProtectedResource, tool_selection::wildcard_match,
};
use url::Url;

use crate::mcp::{client::connection::question_kind::QuestionKind, wire::lines::MAX_MESSAGE_BYTES};

/// Configuration of one upstream MCP server.
#[derive(Debug, Clone)]
pub struct UpstreamConfig {
    /// Name of the server in Toolstead.
    pub name: ServerName,
    /// Source that defines the server, such as a configuration file. Empty if the embedding application defines it.
    pub configured_in: String,
    /// Transport to the server.
    pub transport: McpTransport,
    /// Protocol version to use. `None` accepts any version that the server offers.
    pub protocol: Option<ProtocolVersion>,
    /// Naming scheme of the server's tools.
    pub names: ToolNaming,
    /// Tools of the server to list.
    pub only_tools: ToolAllowlist,
    /// Size limit on the server's results.
    pub output: OutputSizePolicy,
    /// Kinds of questions that the server may ask its callers.
    pub may_ask: Vec<QuestionKind>,
    /// Timeouts for the server.
    pub timeouts: McpTimeouts,
    /// Limits on what is accepted from the server.
    pub limits: UpstreamSizeLimits,
    /// Pauses between connection attempts.
    pub retry: Backoff,
    /// Idle time after which a connection is closed. The next call opens a new one. `None` never closes idle
    /// connections.
    pub ends_unused_after: Option<Duration>,
    /// Set for a server that keeps state per connection: each principal has its own connection, which is closed
    /// when the principal's last session ends.
    pub stateful: bool,
    /// Confinement of the server, if it is a child process.
    pub confinement: ServerConfinement,
    /// Check to run before each start, if the server is a child process.
    pub launch_check: LaunchCheck,
    /// Treatment of changed definitions.
    pub on_change: ChangePolicy,
    /// Credentials for the server, if it is reached over HTTP. `None` sends the configured headers only.
    pub credentials: Option<UpstreamCredentials>,
}

/// Credentials for the requests to a server over HTTP.
#[derive(Clone)]
pub struct UpstreamCredentials {
    /// Source of the credentials.
    pub source: Arc<dyn Credentials>,
    /// Resource that the credentials are for.
    pub resource: ProtectedResource,
    /// Owner of the credentials.
    pub owner: CredentialsOwner,
    /// `true` to send requests without credentials if there are none, until the server refuses such a request.
    pub is_optional: bool,
    /// `true` if users obtain the credentials by signing in.
    pub can_sign_in: bool,
}

/// Owner of the credentials for a server, which decides who may share a connection to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialsOwner {
    /// This program: calls of all principals share connections.
    Program,
    /// The principal of a call: no two principals share a connection. The lists of the server are those of the local
    /// user.
    Principal,
}

/// Names of the tools that a server may offer, with `*` for any characters. The default is all tools.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolAllowlist(Option<Vec<String>>);

impl ToolAllowlist {
    /// Returns a list of the tools whose names match one of these patterns. Names are those that the server uses.
    pub fn of(patterns: Vec<String>) -> Self {
        Self(Some(patterns))
    }

    /// Returns `true` if the server may offer this tool.
    pub fn includes(&self, tool: &str) -> bool {
        self.0.as_ref().is_none_or(|patterns| patterns.iter().any(|pattern| wildcard_match(pattern, tool)))
    }

    /// Returns the patterns, or `None` if all tools are included.
    pub fn patterns(&self) -> Option<&[String]> {
        self.0.as_deref()
    }
}

/// Check that a server's program is still the one that the user approved. It runs before every start, because programs
/// may change in between. It may read files.
#[derive(Clone)]
pub struct LaunchCheck(Arc<dyn Fn() -> Result<(), String> + Send + Sync>);

impl LaunchCheck {
    /// Creates a check from a function that returns the reason if the server must not be started.
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
    /// Returns a check that always passes.
    fn default() -> Self {
        Self::new(|| Ok(()))
    }
}

impl fmt::Debug for LaunchCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LaunchCheck")
    }
}

/// Confinement of a server that is a child process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerConfinement {
    /// Base set of permissions.
    pub profile: ServerSandboxProfile,
    /// Files and folders that the server may read and write in addition to those of the profile.
    pub roots: Vec<PathBuf>,
    /// Resource limits of the server's processes.
    pub limits: SandboxLimits,
}

/// Permissions of a server that is a child process. Its environment never contains more than the base variables and the
/// configured ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerSandboxProfile {
    /// Paths: those in the arguments and environment variables, the configured roots and working folder (by default the
    /// first workspace root), and a private home. Network: unrestricted.
    #[default]
    Guarded,
    /// Paths: the configured roots and working folder, and a private home. Network: none.
    Strict,
    /// Everything that the user who runs Toolstead can access.
    Open,
}

impl ServerSandboxProfile {
    /// Returns the profile's name in the configuration.
    pub fn label(self) -> &'static str {
        match self {
            Self::Guarded => "guarded",
            Self::Strict => "strict",
            Self::Open => "open",
        }
    }
}

/// Transport to an upstream server.
#[derive(Debug, Clone)]
pub enum McpTransport {
    /// Child process that serves MCP on its standard streams.
    Stdio(StdioUpstream),
    /// Streamable HTTP, or the old HTTP+SSE if the server rejects the first message over streamable HTTP.
    Http(HttpUpstream),
    /// Streamable HTTP only.
    StreamableHttp(HttpUpstream),
    /// Old HTTP+SSE (MCP 2024-11-05) only.
    Sse(HttpUpstream),
    /// Server in this process, on a pair of streams with the format of the stdio transport.
    Streams(InProcessUpstream),
}

/// Upstream server that Toolstead starts as a child process.
#[derive(Clone, PartialEq, Eq)]
pub struct StdioUpstream {
    /// Path of the program, or a name to search for in `PATH`.
    pub command: String,
    /// Command-line arguments.
    pub args: Vec<String>,
    /// Environment variables in addition to those of every child process ([`crate::child_environment::base`]).
    pub env: BTreeMap<String, String>,
    /// Working folder. `None` is the default of the profile: the first workspace root (`guarded`), or the folder in
    /// which Toolstead was started.
    pub working_dir: Option<PathBuf>,
}

/// Upstream server that is reached over HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpUpstream {
    /// URL of the MCP endpoint (`http` or `https`). For HTTP+SSE, the URL of the event stream.
    pub url: Url,
    /// Headers of every request, such as `Authorization`. Headers of the protocol itself cannot be set.
    pub headers: BTreeMap<String, String>,
}

/// Upstream server in this process. Each connection calls `open` once.
#[derive(Clone)]
pub struct InProcessUpstream {
    /// Returns the reader of the server's output and the writer of its input.
    pub open: Arc<dyn Fn() -> (BoxedReader, BoxedWriter) + Send + Sync>,
}

/// Output of an in-process server.
pub type BoxedReader = Box<dyn AsyncRead + Send + Unpin>;
/// Input of an in-process server.
pub type BoxedWriter = Box<dyn AsyncWrite + Send + Unpin>;

/// Naming scheme of an upstream server's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolNaming {
    /// Qualified names: `mcp__{server}__{tool}`.
    #[default]
    Qualified,
    /// Unchanged names of the server.
    Plain,
}

/// Size limit on the results of an upstream server's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputSizePolicy {
    /// Output beyond the model's budget is stored under a handle.
    #[default]
    Bounded,
    /// No limit other than the maximum size of a message.
    Whole,
}

/// Timeouts for one upstream server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McpTimeouts {
    /// Timeout from the start of a connection to its first list of tools.
    pub connect: Duration,
    /// Timeout of the response to `server/discover`, after which `initialize` is tried as well.
    pub probe: Duration,
    /// Timeout of one call. An earlier deadline of the call itself has precedence.
    pub call: Duration,
    /// Maximum time without a message about a call (response, progress, log message). `None` for no such limit.
    pub idle: Option<Duration>,
    /// Grace period from closing a child process's standard input until the process is killed.
    pub close: Duration,
}

/// Limits on what is accepted from one upstream server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpstreamSizeLimits {
    /// Maximum number of tools.
    pub tools: usize,
    /// Maximum number of pages of one list.
    pub pages: usize,
    /// Maximum size of one message, in bytes (for HTTP bodies, after decompression).
    pub message_bytes: usize,
    /// Maximum size of one tool definition, in bytes. The default is a description of 16 KiB and a schema of 256 KiB.
    pub definition_bytes: usize,
}

/// Pauses between attempts to connect to a failed server: `first`, then doubled each time, up to `longest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Shortest pause between two attempts.
    pub first: Duration,
    /// Longest pause. A connection that lasts at least this long resets the pause to `first`.
    pub longest: Duration,
}

impl UpstreamConfig {
    /// Creates a configuration with the default timeouts and limits.
    pub fn new(name: ServerName, transport: McpTransport) -> Self {
        Self {
            name,
            configured_in: String::new(),
            transport,
            protocol: None,
            names: ToolNaming::default(),
            only_tools: ToolAllowlist::default(),
            output: OutputSizePolicy::default(),
            may_ask: vec![QuestionKind::Elicitation],
            timeouts: McpTimeouts::default(),
            limits: UpstreamSizeLimits::default(),
            retry: Backoff::default(),
            ends_unused_after: None,
            stateful: false,
            confinement: ServerConfinement::default(),
            launch_check: LaunchCheck::default(),
            credentials: None,
            on_change: ChangePolicy::default(),
        }
    }

    /// Returns the principal whose credentials the connections for calls of `caller` carry. `None` if all principals
    /// share them.
    pub(super) fn owner_for(&self, caller: &Principal) -> Option<Principal> {
        let is_own = self.credentials.as_ref().is_some_and(|own| own.owner == CredentialsOwner::Principal);
        is_own.then(|| caller.clone())
    }
}

impl McpTransport {
    /// Returns the transport as one word.
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

impl Default for UpstreamSizeLimits {
    fn default() -> Self {
        Self { tools: 512, pages: 1000, message_bytes: MAX_MESSAGE_BYTES, definition_bytes: (256 + 16) << 10 }
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), longest: Duration::from_secs(60) }
    }
}

// The `Debug` output shows arguments. Values of environment variables and headers may be secrets and are left out.
impl fmt::Debug for StdioUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioUpstream")
            .field("command", &self.command)
            .field("args", &self.args)
            .field("env", &self.env.keys())
            .field("working_dir", &self.working_dir)
            .finish()
    }
}

impl fmt::Debug for HttpUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpUpstream")
            .field("url", &shown_url(&self.url))
            .field("headers", &self.headers.keys())
            .finish()
    }
}

impl fmt::Debug for UpstreamCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamCredentials")
            .field("resource", &self.resource)
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for InProcessUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InProcessUpstream")
    }
}

/// Returns a URL without the parts that may be secret: user, password and query.
pub(super) fn shown_url(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_the_configuration_are_not_printed() {
        let secret = |name: &str| BTreeMap::from([(name.to_owned(), "secret".to_owned())]);
        let stdio = StdioUpstream { command: "npx".into(), args: vec![], env: secret("TOKEN"), working_dir: None };
        let url = Url::parse("https://user:secret@example.com/mcp?key=secret").unwrap();
        let http = HttpUpstream { url, headers: secret("authorization") };
        let printed = format!("{:?} {:?}", McpTransport::Stdio(stdio), McpTransport::Http(http));
        assert!(!printed.contains("secret"), "{printed}");
        assert!(printed.contains("TOKEN") && printed.contains("https://example.com/mcp"), "{printed}");
    }
}
