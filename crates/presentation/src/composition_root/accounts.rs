//! Accounts of principals at services and MCP servers.

use crate::config::{Config, servers::mcp_server::ConfiguredServer};
use std::sync::Arc;
use toolstead_domain::Clock;
use toolstead_infrastructure::{
    accounts::{
        credentials::{AccountsParts, OAuthAccounts},
        grant::{CALENDAR, GMAIL},
        vault::Vault,
    },
    egress::connector::SystemNetwork,
    mcp::client::config::McpTransport,
    system_clock::SystemClock,
    upstream_auth::{
        settings::{SignInSettings, UpstreamAuth},
        upstream_accounts::{UpstreamServerCredentials, UpstreamServerCredentialsParts},
    },
    web::web_client::WebClient,
};

/// Folder of the tokens, in the data folder.
const FOLDER: &str = "accounts";
/// File with the key that encrypts the tokens, in the folder of the user's configuration.
const KEY_FILE: &str = "secrets.key";

/// Returns the configured accounts for a process that needs nothing else, over the network of the machine.
pub fn accounts_alone(config: &Config) -> OAuthAccounts {
    let web = WebClient::new(Arc::new(SystemNetwork::default()), config.outside.private_hosts.clone());
    accounts(config, web, Arc::new(SystemClock))
}

/// Returns the configured accounts. Nothing is created or contacted yet.
pub(super) fn accounts(config: &Config, web: WebClient, clock: Arc<dyn Clock>) -> OAuthAccounts {
    let services = [(&GMAIL, &config.outside.services.gmail), (&CALENDAR, &config.outside.services.calendar)];
    let services = services.into_iter().filter_map(|(grant, url)| Some((grant, url.as_ref().ok()?.clone())));
    OAuthAccounts::new(AccountsParts {
        client: config.outside.google.clone(),
        services: services.collect(),
        vault: vault(config),
        reach: web,
        clock,
        patience: config.permissions.approval_timeout,
    })
}

/// Returns the accounts at an MCP server for a process that needs nothing else. `None` if it is not reached by HTTP, or
/// has an `Authorization` header.
pub fn upstream_accounts_alone(server: &ConfiguredServer, config: &Config) -> Option<UpstreamServerCredentials> {
    let web = WebClient::new(Arc::new(SystemNetwork::default()), config.outside.private_hosts.clone());
    upstream_accounts(server, config, web, Arc::new(SystemClock))
}

/// Returns the accounts at an MCP server. `None` if it is not reached by HTTP, or has an `Authorization` header.
pub(super) fn upstream_accounts(
    server: &ConfiguredServer,
    config: &Config,
    web: WebClient,
    clock: Arc<dyn Clock>,
) -> Option<UpstreamServerCredentials> {
    let http = match server.transport.as_ref().ok()? {
        McpTransport::Http(http) | McpTransport::StreamableHttp(http) | McpTransport::Sse(http) => http,
        McpTransport::Stdio(_) | McpTransport::Streams(_) => return None,
    };
    if http.headers.contains_key("authorization") {
        return None;
    }
    let auth = server.auth.clone().unwrap_or_else(|| UpstreamAuth::OAuth(SignInSettings::default()));
    Some(UpstreamServerCredentials::new(UpstreamServerCredentialsParts {
        server: http.url.clone(),
        auth,
        vault: vault(config),
        web,
        clock,
    }))
}

/// Returns the configured vault, or the reason why there is none, for display.
fn vault(config: &Config) -> Result<Vault, String> {
    let nowhere = |what: &str, variable: &str| format!("no place is known for {what}: set HOME or {variable}");
    let folder = config.folders.data.as_ref().ok_or_else(|| nowhere("tokens", "XDG_DATA_HOME"))?.join(FOLDER);
    let usual = || config.folders.config.as_ref().map(|folder| folder.join(KEY_FILE));
    let key_file = config.outside.key_file.clone().or_else(usual);
    let key_file = key_file.ok_or_else(|| nowhere("the key of tokens", "XDG_CONFIG_HOME"))?;
    Vault::open(folder, key_file).map_err(|error| error.to_string())
}
