//! A response that is a stream of events, read one by one.

use super::{
    http_error::HttpError,
    response::Response,
    sse::{SseDecoder, SseEvent},
};
use std::time::Duration;

/// The events of a response, as they come.
#[derive(Debug)]
pub struct EventStream {
    response: Response,
    decoder: SseDecoder,
}

impl EventStream {
    /// The events of a response's body; one of more than `limit` bytes is an error.
    pub fn new(response: Response, limit: usize) -> Self {
        Self { response, decoder: SseDecoder::new(limit) }
    }

    /// The next event; `None` at the stream's end. An event that is cut off is none.
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

    /// The id to go on from when the stream breaks off (`Last-Event-ID`).
    pub fn last_event_id(&self) -> Option<&str> {
        self.decoder.last_event_id()
    }

    /// How long the server wants to be left alone before the stream is opened again.
    pub fn retry(&self) -> Option<Duration> {
        self.decoder.retry()
    }
}
