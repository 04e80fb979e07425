//! Authentication by bearer tokens.

use super::{
    authenticator::{AuthenticatedClient, Authenticator, NotAuthenticated, bearer, is_same_secret},
    settings::BearerToken,
};
use async_trait::async_trait;
use http::{HeaderValue, StatusCode, request::Parts};
use std::fmt;
use toolstead_domain::Principal;

/// Fixed set of tokens, each of which authenticates one principal.
#[derive(Debug)]
pub struct BearerTokens {
    holders: Vec<TokenEntry>,
}

struct TokenEntry {
    secret: Box<[u8]>,
    principal: Principal,
}

impl fmt::Debug for TokenEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenEntry").field("principal", &self.principal).finish_non_exhaustive()
    }
}

impl BearerTokens {
    /// Creates the set. Tokens with an empty secret are ignored.
    pub fn new(tokens: &[BearerToken]) -> Self {
        let holder = |token: &BearerToken| TokenEntry {
            secret: token.secret.as_bytes().into(),
            principal: Principal::token(&token.name),
        };
        Self { holders: tokens.iter().filter(|token| !token.secret.is_empty()).map(holder).collect() }
    }

    /// Returns the principal of this secret; `None` if no token has it. Every token is compared in full, so that the
    /// duration reveals nothing about the secrets.
    pub fn holder(&self, given: &str) -> Option<&Principal> {
        let given = given.as_bytes();
        self.holders.iter().fold(None, |found, holder| match is_same_secret(&holder.secret, given) {
            true => Some(&holder.principal),
            false => found,
        })
    }

    /// Returns the principal of the token in the head of a request, or the refusal.
    pub(super) fn check(&self, head: &Parts) -> Result<AuthenticatedClient, NotAuthenticated> {
        let holder = bearer(&head.headers).and_then(|given| self.holder(given));
        holder.map(|principal| AuthenticatedClient::new(principal.clone())).ok_or_else(|| {
            let refusal = NotAuthenticated::new(StatusCode::UNAUTHORIZED, "a bearer token is required");
            refusal.challenging(HeaderValue::from_static("Bearer"))
        })
    }
}

#[async_trait]
impl Authenticator for BearerTokens {
    async fn authenticate(&self, head: &Parts) -> Result<AuthenticatedClient, NotAuthenticated> {
        self.check(head)
    }
}
