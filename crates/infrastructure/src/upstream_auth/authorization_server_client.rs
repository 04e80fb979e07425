//! HTTP requests of a sign-in: the addresses that may be contacted, and the client of the OAuth library.
//!
//! The configuration names the MCP server, but the MCP server names its authorization server, whose addresses are
//! therefore untrusted. They are reached by HTTPS in public networks only. Private networks are permitted on the host
//! of the MCP server and at addresses in the configuration, and loopback if the MCP server is on loopback.

use crate::web::{
    web_client::{RedirectPolicy, RetryPolicy, UrlSource, WebClient, WebRequest, WebResponse},
    web_error::WebError,
};
use bytes::Bytes;
use http::{HeaderMap, Method, Response, header};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRedirectPolicy, OAuthHttpRequest};
use std::time::{Duration, Instant};
use url::{Host, Url};

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of a response, in bytes. Metadata and tokens have a few thousand.
const MAX_RESPONSE_BYTES: usize = 256 << 10;
/// Maximum number of redirects, all on one host.
const MAX_REDIRECTS: u32 = 3;

/// Reason why a request has no response.
#[derive(Debug, thiserror::Error)]
pub(super) enum OAuthRequestError {
    /// The address is not a URL.
    #[error("`{0}` is not an address")]
    Address(String),
    /// The address is neither `https` nor on loopback.
    #[error("`{0}` is neither an `https` address nor on this machine, so no secret is sent there")]
    Plaintext(String),
    /// The address is in a private network, and the configuration does not name it.
    #[error("`{0}` is in a private network, and the configuration does not name it")]
    Private(String),
    /// The address contains a user or a password.
    #[error("the address at `{0}` contains a user name")]
    UserName(String),
    /// The response exceeds the maximum size.
    #[error("the response of `{0}` has more than {MAX_RESPONSE_BYTES} bytes")]
    TooLong(String),
    /// The request failed.
    #[error("`{origin}` was not reached")]
    Failed {
        /// Origin of the address.
        origin: String,
        /// Reason.
        source: WebError,
    },
}

/// HTTP client for the authorization server of one MCP server. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct AuthorizationServerClient {
    pub(super) web: WebClient,
    /// Address of the MCP server.
    pub(super) server: Url,
    /// Other addresses that the configuration names, which may be in private networks.
    pub(super) named: Vec<Url>,
}

/// Returns `true` if the host is a literal loopback address or `localhost`.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Checks that secrets may be sent to this address: by HTTPS or on loopback, and without a user or password in it.
///
/// # Errors
/// Returns [`OAuthRequestError`].
pub(super) fn check_encrypted(url: &Url) -> Result<(), OAuthRequestError> {
    let origin = || url.origin().ascii_serialization();
    match url.scheme() {
        _ if !url.username().is_empty() || url.password().is_some() => Err(OAuthRequestError::UserName(origin())),
        "https" => Ok(()),
        "http" if is_loopback(url) => Ok(()),
        _ => Err(OAuthRequestError::Plaintext(origin())),
    }
}

impl AuthorizationServerClient {
    /// Returns the source of an address, which determines the networks that it may be in.
    ///
    /// # Errors
    /// Returns [`OAuthRequestError`] if secrets must not be sent there.
    fn source_of(&self, url: &Url) -> Result<UrlSource, OAuthRequestError> {
        check_encrypted(url)?;
        let is_known = url.host() == self.server.host()
            || self.named.iter().any(|named| named.origin() == url.origin())
            || (is_loopback(url) && is_loopback(&self.server));
        Ok(if is_known { UrlSource::Configuration } else { UrlSource::Untrusted })
    }

    /// Checks an address that metadata names for the user's browser. Resolves no names.
    ///
    /// # Errors
    /// Returns [`OAuthRequestError`] if secrets must not be sent there, or if it is a private address that the
    /// configuration does not name.
    pub(super) fn check_page(&self, url: &Url) -> Result<(), OAuthRequestError> {
        let is_private = match url.host() {
            Some(Host::Ipv4(address)) => address.is_private() || address.is_link_local() || address.is_loopback(),
            Some(Host::Ipv6(address)) => {
                address.is_unique_local() || address.is_unicast_link_local() || address.is_loopback()
            }
            Some(Host::Domain(name)) => name == "localhost",
            None => true,
        };
        match self.source_of(url)? {
            UrlSource::Untrusted if is_private => Err(OAuthRequestError::Private(url.origin().ascii_serialization())),
            UrlSource::Untrusted | UrlSource::Configuration => Ok(()),
        }
    }

    /// Sends a request.
    ///
    /// # Errors
    /// Returns [`OAuthRequestError`].
    pub(super) async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
        redirects: RedirectPolicy,
    ) -> Result<WebResponse, OAuthRequestError> {
        let origin = || url.origin().ascii_serialization();
        let request = WebRequest {
            method,
            url,
            headers,
            body,
            url_source: self.source_of(url)?,
            redirects,
            retry: RetryPolicy::Never,
            body_bytes: MAX_RESPONSE_BYTES,
            deadline: Instant::now() + TIMEOUT,
        };
        // `source_of` has checked the address. No permission rules apply, because no tool call chooses it.
        let sent = self.web.send(request, &|_| Ok(())).await;
        let response = sent.map_err(|source| OAuthRequestError::Failed { origin: origin(), source })?;
        if response.is_cut { Err(OAuthRequestError::TooLong(origin())) } else { Ok(response) }
    }
}

impl OAuthHttpClient for AuthorizationServerClient {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let redirects = match request.redirect_policy {
                OAuthHttpRedirectPolicy::Follow => RedirectPolicy::SameHost(MAX_REDIRECTS),
                _ => RedirectPolicy::None,
            };
            let (parts, body) = request.request.into_parts();
            let url =
                Url::parse(&parts.uri.to_string()).map_err(|_| OAuthRequestError::Address(parts.uri.to_string()))?;
            let received = self.send(parts.method, &url, parts.headers, body.into(), redirects).await?;
            let mut response = Response::new(received.body.to_vec());
            *response.status_mut() = received.status;
            *response.headers_mut() = received.headers;
            // The body is already decompressed.
            response.headers_mut().remove(header::CONTENT_ENCODING);
            Ok(response)
        })
    }
}
