//! Event streams on which the response to a request arrives, resumed if they break off before it.

use super::{HttpTransport, answer::is_event_stream};
use crate::{
    http::{event_stream::EventStream, http_error::HttpError, response::Response, sse::SseEvent},
    mcp::{
        client::{
            connection::{
                in_flight::PendingRequest, request::ConnectionRequestSerializer, request_error::RequestError,
            },
            transport::Transport,
        },
        wire::{
            headers,
            incoming::{IncomingMessage, RawResponse},
            message::RequestId,
        },
    },
};
use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;
use toolstead_domain::ProtocolGeneration;

/// Pause before a stream is reopened if the server specifies none.
const DEFAULT_RETRY: Duration = Duration::from_secs(1);
/// Minimum pause between two attempts, even if the server specifies a shorter one.
const SHORTEST_RETRY: Duration = Duration::from_millis(10);
/// Maximum number of consecutive streams without an event.
const MAX_VAIN_RESUMPTIONS: u32 = 20;

/// Position in a stream.
#[derive(Debug, Default)]
pub(super) struct StreamPosition {
    pub(super) last_event_id: Option<String>,
    pub(super) retry: Option<Duration>,
    /// Number of events on the latest stream.
    pub(super) events: u32,
}

impl StreamPosition {
    /// Returns the pause before the stream is reopened.
    pub(super) fn delay(&self) -> Duration {
        self.retry.unwrap_or(DEFAULT_RETRY).max(SHORTEST_RETRY)
    }
}

impl HttpTransport {
    /// Reads the stream that a request was answered with, and the streams that resume it, up to the response (MCP
    /// 2025-11-25, basic/transports, "Resumability and Redelivery").
    pub(super) async fn read_to_answer(
        &self,
        writer: &ConnectionRequestSerializer,
        waiting: &Arc<PendingRequest>,
        response: Response,
    ) -> Result<RawResponse, RequestError> {
        let mut position = StreamPosition::default();
        let mut response = response;
        let mut in_vain = 0;
        loop {
            if let Some(answer) = self.read_stream(response, Some(waiting), &mut position).await? {
                return Ok(answer);
            }
            in_vain = if position.events == 0 { in_vain + 1 } else { 0 };
            let resumable =
                writer.version.generation() == ProtocolGeneration::Legacy && position.last_event_id.is_some();
            if !resumable || in_vain > MAX_VAIN_RESUMPTIONS {
                return Err(RequestError::Lost("the stream ended before the answer came".into()));
            }
            sleep(position.delay()).await;
            response = self.open_stream(writer, &position).await?;
            if !response.status().is_success() || !is_event_stream(&response) {
                let status = response.status();
                let what = if status == StatusCode::NOT_FOUND { ": the session is over" } else { "" };
                let reason =
                    format!("the stream was interrupted and cannot be resumed (HTTP status {}{what})", status.as_u16());
                return Err(RequestError::Lost(reason));
            }
        }
    }

    /// Opens a stream with GET: a new one, or the rest of one that broke off.
    pub(super) async fn open_stream(
        &self,
        writer: &ConnectionRequestSerializer,
        from: &StreamPosition,
    ) -> Result<Response, RequestError> {
        let mut headers = self.message_headers(Some(writer.version));
        headers.remove(header::CONTENT_TYPE);
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(id) = from.last_event_id.as_ref().and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(headers::LAST_EVENT_ID, id);
        }
        self.execute(Method::GET, headers, Bytes::new()).await
    }

    /// Reads a stream up to the response for `waiting`, which it returns, or to the end of the stream. Handles all
    /// other messages and updates `position`. A broken stream counts as ended.
    pub(super) async fn read_stream(
        &self,
        response: Response,
        waiting: Option<&Arc<PendingRequest>>,
        position: &mut StreamPosition,
    ) -> Result<Option<RawResponse>, RequestError> {
        let mut events = EventStream::new(response, self.limit);
        position.events = 0;
        loop {
            let event = events.next().await;
            if let Some(id) = events.last_event_id() {
                position.last_event_id = Some(id.to_owned());
            }
            position.retry = events.retry().or(position.retry);
            match event {
                Ok(Some(event)) => {
                    position.events += 1;
                    if let Some(answer) = self.take_event(event, waiting).await? {
                        return Ok(Some(answer));
                    }
                }
                Err(error @ HttpError::Event(_)) => return Err(self.failed(error)),
                // A broken stream is treated like a closed one: its event ids decide whether it can be resumed.
                Ok(None) | Err(_) => return Ok(None),
            }
        }
    }

    async fn take_event(
        &self,
        event: SseEvent,
        waiting: Option<&Arc<PendingRequest>>,
    ) -> Result<Option<RawResponse>, RequestError> {
        if !matches!(event.event.as_str(), "" | "message") {
            return Ok(None);
        }
        let ours = waiting.map(|waiting| RequestId::Number(waiting.id));
        match IncomingMessage::read(event.data) {
            Ok(IncomingMessage::Answer(answer)) if Some(answer.id()) == ours.as_ref() => return Ok(Some(answer)),
            Ok(IncomingMessage::Answer(answer)) => self.peer.take_answer(answer),
            Ok(IncomingMessage::Other(message)) => {
                if let Some((id, outcome)) = self.peer.handle_message(message, waiting) {
                    // Requests are answered one at a time, so a flood of requests slows down only its own server.
                    self.respond(&id, &outcome).await;
                }
            }
            // An invalid message that was meant as the response makes the request fail here.
            Err(unreadable) => self.peer.take_unreadable(*unreadable),
        }
        Ok(None)
    }
}
