//! Tokens of this program itself (RFC 6749, section 4.4).

use super::{
    authorization_server::{DiscoveryPurpose, discover},
    authorization_server_client::AuthorizationServerClient,
    registration::resource_uri,
    settings::ClientCredentialsSettings,
    upstream_auth_error::UpstreamAuthError,
};
use crate::accounts::{issuer::read_tokens, vault::Tokens};
use rmcp::transport::auth::ClientCredentialsConfig;
use toolstead_domain::Timestamp;

/// Requests a token with these scopes.
///
/// # Errors
/// Returns [`UpstreamAuthError`].
pub(super) async fn request_token(
    traffic: &AuthorizationServerClient,
    settings: &ClientCredentialsSettings,
    scopes: &[String],
    now: Timestamp,
) -> Result<Tokens, UpstreamAuthError> {
    let mut server = discover(traffic, settings.issuer.as_deref(), DiscoveryPurpose::Tokens).await?;
    let failed = |error| UpstreamAuthError::of(&error, &[settings.client_secret.expose()]);
    let config = ClientCredentialsConfig::ClientSecret {
        client_id: settings.client_id.clone(),
        client_secret: settings.client_secret.expose().to_owned(),
        scopes: scopes.to_vec(),
        resource: Some(resource_uri(&traffic.server)),
    };
    server.manager.validate_client_credentials_metadata(&config).map_err(failed)?;
    server.manager.configure_client_credentials(&config).map_err(failed)?;
    let response = server.manager.exchange_client_credentials(&config).await.map_err(failed)?;
    let body = serde_json::to_vec(&response).map_err(|error| UpstreamAuthError::Refused(error.to_string()))?;
    Ok(read_tokens(&body, None, scopes.to_vec(), now)?)
}
