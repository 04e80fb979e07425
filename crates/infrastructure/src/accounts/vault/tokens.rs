//! Tokens, and the key under which they are stored.

use toolstead_domain::{Principal, Secret, Timestamp};

/// Name of the grants of MCP servers. Their origin is the resource URI. No grant of a service has this name.
pub(crate) const MCP_SERVER: &str = "mcp_server";

/// Principal, issuer and purpose of tokens. Contains no secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TokenLookupKey {
    /// Principal who owns the tokens.
    pub principal: Principal,
    /// Issuer, with the other origins at which the tokens are renewed and revoked, separated by spaces.
    pub issuer: String,
    /// Purpose: the name of the grant and the origin of the service, separated by a space.
    pub resource: String,
}

impl TokenLookupKey {
    /// Returns the name of the grant.
    pub(crate) fn grant(&self) -> &str {
        self.resource.split_once(' ').map_or(self.resource.as_str(), |(grant, _)| grant)
    }

    /// Returns the origin of the service, or the resource URI of an MCP server.
    pub(crate) fn origin(&self) -> &str {
        self.resource.split_once(' ').map_or("", |(_, origin)| origin)
    }

    /// Returns the issuer, without the other origins.
    pub(in crate::accounts) fn issuer_alone(&self) -> &str {
        self.issuer.split(' ').next().unwrap_or_default()
    }
}

/// Tokens of one grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    /// Token to send in requests.
    pub access_token: Secret,
    /// Token with which to obtain a new access token.
    pub refresh_token: Option<Secret>,
    /// Expiry of the access token; `None` if the issuer states none.
    pub expires_at: Option<Timestamp>,
    /// Granted scopes, which may be fewer than requested.
    pub scopes: Vec<String>,
    /// Registration of the client that the tokens were issued to, as JSON. Only grants of MCP servers have one.
    pub registration: Option<Secret>,
}
