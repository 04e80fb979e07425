//! Responses that are streams of events, with one JSON-RPC message each.

use bytes::Bytes;
use futures::stream::{BoxStream, Stream, StreamExt};
use http_body_util::StreamBody;
use hyper::body::Frame;
use std::convert::Infallible;
use toolstead_infrastructure::http::sse::{KEEP_ALIVE, write_event};

/// Body that sends events as they occur.
pub(super) type EventStreamBody = StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>;

/// Comment that shows that the stream is alive. Clients skip it.
pub(super) const ALIVE: Bytes = Bytes::from_static(KEEP_ALIVE);

/// Returns the messages as server-sent events, one event each.
pub(super) fn events<'a>(messages: impl IntoIterator<Item = &'a Vec<u8>>) -> Bytes {
    let mut stream = Vec::new();
    for message in messages {
        write_event(&mut stream, None, message);
    }
    stream.into()
}

/// Creates a body of these pieces.
pub(super) fn body(pieces: impl Stream<Item = Bytes> + Send + 'static) -> EventStreamBody {
    StreamBody::new(pieces.map(|piece| Ok(Frame::data(piece))).boxed())
}
