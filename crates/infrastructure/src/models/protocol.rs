//! The conversions between a provider's protocol and the words of the port: pure, one file a protocol.

mod anthropic;
mod gemini;
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
use toolstead_domain::{
    model::{
        error::ModelError,
        reply::ModelEvent,
        request::{ModelRequest, OfferedTool},
    },
    secret::Secret,
};

/// One protocol. It does no I/O.
pub(super) trait Protocol: Send + Sync {
    /// The path behind the base URL, from the slash on, with the query.
    fn path(&self, settings: &ModelSettings) -> String;

    /// Puts the key where the protocol wants it.
    ///
    /// # Errors
    /// On a key that no header can carry.
    fn authorize(&self, key: &Secret, headers: &mut HeaderMap) -> Result<(), InvalidHeaderValue>;

    /// Puts what the protocol wants in each request besides the key and the type of the body.
    fn add_headers(&self, _headers: &mut HeaderMap) {}

    /// The definitions of tools, exactly as a request has them.
    fn definitions(&self, tools: &[OfferedTool]) -> Vec<Value>;

    /// The body of a request, which asks for a stream.
    ///
    /// # Errors
    /// [`ModelError::Refused`] where the protocol cannot say it.
    fn body(&self, settings: &ModelSettings, request: &ModelRequest) -> Result<Vec<u8>, ModelError>;

    /// The reader of the answer to that request.
    fn decoder(&self, request: &ModelRequest) -> Box<dyn Decoder>;
}

/// Reads one answer. It emits [`ModelEvent::Finished`] last, and is asked for nothing after that or after an error.
pub(super) trait Decoder: Send {
    /// The next event of the stream.
    ///
    /// # Errors
    /// [`ModelError::Protocol`] for what the protocol does not allow, and what the provider tells in mid-stream.
    fn event(&mut self, event: &SseEvent) -> Result<Vec<ModelEvent>, ModelError>;

    /// The stream is over.
    ///
    /// # Errors
    /// [`ModelError::Unreachable`] when the answer is not whole ([`broke_off`]).
    fn end(&mut self) -> Result<Vec<ModelEvent>, ModelError>;

    /// The whole answer as one JSON document: what servers send that do not stream.
    ///
    /// # Errors
    /// As [`event`](Self::event).
    fn whole(&mut self, body: &[u8]) -> Result<Vec<ModelEvent>, ModelError>;
}

/// The protocol of a kind.
pub(super) fn of(kind: ProviderKind) -> &'static dyn Protocol {
    match kind {
        ProviderKind::Anthropic => &anthropic::Anthropic,
        ProviderKind::OpenAi => &openai_chat::OpenAiChat,
        ProviderKind::OpenAiResponses => &openai_responses::OpenAiResponses,
        ProviderKind::Gemini => &gemini::Gemini,
    }
}

/// The definitions of tools, exactly as a request to such a provider has them.
pub fn definitions(kind: ProviderKind, tools: &[OfferedTool]) -> Vec<Value> {
    of(kind).definitions(tools)
}

/// An answer that ended before it was whole.
pub(super) fn broke_off() -> ModelError {
    ModelError::Unreachable("the answer broke off: its stream ended before the model had finished".into())
}
