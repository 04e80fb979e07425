//! The HTTP under the protocol: plain connections of our own where there is no TLS, reqwest's where there is.

use super::plain::{PlainClient, PlainResponse};
use crate::mcp::client::foreign_text::shown;
use async_compression::tokio::bufread::GzipDecoder;
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use std::{error::Error, io, pin::Pin};
use tokio_util::io::{ReaderStream, StreamReader};
use url::Url;

/// As large are the pieces that a body is unpacked in, in bytes.
const UNPACKED_AT_ONCE: usize = 64 << 10;

/// The way to one server.
#[derive(Debug, Clone)]
pub(super) enum HttpClient {
    Plain(PlainClient),
    Tls(reqwest::Client, Url),
}

/// The head of a response, and the way to its body.
#[derive(Debug)]
pub(super) struct Response {
    status: StatusCode,
    headers: HeaderMap,
    body: Body,
}

enum Body {
    Plain(Box<PlainResponse>),
    /// Unpacked on the way.
    Packed(Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>),
    Tls(reqwest::Response),
}

/// A request that got no whole response.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(super) struct HttpError {
    /// What happened, with all causes, on one line.
    pub(super) text: String,
    /// There was no connection, so nothing was sent.
    pub(super) is_connect: bool,
}

impl HttpClient {
    /// The way to a URL without TLS; `None` where it cannot be gone.
    pub(super) fn plain(url: &Url) -> Option<Self> {
        PlainClient::new(url).map(Self::Plain)
    }

    /// Adds what every request says, unless it is there already. reqwest does that itself.
    pub(super) fn complete(&self, headers: &mut HeaderMap) {
        if let Self::Plain(client) = self {
            headers.entry(header::USER_AGENT).or_insert(HeaderValue::from_static(USER_AGENT));
            headers.entry(header::ACCEPT_ENCODING).or_insert(HeaderValue::from_static("gzip"));
            headers.insert(header::HOST, client.host());
        }
    }

    /// Sends a request and waits for the head of the response.
    ///
    /// # Errors
    /// [`HttpError`].
    pub(super) async fn execute(&self, method: Method, headers: HeaderMap, body: Bytes) -> Result<Response, HttpError> {
        match self {
            Self::Plain(client) => {
                let mut response = client.execute(method, headers, body).await?;
                let status = response.head.status;
                let headers = std::mem::take(&mut response.head.headers);
                let is_packed = headers.get(header::CONTENT_ENCODING).is_some_and(|coding| coding == "gzip");
                let body = if is_packed { unpacked(response) } else { Body::Plain(response.into()) };
                Ok(Response { status, headers, body })
            }
            Self::Tls(client, url) => {
                // A builder would copy the headers one by one.
                let mut request = reqwest::Request::new(method, url.clone());
                *request.headers_mut() = headers;
                if !body.is_empty() {
                    *request.body_mut() = Some(body.into());
                }
                let mut response = client.execute(request).await?;
                let headers = std::mem::take(response.headers_mut());
                Ok(Response { status: response.status(), headers, body: Body::Tls(response) })
            }
        }
    }
}

/// Who we are, to servers.
pub(in crate::mcp::client) const USER_AGENT: &str = concat!("toolstead/", env!("CARGO_PKG_VERSION"));

fn unpacked(response: PlainResponse) -> Body {
    let packed = stream::unfold(response, |mut response| async move {
        match response.chunk().await {
            Ok(chunk) => chunk.map(|chunk| (Ok(chunk), response)),
            Err(error) => Some((Err(io::Error::other(error)), response)),
        }
    });
    let decoder = GzipDecoder::new(StreamReader::new(packed.boxed()));
    Body::Packed(ReaderStream::with_capacity(decoder, UNPACKED_AT_ONCE).boxed())
}

impl Response {
    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// How long the body is said to be, in bytes; `None` where nothing is said of what it will be unpacked.
    pub(super) fn content_length(&self) -> Option<u64> {
        match &self.body {
            Body::Plain(response) => response.announced(),
            Body::Packed(_) => None,
            Body::Tls(response) => response.content_length(),
        }
    }

    /// The next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// [`HttpError`] when the connection breaks.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        match &mut self.body {
            Body::Plain(response) => response.chunk().await,
            Body::Packed(body) => body.next().await.transpose().map_err(|error| HttpError::of(&error, false)),
            Body::Tls(response) => Ok(response.chunk().await?),
        }
    }
}

impl HttpError {
    /// An error with its causes.
    pub(super) fn of(error: &(dyn Error + 'static), is_connect: bool) -> Self {
        let causes = std::iter::successors(Some(error), |error| (*error).source());
        let text = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
        let what = if is_connect { "it cannot be reached" } else { "the connection broke" };
        Self { text: format!("{what}: {}", shown(&text, 300)), is_connect }
    }
}

impl From<reqwest::Error> for HttpError {
    fn from(error: reqwest::Error) -> Self {
        let is_connect = error.is_connect();
        Self::of(&error.without_url(), is_connect)
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plain(_) => "Plain",
            Self::Packed(_) => "Packed",
            Self::Tls(_) => "Tls",
        })
    }
}
