//! How the HTTP server is to be run.

use super::authenticator::Authenticator;
use crate::mcp_server::server_identity::ServerIdentity;
use std::{fmt, sync::Arc, time::Duration};
use toolstead_infrastructure::mcp::wire::lines::MAX_MESSAGE_BYTES;

/// What an HTTP server allows and demands. The limits hold for all clients together where nothing else is said.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// What clients are told about this server.
    pub identity: ServerIdentity,
    /// Who gets in. Without any token nobody does. They count where there is no authenticator.
    pub tokens: Vec<BearerToken>,
    /// Says who gets in, in place of the tokens.
    pub authenticator: Option<Arc<dyn Authenticator>>,
    /// MCP servers without which it is not ready, by name.
    pub required_servers: Vec<String>,
    /// Line that `/readyz` adds to its answer while the server is ready, such as what its tools lack. It is public.
    pub ready_note: Option<String>,
    /// Names that `Host` may bear, against DNS rebinding: `localhost`, `[::1]`, or with a port `example.com:8443`.
    /// Without a port any port fits.
    pub allowed_hosts: Vec<String>,
    /// Pages that may call, as `Origin` names them: `https://app.example.com`, or with any port `http://localhost:*`.
    /// The server's own origin may always, and requests without `Origin` do not come from a page.
    pub allowed_origins: Vec<String>,
    /// The largest body of a request.
    pub max_body_bytes: usize,
    /// Connections at once that have shown a token; more wait until one ends. There may be as many that have shown none;
    /// of more, the oldest of the peer that holds most of them are closed.
    pub max_connections: usize,
    /// Requests at once; more are refused with 503.
    pub max_in_flight: usize,
    /// Requests of one session that run at once; more wait for their turn.
    pub max_in_flight_per_session: usize,
    /// Sessions at once. The one that was idle for longest makes room for a new one; where requests or streams are open
    /// in all of them, that one is refused with 503.
    pub max_sessions: usize,
    /// A session that is not used for so long is over.
    pub session_idle: Duration,
    /// How long a client may take for the head of a request, and be silent between two.
    pub head_timeout: Duration,
    /// How long a client may take for the body of a request.
    pub body_timeout: Duration,
    /// How often a stream on which nothing happens shows that it is alive.
    pub keep_alive: Duration,
}

impl Default for HttpSettings {
    /// For clients on this machine. There is no token yet.
    fn default() -> Self {
        let loopback = ["localhost", "127.0.0.1", "[::1]"];
        Self {
            identity: ServerIdentity::default(),
            tokens: Vec::new(),
            authenticator: None,
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
    /// The same, where this one says who gets in.
    #[must_use]
    pub fn authenticated_by(self, authenticator: Arc<dyn Authenticator>) -> Self {
        Self { authenticator: Some(authenticator), ..self }
    }
}

/// A secret that lets its holder in.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken {
    /// Tells tokens apart in the audit trail; no secret.
    pub name: String,
    /// The secret itself, as it stands behind `Bearer `.
    pub secret: String,
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BearerToken").field("name", &self.name).finish_non_exhaustive()
    }
}
