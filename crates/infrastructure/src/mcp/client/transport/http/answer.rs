//! Response to a posted request: one JSON object, an event stream, or an error.

use super::{HttpTransport, StreamableHttpSession};
use crate::{
    http::{pause::wanted_pause, response::Response},
    mcp::{
        client::{
            config::shown_url,
            connection::{
                foreign_text::shown,
                in_flight::PendingRequest,
                peer::{ConnectionLoss, UpstreamConnectionState},
                request::ConnectionRequestSerializer,
                request_error::RequestError,
            },
        },
        wire::{
            headers,
            incoming::{IncomingMessage, RawResponse},
            message::{RequestId, RpcError},
        },
    },
};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use std::sync::Arc;
use url::Url;

/// Maximum number of bytes of an error's body to read.
const ERROR_BODY_BYTES: usize = 64 << 10;
/// Maximum length of a session id, in bytes.
const MAX_SESSION_ID_BYTES: usize = 1024;

/// Result of a posted request.
pub(super) enum PostOutcome {
    /// The response to the request.
    Answered(RawResponse),
    /// The server rejected the request unprocessed, because it has ended the session.
    SessionEnded,
}

impl HttpTransport {
    /// Posts a request and waits for its response.
    pub(super) async fn post(
        &self,
        writer: &ConnectionRequestSerializer,
        waiting: &Arc<PendingRequest>,
        text: Bytes,
        headers: HeaderMap,
    ) -> Result<PostOutcome, RequestError> {
        let had_session = headers.contains_key(headers::SESSION_ID);
        // Only `initialize` has neither a session nor a version.
        let opens_session = !headers.contains_key(headers::PROTOCOL_VERSION);
        let response = self.execute(Method::POST, headers, text).await?;
        let status = response.status();
        note_retry_after(&self.peer, &response);
        if opens_session && status.is_success() {
            self.take_session(response.headers())?;
        }
        match media_type(&response) {
            _ if status == StatusCode::UNAUTHORIZED => Err(unauthorized(&self.peer, &response)),
            _ if status == StatusCode::NOT_FOUND && had_session => Ok(PostOutcome::SessionEnded),
            MediaType::Json => self.read_object(waiting, response, had_session).await,
            MediaType::EventStream if status.is_success() => {
                // Boxed, because it is larger than the rest of a call.
                Box::pin(self.read_to_answer(writer, waiting, response)).await.map(PostOutcome::Answered)
            }
            MediaType::EventStream | MediaType::Other if !status.is_success() => {
                Err(Box::pin(http_error(&self.url, response)).await)
            }
            MediaType::EventStream | MediaType::Other => {
                let kind = response.headers().get(header::CONTENT_TYPE);
                let kind = kind.map_or("nothing".into(), |kind| shown(&String::from_utf8_lossy(kind.as_bytes()), 80));
                let what =
                    format!("it answered a request with HTTP status {} and {kind} instead of JSON", status.as_u16());
                Err(RequestError::Malformed(what))
            }
        }
    }

    /// Stores the session that the response to `initialize` names. Without one, removes the stored session.
    fn take_session(&self, headers: &HeaderMap) -> Result<(), RequestError> {
        let id = headers.get(headers::SESSION_ID).cloned();
        let visible = |id: &[u8]| id.iter().all(u8::is_ascii_graphic) && (1..=MAX_SESSION_ID_BYTES).contains(&id.len());
        if id.as_ref().is_some_and(|id| !visible(id.as_bytes())) {
            return Err(RequestError::Malformed("it sent a session id that is not valid in a header".into()));
        }
        self.session.store(id.map(|mut id| {
            id.set_sensitive(true);
            let mut headers = self.headers.clone();
            headers.insert(headers::SESSION_ID, id.clone());
            Arc::new(StreamableHttpSession { id, headers })
        }));
        Ok(())
    }

    async fn read_object(
        &self,
        waiting: &PendingRequest,
        response: Response,
        had_session: bool,
    ) -> Result<PostOutcome, RequestError> {
        let status = response.status();
        let body = response.bytes(self.limit).await.map_err(|error| self.failed(error))?;
        // Included only for error statuses, whose bodies are usually short.
        let detail = if status.is_success() { String::new() } else { body_detail(&body) };
        let error = match IncomingMessage::read(body) {
            Ok(IncomingMessage::Answer(answer)) if *answer.id() == RequestId::Number(waiting.id) => {
                if status.is_success() || !matches!(status, StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST) {
                    return Ok(PostOutcome::Answered(answer));
                }
                // This is an error of the request itself, even if its text mentions a session.
                match answer.result_text() {
                    Ok(Err(_)) => return Ok(PostOutcome::Answered(answer)),
                    Ok(Ok(_)) | Err(_) => None,
                }
            }
            Ok(IncomingMessage::Answer(answer)) if status.is_success() => {
                self.peer.drop_answer(answer.id());
                return Err(RequestError::Malformed("it answered with the id of another request".into()));
            }
            // Servers that reject a message before they read it send errors without its id.
            Ok(IncomingMessage::Answer(answer)) => answer.into_outcome().ok().and_then(Result::err),
            Err(unreadable) if unreadable.malformed.is_response && !status.is_success() => {
                Some(*unreadable.malformed.error)
            }
            Ok(IncomingMessage::Other(_)) if status.is_success() => {
                return Err(RequestError::Malformed("it answered with a message that is not a response".into()));
            }
            Err(unreadable) if status.is_success() => {
                return Err(RequestError::Malformed(unreadable.malformed.error.message));
            }
            Ok(IncomingMessage::Other(_)) | Err(_) => None,
        };
        match error {
            Some(error) if is_end_of_session(status, had_session, &error) => Ok(PostOutcome::SessionEnded),
            Some(error) if status != StatusCode::FORBIDDEN => Err(RequestError::Rpc(error)),
            Some(_) | None => Err(RequestError::Http { status: status.as_u16(), detail }),
        }
    }
}

/// Records until when an error response asks not to be called again, if it does (`Retry-After`).
pub(in crate::mcp::client) fn note_retry_after(peer: &UpstreamConnectionState, response: &Response) {
    if !response.status().is_success()
        && let Some(wish) = wanted_pause(response.headers())
    {
        peer.set_busy_for(wish);
    }
}

/// Returns the error for a server that requires a login, and marks the connection as unusable. The server's challenge
/// is shown but never followed.
pub(in crate::mcp::client) fn unauthorized(peer: &UpstreamConnectionState, response: &Response) -> RequestError {
    let challenge = response.headers().get(header::WWW_AUTHENTICATE);
    let challenge = challenge
        .map_or(String::new(), |value| format!(", `{}`", shown(&String::from_utf8_lossy(value.as_bytes()), 200)));
    let reason = format!("HTTP status {}{challenge}", response.status().as_u16());
    peer.mark_unusable(ConnectionLoss::Unauthorized(reason.clone()));
    RequestError::Unauthorized(reason)
}

/// Returns the error for an unsuccessful response of `url`.
pub(in crate::mcp::client) async fn http_error(url: &Url, response: Response) -> RequestError {
    let status = response.status().as_u16();
    let mut detail = header_detail(url, &response);
    if detail.is_empty() {
        // The status is the error; the body only adds details.
        detail = response.bytes(ERROR_BODY_BYTES).await.map_or(String::new(), |body| body_detail(&body));
    }
    RequestError::Http { status, detail }
}

fn header_detail(url: &Url, response: &Response) -> String {
    let header = |name: header::HeaderName| response.headers().get(name).and_then(|value| value.to_str().ok());
    if let (true, Some(target)) = (response.status().is_redirection(), header(header::LOCATION)) {
        let target = url.join(target).map_or_else(|_| "elsewhere".into(), |url| shown(&shown_url(&url), 200));
        return format!(": it redirects to `{target}`, and redirects are not followed");
    }
    let pause = wanted_pause(response.headers());
    pause.map_or(String::new(), |pause| format!(": it accepts no requests for {} s", pause.as_secs_f64()))
}

/// Returns `true` if an error with HTTP status 400 means that the session has ended. Some servers send this status
/// where the specification requires 404.
fn is_end_of_session(status: StatusCode, had_session: bool, error: &RpcError) -> bool {
    status == StatusCode::BAD_REQUEST && had_session && error.message.to_ascii_lowercase().contains("session")
}

enum MediaType {
    Json,
    EventStream,
    Other,
}

fn media_type(response: &Response) -> MediaType {
    let value = response.headers().get(header::CONTENT_TYPE);
    if value.is_some_and(|value| value == "application/json") {
        return MediaType::Json;
    }
    let value = value.and_then(|value| value.to_str().ok()).unwrap_or("");
    let kind = value.split(';').next().unwrap_or("").trim();
    if kind.eq_ignore_ascii_case("application/json") {
        MediaType::Json
    } else if kind.eq_ignore_ascii_case("text/event-stream") {
        MediaType::EventStream
    } else {
        MediaType::Other
    }
}

pub(in crate::mcp::client) fn is_event_stream(response: &Response) -> bool {
    matches!(media_type(response), MediaType::EventStream)
}

/// Returns the beginning of a body as one line, after a colon; empty for an empty body.
fn body_detail(body: &[u8]) -> String {
    let text = shown(&String::from_utf8_lossy(&body[..body.len().min(4000)]), 300);
    if text.is_empty() { text } else { format!(": {text}") }
}
