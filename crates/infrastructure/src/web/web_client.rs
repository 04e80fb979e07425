//! Requests to the web. The host of each request is checked before it is sent.

use crate::{
    egress::{
        connector::{Connector, Network},
        host::{HostMatchResult, HostPatterns},
    },
    http::{
        client::{EndpointClient, HttpClient, Request},
        pause::{pause_after, wanted_pause},
        proxy::HttpProxyConnector,
    },
    web::{
        address::{self, InvalidAddress},
        pool::EndpointPool,
        web_error::WebError,
    },
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, StatusCode, header};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::{sleep, timeout, timeout_at};
use toolstead_domain::ToolFailure;
use url::Url;

/// Ports that are allowed without configuration.
const WEB_PORTS: [u16; 2] = [80, 443];
/// Timeout until an untrusted address begins to answer, connection included.
const FIRST_BYTE: Duration = Duration::from_secs(10);
/// Maximum number of attempts of a request.
const MAX_TRIES: u32 = 5;
/// First and longest pause between two attempts if the server specifies none.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(8));
/// Maximum ratio of the decompressed size of a body to its compressed size, beyond [`UNPACKED_ANYWAY`] bytes. Pages
/// have ratios below 30.
const MAX_RATIO: u64 = 200;
const UNPACKED_ANYWAY: usize = 1 << 20;
/// Headers of a caller that are also sent to another origin.
const CROSS_ORIGIN_HEADERS: [HeaderName; 3] = [header::ACCEPT, header::ACCEPT_LANGUAGE, header::USER_AGENT];

/// Check that a host (lower case, without port) may be reached, which runs before any part of a request is sent to it.
pub type HostCheck<'a> = &'a (dyn Fn(&str) -> Result<(), ToolFailure> + Sync);

/// A client for the web. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct WebClient {
    network: Arc<dyn Network>,
    /// Hosts in private networks and other ports that the configuration allows, in addition to the ports 80 and 443 at
    /// public addresses.
    private: Arc<HostPatterns>,
    pages: Arc<EndpointPool>,
    configured: Arc<EndpointPool>,
}

/// Source of the address, which determines the networks that are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlSource {
    /// A model, a page, a server: only public addresses, and those that `[web] allow_private_hosts` allows.
    Untrusted,
    /// The user's own configuration: this machine and private networks as well.
    Configuration,
}

/// Redirects to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectPolicy {
    /// None: the answer is the redirect itself.
    None,
    /// At most this number, to the same scheme, host and port, or for `GET` and `HEAD` from port 80 to port 443 of the
    /// same host. More are an error. [`WebResponse::redirect_target`] contains any other target.
    SameHost(u32),
}

/// Policy for repeating the request after a temporary failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryPolicy {
    /// Never: the request may have had an effect.
    Never,
    /// On 408, 429, 5xx and broken connections, at most five attempts.
    OnTransientFailure,
}

/// A request.
#[derive(Debug)]
pub struct WebRequest<'a> {
    /// Method.
    pub method: Method,
    /// Address.
    pub url: &'a Url,
    /// Headers in addition to those of every request. After a redirect to another origin, only `Accept`,
    /// `Accept-Language` and `User-Agent` are sent.
    pub headers: HeaderMap,
    /// Body; empty for none.
    pub body: Bytes,
    /// Source of the address.
    pub url_source: UrlSource,
    /// Redirects to follow.
    pub redirects: RedirectPolicy,
    /// Policy for repeating it.
    pub retry: RetryPolicy,
    /// Maximum number of bytes of the body after decompression; the rest of a longer one is dropped.
    pub body_bytes: usize,
    /// Deadline of the whole request, including pauses and redirects. No pause is longer than the time left.
    pub deadline: Instant,
}

/// A response with any status.
#[derive(Debug, Clone)]
pub struct WebResponse {
    /// Address that answered.
    pub url: Url,
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Decompressed body.
    pub body: Bytes,
    /// `true` if the body was longer.
    pub is_cut: bool,
    /// Target of a redirect that was not followed.
    pub redirect_target: Option<Url>,
}

impl WebClient {
    /// Creates a client that reaches the ports 80 and 443 at public addresses, and the hosts and ports in `private` in
    /// private networks as well; on this machine those of them that are a literal address or `localhost`.
    pub fn new(network: Arc<dyn Network>, private: HostPatterns) -> Self {
        Self::by(network, private, HttpClient::new)
    }

    /// Creates a client like [`new`](Self::new) that trusts only certificates issued by this one (DER).
    #[cfg(any(test, feature = "testing"))]
    pub fn trusting(network: Arc<dyn Network>, private: HostPatterns, certificate: &[u8]) -> Self {
        Self::by(network, private, |connector| HttpClient::trusting(connector, certificate))
    }

    fn by(network: Arc<dyn Network>, private: HostPatterns, client: impl Fn(Connector) -> HttpClient) -> Self {
        let pages = client(Connector::new(network.clone(), private.clone()));
        let configured = client(Connector::to_configured_hosts(network.clone()));
        let [pages, configured] = [pages, configured].map(|client| Arc::new(EndpointPool::new(client)));
        Self { network, private: Arc::new(private), pages, configured }
    }

    /// Uses this proxy for [untrusted](UrlSource::Untrusted) addresses. Hosts are still resolved and checked first.
    ///
    /// # Errors
    /// [`InvalidAddress`] if it is not of the form `http://host:port`.
    pub fn with_proxy(self, proxy: &Url) -> Result<Self, InvalidAddress> {
        let host = address::host_of(proxy)?;
        let port = proxy.port_or_known_default().filter(|_| proxy.scheme() == "http" && proxy.path() == "/");
        let port = port.ok_or_else(|| InvalidAddress::new(proxy.as_str(), "a proxy is `http://host:port`"))?;
        let proxy = HttpProxyConnector::new(Connector::to_configured_hosts(self.network.clone()), host, port);
        let pages = Arc::new(EndpointPool::new(self.pages.client().clone().through(proxy)));
        Ok(Self { pages, ..self })
    }

    /// Sends the request.
    ///
    /// # Errors
    /// [`WebError`], whose message is suitable for a model.
    pub async fn send(&self, asked: WebRequest<'_>, judge: HostCheck<'_>) -> Result<WebResponse, WebError> {
        let deadline = asked.deadline;
        // Boxed, because callers store it in their own futures.
        let answered = timeout_at(deadline.into(), Box::pin(self.follow(asked, judge))).await;
        answered.map_err(|_| WebError::TimedOut)?
    }

    /// Sends the request, and follows redirects as far as allowed.
    async fn follow(&self, mut asked: WebRequest<'_>, judge: HostCheck<'_>) -> Result<WebResponse, WebError> {
        let mut url = asked.url.clone();
        let mut followed = 0;
        loop {
            let endpoint = self.endpoint_for(&url, asked.url_source, judge)?;
            let mut answer = self.send_with_retries(&endpoint, &asked, &url).await?;
            let location = answer.headers.get(header::LOCATION).filter(|_| is_redirect(answer.status));
            let Some(location) = location else { return Ok(answer) };
            let target = address::read_location(&url, location.as_bytes());
            let most = match (asked.redirects, target) {
                (RedirectPolicy::None, target) => {
                    answer.redirect_target = target.ok();
                    return Ok(answer);
                }
                (RedirectPolicy::SameHost(_), Err(error)) => {
                    return Err(WebError::Address(format!("it redirects to an invalid address: {error}")));
                }
                (RedirectPolicy::SameHost(_), Ok(target)) if !is_followed(&asked.method, &url, &target) => {
                    answer.redirect_target = Some(target);
                    return Ok(answer);
                }
                (RedirectPolicy::SameHost(most), Ok(target)) => {
                    asked.apply_redirect(answer.status, &url, &target);
                    url = target;
                    most
                }
            };
            if followed == most {
                return Err(WebError::Redirects(most));
            }
            followed += 1;
        }
    }

    /// Returns the endpoint of a URL, if it may be reached.
    fn endpoint_for(&self, url: &Url, named_by: UrlSource, judge: HostCheck<'_>) -> Result<EndpointClient, WebError> {
        let host = address::host_of(url).map_err(|error| WebError::Address(error.to_string()))?;
        let port = url.port_or_known_default().unwrap_or_default();
        let is_open = match named_by {
            UrlSource::Untrusted => {
                WEB_PORTS.contains(&port) || self.private.match_host(&host, port) == HostMatchResult::Yes
            }
            UrlSource::Configuration => true,
        };
        if !is_open {
            return Err(WebError::Port { host: host.to_string(), port });
        }
        judge(&host.to_string()).map_err(WebError::Refused)?;
        let pool = match named_by {
            UrlSource::Untrusted => &self.pages,
            UrlSource::Configuration => &self.configured,
        };
        pool.endpoint(url).map_err(WebError::of)
    }

    /// Sends the request once, or repeatedly if that may help.
    async fn send_with_retries(
        &self,
        endpoint: &EndpointClient,
        asked: &WebRequest<'_>,
        url: &Url,
    ) -> Result<WebResponse, WebError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let answered = send_once(endpoint, asked, url).await;
            let requested_pause = match &answered {
                Ok(answer) if may_pass(answer.status) => wanted_pause(&answer.headers),
                Err(WebError::Http(error)) if error.may_pass() => None,
                Ok(_) | Err(_) => return answered,
            };
            if asked.retry == RetryPolicy::Never || tries == MAX_TRIES {
                return answered;
            }
            let pause = requested_pause.unwrap_or_else(|| pause_after(tries, PAUSES.0, PAUSES.1));
            // A pause beyond the deadline would be useless, so the caller receives the result now.
            let then = tokio::time::Instant::now().into_std().checked_add(pause);
            if then.is_none_or(|then| then >= asked.deadline) {
                return answered;
            }
            sleep(pause).await;
        }
    }
}

impl WebRequest<'_> {
    /// Changes the request into the one that follows a redirect (RFC 9110, section 15.4).
    fn apply_redirect(&mut self, status: StatusCode, from: &Url, to: &Url) {
        let becomes_get = match status {
            StatusCode::SEE_OTHER => self.method != Method::HEAD,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method == Method::POST,
            _ => false,
        };
        if becomes_get {
            self.method = Method::GET;
            self.body = Bytes::new();
            self.headers.remove(header::CONTENT_TYPE);
        }
        if from.origin() != to.origin() {
            self.headers = CROSS_ORIGIN_HEADERS
                .into_iter()
                .filter_map(|name| Some((name.clone(), self.headers.get(&name)?.clone())))
                .collect();
        }
    }
}

async fn send_once(endpoint: &EndpointClient, asked: &WebRequest<'_>, url: &Url) -> Result<WebResponse, WebError> {
    let mut headers = endpoint.headers();
    headers.extend(asked.headers.clone());
    let sending = endpoint.send(Request { method: asked.method.clone(), headers, body: asked.body.clone() });
    let begun = match asked.url_source {
        UrlSource::Untrusted => {
            let begun = timeout(FIRST_BYTE, sending).await;
            begun.map_err(|_| WebError::Silent(FIRST_BYTE.as_secs()))?
        }
        UrlSource::Configuration => sending.await,
    };
    let mut response = begun.map_err(WebError::of)?;
    check_codings(response.headers())?;
    let (mut body, mut is_cut) = (Vec::new(), false);
    while let Some(piece) = response.chunk().await.map_err(WebError::of)? {
        let room = asked.body_bytes - body.len();
        body.extend_from_slice(&piece[..piece.len().min(room)]);
        if body.len() > UNPACKED_ANYWAY && body.len() as u64 / MAX_RATIO > response.received() {
            return Err(WebError::Packing(format!("the body decompresses to more than {MAX_RATIO} times its size")));
        }
        is_cut = piece.len() > room;
        if is_cut {
            break;
        }
    }
    let (status, headers) = (response.status(), response.headers().clone());
    Ok(WebResponse { url: url.clone(), status, headers, body: body.into(), is_cut, redirect_target: None })
}

/// Rejects a body that is compressed twice, or in a way that was not requested.
fn check_codings(headers: &HeaderMap) -> Result<(), WebError> {
    let codings =
        headers.get_all(header::CONTENT_ENCODING).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    let codings = codings.collect::<Vec<_>>().join(",").to_ascii_lowercase();
    let mut codings = codings.split(',').map(str::trim).filter(|coding| !matches!(*coding, "" | "identity"));
    match (codings.next(), codings.next()) {
        (None | Some("gzip" | "x-gzip"), None) => Ok(()),
        (_, Some(_)) => Err(WebError::Packing("the body is compressed more than once".into())),
        (Some(_), None) => Err(WebError::Packing("the body is compressed with something other than gzip".into())),
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Returns `true` if a redirect leads to the same host and port, or from the plain port to the one with TLS, for
/// requests that only read.
fn is_followed(method: &Method, from: &Url, to: &Url) -> bool {
    let is_secured = from.scheme() == "http"
        && to.scheme() == "https"
        && from.host_str() == to.host_str()
        && (from.port_or_known_default(), to.port_or_known_default()) == (Some(80), Some(443))
        && matches!(*method, Method::GET | Method::HEAD);
    from.origin() == to.origin() || is_secured
}

/// Returns `true` if the same request may have another result soon.
fn may_pass(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500..=599)
}

#[cfg(test)]
mod tests;
