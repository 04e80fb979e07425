//! Enterprise-managed authorization: the identity provider issues an assertion (ID-JAG) for a principal, and the
//! authorization server of the MCP server exchanges it for a token.

use super::{
    authorization_server::{DiscoveryPurpose, discover},
    authorization_server_client::AuthorizationServerClient,
    registration::resource_uri,
    settings::IdJagSettings,
    upstream_auth_error::UpstreamAuthError,
};
use crate::accounts::vault::Tokens;
use oauth2::ClientSecret;
use rmcp::transport::auth::enterprise::{
    EmaAuthorizationServer, EmaClientAuthentication, EmaError, EmaExchangeRequest,
};
use serde_json::Value;
use toolstead_domain::{Secret, Timestamp};

/// Exchanges the identity token of a principal for a token with these scopes.
///
/// # Errors
/// Returns [`UpstreamAuthError`]; [`InvalidGrant`](UpstreamAuthError::InvalidGrant) if the identity token is no longer
/// valid.
pub(super) async fn request_token(
    traffic: &AuthorizationServerClient,
    settings: &IdJagSettings,
    id_token: &Secret,
    scopes: &[String],
    now: Timestamp,
) -> Result<Tokens, UpstreamAuthError> {
    let server = discover(traffic, settings.client.issuer.as_deref(), DiscoveryPurpose::Tokens).await?;
    let secret = |secret: &Secret| ClientSecret::new(secret.expose().to_owned());
    let methods = server.metadata.additional_fields.get("token_endpoint_auth_methods_supported");
    let methods = methods.and_then(Value::as_array);
    let has = |name: &str| methods.is_some_and(|all| all.iter().any(|method| method == name));
    let idp = EmaAuthorizationServer::new(
        settings.idp_issuer.clone(),
        settings.idp_token_url.as_str(),
        settings.idp_client_id.clone(),
    );
    let idp = match &settings.idp_client_secret {
        Some(own) => idp.with_client_authentication(EmaClientAuthentication::ClientSecretBasic(secret(own))),
        None => idp,
    };
    let own = secret(&settings.client.client_secret);
    let resource_server = EmaAuthorizationServer::new(
        server.issuer.clone(),
        server.metadata.token_endpoint.clone(),
        settings.client.client_id.clone(),
    )
    .with_client_authentication(match has("client_secret_post") && !has("client_secret_basic") {
        true => EmaClientAuthentication::ClientSecretPost(own),
        false => EmaClientAuthentication::ClientSecretBasic(own),
    });
    let resource = resource_uri(&traffic.server);
    let request = EmaExchangeRequest::new_with_id_token(idp, resource_server, &resource, id_token.expose());
    let exchanged = request.with_scopes(scopes).exchange(traffic, traffic).await.map_err(|error| match error {
        EmaError::InvalidGrant(_) | EmaError::InsufficientUserAuthentication(_) => UpstreamAuthError::InvalidGrant,
        error => UpstreamAuthError::Refused(error.to_string()),
    })?;
    let expires_at = exchanged.expires_in.map(|lasts| {
        let micros = i64::try_from(lasts.as_micros()).unwrap_or(i64::MAX);
        Timestamp(now.0.saturating_add(micros))
    });
    let mut scopes: Vec<String> = exchanged.scopes.into_iter().collect();
    scopes.sort();
    Ok(Tokens {
        access_token: Secret::new(exchanged.access_token.secret().as_str()),
        refresh_token: None,
        expires_at,
        scopes,
        registration: None,
    })
}
