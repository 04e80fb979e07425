//! One connection, driven by the task that uses it: a call to a server nearby then wakes no other task.

use bytes::Bytes;
use futures::FutureExt;
use http::{Request, Response};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use std::{
    future::poll_fn,
    pin::pin,
    task::{Context, Poll},
};
use tokio::{net::TcpStream, time::Instant};
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

/// The bytes, with TLS or without. Boxed: what TLS keeps is large.
pub(super) type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// One connection. It makes progress only while somebody polls it.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// `None` once it is over. While it lives it holds on to a request that it has not taken, and nobody hears of that.
    driver: Option<http1::Connection<TokioIo<Stream>, Full<Bytes>>>,
    pub(super) idle_since: Instant,
}

impl Connection {
    /// A connection over this stream; nothing is sent yet.
    ///
    /// # Errors
    /// hyper's.
    pub(super) async fn over(stream: Stream) -> hyper::Result<Self> {
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        Ok(Self { sender, driver: Some(driver), idle_since: Instant::now() })
    }

    /// Sends the request. Gives it back where the connection ended before it was written.
    pub(super) async fn send(
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

    /// Makes what progress there is to be made.
    pub(super) fn drive(&mut self, context: &mut Context<'_>) {
        if self.driver.as_mut().is_some_and(|driver| driver.poll_unpin(context).is_ready()) {
            self.driver = None;
        }
    }

    /// Nothing has ended it, as far as it was driven.
    pub(super) fn is_open(&self) -> bool {
        self.driver.is_some()
    }

    /// Looks whether the server has closed it meanwhile. `true` if it takes a request.
    pub(super) async fn is_usable(&mut self) -> bool {
        poll_fn(|context| {
            self.drive(context);
            Poll::Ready(self.is_open() && self.sender.is_ready())
        })
        .await
    }

    #[cfg(test)]
    pub(super) fn into_stream(self) -> Stream {
        self.driver.unwrap().into_parts().io.into_inner()
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("is_open", &self.is_open()).finish_non_exhaustive()
    }
}
