//! The guest pages of LinkedIn: jobs that are offered, and one of them in full (`docs/web.md`).

use url::Url;

/// The guest pages, as the configuration says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedinSettings {
    /// Their address.
    pub base_url: Url,
    /// The name that requests bear; `None`: that of this program.
    pub user_agent: Option<String>,
}
