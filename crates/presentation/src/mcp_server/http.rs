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
mod request_body;
mod response;
pub mod service;
mod sessions;
pub mod settings;
mod stateless_sessions;

use super::McpServer;
use crate::app::App;
use connections::Connections;
use endpoint::Endpoint;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use settings::HttpSettings;
use std::{
    convert::Infallible,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

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
    accepting: CancellationToken,
    connections: CancellationToken,
    accepted: Option<JoinHandle<GracefulShutdown>>,
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
        let (accepting, connections) = (CancellationToken::new(), CancellationToken::new());
        let front = Front {
            endpoint: endpoint.clone(),
            connections: Connections::new(settings.max_connections, connections.clone()),
            settings,
            accepting: accepting.clone(),
        };
        let accepted = tokio::spawn(front.accept_all(listener));
        Ok(Self { address, app, endpoint, accepting, connections, accepted: Some(accepted) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it: no new connections and requests, streams end, calls have `drain` to end by themselves before they are
    /// cancelled and recorded, and the application is closed ([`App::close`]).
    pub async fn stop(mut self, drain: Duration) {
        self.endpoint.drain();
        self.accepting.cancel();
        let accepted = match self.accepted.take() {
            Some(accepted) => accepted.await.ok(),
            None => None,
        };
        self.app.close(drain).await;
        if let Some(open) = accepted
            && timeout(LAST_RESPONSES, open.shutdown()).await.is_err()
        {
            tracing::warn!("some clients did not take their last answers");
        }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.accepting.cancel();
        self.connections.cancel();
    }
}

/// Takes connections in.
struct Front {
    endpoint: Arc<Endpoint>,
    settings: HttpSettings,
    accepting: CancellationToken,
    connections: Arc<Connections>,
}

impl Front {
    /// Returns what knows the open connections once no more are accepted.
    async fn accept_all(self, listener: TcpListener) -> GracefulShutdown {
        let open = GracefulShutdown::new();
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
                    Ok((stream, from)) => self.serve(&http, &open, stream, from.ip()),
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
            () = self.accepting.cancelled() => {}
        }
        open
    }

    fn serve(&self, http: &http1::Builder, open: &GracefulShutdown, stream: TcpStream, from: IpAddr) {
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
        let served = open.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            tokio::select! {
                ended = served => {
                    if let Err(error) = ended {
                        tracing::debug!(error = &error as &dyn std::error::Error, "a connection broke");
                    }
                }
                () = connection.ended() => {}
            }
        });
    }
}
