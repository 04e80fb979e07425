//! Registration of the client that received the tokens of a grant, stored with them.

use super::upstream_auth_error::UpstreamAuthError;
use crate::accounts::vault::{MCP_SERVER, TokenLookupKey, Tokens, Vault, VaultError};
use rmcp::transport::auth::AuthorizationMetadata;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolstead_domain::{Principal, Secret};
use url::Url;

/// Member of the metadata with the address that revokes tokens (RFC 8414).
pub(super) const REVOCATION: &str = "revocation_endpoint";
/// Member of the metadata with the authentication methods of the token endpoint (RFC 8414).
const AUTH_METHODS: &str = "token_endpoint_auth_methods_supported";
/// Maximum number of scopes to remember.
const MAX_SCOPES: usize = 64;

/// Client and endpoints that the tokens of a grant belong to. Tokens are renewed and revoked only there, even if the
/// server later names other endpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GrantClientRegistration {
    /// Resource that the tokens are for (RFC 8707).
    pub(super) resource: Url,
    pub(super) client_id: String,
    pub(super) client_secret: Option<String>,
    pub(super) redirect_uri: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) revocation_endpoint: Option<Url>,
    pub(super) auth_methods: Option<Value>,
    /// Scopes that the server required in addition, and that the next sign-in requests.
    #[serde(default)]
    pub(super) missing_scopes: Vec<String>,
}

impl GrantClientRegistration {
    /// Reads the registration of stored tokens.
    ///
    /// # Errors
    /// Returns [`UpstreamAuthError::InvalidGrant`] if there is none.
    pub(super) fn of(tokens: &Tokens) -> Result<Self, UpstreamAuthError> {
        let text = tokens.registration.as_ref().map(Secret::expose).unwrap_or_default();
        serde_json::from_str(text).map_err(|_| UpstreamAuthError::InvalidGrant)
    }

    /// Returns the registration as it is stored.
    ///
    /// # Errors
    /// Returns [`UpstreamAuthError::Refused`] if it cannot be serialized.
    pub(super) fn to_secret(&self) -> Result<Secret, UpstreamAuthError> {
        let text = serde_json::to_string(self).map_err(|error| UpstreamAuthError::Refused(error.to_string()))?;
        Ok(Secret::new(text))
    }

    /// Copies the parts of the metadata that renewal and revocation need.
    pub(super) fn from_metadata(
        metadata: &AuthorizationMetadata,
        resource: Url,
        (client_id, client_secret): (String, Option<String>),
        redirect_uri: String,
    ) -> Self {
        let revocation = metadata.additional_fields.get(REVOCATION).and_then(Value::as_str);
        Self {
            resource,
            client_id,
            client_secret,
            redirect_uri,
            authorization_endpoint: metadata.authorization_endpoint.clone(),
            token_endpoint: metadata.token_endpoint.clone(),
            revocation_endpoint: revocation.and_then(|url| Url::parse(url).ok()),
            auth_methods: metadata.additional_fields.get(AUTH_METHODS).cloned(),
            missing_scopes: Vec::new(),
        }
    }

    /// Returns the metadata of the issuer, as far as it is stored.
    pub(super) fn metadata(&self, issuer: &str) -> AuthorizationMetadata {
        let mut metadata = AuthorizationMetadata::default();
        metadata.issuer = Some(issuer.to_owned());
        metadata.authorization_endpoint.clone_from(&self.authorization_endpoint);
        metadata.token_endpoint.clone_from(&self.token_endpoint);
        if let Some(methods) = &self.auth_methods {
            metadata.additional_fields.insert(AUTH_METHODS.to_owned(), methods.clone());
        }
        metadata
    }

    /// Adds scopes that the server requires, up to [`MAX_SCOPES`]. Returns `true` if one was added.
    pub(super) fn require(&mut self, scopes: &[String]) -> bool {
        let before = self.missing_scopes.len();
        for scope in scopes {
            if self.missing_scopes.len() < MAX_SCOPES && !self.missing_scopes.contains(scope) {
                self.missing_scopes.push(scope.clone());
            }
        }
        self.missing_scopes.len() > before
    }

    /// Returns the secrets that no message may contain.
    pub(super) fn secrets<'a>(&'a self, tokens: &'a Tokens) -> Vec<&'a str> {
        let own = [Some(tokens.access_token.expose()), tokens.refresh_token.as_ref().map(Secret::expose)];
        own.into_iter().flatten().chain(self.client_secret.as_deref()).collect()
    }
}

/// Returns the URI of a server as a resource: its address without a fragment (RFC 8707).
pub(super) fn resource_uri(server: &Url) -> String {
    let mut uri = server.clone();
    uri.set_fragment(None);
    uri.to_string()
}

/// Returns the key of the vault for a principal's grant at this issuer for the server with this resource URI.
pub(super) fn token_key(principal: &Principal, issuer: &str, uri: &str) -> TokenLookupKey {
    TokenLookupKey { principal: principal.clone(), issuer: issuer.to_owned(), resource: format!("{MCP_SERVER} {uri}") }
}

/// Returns the keys of the principal's grants for a server. There is one, unless a sign-in at another authorization
/// server was interrupted.
///
/// # Errors
/// Returns [`VaultError`].
pub(super) async fn grants_for(
    vault: &Vault,
    principal: &Principal,
    uri: &str,
) -> Result<Vec<TokenLookupKey>, VaultError> {
    let mut keys = vault.list(principal).await?.keys;
    keys.retain(|key| key.grant() == MCP_SERVER && key.origin() == uri);
    Ok(keys)
}
