//! Token requests to the issuer: exchange of a code, renewal and revocation.

use super::{
    attempt::{AuthorizationCode, SignInAttempt, word},
    oauth_client::OAuthClient,
    token_error::TokenError,
    vault::Tokens,
};
use crate::web::web_client::{RedirectPolicy, RetryPolicy, UrlSource, WebClient, WebRequest, WebResponse};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde::Deserialize;
use std::time::{Duration, Instant};
use toolstead_domain::{Secret, Timestamp};
use url::{Url, form_urlencoded};

/// Timeout of a request to the issuer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum size of a response, in bytes. Tokens have a few thousand.
const MAX_ANSWER: usize = 64 << 10;
/// Maximum length of a token, in bytes.
const MAX_TOKEN: usize = 16 << 10;
/// Maximum number of scopes of a grant.
const MAX_SCOPES: usize = 256;
/// Maximum length of an issuer's text to report, in characters.
const MAX_MESSAGE_CHARS: usize = 200;
/// Maximum lifetime of a token, in seconds: a hundred years, so that adding it to the time cannot overflow.
const LONGEST: u64 = 100 * 365 * 24 * 3600;

/// Client for the token endpoints of an issuer.
#[derive(Debug, Clone)]
pub(super) struct IssuerClient {
    pub(super) client: OAuthClient,
    pub(super) reach: WebClient,
}

/// Successful response (RFC 6749, section 5.1).
#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
    token_type: String,
    #[serde(default)]
    expires_in: Option<Seconds>,
    #[serde(default)]
    refresh_token: Option<String>,
    #[serde(default)]
    scope: Option<String>,
}

/// Number of seconds. Some issuers write it as a string.
#[derive(Deserialize)]
#[serde(untagged)]
enum Seconds {
    Number(f64),
    Text(String),
}

/// Error response (RFC 6749, section 5.2).
#[derive(Deserialize)]
struct OAuthErrorResponse {
    error: String,
    #[serde(default)]
    error_description: Option<String>,
}

impl IssuerClient {
    /// Exchanges a code for tokens. `scopes` are the requested ones, which count as granted if the issuer names none.
    pub(super) async fn exchange(
        &self,
        attempt: &SignInAttempt,
        code: &AuthorizationCode,
        scopes: &[&str],
        now: Timestamp,
    ) -> Result<Tokens, TokenError> {
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code.secret.expose()),
            ("redirect_uri", &attempt.redirect_uri),
            ("code_verifier", attempt.verifier.expose()),
        ];
        let success = self.tokens(&form).await?;
        let asked: Vec<String> = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        tokens(success, None, asked, now)
    }

    /// Renews tokens. If the issuer returns no new refresh token, the old one remains in use.
    pub(super) async fn renewed(&self, old: &Tokens, refresh: &Secret, now: Timestamp) -> Result<Tokens, TokenError> {
        let form = [("grant_type", "refresh_token"), ("refresh_token", refresh.expose())];
        let success = self.tokens(&form).await?;
        tokens(success, Some(refresh.clone()), old.scopes.clone(), now)
    }

    /// Revokes tokens at the issuer, with everything granted along with them.
    pub(super) async fn revoke(&self, tokens: &Tokens) -> Result<(), TokenError> {
        let (token, hint) = match &tokens.refresh_token {
            Some(refresh) => (refresh, "refresh_token"),
            None => (&tokens.access_token, "access_token"),
        };
        let form = [("token", token.expose()), ("token_type_hint", hint)];
        let answer = self.post(&self.client.revocation_url, &form).await?;
        match answer.status.is_success() {
            true => Ok(()),
            false => Err(refused(&answer, &self.secrets(&form))),
        }
    }

    async fn tokens(&self, form: &[(&str, &str)]) -> Result<TokenResponse, TokenError> {
        let answer = self.post(&self.client.token_url, form).await?;
        if answer.status != StatusCode::OK {
            return Err(refused(&answer, &self.secrets(form)));
        }
        if answer.is_cut {
            return Err(TokenError::Protocol("it is too long"));
        }
        serde_json::from_slice(&answer.body).map_err(|_| TokenError::Protocol("it has no tokens"))
    }

    async fn post(&self, url: &Url, form: &[(&str, &str)]) -> Result<WebResponse, TokenError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let asked = WebRequest {
            method: Method::POST,
            url,
            headers,
            body: self.body(form),
            url_source: UrlSource::Configuration,
            redirects: RedirectPolicy::None,
            retry: RetryPolicy::Never,
            body_bytes: MAX_ANSWER,
            deadline: Instant::now() + PATIENCE,
        };
        // The issuer is configured; no call chooses it.
        Ok(self.reach.send(asked, &|_| Ok(())).await?)
    }

    /// Returns the form with the client's id and secret.
    fn body(&self, form: &[(&str, &str)]) -> Bytes {
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(form);
        body.append_pair("client_id", &self.client.client_id);
        body.append_pair("client_secret", self.client.client_secret.expose());
        body.finish().into()
    }

    /// Returns the secrets in a form, and the client's. They must not be displayed, even if an issuer repeats them in
    /// an error.
    fn secrets<'a>(&'a self, form: &[(&str, &'a str)]) -> Vec<&'a str> {
        const PLAIN: [&str; 3] = ["grant_type", "redirect_uri", "token_type_hint"];
        let sent = form.iter().filter(|(name, _)| !PLAIN.contains(name)).map(|(_, value)| *value);
        sent.chain([self.client.client_secret.expose()]).filter(|secret| !secret.is_empty()).collect()
    }
}

/// Parses the body of a successful token response. `refresh` remains in use if the response has no new refresh token;
/// `asked` are the requested scopes.
#[cfg_attr(not(feature = "upstream-auth"), expect(dead_code, reason = "for sign-in to MCP servers alone"))]
pub(crate) fn read_tokens(
    body: &[u8],
    refresh: Option<Secret>,
    asked: Vec<String>,
    now: Timestamp,
) -> Result<Tokens, TokenError> {
    let success = serde_json::from_slice(body).map_err(|_| TokenError::Protocol("it has no tokens"))?;
    tokens(success, refresh, asked, now)
}

fn tokens(
    success: TokenResponse,
    refresh: Option<Secret>,
    asked: Vec<String>,
    now: Timestamp,
) -> Result<Tokens, TokenError> {
    if !success.token_type.eq_ignore_ascii_case("bearer") {
        return Err(TokenError::Protocol("its tokens are not of type `Bearer`"));
    }
    let token = |text: String| match is_token(&text) {
        true => Ok(Secret::new(text)),
        false => Err(TokenError::Protocol("its token is not valid in a header")),
    };
    let scopes = match success.scope {
        // "OPTIONAL, if identical to the scope requested by the client" (RFC 6749, section 5.1).
        None => asked,
        Some(text) if text.len() > MAX_TOKEN => return Err(TokenError::Protocol("its scope is too long")),
        Some(text) => text.split_ascii_whitespace().take(MAX_SCOPES).map(str::to_owned).collect(),
    };
    let seconds = success.expires_in.and_then(|seconds| match seconds {
        Seconds::Number(number) if number >= 0.0 => Some(number as u64),
        Seconds::Number(_) => None,
        Seconds::Text(text) => text.trim().parse().ok(),
    });
    let expires_at = seconds.map(|seconds| {
        let lasts = i64::try_from(seconds.min(LONGEST) * 1_000_000).unwrap_or(i64::MAX);
        Timestamp(now.0.saturating_add(lasts))
    });
    Ok(Tokens {
        access_token: token(success.access_token)?,
        refresh_token: success.refresh_token.map(token).transpose()?.or(refresh),
        expires_at,
        scopes,
        registration: None,
    })
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_TOKEN && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns the error in a response that refuses tokens, with these secrets removed.
pub(crate) fn refused(answer: &WebResponse, secrets: &[&str]) -> TokenError {
    let Ok(refusal) = serde_json::from_slice::<OAuthErrorResponse>(&answer.body) else {
        return TokenError::Refused(format!("HTTP {}", answer.status.as_u16()));
    };
    let error = word(&refusal.error);
    let mut said = refusal.error_description.unwrap_or_default();
    // "Values for the "error_description" parameter MUST NOT include characters outside" of ASCII.
    said.retain(|c| c == ' ' || c.is_ascii_graphic());
    for secret in secrets {
        said = said.replace(secret, "…");
    }
    let said: String = said.chars().take(MAX_MESSAGE_CHARS).collect();
    let message = if said.trim().is_empty() { error.clone() } else { format!("{error}, {}", said.trim()) };
    match error.as_str() {
        "invalid_grant" => TokenError::Grant(message),
        "invalid_client" | "unauthorized_client" => TokenError::Client(message),
        _ => TokenError::Refused(message),
    }
}
