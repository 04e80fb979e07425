//! The services as the configuration says.

use crate::services::linkedin::LinkedinSettings;
use toolstead_domain::secret::Secret;
use url::Url;

/// The services. One that cannot be used says why, for people.
#[derive(Debug, Clone)]
pub struct Services {
    /// Search on the web.
    pub search: Result<SearchSettings, String>,
    /// Gmail, by its address.
    pub gmail: Result<Url, String>,
    /// Google Calendar, by its address.
    pub calendar: Result<Url, String>,
    /// The guest pages of LinkedIn.
    pub linkedin: Result<LinkedinSettings, String>,
    /// Usage and cost at Anthropic.
    pub anthropic_admin: Result<AnthropicAdmin, String>,
}

/// Search on the web.
#[derive(Debug, Clone)]
pub struct SearchSettings {
    /// The one who searches.
    pub provider: SearchProvider,
    /// Its address.
    pub base_url: Url,
    /// The key, where it wants one.
    pub key: Option<Secret>,
}

/// The one who searches the web.
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

/// Anthropic's Admin API.
#[derive(Debug, Clone)]
pub struct AnthropicAdmin {
    /// Its address.
    pub base_url: Url,
    /// A key of an administrator.
    pub key: Secret,
}

impl SearchProvider {
    /// Those that there are, by their words in the configuration.
    pub const ALL: [(&str, Self); 5] = [
        ("brave", Self::Brave),
        ("searxng", Self::Searxng),
        ("tavily", Self::Tavily),
        ("exa", Self::Exa),
        ("duckduckgo", Self::DuckDuckGo),
    ];
}

impl Default for Services {
    /// None.
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
