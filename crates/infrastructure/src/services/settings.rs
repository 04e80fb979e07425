//! Settings of the services.

use crate::services::linkedin::LinkedinSettings;
use toolstead_domain::Secret;
use url::Url;

/// The services. An unusable service has the reason, for people.
#[derive(Debug, Clone)]
pub struct ServiceSettings {
    /// Web search.
    pub search: Result<SearchSettings, String>,
    /// Address of Gmail.
    pub gmail: Result<Url, String>,
    /// Address of Google Calendar.
    pub calendar: Result<Url, String>,
    /// Settings of the guest pages of LinkedIn.
    pub linkedin: Result<LinkedinSettings, String>,
    /// Settings of reports about usage and cost at Anthropic.
    pub anthropic_admin: Result<AnthropicAdminSettings, String>,
}

/// Settings of the web search.
#[derive(Debug, Clone)]
pub struct SearchSettings {
    /// The service that searches.
    pub provider: SearchProvider,
    /// Address of the service.
    pub base_url: Url,
    /// API key, if the service requires one.
    pub key: Option<Secret>,
}

/// A web search service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchProvider {
    /// Brave's API.
    Brave,
    /// A SearXNG server.
    Searxng,
    /// Tavily's API.
    Tavily,
    /// Exa's API.
    Exa,
    /// The HTML pages of DuckDuckGo.
    DuckDuckGo,
}

/// Settings of Anthropic's Admin API.
#[derive(Debug, Clone)]
pub struct AnthropicAdminSettings {
    /// Address of the API.
    pub base_url: Url,
    /// API key of an administrator.
    pub key: Secret,
}

impl SearchProvider {
    /// All services, by their names in the configuration.
    pub const ALL: [(&str, Self); 5] = [
        ("brave", Self::Brave),
        ("searxng", Self::Searxng),
        ("tavily", Self::Tavily),
        ("exa", Self::Exa),
        ("duckduckgo", Self::DuckDuckGo),
    ];
}

impl Default for ServiceSettings {
    /// Returns settings without any service.
    fn default() -> Self {
        let none = || "this program has no such service".to_owned();
        Self {
            search: Err(none()),
            gmail: Err(none()),
            calendar: Err(none()),
            linkedin: Err(none()),
            anthropic_admin: Err(none()),
        }
    }
}
