//! Connections to one host and port, kept from request to request.

use crate::{
    egress::{connector::Connector, host::Host},
    http::{
        connection::{Connection, Stream},
        http_error::HttpError,
        proxy::HttpProxy,
        tls::{self, Tls},
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
    runtime::Handle,
    time::{sleep, timeout},
};

/// How long a connection may take to come about, from the name to the end of the TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection that has idled for so long is not used again: its server is about to close it.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// So many idle connections are kept.
const MAX_IDLE: usize = 64;

/// A silent server is probed after so long, and again each time so long has passed without an answer.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// After so many probes without an answer the connection breaks.
const KEEPALIVE_PROBES: u32 = 3;

/// One host and port, with TLS or without.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) connector: Connector,
    /// `None` for plain connections.
    pub(super) tls: Option<Arc<Tls>>,
    /// Stands between, where there is one.
    pub(super) proxy: Option<Arc<HttpProxy>>,
    pub(super) idle: Mutex<Idle>,
}

#[derive(Debug, Default)]
pub(super) struct Idle {
    /// Used last stands last. Boxed: a connection is large, and goes from hand to hand with each call.
    #[expect(clippy::vec_box, reason = "a connection is large, and goes from hand to hand with each call")]
    connections: Vec<Box<Connection>>,
    /// A task looks after them.
    is_swept: bool,
}

impl Origin {
    /// The connection that was used last, if it still lives.
    pub(super) async fn take_idle(&self) -> Option<Box<Connection>> {
        loop {
            let mut connection = self.lock().connections.pop()?;
            // Only now it is seen whether the server has closed it meanwhile.
            if connection.idle_since.elapsed() < IDLE_TIMEOUT && connection.is_usable().await {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection whose response has been read to its end.
    pub(super) fn keep(self: &Arc<Self>, mut connection: Box<Connection>) {
        connection.rest();
        let mut idle = self.lock();
        if !idle.is_swept {
            let Ok(runtime) = Handle::try_current() else { return };
            idle.is_swept = true;
            runtime.spawn(sweep(Arc::downgrade(self)));
        }
        if idle.connections.len() < MAX_IDLE {
            idle.connections.push(connection);
        }
    }

    /// A new connection.
    ///
    /// # Errors
    /// [`HttpError`]; nothing was sent.
    pub(super) async fn connect(&self) -> Result<Connection, HttpError> {
        let connecting = async {
            // First: it does not depend on the server.
            let connector = self.tls.as_ref().map(|tls| tls.connector()).transpose()?;
            let stream = match &self.proxy {
                None => self.connector.connect(&self.host, self.port).await?,
                Some(proxy) => {
                    // The proxy looks the name up once more; a name that leads inside is not even shown to it.
                    self.connector.addresses(&self.host, self.port).await?;
                    proxy.connect(&self.host, self.port, connector.is_some()).await?
                }
            };
            prepare(&stream).map_err(HttpError::Unreachable)?;
            let stream = match connector {
                Some(connector) => {
                    let shaken = tls::handshake(connector, &self.host, stream).await;
                    Stream::Right(Box::new(shaken.map_err(HttpError::Unreachable)?))
                }
                None => Stream::Left(stream),
            };
            Connection::over(stream).await.map_err(|error| HttpError::Unreachable(io::Error::other(error)))
        };
        timeout(CONNECT_TIMEOUT, connecting).await.map_err(|late| HttpError::Unreachable(late.into()))?
    }

    /// Whether requests are written as a proxy wants them, with all of the URL.
    pub(super) fn asks_a_proxy(&self) -> bool {
        self.proxy.is_some() && self.tls.is_none()
    }

    /// Closes what nobody used for too long. `false` once nothing is left.
    fn sweep(&self) -> bool {
        let mut idle = self.lock();
        idle.connections.retain(|connection| connection.idle_since.elapsed() < IDLE_TIMEOUT);
        idle.is_swept = !idle.connections.is_empty();
        idle.is_swept
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        // Nothing panics while it is held.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn idle_count(&self) -> usize {
        let idle = self.lock();
        assert!(idle.is_swept || idle.connections.is_empty());
        idle.connections.len()
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
