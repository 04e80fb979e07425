//! HTTP responses.

use super::event_stream::EventStreamBody;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::{Either, Full};

/// Whole text, or stream of events.
pub(super) type Body = Either<Full<Bytes>, EventStreamBody>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

pub(super) fn json(status: StatusCode, json: Vec<u8>) -> Response<Body> {
    full_response(status, JSON, json.into())
}

/// Returns a response that reuses the header map of the request. hyper in turn reuses it for the next request of the
/// connection.
pub(super) fn json_in_place(mut headers: HeaderMap, status: StatusCode, json: Vec<u8>) -> Response<Body> {
    headers.clear();
    headers.insert(header::CONTENT_TYPE, JSON);
    let mut response = Response::new(Either::Left(Full::new(json.into())));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Returns a plain-text response with this status: a sentence for developers of the client.
pub(super) fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    full_response(status, TEXT, text.into())
}

/// Returns 202 without a body.
pub(super) fn accepted() -> Response<Body> {
    empty(StatusCode::ACCEPTED)
}

/// Returns 204.
pub(super) fn no_content() -> Response<Body> {
    empty(StatusCode::NO_CONTENT)
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::default()));
    *response.status_mut() = status;
    response
}

/// Returns 405 with the allowed methods.
pub(super) fn method_not_allowed(allowed: &'static str) -> Response<Body> {
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "this method is not served here");
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

/// Returns a complete stream of events.
pub(super) fn whole_events(events: Bytes) -> Response<Body> {
    unbuffered(full_response(StatusCode::OK, EVENT_STREAM, events))
}

/// Returns a stream that sends events as they occur.
pub(super) fn live_events(events: EventStreamBody) -> Response<Body> {
    let mut response = Response::new(Either::Right(events));
    response.headers_mut().insert(header::CONTENT_TYPE, EVENT_STREAM);
    unbuffered(response)
}

fn full_response(status: StatusCode, content_type: HeaderValue, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::new(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

/// Prevents caches and proxies from delaying events (MCP 2026-07-28, basic/transports/streamable-http).
fn unbuffered(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
