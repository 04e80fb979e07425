//! Embeddings: vectors whose directions are similar where texts have similar meanings.

use async_trait::async_trait;

/// Model that turns texts into vectors.
///
/// Implementers guarantee:
/// - an answer has one vector for each text, in the order of the texts;
/// - all vectors have the same length, which is not zero, and finite members;
/// - a failure contains no secret.
///
/// ```
/// use async_trait::async_trait;
/// use toolstead_domain::{Embeddings, EmbeddingsError};
///
/// struct Lengths;
///
/// #[async_trait]
/// impl Embeddings for Lengths {
///     fn model(&self) -> &str {
///         "lengths"
///     }
///
///     async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, EmbeddingsError> {
///         Ok(texts.iter().map(|text| vec![text.len() as f32, 1.0]).collect())
///     }
/// }
/// ```
#[async_trait]
pub trait Embeddings: Send + Sync {
    /// Returns the name of the model. Vectors of different models are not comparable.
    fn model(&self) -> &str;

    /// Returns the vectors of these texts.
    ///
    /// # Errors
    /// [`EmbeddingsError`] if there is no complete answer.
    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, EmbeddingsError>;
}

/// Reason why texts have no vectors, for the user and the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EmbeddingsError(pub String);
