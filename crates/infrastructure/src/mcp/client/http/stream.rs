//! Streams of events: the way to the answer of a request, also over a stream that breaks off in between.

use super::{HttpTransport, answer::is_event_stream};
use crate::{
    http::{event_stream::EventStream, http_error::HttpError, response::Response, sse::SseEvent},
    mcp::{
        client::{in_flight::Waiting, request::RequestWriter, request_error::RequestError, transport::Transport},
        wire::{
            headers,
            incoming::{Answer, Incoming},
            message::Id,
        },
    },
};
use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;
use toolstead_domain::client_profile::Generation;

/// How long is waited before a stream is opened again when the server did not say.
const DEFAULT_RETRY: Duration = Duration::from_secs(1);
/// The least time between two attempts, whatever the server says.
const SHORTEST_RETRY: Duration = Duration::from_millis(10);
/// So often in a row a stream may end without having brought anything.
const MAX_VAIN_RESUMPTIONS: u32 = 20;

/// Where a stream stands.
#[derive(Debug, Default)]
pub(super) struct Position {
    pub(super) last_event_id: Option<String>,
    pub(super) retry: Option<Duration>,
    /// Events that came on the last stream.
    pub(super) events: u32,
}

impl Position {
    /// How long to wait before the stream is opened again.
    pub(super) fn delay(&self) -> Duration {
        self.retry.unwrap_or(DEFAULT_RETRY).max(SHORTEST_RETRY)
    }
}

impl HttpTransport {
    /// Reads the stream that a request was answered with, and those that it is continued by (MCP 2025-11-25,
    /// basic/transports, "Resumability and Redelivery"), to the answer.
    pub(super) async fn read_to_answer(
        &self,
        writer: &RequestWriter,
        waiting: &Arc<Waiting>,
        response: Response,
    ) -> Result<Answer, RequestError> {
        let mut position = Position::default();
        let mut response = response;
        let mut in_vain = 0;
        loop {
            if let Some(answer) = self.read_stream(response, Some(waiting), &mut position).await? {
                return Ok(answer);
            }
            in_vain = if position.events == 0 { in_vain + 1 } else { 0 };
            let resumable = writer.version.generation() == Generation::Legacy && position.last_event_id.is_some();
            if !resumable || in_vain > MAX_VAIN_RESUMPTIONS {
                return Err(RequestError::Lost("the stream ended before the answer came".into()));
            }
            sleep(position.delay()).await;
            response = self.open_stream(writer, &position).await?;
            if !response.status().is_success() || !is_event_stream(&response) {
                let status = response.status();
                let what = if status == StatusCode::NOT_FOUND { ": the session is over" } else { "" };
                let reason =
                    format!("the stream broke off and cannot be continued (HTTP status {}{what})", status.as_u16());
                return Err(RequestError::Lost(reason));
            }
        }
    }

    /// Opens a stream with GET: a new one, or the rest of one that broke off.
    pub(super) async fn open_stream(&self, writer: &RequestWriter, from: &Position) -> Result<Response, RequestError> {
        let mut headers = self.message_headers(Some(writer.version));
        headers.remove(header::CONTENT_TYPE);
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(id) = from.last_event_id.as_ref().and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(headers::LAST_EVENT_ID, id);
        }
        self.execute(Method::GET, headers, Bytes::new()).await
    }

    /// Reads a stream to the answer of `waiting`, or to its end, whichever way that comes.
    pub(super) async fn read_stream(
        &self,
        response: Response,
        waiting: Option<&Arc<Waiting>>,
        position: &mut Position,
    ) -> Result<Option<Answer>, RequestError> {
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
                // A stream that breaks ends like one that is closed: the ids say whether it can be continued.
                Ok(None) | Err(_) => return Ok(None),
            }
        }
    }

    async fn take_event(
        &self,
        event: SseEvent,
        waiting: Option<&Arc<Waiting>>,
    ) -> Result<Option<Answer>, RequestError> {
        if !matches!(event.event.as_str(), "" | "message") {
            return Ok(None);
        }
        let ours = waiting.map(|waiting| Id::Number(waiting.id));
        match Incoming::read(event.data) {
            Ok(Incoming::Answer(answer)) if Some(answer.id()) == ours.as_ref() => return Ok(Some(answer)),
            Ok(Incoming::Answer(answer)) => self.peer.take_answer(answer),
            Ok(Incoming::Other(message)) => {
                if let Some((id, outcome)) = self.peer.hear(message, waiting) {
                    // In turn: a server that asks a thousand things is answered at its own cost.
                    self.respond(&id, &outcome).await;
                }
            }
            // If it was meant as the answer, the request has failed with this.
            Err(unreadable) => self.peer.take_unreadable(*unreadable),
        }
        Ok(None)
    }
}
