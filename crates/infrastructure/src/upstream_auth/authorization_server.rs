//! Discovery of the authorization server of an MCP server (RFC 9728, RFC 8414), and the checks of its metadata.

use super::{authorization_server_client::AuthorizationServerClient, upstream_auth_error::UpstreamAuthError};
use crate::web::web_client::RedirectPolicy;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use rmcp::transport::auth::{AuthorizationManager, AuthorizationMetadata};
use std::sync::Arc;
use toolstead_domain::error_chain::with_causes;
use url::Url;

/// Request to which a protected server answers with its challenge.
const PROBE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// Authorization server with checked metadata.
pub(super) struct AuthorizationServer {
    pub(super) manager: AuthorizationManager,
    pub(super) metadata: AuthorizationMetadata,
    pub(super) issuer: String,
}

/// Use of the authorization server, which decides the endpoints to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiscoveryPurpose {
    /// A user signs in on a page.
    SignIn,
    /// Tokens are requested without a user.
    Tokens,
}

/// Finds the authorization server of the MCP server, and checks its metadata.
///
/// # Errors
/// Returns [`UpstreamAuthError`].
pub(super) async fn discover(
    traffic: &AuthorizationServerClient,
    expected_issuer: Option<&str>,
    purpose: DiscoveryPurpose,
) -> Result<AuthorizationServer, UpstreamAuthError> {
    let server = &traffic.server;
    let challenge = probe(traffic).await?;
    let mut manager = manager_for(traffic, server).await?;
    let resolved = manager.resolve_metadata_from_challenge(challenge.as_deref()).await;
    let resolved = resolved.map_err(|error| UpstreamAuthError::of(&error, &[]))?;
    let not_named = || UpstreamAuthError::NoAuthorizationServer(server.origin().ascii_serialization());
    if !resolved.source.is_discovered() {
        return Err(not_named());
    }
    let metadata = resolved.metadata;
    let issuer = metadata.issuer.clone().ok_or_else(not_named)?;
    if let Some(expected) = expected_issuer
        && expected.trim_end_matches('/') != issuer.trim_end_matches('/')
    {
        return Err(UpstreamAuthError::OtherIssuer { found: issuer, expected: expected.to_owned() });
    }
    if purpose == DiscoveryPurpose::SignIn {
        check_page(traffic, &metadata)?;
        // A server that announces no methods does not support PKCE (MCP 2026-07-28, basic/authorization).
        let methods = metadata.code_challenge_methods_supported.as_deref().unwrap_or_default();
        if !methods.iter().any(|method| method == "S256") {
            return Err(UpstreamAuthError::NoPkce(issuer));
        }
    }
    manager.set_metadata(metadata.clone());
    Ok(AuthorizationServer { manager, metadata, issuer })
}

/// Creates the state of the OAuth library for a resource.
///
/// # Errors
/// Returns [`UpstreamAuthError`] if the address is invalid.
pub(super) async fn manager_for(
    traffic: &AuthorizationServerClient,
    resource: &Url,
) -> Result<AuthorizationManager, UpstreamAuthError> {
    let client = Arc::new(traffic.clone());
    let manager = AuthorizationManager::new_with_oauth_http_client(resource.as_str(), client).await;
    manager.map_err(|error| UpstreamAuthError::of(&error, &[]))
}

fn check_page(traffic: &AuthorizationServerClient, metadata: &AuthorizationMetadata) -> Result<(), UpstreamAuthError> {
    let refused = |reason: String| UpstreamAuthError::Refused(format!("the page to sign in on: {reason}"));
    let page = Url::parse(&metadata.authorization_endpoint).map_err(|error| refused(error.to_string()))?;
    traffic.check_page(&page).map_err(|error| refused(error.to_string()))
}

/// Sends a request without a token, and returns the bearer challenge of the MCP server; `None` if it does not answer
/// with the status 401 and a challenge.
async fn probe(traffic: &AuthorizationServerClient) -> Result<Option<String>, UpstreamAuthError> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    let body = Bytes::from_static(PROBE.as_bytes());
    let sent = traffic.send(Method::POST, &traffic.server, headers, body, RedirectPolicy::None).await;
    let response = sent.map_err(|error| UpstreamAuthError::Refused(with_causes(&error)))?;
    if response.status != StatusCode::UNAUTHORIZED {
        return Ok(None);
    }
    let challenges = response.headers.get_all(header::WWW_AUTHENTICATE).iter();
    let mut challenges = challenges.filter_map(|value| value.to_str().ok());
    Ok(challenges
        .find(|value| value.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer")))
        .map(str::to_owned))
}
