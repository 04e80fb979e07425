//! A response: its head, and access to its body.

use crate::http::{connection::Connection, http_error::HttpError, origin::OriginPool};
use async_compression::tokio::bufread::GzipDecoder;
use bytes::Bytes;
use futures::{FutureExt, Stream, StreamExt, stream};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use std::{
    future::poll_fn,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio_util::io::{ReaderStream, StreamReader};

/// Size of the pieces in which a body is decompressed, in bytes.
const UNPACKED_AT_ONCE: usize = 64 << 10;
/// Maximum number of pieces that are skipped to reach the end of a dropped body.
const PIECES_AFTER_THE_ANSWER: usize = 4;

/// The head of a response, and access to its body. Dropping it discards the rest of the body.
#[derive(Debug)]
pub struct Response {
    status: StatusCode,
    headers: HeaderMap,
    body: ResponseBody,
}

enum ResponseBody {
    Plain(ConnectionBody),
    /// Decompressed while it is read.
    Packed {
        unpacked: Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send + Sync>>,
        received: Arc<AtomicU64>,
    },
}

/// A body that is read from the connection that it holds.
struct ConnectionBody {
    incoming: Incoming,
    connection: Option<Box<Connection>>,
    origin: Arc<OriginPool>,
    /// Number of received bytes.
    received: u64,
    /// Copy of `received` that is shared with the owner of a compressed body.
    reported: Option<Arc<AtomicU64>>,
}

impl Response {
    /// Creates a response whose body is read from this connection, which returns to the pool afterwards.
    pub(super) fn of(response: http::Response<Incoming>, connection: Box<Connection>, origin: Arc<OriginPool>) -> Self {
        let (head, incoming) = response.into_parts();
        let body = ConnectionBody { incoming, connection: Some(connection), origin, received: 0, reported: None };
        let is_packed = head.headers.get(header::CONTENT_ENCODING).is_some_and(is_gzip);
        // An empty body cannot be decompressed, because it does not even have a header.
        let body = if is_packed && !body.incoming.is_end_stream() { unpacked(body) } else { ResponseBody::Plain(body) };
        Self { status: head.status, headers: head.headers, body }
    }

    /// Returns the status. Redirects are not followed.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Returns the number of bytes of the body received so far, before decompression.
    pub fn received(&self) -> u64 {
        match &self.body {
            ResponseBody::Plain(body) => body.received,
            ResponseBody::Packed { received, .. } => received.load(Ordering::Relaxed),
        }
    }

    /// Returns the next piece of the body, decompressed; `None` at its end.
    ///
    /// # Errors
    /// [`HttpError::Broken`].
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        match &mut self.body {
            ResponseBody::Plain(body) => body.chunk().await,
            ResponseBody::Packed { unpacked, .. } => unpacked.next().await.transpose().map_err(HttpError::broken),
        }
    }

    /// Returns the rest of the body, decompressed.
    ///
    /// # Errors
    /// [`HttpError::TooLong`] as soon as there are more than `limit` bytes; [`HttpError::Broken`].
    pub async fn bytes(mut self, limit: usize) -> Result<Vec<u8>, HttpError> {
        let announced = match &self.body {
            ResponseBody::Plain(body) => body.incoming.size_hint().exact().unwrap_or(0),
            // The size after decompression is unknown.
            ResponseBody::Packed { .. } => 0,
        };
        if announced > limit as u64 {
            return Err(HttpError::TooLong { limit });
        }
        let mut body = Vec::with_capacity(usize::try_from(announced).unwrap_or(0));
        while let Some(chunk) = self.chunk().await? {
            if body.len() + chunk.len() > limit {
                return Err(HttpError::TooLong { limit });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

/// Returns `true` if a header `Content-Encoding` names gzip, alone.
fn is_gzip(coding: &HeaderValue) -> bool {
    ["gzip", "x-gzip"].iter().any(|gzip| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(gzip.as_bytes()))
}

fn unpacked(mut body: ConnectionBody) -> ResponseBody {
    let received = Arc::<AtomicU64>::default();
    body.reported = Some(received.clone());
    let packed = stream::unfold(body, |mut body| async move {
        match body.chunk().await {
            Ok(chunk) => chunk.map(|chunk| (Ok(chunk), body)),
            Err(error) => Some((Err(io::Error::other(error)), body)),
        }
    });
    let mut decoder = GzipDecoder::new(StreamReader::new(Box::pin(packed)));
    // Several members in a row are one body (RFC 1952, section 2.2). The first alone would look like a complete one.
    decoder.multiple_members(true);
    ResponseBody::Packed { unpacked: Box::pin(ReaderStream::with_capacity(decoder, UNPACKED_AT_ONCE)), received }
}

impl ConnectionBody {
    async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        loop {
            let frame = poll_fn(|context| {
                let Some(connection) = &mut self.connection else { return self.incoming.frame().poll_unpin(context) };
                connection.poll(context, |driver, context| {
                    // The body first, so that only what is needed is read.
                    let frame = self.incoming.frame().poll_unpin(context);
                    if frame.is_ready() {
                        return frame;
                    }
                    driver.drive(context);
                    self.incoming.frame().poll_unpin(context)
                })
            });
            match frame.await {
                // Trailers are ignored.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        self.received += data.len() as u64;
                        if let Some(reported) = &self.reported {
                            reported.store(self.received, Ordering::Relaxed);
                        }
                        return Ok(Some(data));
                    }
                    Err(_) => continue,
                },
                Some(Err(error)) => return Err(HttpError::broken(error)),
                None => {
                    if let Some(connection) = self.connection.take().filter(|connection| connection.is_open()) {
                        self.origin.keep(connection);
                    }
                    return Ok(None);
                }
            }
        }
    }
}

impl Drop for ConnectionBody {
    /// Tries to read to the end of the body without waiting. The end of a stream usually arrives with the event after
    /// which the caller stops reading, and then the connection can be reused.
    fn drop(&mut self) {
        for _ in 0..PIECES_AFTER_THE_ANSWER {
            let is_open = self.connection.is_some();
            if !is_open || !matches!(self.chunk().now_or_never(), Some(Ok(Some(_)))) {
                break;
            }
        }
    }
}

impl std::fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plain(_) => "Plain",
            Self::Packed { .. } => "Packed",
        })
    }
}
