//! Settings of the HTTP server.

use super::authenticator::Authenticator;
use crate::mcp_server::server_identity::ServerIdentity;
use std::{fmt, sync::Arc, time::Duration};
use toolstead_domain::View;
use toolstead_infrastructure::mcp::wire::lines::MAX_MESSAGE_BYTES;

/// Settings of the HTTP server. Limits apply to all clients together unless stated otherwise.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// Description of this server for clients.
    pub identity: ServerIdentity,
    /// Tokens of the principals that are admitted. Without tokens every request is refused. Ignored if `authenticator`
    /// is set.
    pub tokens: Vec<BearerToken>,
    /// Authenticator of requests, instead of the tokens.
    pub authenticator: Option<Arc<dyn Authenticator>>,
    /// View whose tools, resources and prompts the endpoint serves at its own path; `None`: all.
    pub view: Option<Arc<View>>,
    /// Names of the MCP servers that `/readyz` requires to be available.
    pub required_servers: Vec<String>,
    /// Line that `/readyz` adds to its answer while the server is ready, such as a note on missing tools. It is public.
    pub ready_note: Option<String>,
    /// Allowed names in `Host`, as protection against DNS rebinding: `localhost`, `[::1]`, or with a port
    /// `example.com:8443`. A name without a port allows any port.
    pub allowed_hosts: Vec<String>,
    /// Origins of pages that may send requests, as in `Origin`: `https://app.example.com`, or with any port
    /// `http://localhost:*`. The server's own origin is always allowed, and requests without `Origin` are not from a
    /// page.
    pub allowed_origins: Vec<String>,
    /// Maximum size of a request's body in bytes.
    pub max_body_bytes: usize,
    /// Maximum number of connections that have presented a token; further ones wait until one ends. The same limit
    /// applies to connections that have presented none; if there are more, the oldest of the peer with most of them are
    /// closed.
    pub max_connections: usize,
    /// Maximum number of concurrent requests. Further ones are refused with 503.
    pub max_in_flight: usize,
    /// Maximum number of concurrent requests per session. Further ones wait.
    pub max_in_flight_per_session: usize,
    /// Maximum number of sessions. A new one replaces the one that was idle for longest. If all are in use, the new one
    /// is refused with 503.
    pub max_sessions: usize,
    /// Time after which an idle session ends.
    pub session_idle: Duration,
    /// Maximum time for the head of a request, and maximum pause between two requests of a connection.
    pub head_timeout: Duration,
    /// Maximum time for the body of a request.
    pub body_timeout: Duration,
    /// Time without messages after which a stream sends a keep-alive comment.
    pub keep_alive: Duration,
}

impl Default for HttpSettings {
    /// Returns the settings for clients on this machine. They have no token, so every request is refused until one is
    /// added.
    fn default() -> Self {
        let loopback = ["localhost", "127.0.0.1", "[::1]"];
        Self {
            identity: ServerIdentity::default(),
            tokens: Vec::new(),
            authenticator: None,
            view: None,
            required_servers: Vec::new(),
            ready_note: None,
            allowed_hosts: loopback.map(str::to_owned).to_vec(),
            allowed_origins: Vec::new(),
            max_body_bytes: MAX_MESSAGE_BYTES,
            max_connections: 512,
            max_in_flight: 1024,
            max_in_flight_per_session: 64,
            max_sessions: 1000,
            session_idle: Duration::from_secs(30 * 60),
            head_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(60),
            keep_alive: Duration::from_secs(15),
        }
    }
}

impl HttpSettings {
    /// Sets the authenticator.
    #[must_use]
    pub fn authenticated_by(self, authenticator: Arc<dyn Authenticator>) -> Self {
        Self { authenticator: Some(authenticator), ..self }
    }
}

/// Named secret that authenticates its holder.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken {
    /// Name of the token in the audit log. Not secret.
    pub name: String,
    /// Secret, as sent after `Bearer `.
    pub secret: String,
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BearerToken").field("name", &self.name).finish_non_exhaustive()
    }
}
