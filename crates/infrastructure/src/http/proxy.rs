//! A configured proxy.

use crate::{
    egress::{connector::Connector, host::Host},
    http::http_error::HttpError,
};
use std::io;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Maximum size of the head of the proxy's response to `CONNECT`, in bytes.
const MAX_HEAD: usize = 16 << 10;

/// Connects through an HTTP proxy, which receives plain requests itself and opens a tunnel for TLS.
#[derive(Debug)]
pub struct HttpProxyConnector {
    host: Host,
    port: u16,
    connector: Connector,
}

impl HttpProxyConnector {
    /// Creates a proxy at this host and port, which this connector reaches.
    pub fn new(connector: Connector, host: Host, port: u16) -> Self {
        Self { host, port, connector }
    }

    /// Opens a connection that leads to the host, or to the proxy itself for plain requests.
    ///
    /// # Errors
    /// [`HttpError`]; no request was sent.
    pub(super) async fn connect(&self, host: &Host, port: u16, is_tunnel: bool) -> Result<TcpStream, HttpError> {
        let mut stream = self.connector.connect(&self.host, self.port).await?;
        if is_tunnel {
            self.open_tunnel(&mut stream, host, port).await.map_err(HttpError::Unreachable)?;
        }
        Ok(stream)
    }

    async fn open_tunnel(&self, stream: &mut TcpStream, host: &Host, port: u16) -> io::Result<()> {
        let request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut head = Vec::new();
        // Byte by byte, because the bytes after the head are not from the proxy.
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() == MAX_HEAD {
                return Err(io::Error::other("the answer of the proxy is too long"));
            }
            head.push(stream.read_u8().await?);
        }
        match status(&head) {
            Some(200..=299) => Ok(()),
            Some(status) => Err(io::Error::other(format!("the proxy refused with status {status}"))),
            None => Err(io::Error::other(format!("{}:{} is not an HTTP proxy", self.host, self.port))),
        }
    }
}

fn status(head: &[u8]) -> Option<u16> {
    let rest = head.strip_prefix(b"HTTP/1.1 ").or_else(|| head.strip_prefix(b"HTTP/1.0 "))?;
    std::str::from_utf8(rest.get(..3)?).ok()?.parse().ok()
}
