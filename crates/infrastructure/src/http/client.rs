//! The client, and the way to one URL.

use crate::{
    egress::{connector::Connector, host::Host},
    http::{
        http_error::HttpError,
        origin::{Idle, Origin},
        proxy::HttpProxy,
        response::Response,
        tls::Tls,
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

/// Who we are, to servers.
const USER_AGENT: &str = concat!("toolstead/", env!("CARGO_PKG_VERSION"));

/// Makes HTTP requests: no redirects, so that no secret gets anywhere else and each address is judged, and no proxy but
/// one that the configuration names. Cheap to clone.
#[derive(Debug, Clone)]
pub struct HttpClient {
    connector: Connector,
    tls: Arc<Tls>,
    proxy: Option<Arc<HttpProxy>>,
}

/// The way to one URL, with connections of its own, which are kept. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Endpoint {
    origin: Arc<Origin>,
    /// What the request line has: path and query, or all of the URL for a proxy.
    target: Uri,
    /// Host and port, as `Host` has them.
    named: HeaderValue,
}

/// One request.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The headers. `Host` and the length of the body are set by the client, whatever stands here.
    pub headers: HeaderMap,
    /// The body; empty for none.
    pub body: Bytes,
}

impl HttpClient {
    /// A client that reaches what this connector connects to.
    pub fn new(connector: Connector) -> Self {
        Self { connector, tls: Arc::default(), proxy: None }
    }

    /// Reaches everything but this machine through this proxy. The addresses of hosts are judged as without one, before it is asked.
    #[must_use]
    pub fn through(self, proxy: HttpProxy) -> Self {
        Self { proxy: Some(Arc::new(proxy)), ..self }
    }

    /// The way to this URL; nothing is sent yet.
    ///
    /// # Errors
    /// [`HttpError::Address`], without what may be a secret in it.
    pub fn endpoint(&self, url: &Url) -> Result<Endpoint, HttpError> {
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
        let idle = Mutex::<Idle>::default();
        // To a proxy this machine would be the proxy's own.
        let proxy = self.proxy.clone().filter(|_| !host.is_this_machine());
        let connector = self.connector.clone();
        let origin = Arc::new(Origin { host, port, connector, tls, proxy, idle });
        let target = target(&origin, url)?;
        Ok(Endpoint { origin, target, named })
    }

    /// A client that believes those servers whose certificate is, or is signed by, this one (DER), and no others.
    #[cfg(any(test, feature = "testing"))]
    pub fn trusting(connector: Connector, certificate: &[u8]) -> Self {
        Self { tls: Arc::new(Tls::trusting(certificate)), ..Self::new(connector) }
    }
}

fn host_of(url: &Url) -> Option<Host> {
    Some(match url.host()? {
        url::Host::Domain(name) => Host::Name(name.into()),
        url::Host::Ipv4(address) => Host::Address(IpAddr::V4(address)),
        url::Host::Ipv6(address) => Host::Address(IpAddr::V6(address)),
    })
}

/// What the request line of a request for this URL has.
fn target(origin: &Origin, url: &Url) -> Result<Uri, HttpError> {
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

impl Endpoint {
    /// The way to another URL of the same scheme, host and port, by the same connections.
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

    /// Headers that a request may begin with: who we are, and that bodies may be packed.
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
                // It ended before it took the request, which nobody has seen.
                Err((_, Some(unsent))) => outgoing = unsent,
                Err((error, None)) => return Err(HttpError::broken(error)),
            }
        }
        // Boxed: rare, and larger than all the rest.
        Box::pin(self.send_on_new_connection(outgoing)).await
    }

    async fn send_on_new_connection(&self, request: http::Request<Full<Bytes>>) -> Result<Response, HttpError> {
        let mut connection = Box::new(self.origin.connect().await?);
        match connection.send(request).await {
            Ok(response) => Ok(Response::of(response, connection, self.origin.clone())),
            Err((error, _)) => Err(HttpError::broken(error)),
        }
    }

    /// Sets the host, and the length of the body whatever the caller's headers say: hyper would use them, and the server
    /// would read the rest of the body as another request.
    fn set_framing(&self, request: &mut http::Request<Full<Bytes>>) {
        let length = request.body().size_hint().exact().unwrap_or(0);
        let headers = request.headers_mut();
        headers.insert(header::HOST, self.named.clone());
        headers.remove(header::TRANSFER_ENCODING);
        match length {
            0 => _ = headers.remove(header::CONTENT_LENGTH),
            // A value of exactly its digits: one from an integer takes a second allocation.
            length => _ = headers.insert(header::CONTENT_LENGTH, decimal(length)),
        }
    }

    #[cfg(test)]
    pub(super) fn origin(&self) -> &Arc<Origin> {
        &self.origin
    }
}

#[cfg(test)]
mod tests;
