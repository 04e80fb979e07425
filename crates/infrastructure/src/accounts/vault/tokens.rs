//! What is kept, and what it is kept under.

use toolstead_domain::{ports::clock::Timestamp, principal::Principal, secret::Secret};

/// Whose tokens they are, who issued them and what they are for. Its texts are no secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TokenKey {
    /// Whose they are.
    pub principal: Principal,
    /// Who issued them: its address, with the other origins that they are renewed and revoked at.
    pub issuer: String,
    /// What they are for: the name of the grant and the origin of the service, in one text.
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
    /// What a request is made with.
    pub access_token: Secret,
    /// What another access token is got with.
    pub refresh_token: Option<Secret>,
    /// When the access token is over; `None` where nobody said.
    pub expires_at: Option<Timestamp>,
    /// What was granted, which may be less than was asked for.
    pub scopes: Vec<String>,
}
