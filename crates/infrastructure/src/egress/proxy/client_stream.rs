//! Client side of a connection, which counts bytes and records the time of the last traffic.

use crate::egress::proxy::TargetConnector;
use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, sleep_until},
};

/// Stream to a client of the proxy. Records the time of its traffic, counts its bytes, and fails beyond the maximum
/// number of bytes.
pub(super) struct TrafficMeterStream {
    stream: TcpStream,
    traffic: Arc<IdleTimer>,
    gate: Arc<TargetConnector>,
}

/// Time of the last traffic.
pub(super) struct IdleTimer {
    start: Instant,
    /// Milliseconds from `start` to the last traffic.
    last: AtomicU64,
}

impl TrafficMeterStream {
    pub(super) fn new(stream: TcpStream, gate: Arc<TargetConnector>) -> (Self, Arc<IdleTimer>) {
        let _ = stream.set_nodelay(true);
        let traffic = Arc::new(IdleTimer { start: Instant::now(), last: AtomicU64::new(0) });
        (Self { stream, traffic: traffic.clone(), gate }, traffic)
    }

    pub(super) async fn peek(&self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.peek(into).await
    }

    fn moved(&self, bytes: usize) -> io::Result<()> {
        let last = self.traffic.start.elapsed().as_millis();
        self.traffic.last.store(last.try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
        if self.gate.passes(bytes) { Ok(()) } else { Err(io::Error::other("the maximum number of bytes was reached")) }
    }
}

impl IdleTimer {
    /// Returns once there was no traffic for this time.
    pub(super) async fn idle(&self, limit: Duration) {
        loop {
            let due = self.start + Duration::from_millis(self.last.load(Ordering::Relaxed)) + limit;
            if due <= Instant::now() {
                return;
            }
            sleep_until(due).await;
        }
    }
}

impl AsyncRead for TrafficMeterStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, into))?;
        Poll::Ready(self.moved(into.filled().len() - before))
    }
}

impl AsyncWrite for TrafficMeterStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, from))?;
        Poll::Ready(self.moved(written).map(|()| written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
