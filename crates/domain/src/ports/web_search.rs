//! Searching the web, whoever does it.

use crate::{error_kind::ErrorKind, tool_failure::ToolFailure};
use async_trait::async_trait;
use serde_json::json;
use std::{
    fmt,
    time::{Duration, Instant},
};

/// A search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebQuery {
    /// The words, as they were given.
    pub text: String,
    /// As many hits at most.
    pub count: usize,
    /// The page of hits, from 0.
    pub page: usize,
    /// The domains that hits may be of.
    pub domains: Domains,
    /// The time within which a page must have appeared.
    pub freshness: Option<Freshness>,
}

/// Domains, in lower case and ASCII. One stands for its hosts: itself, and all below it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Domains {
    /// All.
    #[default]
    All,
    /// These alone.
    Only(Vec<String>),
    /// All but these.
    Without(Vec<String>),
}

/// A time before now.
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

/// A page that was found. Its words are those of its site or of who searched: data, and no instructions. They may have
/// invisible characters and marks of calls, which `web_search` removes and reports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WebHit {
    /// Its title, one line of plain text.
    pub title: String,
    /// Its address: `http` or `https`.
    pub url: String,
    /// Its words on the query, one line of plain text; empty where nothing is known.
    pub description: String,
    /// The time at which it appeared, in the words of who searched.
    pub age: Option<String>,
}

/// The bounds of a search.
#[derive(Clone, Copy)]
pub struct SearchBounds<'a> {
    /// The end of it all, with pauses.
    pub deadline: Instant,
    /// Says whether a host (lower case, without port) may be reached. Asked before anything is sent to one.
    pub may_reach: &'a (dyn Fn(&str) -> Result<(), ToolFailure> + Sync),
}

/// The reason why a search has no answer. No secret is in its texts.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebSearchError {
    /// The service was asked too often, or the share of the key is used up.
    #[error("{message}")]
    RateLimited {
        /// In words.
        message: String,
        /// So long it wants to be left alone, where it says so.
        retry_after: Option<Duration>,
    },
    /// There is no key, or the service does not take it.
    #[error("{0}")]
    KeyRefused(String),
    /// The service cannot search for that.
    #[error("{0}")]
    QueryRefused(String),
    /// The service wants to see a person.
    #[error("{0}")]
    Captcha(String),
    /// The service failed, or is set up so that it cannot answer.
    #[error("{0}")]
    Failed(String),
    /// The answer is none that its protocol allows.
    #[error("{0}")]
    Protocol(String),
    /// It was not reached: a rule is against its host, nobody answered, or not in time.
    #[error("{}", .0.text())]
    NotReached(ToolFailure),
}

/// Whoever searches the web.
///
/// Implementers guarantee:
/// - nothing is sent to a host other than [`host`](Self::host) that [`SearchBounds::may_reach`] was not asked about;
/// - nothing found is an empty list; a failure is never one;
/// - hits keep to the query: at most `count` of them, of its domains alone.
#[async_trait]
pub trait WebSearch: Send + Sync {
    /// The host that is asked, in lower case; `None`: none outside of this program. Each search is judged as reaching it.
    fn host(&self) -> Option<&str>;

    /// Searches.
    ///
    /// # Errors
    /// [`WebSearchError`].
    async fn search<'s, 'q, 'b>(
        &'s self,
        query: &'q WebQuery,
        bounds: SearchBounds<'b>,
    ) -> Result<Vec<WebHit>, WebSearchError>;
}

impl Domains {
    /// Tells whether a host is one of them.
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
    /// Its length.
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
    /// The failure of a call that asked for it.
    pub fn into_failure(self) -> ToolFailure {
        let (kind, next) = match &self {
            Self::RateLimited { retry_after: Some(wait), .. } => {
                (ErrorKind::RateLimited, format!("Try again in {}.", in_words(*wait)))
            }
            Self::RateLimited { .. } => (ErrorKind::RateLimited, "Try again later.".into()),
            Self::KeyRefused(_) => {
                (ErrorKind::AuthRequired, "Whoever runs this program must check the key of its search.".into())
            }
            Self::QueryRefused(_) => (ErrorKind::InvalidInput, "Ask in other words.".into()),
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
            told if next.is_empty() => ToolFailure::new(kind, told.to_string()),
            told => ToolFailure::new(kind, told.to_string()).next(next).with_data(data),
        }
    }
}

/// A time as people say it, rounded up.
fn in_words(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} minutes", seconds.div_ceil(60)),
        7200..=172_799 => format!("{} hours", seconds.div_ceil(3600)),
        _ => format!("{} days", seconds.div_ceil(86_400)),
    }
}

impl fmt::Debug for SearchBounds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchBounds").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_stands_for_itself_and_what_is_below_it() {
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
            assert_eq!(Domains::Only(domains.clone()).admits(host), is_of, "{host}");
            assert_eq!(Domains::Without(domains.clone()).admits(host), !is_of, "{host}");
            assert!(Domains::All.admits(host), "{host}");
        }
    }

    #[test]
    fn the_time_to_wait_is_told_in_words_and_for_programs() {
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
