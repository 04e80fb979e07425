//! Sign-in of one principal for one server.

use super::{
    authorization_server::{AuthorizationServer, DiscoveryPurpose, discover},
    registration::{GrantClientRegistration, grants_for, token_key},
    settings::SignInSettings,
    stored_grants::{ServerGrantStore, UpstreamGrantSummary},
    upstream_auth_error::UpstreamAuthError,
};
use crate::accounts::{
    attempt::{AuthorizationCode, RedirectError, SignInAttempt},
    issuer::read_tokens,
    loopback::LoopbackListener,
    sign_in_error::SignInError,
};
use rmcp::transport::auth::{AuthorizationManager, OAuthClientConfig};
use serde_json::Value;
use std::fmt;
use toolstead_domain::{Principal, Secret};
use url::Url;

/// Name of the client in its registration.
const CLIENT_NAME: &str = "Toolstead";
/// Scope with which many authorization servers issue refresh tokens.
const OFFLINE_ACCESS: &str = "offline_access";

/// Sign-in in progress: the user opens its page, which redirects the browser to this process with a code.
pub struct UpstreamSignInAttempt {
    grants: ServerGrantStore,
    principal: Principal,
    manager: AuthorizationManager,
    registration: GrantClientRegistration,
    issuer: String,
    scopes: Vec<String>,
    attempt: SignInAttempt,
    loopback: LoopbackListener,
}

/// Authorization code of a redirect.
#[derive(Debug)]
pub struct UpstreamAuthorizationCode(AuthorizationCode);

impl UpstreamSignInAttempt {
    /// Finds the authorization server, registers the client there unless one is configured, listens for the redirect on
    /// loopback, and prepares the page.
    pub(super) async fn begin(
        grants: &ServerGrantStore,
        settings: &SignInSettings,
        principal: &Principal,
    ) -> Result<Self, UpstreamAuthError> {
        let ServerGrantStore { vault, traffic, uri, .. } = grants;
        let mut server = discover(traffic, settings.issuer.as_deref(), DiscoveryPurpose::SignIn).await?;
        // Scopes that the server required later are requested together with those of the current grant.
        let stored = vault.get(&token_key(principal, &server.issuer, uri)).await.ok().flatten();
        let missing = stored.as_ref().and_then(|tokens| GrantClientRegistration::of(tokens).ok());
        let missing = missing.map(|registration| registration.missing_scopes).unwrap_or_default();
        let granted =
            if missing.is_empty() { Vec::new() } else { stored.map(|tokens| tokens.scopes).unwrap_or_default() };
        let scopes = select_scopes(&server, settings, [granted, missing].concat()).await;
        let loopback = LoopbackListener::listen().map_err(SignInError::Begin)?;
        let redirect_uri = loopback.redirect_uri();
        let client = register(&mut server, settings, &redirect_uri, &scopes).await?;
        let names: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let page = server.manager.get_authorization_url(&names).await;
        let page = page.map_err(|error| UpstreamAuthError::of(&error, &[]))?;
        let page = Url::parse(&page).map_err(|error| UpstreamAuthError::Refused(error.to_string()))?;
        let value = |name: &str| page.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
        let resource = value("resource").and_then(|resource| Url::parse(&resource).ok());
        let state = Secret::new(value("state").unwrap_or_default());
        let registration = GrantClientRegistration::from_metadata(
            &server.metadata,
            resource.unwrap_or_else(|| traffic.server.clone()),
            client,
            redirect_uri.clone(),
        );
        Ok(Self {
            grants: grants.clone(),
            principal: principal.clone(),
            manager: server.manager,
            registration,
            issuer: server.issuer,
            scopes,
            attempt: SignInAttempt::with_page(page, state, redirect_uri),
            loopback,
        })
    }

    /// Returns the page for the user to open.
    pub fn page(&self) -> &Url {
        &self.attempt.page
    }

    /// Waits until the page redirects a browser on this machine. Cancel-safe.
    ///
    /// # Errors
    /// Returns [`UpstreamAuthError`].
    pub async fn wait_for_code(&self) -> Result<UpstreamAuthorizationCode, UpstreamAuthError> {
        Ok(UpstreamAuthorizationCode(self.loopback.wait_for_code(&self.attempt).await?))
    }

    /// Reads a text that the user pasted: the whole URL that the page redirected to, or the code alone. An inner `Err`
    /// is the reason why the text does not belong to this sign-in, which continues.
    ///
    /// # Errors
    /// Returns [`UpstreamAuthError`].
    pub fn pasted(&self, text: &str) -> Result<Result<UpstreamAuthorizationCode, &'static str>, UpstreamAuthError> {
        match self.attempt.pasted(text) {
            Ok(code) => Ok(Ok(UpstreamAuthorizationCode(code))),
            Err(RedirectError::Foreign(why)) => Ok(Err(why)),
            Err(RedirectError::Over(error)) => Err(error.into()),
        }
    }

    /// Exchanges the code for tokens, and stores them. Grants of the same principal for the same server at other
    /// authorization servers are deleted; a failure to delete one is only logged.
    ///
    /// # Errors
    /// Returns [`UpstreamAuthError`]. Nothing is stored.
    pub async fn finish(self, code: UpstreamAuthorizationCode) -> Result<UpstreamGrantSummary, UpstreamAuthError> {
        // Runs in a task, so that the tokens of an exchanged code are stored even if the caller is cancelled.
        let finishing = tokio::spawn(self.exchange(code.0));
        finishing.await.unwrap_or_else(|error| Err(SignInError::Begin(error.into()).into()))
    }

    async fn exchange(self, code: AuthorizationCode) -> Result<UpstreamGrantSummary, UpstreamAuthError> {
        let Self { grants, principal, manager, registration, issuer, scopes, attempt, loopback } = self;
        // Frees the port.
        drop(loopback);
        let secrets = [code.secret.expose(), registration.client_secret.as_deref().unwrap_or_default()];
        let (secret, state) = (code.secret.expose(), attempt.state().expose());
        let exchanged = manager.exchange_code_for_token_with_issuer(secret, state, code.issuer.as_deref()).await;
        let exchanged = exchanged.map_err(|error| UpstreamAuthError::of(&error, &secrets))?;
        let body = serde_json::to_vec(&exchanged).map_err(|error| UpstreamAuthError::Refused(error.to_string()))?;
        let mut tokens = read_tokens(&body, None, scopes, grants.clock.now())?;
        tokens.registration = Some(registration.to_secret()?);
        let ServerGrantStore { vault, uri, .. } = &grants;
        let key = token_key(&principal, &issuer, uri);
        let grant = UpstreamGrantSummary::of(&key, &tokens);
        vault.put(&key, tokens).await?;
        // The sign-in is complete. A grant of another authorization server that remains is only unused.
        let others = grants_for(vault, &principal, uri).await.unwrap_or_default();
        for other in others.iter().filter(|other| **other != key) {
            if let Err(error) = vault.remove(other).await {
                tracing::warn!(error = &error as &dyn std::error::Error, "could not delete a replaced grant");
            }
        }
        Ok(grant)
    }
}

/// Selects the scopes to request: the configured ones, or else those that the server names; `further` ones; and, if
/// there are any scopes, [`OFFLINE_ACCESS`] if the authorization server supports it.
async fn select_scopes(server: &AuthorizationServer, settings: &SignInSettings, further: Vec<String>) -> Vec<String> {
    let mut scopes = match settings.scopes.is_empty() {
        true => server.manager.select_initial_scopes(&[]).await,
        false => settings.scopes.clone(),
    };
    scopes.extend(further);
    let supports_refresh = server.metadata.scopes_supported.iter().flatten().any(|scope| scope == OFFLINE_ACCESS);
    if !scopes.is_empty() && supports_refresh {
        scopes.push(OFFLINE_ACCESS.to_owned());
    }
    let mut selected: Vec<String> = Vec::new();
    for scope in scopes {
        if !selected.contains(&scope) {
            selected.push(scope);
        }
    }
    selected
}

/// Selects the client: the configured one, its metadata document, or a new registration (MCP 2026-07-28,
/// basic/authorization/client-registration). Returns its id and its secret.
async fn register(
    server: &mut AuthorizationServer,
    settings: &SignInSettings,
    redirect_uri: &str,
    scopes: &[String],
) -> Result<(String, Option<String>), UpstreamAuthError> {
    let supports_documents = server.metadata.additional_fields.get("client_id_metadata_document_supported");
    let document =
        settings.client_metadata_url.as_ref().filter(|_| supports_documents.and_then(Value::as_bool) == Some(true));
    let client = match (&settings.client_id, document) {
        (Some(id), _) => (id.clone(), settings.client_secret.as_ref().map(|secret| secret.expose().to_owned())),
        (None, Some(document)) => (document.to_string(), None),
        (None, None) if server.metadata.registration_endpoint.is_none() => {
            return Err(UpstreamAuthError::Unavailable(format!(
                "the authorization server `{}` registers no clients by itself: register one there, and set `client_id` \
                 in the `auth` table of the server",
                server.issuer
            )));
        }
        (None, None) => {
            let names: Vec<&str> = scopes.iter().map(String::as_str).collect();
            let registered = server.manager.register_client(CLIENT_NAME, redirect_uri, &names).await;
            let registered = registered.map_err(|error| UpstreamAuthError::of(&error, &[]))?;
            return Ok((registered.client_id, registered.client_secret));
        }
    };
    let config = OAuthClientConfig::new(client.0.clone(), redirect_uri).with_scopes(scopes.to_vec());
    let config = match &client.1 {
        Some(secret) => config.with_client_secret(secret.clone()),
        None => config,
    };
    server.manager.configure_client(config).map_err(|error| UpstreamAuthError::of(&error, &[]))?;
    Ok(client)
}

/// Shows no secret.
impl fmt::Debug for UpstreamSignInAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamSignInAttempt").field("attempt", &self.attempt).finish_non_exhaustive()
    }
}
