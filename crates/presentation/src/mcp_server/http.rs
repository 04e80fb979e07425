//! MCP over streamable HTTP, of both generations on one endpoint (MCP 2025-11-25, basic/transports, "Streamable HTTP";
//! MCP 2026-07-28, basic/transports/streamable-http).

pub mod authenticator;
pub mod bearer_tokens;
mod call_response;
mod connections;
mod cross_origin;
mod endpoint;
mod event_feed;
mod event_stream;
mod gate;
mod head_deadline;
mod mirrored_headers;
mod negotiation;
mod notification_stream;
mod refusal_log;
mod request_body;
mod request_context;
mod response;
pub mod service;
mod session_log;
mod sessions;
pub mod settings;
mod shared_stream;
mod stateless_sessions;

use super::McpServer;
use crate::{app::App, cores::RuntimePool, telemetry::SERVER};
use connections::{CloseTiming, Connections};
use endpoint::{EndpointHandle, EndpointState};
use head_deadline::HeadDeadline;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use settings::HttpSettings;
use shared_stream::SharedTcpStream;
use std::{
    convert::Infallible,
    future::poll_fn,
    io,
    net::{IpAddr, SocketAddr},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Maximum time for connections to close after their last response.
const LAST_RESPONSES: Duration = Duration::from_secs(1);
/// Maximum time that the first list waits for servers that have not listed their tools yet. All clients share that
/// list, and a later one follows soon.
const FIRST_LIST_WAITS: Duration = Duration::from_secs(2);
/// Pause after a failed accept: the system lacks descriptors or memory, and an immediate retry would fail, too.
const AFTER_FAILED_ACCEPT: Duration = Duration::from_millis(100);

/// A running HTTP server. Dropping it closes all connections at once; [`stop`](Self::stop) drains it first.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    app: App,
    endpoint: Arc<EndpointState>,
    connections: Arc<Connections>,
    /// Closes the listener.
    listener_end: CancellationToken,
    open: TaskTracker,
    listener: Option<JoinHandle<()>>,
}

impl HttpServer {
    /// Serves the application on a bound listener: `/mcp` for MCP, `/mcp/NAME` for its views, `/events` for the event
    /// feed, `/healthz` (the server runs) and `/readyz` (the providers have listed their tools, required servers are
    /// available, calls can be recorded, and the server is not shutting down).
    ///
    /// # Errors
    /// Returns the operating system's error if the listener has no address.
    pub fn start(listener: TcpListener, app: App, settings: HttpSettings) -> io::Result<Self> {
        Self::start_on(RuntimePool::current(), listener, app, settings)
    }

    /// Starts the server like [`start`](Self::start) and distributes connections over these runtimes.
    pub(crate) fn start_on(
        cores: RuntimePool,
        listener: TcpListener,
        app: App,
        settings: HttpSettings,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let server = McpServer::new(app.clone(), settings.identity.clone(), FIRST_LIST_WAITS);
        let (head_timeout, connections) = (settings.head_timeout, Connections::new(settings.max_connections));
        let endpoint = Arc::new(EndpointState::new(server, settings, Some(address.port())));
        let (listener_end, open) = (CancellationToken::new(), TaskTracker::new());
        let front = Acceptor {
            endpoint: endpoint.clone(),
            connections: connections.clone(),
            head_timeout,
            end: listener_end.clone(),
            open: open.clone(),
            cores,
        };
        let listener = Some(tokio::spawn(front.accept_all(listener)));
        Ok(Self { address, app, endpoint, connections, listener_end, open, listener })
    }

    /// Returns the address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Drains the server and closes its listener.
    pub async fn stop(mut self, drain: Duration) {
        self.drain(drain).await;
        self.listener_end.cancel();
        if let Some(listener) = self.listener.take() {
            // The task ends with the signal.
            let _ = listener.await;
        }
    }

    /// Refuses new requests with 503, ends streams, waits at most `drain` for calls before it cancels and records them,
    /// closes the application ([`App::close`]) and completes the open responses.
    ///
    /// Until calls are cancelled, answers to their questions and cancellations are accepted. The listener stays open:
    /// `/readyz` answers 503 until this server is dropped or [stopped](Self::stop).
    pub async fn drain(&self, drain: Duration) {
        self.endpoint.drain();
        let (begun, open) = (Instant::now(), &self.app.open_calls);
        let (calls, waiting, sessions) = (open.len(), open.waiting(), self.endpoint.sessions());
        tracing::info!(target: SERVER, calls, waiting, sessions, limit_seconds = drain.as_secs(), "draining");
        let cancelled = self.app.close(drain).await;
        let finished = calls.saturating_sub(cancelled);
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(target: SERVER, finished, cancelled, ms, "drained");
        self.connections.end(CloseTiming::AfterResponse);
        self.open.close();
        if timeout(LAST_RESPONSES, self.open.wait()).await.is_err() {
            tracing::warn!(target: SERVER, "some clients did not read their last responses");
        }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.listener_end.cancel();
        self.connections.end(CloseTiming::AtOnce);
    }
}

/// Accepts connections.
struct Acceptor {
    endpoint: Arc<EndpointState>,
    connections: Arc<Connections>,
    head_timeout: Duration,
    end: CancellationToken,
    open: TaskTracker,
    cores: RuntimePool,
}

impl Acceptor {
    /// Accepts connections and ends idle sessions until the listener is closed. Waits for the first lists of tools
    /// meanwhile.
    async fn accept_all(self, listener: TcpListener) {
        let mut http = http1::Builder::new();
        // The task of the connection watches whether the client has left.
        http.header_read_timeout(self.head_timeout).half_close(true);
        let mut sweep = self.endpoint.between_sweeps();
        let endpoint = self.endpoint.clone();
        let settling = async move {
            endpoint.server.settle().await;
            std::future::pending::<()>().await;
        };
        let accepting = async {
            loop {
                match listener.accept().await {
                    Ok((stream, from)) => self.serve(&http, stream, from.ip()),
                    Err(error) => {
                        tracing::warn!(error = &error as &dyn std::error::Error, "could not accept a connection");
                        sleep(AFTER_FAILED_ACCEPT).await;
                    }
                }
            }
        };
        let sweeping = async {
            loop {
                sweep.tick().await;
                self.endpoint.expire_sessions();
            }
        };
        tokio::select! {
            () = accepting => {}
            () = settling => {}
            () = sweeping => {}
            () = self.end.cancelled() => {}
        }
    }

    fn serve(&self, http: &http1::Builder, stream: TcpStream, from: IpAddr) {
        // Otherwise a small response waits for the acknowledgement of the previous one: 40 ms on Linux.
        let stream = match stream.set_nodelay(true).and_then(|()| stream.into_std()) {
            Ok(stream) => stream,
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "a connection ended before it began");
                return;
            }
        };
        let (connection, deadline) = (self.connections.take_in(from), HeadDeadline::default());
        let handle = Arc::new(EndpointHandle::new(self.endpoint.clone()));
        let (head, client) = (deadline.clone(), connection.clone());
        let service = service_fn(move |request| {
            head.clear();
            let answer = handle.clone().answer(request, Some(client.clone()));
            async move { Ok::<_, Infallible>(answer.await) }
        });
        let (mut http, head_timeout) = (http.clone(), self.head_timeout);
        let task = self.open.track_future(async move {
            // Here, because a stream belongs to the runtime that creates it.
            let stream = match TcpStream::from_std(stream) {
                Ok(stream) => SharedTcpStream::new(stream),
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "could not serve a connection");
                    return;
                }
            };
            let io = TokioIo::new(stream.clone());
            let served = http.timer(deadline.clone()).serve_connection(io, service);
            let (mut served, mut is_too_slow) = (pin!(served), pin!(deadline.passed(head_timeout)));
            let mut is_ending = false;
            // No `select!`: each wake-up would draw a random number and take the locks of two tokens.
            let ended = poll_fn(|context| {
                let end = connection.poll_end(context);
                if end == CloseTiming::AtOnce {
                    return Poll::Ready(Ok(()));
                }
                let mut polled = served.as_mut().poll(context);
                // Afterwards, so that a request which has arrived already is answered.
                if end == CloseTiming::AfterResponse && !is_ending && polled.is_pending() {
                    is_ending = true;
                    served.as_mut().graceful_shutdown();
                    polled = served.as_mut().poll(context);
                }
                if polled.is_pending() && !deadline.is_set() && stream.poll_left(context) {
                    tracing::debug!("a client left during its request");
                    return Poll::Ready(Ok(()));
                }
                if polled.is_pending() && is_too_slow.as_mut().poll(context).is_ready() {
                    tracing::debug!("a client sent no request in time");
                    return Poll::Ready(Ok(()));
                }
                polled
            });
            if let Err(error) = ended.await {
                tracing::debug!(error = &error as &dyn std::error::Error, "a connection broke");
            }
        });
        self.cores.for_connection().spawn(task);
    }
}
