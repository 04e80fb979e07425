//! A response that is a stream of events.

use super::{
    http_error::HttpError,
    response::Response,
    sse::{SseDecoder, SseEvent},
};
use std::time::Duration;

/// The events of a response, read one by one.
#[derive(Debug)]
pub struct EventStream {
    response: Response,
    decoder: SseDecoder,
}

impl EventStream {
    /// Creates a reader of a response's body; an event of more than `limit` bytes is an error.
    pub fn new(response: Response, limit: usize) -> Self {
        Self { response, decoder: SseDecoder::new(limit) }
    }

    /// Returns the next event; `None` at the stream's end. An incomplete event is dropped.
    ///
    /// # Errors
    /// [`HttpError::Broken`], and [`HttpError::Event`], after which the stream cannot be read any further.
    pub async fn next(&mut self) -> Result<Option<SseEvent>, HttpError> {
        loop {
            if let Some(event) = self.decoder.next_event() {
                return Ok(Some(event));
            }
            let Some(chunk) = self.response.chunk().await? else { return Ok(None) };
            self.decoder.push(&chunk)?;
        }
    }

    /// Returns the id from which to resume when the stream breaks (`Last-Event-ID`).
    pub fn last_event_id(&self) -> Option<&str> {
        self.decoder.last_event_id()
    }

    /// Returns the time to wait before the stream is opened again, if the server has specified one.
    pub fn retry(&self) -> Option<Duration> {
        self.decoder.retry()
    }
}
