//! One request to the outside, with every host that it would reach judged before.

use crate::{
    egress::{
        connector::{Connector, Network},
        host::{HostPatterns, Listed},
    },
    http::{
        client::{Endpoint, HttpClient, Request},
        pause::{pause_after, wanted_pause},
        proxy::HttpProxy,
    },
    web::{
        address::{self, InvalidAddress},
        pool::Pool,
        reach_error::ReachError,
    },
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, StatusCode, header};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::{sleep, timeout, timeout_at};
use toolstead_domain::tool_failure::ToolFailure;
use url::Url;

/// The ports that are reached without leave of the configuration.
const WEB_PORTS: [u16; 2] = [80, 443];
/// An address that anybody named must begin to answer within this time, connection included.
const FIRST_BYTE: Duration = Duration::from_secs(10);
/// So often a request is made in all.
const MAX_TRIES: u32 = 5;
/// The first pause between two tries where the server wishes none, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(8));
/// So many times its size a body may unpack to, once that is more than [`UNPACKED_ANYWAY`]. Pages stay below 30.
const MAX_RATIO: u64 = 200;
const UNPACKED_ANYWAY: usize = 1 << 20;
/// The headers of a caller that another origin may see.
const KEPT_ELSEWHERE: [HeaderName; 3] = [header::ACCEPT, header::ACCEPT_LANGUAGE, header::USER_AGENT];

/// Says whether a host (lower case, without port) may be reached, before anything of a request to it is done.
pub type Judge<'a> = &'a (dyn Fn(&str) -> Result<(), ToolFailure> + Sync);

/// Makes requests. Cheap to clone; the clones keep their connections together.
#[derive(Debug, Clone)]
pub struct Reach {
    network: Arc<dyn Network>,
    /// Hosts that the configuration opens beside the ports of the web at public addresses.
    private: Arc<HostPatterns>,
    pages: Arc<Pool>,
    configured: Arc<Pool>,
}

/// The one who named the address: it decides which networks are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedBy {
    /// A model, a page, a server: only public addresses, and what `[web] allow_private_hosts` opens.
    Anybody,
    /// A person's own configuration: this machine and private networks as well.
    Configuration,
}

/// Redirects that are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// None: the answer is the redirect itself.
    None,
    /// So many, to the same scheme, host and port, or from port 80 to the same host's 443. Another place is told in
    /// [`Answer::leads_to`].
    SameHost(u32),
}

/// A bound on making the request again after a failure that may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// Never: it may have had an effect.
    Never,
    /// On 408, 429, 5xx and broken connections, five times at most.
    Reading,
}

/// One request.
#[derive(Debug)]
pub struct Asked<'a> {
    /// The method.
    pub method: Method,
    /// The address.
    pub url: &'a Url,
    /// Headers beside those of every request. Another origin sees none that could be a secret.
    pub headers: HeaderMap,
    /// The body; empty for none.
    pub body: Bytes,
    /// The one who named the address.
    pub named_by: NamedBy,
    /// Redirects that are followed.
    pub redirects: Redirects,
    /// A bound on making it again.
    pub again: Again,
    /// Bytes of the body after decompression; of a longer one so much is kept.
    pub body_bytes: usize,
    /// The end of it all, with pauses and redirects. No pause is longer than what is left.
    pub deadline: Instant,
}

/// An answer, whatever its status is.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The address that answered.
    pub url: Url,
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, unpacked.
    pub body: Bytes,
    /// The body was longer.
    pub is_cut: bool,
    /// The place that a redirect names which was not followed.
    pub leads_to: Option<Url>,
}

impl Reach {
    /// Reaches the ports 80 and 443 at public addresses, and the hosts and ports in `private` in private networks as well;
    /// on this machine those of them that are a literal address or `localhost`.
    pub fn new(network: Arc<dyn Network>, private: HostPatterns) -> Self {
        Self::by(network, private, HttpClient::new)
    }

    /// As [`new`](Self::new), and believes servers that this certificate (DER) vouches for, and no others.
    #[cfg(any(test, feature = "testing"))]
    pub fn trusting(network: Arc<dyn Network>, private: HostPatterns, certificate: &[u8]) -> Self {
        Self::by(network, private, |connector| HttpClient::trusting(connector, certificate))
    }

    fn by(network: Arc<dyn Network>, private: HostPatterns, client: impl Fn(Connector) -> HttpClient) -> Self {
        let pages = client(Connector::new(network.clone(), private.clone()));
        let configured = client(Connector::to_configured_hosts(network.clone()));
        let [pages, configured] = [pages, configured].map(|client| Arc::new(Pool::new(client)));
        Self { network, private: Arc::new(private), pages, configured }
    }

    /// Goes through this proxy to what is [named by anybody](NamedBy::Anybody). Hosts are resolved and judged before, as
    /// without it.
    ///
    /// # Errors
    /// [`InvalidAddress`] where it is no `http://host:port`.
    pub fn with_proxy(self, proxy: &Url) -> Result<Self, InvalidAddress> {
        let host = address::host_of(proxy)?;
        let port = proxy.port_or_known_default().filter(|_| proxy.scheme() == "http" && proxy.path() == "/");
        let port = port.ok_or_else(|| InvalidAddress::new(proxy.as_str(), "a proxy is `http://host:port`"))?;
        let proxy = HttpProxy::new(Connector::to_configured_hosts(self.network.clone()), host, port);
        let pages = Arc::new(Pool::new(self.pages.client().clone().through(proxy)));
        Ok(Self { pages, ..self })
    }

    /// Makes the request.
    ///
    /// # Errors
    /// [`ReachError`]; what it says is fit for a model.
    pub async fn send(&self, asked: Asked<'_>, judge: Judge<'_>) -> Result<Answer, ReachError> {
        let deadline = asked.deadline;
        // Boxed: callers hold it beside what they work on.
        let answered = timeout_at(deadline.into(), Box::pin(self.follow(asked, judge))).await;
        answered.map_err(|_| ReachError::TimedOut)?
    }

    /// Goes from redirect to redirect, as far as they are followed.
    async fn follow(&self, mut asked: Asked<'_>, judge: Judge<'_>) -> Result<Answer, ReachError> {
        let mut url = asked.url.clone();
        let mut followed = 0;
        loop {
            let endpoint = self.way_to(&url, asked.named_by, judge)?;
            let mut answer = self.ask(&endpoint, &asked, &url).await?;
            let location = answer.headers.get(header::LOCATION).filter(|_| is_redirect(answer.status));
            let Some(location) = location else { return Ok(answer) };
            let target = address::read_location(&url, location.as_bytes());
            let most = match (asked.redirects, target) {
                (Redirects::None, target) => {
                    answer.leads_to = target.ok();
                    return Ok(answer);
                }
                (Redirects::SameHost(_), Err(error)) => {
                    return Err(ReachError::Address(format!("it leads elsewhere: {error}")));
                }
                (Redirects::SameHost(_), Ok(target)) if !is_followed(&asked.method, &url, &target) => {
                    answer.leads_to = Some(target);
                    return Ok(answer);
                }
                (Redirects::SameHost(most), Ok(target)) => {
                    asked.go_on(answer.status, &url, &target);
                    url = target;
                    most
                }
            };
            if followed == most {
                return Err(ReachError::Redirects(most));
            }
            followed += 1;
        }
    }

    /// The way to a URL, if it may be gone.
    fn way_to(&self, url: &Url, named_by: NamedBy, judge: Judge<'_>) -> Result<Endpoint, ReachError> {
        let host = address::host_of(url).map_err(|error| ReachError::Address(error.to_string()))?;
        let port = url.port_or_known_default().unwrap_or_default();
        let is_open = match named_by {
            NamedBy::Anybody => WEB_PORTS.contains(&port) || self.private.judge(&host, port) == Listed::Yes,
            NamedBy::Configuration => true,
        };
        if !is_open {
            return Err(ReachError::Port { host: host.to_string(), port });
        }
        judge(&host.to_string()).map_err(ReachError::Refused)?;
        let pool = match named_by {
            NamedBy::Anybody => &self.pages,
            NamedBy::Configuration => &self.configured,
        };
        pool.endpoint(url).map_err(ReachError::of)
    }

    /// Asks once, or as often as may help.
    async fn ask(&self, endpoint: &Endpoint, asked: &Asked<'_>, url: &Url) -> Result<Answer, ReachError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let answered = ask_once(endpoint, asked, url).await;
            let wish = match &answered {
                Ok(answer) if may_pass(answer.status) => wanted_pause(&answer.headers),
                Err(ReachError::Http(error)) if error.may_pass() => None,
                Ok(_) | Err(_) => return answered,
            };
            if asked.again == Again::Never || tries == MAX_TRIES {
                return answered;
            }
            let pause = wish.unwrap_or_else(|| pause_after(tries, PAUSES.0, PAUSES.1));
            // A caller who would wait beyond the deadline hears now how it is.
            let then = tokio::time::Instant::now().into_std().checked_add(pause);
            if then.is_none_or(|then| then >= asked.deadline) {
                return answered;
            }
            sleep(pause).await;
        }
    }
}

impl Asked<'_> {
    /// Makes of this request the one that follows a redirect (RFC 9110, section 15.4).
    fn go_on(&mut self, status: StatusCode, from: &Url, to: &Url) {
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
            self.headers = KEPT_ELSEWHERE
                .into_iter()
                .filter_map(|name| Some((name.clone(), self.headers.get(&name)?.clone())))
                .collect();
        }
    }
}

async fn ask_once(endpoint: &Endpoint, asked: &Asked<'_>, url: &Url) -> Result<Answer, ReachError> {
    let mut headers = endpoint.headers();
    headers.extend(asked.headers.clone());
    let sending = endpoint.send(Request { method: asked.method.clone(), headers, body: asked.body.clone() });
    let begun = match asked.named_by {
        NamedBy::Anybody => {
            let begun = timeout(FIRST_BYTE, sending).await;
            begun.map_err(|_| ReachError::Silent(FIRST_BYTE.as_secs()))?
        }
        NamedBy::Configuration => sending.await,
    };
    let mut response = begun.map_err(ReachError::of)?;
    check_codings(response.headers())?;
    let (mut body, mut is_cut) = (Vec::new(), false);
    while let Some(piece) = response.chunk().await.map_err(ReachError::of)? {
        let room = asked.body_bytes - body.len();
        body.extend_from_slice(&piece[..piece.len().min(room)]);
        if body.len() > UNPACKED_ANYWAY && body.len() as u64 / MAX_RATIO > response.received() {
            return Err(ReachError::Packing(format!("the body unpacks to more than {MAX_RATIO} times its size")));
        }
        is_cut = piece.len() > room;
        if is_cut {
            break;
        }
    }
    let (status, headers) = (response.status(), response.headers().clone());
    Ok(Answer { url: url.clone(), status, headers, body: body.into(), is_cut, leads_to: None })
}

/// A body that is packed twice, or in a way that was not asked for, is not unpacked.
fn check_codings(headers: &HeaderMap) -> Result<(), ReachError> {
    let codings =
        headers.get_all(header::CONTENT_ENCODING).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    let codings = codings.collect::<Vec<_>>().join(",").to_ascii_lowercase();
    let mut codings = codings.split(',').map(str::trim).filter(|coding| !matches!(*coding, "" | "identity"));
    match (codings.next(), codings.next()) {
        (None | Some("gzip" | "x-gzip"), None) => Ok(()),
        (_, Some(_)) => Err(ReachError::Packing("the body is packed more than once".into())),
        (Some(_), None) => Err(ReachError::Packing("the body is packed with something else than gzip".into())),
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Tells whether a redirect leads to the same host and port, or from its plain port to that with TLS, which nothing is
/// sent to but a question.
fn is_followed(method: &Method, from: &Url, to: &Url) -> bool {
    let is_secured = from.scheme() == "http"
        && to.scheme() == "https"
        && from.host_str() == to.host_str()
        && (from.port_or_known_default(), to.port_or_known_default()) == (Some(80), Some(443))
        && matches!(*method, Method::GET | Method::HEAD);
    from.origin() == to.origin() || is_secured
}

/// Tells whether the answer to the same question may be another one soon.
fn may_pass(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500..=599)
}

#[cfg(test)]
mod tests;
