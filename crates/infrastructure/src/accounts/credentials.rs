//! Access tokens of principals: lookup, renewal, sign-in and sign-out.

use super::{
    attempt::{AuthorizationCode, RedirectError, SignInAttempt},
    bearer::{bearer_headers, bearer_token},
    grant::GrantDefinition,
    import::{self, FoundTokens, TokenImportPlan},
    issuer::IssuerClient,
    loopback::LoopbackListener,
    oauth_client::OAuthClient,
    shared_sign_in::{SharedSignIn, SharedSignIns},
    sign_in_error::SignInError,
    token_error::TokenError,
    vault::{MCP_SERVER, TokenLookupKey, Tokens, Vault, VaultError},
};
use crate::web::web_client::WebClient;
use async_trait::async_trait;
use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc, time::Duration};
use tokio::time::timeout;
use toolstead_domain::{
    Caller, Clock, CredentialHeaders, Credentials, CredentialsError, Principal, Secret, Timestamp,
    error_chain::with_causes, ports::credentials::ProtectedResource,
};
use url::Url;

/// Remaining lifetime below which an access token is renewed.
pub(crate) const EARLY: Duration = Duration::from_secs(60);

/// Accounts of principals at the services of one issuer. Cheap to clone.
#[derive(Clone)]
pub struct OAuthAccounts {
    inner: Arc<Inner>,
}

/// Dependencies of [`OAuthAccounts`].
pub struct AccountsParts {
    /// OAuth client at the issuer, or the reason why sign-in is not possible.
    pub client: Result<OAuthClient, String>,
    /// Services with a grant: the grant and the URL of the service. Tokens of a grant are sent only to the origin of
    /// this URL.
    pub services: Vec<(&'static GrantDefinition, Url)>,
    /// Token vault, or the reason why there is none.
    pub vault: Result<Vault, String>,
    /// HTTP client for the issuer.
    pub reach: WebClient,
    /// Clock for the expiry of tokens.
    pub clock: Arc<dyn Clock>,
    /// Maximum time for the user to complete a sign-in that a call started.
    pub patience: Duration,
}

struct Inner {
    client: Result<OAuthClient, String>,
    origins: BTreeMap<&'static str, (&'static GrantDefinition, Arc<str>)>,
    vault: Result<Vault, String>,
    reach: WebClient,
    clock: Arc<dyn Clock>,
    patience: Duration,
    signing_in: SharedSignIns,
}

/// Grant that a principal is signed in to. Contains no tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantStatus {
    /// Issuer.
    pub issuer: String,
    /// Name of the grant.
    pub grant: String,
    /// Origin that the tokens are sent to.
    pub origin: String,
    /// Granted scopes.
    pub scopes: Vec<String>,
    /// Expiry of the access token, if it has one.
    pub expires_at: Option<Timestamp>,
    /// `true` if the token can be renewed without the user.
    pub is_renewable: bool,
}

/// Accounts of one principal.
#[derive(Debug)]
pub struct PrincipalAccountStatus {
    /// Grants that the principal is signed in to, sorted.
    pub signed_in: Vec<GrantStatus>,
    /// Tokens that cannot be used.
    pub unreadable: Vec<UnreadableTokens>,
}

/// Stored tokens that cannot be read.
#[derive(Debug)]
pub struct UnreadableTokens {
    /// Grant and origin of the tokens, if known.
    pub resource: Option<String>,
    /// Reason why the tokens cannot be read.
    pub error: VaultError,
}

/// Tokens that were deleted at sign-out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRevocationReport {
    /// Issuer of the tokens.
    pub issuer: String,
    /// Origin that the tokens were sent to.
    pub origin: String,
    /// Confirmation by the issuer that the tokens are revoked, or the reason why there is none.
    pub revoked: Result<(), String>,
}

/// Sign-in in progress: the user opens its page, which redirects the browser to this process with a code.
#[derive(Debug)]
pub struct PendingSignIn {
    accounts: Arc<Inner>,
    issuer: IssuerClient,
    grant: &'static GrantDefinition,
    key: TokenLookupKey,
    attempt: SignInAttempt,
    loopback: LoopbackListener,
}

/// Authorization code of a redirect.
#[derive(Debug)]
pub struct SignInRedirectCode(AuthorizationCode);

impl OAuthAccounts {
    /// Creates accounts. Sends and reads nothing yet.
    pub fn new(parts: AccountsParts) -> Self {
        let AccountsParts { client, services, vault, reach, clock, patience } = parts;
        let origin = |url: Url| Arc::from(url.origin().ascii_serialization());
        let origins = services.into_iter().map(|(grant, url)| (grant.name, (grant, origin(url)))).collect();
        let signing_in = SharedSignIns::default();
        Self { inner: Arc::new(Inner { client, origins, vault, reach, clock, patience, signing_in }) }
    }

    /// Begins a sign-in for a principal. The redirect target of the page is listening when this returns.
    ///
    /// # Errors
    /// Returns [`SignInError`].
    pub fn begin(&self, principal: &Principal, grant: &'static GrantDefinition) -> Result<PendingSignIn, SignInError> {
        let (resource, issuer) = self.resource_of(grant)?;
        self.inner.begin(principal, &resource, issuer)
    }

    /// Returns all grants that the principal is signed in to, except those of MCP servers, and the tokens that cannot
    /// be read.
    ///
    /// # Errors
    /// Returns [`SignInError`] if there is no vault.
    pub async fn status(&self, principal: &Principal) -> Result<PrincipalAccountStatus, SignInError> {
        let vault = self.inner.vault()?;
        let listed = vault.list(principal).await?;
        let unreadable = listed.unreadable.into_iter().map(|error| UnreadableTokens { resource: None, error });
        let mut status = PrincipalAccountStatus { signed_in: Vec::new(), unreadable: unreadable.collect() };
        // Grants of MCP servers are listed by `upstream_auth`.
        for key in listed.keys.into_iter().filter(|key| key.grant() != MCP_SERVER) {
            match vault.get(&key).await {
                Ok(Some(tokens)) => status.signed_in.push(GrantStatus::of(&key, &tokens)),
                // The tokens were removed meanwhile.
                Ok(None) => {}
                Err(error) => status.unreadable.push(UnreadableTokens { resource: Some(key.resource), error }),
            }
        }
        Ok(status)
    }

    /// Signs the principal out: asks the issuer to revoke the tokens, and deletes them even if it does not. This
    /// includes tokens that were stored while other URLs were configured; they are not sent to URLs that they were not
    /// issued for. The result is empty if the principal was not signed in.
    ///
    /// # Errors
    /// Returns [`SignInError`] if the tokens cannot be deleted.
    pub async fn sign_out(
        &self,
        principal: &Principal,
        grant: &'static GrantDefinition,
    ) -> Result<Vec<TokenRevocationReport>, SignInError> {
        let vault = self.inner.vault()?;
        let mut keys = vault.list(principal).await?.keys;
        keys.retain(|key| key.grant() == grant.name);
        // The record for the current URLs is deleted even if it cannot be read and is therefore not listed.
        if let Ok((resource, issuer)) = self.resource_of(grant) {
            let present = token_key(principal, &resource, &issuer.client);
            if !keys.contains(&present) {
                keys.push(present);
            }
        }
        let mut all = Vec::new();
        for key in keys {
            if let Some(revoked) = self.forget(vault, &key).await? {
                let (issuer, origin) = (key.issuer_alone().to_owned(), key.origin().to_owned());
                all.push(TokenRevocationReport { issuer, origin, revoked });
            }
        }
        Ok(all)
    }

    /// Revokes and deletes the tokens of `key`. Returns the result of the revocation; `None` if there were no tokens.
    async fn forget(&self, vault: &Vault, key: &TokenLookupKey) -> Result<Option<Result<(), String>>, SignInError> {
        if matches!(vault.get(key).await, Ok(None)) {
            return Ok(None);
        }
        // Runs under the lock: a renewal in progress ends first, and its new tokens are revoked. A later one finds no
        // tokens.
        let forgotten = vault.update::<_, VaultError, _>(key, async |tokens| match tokens {
            Some(tokens) => Ok((None, Some(self.revoke(key, &tokens).await))),
            None => Ok((None, None)),
        });
        match forgotten.await {
            Ok(revoked) => Ok(revoked),
            Err(VaultError::Busy) => Err(VaultError::Busy.into()),
            // Unreadable tokens cannot be revoked, but they are deleted.
            Err(error) => {
                vault.remove(key).await?;
                Ok(Some(Err(with_causes(&error))))
            }
        }
    }

    async fn revoke(&self, key: &TokenLookupKey, tokens: &Tokens) -> Result<(), String> {
        let issuer = self.inner.issuer().map_err(|error| with_causes(&error))?;
        if !issuer.client.may_revoke(&key.issuer) {
            let now = issuer.client.revocation_url.origin().ascii_serialization();
            return Err(format!(
                "it was granted under other configured addresses ({}), so it was not sent to {now}",
                key.issuer
            ));
        }
        issuer.revoke(tokens).await.map_err(|error| with_causes(&error))
    }

    /// Searches these places for tokens of another program. Changes nothing.
    ///
    /// # Errors
    /// Returns [`SignInError`].
    pub async fn plan_import(&self, places: Vec<PathBuf>) -> Result<TokenImportPlan, SignInError> {
        let client = self.inner.issuer()?.client;
        let planned = tokio::task::spawn_blocking(move || import::plan(&places, &client)).await;
        planned.map_err(|error| SignInError::Begin(error.into()))
    }

    /// Stores found tokens for the principal. Replaces the stored tokens of their grants.
    ///
    /// # Errors
    /// Returns [`SignInError`].
    pub async fn import_tokens(&self, principal: &Principal, found: &FoundTokens) -> Result<(), SignInError> {
        let client = self.inner.issuer()?.client;
        let resources = found.grants.iter().map(|name| {
            let grant = GrantDefinition::named(name).ok_or_else(|| unavailable("it is not a grant of this program"))?;
            Ok::<_, SignInError>((*name, self.resource_of(grant)?.0))
        });
        let resources: BTreeMap<&str, ProtectedResource> = resources.collect::<Result<_, _>>()?;
        Ok(found.take(self.inner.vault()?, |grant| token_key(principal, &resources[grant], &client)).await?)
    }

    fn resource_of(&self, grant: &GrantDefinition) -> Result<(ProtectedResource, IssuerClient), SignInError> {
        let issuer = self.inner.issuer()?;
        let (_, origin) =
            self.inner.origins.get(grant.name).ok_or_else(|| unavailable("it is not a grant of this program"))?;
        Ok((ProtectedResource { grant: grant.name.into(), origin: origin.clone() }, issuer))
    }
}

impl Inner {
    fn issuer(&self) -> Result<IssuerClient, SignInError> {
        let client = self.client.as_ref().map_err(|why| unavailable(why))?.clone();
        Ok(IssuerClient { client, reach: self.reach.clone() })
    }

    fn vault(&self) -> Result<&Vault, SignInError> {
        self.vault.as_ref().map_err(|why| unavailable(why))
    }

    fn grant(&self, resource: &ProtectedResource) -> Result<&'static GrantDefinition, SignInError> {
        let known = self.origins.get(&*resource.grant);
        let (grant, origin) = known.ok_or_else(|| unavailable(&format!("there is no grant `{}`", resource.grant)))?;
        match *origin == resource.origin {
            true => Ok(grant),
            false => Err(unavailable(&format!("tokens of `{}` are only for {origin}", grant.name))),
        }
    }

    /// Returns everything that a request for tokens needs.
    fn account(
        &self,
        principal: &Principal,
        resource: &ProtectedResource,
    ) -> Result<(&'static GrantDefinition, IssuerClient, &Vault, TokenLookupKey), SignInError> {
        let grant = self.grant(resource)?;
        let issuer = self.issuer()?;
        let key = token_key(principal, resource, &issuer.client);
        Ok((grant, issuer, self.vault()?, key))
    }

    fn begin(
        self: &Arc<Self>,
        principal: &Principal,
        resource: &ProtectedResource,
        issuer: IssuerClient,
    ) -> Result<PendingSignIn, SignInError> {
        let grant = self.grant(resource)?;
        self.vault()?;
        let key = token_key(principal, resource, &issuer.client);
        let loopback = LoopbackListener::listen().map_err(SignInError::Begin)?;
        let attempt = SignInAttempt::begin(&issuer.client, grant.scopes, loopback.redirect_uri())?;
        Ok(PendingSignIn { accounts: self.clone(), issuer, grant, key, attempt, loopback })
    }

    /// Returns headers with a token other than `refused` that does not expire soon. Renews the stored tokens if
    /// necessary, and deletes them if the user must sign in again. Renewals of one account run one at a time across
    /// processes.
    async fn renewed(
        self: Arc<Self>,
        principal: Principal,
        resource: ProtectedResource,
        refused: Option<Secret>,
    ) -> Result<CredentialHeaders, CredentialsError> {
        let (grant, issuer, vault, key) = self.account(&principal, &resource)?;
        let sign_in = |why: &str| CredentialsError::SignIn(must_sign_in(grant, why));
        let outcome = vault
            .update(&key, async |tokens| {
                let Some(tokens) = tokens else {
                    return Ok((None, Err(sign_in("You are not signed in"))));
                };
                let is_refused = refused.as_ref() == Some(&tokens.access_token);
                if !is_refused && self.lasts(&tokens, EARLY) {
                    // Another process has renewed the tokens meanwhile.
                    let headers = bearer_headers(&tokens.access_token);
                    return Ok((Some(tokens), Ok(headers)));
                }
                let Some(refresh) = &tokens.refresh_token else {
                    return Ok((None, Err(sign_in("The sign-in has expired"))));
                };
                match issuer.renewed(&tokens, refresh, self.clock.now()).await {
                    Ok(new) => {
                        let had = |scope: &String| tokens.scopes.contains(scope);
                        let missing: Vec<String> = grant.missing_in(&new.scopes).filter(had).collect();
                        if !missing.is_empty() {
                            let why = format!("Some permissions were revoked ({})", missing.join(", "));
                            return Ok((None, Err(sign_in(&why))));
                        }
                        let headers = bearer_headers(&new.access_token);
                        Ok((Some(new), Ok(headers)))
                    }
                    Err(TokenError::Grant(_)) => Ok((None, Err(sign_in("The sign-in was revoked or has expired")))),
                    // The old token is still valid for a short time.
                    Err(TokenError::Unreached(_)) if !is_refused && self.lasts(&tokens, Duration::ZERO) => {
                        let headers = bearer_headers(&tokens.access_token);
                        Ok((Some(tokens), Ok(headers)))
                    }
                    Err(error) => Err(SignInError::Token(error)),
                }
            })
            .await;
        outcome?
    }

    /// Returns `true` if the access token is valid for longer than `time` from now, or has no expiry.
    fn lasts(&self, tokens: &Tokens, time: Duration) -> bool {
        tokens.expires_at.is_none_or(|end| end.since(self.clock.now()) > time)
    }
}

impl PendingSignIn {
    /// Returns the page for the user to open.
    pub fn page(&self) -> &Url {
        &self.attempt.page
    }

    /// Waits until the page redirects a browser on this machine. Cancel-safe.
    ///
    /// # Errors
    /// Returns [`SignInError`].
    pub async fn wait_for_code(&self) -> Result<SignInRedirectCode, SignInError> {
        self.loopback.wait_for_code(&self.attempt).await.map(SignInRedirectCode)
    }

    /// Reads a text that the user pasted: the whole URL that the page redirected to, or the code alone. An inner `Err`
    /// with a text means that it does not belong to this sign-in, which continues.
    ///
    /// # Errors
    /// Returns [`SignInError`].
    pub fn pasted(&self, text: &str) -> Result<Result<SignInRedirectCode, &'static str>, SignInError> {
        match self.attempt.pasted(text) {
            Ok(code) => Ok(Ok(SignInRedirectCode(code))),
            Err(RedirectError::Foreign(why)) => Ok(Err(why)),
            Err(RedirectError::Over(error)) => Err(error),
        }
    }

    /// Exchanges the code for tokens, and stores them if all scopes were granted; revokes them if not. Continues even
    /// if the caller is cancelled.
    ///
    /// # Errors
    /// Returns [`SignInError`]; nothing is stored in this case.
    pub async fn finish(self, code: SignInRedirectCode) -> Result<GrantStatus, SignInError> {
        // Runs in a task, so that a grant is always either stored or revoked, even if the caller is cancelled.
        let finishing = tokio::spawn(async move {
            let Self { accounts, issuer, grant, key, attempt, loopback } = self;
            // Frees the port.
            drop(loopback);
            let tokens = issuer.exchange(&attempt, &code.0, grant.scopes, accounts.clock.now()).await?;
            let missing: Vec<String> = grant.missing_in(&tokens.scopes).collect();
            if !missing.is_empty() {
                if let Err(error) = issuer.revoke(&tokens).await {
                    tracing::debug!(%error, "could not revoke an incomplete grant");
                }
                return Err(SignInError::Missing(missing));
            }
            let signed_in = GrantStatus::of(&key, &tokens);
            accounts.vault()?.put(&key, tokens).await?;
            Ok(signed_in)
        });
        finishing.await.unwrap_or_else(|error| Err(SignInError::Begin(error.into())))
    }

    /// Waits at most this long for the redirect, and finishes the sign-in.
    async fn within(self, patience: Duration) -> Result<(), CredentialsError> {
        let code = timeout(patience, self.wait_for_code()).await.map_err(|_| SignInError::Late(patience))??;
        self.finish(code).await?;
        Ok(())
    }
}

#[cfg(test)]
impl SignInRedirectCode {
    pub(super) fn code(&self) -> &str {
        self.0.secret.expose()
    }
}

impl GrantStatus {
    fn of(key: &TokenLookupKey, tokens: &Tokens) -> Self {
        Self {
            issuer: key.issuer_alone().to_owned(),
            grant: key.grant().to_owned(),
            origin: key.origin().to_owned(),
            scopes: tokens.scopes.clone(),
            expires_at: tokens.expires_at,
            is_renewable: tokens.refresh_token.is_some(),
        }
    }
}

#[async_trait]
impl Credentials for OAuthAccounts {
    fn unavailable(&self, resource: &ProtectedResource) -> Option<String> {
        self.inner.account(&Principal::local(), resource).err().map(|error| error.to_string())
    }

    async fn headers(
        &self,
        principal: &Principal,
        resource: &ProtectedResource,
    ) -> Result<CredentialHeaders, CredentialsError> {
        let (grant, _, vault, key) = self.inner.account(principal, resource)?;
        let tokens = vault.get(&key).await.map_err(SignInError::Vault)?;
        let nobody = || CredentialsError::SignIn(must_sign_in(grant, "You are not signed in"));
        let tokens = tokens.ok_or_else(nobody)?;
        match self.inner.lasts(&tokens, EARLY) {
            true => Ok(bearer_headers(&tokens.access_token)),
            false => self.renewing(principal, resource, None).await,
        }
    }

    async fn renewed(
        &self,
        principal: &Principal,
        resource: &ProtectedResource,
        refused: &CredentialHeaders,
    ) -> Result<CredentialHeaders, CredentialsError> {
        self.renewing(principal, resource, bearer_token(refused)).await
    }

    async fn sign_in(
        &self,
        principal: &Principal,
        resource: &ProtectedResource,
        caller: &dyn Caller,
    ) -> Result<(), CredentialsError> {
        let (grant, issuer, ..) = self.inner.account(principal, resource)?;
        let sign_in = |why: &str| CredentialsError::SignIn(must_sign_in(grant, why));
        // The page redirects to this machine, so only the local user can sign in.
        if *principal != Principal::local() {
            return Err(sign_in("You are not signed in"));
        }
        let key = token_key(principal, resource, &issuer.client);
        let patience = self.inner.patience;
        let shared = self.inner.signing_in.join(key, || {
            let begun = self.inner.begin(principal, resource, issuer)?;
            Ok::<_, CredentialsError>(SharedSignIn::begin(begun.page().clone(), begun.within(patience)))
        })?;
        shared.ask_user(caller, grant.about, &sign_in).await
    }
}

impl OAuthAccounts {
    /// Renews tokens in a task that always completes, because the issuer may already have revoked the old token.
    async fn renewing(
        &self,
        principal: &Principal,
        resource: &ProtectedResource,
        refused: Option<Secret>,
    ) -> Result<CredentialHeaders, CredentialsError> {
        let renewing = self.inner.clone().renewed(principal.clone(), resource.clone(), refused);
        let renewed = tokio::spawn(renewing).await;
        renewed.unwrap_or_else(|_| {
            Err(CredentialsError::Failed("the renewal of the sign-in ended because of an internal error".into()))
        })
    }
}

impl fmt::Debug for OAuthAccounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthAccounts").field("client", &self.inner.client).finish_non_exhaustive()
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("client", &self.client).finish_non_exhaustive()
    }
}

impl fmt::Debug for AccountsParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccountsParts").field("client", &self.client).finish_non_exhaustive()
    }
}

/// Returns the vault key of a grant at the origin that its tokens are sent to, with the origins of their issuer.
pub(super) fn token_key(principal: &Principal, resource: &ProtectedResource, client: &OAuthClient) -> TokenLookupKey {
    let resource = format!("{} {}", resource.grant, resource.origin);
    TokenLookupKey { principal: principal.clone(), issuer: client.issuer_and_origins(), resource }
}

/// Returns the reason why a sign-in is needed, for callers without a user who can sign in now.
fn must_sign_in(grant: &GrantDefinition, why: &str) -> String {
    format!("{why} ({})", grant.about)
}

fn unavailable(why: &str) -> SignInError {
    SignInError::Unavailable(why.to_owned())
}
