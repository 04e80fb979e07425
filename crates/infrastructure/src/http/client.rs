//! The client, and the way to one URL.

use crate::{
    http::{
        http_error::HttpError,
        origin::{Idle, Origin},
        response::Response,
        tls::Tls,
    },
    sandbox::egress::{connector::Connector, host::Host},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Uri, header};
use http_body_util::Full;
use std::{
    net::IpAddr,
    sync::{Arc, Mutex},
};
use url::{Position, Url};

/// Who we are, to servers.
const USER_AGENT: &str = concat!("toolstead/", env!("CARGO_PKG_VERSION"));

/// Makes HTTP requests: no proxies, and no redirects, so that no secret gets anywhere else and each address is judged.
/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct HttpClient {
    connector: Connector,
    tls: Arc<Tls>,
}

/// The way to one URL, with connections of its own, which are kept. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Endpoint {
    origin: Arc<Origin>,
    /// Path and query, as the request line has them.
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
        Self { connector, tls: Arc::default() }
    }

    /// The way to this URL; nothing is sent yet.
    ///
    /// # Errors
    /// [`HttpError::Address`], without what may be a secret in it.
    pub fn endpoint(&self, url: &Url) -> Result<Endpoint, HttpError> {
        let unusable = || HttpError::Address(format!("{}{}", url.origin().ascii_serialization(), url.path()));
        let tls = match url.scheme() {
            "http" => None,
            "https" => Some(self.tls.clone()),
            _ => return Err(unusable()),
        };
        let host = match url.host().ok_or_else(unusable)? {
            url::Host::Domain(name) => Host::Name(name.into()),
            url::Host::Ipv4(address) => Host::Address(IpAddr::V4(address)),
            url::Host::Ipv6(address) => Host::Address(IpAddr::V6(address)),
        };
        let named = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_string(),
        };
        let named = HeaderValue::try_from(named).map_err(|_| unusable())?;
        let target = url[Position::BeforePath..Position::AfterQuery].parse().map_err(|_| unusable())?;
        let port = url.port_or_known_default().ok_or_else(unusable)?;
        let idle = Mutex::<Idle>::default();
        let origin = Origin { host, port, connector: self.connector.clone(), tls, idle };
        Ok(Endpoint { origin: Arc::new(origin), target, named })
    }

    /// A client that believes those servers whose certificate is, or is signed by, this one (DER), and no others.
    #[cfg(any(test, feature = "testing"))]
    pub fn trusting(connector: Connector, certificate: &[u8]) -> Self {
        Self { connector, tls: Arc::new(Tls::trusting(certificate)) }
    }
}

impl Endpoint {
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
        outgoing.headers_mut().insert(header::HOST, self.named.clone());
        // hyper would believe them, and the server take the rest of the body for another request.
        for length in [header::CONTENT_LENGTH, header::TRANSFER_ENCODING] {
            outgoing.headers_mut().remove(length);
        }
        while let Some(mut connection) = self.origin.take_idle().await {
            match connection.send(outgoing).await {
                Ok(response) => return Ok(Response::of(response, connection, self.origin.clone())),
                // It ended before it took the request, which nobody has seen.
                Err((_, Some(unsent))) => outgoing = unsent,
                Err((error, None)) => return Err(HttpError::broken(error)),
            }
        }
        // Boxed: rare, and larger than all the rest.
        let mut connection = Box::new(Box::pin(self.origin.connect()).await?);
        match connection.send(outgoing).await {
            Ok(response) => Ok(Response::of(response, connection, self.origin.clone())),
            Err((error, _)) => Err(HttpError::broken(error)),
        }
    }

    #[cfg(test)]
    pub(super) fn origin(&self) -> &Arc<Origin> {
        &self.origin
    }
}

#[cfg(test)]
mod tests;
