//! Tokens, and the key that they are kept under.

use toolstead_domain::{ports::clock::Timestamp, principal::Principal, secret::Secret};

/// Whose tokens they are, who issued them and what they are for. Its texts are no secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TokenKey {
    /// Whose they are.
    pub principal: Principal,
    /// The issuer: its address, with the other origins that they are renewed and revoked at.
    pub issuer: String,
    /// Their purpose: the name of the grant and the origin of the service, in one text.
    pub resource: String,
}

impl TokenKey {
    /// The name of the grant.
    pub(in crate::accounts) fn grant(&self) -> &str {
        self.resource.split_once(' ').map_or(self.resource.as_str(), |(grant, _)| grant)
    }

    /// The origin of the service.
    pub(in crate::accounts) fn origin(&self) -> &str {
        self.resource.split_once(' ').map_or("", |(_, origin)| origin)
    }

    /// The issuer, without the other origins.
    pub(in crate::accounts) fn issuer_alone(&self) -> &str {
        self.issuer.split(' ').next().unwrap_or_default()
    }
}

/// Tokens of one grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    /// The token that stands in requests.
    pub access_token: Secret,
    /// The token that another access token is got with.
    pub refresh_token: Option<Secret>,
    /// The end of the access token; `None` where nobody said.
    pub expires_at: Option<Timestamp>,
    /// The scopes that were granted, which may be fewer than were asked for.
    pub scopes: Vec<String>,
}
