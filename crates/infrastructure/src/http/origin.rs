//! A pool of connections to one host and port.

use crate::{
    egress::{connector::Connector, host::Host},
    http::{
        connection::{Connection, MaybeTlsStream},
        http_error::HttpError,
        proxy::HttpProxyConnector,
        tls::{self, LazyTlsConnector},
    },
};
use rustix::net::sockopt;
use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};
use tokio::{
    net::TcpStream,
    runtime::{self, Handle},
    time::{sleep, timeout},
};

/// Timeout for a connection, from name resolution to the end of the TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Idle time after which a connection is not used again, because its server is about to close it.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of idle connections.
const MAX_IDLE: usize = 64;

/// Time without traffic before a silent server is probed, and interval between further probes.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// Number of unanswered probes after which the connection breaks.
const KEEPALIVE_PROBES: u32 = 3;

/// Pool of the connections to one host and port, with TLS or without.
#[derive(Debug)]
pub(super) struct OriginPool {
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) connector: Connector,
    /// `None` for plain connections.
    pub(super) tls: Option<Arc<LazyTlsConnector>>,
    /// Proxy to use, if there is one.
    pub(super) proxy: Option<Arc<HttpProxyConnector>>,
    pub(super) idle: Mutex<IdleConnectionPool>,
}

#[derive(Debug, Default)]
pub(super) struct IdleConnectionPool {
    /// Sorted by last use, the latest last. Boxed, because a connection is large and moves with each call.
    #[expect(clippy::vec_box, reason = "a connection is large, and goes from hand to hand with each call")]
    connections: Vec<Box<Connection>>,
    /// `true` while a task closes the expired connections.
    is_swept: bool,
}

impl IdleConnectionPool {
    fn take(&mut self, runtime: runtime::Id) -> Option<Box<Connection>> {
        let index = self.connections.iter().rposition(|connection| connection.runtime == runtime)?;
        Some(self.connections.remove(index))
    }
}

impl OriginPool {
    /// Takes a connection from the pool: of those of the caller's runtime, the one that was used last and is still
    /// open. Closes unusable ones that it finds before. `None` if there is none. A connection of another runtime would
    /// be woken by the thread of that one.
    pub(super) async fn take_idle(&self) -> Option<Box<Connection>> {
        loop {
            let mut connection = self.lock().take(Handle::current().id())?;
            // The server may have closed it meanwhile, which is only known after this check.
            if connection.idle_since.elapsed() < IDLE_TIMEOUT && connection.is_usable().await {
                return Some(connection);
            }
        }
    }

    /// Puts a connection back into the pool, after its response has been read to its end. Closes expired connections,
    /// and the oldest one if the pool is full.
    pub(super) fn keep(self: &Arc<Self>, mut connection: Box<Connection>) {
        connection.rest();
        let mut idle = self.lock();
        if !idle.is_swept {
            let Ok(runtime) = Handle::try_current() else { return };
            idle.is_swept = true;
            runtime.spawn(sweep(Arc::downgrade(self)));
        }
        // Connections of a runtime that is idle, or has ended, are taken by no caller.
        let now = connection.idle_since;
        idle.connections.retain(|other| now.duration_since(other.idle_since) < IDLE_TIMEOUT);
        if idle.connections.len() >= MAX_IDLE {
            idle.connections.remove(0);
        }
        idle.connections.push(connection);
    }

    /// Opens a new connection.
    ///
    /// # Errors
    /// [`HttpError`]; nothing was sent.
    pub(super) async fn connect(&self) -> Result<Connection, HttpError> {
        let connecting = async {
            // Checked first, because it does not depend on the server.
            let connector = self.tls.as_ref().map(|tls| tls.connector()).transpose()?;
            let stream = match &self.proxy {
                None => self.connector.connect(&self.host, self.port).await?,
                Some(proxy) => {
                    // The proxy resolves the name again. A name with an internal address is not even sent to it.
                    self.connector.addresses(&self.host, self.port).await?;
                    proxy.connect(&self.host, self.port, connector.is_some()).await?
                }
            };
            prepare(&stream).map_err(HttpError::Unreachable)?;
            let stream = match connector {
                Some(connector) => {
                    let shaken = tls::handshake(connector, &self.host, stream).await;
                    MaybeTlsStream::Right(Box::new(shaken.map_err(HttpError::Unreachable)?))
                }
                None => MaybeTlsStream::Left(stream),
            };
            Connection::over(stream).await.map_err(|error| HttpError::Unreachable(io::Error::other(error)))
        };
        timeout(CONNECT_TIMEOUT, connecting).await.map_err(|late| HttpError::Unreachable(late.into()))?
    }

    /// Returns `true` if the request line must contain the whole URL, for a proxy.
    pub(super) fn asks_a_proxy(&self) -> bool {
        self.proxy.is_some() && self.tls.is_none()
    }

    /// Closes the connections that were idle for too long. Returns `false` once none is left.
    fn sweep(&self) -> bool {
        let mut idle = self.lock();
        idle.connections.retain(|connection| connection.idle_since.elapsed() < IDLE_TIMEOUT);
        idle.is_swept = !idle.connections.is_empty();
        idle.is_swept
    }

    fn lock(&self) -> MutexGuard<'_, IdleConnectionPool> {
        // No code panics while it holds this lock.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn idle_count(&self) -> usize {
        let idle = self.lock();
        assert!(idle.is_swept || idle.connections.is_empty());
        idle.connections.len()
    }
}

/// Closes expired connections until none is idle. Otherwise connections that the server has closed would remain half
/// open until the next request.
async fn sweep(origin: Weak<OriginPool>) {
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
