//! Authentication of requests.

use super::response::{Body, text};
use async_trait::async_trait;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{self, HeaderName},
    request::Parts,
};
use std::{fmt, hint::black_box, sync::Arc};
use toolstead_domain::Principal;

/// Port that authenticates requests by their heads.
///
/// It is called after the checks of `Host` and `Origin`, which it cannot override, and before the body is read. It is
/// called for every request, so that a revoked permission ends with the next one. A session up to MCP 2025-11-25
/// remains with the principal that opened it.
///
/// ```
/// use http::{HeaderValue, request::Parts};
/// use toolstead_domain::Principal;
/// use toolstead_presentation::mcp_server::http::authenticator::{AuthenticatedClient, Authenticator, NotAuthenticated, sole};
///
/// /// Trusts the proxy in front of it, through which every request passes.
/// #[derive(Debug)]
/// struct OfProxy;
///
/// #[async_trait::async_trait]
/// impl Authenticator for OfProxy {
///     async fn authenticate(&self, head: &Parts) -> Result<AuthenticatedClient, NotAuthenticated> {
///         match sole(&head.headers, "x-user".parse().unwrap()) {
///             Some(user) => Ok(AuthenticatedClient::new(Principal::new("user", user))),
///             None => Err(NotAuthenticated::unauthorized(HeaderValue::from_static("Bearer"))),
///         }
///     }
/// }
/// ```
#[async_trait]
pub trait Authenticator: Send + Sync + fmt::Debug {
    /// Returns the sender of the request, or the refusal. The future is dropped if the client disconnects.
    async fn authenticate(&self, head: &Parts) -> Result<AuthenticatedClient, NotAuthenticated>;
}

/// Authenticated sender of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthenticatedClient {
    /// Principal on whose behalf the request is made.
    pub principal: Principal,
    /// Name that distinguishes sessions of the principal for clients that name none themselves (MCP 2026-07-28).
    /// `None`: the name of the client distinguishes them.
    pub session: Option<Arc<str>>,
}

impl AuthenticatedClient {
    /// Creates the sender for this principal.
    pub fn new(principal: Principal) -> Self {
        Self { principal, session: None }
    }

    /// Sets the name of the session.
    #[must_use]
    pub fn in_session(self, name: impl Into<Arc<str>>) -> Self {
        Self { session: Some(name.into()), ..self }
    }
}

/// Refusal of a request. All of it is sent to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAuthenticated {
    status: StatusCode,
    reason: String,
    challenge: Option<HeaderValue>,
}

impl NotAuthenticated {
    /// Creates a refusal with this status and a sentence for developers of the client. A status other than 4xx or 5xx
    /// becomes 403.
    pub fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        let is_error = status.is_client_error() || status.is_server_error();
        let status = if is_error { status } else { StatusCode::FORBIDDEN };
        Self { status, reason: reason.into(), challenge: None }
    }

    /// Creates a refusal with status 401 and this `WWW-Authenticate`, such as `Bearer`, or with `resource_metadata="…"`
    /// for OAuth.
    pub fn unauthorized(challenge: HeaderValue) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "authentication is required").challenging(challenge)
    }

    /// Sets `WWW-Authenticate`.
    #[must_use]
    pub fn challenging(self, challenge: HeaderValue) -> Self {
        Self { challenge: Some(challenge), ..self }
    }

    pub(super) fn response(self) -> Response<Body> {
        let mut response = text(self.status, self.reason);
        if let Some(challenge) = self.challenge {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// Returns the header's value if the header occurs exactly once and is text; otherwise `None`.
pub fn sole(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Returns the token after `Bearer` in the only `Authorization` header of the request.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, given) = sole(headers, header::AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then(|| given.trim())
}

/// Returns `true` if both secrets are equal. Does not stop at the first difference, so that the duration reveals only
/// their length.
pub fn is_same_secret(secret: &[u8], given: &[u8]) -> bool {
    let difference = secret.iter().zip(given).fold(0, |difference, (a, b)| black_box(difference | (a ^ b)));
    secret.len() == given.len() && black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_always_has_an_error_status() {
        for (status, expected) in [(200, 403), (302, 403), (401, 401), (429, 429), (503, 503)] {
            let refusal = NotAuthenticated::new(StatusCode::from_u16(status).unwrap(), "no");
            assert_eq!(refusal.response().status(), expected, "{status}");
        }
        let challenged = NotAuthenticated::unauthorized(HeaderValue::from_static("Bearer realm=\"a\"")).response();
        assert_eq!(challenged.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(challenged.headers()[header::WWW_AUTHENTICATE], "Bearer realm=\"a\"");
    }
}
