//! Web search, independent of the service that performs it.

use crate::{error_kind::ErrorKind, tool_failure::ToolFailure};
use async_trait::async_trait;
use serde_json::json;
use std::{
    fmt,
    time::{Duration, Instant},
};

/// Web search query.
///
/// ```
/// use toolstead_domain::ports::web_search::{DomainFilter, WebQuery};
///
/// let domains = DomainFilter::Only(vec!["example.com".into()]);
/// let query = WebQuery { text: "sandbox".into(), count: 5, page: 0, domains, freshness: None };
/// assert!(query.domains.admits("docs.example.com"));
/// assert!(!query.domains.admits("example.org"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebQuery {
    /// Query text, as given.
    pub text: String,
    /// Maximum number of hits.
    pub count: usize,
    /// Page of hits, from 0.
    pub page: usize,
    /// Domains to which hits are limited.
    pub domains: DomainFilter,
    /// Maximum age of a page.
    pub freshness: Option<Freshness>,
}

/// Set of domains, in lower case and ASCII. A domain includes itself and every host below it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DomainFilter {
    /// All domains.
    #[default]
    All,
    /// Only these domains.
    Only(Vec<String>),
    /// All domains except these.
    Without(Vec<String>),
}

/// Period before now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// 24 hours.
    Day,
    /// 7 days.
    Week,
    /// 31 days.
    Month,
    /// 365 days.
    Year,
}

/// Hit of a search. Its texts come from the site or the search service: they are data, not instructions. They may
/// contain invisible characters and markup of calls, which `web_search` removes and reports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WebHit {
    /// Title, one line of plain text.
    pub title: String,
    /// URL: `http` or `https`.
    pub url: String,
    /// Description or excerpt, one line of plain text; empty if none is known.
    pub description: String,
    /// Age or date of the page, in the words of the search service.
    pub age: Option<String>,
}

/// Context of one search: its deadline, and the check of each host before anything is sent to it.
#[derive(Clone, Copy)]
pub struct WebSearchContext<'a> {
    /// Deadline of the whole search, pauses included.
    pub deadline: Instant,
    /// Check if a host (lower case, without port) may be reached. Called before anything is sent to a host.
    pub may_reach: &'a (dyn Fn(&str) -> Result<(), ToolFailure> + Sync),
}

/// Reason why a search has no answer. The texts contain no secrets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebSearchError {
    /// The service received too many requests, or the quota of the key is used up.
    #[error("{message}")]
    RateLimited {
        /// Message for the user.
        message: String,
        /// Time to wait before the next request, if the service reports one.
        retry_after: Option<Duration>,
    },
    /// The key is missing, or the service does not accept it.
    #[error("{0}")]
    KeyRefused(String),
    /// The service does not support this query.
    #[error("{0}")]
    QueryRefused(String),
    /// The service requires a captcha.
    #[error("{0}")]
    Captcha(String),
    /// The service failed, or is configured so that it cannot answer.
    #[error("{0}")]
    Failed(String),
    /// The response violates the protocol.
    #[error("{0}")]
    Protocol(String),
    /// The service was not reached: a rule denies its host, or it did not answer in time.
    #[error("{}", .0.text())]
    NotReached(ToolFailure),
}

/// Web search service.
///
/// Implementers guarantee:
/// - nothing is sent to a host other than [`host`](Self::host) without a check by [`WebSearchContext::may_reach`];
/// - a search without hits returns an empty list; a failure never does;
/// - hits match the query: at most `count` of them, from its domains only.
#[async_trait]
pub trait WebSearch: Send + Sync {
    /// Returns the host that the search is sent to, in lower case; `None` if it is within this process. Permission to
    /// reach it is checked for each search.
    fn host(&self) -> Option<&str>;

    /// Searches the web.
    ///
    /// # Errors
    /// [`WebSearchError`] if there is no answer.
    async fn search<'s, 'q, 'b>(
        &'s self,
        query: &'q WebQuery,
        bounds: WebSearchContext<'b>,
    ) -> Result<Vec<WebHit>, WebSearchError>;
}

impl DomainFilter {
    /// Returns `true` if the host belongs to one of the domains in this set.
    pub fn admits(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let is_of = |domain: &String| {
            host.strip_suffix(domain.as_str()).is_some_and(|before| before.is_empty() || before.ends_with('.'))
        };
        match self {
            Self::All => true,
            Self::Only(domains) => domains.iter().any(is_of),
            Self::Without(domains) => !domains.iter().any(is_of),
        }
    }
}

impl Freshness {
    /// Returns the length of the period.
    pub fn length(self) -> Duration {
        let days = match self {
            Self::Day => 1,
            Self::Week => 7,
            Self::Month => 31,
            Self::Year => 365,
        };
        Duration::from_secs(days * 24 * 60 * 60)
    }
}

impl WebSearchError {
    /// Returns the failure of a call that made this search.
    pub fn into_failure(self) -> ToolFailure {
        let (kind, next) = match &self {
            Self::RateLimited { retry_after: Some(wait), .. } => {
                (ErrorKind::RateLimited, format!("Try again in {}.", in_words(*wait)))
            }
            Self::RateLimited { .. } => (ErrorKind::RateLimited, "Try again later.".into()),
            Self::KeyRefused(_) => {
                (ErrorKind::AuthRequired, "The operator must check the API key of the search.".into())
            }
            Self::QueryRefused(_) => (ErrorKind::InvalidInput, "Rephrase the query.".into()),
            Self::Captcha(_) => (
                ErrorKind::RateLimited,
                "Wait some minutes before the next search; a service with a key does not ask for people.".into(),
            ),
            Self::Failed(_) => (ErrorKind::UpstreamHttp, String::new()),
            Self::Protocol(_) => (ErrorKind::UpstreamProtocol, String::new()),
            Self::NotReached(_) => (ErrorKind::Unavailable, String::new()),
        };
        let data = match &self {
            Self::RateLimited { retry_after: Some(wait), .. } => {
                json!({"retry_after_seconds": wait.as_secs_f64().ceil()})
            }
            _ => serde_json::Value::Null,
        };
        match self {
            Self::NotReached(failure) => failure,
            error if next.is_empty() => ToolFailure::new(kind, error.to_string()),
            error => ToolFailure::new(kind, error.to_string()).next(next).with_data(data),
        }
    }
}

/// Formats a duration in words, rounded up.
fn in_words(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} minutes", seconds.div_ceil(60)),
        7200..=172_799 => format!("{} hours", seconds.div_ceil(3600)),
        _ => format!("{} days", seconds.div_ceil(86_400)),
    }
}

impl fmt::Debug for WebSearchContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSearchContext").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_filter_matches_the_domain_and_its_subdomains() {
        let domains = vec!["example.com".to_owned()];
        for (host, is_of) in [
            ("example.com", true),
            ("www.example.com", true),
            ("WWW.Example.COM.", true),
            ("notexample.com", false),
            ("example.com.evil.org", false),
            ("com", false),
            ("", false),
        ] {
            assert_eq!(DomainFilter::Only(domains.clone()).admits(host), is_of, "{host}");
            assert_eq!(DomainFilter::Without(domains.clone()).admits(host), !is_of, "{host}");
            assert!(DomainFilter::All.admits(host), "{host}");
        }
    }

    #[test]
    fn a_rate_limit_failure_reports_the_delay_as_text_and_in_seconds() {
        for (milliseconds, words, seconds) in [
            (0, "in 0 s", 0.0),
            (1_001, "in 2 s", 2.0),
            (119_000, "in 119 s", 119.0),
            (121_000, "in 3 minutes", 121.0),
            (7_200_000, "in 2 hours", 7_200.0),
            (1_419_704_000, "in 17 days", 1_419_704.0),
        ] {
            let retry_after = Some(Duration::from_millis(milliseconds));
            let failure = WebSearchError::RateLimited { message: "too much".into(), retry_after }.into_failure();
            assert_eq!(failure.kind, ErrorKind::RateLimited);
            assert!(failure.text().ends_with(&format!("{words}.")), "{}", failure.text());
            assert_eq!(failure.data["retry_after_seconds"], seconds);
        }
    }
}
