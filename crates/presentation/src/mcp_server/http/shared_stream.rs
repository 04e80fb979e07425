//! Stream of a connection. hyper reads and writes it, and the task of the connection detects whether the client has
//! disconnected during a call.
//!
//! hyper could detect that as well, but reads into a buffer of its own for that, which it allocates for every request.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

#[derive(Debug, Clone)]
pub(super) struct SharedTcpStream(Arc<Mutex<TcpStream>>);

impl SharedTcpStream {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }

    /// Returns `true` if the client has closed its side. Wakes the task of `context` when that may change.
    pub(super) fn poll_left(&self, context: &mut Context<'_>) -> bool {
        let mut byte = [0];
        // Bytes that have arrived belong to the next request.
        matches!(self.lock().poll_peek(context, &mut ReadBuf::new(&mut byte)), Poll::Ready(Ok(0) | Err(_)))
    }

    fn lock(&self) -> MutexGuard<'_, TcpStream> {
        // No code panics while the lock is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsyncRead for SharedTcpStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.lock()).poll_read(context, buffer)
    }
}

impl AsyncWrite for SharedTcpStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.lock()).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.lock()).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.lock()).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.lock()).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    #[tokio::test]
    async fn a_disconnect_is_detected_when_the_client_closes_and_not_while_it_sends() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let mut stream = SharedTcpStream::new(listener.accept().await.unwrap().0);
        let has_left = |stream: SharedTcpStream| poll_fn(move |context| Poll::Ready(stream.poll_left(context)));
        assert!(!has_left(stream.clone()).await);
        client.write_all(b"ab").await.unwrap();
        let mut first = [0; 1];
        stream.read_exact(&mut first).await.unwrap();
        assert!(!has_left(stream.clone()).await, "a byte has arrived");
        stream.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"b", "it was not taken");
        let watched = stream.clone();
        let left = poll_fn(move |context| if watched.poll_left(context) { Poll::Ready(()) } else { Poll::Pending });
        tokio::join!(left, async move { drop(client) });
    }
}
