//! Configured model as an adapter of the port.

use super::{
    answer::{AnswerStream, ModelClient},
    key::ApiKeyResolver,
    protocol,
    settings::ModelSettings,
};
use crate::{http::client::HttpClient, user_program::UserProgramPort};
use async_trait::async_trait;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::{fmt, sync::Arc};
use tokio::sync::Mutex;
use toolstead_domain::{ModelAnswer, ModelError, ModelFacts, ModelProvider, ModelRequest};
use url::Url;

/// Names of headers that the connection or the protocol sets.
const RESERVED: [&str; 6] = ["accept", "content-type", "content-length", "transfer-encoding", "connection", "host"];

/// Language model of a provider. Cheap to clone.
#[derive(Clone)]
pub struct Model {
    provider: Arc<ModelClient>,
    facts: ModelFacts,
    host: Arc<str>,
}

/// Reason why a model cannot be created. Contains no header values and no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidModel {
    /// The base URL is invalid.
    #[error("the model `{name}`: its `base_url` {reason}")]
    Address {
        /// Name of the model in the configuration.
        name: String,
        /// Reason why the URL is invalid.
        reason: String,
    },
    /// A header is invalid.
    #[error("the model `{name}`: the header `{header}` {reason}")]
    Header {
        /// Name of the model in the configuration.
        name: String,
        /// Name of the header.
        header: String,
        /// Reason why the header is invalid.
        reason: &'static str,
    },
}

impl Model {
    /// Creates a model that uses this HTTP client. Sends nothing yet and does not read the key.
    ///
    /// # Errors
    /// Returns [`InvalidModel`].
    pub fn new(settings: ModelSettings, client: HttpClient) -> Result<Self, InvalidModel> {
        let protocol = protocol::of(settings.kind);
        let wrong = |reason: &str| InvalidModel::Address { name: settings.name.clone(), reason: reason.to_owned() };
        let base: Url = settings.base_url.parse().map_err(|_| wrong("is not a valid URL"))?;
        if !base.username().is_empty() || base.password().is_some() {
            return Err(wrong("contains a user or a password; use the settings for keys"));
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(wrong("has more than a path after the host"));
        }
        let whole = format!("{}{}", settings.base_url.trim_end_matches('/'), protocol.path(&settings));
        let url: Url = whole.parse().map_err(|_| wrong("is not a valid URL"))?;
        let endpoint = client.endpoint(&url).map_err(|error| wrong(&format!("cannot be used: {error}")))?;
        let mut headers = endpoint.headers();
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        protocol.add_headers(&mut headers);
        add_configured(&mut headers, &settings)?;
        let key = ApiKeyResolver { source: settings.key.clone(), commands: None, remembered: Mutex::default() };
        let facts = settings.facts();
        let host = url.host_str().unwrap_or_default().into();
        Ok(Self { provider: Arc::new(ModelClient { settings, protocol, endpoint, headers, key }), facts, host })
    }

    /// Sets the port that runs the key command ([`KeySource::Command`](super::KeySource::Command)). Without it, such a
    /// key is missing.
    #[must_use]
    pub fn with_key_commands(self, commands: Arc<dyn UserProgramPort>) -> Self {
        let ModelClient { settings, protocol, endpoint, headers, key } = &*self.provider;
        let key = ApiKeyResolver { source: key.source.clone(), commands: Some(commands), remembered: Mutex::default() };
        let (settings, endpoint, headers) = (settings.clone(), endpoint.clone(), headers.clone());
        let provider = ModelClient { settings, protocol: *protocol, endpoint, headers, key };
        Self { provider: Arc::new(provider), ..self }
    }

    /// Returns the settings of the model.
    pub fn settings(&self) -> &ModelSettings {
        &self.provider.settings
    }
}

#[async_trait]
impl ModelProvider for Model {
    fn name(&self) -> &str {
        &self.provider.settings.name
    }

    fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    fn host(&self) -> Option<&str> {
        Some(&self.host)
    }

    async fn send(&self, request: ModelRequest) -> Result<Box<dyn ModelAnswer>, ModelError> {
        let body = self.provider.protocol.body(&self.provider.settings, &request)?;
        Ok(Box::new(AnswerStream::new(self.provider.clone(), request, body.into())))
    }
}

fn add_configured(headers: &mut HeaderMap, settings: &ModelSettings) -> Result<(), InvalidModel> {
    for (name, value) in &settings.headers {
        let wrong = |reason| InvalidModel::Header { name: settings.name.clone(), header: name.clone(), reason };
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong("has an invalid name"))?;
        if RESERVED.contains(&header.as_str()) {
            return Err(wrong("is set by the protocol and cannot be configured"));
        }
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong("has an invalid value"))?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(())
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model").field("settings", &self.provider.settings).finish_non_exhaustive()
    }
}
