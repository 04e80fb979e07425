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
mod mirrored_headers;
mod negotiation;
mod news_stream;
mod refusal_log;
mod request_body;
mod response;
pub mod service;
mod session_log;
mod sessions;
pub mod settings;
mod stateless_sessions;

use super::McpServer;
use crate::{app::App, telemetry::SERVER};
use connections::Connections;
use endpoint::Endpoint;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use settings::HttpSettings;
use std::{
    convert::Infallible,
    io,
    net::{IpAddr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long connections have to end once everything on them is answered.
const LAST_RESPONSES: Duration = Duration::from_secs(1);
/// How long the first list waits for servers of which nothing is known yet. It is one for all clients, and a later one
/// comes soon.
const FIRST_LIST_WAITS: Duration = Duration::from_secs(2);
/// After an accept that failed: the system is short of descriptors or memory, and asking at once does not help.
const AFTER_FAILED_ACCEPT: Duration = Duration::from_millis(100);

/// A running server. Dropping it ends it at once, connections included; [`stop`](Self::stop) ends it in good order.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    app: App,
    endpoint: Arc<Endpoint>,
    ends: Ends,
    open: TaskTracker,
    listener: Option<JoinHandle<()>>,
}

/// The signals that end parts of a server.
#[derive(Debug, Clone, Default)]
struct Ends {
    /// Closes the listener.
    listener: CancellationToken,
    /// Closes each connection after its current response.
    responses: CancellationToken,
    /// Closes every connection at once.
    connections: CancellationToken,
}

impl HttpServer {
    /// Serves the application on a listener that is bound already: `/mcp` for MCP, `/events` for
    /// what happens, `/healthz` (it runs) and `/readyz`
    /// (the providers have listed their tools, and it does not shut down).
    ///
    /// # Errors
    /// The operating system's, when the listener has no address.
    pub fn start(listener: TcpListener, app: App, settings: HttpSettings) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let server = McpServer::new(app.clone(), settings.identity.clone(), FIRST_LIST_WAITS);
        let endpoint = Arc::new(Endpoint::new(server, settings.clone(), Some(address.port())));
        let (ends, open) = (Ends::default(), TaskTracker::new());
        let front = Front {
            endpoint: endpoint.clone(),
            connections: Connections::new(settings.max_connections, ends.connections.clone()),
            settings,
            ends: ends.clone(),
            open: open.clone(),
        };
        let listener = Some(tokio::spawn(front.accept_all(listener)));
        Ok(Self { address, app, endpoint, ends, open, listener })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Drains the server and closes its listener.
    pub async fn stop(mut self, drain: Duration) {
        self.drain(drain).await;
        self.ends.listener.cancel();
        if let Some(listener) = self.listener.take() {
            // It ends with the signal.
            let _ = listener.await;
        }
    }

    /// Refuses new requests with 503 and ends streams, gives calls `drain` to end by themselves before they are cancelled
    /// and recorded, closes the application ([`App::close`]) and completes the open responses.
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
        self.ends.responses.cancel();
        self.open.close();
        if timeout(LAST_RESPONSES, self.open.wait()).await.is_err() {
            tracing::warn!(target: SERVER, "some clients did not read their last responses");
        }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.ends.listener.cancel();
        self.ends.connections.cancel();
    }
}

/// Takes connections in.
struct Front {
    endpoint: Arc<Endpoint>,
    settings: HttpSettings,
    connections: Arc<Connections>,
    ends: Ends,
    open: TaskTracker,
}

impl Front {
    /// Accepts connections until the listener is to close.
    async fn accept_all(self, listener: TcpListener) {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(self.settings.head_timeout);
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
            () = self.ends.listener.cancelled() => {}
        }
    }

    fn serve(&self, http: &http1::Builder, stream: TcpStream, from: IpAddr) {
        // Without it a small answer waits for the acknowledgement of the one before, 40 ms on Linux.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(error = &error as &dyn std::error::Error, "a connection ended before it began");
            return;
        }
        let connection = self.connections.take_in(from);
        let (endpoint, asking) = (self.endpoint.clone(), connection.clone());
        let service = service_fn(move |request| {
            let (endpoint, asking) = (endpoint.clone(), asking.clone());
            async move { Ok::<_, Infallible>(endpoint.answer(request, Some(&asking)).await) }
        });
        let served = http.serve_connection(TokioIo::new(stream), service);
        let last_response = self.ends.responses.clone();
        self.open.spawn(async move {
            let mut served = pin!(served);
            let ended = tokio::select! {
                ended = served.as_mut() => ended,
                () = connection.ended() => return,
                () = last_response.cancelled() => {
                    served.as_mut().graceful_shutdown();
                    tokio::select! {
                        ended = served.as_mut() => ended,
                        () = connection.ended() => return,
                    }
                }
            };
            if let Err(error) = ended {
                tracing::debug!(error = &error as &dyn std::error::Error, "a connection broke");
            }
        });
    }
}
