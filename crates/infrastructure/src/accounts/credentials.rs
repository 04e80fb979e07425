//! The tokens of principals: given out, renewed, signed in for and taken back.

use super::{
    attempt::{Attempt, Code, NoCode},
    grant::Grant,
    import::{self, FoundTokens, ImportPlan},
    issuer::Issuer,
    loopback::Loopback,
    oauth_client::OAuthClient,
    shared_sign_in::{Shared, SharedSignIns},
    sign_in_error::SignInError,
    token_error::TokenError,
    vault::{TokenKey, Tokens, Vault, VaultError},
};
use crate::web::reach::Reach;
use async_trait::async_trait;
use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc, time::Duration};
use tokio::time::timeout;
use toolstead_domain::{
    error_chain::with_causes,
    ports::{
        caller::Caller,
        clock::{Clock, Timestamp},
        credentials::{CredentialHeaders, Credentials, NoCredentials, Resource},
    },
    principal::Principal,
    secret::Secret,
};
use url::Url;

/// Access tokens are renewed so long before they end.
const EARLY: Duration = Duration::from_secs(60);
/// The word before the token in its header.
const BEARER: &str = "Bearer ";

/// The accounts of principals at the services of one issuer. Cheap to clone.
#[derive(Clone)]
pub struct Accounts {
    inner: Arc<Inner>,
}

/// The parts that accounts are made of.
pub struct AccountsParts {
    /// This program at the issuer, or why nobody can sign in there.
    pub client: Result<OAuthClient, String>,
    /// The services that there are grants for: the name of the grant, and the service's address. Tokens of a grant go to
    /// that origin alone.
    pub services: Vec<(&'static Grant, Url)>,
    /// The place where tokens lie, or why there is none.
    pub vault: Result<Vault, String>,
    /// The way to the issuer.
    pub reach: Reach,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The time that a person who was sent to a page by a call may take to come back.
    pub patience: Duration,
}

struct Inner {
    client: Result<OAuthClient, String>,
    origins: BTreeMap<&'static str, (&'static Grant, Arc<str>)>,
    vault: Result<Vault, String>,
    reach: Reach,
    clock: Arc<dyn Clock>,
    patience: Duration,
    signing_in: SharedSignIns,
}

/// One grant that somebody has tokens for. It holds none of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedIn {
    /// The issuer.
    pub issuer: String,
    /// The name of the grant.
    pub grant: String,
    /// The origin that the tokens go to.
    pub origin: String,
    /// The scopes that were granted.
    pub scopes: Vec<String>,
    /// The end of the access token, where it has one.
    pub expires_at: Option<Timestamp>,
    /// It is renewed without a person.
    pub is_renewable: bool,
}

/// The accounts of a principal.
#[derive(Debug)]
pub struct AccountStatus {
    /// The grants that the principal is signed in to, sorted.
    pub signed_in: Vec<SignedIn>,
    /// Tokens that cannot be used as they lie there.
    pub unreadable: Vec<Unreadable>,
}

/// Tokens that cannot be read.
#[derive(Debug)]
pub struct Unreadable {
    /// The grant and the origin that they are for, where that can be told.
    pub resource: Option<String>,
    /// The reason.
    pub error: VaultError,
}

/// Tokens that were forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedOut {
    /// Their issuer.
    pub issuer: String,
    /// The origin that they went to.
    pub origin: String,
    /// The issuer's word that they hold no more, or why it did not give it.
    pub revoked: Result<(), String>,
}

/// A sign-in that has begun: a person opens its page, and comes back by it.
#[derive(Debug)]
pub struct SignIn {
    accounts: Arc<Inner>,
    issuer: Issuer,
    grant: &'static Grant,
    key: TokenKey,
    attempt: Attempt,
    loopback: Loopback,
}

/// The answer that a person came back with.
#[derive(Debug)]
pub struct CameBack(Code);

impl Accounts {
    /// Accounts of these parts. Nothing is asked and nothing is read yet.
    pub fn new(parts: AccountsParts) -> Self {
        let AccountsParts { client, services, vault, reach, clock, patience } = parts;
        let origin = |url: Url| Arc::from(url.origin().ascii_serialization());
        let origins = services.into_iter().map(|(grant, url)| (grant.name, (grant, origin(url)))).collect();
        let signing_in = SharedSignIns::default();
        Self { inner: Arc::new(Inner { client, origins, vault, reach, clock, patience, signing_in }) }
    }

    /// Begins to sign a principal in: the place that the page leads back to listens once this returns.
    ///
    /// # Errors
    /// [`SignInError`].
    pub fn begin(&self, principal: &Principal, grant: &'static Grant) -> Result<SignIn, SignInError> {
        let (resource, issuer) = self.resource_of(grant)?;
        self.inner.begin(principal, &resource, issuer)
    }

    /// Everything that the principal is signed in to, and beside it the tokens that cannot be read.
    ///
    /// # Errors
    /// [`SignInError`] where there is no vault to look into.
    pub async fn status(&self, principal: &Principal) -> Result<AccountStatus, SignInError> {
        let vault = self.inner.vault()?;
        let listed = vault.list(principal).await?;
        let unreadable = listed.unreadable.into_iter().map(|error| Unreadable { resource: None, error });
        let mut status = AccountStatus { signed_in: Vec::new(), unreadable: unreadable.collect() };
        for key in listed.keys {
            match vault.get(&key).await {
                Ok(Some(tokens)) => status.signed_in.push(SignedIn::of(&key, &tokens)),
                // It went meanwhile.
                Ok(None) => {}
                Err(error) => status.unreadable.push(Unreadable { resource: Some(key.resource), error }),
            }
        }
        Ok(status)
    }

    /// Signs the principal out: the issuer is asked to take back what it granted, and the tokens are forgotten,
    /// whatever it says. Tokens that were kept while the configuration named other addresses go as well, and are shown
    /// to no address that they were not kept for. Empty: nobody was signed in.
    ///
    /// # Errors
    /// [`SignInError`] where the tokens cannot be forgotten.
    pub async fn sign_out(&self, principal: &Principal, grant: &'static Grant) -> Result<Vec<SignedOut>, SignInError> {
        let vault = self.inner.vault()?;
        let mut keys = vault.list(principal).await?.keys;
        keys.retain(|key| key.grant() == grant.name);
        // The record of the present addresses goes also where it cannot be read, and so is not listed.
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
                all.push(SignedOut { issuer, origin, revoked });
            }
        }
        Ok(all)
    }

    /// Revokes and removes the tokens that lie under `key`. Returns the issuer's word; `None` where there were none.
    async fn forget(&self, vault: &Vault, key: &TokenKey) -> Result<Option<Result<(), String>>, SignInError> {
        if matches!(vault.get(key).await, Ok(None)) {
            return Ok(None);
        }
        // Under the lock: a renewal that has begun ends first, and its tokens are the ones that are revoked. One that
        // comes later finds nothing to renew.
        let forgotten = vault.update::<_, VaultError, _>(key, async |tokens| match tokens {
            Some(tokens) => Ok((None, Some(self.revoke(key, &tokens).await))),
            None => Ok((None, None)),
        });
        match forgotten.await {
            Ok(revoked) => Ok(revoked),
            Err(VaultError::Busy) => Err(VaultError::Busy.into()),
            // They cannot be read, so they cannot be revoked; they go all the same.
            Err(error) => {
                vault.remove(key).await?;
                Ok(Some(Err(with_causes(&error))))
            }
        }
    }

    async fn revoke(&self, key: &TokenKey, tokens: &Tokens) -> Result<(), String> {
        let issuer = self.inner.issuer().map_err(|error| with_causes(&error))?;
        if !issuer.client.may_revoke(&key.issuer) {
            let now = issuer.client.revocation_url.origin().ascii_serialization();
            return Err(format!(
                "it was granted while the configuration named other addresses ({}), so {now} was not shown it",
                key.issuer
            ));
        }
        issuer.revoke(tokens).await.map_err(|error| with_causes(&error))
    }

    /// Looks in these places for tokens that another program left. Changes nothing.
    ///
    /// # Errors
    /// [`SignInError`].
    pub async fn found(&self, places: Vec<PathBuf>) -> Result<ImportPlan, SignInError> {
        let client = self.inner.issuer()?.client;
        let planned = tokio::task::spawn_blocking(move || import::plan(&places, &client)).await;
        planned.map_err(|error| SignInError::Begin(error.into()))
    }

    /// Takes tokens that were found as the principal's own, in the place of those that are kept for their grants.
    ///
    /// # Errors
    /// [`SignInError`].
    pub async fn take(&self, principal: &Principal, found: &FoundTokens) -> Result<(), SignInError> {
        let client = self.inner.issuer()?.client;
        let resources = found.grants.iter().map(|name| {
            let grant = Grant::named(name).ok_or_else(|| unavailable("it is no grant of this program"))?;
            Ok::<_, SignInError>((*name, self.resource_of(grant)?.0))
        });
        let resources: BTreeMap<&str, Resource> = resources.collect::<Result<_, _>>()?;
        Ok(found.take(self.inner.vault()?, |grant| token_key(principal, &resources[grant], &client)).await?)
    }

    fn resource_of(&self, grant: &Grant) -> Result<(Resource, Issuer), SignInError> {
        let issuer = self.inner.issuer()?;
        let (_, origin) =
            self.inner.origins.get(grant.name).ok_or_else(|| unavailable("it is no grant of this program"))?;
        Ok((Resource { grant: grant.name.into(), origin: origin.clone() }, issuer))
    }
}

impl Inner {
    fn issuer(&self) -> Result<Issuer, SignInError> {
        let client = self.client.as_ref().map_err(|why| unavailable(why))?.clone();
        Ok(Issuer { client, reach: self.reach.clone() })
    }

    fn vault(&self) -> Result<&Vault, SignInError> {
        self.vault.as_ref().map_err(|why| unavailable(why))
    }

    fn grant(&self, resource: &Resource) -> Result<&'static Grant, SignInError> {
        let known = self.origins.get(&*resource.grant);
        let (grant, origin) = known.ok_or_else(|| unavailable(&format!("there is no grant `{}`", resource.grant)))?;
        match *origin == resource.origin {
            true => Ok(grant),
            false => Err(unavailable(&format!("tokens of `{}` go to {origin} alone", grant.name))),
        }
    }

    /// All that a request for tokens needs.
    fn account(
        &self,
        principal: &Principal,
        resource: &Resource,
    ) -> Result<(&'static Grant, Issuer, &Vault, TokenKey), SignInError> {
        let grant = self.grant(resource)?;
        let issuer = self.issuer()?;
        let key = token_key(principal, resource, &issuer.client);
        Ok((grant, issuer, self.vault()?, key))
    }

    fn begin(
        self: &Arc<Self>,
        principal: &Principal,
        resource: &Resource,
        issuer: Issuer,
    ) -> Result<SignIn, SignInError> {
        let grant = self.grant(resource)?;
        self.vault()?;
        let key = token_key(principal, resource, &issuer.client);
        let loopback = Loopback::listen().map_err(SignInError::Begin)?;
        let attempt = Attempt::begin(&issuer.client, grant.scopes, loopback.redirect_uri())?;
        Ok(SignIn { accounts: self.clone(), issuer, grant, key, attempt, loopback })
    }

    /// Headers with a token other than `refused`, which lasts for a while. One at a time, over all processes.
    async fn renewed(
        self: Arc<Self>,
        principal: Principal,
        resource: Resource,
        refused: Option<Secret>,
    ) -> Result<CredentialHeaders, NoCredentials> {
        let (grant, issuer, vault, key) = self.account(&principal, &resource)?;
        let sign_in = |why: &str| NoCredentials::SignIn(must_sign_in(grant, why));
        let outcome = vault
            .update(&key, async |tokens| {
                let Some(tokens) = tokens else {
                    return Ok((None, Err(sign_in("Nobody has signed in to this"))));
                };
                let is_refused = refused.as_ref() == Some(&tokens.access_token);
                if !is_refused && self.lasts(&tokens, EARLY) {
                    // Somebody else has renewed them meanwhile.
                    let headers = headers(&tokens);
                    return Ok((Some(tokens), Ok(headers)));
                }
                let Some(refresh) = &tokens.refresh_token else {
                    return Ok((None, Err(sign_in("The sign-in has run out"))));
                };
                match issuer.renewed(&tokens, refresh, self.clock.now()).await {
                    Ok(new) => {
                        let had = |scope: &String| tokens.scopes.contains(scope);
                        let missing: Vec<String> = grant.missing_in(&new.scopes).filter(had).collect();
                        if !missing.is_empty() {
                            let why = format!("Some of what was granted was taken back ({})", missing.join(", "));
                            return Ok((None, Err(sign_in(&why))));
                        }
                        let headers = headers(&new);
                        Ok((Some(new), Ok(headers)))
                    }
                    Err(TokenError::Grant(_)) => Ok((None, Err(sign_in("The sign-in was taken back, or has run out")))),
                    // It lasts for a moment yet.
                    Err(TokenError::Unreached(_)) if !is_refused && self.lasts(&tokens, Duration::ZERO) => {
                        let headers = headers(&tokens);
                        Ok((Some(tokens), Ok(headers)))
                    }
                    Err(error) => Err(SignInError::Token(error)),
                }
            })
            .await;
        outcome?
    }

    /// Tells whether the access token is good for so long.
    fn lasts(&self, tokens: &Tokens, time: Duration) -> bool {
        tokens.expires_at.is_none_or(|end| end.since(self.clock.now()) > time)
    }
}

impl SignIn {
    /// The page that the person opens.
    pub fn page(&self) -> &Url {
        &self.attempt.page
    }

    /// Waits for the person to come back from the page on this machine. Cancel-safe.
    ///
    /// # Errors
    /// [`SignInError`].
    pub async fn came_back(&self) -> Result<CameBack, SignInError> {
        self.loopback.answer(&self.attempt).await.map(CameBack)
    }

    /// Reads what a person pasted: the whole address that the page led back to, or the code alone. `Err` with a text is
    /// none of this sign-in, which goes on.
    ///
    /// # Errors
    /// [`SignInError`].
    pub fn pasted(&self, text: &str) -> Result<Result<CameBack, &'static str>, SignInError> {
        match self.attempt.pasted(text) {
            Ok(code) => Ok(Ok(CameBack(code))),
            Err(NoCode::Foreign(why)) => Ok(Err(why)),
            Err(NoCode::Over(error)) => Err(error),
        }
    }

    /// Gets the tokens, and keeps them where all was granted.
    ///
    /// # Errors
    /// [`SignInError`]; then nothing is kept.
    pub async fn finish(self, came: CameBack) -> Result<SignedIn, SignInError> {
        // A grant is either kept or taken back, whether or not somebody waits for it.
        let finishing = tokio::spawn(async move {
            let Self { accounts, issuer, grant, key, attempt, loopback } = self;
            // The port is free from here on.
            drop(loopback);
            let tokens = issuer.exchange(&attempt, &came.0, grant.scopes, accounts.clock.now()).await?;
            let missing: Vec<String> = grant.missing_in(&tokens.scopes).collect();
            if !missing.is_empty() {
                if let Err(error) = issuer.revoke(&tokens).await {
                    tracing::debug!(%error, "what was granted in part was not taken back");
                }
                return Err(SignInError::Missing(missing));
            }
            let signed_in = SignedIn::of(&key, &tokens);
            accounts.vault()?.put(&key, tokens).await?;
            Ok(signed_in)
        });
        finishing.await.unwrap_or_else(|error| Err(SignInError::Begin(error.into())))
    }

    /// Waits so long for the person to come back, and finishes.
    async fn within(self, patience: Duration) -> Result<(), NoCredentials> {
        let came = timeout(patience, self.came_back()).await.map_err(|_| SignInError::Late(patience))??;
        self.finish(came).await?;
        Ok(())
    }
}

#[cfg(test)]
impl CameBack {
    pub(super) fn code(&self) -> &str {
        self.0.0.expose()
    }
}

impl SignedIn {
    fn of(key: &TokenKey, tokens: &Tokens) -> Self {
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
impl Credentials for Accounts {
    fn unavailable(&self, resource: &Resource) -> Option<String> {
        self.inner.account(&Principal::local(), resource).err().map(|error| error.to_string())
    }

    async fn headers(&self, principal: &Principal, resource: &Resource) -> Result<CredentialHeaders, NoCredentials> {
        let (grant, _, vault, key) = self.inner.account(principal, resource)?;
        let tokens = vault.get(&key).await.map_err(SignInError::Vault)?;
        let nobody = || NoCredentials::SignIn(must_sign_in(grant, "Nobody has signed in to this"));
        let tokens = tokens.ok_or_else(nobody)?;
        match self.inner.lasts(&tokens, EARLY) {
            true => Ok(headers(&tokens)),
            false => self.renewing(principal, resource, None).await,
        }
    }

    async fn renewed(
        &self,
        principal: &Principal,
        resource: &Resource,
        refused: &CredentialHeaders,
    ) -> Result<CredentialHeaders, NoCredentials> {
        let refused = refused.iter().find_map(|(_, value)| value.expose().strip_prefix(BEARER));
        self.renewing(principal, resource, refused.map(Secret::new)).await
    }

    async fn sign_in(
        &self,
        principal: &Principal,
        resource: &Resource,
        caller: &dyn Caller,
    ) -> Result<(), NoCredentials> {
        let (grant, issuer, ..) = self.inner.account(principal, resource)?;
        let sign_in = |why: &str| NoCredentials::SignIn(must_sign_in(grant, why));
        // The page leads back to this machine, and so does nobody who is elsewhere.
        if *principal != Principal::local() {
            return Err(sign_in("Nobody has signed in to this"));
        }
        let key = token_key(principal, resource, &issuer.client);
        let patience = self.inner.patience;
        let shared = self.inner.signing_in.join(key, || {
            let begun = self.inner.begin(principal, resource, issuer)?;
            Ok::<_, NoCredentials>(Shared::begin(begun.page().clone(), begun.within(patience)))
        })?;
        shared.asked(caller, grant.about, &sign_in).await
    }
}

impl Accounts {
    /// A renewal that has begun is brought to its end: the issuer may have taken the old token back by then.
    async fn renewing(
        &self,
        principal: &Principal,
        resource: &Resource,
        refused: Option<Secret>,
    ) -> Result<CredentialHeaders, NoCredentials> {
        let renewing = self.inner.clone().renewed(principal.clone(), resource.clone(), refused);
        let renewed = tokio::spawn(renewing).await;
        renewed.unwrap_or_else(|_| Err(NoCredentials::Failed("the renewal of the sign-in broke".into())))
    }
}

impl fmt::Debug for Accounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accounts").field("client", &self.inner.client).finish_non_exhaustive()
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

/// The entry of the vault: a grant at an origin, which its tokens go to, and the origins of their issuer.
pub(super) fn token_key(principal: &Principal, resource: &Resource, client: &OAuthClient) -> TokenKey {
    let resource = format!("{} {}", resource.grant, resource.origin);
    TokenKey { principal: principal.clone(), issuer: client.issuer_and_origins(), resource }
}

fn headers(tokens: &Tokens) -> CredentialHeaders {
    let value = Secret::new(format!("{BEARER}{}", tokens.access_token.expose()));
    vec![("authorization".to_owned(), value)]
}

/// Returns why a user must sign in, for callers without a user who can sign in now.
fn must_sign_in(grant: &Grant, why: &str) -> String {
    format!("{why} ({})", grant.about)
}

fn unavailable(why: &str) -> SignInError {
    SignInError::Unavailable(why.to_owned())
}
