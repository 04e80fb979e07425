//! The HTTPS client that all servers share.

use super::http::client::USER_AGENT;
use std::{sync::OnceLock, time::Duration};

/// How long a TCP and TLS connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an idle connection is kept for the next request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Opens and keeps HTTP connections: no proxies, no redirects (so that no token gets anywhere else), `TCP_NODELAY`.
///
/// Made when the first server with TLS needs it: reading the system's certificates takes longer than starting the rest.
#[derive(Debug, Default)]
pub struct HttpConnector {
    client: OnceLock<Result<reqwest::Client, String>>,
}

impl HttpConnector {
    /// The client.
    ///
    /// # Errors
    /// The reason why there is none, for the operator.
    pub(super) fn client(&self) -> Result<reqwest::Client, String> {
        self.client.get_or_init(build).clone()
    }
}

fn build() -> Result<reqwest::Client, String> {
    // Fails where the program has chosen one, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder()
        .user_agent(USER_AGENT)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .referer(false)
        .tcp_nodelay(true)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT);
    builder.build().map_err(|error| format!("there is no HTTP client: {error}"))
}
