//! Credentials that identify a principal to a service.

use crate::{ports::caller::Caller, principal::Principal, secret::Secret};
use async_trait::async_trait;
use std::sync::Arc;

/// Service that credentials are for. They are sent to this origin only.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProtectedResource {
    /// Grant that the user gives as a unit, by its name in commands: `gmail`, `calendar`.
    pub grant: Arc<str>,
    /// Scheme, host and port of the service, as in a URL: `https://gmail.googleapis.com`. For an MCP server, its
    /// resource URI.
    pub origin: Arc<str>,
}

/// Headers of one request: name and value.
pub type CredentialHeaders = Vec<(String, Secret)>;

/// Refusal of a service with the HTTP status 401, or 403 for a missing scope (RFC 6750, section 3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// HTTP status.
    pub status: u16,
    /// Value of the header `WWW-Authenticate`, if there is one.
    pub header: Option<String>,
}

impl Challenge {
    /// Returns `true` if the credentials are valid and lack a permission.
    ///
    /// ```
    /// use toolstead_domain::ports::credentials::Challenge;
    ///
    /// let header = Some("Bearer error=\"insufficient_scope\", scope=\"notes.write\"".to_owned());
    /// assert!(Challenge { status: 403, header }.is_insufficient_scope());
    /// assert!(!Challenge { status: 401, header: None }.is_insufficient_scope());
    /// ```
    pub fn is_insufficient_scope(&self) -> bool {
        self.status == 403 && self.header.as_ref().is_some_and(|header| header.contains("insufficient_scope"))
    }
}

/// Reason why there are no credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialsError {
    /// The principal has not signed in, or the grant has expired or was revoked. Signing in again solves it.
    #[error("{0}")]
    SignIn(String),
    /// Signing in would not help: the configuration is incomplete, or the user declined.
    #[error("{0}")]
    Unavailable(String),
    /// The store of the credentials or their issuer failed.
    #[error("{0}")]
    Failed(String),
}

/// Credentials of principals for services. A principal never receives those of another.
#[async_trait]
pub trait Credentials: Send + Sync {
    /// Returns the reason why no principal can have credentials for this service; `None` if signing in may work.
    fn unavailable(&self, resource: &ProtectedResource) -> Option<String>;

    /// Returns headers for one request. Credentials that are about to expire are renewed first.
    ///
    /// # Errors
    /// [`CredentialsError`] if there are none.
    async fn headers(
        &self,
        principal: &Principal,
        resource: &ProtectedResource,
    ) -> Result<CredentialHeaders, CredentialsError>;

    /// Returns headers in place of those that the service refused. If they have been renewed in the meantime, returns
    /// the renewed ones.
    ///
    /// # Errors
    /// [`CredentialsError`] if there are none.
    async fn renewed(
        &self,
        principal: &Principal,
        resource: &ProtectedResource,
        refused: &CredentialHeaders,
    ) -> Result<CredentialHeaders, CredentialsError>;

    /// Returns headers in place of those that the service refused with this challenge. Credentials that lack a scope
    /// are requested again with all scopes. The default implementation calls [`renewed`](Self::renewed).
    ///
    /// # Errors
    /// [`CredentialsError`] if there are none, or if the principal must sign in again for the missing scopes.
    async fn challenged(
        &self,
        principal: &Principal,
        resource: &ProtectedResource,
        refused: &CredentialHeaders,
        challenge: &Challenge,
    ) -> Result<CredentialHeaders, CredentialsError> {
        let _ = challenge;
        self.renewed(principal, resource, refused).await
    }

    /// Signs the caller in through a page that the user opens, and returns once the credentials are available.
    ///
    /// # Errors
    /// [`CredentialsError::SignIn`] if no user can be sent to a page.
    async fn sign_in(
        &self,
        principal: &Principal,
        resource: &ProtectedResource,
        caller: &dyn Caller,
    ) -> Result<(), CredentialsError>;
}

/// Credentials for no service.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoAccounts;

#[async_trait]
impl Credentials for NoAccounts {
    fn unavailable(&self, _: &ProtectedResource) -> Option<String> {
        Some("this program does not support signing in".into())
    }

    async fn headers(
        &self,
        _: &Principal,
        resource: &ProtectedResource,
    ) -> Result<CredentialHeaders, CredentialsError> {
        Err(CredentialsError::Unavailable(self.unavailable(resource).unwrap_or_default()))
    }

    async fn renewed(
        &self,
        principal: &Principal,
        resource: &ProtectedResource,
        _: &CredentialHeaders,
    ) -> Result<CredentialHeaders, CredentialsError> {
        self.headers(principal, resource).await
    }

    async fn sign_in(
        &self,
        principal: &Principal,
        resource: &ProtectedResource,
        _: &dyn Caller,
    ) -> Result<(), CredentialsError> {
        self.headers(principal, resource).await.map(drop)
    }
}
