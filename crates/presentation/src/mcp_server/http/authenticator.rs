//! Who a request comes from.

use super::response::{Body, text};
use async_trait::async_trait;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{self, HeaderName},
    request::Parts,
};
use std::{fmt, hint::black_box, sync::Arc};
use toolstead_domain::principal::Principal;

/// Says on whose behalf a request comes, from its head alone.
///
/// It is asked behind the checks of `Host` and `Origin`, and before anything of the body is read; no answer of it gets
/// round those. It is asked for every request, so that a right that is taken back ends with the next one. A session up to
/// MCP 2025-11-25 stays with the principal that opened it.
///
/// ```
/// use http::{HeaderValue, request::Parts};
/// use toolstead_domain::principal::Principal;
/// use toolstead_presentation::mcp_server::http::authenticator::{Authenticated, Authenticator, NotAuthenticated, sole};
///
/// /// Believes the proxy before it, which nobody can get round.
/// #[derive(Debug)]
/// struct OfProxy;
///
/// #[async_trait::async_trait]
/// impl Authenticator for OfProxy {
///     async fn authenticate(&self, head: &Parts) -> Result<Authenticated, NotAuthenticated> {
///         match sole(&head.headers, "x-user".parse().unwrap()) {
///             Some(user) => Ok(Authenticated::new(Principal::new("user", user))),
///             None => Err(NotAuthenticated::unauthorized(HeaderValue::from_static("Bearer"))),
///         }
///     }
/// }
/// ```
#[async_trait]
pub trait Authenticator: Send + Sync + fmt::Debug {
    /// Who it is, or the refusal. Dropping the future ends the question; a client waits no longer than its connection.
    async fn authenticate(&self, head: &Parts) -> Result<Authenticated, NotAuthenticated>;
}

/// The one that a request comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Authenticated {
    /// On whose behalf it is made.
    pub principal: Principal,
    /// Tells the sessions of the principal apart, where the client names none itself (MCP 2026-07-28). `None`: the name
    /// of the client does.
    pub session: Option<Arc<str>>,
}

impl Authenticated {
    /// A request of this principal.
    pub fn new(principal: Principal) -> Self {
        Self { principal, session: None }
    }

    /// The same in a session of that name.
    #[must_use]
    pub fn in_session(self, name: impl Into<Arc<str>>) -> Self {
        Self { session: Some(name.into()), ..self }
    }
}

/// A request that is not served. All of it is told to whoever sent the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAuthenticated {
    status: StatusCode,
    reason: String,
    challenge: Option<HeaderValue>,
}

impl NotAuthenticated {
    /// A refusal with that status, which is one of an error (else 403), and a sentence for whoever debugs the client.
    pub fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        let is_error = status.is_client_error() || status.is_server_error();
        let status = if is_error { status } else { StatusCode::FORBIDDEN };
        Self { status, reason: reason.into(), challenge: None }
    }

    /// 401 with this `WWW-Authenticate`, which says how to get in: `Bearer`, or with `resource_metadata="…"` for OAuth.
    pub fn unauthorized(challenge: HeaderValue) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "authentication is required").challenging(challenge)
    }

    /// The same with this `WWW-Authenticate`.
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

/// The header's value if it is there once, and is text.
pub fn sole(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// What stands behind `Bearer` in the one `Authorization` of the request.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, given) = sole(headers, header::AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then(|| given.trim())
}

/// Compares without stopping at the first difference, so that the time it takes tells nothing of the secret but its
/// length.
pub fn is_same_secret(secret: &[u8], given: &[u8]) -> bool {
    let difference = secret.iter().zip(given).fold(0, |difference, (a, b)| black_box(difference | (a ^ b)));
    secret.len() == given.len() && black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_an_error_whatever_status_was_meant() {
        for (status, expected) in [(200, 403), (302, 403), (401, 401), (429, 429), (503, 503)] {
            let refusal = NotAuthenticated::new(StatusCode::from_u16(status).unwrap(), "no");
            assert_eq!(refusal.response().status(), expected, "{status}");
        }
        let challenged = NotAuthenticated::unauthorized(HeaderValue::from_static("Bearer realm=\"a\"")).response();
        assert_eq!(challenged.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(challenged.headers()[header::WWW_AUTHENTICATE], "Bearer realm=\"a\"");
    }
}
