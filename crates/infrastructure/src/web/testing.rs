//! HTTP servers for tests (feature `testing`): a closure of the test returns the replies, and all requests are
//! recorded.
//!
//! A server listens on a port of its own at 127.0.0.1, plain or with TLS by an authority of this kit. Tools in this
//! process trust it by [`WebClient::trusting`](crate::web::web_client::WebClient::trusting), other processes by
//! `SSL_CERT_FILE` with [`AUTHORITY`] in it. The certificate is valid for `localhost`, 127.0.0.1, ::1, `example.com`,
//! `www.example.com`, `example.org`, for `a`, `b`, `c`, `other`, `docs`, `pages`, `news`, `blog`, `search`, `api`,
//! `gateway`, `cdn`, `moved`, `private`, `*.docs`, `*.corp` and `*.web` before `.example`, and for the hosts of the
//! services that tools use.

use async_compression::tokio::write::GzipEncoder;
use http::{HeaderMap, HeaderName, HeaderValue};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use serde_json::Value;
use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::{JoinHandle, JoinSet},
};
use tokio_rustls::TlsAcceptor;
use url::Url;

/// Certificate of the authority, as PEM.
pub const AUTHORITY: &str = include_str!("testing/authority.pem");
const CERTIFICATE: &str = include_str!("testing/server.pem");
const KEY: &str = include_str!("testing/server.key");

/// Maximum size of the head of a request, in bytes.
const MAX_HEAD: usize = 1 << 20;

/// Returns the certificate of the authority, as DER.
///
/// # Panics
/// Never.
pub fn authority() -> Vec<u8> {
    CertificateDer::from_pem_slice(AUTHORITY.as_bytes()).expect("a certificate").to_vec()
}

/// A received request.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    /// Method.
    pub method: String,
    /// Target of the request line: path and query, or the form for a proxy.
    pub target: String,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Vec<u8>,
    /// Number of its connection, from 0.
    pub connection: usize,
}

impl ReceivedRequest {
    /// Returns the path, without the query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// Returns the first value of this parameter of the query.
    pub fn query(&self, name: &str) -> Option<String> {
        let (_, query) = self.target.split_once('?')?;
        let mut pairs = url::form_urlencoded::parse(query.as_bytes());
        pairs.find(|(own, _)| own == name).map(|(_, value)| value.into_owned())
    }

    /// Returns the first value of this parameter of a form in the body.
    pub fn form(&self, name: &str) -> Option<String> {
        let mut pairs = url::form_urlencoded::parse(&self.body);
        pairs.find(|(own, _)| own == name).map(|(_, value)| value.into_owned())
    }

    /// Returns the first header of this name; empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Returns the body as JSON.
    ///
    /// # Panics
    /// When the body is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a body of JSON")
    }
}

/// Reply of a server to a request.
#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Body,
    waits_for: Option<Arc<Notify>>,
}

#[derive(Debug, Clone)]
enum Body {
    Whole(Vec<u8>),
    Raw(Vec<u8>),
    Endless { start: Vec<u8>, piece: Vec<u8> },
    Silence,
    Tunnel(SocketAddr),
}

impl Reply {
    /// Creates a reply with a status and a body, whose length is sent.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: Body::Whole(body.into()), waits_for: None }
    }

    /// Creates a reply with an HTML page.
    pub fn html(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, body).header("Content-Type", "text/html; charset=utf-8")
    }

    /// Creates a reply with a JSON value.
    pub fn json(value: &Value) -> Self {
        Self::new(200, value.to_string()).header("Content-Type", "application/json")
    }

    /// Creates a redirect with this status.
    pub fn redirect(status: u16, to: &str) -> Self {
        Self::new(status, "moved").header("Location", to)
    }

    /// Sends these bytes unchanged, then closes the connection.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::of(Body::Raw(bytes.into()))
    }

    /// Sends these bytes unchanged, then this piece again and again, until the client disconnects.
    pub fn endless(start: impl Into<Vec<u8>>, piece: impl Into<Vec<u8>>) -> Self {
        Self::of(Body::Endless { start: start.into(), piece: piece.into() })
    }

    /// Sends nothing, and leaves the connection open.
    pub fn silence() -> Self {
        Self::of(Body::Silence)
    }

    /// Accepts `CONNECT` as a proxy does: the connection then leads to this address.
    pub fn tunnel(to: SocketAddr) -> Self {
        Self::of(Body::Tunnel(to))
    }

    fn of(body: Body) -> Self {
        Self { status: 200, headers: Vec::new(), body, waits_for: None }
    }

    /// Sets the status.
    #[must_use]
    pub fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Delays the reply until the event is notified.
    #[must_use]
    pub fn once(self, event: Arc<Notify>) -> Self {
        Self { waits_for: Some(event), ..self }
    }
}

/// Compresses bytes with gzip.
///
/// # Panics
/// Never.
pub async fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzipEncoder::new(Vec::new());
    encoder.write_all(bytes).await.expect("memory");
    encoder.shutdown().await.expect("memory");
    encoder.into_inner()
}

type ReplyFn = dyn Fn(&ReceivedRequest) -> Reply + Send + Sync;

/// A server on this machine. Dropping it stops the server.
#[derive(Debug)]
pub struct TestServer {
    address: SocketAddr,
    has_tls: bool,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
    connections: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

impl TestServer {
    /// Starts a server of plain HTTP.
    ///
    /// # Panics
    /// When no port is free.
    pub async fn plain(answers: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> Self {
        Self::start(None, Arc::new(answers)).await
    }

    /// Starts a server with TLS. It offers HTTP/2 before HTTP/1.1, as most servers do, but only supports HTTP/1.1.
    ///
    /// # Panics
    /// When no port is free.
    pub async fn tls(answers: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> Self {
        let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).expect("a key");
        let certificate = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).expect("a certificate");
        let builder = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().expect("TLS 1.2 and 1.3").with_no_client_auth();
        let mut config = builder.with_single_cert(vec![certificate], key).expect("the key of the certificate");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self::start(Some(TlsAcceptor::from(Arc::new(config))), Arc::new(answers)).await
    }

    async fn start(tls: Option<TlsAcceptor>, answers: Arc<ReplyFn>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (seen, connections) = (Arc::<Mutex<Vec<ReceivedRequest>>>::default(), Arc::<AtomicUsize>::default());
        let has_tls = tls.is_some();
        let (keeps, counts) = (seen.clone(), connections.clone());
        let serving = tokio::spawn(async move {
            // The connections end with this task.
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let connection = counts.fetch_add(1, Ordering::Relaxed);
                let (tls, answers, seen) = (tls.clone(), answers.clone(), keeps.clone());
                open.spawn(async move {
                    match tls {
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => serve(stream, connection, &*answers, &seen).await,
                            Err(error) => Err(error),
                        },
                        None => serve(stream, connection, &*answers, &seen).await,
                    }
                });
            }
        });
        Self { address, has_tls, requests: seen, connections, serving }
    }

    /// Returns the address that it listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of a path: `http://127.0.0.1:port/…`, or `https://localhost:port/…`.
    ///
    /// # Panics
    /// When the path does not result in a URL.
    pub fn url(&self, path: &str) -> Url {
        let port = self.address.port();
        let base = if self.has_tls { format!("https://localhost:{port}") } else { format!("http://127.0.0.1:{port}") };
        format!("{base}{path}").parse().expect("a path")
    }

    /// Returns the received requests, in their order.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        lock(&self.requests).clone()
    }

    /// Returns the number of accepted connections.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    connection: usize,
    answers: &ReplyFn,
    seen: &Mutex<Vec<ReceivedRequest>>,
) -> io::Result<()> {
    let mut read = Vec::new();
    while let Some(request) = next_request(&mut stream, &mut read, connection).await? {
        let is_head = request.method == "HEAD";
        // Before the reply, so that a client that has the reply finds the request here.
        lock(seen).push(request.clone());
        let reply = answers(&request);
        if let Some(event) = &reply.waits_for {
            event.notified().await;
        }
        match reply.body {
            Body::Whole(body) => {
                let mut head = format!("HTTP/1.1 {} Said\r\nContent-Length: {}\r\n", reply.status, body.len());
                for (name, value) in &reply.headers {
                    head.push_str(&format!("{name}: {value}\r\n"));
                }
                let mut bytes = (head + "\r\n").into_bytes();
                // These have no body, whatever the reply contains.
                if !is_head && !matches!(reply.status, 204 | 304) {
                    bytes.extend(body);
                }
                stream.write_all(&bytes).await?;
                stream.flush().await?;
            }
            Body::Raw(bytes) => {
                stream.write_all(&bytes).await?;
                return stream.shutdown().await;
            }
            Body::Endless { start, piece } => {
                stream.write_all(&start).await?;
                loop {
                    stream.write_all(&piece).await?;
                    stream.flush().await?;
                }
            }
            Body::Silence => std::future::pending().await,
            Body::Tunnel(to) => {
                let mut other = TcpStream::connect(to).await?;
                stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
                stream.flush().await?;
                copy_bidirectional(&mut stream, &mut other).await?;
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Returns the next request on this connection; `None` at its end.
async fn next_request(
    stream: &mut (impl AsyncRead + Unpin),
    read: &mut Vec<u8>,
    connection: usize,
) -> io::Result<Option<ReceivedRequest>> {
    let end = loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if read.len() > MAX_HEAD || stream.read_buf(read).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&read[..end]).into_owned();
    read.drain(..end + 4);
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let header = |line: &str| -> Option<(HeaderName, HeaderValue)> {
        let (name, value) = line.split_once(':')?;
        Some((name.parse().ok()?, value.trim().parse().ok()?))
    };
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(header) {
        headers.append(name, value);
    }
    let length = headers.get("content-length").and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or(0);
    while read.len() < length {
        if stream.read_buf(read).await? == 0 {
            return Ok(None);
        }
    }
    let body = read.drain(..length).collect();
    Ok(Some(ReceivedRequest { method, target, headers, body, connection }))
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
