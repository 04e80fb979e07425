//! The settings of a model, as a configuration says them.

use std::{collections::BTreeMap, fmt, path::PathBuf};
use toolstead_domain::{model::usage::Prices, ports::model_provider::ModelFacts, secret::Secret};

/// The protocol that a model is spoken to in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProviderKind {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Chat Completions, which most other servers speak, too.
    OpenAi,
    /// OpenAI's Responses.
    OpenAiResponses,
    /// Google's Gemini.
    Gemini,
}

impl ProviderKind {
    /// All of them, as they are listed.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::OpenAi, Self::OpenAiResponses, Self::Gemini];

    /// The kind as configurations write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai_responses",
            Self::Gemini => "gemini",
        }
    }

    /// The kind of that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// The provider's own address, for models that name none.
    pub fn usual_base_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi | Self::OpenAiResponses => "https://api.openai.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
        }
    }
}

/// The source of the key of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// It needs none, as a server on this machine.
    None,
    /// Known already.
    Known(Secret),
    /// Not there; the text says what to do. Each request fails with it.
    Missing(String),
    /// In a file that only its owner may read. It is read at each request, so that a new key counts at once.
    File(PathBuf),
    /// The output of this program, with its arguments; no shell is involved. It is run at the first request, and again
    /// when the provider does not take the key any more.
    Command(Vec<String>),
}

/// One model, as it is configured.
#[derive(Clone, PartialEq)]
pub struct ModelSettings {
    /// Its name in the configuration.
    pub name: String,
    /// The protocol.
    pub kind: ProviderKind,
    /// The model by the provider's name.
    pub model: String,
    /// The address of the provider; the protocol's own paths stand behind it. The key goes there and nowhere else.
    pub base_url: String,
    /// The key.
    pub key: KeySource,
    /// Tokens that an answer may have.
    pub max_output_tokens: u64,
    /// Tokens that its window holds.
    pub context_tokens: u64,
    /// Tokens that it may think before it answers, for models that are given such a number; 0: it does not think; `None`:
    /// the provider's choice.
    pub thinking_tokens: Option<u64>,
    /// The effort of its thinking, for models that are given such a word; `None`: the provider's choice.
    pub reasoning_effort: Option<String>,
    /// It sees images.
    pub takes_images: bool,
    /// Its prices; `None`: not known.
    pub prices: Option<Prices>,
    /// Headers that each request has besides. Their values may be secrets, and are told by nothing.
    pub headers: BTreeMap<String, String>,
    /// The part of chance in its answers; `None`: the provider's choice.
    pub temperature: Option<f64>,
}

impl ModelSettings {
    /// Facts for those who use the model.
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
