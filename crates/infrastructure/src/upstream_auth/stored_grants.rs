//! Grants of principals for one server in the vault: lookup, renewal, further scopes and sign-out.

use super::{
    authorization_server::manager_for,
    authorization_server_client::AuthorizationServerClient,
    registration::{GrantClientRegistration, grants_for},
    upstream_auth_error::UpstreamAuthError,
};
use crate::{
    accounts::{
        credentials::{EARLY, TokenRevocationReport},
        issuer::read_tokens,
        vault::{TokenLookupKey, Tokens, Vault, VaultError},
    },
    web::web_client::RedirectPolicy,
};
use http::{HeaderMap, HeaderValue, Method, header};
use rmcp::transport::auth::{
    AuthError, CredentialStore, InMemoryCredentialStore, OAuthClientConfig, OAuthTokenResponse, StoredCredentials,
};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use toolstead_domain::{Clock, Principal, Secret, Timestamp, error_chain::with_causes};
use url::form_urlencoded;

/// Grant of a principal for a server. Contains no tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamGrantSummary {
    /// Authorization server.
    pub issuer: String,
    /// Resource URI of the MCP server.
    pub resource: String,
    /// Granted scopes.
    pub scopes: Vec<String>,
    /// Scopes that the server requires in addition. The next sign-in requests them.
    pub missing_scopes: Vec<String>,
    /// Expiry of the access token, if it has one.
    pub expires_at: Option<Timestamp>,
    /// `true` if the token can be renewed without the user.
    pub is_renewable: bool,
}

/// Grants of all principals for one server. Cheap to clone.
#[derive(Clone)]
pub(super) struct ServerGrantStore {
    pub(super) vault: Vault,
    pub(super) traffic: AuthorizationServerClient,
    pub(super) clock: Arc<dyn Clock>,
    /// Resource URI of the server.
    pub(super) uri: String,
}

impl ServerGrantStore {
    /// Returns the grants of the principal.
    ///
    /// # Errors
    /// Returns [`UpstreamAuthError`] if the vault cannot be read.
    pub(super) async fn of_principal(
        &self,
        principal: &Principal,
    ) -> Result<Vec<UpstreamGrantSummary>, UpstreamAuthError> {
        let mut grants = Vec::new();
        for key in grants_for(&self.vault, principal, &self.uri).await? {
            if let Some(tokens) = self.vault.get(&key).await? {
                grants.push(UpstreamGrantSummary::of(&key, &tokens));
            }
        }
        Ok(grants)
    }

    /// Deletes the grants of the principal, after requests to their issuers to revoke them.
    ///
    /// # Errors
    /// Returns [`UpstreamAuthError`] if a grant cannot be deleted.
    pub(super) async fn sign_out(
        &self,
        principal: &Principal,
    ) -> Result<Vec<TokenRevocationReport>, UpstreamAuthError> {
        let mut all = Vec::new();
        for key in grants_for(&self.vault, principal, &self.uri).await? {
            // Runs under the lock: a renewal in progress ends first, and its new tokens are revoked.
            let revoked = self.vault.update::<_, VaultError, _>(&key, async |tokens| match tokens {
                Some(tokens) => Ok((None, Some(self.revoke(&tokens).await))),
                None => Ok((None, None)),
            });
            let revoked = match revoked.await {
                Err(VaultError::Busy) => return Err(VaultError::Busy.into()),
                // Unreadable tokens cannot be revoked, but they are deleted.
                Err(error) => {
                    self.vault.remove(&key).await?;
                    Some(Err(with_causes(&error)))
                }
                Ok(revoked) => revoked,
            };
            if let Some(revoked) = revoked {
                all.push(TokenRevocationReport { issuer: key.issuer.clone(), origin: self.uri.clone(), revoked });
            }
        }
        Ok(all)
    }

    /// Returns the stored token of the principal, renewed if it expires soon or is `refused`. Deletes the grant if its
    /// issuer rejects the renewal. Renewals of one grant run one at a time across processes.
    pub(super) async fn token(
        &self,
        principal: &Principal,
        refused: Option<&Secret>,
    ) -> Result<Tokens, UpstreamAuthError> {
        let vault = &self.vault;
        let key =
            grants_for(vault, principal, &self.uri).await?.into_iter().next().ok_or(UpstreamAuthError::NotSignedIn)?;
        let outcome = vault.update::<_, UpstreamAuthError, _>(&key, async |stored| {
            let Some(tokens) = stored else { return Ok((None, Err(UpstreamAuthError::NotSignedIn))) };
            let is_refused = refused == Some(&tokens.access_token);
            if !is_refused && self.lasts(tokens.expires_at, EARLY) {
                return Ok((Some(tokens.clone()), Ok(tokens)));
            }
            let registration = GrantClientRegistration::of(&tokens)?;
            let Some(refresh) = &tokens.refresh_token else {
                // It may still be valid for a short time.
                return Ok(match !is_refused && self.lasts(tokens.expires_at, Duration::ZERO) {
                    true => (Some(tokens.clone()), Ok(tokens)),
                    false => (None, Err(UpstreamAuthError::InvalidGrant)),
                });
            };
            match self.renew(&key, &registration, &tokens, refresh).await {
                Ok(new) => Ok((Some(new.clone()), Ok(new))),
                Err(UpstreamAuthError::InvalidGrant) => Ok((None, Err(UpstreamAuthError::InvalidGrant))),
                Err(UpstreamAuthError::Refused(_)) if !is_refused && self.lasts(tokens.expires_at, Duration::ZERO) => {
                    Ok((Some(tokens.clone()), Ok(tokens)))
                }
                Err(error) => Err(error),
            }
        });
        outcome.await?
    }

    async fn renew(
        &self,
        key: &TokenLookupKey,
        registration: &GrantClientRegistration,
        tokens: &Tokens,
        refresh: &Secret,
    ) -> Result<Tokens, UpstreamAuthError> {
        let secrets = registration.secrets(tokens);
        let failed = |error: AuthError| UpstreamAuthError::of(&error, &secrets);
        let mut manager = manager_for(&self.traffic, &registration.resource).await?;
        manager.set_metadata(registration.metadata(&key.issuer));
        let config = OAuthClientConfig::new(registration.client_id.clone(), registration.redirect_uri.clone());
        let config = match &registration.client_secret {
            Some(secret) => config.with_client_secret(secret.clone()),
            None => config,
        };
        manager.configure_client(config).map_err(failed)?;
        let old: OAuthTokenResponse = serde_json::from_value(json!({
            "access_token": tokens.access_token.expose(),
            "token_type": "bearer",
            "refresh_token": refresh.expose(),
        }))
        .map_err(|_| UpstreamAuthError::InvalidGrant)?;
        let stored = StoredCredentials::new(registration.client_id.clone(), Some(old), tokens.scopes.clone(), None);
        let store = InMemoryCredentialStore::new();
        store.save(stored.with_issuer(Some(key.issuer.clone()))).await.map_err(failed)?;
        manager.set_credential_store(store);
        let renewed = manager.refresh_token().await.map_err(|error| match error {
            AuthError::TokenRefreshRejected(_) | AuthError::AuthorizationRequired => UpstreamAuthError::InvalidGrant,
            error => failed(error),
        })?;
        let body = serde_json::to_vec(&renewed).map_err(|error| UpstreamAuthError::Refused(error.to_string()))?;
        let renewed = read_tokens(&body, Some(refresh.clone()), tokens.scopes.clone(), self.clock.now())?;
        Ok(Tokens { registration: tokens.registration.clone(), ..renewed })
    }

    /// Asks the issuer to revoke tokens (RFC 7009).
    async fn revoke(&self, tokens: &Tokens) -> Result<(), String> {
        let registration = GrantClientRegistration::of(tokens).map_err(|error| error.to_string())?;
        let Some(url) = &registration.revocation_endpoint else {
            return Err("its authorization server has no endpoint that revokes tokens".into());
        };
        let (token, hint) = match &tokens.refresh_token {
            Some(refresh) => (refresh, "refresh_token"),
            None => (&tokens.access_token, "access_token"),
        };
        let mut pairs =
            vec![("token", token.expose()), ("token_type_hint", hint), ("client_id", registration.client_id.as_str())];
        pairs.extend(registration.client_secret.as_deref().map(|secret| ("client_secret", secret)));
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        let sent = self.traffic.send(Method::POST, url, headers, form.into(), RedirectPolicy::None).await;
        let response = sent.map_err(|error| with_causes(&error))?;
        match response.status.is_success() {
            true => Ok(()),
            false => Err(format!("it answered with the HTTP status {}", response.status.as_u16())),
        }
    }

    /// Returns the stored token if it is not the `refused` one, which lacks these scopes. Otherwise stores the scopes
    /// for the next sign-in.
    ///
    /// # Errors
    /// Returns [`UpstreamAuthError::MissingScopes`] if a further sign-in is needed, and
    /// [`Unavailable`](UpstreamAuthError::Unavailable) if it would not help.
    pub(super) async fn for_scopes(
        &self,
        principal: &Principal,
        refused: Option<&Secret>,
        scopes: &[String],
    ) -> Result<Tokens, UpstreamAuthError> {
        let key = grants_for(&self.vault, principal, &self.uri).await?.into_iter().next();
        let key = key.ok_or(UpstreamAuthError::NotSignedIn)?;
        let outcome = self.vault.update::<_, UpstreamAuthError, _>(&key, async |stored| {
            let mut tokens = stored.ok_or(UpstreamAuthError::NotSignedIn)?;
            if refused != Some(&tokens.access_token) {
                return Ok((Some(tokens.clone()), Ok(tokens)));
            }
            let missing: Vec<String> = scopes.iter().filter(|scope| !tokens.scopes.contains(scope)).cloned().collect();
            if missing.is_empty() {
                let reason = match scopes.is_empty() {
                    true => "the sign-in lacks a scope that the server does not name".to_owned(),
                    false => format!("the server refuses the scopes that it requires ({})", scopes.join(" ")),
                };
                return Ok((Some(tokens), Err(UpstreamAuthError::Unavailable(reason))));
            }
            let mut registration = GrantClientRegistration::of(&tokens)?;
            if registration.require(&missing) {
                tokens.registration = Some(registration.to_secret()?);
            }
            Ok((Some(tokens), Err(UpstreamAuthError::MissingScopes(missing.join(" ")))))
        });
        outcome.await?
    }

    /// Returns `true` if a token is valid for longer than this.
    fn lasts(&self, expires_at: Option<Timestamp>, time: Duration) -> bool {
        expires_at.is_none_or(|end| end.since(self.clock.now()) > time)
    }
}

impl UpstreamGrantSummary {
    pub(super) fn of(key: &TokenLookupKey, tokens: &Tokens) -> Self {
        let missing =
            GrantClientRegistration::of(tokens).map(|registration| registration.missing_scopes).unwrap_or_default();
        Self {
            issuer: key.issuer.clone(),
            resource: key.origin().to_owned(),
            scopes: tokens.scopes.clone(),
            missing_scopes: missing,
            expires_at: tokens.expires_at,
            is_renewable: tokens.refresh_token.is_some(),
        }
    }
}
