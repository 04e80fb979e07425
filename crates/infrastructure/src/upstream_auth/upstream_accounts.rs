//! Credentials of all principals for one server.

use super::{
    authorization_server_client::{AuthorizationServerClient, check_encrypted},
    client_credentials, id_jag,
    registration::resource_uri,
    settings::UpstreamAuth,
    sign_in::UpstreamSignInAttempt,
    stored_grants::{ServerGrantStore, UpstreamGrantSummary},
    token_exchange,
    upstream_auth_error::UpstreamAuthError,
};
use crate::{
    accounts::{
        bearer::{bearer_headers, bearer_token},
        credentials::{EARLY, TokenRevocationReport},
        vault::{Tokens, Vault},
    },
    web::web_client::WebClient,
};
use async_trait::async_trait;
use rmcp::transport::auth::WWWAuthenticateParams;
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use toolstead_domain::{
    Caller, Clock, CredentialHeaders, Credentials, CredentialsError, Principal, Secret, Timestamp,
    ports::credentials::{Challenge, ProtectedResource},
};
use url::Url;

/// Maximum number of scopes that a server may require in addition to the configured ones.
const MAX_FURTHER_SCOPES: usize = 64;
/// Time for which a token that replaced a refused one is not replaced again. A server may refuse every token.
const RENEWAL_PAUSE: Duration = Duration::from_secs(60);

/// Credentials of all principals for one server. Cheap to clone.
///
/// ```
/// # use std::sync::Arc;
/// # use toolstead_domain::{Credentials, Principal, ports::credentials::ProtectedResource};
/// # use toolstead_infrastructure::{
/// #     egress::{connector::SystemNetwork, host::HostPatterns}, system_clock::SystemClock, web::web_client::WebClient,
/// # };
/// use toolstead_infrastructure::upstream_auth::{
///     settings::UpstreamAuth,
///     upstream_accounts::{UpstreamServerCredentialsParts, UpstreamServerCredentials},
/// };
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let accounts = UpstreamServerCredentials::new(UpstreamServerCredentialsParts {
///     server: "https://notes.example.com/mcp".parse()?,
///     auth: UpstreamAuth::OAuth(Default::default()),
///     vault: Err("no vault is configured".into()),
///     web: WebClient::new(Arc::new(SystemNetwork::default()), HostPatterns::default()),
///     clock: Arc::new(SystemClock),
/// });
/// assert_eq!(&*accounts.resource().origin, "https://notes.example.com/mcp");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct UpstreamServerCredentials {
    inner: Arc<Inner>,
}

/// Dependencies of [`UpstreamServerCredentials`].
pub struct UpstreamServerCredentialsParts {
    /// Address of the MCP server.
    pub server: Url,
    /// Source of the credentials.
    pub auth: UpstreamAuth,
    /// Vault of the grants, or the reason why there is none.
    pub vault: Result<Vault, String>,
    /// HTTP client for authorization servers.
    pub web: WebClient,
    /// Clock for the expiry of tokens.
    pub clock: Arc<dyn Clock>,
}

struct Inner {
    auth: UpstreamAuth,
    uri: String,
    grants: Result<ServerGrantStore, String>,
    traffic: AuthorizationServerClient,
    clock: Arc<dyn Clock>,
    cache: Mutex<HashMap<Principal, Arc<AsyncMutex<PrincipalTokens>>>>,
}

/// Tokens of one principal in memory. Locked while they are renewed.
#[derive(Default)]
struct PrincipalTokens {
    token: Option<CachedToken>,
    /// Scopes that the server required in addition to the configured ones.
    further_scopes: Vec<String>,
}

#[derive(Clone)]
struct CachedToken {
    access_token: Secret,
    expires_at: Option<Timestamp>,
    /// Time at which this token replaced one that the server had refused.
    replaced_at: Option<Timestamp>,
}

impl UpstreamServerCredentials {
    /// Creates the credentials. Sends and reads nothing yet.
    pub fn new(parts: UpstreamServerCredentialsParts) -> Self {
        let UpstreamServerCredentialsParts { server, auth, vault, web, clock } = parts;
        let uri = resource_uri(&server);
        let traffic = AuthorizationServerClient { web, server, named: auth.named_urls() };
        let (own_uri, own_traffic, own_clock) = (uri.clone(), traffic.clone(), clock.clone());
        let grants =
            vault.map(|vault| ServerGrantStore { vault, uri: own_uri, traffic: own_traffic, clock: own_clock });
        Self { inner: Arc::new(Inner { auth, uri, grants, traffic, clock, cache: Mutex::default() }) }
    }

    /// Returns the resource to request credentials for.
    pub fn resource(&self) -> ProtectedResource {
        ProtectedResource { grant: "mcp_server".into(), origin: self.inner.uri.as_str().into() }
    }

    /// Begins a sign-in for a principal. The redirect target of the page is listening when this returns.
    ///
    /// # Errors
    /// Returns [`UpstreamAuthError`].
    pub async fn begin(&self, principal: &Principal) -> Result<UpstreamSignInAttempt, UpstreamAuthError> {
        self.inner.check()?;
        match &self.inner.auth {
            UpstreamAuth::OAuth(settings) => UpstreamSignInAttempt::begin(self.inner.grants()?, settings, principal).await,
            UpstreamAuth::ClientCredentials(_) | UpstreamAuth::Exchange(_) | UpstreamAuth::IdJag(_) => {
                Err(UpstreamAuthError::Unavailable(
                    "there is nothing to sign in to: the `auth` table of the server names credentials that need no user".into(),
                ))
            }
        }
    }

    /// Returns the grants of the principal for the server.
    ///
    /// # Errors
    /// Returns [`UpstreamAuthError`] if the vault cannot be read.
    pub async fn grants(&self, principal: &Principal) -> Result<Vec<UpstreamGrantSummary>, UpstreamAuthError> {
        self.inner.grants()?.of_principal(principal).await
    }

    /// Signs the principal out: asks the issuer to revoke the tokens, and deletes them even if it refuses. The result
    /// is empty if the principal was not signed in.
    ///
    /// # Errors
    /// Returns [`UpstreamAuthError`] if the tokens cannot be deleted.
    pub async fn sign_out(&self, principal: &Principal) -> Result<Vec<TokenRevocationReport>, UpstreamAuthError> {
        let signed_out = self.inner.grants()?.sign_out(principal).await?;
        self.inner.lock().remove(principal);
        Ok(signed_out)
    }

    /// Obtains a token in a task that always completes, because the issuer may already have revoked the old one.
    async fn obtain(
        &self,
        principal: &Principal,
        cache: OwnedMutexGuard<PrincipalTokens>,
        refused: Option<Secret>,
    ) -> Result<CredentialHeaders, CredentialsError> {
        let (inner, principal) = (self.inner.clone(), principal.clone());
        let obtaining = tokio::spawn(async move { inner.obtain(&principal, cache, refused).await });
        match obtaining.await {
            Ok(obtained) => Ok(bearer_headers(&obtained?.access_token)),
            Err(_) => Err(CredentialsError::Failed("the renewal of the sign-in panicked".into())),
        }
    }

    async fn lock_tokens(&self, principal: &Principal) -> OwnedMutexGuard<PrincipalTokens> {
        let owner = if self.inner.auth.is_shared() { Principal::local() } else { principal.clone() };
        let cache = self.inner.lock().entry(owner).or_default().clone();
        cache.lock_owned().await
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, HashMap<Principal, Arc<AsyncMutex<PrincipalTokens>>>> {
        // No code panics while it holds the lock.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn grants(&self) -> Result<&ServerGrantStore, UpstreamAuthError> {
        self.grants.as_ref().map_err(|why| UpstreamAuthError::Unavailable(why.clone()))
    }

    /// Checks that secrets may be sent to the server: by HTTPS, or on loopback.
    fn check(&self) -> Result<(), UpstreamAuthError> {
        check_encrypted(&self.traffic.server).map_err(|error| UpstreamAuthError::Unavailable(error.to_string()))
    }

    /// Returns `true` if a token is valid for longer than this.
    fn lasts(&self, expires_at: Option<Timestamp>, time: Duration) -> bool {
        expires_at.is_none_or(|end| end.since(self.clock.now()) > time)
    }

    async fn obtain(
        &self,
        principal: &Principal,
        mut cache: OwnedMutexGuard<PrincipalTokens>,
        refused: Option<Secret>,
    ) -> Result<CachedToken, UpstreamAuthError> {
        let obtained = match &self.auth {
            UpstreamAuth::OAuth(_) => async { self.grants()?.token(principal, refused.as_ref()).await }.await,
            UpstreamAuth::ClientCredentials(_) | UpstreamAuth::Exchange(_) | UpstreamAuth::IdJag(_) => {
                self.requested_token(principal, &cache.further_scopes).await
            }
        };
        if obtained.is_err() {
            // Scopes that the server demanded must not make later requests fail.
            cache.further_scopes.clear();
        }
        match obtained {
            Ok(tokens) => {
                let token = CachedToken {
                    access_token: tokens.access_token,
                    expires_at: tokens.expires_at,
                    replaced_at: refused.map(|_| self.clock.now()),
                };
                cache.token = Some(token.clone());
                Ok(token)
            }
            // The old token is still valid for a short time.
            Err(UpstreamAuthError::Refused(reason)) if refused.is_none() => match &cache.token {
                Some(token) if self.lasts(token.expires_at, Duration::ZERO) => Ok(token.clone()),
                Some(_) | None => Err(UpstreamAuthError::Refused(reason)),
            },
            Err(error) => {
                cache.token = None;
                Err(error)
            }
        }
    }

    /// Requests a token without a user.
    async fn requested_token(&self, principal: &Principal, further: &[String]) -> Result<Tokens, UpstreamAuthError> {
        let mut scopes = self.auth.scopes().to_vec();
        scopes.extend(further.iter().filter(|scope| !self.auth.scopes().contains(scope)).cloned());
        let now = self.clock.now();
        match &self.auth {
            UpstreamAuth::ClientCredentials(settings) => {
                client_credentials::request_token(&self.traffic, settings, &scopes, now).await
            }
            UpstreamAuth::Exchange(settings) => {
                let subject = settings.subject_token.read(principal).await?;
                token_exchange::request_token(&self.traffic, settings, &subject, &scopes, now).await
            }
            UpstreamAuth::IdJag(settings) => {
                let subject = settings.id_token.read(principal).await?;
                id_jag::request_token(&self.traffic, settings, &subject, &scopes, now).await
            }
            UpstreamAuth::OAuth(_) => Err(UpstreamAuthError::NotSignedIn),
        }
    }
}

#[async_trait]
impl Credentials for UpstreamServerCredentials {
    fn unavailable(&self, _: &ProtectedResource) -> Option<String> {
        self.inner.check().and_then(|()| self.inner.grants().map(drop)).err().map(|error| error.to_string())
    }

    async fn headers(
        &self,
        principal: &Principal,
        resource: &ProtectedResource,
    ) -> Result<CredentialHeaders, CredentialsError> {
        self.inner.check()?;
        self.check_resource(resource)?;
        let cache = self.lock_tokens(principal).await;
        match &cache.token {
            Some(token) if self.inner.lasts(token.expires_at, EARLY) => Ok(bearer_headers(&token.access_token)),
            Some(_) | None => self.obtain(principal, cache, None).await,
        }
    }

    async fn renewed(
        &self,
        principal: &Principal,
        resource: &ProtectedResource,
        refused: &CredentialHeaders,
    ) -> Result<CredentialHeaders, CredentialsError> {
        self.inner.check()?;
        self.check_resource(resource)?;
        let refused = bearer_token(refused);
        let cache = self.lock_tokens(principal).await;
        if let Some(token) = &cache.token
            && refused.as_ref() == Some(&token.access_token)
            && let Some(at) = token.replaced_at
            && self.inner.clock.now().since(at) < RENEWAL_PAUSE
        {
            let reason = "the server refuses a token that was renewed less than a minute ago";
            return Err(CredentialsError::Failed(reason.into()));
        }
        match &cache.token {
            // Another call has renewed it.
            Some(token) if refused.as_ref().is_some_and(|refused| *refused != token.access_token) => {
                Ok(bearer_headers(&token.access_token))
            }
            Some(_) | None => self.obtain(principal, cache, refused).await,
        }
    }

    async fn challenged(
        &self,
        principal: &Principal,
        resource: &ProtectedResource,
        refused: &CredentialHeaders,
        challenge: &Challenge,
    ) -> Result<CredentialHeaders, CredentialsError> {
        if !challenge.is_insufficient_scope() {
            return self.renewed(principal, resource, refused).await;
        }
        self.check_resource(resource)?;
        let header = challenge.header.as_deref().unwrap_or_default();
        let scope = WWWAuthenticateParams::parse(header, &self.inner.traffic.server).scope.unwrap_or_default();
        let scopes: Vec<String> = scope.split_ascii_whitespace().map(str::to_owned).collect();
        let refused = bearer_token(refused);
        let mut cache = self.lock_tokens(principal).await;
        if self.inner.auth.is_sign_in() {
            let tokens = self.inner.grants()?.for_scopes(principal, refused.as_ref(), &scopes).await?;
            // The principal has signed in again meanwhile.
            let token =
                CachedToken { access_token: tokens.access_token, expires_at: tokens.expires_at, replaced_at: None };
            return Ok(bearer_headers(&cache.token.insert(token).access_token));
        }
        let known = [self.inner.auth.scopes(), &cache.further_scopes].concat();
        let missing: Vec<String> = scopes.into_iter().filter(|scope| !known.contains(scope)).collect();
        if missing.is_empty() {
            let reason = format!("the server refuses a token that has all scopes it requires ({scope})");
            return Err(CredentialsError::Unavailable(reason));
        }
        if cache.further_scopes.len() + missing.len() > MAX_FURTHER_SCOPES {
            return Err(CredentialsError::Unavailable("the server requires too many scopes".into()));
        }
        cache.further_scopes.extend(missing);
        self.obtain(principal, cache, None).await
    }

    async fn sign_in(&self, _: &Principal, _: &ProtectedResource, _: &dyn Caller) -> Result<(), CredentialsError> {
        Err(UpstreamAuthError::NotSignedIn.into())
    }
}

impl UpstreamServerCredentials {
    /// Refuses credentials for another server.
    fn check_resource(&self, resource: &ProtectedResource) -> Result<(), CredentialsError> {
        match *resource.origin == *self.inner.uri {
            true => Ok(()),
            false => {
                Err(CredentialsError::Unavailable(format!("tokens for `{}` are not sent elsewhere", self.inner.uri)))
            }
        }
    }
}

impl fmt::Debug for UpstreamServerCredentialsParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamServerCredentialsParts").field("auth", &self.auth).finish_non_exhaustive()
    }
}

impl fmt::Debug for UpstreamServerCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamServerCredentials").field("uri", &self.inner.uri).finish_non_exhaustive()
    }
}
