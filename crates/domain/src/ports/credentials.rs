//! The words by which a service knows on whose behalf a request comes.

use crate::{ports::caller::Caller, principal::Principal, secret::Secret};
use async_trait::async_trait;
use std::sync::Arc;

/// The service that credentials are for. They go to this origin and nowhere else.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Resource {
    /// The grant that a person gives at once, by the name that commands know it by: `gmail`, `calendar`.
    pub grant: Arc<str>,
    /// Scheme, host and port of the service, as a URL has them: `https://gmail.googleapis.com`.
    pub origin: Arc<str>,
}

/// Headers of one request: name and value.
pub type CredentialHeaders = Vec<(String, Secret)>;

/// The reason for which there are no credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoCredentials {
    /// Nobody signed in, or what was granted is over. Signing in mends it.
    #[error("{0}")]
    SignIn(String),
    /// Signing in would not help: something is missing in the configuration, or the answer of a person was no.
    #[error("{0}")]
    Unavailable(String),
    /// The place where they are kept, or the one who issues them, did not do its part.
    #[error("{0}")]
    Failed(String),
}

/// The credentials of principals for services. One principal never gets those of another.
#[async_trait]
pub trait Credentials: Send + Sync {
    /// The reason for which nobody can have credentials for this; `None` where signing in may do.
    fn unavailable(&self, resource: &Resource) -> Option<String>;

    /// Headers for one request. What is about to run out is renewed before.
    ///
    /// # Errors
    /// [`NoCredentials`].
    async fn headers(&self, principal: &Principal, resource: &Resource) -> Result<CredentialHeaders, NoCredentials>;

    /// Headers in place of those that the service refused. Where others have renewed them meanwhile, theirs.
    ///
    /// # Errors
    /// [`NoCredentials`].
    async fn renewed(
        &self,
        principal: &Principal,
        resource: &Resource,
        refused: &CredentialHeaders,
    ) -> Result<CredentialHeaders, NoCredentials>;

    /// Has the one who calls sign in, by a page that a person opens, and returns once the credentials are there.
    ///
    /// # Errors
    /// [`NoCredentials::SignIn`] where nobody can be sent to a page.
    async fn sign_in(
        &self,
        principal: &Principal,
        resource: &Resource,
        caller: &dyn Caller,
    ) -> Result<(), NoCredentials>;
}

/// No credentials for anything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoAccounts;

#[async_trait]
impl Credentials for NoAccounts {
    fn unavailable(&self, _: &Resource) -> Option<String> {
        Some("this program signs in nowhere".into())
    }

    async fn headers(&self, _: &Principal, resource: &Resource) -> Result<CredentialHeaders, NoCredentials> {
        Err(NoCredentials::Unavailable(self.unavailable(resource).unwrap_or_default()))
    }

    async fn renewed(
        &self,
        principal: &Principal,
        resource: &Resource,
        _: &CredentialHeaders,
    ) -> Result<CredentialHeaders, NoCredentials> {
        self.headers(principal, resource).await
    }

    async fn sign_in(&self, principal: &Principal, resource: &Resource, _: &dyn Caller) -> Result<(), NoCredentials> {
        self.headers(principal, resource).await.map(drop)
    }
}
