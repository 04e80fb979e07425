//! Transport to a server over a pair of byte streams with one message per line (MCP 2025-11-25, basic/transports,
//! "stdio").

use crate::mcp::{
    client::{
        config::{BoxedReader, BoxedWriter},
        connection::{
            in_flight::{PendingRequest, RequestPurpose},
            peer::UpstreamConnectionState,
            relay::relay,
            request::{self, ConnectionRequestSerializer, ForwardedRequest, check_size},
            request_error::RequestError,
        },
        transport::{
            Transport,
            server_launcher::{ServerProcess, StartedServer},
            stderr_tail::StderrTail,
        },
    },
    wire::{
        cut_message::TruncatedMessage,
        headers::ParamHeaders,
        incoming::{IncomingMessage, RawResponse},
        lines::{BoundedLines, Line, LineSender},
        message::{RequestId, RpcError},
    },
};
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::{
    io,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;
use toolstead_domain::Caller;

/// Maximum time to wait for a server to read our response to its request.
const TIME_TO_READ: Duration = Duration::from_secs(1);
/// Time for a child that closed its output to exit before it is killed.
const TIME_TO_END: Duration = Duration::from_millis(200);

/// Connection over lines. Dropping it ends the child, if there is one.
#[derive(Debug)]
pub(in crate::mcp::client) struct LineTransport {
    peer: Arc<UpstreamConnectionState>,
    stderr: Option<StderrTail>,
    sender: LineSender,
    limit: usize,
    writing: AbortOnDropHandle<()>,
    _reading: AbortOnDropHandle<()>,
    child: Mutex<Option<Box<dyn ServerProcess>>>,
}

/// Request that waits for its response. Dropping it before the response arrives cancels it.
#[derive(Debug)]
pub(in crate::mcp::client) struct LineRequestGuard<'a> {
    transport: &'a LineTransport,
    pub(in crate::mcp::client) waiting: Arc<PendingRequest>,
    /// `false` for requests of the handshake, which are never cancelled (MCP 2025-11-25, basic/utilities/cancellation).
    cancellable: bool,
}

impl LineTransport {
    /// Creates a connection over these streams. A message of more than `limit` bytes is not sent; a received one is
    /// dropped, and the request that it answers fails.
    pub(in crate::mcp::client) fn over(
        reader: BoxedReader,
        writer: BoxedWriter,
        peer: Arc<UpstreamConnectionState>,
        limit: usize,
    ) -> Self {
        let (sender, writing) = LineSender::spawn(writer);
        let writing = tokio::spawn(watch_writing(AbortOnDropHandle::new(writing), peer.clone()));
        let reading = tokio::spawn(read(BoundedLines::new(reader, limit), peer.clone(), sender.clone()));
        Self {
            peer,
            stderr: None,
            sender,
            limit,
            writing: AbortOnDropHandle::new(writing),
            _reading: AbortOnDropHandle::new(reading),
            child: Mutex::new(None),
        }
    }

    /// Creates a connection to a child process over its standard streams. Retains the last lines of its standard error.
    pub(in crate::mcp::client) fn to_child(
        started: StartedServer,
        peer: Arc<UpstreamConnectionState>,
        limit: usize,
    ) -> Self {
        let tail = StderrTail::of(started.stderr, peer.server.clone());
        let mut transport = Self::over(started.stdout, started.stdin, peer, limit);
        transport.stderr = Some(tail);
        transport.child = Mutex::new(Some(started.process));
        transport
    }

    /// Registers a request as waiting for its response. Sends nothing yet.
    ///
    /// # Errors
    /// Returns [`RequestError::Lost`] if the connection has ended.
    pub(in crate::mcp::client) fn begin(
        &self,
        purpose: RequestPurpose,
        cancellable: bool,
    ) -> Result<LineRequestGuard<'_>, RequestError> {
        Ok(LineRequestGuard { transport: self, waiting: self.peer.in_flight.begin(purpose)?, cancellable })
    }

    /// Sends a message without a response.
    ///
    /// # Errors
    /// Returns [`RequestError::Lost`] if the connection has ended, and [`RequestError::TooLarge`] if the message
    /// exceeds the size limit.
    async fn send(&self, text: Vec<u8>) -> Result<(), RequestError> {
        check_size(&text, self.limit)?;
        self.sender.send(text).await.map_err(|closed| RequestError::Lost(closed.to_string()))
    }

    fn take_child(&self) -> Option<Box<dyn ServerProcess>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[async_trait]
impl Transport for LineTransport {
    fn peer(&self) -> &Arc<UpstreamConnectionState> {
        &self.peer
    }

    async fn request(
        &self,
        writer: &ConnectionRequestSerializer,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<RawResponse, RequestError> {
        let cancellable = !matches!(method, "initialize" | "server/discover");
        let request = self.begin(RequestPurpose::Exchange, cancellable)?;
        request.exchange(writer.request(request.waiting.id, method, params)).await
    }

    async fn forward(
        &self,
        writer: &ConnectionRequestSerializer,
        forwarded: &ForwardedRequest<'_>,
        _: Option<&ParamHeaders>,
        caller: &dyn Caller,
        idle: Option<Duration>,
    ) -> Result<RawResponse, RequestError> {
        let request = self.begin(forwarded.purpose(), true)?;
        request.waiting.belongs_to(forwarded.principal);
        let exchange = pin!(request.exchange(writer.forwarded(request.waiting.id, forwarded)));
        relay(self, &request.waiting, caller, idle, exchange).await
    }

    async fn notify(&self, _: &ConnectionRequestSerializer, method: &str) -> Result<(), RequestError> {
        self.send(request::notification(method, Map::new())).await
    }

    async fn respond(&self, id: &RequestId, outcome: &Result<Value, RpcError>) {
        // Dropped only if the queue is full because the server does not read.
        self.sender.try_send(request::answer(id, outcome));
    }

    fn stderr(&self) -> Vec<String> {
        self.stderr.as_ref().map_or(Vec::new(), StderrTail::lines)
    }

    /// Ends the connection. Waits at most [`TIME_TO_END`] for a child to exit, and kills it otherwise. Returns its exit
    /// status, if it exited, and its last line on standard error, as text; `None` without either.
    async fn abandon(&self) -> Option<String> {
        self.peer.end("the connection was abandoned");
        self.writing.abort();
        let mut child = self.take_child()?;
        let exit = timeout(TIME_TO_END, child.exited()).await.ok();
        drop(child);
        let said = self.stderr().pop().map(|line| format!("its output was `{line}`"));
        let words: Vec<String> = exit.into_iter().chain(said).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// Closes the server's input. Ends its process after `grace`.
    async fn close(&self, grace: Duration) {
        self.peer.end("the connection was closed");
        // Ending the writing task closes the pipe.
        self.writing.abort();
        if let Some(child) = self.take_child() {
            child.terminate(grace).await;
        }
    }
}

impl LineRequestGuard<'_> {
    /// Sends the request and waits for its response.
    ///
    /// # Errors
    /// Returns [`RequestError`].
    pub(in crate::mcp::client) async fn exchange(&self, text: Vec<u8>) -> Result<RawResponse, RequestError> {
        let LineTransport { sender, limit, peer, .. } = self.transport;
        check_size(&text, *limit)?;
        // Concurrent calls share the writing task, which writes their lines together. A single call writes without
        // waking a task.
        let sent = match peer.in_flight.call_count() {
            0 | 1 => sender.send_directly(text).await,
            _ => sender.send(text).await,
        };
        sent.map_err(|closed| RequestError::Lost(closed.to_string()))?;
        self.waiting.outcome().await
    }
}

impl Drop for LineRequestGuard<'_> {
    fn drop(&mut self) {
        if self.transport.peer.in_flight.cancel(self.waiting.id) && self.cancellable {
            // Dropped only if the queue is full because the server does not read; the server would not receive it
            // anyway.
            self.transport.sender.try_send(request::cancelled(self.waiting.id, "the caller no longer waits"));
        }
    }
}

/// Ends the connection when the server no longer reads messages, because it is then unusable.
async fn watch_writing(writing: AbortOnDropHandle<io::Result<()>>, peer: Arc<UpstreamConnectionState>) {
    match writing.await {
        Ok(Err(error)) => peer.end(&format!("it closed its input: {error}")),
        Ok(Ok(())) | Err(_) => peer.end("the connection was closed"),
    }
}

/// Reads and handles messages of the server until its output ends, and then ends the connection.
async fn read(mut lines: BoundedLines<BoxedReader>, peer: Arc<UpstreamConnectionState>, sender: LineSender) {
    loop {
        match lines.next().await {
            Ok(Some(Line::Whole(line))) => take_line(line, &peer, &sender).await,
            Ok(Some(Line::TooLong(start))) => take_long_line(&start, lines.end_of_long_line(), &peer),
            Ok(None) => return peer.end("it closed its output"),
            Err(error) => return peer.end(&format!("its output could not be read: {error}")),
        }
    }
}

async fn take_line(mut line: Vec<u8>, peer: &UpstreamConnectionState, sender: &LineSender) {
    if line.starts_with("\u{feff}".as_bytes()) {
        line.drain(..3);
    }
    match IncomingMessage::read(line) {
        Ok(IncomingMessage::Answer(answer)) => peer.take_answer(answer),
        Ok(IncomingMessage::Other(message)) => {
            if let Some((id, outcome)) = peer.handle_message(message, None) {
                // A server that asks faster than it reads is waited for, but only for a limited time, so that its
                // output is still read.
                let _ = timeout(TIME_TO_READ, sender.send(request::answer(&id, &outcome))).await;
            }
        }
        Err(unreadable) => peer.take_unreadable(*unreadable),
    }
}

/// Handles a message over the size limit. If it is the response to a request, that request fails; others continue.
fn take_long_line(start: &[u8], end: &[u8], peer: &UpstreamConnectionState) {
    let id = match TruncatedMessage::read(start, end) {
        TruncatedMessage::Answer(id) | TruncatedMessage::Unknown(id) => {
            // Our ids are numbers.
            let id = id.filter(|id| matches!(id, RequestId::Number(_)));
            id.or_else(|| peer.in_flight.sole_id().map(RequestId::Number))
        }
        TruncatedMessage::Request(_) | TruncatedMessage::Notification => None,
    };
    let error = RequestError::Malformed("it sent a message that is too long".into());
    tracing::debug!(server = %peer.server, ?id, "cut off a message that is too long");
    if let Some(id) = id {
        peer.in_flight.settle(&id, Err(error));
    }
}
