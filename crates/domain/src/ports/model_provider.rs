//! A language model, whoever serves it.

use crate::model::{error::ModelError, reply::ModelEvent, request::ModelRequest, usage::Prices};
use async_trait::async_trait;

/// Facts of a model that are known without asking it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFacts {
    /// The protocol: `anthropic`, `openai`, `openai_responses`, `gemini`, or a program's own word.
    pub provider: String,
    /// The model by the provider's name.
    pub model: String,
    /// Tokens that its window holds.
    pub context_tokens: u64,
    /// It sees images.
    pub takes_images: bool,
    /// Its prices; `None`: not known.
    pub prices: Option<Prices>,
}

/// A model.
///
/// Implementers guarantee:
/// - an answer ends with [`ModelEvent::Finished`] or with an error, and with one of them alone;
/// - a request is made again only while nothing of its answer has come, and each time that is told;
/// - the blocks of an answer can stand in a later request as they are, and what is sealed in them goes back byte for byte;
/// - dropping an answer takes the request back.
#[async_trait]
pub trait ModelProvider: Send + Sync {
    /// Its name in the configuration.
    fn name(&self) -> &str;

    /// Facts of it.
    fn facts(&self) -> &ModelFacts;

    /// The host that requests go to; `None`: they leave for none, or nobody knows.
    fn host(&self) -> Option<&str> {
        None
    }

    /// Sends a request.
    ///
    /// # Errors
    /// [`ModelError`] when the request cannot be made at all.
    async fn send(&self, request: ModelRequest) -> Result<Box<dyn ModelAnswer>, ModelError>;
}

/// An answer that is coming.
#[async_trait]
pub trait ModelAnswer: Send {
    /// The next piece; `None` after [`ModelEvent::Finished`] and after an error.
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>>;
}
