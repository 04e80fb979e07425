//! Credentials that a test defines.

use crate::{
    ports::{
        caller::Caller,
        credentials::{CredentialHeaders, Credentials, CredentialsError, ProtectedResource},
    },
    principal::Principal,
    secret::Secret,
};
use async_trait::async_trait;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Bearer tokens by principal and grant, tokens that replace refused ones, and the token that signing in returns.
#[derive(Debug, Default)]
pub struct FakeCredentials {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    tokens: BTreeMap<(Principal, String), String>,
    renewals: VecDeque<String>,
    by_signing_in: Option<String>,
    asked: Vec<String>,
}

impl FakeCredentials {
    /// Creates credentials without any tokens.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds a token of a principal for a grant.
    #[must_use]
    pub fn holding(self, principal: &Principal, grant: &str, token: &str) -> Self {
        self.state().tokens.insert((principal.clone(), grant.into()), token.into());
        self
    }

    /// Adds a token that replaces the next refused one.
    #[must_use]
    pub fn renewing_to(self, token: &str) -> Self {
        self.state().renewals.push_back(token.into());
        self
    }

    /// Sets the token that signing in returns. Without it, signing in fails.
    #[must_use]
    pub fn signing_in_as(self, token: &str) -> Self {
        self.state().by_signing_in = Some(token.into());
        self
    }

    /// Returns the requests, in order: `headers gmail`, `renewed gmail`, `sign_in gmail`.
    pub fn asked(&self) -> Vec<String> {
        self.state().asked.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bearer(token: &str) -> CredentialHeaders {
    vec![("authorization".into(), Secret::new(format!("Bearer {token}")))]
}

fn not_signed_in(resource: &ProtectedResource) -> CredentialsError {
    let grant = &resource.grant;
    CredentialsError::SignIn(format!("nobody is signed in for `{grant}`"))
}

#[async_trait]
impl Credentials for FakeCredentials {
    fn unavailable(&self, _: &ProtectedResource) -> Option<String> {
        None
    }

    async fn headers(
        &self,
        principal: &Principal,
        resource: &ProtectedResource,
    ) -> Result<CredentialHeaders, CredentialsError> {
        let mut state = self.state();
        state.asked.push(format!("headers {}", resource.grant));
        let held = state.tokens.get(&(principal.clone(), resource.grant.to_string()));
        held.map(|token| bearer(token)).ok_or_else(|| not_signed_in(resource))
    }

    async fn renewed(
        &self,
        principal: &Principal,
        resource: &ProtectedResource,
        refused: &CredentialHeaders,
    ) -> Result<CredentialHeaders, CredentialsError> {
        let mut state = self.state();
        state.asked.push(format!("renewed {}", resource.grant));
        let key = (principal.clone(), resource.grant.to_string());
        // Another request has renewed them in the meantime.
        if let Some(held) = state.tokens.get(&key).map(|token| bearer(token)).filter(|held| held != refused) {
            return Ok(held);
        }
        match state.renewals.pop_front() {
            Some(token) => {
                state.tokens.insert(key, token.clone());
                Ok(bearer(&token))
            }
            None => {
                state.tokens.remove(&key);
                Err(not_signed_in(resource))
            }
        }
    }

    async fn sign_in(
        &self,
        principal: &Principal,
        resource: &ProtectedResource,
        _: &dyn Caller,
    ) -> Result<(), CredentialsError> {
        let mut state = self.state();
        state.asked.push(format!("sign_in {}", resource.grant));
        let token = state.by_signing_in.clone().ok_or_else(|| not_signed_in(resource))?;
        state.tokens.insert((principal.clone(), resource.grant.to_string()), token);
        Ok(())
    }
}
