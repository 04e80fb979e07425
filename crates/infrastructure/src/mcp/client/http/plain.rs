//! Connections without TLS, each driven by the task that uses it: a call to a server nearby then wakes no other task.

use super::client::HttpError;
use bytes::Bytes;
use futures::FutureExt;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use rustix::net::sockopt;
use std::{
    future::poll_fn,
    io,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    net::TcpStream,
    runtime::Handle,
    time::{Instant, sleep, timeout},
};
use url::{Host, Url};

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection that has idled for so long is not used again: its server is about to close it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// So many idle connections are kept.
const MAX_IDLE: usize = 64;

/// A silent server is probed after so long, and again each time so long has passed without an answer.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// After so many probes without an answer the connection breaks.
const KEEPALIVE_PROBES: u32 = 3;

/// How much is passed over to find the end of a body that nobody reads on.
const PIECES_AFTER_THE_ANSWER: usize = 4;

/// The way to one URL.
#[derive(Debug, Clone)]
pub(super) struct PlainClient(Arc<Origin>);

#[derive(Debug)]
struct Origin {
    host: Host,
    port: u16,
    /// Path and query, as the request line has them.
    target: Uri,
    /// Host and port, as `Host` has them.
    named: HeaderValue,
    /// Used last stands last.
    idle: Mutex<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    /// Boxed: a connection is large, and goes from hand to hand with each call.
    #[expect(clippy::vec_box, reason = "a connection is large, and goes from hand to hand with each call")]
    connections: Vec<Box<Connection>>,
    /// Whether a task looks after them.
    is_swept: bool,
}

/// One connection. It makes progress only while somebody polls it.
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// `None` once it is over. While it lives it holds on to a request that it has not taken, and nobody hears of that.
    driver: Option<http1::Connection<TokioIo<TcpStream>, Full<Bytes>>>,
    idle_since: Instant,
}

/// A response whose body comes by the connection that it holds.
#[derive(Debug)]
pub(super) struct PlainResponse {
    pub(super) head: http::response::Parts,
    body: Incoming,
    connection: Option<Box<Connection>>,
    origin: Arc<Origin>,
}

impl PlainClient {
    /// The way to this URL; nothing is sent yet. `None` for a URL without a host.
    pub(super) fn new(url: &Url) -> Option<Self> {
        let host = url.host()?.to_owned();
        let named = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_string(),
        };
        let named = HeaderValue::try_from(named).ok()?;
        let target = url[url::Position::BeforePath..url::Position::AfterQuery].parse().ok()?;
        let port = url.port_or_known_default()?;
        Some(Self(Arc::new(Origin { host, port, target, named, idle: Mutex::default() })))
    }

    /// The value of `Host`.
    pub(super) fn host(&self) -> HeaderValue {
        self.0.named.clone()
    }

    /// Sends a request on an idle connection or a new one, and waits for the head of the response.
    ///
    /// # Errors
    /// [`HttpError`].
    pub(super) async fn execute(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<PlainResponse, HttpError> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.0.target.clone();
        *request.headers_mut() = headers;
        while let Some(mut connection) = self.0.take_idle().await {
            match connection.send(request).await {
                Ok(response) => return Ok(self.respond(connection, response)),
                // It ended before it took the request, which nobody has seen.
                Err((_, Some(unsent))) => request = unsent,
                Err((error, None)) => return Err(HttpError::of(&error, false)),
            }
        }
        let mut connection = Box::new(self.0.connect().await?);
        let response = connection.send(request).await.map_err(|(error, _)| HttpError::of(&error, false))?;
        Ok(self.respond(connection, response))
    }

    fn respond(&self, connection: Box<Connection>, response: Response<Incoming>) -> PlainResponse {
        let (head, body) = response.into_parts();
        PlainResponse { head, body, connection: Some(connection), origin: self.0.clone() }
    }
}

impl Origin {
    /// The connection that was used last, if it still lives.
    async fn take_idle(&self) -> Option<Box<Connection>> {
        loop {
            let mut connection = self.lock().connections.pop()?;
            let is_fresh = connection.idle_since.elapsed() < IDLE_TIMEOUT;
            // Only now it is seen whether the server has closed it meanwhile.
            let is_alive = poll_fn(|context| Poll::Ready(connection.drive(context))).await;
            if is_fresh && is_alive && connection.sender.is_ready() {
                return Some(connection);
            }
        }
    }

    fn keep(self: &Arc<Self>, mut connection: Box<Connection>) {
        let Ok(runtime) = Handle::try_current() else { return };
        connection.idle_since = Instant::now();
        let mut idle = self.lock();
        if idle.connections.len() < MAX_IDLE {
            idle.connections.push(connection);
        }
        if !idle.is_swept {
            idle.is_swept = true;
            runtime.spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Closes what nobody used for too long. `false` once nothing is left.
    fn sweep(&self) -> bool {
        let mut idle = self.lock();
        idle.connections.retain(|connection| connection.idle_since.elapsed() < IDLE_TIMEOUT);
        idle.is_swept = !idle.connections.is_empty();
        idle.is_swept
    }

    async fn connect(&self) -> Result<Connection, HttpError> {
        let failed = |error: &(dyn std::error::Error + 'static)| HttpError::of(error, true);
        let connecting = async {
            match &self.host {
                Host::Domain(name) => TcpStream::connect((name.as_str(), self.port)).await,
                Host::Ipv4(address) => TcpStream::connect((*address, self.port)).await,
                Host::Ipv6(address) => TcpStream::connect((*address, self.port)).await,
            }
        };
        let stream = timeout(CONNECT_TIMEOUT, connecting).await.map_err(|late| failed(&late))?;
        let stream = stream.map_err(|error| failed(&error))?;
        prepare(&stream).map_err(|error| failed(&error))?;
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| failed(&error))?;
        Ok(Connection { sender, driver: Some(driver), idle_since: Instant::now() })
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        // Nothing panics while it is held.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sweeps until nothing is idle: a server that is not called any more would keep its closed connections half open.
async fn sweep(origin: Weak<Origin>) {
    loop {
        sleep(IDLE_TIMEOUT).await;
        if !origin.upgrade().is_some_and(|origin| origin.sweep()) {
            return;
        }
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE)?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_PROBES)?;
    Ok(sockopt::set_socket_keepalive(stream, true)?)
}

impl Connection {
    /// Sends the request. Gives it back where the connection ended before it was written.
    async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, (hyper::Error, Option<Request<Full<Bytes>>>)> {
        let mut response = pin!(self.sender.try_send_request(request));
        let sent = poll_fn(|context| {
            self.drive(context);
            response.as_mut().poll(context)
        });
        sent.await.map_err(|mut failed| {
            let unsent = failed.take_message();
            (failed.into_error(), unsent)
        })
    }

    /// Makes what progress there is to be made. `false` once it is over.
    fn drive(&mut self, context: &mut Context<'_>) -> bool {
        if self.driver.as_mut().is_some_and(|driver| driver.poll_unpin(context).is_ready()) {
            self.driver = None;
        }
        self.is_open()
    }

    fn is_open(&self) -> bool {
        self.driver.is_some()
    }
}

impl PlainResponse {
    /// The next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// [`HttpError`] when the connection breaks.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        loop {
            let frame = poll_fn(|context| {
                // The body first: only what somebody waits for is read.
                let frame = self.body.frame().poll_unpin(context);
                match &mut self.connection {
                    Some(connection) if frame.is_pending() => {
                        connection.drive(context);
                        self.body.frame().poll_unpin(context)
                    }
                    _ => frame,
                }
            });
            match frame.await {
                // Trailers say nothing here.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => return Ok(Some(data)),
                    Err(_) => continue,
                },
                Some(Err(error)) => return Err(HttpError::of(&error, false)),
                None => {
                    if let Some(connection) = self.connection.take().filter(|connection| connection.is_open()) {
                        self.origin.keep(connection);
                    }
                    return Ok(None);
                }
            }
        }
    }

    /// How long the body is said to be, in bytes.
    pub(super) fn announced(&self) -> Option<u64> {
        hyper::body::Body::size_hint(&self.body).exact()
    }
}

impl Drop for PlainResponse {
    /// The end of a stream mostly comes along with the answer that ended the reading; then the connection is kept.
    fn drop(&mut self) {
        for _ in 0..PIECES_AFTER_THE_ANSWER {
            let is_open = self.connection.is_some();
            if !is_open || !matches!(self.chunk().now_or_never(), Some(Ok(Some(_)))) {
                break;
            }
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("is_open", &self.is_open()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
        sync::oneshot,
        task::yield_now,
    };

    /// Answers so many requests on one connection, each with the number of the connection.
    async fn answer(listener: &TcpListener, connection: u8, requests: usize) -> TcpStream {
        let (mut stream, _) = listener.accept().await.unwrap();
        for _ in 0..requests {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\nbody") {
                assert!(stream.read_buf(&mut request).await.unwrap() > 0, "the client went away");
            }
            assert!(String::from_utf8(request).unwrap().starts_with("POST /mcp?a=b HTTP/1.1\r\n"));
            let chunked =
                format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{connection}\r\n0\r\n\r\n");
            stream.write_all(chunked.as_bytes()).await.unwrap();
        }
        stream
    }

    #[tokio::test]
    async fn a_connection_is_used_again_until_its_server_closes_it() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp?a=b#c", listener.local_addr().unwrap()).parse().unwrap();
        let (closed, first_is_closed) = oneshot::channel();
        let server = tokio::spawn(async move {
            drop(answer(&listener, 1, 3).await);
            closed.send(()).unwrap();
            answer(&listener, 2, 1).await
        });
        let client = PlainClient::new(&url).unwrap();
        let send = async || client.execute(Method::POST, HeaderMap::new(), "body".into()).await.unwrap();
        for _ in 0..2 {
            let mut response = send().await;
            assert_eq!(response.chunk().await.unwrap().unwrap(), "1");
            assert_eq!(response.chunk().await.unwrap(), None);
        }
        // Not read to its end, which has come along all the same.
        assert_eq!(send().await.chunk().await.unwrap().unwrap(), "1");
        first_is_closed.await.unwrap();
        // The runtime hears of it before it goes on here.
        yield_now().await;
        assert_eq!(send().await.chunk().await.unwrap().unwrap(), "2");
        drop(server.await.unwrap());
        assert!(client.0.lock().connections.len() <= 1);
    }

    #[tokio::test]
    async fn a_request_on_a_connection_that_was_just_closed_is_given_back() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp?a=b", listener.local_addr().unwrap()).parse().unwrap();
        let client = PlainClient::new(&url).unwrap();
        let executing = client.execute(Method::POST, HeaderMap::new(), "body".into());
        let (response, server) = tokio::join!(executing, answer(&listener, 1, 1));
        drop(response.unwrap());
        let mut connection = client.0.take_idle().await.unwrap();
        drop(server);
        // The runtime hears of it, the connection does not.
        yield_now().await;
        let sending = connection.send(Request::new(Full::new("again".into())));
        let (_, unsent) = timeout(CONNECT_TIMEOUT, sending).await.expect("it hangs").unwrap_err();
        assert!(unsent.is_some() && !connection.is_open());
    }

    #[tokio::test]
    async fn a_connection_that_nobody_uses_any_more_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp?a=b", listener.local_addr().unwrap()).parse().unwrap();
        let client = PlainClient::new(&url).unwrap();
        let executing = client.execute(Method::POST, HeaderMap::new(), "body".into());
        let (response, mut server) = tokio::join!(executing, answer(&listener, 1, 1));
        drop(response.unwrap());
        assert_eq!(client.0.lock().connections.len(), 1);
        tokio::time::pause();
        let closed = timeout(10 * IDLE_TIMEOUT, server.read_u8()).await.expect("it stays open");
        assert_eq!(closed.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert!(!client.0.lock().is_swept);
    }

    #[tokio::test]
    async fn a_server_that_vanishes_is_noticed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = PlainClient::new(&format!("http://{}", listener.local_addr().unwrap()).parse().unwrap()).unwrap();
        let driver = client.0.connect().await.unwrap().driver.unwrap();
        let stream = driver.into_parts().io.into_inner();
        assert!(stream.nodelay().unwrap() && sockopt::socket_keepalive(&stream).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&stream), Ok(KEEPALIVE));
        assert_eq!(sockopt::tcp_keepintvl(&stream), Ok(KEEPALIVE));
        assert_eq!(sockopt::tcp_keepcnt(&stream), Ok(KEEPALIVE_PROBES));
    }

    #[tokio::test]
    async fn nobody_there_is_told_apart_from_a_connection_that_breaks() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp?a=b", listener.local_addr().unwrap()).parse().unwrap();
        let client = PlainClient::new(&url).unwrap();
        let send = async || client.execute(Method::POST, HeaderMap::new(), "body".into()).await.unwrap_err();
        let (broken, ()) = tokio::join!(send(), async { drop(listener.accept().await.unwrap()) });
        assert!(!broken.is_connect && broken.text.starts_with("the connection broke: "), "{broken:?}");
        drop(listener);
        let nobody = send().await;
        assert!(nobody.is_connect && nobody.text.starts_with("it cannot be reached: "), "{nobody:?}");
    }
}
