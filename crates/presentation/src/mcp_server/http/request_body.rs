//! Body of a request, limited in size and time.

use super::response::{Body, text};
use bytes::{Buf, BufMut, Bytes};
use futures::poll;
use http::{Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body as HttpBody;
use std::{error::Error, pin::pin, task::Poll, time::Duration};

/// Body of a request from hyper, or from a server in which this one is mounted.
pub trait RequestBody: HttpBody<Data: Buf + Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static {}

impl<B: HttpBody<Data: Buf + Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static> RequestBody for B {}

/// Reads a body of at most `limit` bytes within `time`. Returns the refusal if that fails.
pub(super) async fn read(body: impl RequestBody, limit: usize, time: Duration) -> Result<Bytes, Response<Body>> {
    // A body with a declared length over the limit is refused before it is received.
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let mut whole = pin!(collect(Limited::new(body, limit)));
    // Most bodies arrive with their heads, and need no timer.
    let read = match poll!(&mut whole) {
        Poll::Ready(read) => read,
        Poll::Pending => tokio::time::timeout(time, whole)
            .await
            .map_err(|_| text(StatusCode::REQUEST_TIMEOUT, "the body did not come in time"))?,
    };
    read.map_err(|error| refusal(error.as_ref()))
}

/// Collects the pieces of a body. A body of one piece, which is usual, is not copied.
async fn collect<B: RequestBody>(body: Limited<B>) -> Result<Bytes, Box<dyn Error + Send + Sync>> {
    let mut body = pin!(body);
    let (mut first, mut whole) = (Bytes::new(), Vec::<u8>::new());
    while let Some(frame) = body.frame().await {
        let Ok(mut data) = frame?.into_data() else { continue };
        if first.is_empty() && whole.is_empty() {
            first = data.copy_to_bytes(data.remaining());
        } else {
            // Copied at once: many small pieces would take many times the memory of their bytes.
            whole.put(std::mem::take(&mut first));
            whole.put(data);
        }
    }
    Ok(if whole.is_empty() { first } else { whole.into() })
}

fn refusal(error: &(dyn Error + Send + Sync + 'static)) -> Response<Body> {
    if error.is::<LengthLimitError>() { too_large() } else { text(StatusCode::BAD_REQUEST, "the body is incomplete") }
}

fn too_large() -> Response<Body> {
    text(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large")
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream;
    use http_body_util::{Full, StreamBody};
    use hyper::body::Frame;
    use std::convert::Infallible;

    const TIME: Duration = Duration::from_secs(60);

    async fn read_pieces(pieces: &'static [&'static str], limit: usize) -> Result<Bytes, StatusCode> {
        let frames = pieces.iter().map(|piece| Ok::<_, Infallible>(Frame::data(Bytes::from_static(piece.as_bytes()))));
        read(StreamBody::new(stream::iter(frames)), limit, TIME).await.map_err(|refusal| refusal.status())
    }

    #[tokio::test]
    async fn pieces_become_one_body_up_to_the_limit() {
        assert_eq!(read_pieces(&[], 5).await, Ok(Bytes::new()));
        assert_eq!(read_pieces(&["", "ab", "", "c", "de"], 5).await, Ok("abcde".into()));
        assert_eq!(read_pieces(&["ab", "c", "de"], 4).await, Err(StatusCode::PAYLOAD_TOO_LARGE));
        let one = Bytes::from(vec![b'x'; 5]);
        let whole = read(Full::new(one.clone()), 5, TIME).await.map_err(|refusal| refusal.status()).unwrap();
        assert_eq!((whole.as_ptr(), whole.len()), (one.as_ptr(), 5), "one piece is not copied");
    }
}
