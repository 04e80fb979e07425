//! Credentials that a test wrote down.

use crate::{
    ports::{
        caller::Caller,
        credentials::{CredentialHeaders, Credentials, NoCredentials, Resource},
    },
    principal::Principal,
    secret::Secret,
};
use async_trait::async_trait;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Bearer tokens by principal and grant, those that come in place of refused ones, and the one that signing in gives.
#[derive(Debug, Default)]
pub struct FakeCredentials {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    held: BTreeMap<(Principal, String), String>,
    renewals: VecDeque<String>,
    by_signing_in: Option<String>,
    asked: Vec<String>,
}

impl FakeCredentials {
    /// None for anybody.
    pub fn none() -> Self {
        Self::default()
    }

    /// The same with this token of a principal for a grant.
    #[must_use]
    pub fn holding(self, principal: &Principal, grant: &str, token: &str) -> Self {
        self.state().held.insert((principal.clone(), grant.into()), token.into());
        self
    }

    /// The same with this token in place of the next one that is refused.
    #[must_use]
    pub fn renewing_to(self, token: &str) -> Self {
        self.state().renewals.push_back(token.into());
        self
    }

    /// The same with this token for whoever signs in. Without it nobody can.
    #[must_use]
    pub fn signing_in_as(self, token: &str) -> Self {
        self.state().by_signing_in = Some(token.into());
        self
    }

    /// The requests, in their order: `headers gmail`, `renewed gmail`, `sign_in gmail`.
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

fn nobody(resource: &Resource) -> NoCredentials {
    let grant = &resource.grant;
    NoCredentials::SignIn(format!("nobody is signed in for `{grant}`"))
}

#[async_trait]
impl Credentials for FakeCredentials {
    fn unavailable(&self, _: &Resource) -> Option<String> {
        None
    }

    async fn headers(&self, principal: &Principal, resource: &Resource) -> Result<CredentialHeaders, NoCredentials> {
        let mut state = self.state();
        state.asked.push(format!("headers {}", resource.grant));
        let held = state.held.get(&(principal.clone(), resource.grant.to_string()));
        held.map(|token| bearer(token)).ok_or_else(|| nobody(resource))
    }

    async fn renewed(
        &self,
        principal: &Principal,
        resource: &Resource,
        refused: &CredentialHeaders,
    ) -> Result<CredentialHeaders, NoCredentials> {
        let mut state = self.state();
        state.asked.push(format!("renewed {}", resource.grant));
        let key = (principal.clone(), resource.grant.to_string());
        // Somebody renewed them meanwhile.
        if let Some(held) = state.held.get(&key).map(|token| bearer(token)).filter(|held| held != refused) {
            return Ok(held);
        }
        match state.renewals.pop_front() {
            Some(token) => {
                state.held.insert(key, token.clone());
                Ok(bearer(&token))
            }
            None => {
                state.held.remove(&key);
                Err(nobody(resource))
            }
        }
    }

    async fn sign_in(&self, principal: &Principal, resource: &Resource, _: &dyn Caller) -> Result<(), NoCredentials> {
        let mut state = self.state();
        state.asked.push(format!("sign_in {}", resource.grant));
        let token = state.by_signing_in.clone().ok_or_else(|| nobody(resource))?;
        state.held.insert((principal.clone(), resource.grant.to_string()), token);
        Ok(())
    }
}
