//! Embeddings of a service with OpenAI's `POST /embeddings`, as an adapter of the port.

use super::{
    failure::AttemptFailure,
    key::{ApiKeyResolver, RequestKey},
    model::InvalidModel,
    protocol::add_bearer_token,
    settings::KeySource,
    words,
};
use crate::http::{
    client::{EndpointClient, HttpClient, Request},
    http_error::HttpError,
};
use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, Method, header};
use serde::Deserialize;
use serde_json::json;
use std::{fmt, time::Duration};
use tokio::{sync::Mutex, time::timeout};
use toolstead_domain::{Embeddings, EmbeddingsError, ModelError, Secret, error_chain::with_causes};
use url::Url;

/// Timeout of one request.
const TIME: Duration = Duration::from_secs(15);
/// Maximum size of an answer, in bytes.
const MAX_ANSWER: usize = 32 << 20;
/// Maximum number of members of a vector.
const MAX_DIMENSIONS: usize = 16_384;

/// Settings of an embeddings model.
///
/// ```
/// use toolstead_infrastructure::models::{EmbeddingsSettings, KeySource};
///
/// let settings = EmbeddingsSettings {
///     base_url: "http://localhost:11434/v1".into(),
///     model: "all-minilm".into(),
///     key: KeySource::None,
/// };
/// assert!(settings.base_url.ends_with("/v1"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingsSettings {
    /// Base URL of the service, to which `/embeddings` is appended. The key is sent only there.
    pub base_url: String,
    /// Name of the model at the service.
    pub model: String,
    /// API key. Commands are not supported.
    pub key: KeySource,
}

/// Embeddings model of a service.
pub struct EmbeddingsModel {
    model: String,
    endpoint: EndpointClient,
    headers: HeaderMap,
    key: ApiKeyResolver,
}

impl EmbeddingsModel {
    /// Creates a model that uses this HTTP client. Sends nothing yet and does not read the key.
    ///
    /// # Errors
    /// [`InvalidModel`] if the base URL is invalid.
    pub fn new(settings: EmbeddingsSettings, client: HttpClient) -> Result<Self, InvalidModel> {
        let invalid = |reason: String| InvalidModel::Address { name: settings.model.clone(), reason };
        let url = format!("{}/embeddings", settings.base_url.trim_end_matches('/'));
        let url: Url = url.parse().map_err(|_| invalid("is not a valid URL".into()))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid("contains a user or a password; use the settings for keys".into()));
        }
        let endpoint = client.endpoint(&url).map_err(|error| invalid(format!("cannot be used: {error}")))?;
        let mut headers = endpoint.headers();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let key = ApiKeyResolver { source: settings.key, commands: None, remembered: Mutex::default() };
        Ok(Self { model: settings.model, endpoint, headers, key })
    }

    async fn vectors(&self, texts: &[String], key: Option<&Secret>) -> Result<Vec<Vec<f32>>, String> {
        let mut headers = self.headers.clone();
        if let Some(key) = key {
            add_bearer_token(key, &mut headers)
                .map_err(|_| "the key is not valid in a header; check its source".to_owned())?;
        }
        let body = json!({"model": self.model, "input": texts, "encoding_format": "float"});
        let request = Request { method: Method::POST, headers, body: body.to_string().into() };
        let failed = |error: HttpError| with_causes(&error);
        let response = self.endpoint.send(request).await.map_err(failed)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes(MAX_ANSWER).await.map_err(failed)?;
        if !status.is_success() {
            return Err(AttemptFailure::of_response(status, &headers, &body).error.to_string());
        }
        parse(&body, texts.len())
    }
}

#[async_trait]
impl Embeddings for EmbeddingsModel {
    fn model(&self) -> &str {
        &self.model
    }

    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, EmbeddingsError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let failed = |text: &str, key: Option<&Secret>| {
            EmbeddingsError(format!("the model `{}`: {}", self.model, words::clean(text, key)))
        };
        let RequestKey { secret, .. } =
            self.key.now().await.map_err(|error: ModelError| failed(&error.to_string(), None))?;
        match timeout(TIME, self.vectors(&texts, secret.as_ref())).await {
            Ok(vectors) => vectors.map_err(|text| failed(&text, secret.as_ref())),
            Err(_) => Err(failed(&format!("no answer within {} s", TIME.as_secs()), None)),
        }
    }
}

#[derive(Deserialize)]
struct EmbeddingsResponse {
    data: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    #[serde(default)]
    index: Option<usize>,
    embedding: Vec<f32>,
}

/// Returns the vectors of an answer in the order of the `count` texts. The answer must have one for each text, in any
/// order if they have an index.
fn parse(body: &[u8], count: usize) -> Result<Vec<Vec<f32>>, String> {
    let EmbeddingsResponse { data } =
        serde_json::from_slice(body).map_err(|error| format!("the answer has no vectors: {error}"))?;
    if data.len() != count {
        return Err(format!("the answer has {} vectors for {count} texts", data.len()));
    }
    let mut vectors: Vec<Option<Vec<f32>>> = vec![None; count];
    for (position, Vector { index, embedding }) in data.into_iter().enumerate() {
        let is_valid = (1..=MAX_DIMENSIONS).contains(&embedding.len()) && embedding.iter().all(|one| one.is_finite());
        match vectors.get_mut(index.unwrap_or(position)) {
            Some(place @ None) if is_valid => *place = Some(embedding),
            _ => return Err("the answer has an invalid vector, or one with an invalid index".into()),
        }
    }
    let vectors: Vec<Vec<f32>> = vectors.into_iter().flatten().collect();
    match vectors.windows(2).all(|pair| pair[0].len() == pair[1].len()) {
        true => Ok(vectors),
        false => Err("the answer has vectors of different lengths".into()),
    }
}

impl fmt::Debug for EmbeddingsModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddingsModel").field("model", &self.model).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
