//! Conversions between provider protocols and the types of the port. Without I/O; one file per protocol.

mod anthropic;
mod gemini;
#[cfg(test)]
mod golden_requests;
mod openai;
mod openai_chat;
mod openai_responses;
mod parts;
#[cfg(test)]
mod test_streams;

use super::settings::{ModelSettings, ProviderKind};
use crate::http::sse::SseEvent;
use http::{HeaderMap, header::InvalidHeaderValue};
use serde_json::Value;
use toolstead_domain::{ModelError, ModelEvent, ModelRequest, OfferedTool, Secret};

/// Protocol of a provider. Does no I/O.
pub(super) trait ModelProtocol: Send + Sync {
    /// Returns the path and query to append to the base URL, with a leading slash.
    fn path(&self, settings: &ModelSettings) -> String;

    /// Adds the key to the headers.
    ///
    /// # Errors
    /// Fails if the key is not valid in a header.
    fn authorize(&self, key: &Secret, headers: &mut HeaderMap) -> Result<(), InvalidHeaderValue>;

    /// Adds the headers that the protocol requires in addition to the key and the content type.
    fn add_headers(&self, _headers: &mut HeaderMap) {}

    /// Returns the definitions of tools exactly as in a request.
    fn definitions(&self, tools: &[OfferedTool]) -> Vec<Value>;

    /// Returns the body of a request for a streamed answer.
    ///
    /// # Errors
    /// Returns [`ModelError::Refused`] if the protocol cannot express the request.
    fn body(&self, settings: &ModelSettings, request: &ModelRequest) -> Result<Vec<u8>, ModelError>;

    /// Returns the decoder of the answer to that request.
    fn decoder(&self, request: &ModelRequest) -> Box<dyn Decoder>;
}

/// Decoder of one answer. Its last event is [`ModelEvent::Finished`]. It is not called after that or after an error.
pub(super) trait Decoder: Send {
    /// Decodes the next event of the stream.
    ///
    /// # Errors
    /// Returns [`ModelError::Protocol`] for an invalid event, and errors that the provider reports in the stream.
    fn event(&mut self, event: &SseEvent) -> Result<Vec<ModelEvent>, ModelError>;

    /// Handles the end of the stream and returns the remaining events.
    ///
    /// # Errors
    /// Returns [`ModelError::Unreachable`] if the answer is incomplete ([`incomplete_answer`]).
    fn end(&mut self) -> Result<Vec<ModelEvent>, ModelError>;

    /// Decodes a whole answer from one JSON document, for servers that do not stream.
    ///
    /// # Errors
    /// Same as [`event`](Self::event).
    fn decode_document(&mut self, body: &[u8]) -> Result<Vec<ModelEvent>, ModelError>;
}

/// Adds the header `Authorization: Bearer …`.
///
/// # Errors
/// Fails if the key is not valid in a header.
pub(super) fn add_bearer_token(key: &Secret, headers: &mut HeaderMap) -> Result<(), InvalidHeaderValue> {
    openai::authorize(key, headers)
}

/// Returns the protocol of a kind.
pub(super) fn of(kind: ProviderKind) -> &'static dyn ModelProtocol {
    match kind {
        ProviderKind::Anthropic => &anthropic::Anthropic,
        ProviderKind::OpenAi => &openai_chat::OpenAiChat,
        ProviderKind::OpenAiResponses => &openai_responses::OpenAiResponses,
        ProviderKind::Gemini => &gemini::Gemini,
    }
}

/// Returns the definitions of tools exactly as in a request to a provider of this kind.
pub fn definitions(kind: ProviderKind, tools: &[OfferedTool]) -> Vec<Value> {
    of(kind).definitions(tools)
}

/// Returns the error for an incomplete answer.
pub(super) fn incomplete_answer() -> ModelError {
    ModelError::Unreachable("the answer broke off: its stream ended before the model had finished".into())
}
