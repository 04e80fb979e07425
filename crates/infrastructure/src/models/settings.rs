//! Configured settings of a model.

use std::{collections::BTreeMap, fmt, path::PathBuf};
use toolstead_domain::{ModelFacts, Secret, TokenPrices};

/// Protocol of a model provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProviderKind {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions, which most other servers support as well.
    OpenAi,
    /// OpenAI Responses.
    OpenAiResponses,
    /// Google Gemini.
    Gemini,
}

impl ProviderKind {
    /// All kinds, in display order.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::OpenAi, Self::OpenAiResponses, Self::Gemini];

    /// Returns the kind's name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai_responses",
            Self::Gemini => "gemini",
        }
    }

    /// Returns the kind with this name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Returns the provider's default base URL.
    pub fn usual_base_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi | Self::OpenAiResponses => "https://api.openai.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
        }
    }
}

/// Source of a model's API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// No key is needed, as for a local server.
    None,
    /// The key itself.
    Known(Secret),
    /// No key is available. Every request fails with this text, which says what to do.
    Missing(String),
    /// File that only its owner may read. It is read for each request, so that a new key takes effect at once.
    File(PathBuf),
    /// Program whose output is the key, with its arguments, without a shell. It runs at the first request, and again
    /// when the provider rejects the key.
    Command(Vec<String>),
}

/// Settings of one model.
#[derive(Clone, PartialEq)]
pub struct ModelSettings {
    /// Name in the configuration.
    pub name: String,
    /// Protocol of the provider.
    pub kind: ProviderKind,
    /// The provider's name of the model.
    pub model: String,
    /// Base URL of the provider, to which the protocol's paths are appended. The key is sent only there.
    pub base_url: String,
    /// API key.
    pub key: KeySource,
    /// Maximum number of tokens of an answer.
    pub max_output_tokens: u64,
    /// Size of the context window, in tokens.
    pub context_tokens: u64,
    /// Thinking budget in tokens, for models with such a number. 0 disables thinking; `None` is the provider's default.
    pub thinking_tokens: Option<u64>,
    /// Reasoning effort, for models with such a level. `None` is the provider's default.
    pub reasoning_effort: Option<String>,
    /// `true` if the model accepts images.
    pub takes_images: bool,
    /// Prices; `None` if unknown.
    pub prices: Option<TokenPrices>,
    /// Additional headers of each request. Their values may be secrets and are never displayed.
    pub headers: BTreeMap<String, String>,
    /// Sampling temperature. `None` is the provider's default.
    pub temperature: Option<f64>,
}

impl ModelSettings {
    /// Returns the public facts of the model.
    pub fn facts(&self) -> ModelFacts {
        ModelFacts {
            provider: self.kind.as_str().to_owned(),
            model: self.model.clone(),
            context_tokens: self.context_tokens,
            takes_images: self.takes_images,
            prices: self.prices,
        }
    }
}

impl fmt::Debug for ModelSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&String> = self.headers.keys().collect();
        f.debug_struct("ModelSettings")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("model", &self.model)
            .field("base_url", &self.base_url)
            .field("key", &self.key)
            .field("max_output_tokens", &self.max_output_tokens)
            .field("context_tokens", &self.context_tokens)
            .field("thinking_tokens", &self.thinking_tokens)
            .field("reasoning_effort", &self.reasoning_effort)
            .field("takes_images", &self.takes_images)
            .field("prices", &self.prices)
            .field("headers", &headers)
            .field("temperature", &self.temperature)
            .finish()
    }
}
