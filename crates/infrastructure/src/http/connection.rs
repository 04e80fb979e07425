//! One connection, driven by the task that uses it, so that a request to a nearby server wakes no other task.

use bytes::Bytes;
use futures::{FutureExt, task::AtomicWaker};
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
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};
use tokio::{
    net::TcpStream,
    runtime::{self, Handle},
    time::Instant,
};
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

/// A byte stream, with TLS or without. Boxed, because the state of TLS is large.
pub(super) type MaybeTlsStream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// Number of times that a connection is polled in a row while it causes its own wake-ups.
const POLLS_IN_A_ROW: u8 = 2;

/// One connection. It makes progress only while a task polls it.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: Driver,
    task: Arc<ConnectionWaker>,
    /// Waker that wakes `task`, for polls of the driver.
    waker: Waker,
    pub(super) idle_since: Instant,
    /// Runtime whose driver wakes the connection.
    pub(super) runtime: runtime::Id,
}

/// Driver of a connection, which reads and writes its bytes. `None` once the connection has ended. Until then the
/// driver also holds a request that it has not started to send.
pub(super) struct Driver(Option<http1::Connection<TokioIo<MaybeTlsStream>, Full<Bytes>>>);

/// Waker of the task that uses a connection. It ignores wake-ups that the task itself causes while it polls the
/// connection: hyper passes requests and bodies through channels, and each of them would cause another poll of the
/// task.
struct ConnectionWaker {
    state: AtomicU8,
    waker: AtomicWaker,
}

impl ConnectionWaker {
    /// State in which no task polls the connection.
    const IDLE: u8 = 0;
    /// State in which a task polls the connection.
    const POLLED: u8 = 1;
    /// State in which a task polls the connection, which was woken meanwhile.
    const WOKEN: u8 = 2;
}

impl Wake for ConnectionWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let woken = self.state.compare_exchange(Self::POLLED, Self::WOKEN, Ordering::AcqRel, Ordering::Acquire);
        if woken == Err(Self::IDLE) {
            self.waker.wake();
        }
    }
}

impl Connection {
    /// Creates a connection over this stream; nothing is sent yet.
    ///
    /// # Errors
    /// Errors of hyper.
    pub(super) async fn over(stream: MaybeTlsStream) -> hyper::Result<Self> {
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        let task = Arc::new(ConnectionWaker { state: AtomicU8::new(ConnectionWaker::IDLE), waker: AtomicWaker::new() });
        let waker = task.clone().into();
        Ok(Self {
            sender,
            driver: Driver(Some(driver)),
            task,
            waker,
            idle_since: Instant::now(),
            runtime: Handle::current().id(),
        })
    }

    /// Sends the request and waits for the head of the response. If the connection ended before the request was
    /// written, the error includes the request.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, (hyper::Error, Option<Request<Full<Bytes>>>)> {
        // The driver is polled below, so the request need not wake it.
        self.task.state.store(ConnectionWaker::POLLED, Ordering::Release);
        let mut response = pin!(self.sender.try_send_request(request));
        let sent = poll_fn(|context| {
            self.poll(context, |driver, context| {
                driver.drive(context);
                response.as_mut().poll(context)
            })
        });
        sent.await.map_err(|mut failed| {
            let unsent = failed.take_message();
            (failed.into_error(), unsent)
        })
    }

    /// Polls an operation that depends on the driver alone. Polls it a second time if that woke the connection, and
    /// then lets other tasks run first.
    pub(super) fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        mut poll: impl FnMut(&mut Driver, &mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.task.waker.register(context.waker());
        for _ in 0..POLLS_IN_A_ROW {
            self.task.state.store(ConnectionWaker::POLLED, Ordering::Release);
            let polled = poll(&mut self.driver, &mut Context::from_waker(&self.waker));
            let state = self.task.state.swap(ConnectionWaker::IDLE, Ordering::AcqRel);
            // A result that is ready needs no wake-up: the next poll reads what has arrived by then.
            if polled.is_ready() || state == ConnectionWaker::POLLED {
                return polled;
            }
        }
        // Lets other tasks run first.
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Returns `true` if the connection has not ended, as far as it was driven.
    pub(super) fn is_open(&self) -> bool {
        self.driver.0.is_some()
    }

    /// Checks that the server has not closed the connection. Returns `true` if it accepts a request.
    pub(super) async fn is_usable(&mut self) -> bool {
        poll_fn(|context| {
            self.poll(context, |driver, context| {
                driver.drive(context);
                Poll::Ready(())
            })
        })
        .await;
        self.is_open() && self.sender.is_ready()
    }

    /// Detaches the connection from its task until the next use, and records the time.
    pub(super) fn rest(&mut self) {
        self.idle_since = Instant::now();
        drop(self.task.waker.take());
    }

    #[cfg(test)]
    pub(super) fn into_stream(self) -> MaybeTlsStream {
        self.driver.0.unwrap().into_parts().io.into_inner()
    }
}

impl Driver {
    /// Makes as much progress as possible without waiting.
    pub(super) fn drive(&mut self, context: &mut Context<'_>) {
        if self.0.as_mut().is_some_and(|driver| driver.poll_unpin(context).is_ready()) {
            self.0 = None;
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
    use http_body_util::BodyExt;
    use std::sync::atomic::AtomicUsize;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    /// Counts how often a task is woken.
    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn a_response_wakes_its_task_once_and_a_request_does_not() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let mut connection = Connection::over(MaybeTlsStream::Left(client)).await.unwrap();
        for round in 1..=3 {
            assert!(connection.is_usable().await);
            let wakes = Arc::new(Wakes::default());
            let waker = wakes.clone().into();
            let mut context = Context::from_waker(&waker);
            let mut response = {
                let mut sending = pin!(connection.send(Request::new(Full::new("x".into()))));
                assert!(sending.as_mut().poll(&mut context).is_pending());
                assert_eq!(wakes.0.load(Ordering::Relaxed), 0, "{round}");
                assert!(server.read(&mut [0; 1000]).await.unwrap() > 0);
                server.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
                while wakes.0.load(Ordering::Relaxed) == 0 {
                    tokio::task::yield_now().await;
                }
                match sending.poll(&mut context) {
                    Poll::Ready(response) => response.unwrap(),
                    Poll::Pending => panic!("{round}"),
                }
            };
            let body = response.body_mut();
            let mut next = || {
                connection.poll(&mut context, |driver, context| {
                    driver.drive(context);
                    body.frame().poll_unpin(context)
                })
            };
            assert!(matches!(next(), Poll::Ready(Some(Ok(frame))) if frame.data_ref().unwrap() == "ok"), "{round}");
            assert!(matches!(next(), Poll::Ready(None)), "{round}");
            assert_eq!(wakes.0.load(Ordering::Relaxed), 1, "{round}");
            connection.rest();
        }
    }
}
