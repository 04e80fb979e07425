//! A language model, independent of the service that runs it.

use crate::model::{error::ModelError, reply::ModelEvent, request::ModelRequest, usage::TokenPrices};
use async_trait::async_trait;

/// Facts about a model that are known without a request.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFacts {
    /// Protocol: `anthropic`, `openai`, `openai_responses`, `gemini`, or a name of the embedding application.
    pub provider: String,
    /// Name of the model at the provider.
    pub model: String,
    /// Size of the context window, in tokens.
    pub context_tokens: u64,
    /// `true` if the model accepts images.
    pub takes_images: bool,
    /// Prices; `None` if they are not known.
    pub prices: Option<TokenPrices>,
}

/// Language model.
///
/// Implementers guarantee:
/// - an answer ends with either [`ModelEvent::Finished`] or an error;
/// - a request is repeated only while no part of its answer has arrived, and each repetition is reported;
/// - the blocks of an answer can be used unchanged in a later request, and sealed content in them is sent back byte for
///   byte;
/// - dropping an answer cancels the request.
#[async_trait]
pub trait ModelProvider: Send + Sync {
    /// Returns its name in the configuration.
    fn name(&self) -> &str;

    /// Returns the facts about it.
    fn facts(&self) -> &ModelFacts;

    /// Returns the host that requests are sent to; `None` if they are sent to no host, or it is not known.
    fn host(&self) -> Option<&str> {
        None
    }

    /// Sends a request.
    ///
    /// # Errors
    /// [`ModelError`] if the request cannot be made at all.
    async fn send(&self, request: ModelRequest) -> Result<Box<dyn ModelAnswer>, ModelError>;
}

/// Answer that is being received.
#[async_trait]
pub trait ModelAnswer: Send {
    /// Returns the next piece; `None` after [`ModelEvent::Finished`] and after an error.
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>>;
}
