//! The client, and the endpoint of a URL.

use crate::{
    egress::{connector::Connector, host::Host},
    http::{
        http_error::HttpError,
        origin::{IdleConnectionPool, OriginPool},
        proxy::HttpProxyConnector,
        response::Response,
        tls::LazyTlsConnector,
    },
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Uri, header};
use http_body_util::Full;
use hyper::body::Body;
use std::{
    net::IpAddr,
    sync::{Arc, Mutex},
};
use url::{Position, Url};

/// Value of the header `User-Agent`.
const USER_AGENT: &str = concat!("toolstead/", env!("CARGO_PKG_VERSION"));

/// A client for HTTP requests. It follows no redirects, so that no secret reaches another host and the caller checks
/// each address, and uses no proxy but a configured one. Cheap to clone.
#[derive(Debug, Clone)]
pub struct HttpClient {
    connector: Connector,
    tls: Arc<LazyTlsConnector>,
    proxy: Option<Arc<HttpProxyConnector>>,
}

/// An endpoint for one URL, with its own connections, which are reused. Cheap to clone.
#[derive(Debug, Clone)]
pub struct EndpointClient {
    origin: Arc<OriginPool>,
    /// Target of the request line: path and query, or the whole URL for a proxy.
    target: Uri,
    /// Host and port, as in the header `Host`.
    named: HeaderValue,
}

/// Content of a request to an endpoint, which determines the URL.
#[derive(Debug, Clone)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// Headers. The client itself sets `Host` and the headers about the length of the body, and replaces those of the
    /// caller.
    pub headers: HeaderMap,
    /// Body; empty for none.
    pub body: Bytes,
}

impl HttpClient {
    /// Creates a client that reaches the addresses that this connector connects to.
    pub fn new(connector: Connector) -> Self {
        Self { connector, tls: Arc::default(), proxy: None }
    }

    /// Uses this proxy for everything but this machine. The addresses of hosts are checked as without one, before the
    /// proxy receives the request.
    #[must_use]
    pub fn through(self, proxy: HttpProxyConnector) -> Self {
        Self { proxy: Some(Arc::new(proxy)), ..self }
    }

    /// Creates the endpoint of this URL; nothing is sent yet.
    ///
    /// # Errors
    /// [`HttpError::Address`], without the parts that may be secret.
    pub fn endpoint(&self, url: &Url) -> Result<EndpointClient, HttpError> {
        let unusable = || unusable(url);
        let tls = match url.scheme() {
            "http" => None,
            "https" => Some(self.tls.clone()),
            _ => return Err(unusable()),
        };
        let host = host_of(url).ok_or_else(unusable)?;
        let named = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_string(),
        };
        let named = HeaderValue::try_from(named).map_err(|_| unusable())?;
        let port = url.port_or_known_default().ok_or_else(unusable)?;
        let idle = Mutex::<IdleConnectionPool>::default();
        // For a proxy, this machine would be the proxy's own.
        let proxy = self.proxy.clone().filter(|_| !host.is_this_machine());
        let connector = self.connector.clone();
        let origin = Arc::new(OriginPool { host, port, connector, tls, proxy, idle });
        let target = target(&origin, url)?;
        Ok(EndpointClient { origin, target, named })
    }

    /// Creates a client that trusts only servers whose certificate is, or is signed by, this one (DER).
    #[cfg(any(test, feature = "testing"))]
    pub fn trusting(connector: Connector, certificate: &[u8]) -> Self {
        Self { tls: Arc::new(LazyTlsConnector::trusting(certificate)), ..Self::new(connector) }
    }
}

fn host_of(url: &Url) -> Option<Host> {
    Some(match url.host()? {
        url::Host::Domain(name) => Host::Name(name.into()),
        url::Host::Ipv4(address) => Host::Address(IpAddr::V4(address)),
        url::Host::Ipv6(address) => Host::Address(IpAddr::V6(address)),
    })
}

/// Returns the target of the request line for this URL.
fn target(origin: &OriginPool, url: &Url) -> Result<Uri, HttpError> {
    let path = &url[Position::BeforePath..Position::AfterQuery];
    let target = match origin.asks_a_proxy() {
        true => format!("{}{path}", url.origin().ascii_serialization()).parse(),
        false => path.parse(),
    };
    target.map_err(|_| unusable(url))
}

fn decimal(number: u64) -> HeaderValue {
    let (mut digits, mut at, mut rest) = ([0; 20], 20, number);
    while at == 20 || rest > 0 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    // Digits are always a valid value.
    HeaderValue::from_bytes(&digits[at..]).unwrap_or_else(|_| HeaderValue::from(number))
}

fn unusable(url: &Url) -> HttpError {
    HttpError::Address(format!("{}{}", url.origin().ascii_serialization(), url.path()))
}

impl EndpointClient {
    /// Creates the endpoint of another URL of the same scheme, host and port, with the same connections.
    ///
    /// # Errors
    /// [`HttpError::Address`] for a URL of another origin.
    pub fn to(&self, url: &Url) -> Result<Self, HttpError> {
        let is_same = host_of(url).is_some_and(|host| host == self.origin.host)
            && url.port_or_known_default() == Some(self.origin.port)
            && url.scheme() == if self.origin.tls.is_some() { "https" } else { "http" };
        if !is_same {
            return Err(unusable(url));
        }
        Ok(Self { target: target(&self.origin, url)?, ..self.clone() })
    }

    /// Returns the initial headers of a request: `Host`, the user agent, and gzip as accepted encoding.
    pub fn headers(&self) -> HeaderMap {
        HeaderMap::from_iter([
            (header::HOST, self.named.clone()),
            (header::USER_AGENT, HeaderValue::from_static(USER_AGENT)),
            (header::ACCEPT_ENCODING, HeaderValue::from_static("gzip")),
        ])
    }

    /// Sends a request on an idle connection or a new one, and waits for the head of the response. Dropping the future
    /// closes the connection.
    ///
    /// # Errors
    /// [`HttpError`].
    pub async fn send(&self, request: Request) -> Result<Response, HttpError> {
        let mut outgoing = http::Request::new(Full::new(request.body));
        *outgoing.method_mut() = request.method;
        *outgoing.uri_mut() = self.target.clone();
        *outgoing.headers_mut() = request.headers;
        self.set_framing(&mut outgoing);
        while let Some(mut connection) = self.origin.take_idle().await {
            match connection.send(outgoing).await {
                Ok(response) => return Ok(Response::of(response, connection, self.origin.clone())),
                // The connection ended before the request was sent.
                Err((_, Some(unsent))) => outgoing = unsent,
                Err((error, None)) => return Err(HttpError::broken(error)),
            }
        }
        // Boxed, because it is rare, and larger than the rest of the future.
        Box::pin(self.send_on_new_connection(outgoing)).await
    }

    async fn send_on_new_connection(&self, request: http::Request<Full<Bytes>>) -> Result<Response, HttpError> {
        let mut connection = Box::new(self.origin.connect().await?);
        match connection.send(request).await {
            Ok(response) => Ok(Response::of(response, connection, self.origin.clone())),
            Err((error, _)) => Err(HttpError::broken(error)),
        }
    }

    /// Sets the host and the length of the body, and overrides the caller's headers: hyper would use those, and the
    /// server would read the rest of the body as another request.
    fn set_framing(&self, request: &mut http::Request<Full<Bytes>>) {
        let length = request.body().size_hint().exact().unwrap_or(0);
        let headers = request.headers_mut();
        headers.insert(header::HOST, self.named.clone());
        headers.remove(header::TRANSFER_ENCODING);
        match length {
            0 => _ = headers.remove(header::CONTENT_LENGTH),
            // The value has exactly its digits; a conversion from an integer would allocate twice.
            length => _ = headers.insert(header::CONTENT_LENGTH, decimal(length)),
        }
    }

    #[cfg(test)]
    pub(super) fn origin(&self) -> &Arc<OriginPool> {
        &self.origin
    }
}

#[cfg(test)]
mod tests;
