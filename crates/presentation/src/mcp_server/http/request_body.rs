//! The body of a request, bounded in size and time.

use super::response::{Body, text};
use bytes::{Buf, Bytes};
use futures::poll;
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Collected, LengthLimitError, Limited};
use hyper::body::Body as HttpBody;
use std::{error::Error, pin::pin, task::Poll, time::Duration};

/// A body as servers hand it on: hyper's own, or that of a server around this one.
pub trait RequestBody: HttpBody<Data: Buf + Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static {}

impl<B: HttpBody<Data: Buf + Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static> RequestBody for B {}

/// Reads all of it; else says why not.
pub(super) async fn read(body: impl RequestBody, limit: usize, time: Duration) -> Result<Bytes, Response<Body>> {
    // A client that says how much is to come is refused before it has sent it.
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let mut whole = pin!(Limited::new(body, limit).collect());
    // Most bodies come along with their heads, and need no timer.
    let read = match poll!(&mut whole) {
        Poll::Ready(read) => read,
        Poll::Pending => tokio::time::timeout(time, whole)
            .await
            .map_err(|_| text(StatusCode::REQUEST_TIMEOUT, "the body did not come in time"))?,
    };
    read.map(Collected::to_bytes).map_err(|error| refusal(error.as_ref()))
}

fn refusal(error: &(dyn Error + Send + Sync + 'static)) -> Response<Body> {
    if error.is::<LengthLimitError>() { too_large() } else { text(StatusCode::BAD_REQUEST, "the body is incomplete") }
}

fn too_large() -> Response<Body> {
    text(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large")
}
