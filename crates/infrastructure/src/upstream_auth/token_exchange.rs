//! Exchange of a principal's token for an access token for the server (RFC 8693).

use super::{
    authorization_server::{DiscoveryPurpose, discover},
    authorization_server_client::AuthorizationServerClient,
    registration::resource_uri,
    settings::ExchangeSettings,
    upstream_auth_error::UpstreamAuthError,
};
use crate::{
    accounts::{
        issuer::{read_tokens, refused},
        vault::Tokens,
    },
    web::web_client::RedirectPolicy,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use toolstead_domain::{Secret, Timestamp, error_chain::with_causes};
use url::{Url, form_urlencoded};

const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// Exchanges the token of a principal for a token with these scopes.
///
/// # Errors
/// Returns [`UpstreamAuthError`].
pub(super) async fn request_token(
    traffic: &AuthorizationServerClient,
    settings: &ExchangeSettings,
    subject_token: &Secret,
    scopes: &[String],
    now: Timestamp,
) -> Result<Tokens, UpstreamAuthError> {
    let url = match &settings.token_url {
        Some(url) => url.clone(),
        None => {
            let server = discover(traffic, None, DiscoveryPurpose::Tokens).await?;
            let parsed = Url::parse(&server.metadata.token_endpoint);
            parsed.map_err(|error| UpstreamAuthError::Refused(format!("the token endpoint: {error}")))?
        }
    };
    let (resource, scope) = (resource_uri(&traffic.server), scopes.join(" "));
    let mut pairs = vec![
        ("grant_type", GRANT_TYPE),
        ("subject_token", subject_token.expose()),
        ("subject_token_type", &settings.subject_token_type),
        ("requested_token_type", ACCESS_TOKEN),
        ("resource", &resource),
    ];
    pairs.extend(settings.audience.as_deref().map(|audience| ("audience", audience)));
    pairs.extend((!scope.is_empty()).then_some(("scope", scope.as_str())));
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    match &settings.client_secret {
        Some(secret) => _ = headers.insert(header::AUTHORIZATION, basic(&settings.client_id, secret)?),
        None => pairs.push(("client_id", &settings.client_id)),
    }
    let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    let sent = traffic.send(Method::POST, &url, headers, form.into(), RedirectPolicy::None).await;
    let response = sent.map_err(|error| UpstreamAuthError::Refused(with_causes(&error)))?;
    if response.status != StatusCode::OK {
        let secrets = [Some(subject_token), settings.client_secret.as_ref()];
        let secrets: Vec<&str> = secrets.into_iter().flatten().map(Secret::expose).collect();
        return Err(refused(&response, &secrets).into());
    }
    Ok(read_tokens(&response.body, None, scopes.to_vec(), now)?)
}

/// Returns the `Authorization` header of a client with a secret (RFC 6749, section 2.3.1).
fn basic(client_id: &str, secret: &Secret) -> Result<HeaderValue, UpstreamAuthError> {
    let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = STANDARD.encode(format!("{}:{}", encode(client_id), encode(secret.expose())));
    let mut value = HeaderValue::try_from(format!("Basic {pair}"))
        .map_err(|_| UpstreamAuthError::Unavailable("the client id is not valid in a header".into()))?;
    value.set_sensitive(true);
    Ok(value)
}
