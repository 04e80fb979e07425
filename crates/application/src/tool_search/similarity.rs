//! Similarity of meanings, by embeddings. Vectors of definitions are cached by the digest of their text.

use sha2::{Digest, Sha256};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
};
use toolstead_domain::{ContentDigest, Embeddings, EmbeddingsError, Tool};

/// Maximum number of texts of one request.
const TEXTS_OF_A_REQUEST: usize = 64;
/// Maximum number of cached vectors. The cache is emptied before it would exceed this number.
const MAX_VECTORS: usize = 10_000;
/// Maximum length of the text of a definition, in characters: some 250 tokens, which small models read.
const MAX_CHARACTERS: usize = 1_000;

/// Embeddings with a cache.
pub(super) struct EmbeddingSimilarity {
    embeddings: Arc<dyn Embeddings>,
    vectors: Mutex<HashMap<ContentDigest, Arc<[f32]>>>,
}

impl EmbeddingSimilarity {
    pub(super) fn new(embeddings: Arc<dyn Embeddings>) -> Self {
        Self { embeddings, vectors: Mutex::default() }
    }

    /// Returns the similarity of each tool to the query, from -1 to 1.
    ///
    /// # Errors
    /// [`EmbeddingsError`] if a vector is missing or unusable.
    pub(super) async fn similarities(&self, query: &str, tools: &[Arc<Tool>]) -> Result<Vec<f32>, EmbeddingsError> {
        let texts: Vec<String> = tools.iter().map(|tool| text_of(tool)).collect();
        let digests: Vec<ContentDigest> = texts.iter().map(|text| self.digest(text)).collect();
        let vectors = self.vectors_of(&texts, &digests).await?;
        let query = self.embed(vec![query.to_owned()]).await?;
        let [query] = query.as_slice() else { return Err(EmbeddingsError("the query has no vector".into())) };
        if vectors.iter().any(|vector| vector.len() != query.len()) {
            return Err(EmbeddingsError("its vectors have different lengths".into()));
        }
        // All vectors have the length 1, so the product is the cosine of their angle.
        Ok(vectors.iter().map(|vector| vector.iter().zip(query.iter()).map(|(a, b)| a * b).sum()).collect())
    }

    /// Returns the vectors of these texts, from the cache as far as possible.
    async fn vectors_of(
        &self,
        texts: &[String],
        digests: &[ContentDigest],
    ) -> Result<Vec<Arc<[f32]>>, EmbeddingsError> {
        let mut known: HashMap<ContentDigest, Arc<[f32]>> = {
            let cache = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
            digests.iter().filter_map(|digest| Some((*digest, cache.get(digest)?.clone()))).collect()
        };
        let mut requested = HashSet::new();
        let missing: Vec<(&String, ContentDigest)> = texts
            .iter()
            .zip(digests.iter().copied())
            .filter(|(_, digest)| !known.contains_key(digest) && requested.insert(*digest))
            .collect();
        for part in missing.chunks(TEXTS_OF_A_REQUEST) {
            let vectors = self.embed(part.iter().map(|(text, _)| (*text).clone()).collect()).await?;
            let new: Vec<_> = part.iter().map(|(_, digest)| *digest).zip(vectors).collect();
            let mut cache = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
            if cache.len() + new.len() > MAX_VECTORS {
                cache.clear();
            }
            cache.extend(new.iter().cloned());
            known.extend(new);
        }
        let vector = |digest| known.get(digest).cloned().ok_or_else(|| EmbeddingsError("a vector is missing".into()));
        digests.iter().map(vector).collect()
    }

    /// Returns the vectors of these texts with the length 1.
    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Arc<[f32]>>, EmbeddingsError> {
        let count = texts.len();
        let vectors = self.embeddings.embed(texts).await?;
        if vectors.len() != count {
            return Err(EmbeddingsError(format!("it returned {} vectors for {count} texts", vectors.len())));
        }
        vectors.into_iter().map(|vector| unit(&vector)).collect()
    }

    fn digest(&self, text: &str) -> ContentDigest {
        let mut digest = Sha256::new();
        digest.update(self.embeddings.model());
        digest.update([0]);
        digest.update(text);
        ContentDigest(digest.finalize().into())
    }
}

fn unit(vector: &[f32]) -> Result<Arc<[f32]>, EmbeddingsError> {
    let length = vector.iter().map(|one| one * one).sum::<f32>().sqrt();
    if !(length.is_finite() && length > 0.0) {
        return Err(EmbeddingsError("it returned a vector without a direction".into()));
    }
    Ok(vector.iter().map(|one| one / length).collect())
}

/// Returns the text that represents a tool: its name in words, title and description.
fn text_of(tool: &Tool) -> String {
    let name = tool.name().as_str();
    let name = name.strip_prefix("mcp__").unwrap_or(name).replace("__", " ").replace('_', " ");
    let title = tool.title().map(|title| format!("{title}. ")).unwrap_or_default();
    format!("{name}: {title}{}", tool.description()).chars().take(MAX_CHARACTERS).collect()
}
