//! `robots.txt`: the paths of a site that its owner closes to programs (RFC 9309).

mod groups;
mod path_pattern;
mod rules;

use crate::web::{
    web_client::{HostCheck, RedirectPolicy, RetryPolicy, UrlSource, WebClient, WebRequest},
    web_error::WebError,
};
use http::{HeaderMap, Method};
use rules::RobotsRules;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use toolstead_domain::Timestamp;
use url::Url;

/// Name of this program in rules.
const AGENT: &str = "toolstead";
/// Maximum number of bytes that are read of a file. The RFC allows limits from this size on.
const MAX_BYTES: usize = 500 << 10;
const REDIRECTS: u32 = 5;
/// Age at which rules are fetched again.
const KEPT_FOR: Duration = Duration::from_secs(60 * 60);
/// Maximum number of sites with cached rules. All are discarded when the cache is full.
const SITES: usize = 100;

/// Cached rules of sites. They are shared by all callers.
#[derive(Debug, Default)]
pub struct RobotsCache(Mutex<HashMap<String, CachedSiteRules>>);

#[derive(Debug, Clone)]
struct CachedSiteRules {
    read_at: Timestamp,
    /// `None` if nothing may be fetched: the site fails (RFC 9309, 2.3.1.4), or has too many rules.
    rules: Option<Arc<RobotsRules>>,
}

impl RobotsCache {
    /// Returns `true` if the rules of its site allow this program to fetch the address.
    ///
    /// # Errors
    /// [`WebError`] if the site does not answer at all.
    pub async fn allow(
        &self,
        url: &Url,
        reach: &WebClient,
        judge: HostCheck<'_>,
        now: Timestamp,
        deadline: Instant,
    ) -> Result<bool, WebError> {
        let site = url.origin().ascii_serialization();
        let rules = match self.known(&site, now) {
            Some(rules) => rules,
            None => {
                let rules = read(url, reach, judge, deadline).await?;
                let mut sites = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                if sites.len() >= SITES {
                    sites.clear();
                }
                sites.insert(site, CachedSiteRules { read_at: now, rules: rules.clone() });
                rules
            }
        };
        // The work is limited, so it is done here: a separate thread would outlive the call.
        Ok(rules.is_some_and(|rules| rules.allow(&target(url)).unwrap_or(false)))
    }

    fn known(&self, site: &str, now: Timestamp) -> Option<Option<Arc<RobotsRules>>> {
        let sites = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let site = sites.get(site)?;
        let age = now.0.checked_sub(site.read_at.0).and_then(|age| u64::try_from(age).ok())?;
        (Duration::from_micros(age) < KEPT_FOR).then(|| site.rules.clone())
    }
}

/// Returns the path of an address with its query, for the comparison with rules.
fn target(url: &Url) -> String {
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{}{query}", url.path())
}

async fn read(
    url: &Url,
    reach: &WebClient,
    judge: HostCheck<'_>,
    deadline: Instant,
) -> Result<Option<Arc<RobotsRules>>, WebError> {
    let mut place = url.clone();
    place.set_path("/robots.txt");
    place.set_query(None);
    let asked = WebRequest {
        method: Method::GET,
        url: &place,
        headers: HeaderMap::new(),
        body: bytes::Bytes::new(),
        url_source: UrlSource::Untrusted,
        redirects: RedirectPolicy::SameHost(REDIRECTS),
        retry: RetryPolicy::Never,
        body_bytes: MAX_BYTES,
        deadline,
    };
    let answer = reach.send(asked, judge).await?;
    Ok(match answer.status.as_u16() {
        200..300 => RobotsRules::read(whole_lines(&answer.body, answer.is_cut), AGENT).ok().map(Arc::new),
        429 | 500.. => None,
        _ => Some(Arc::default()),
    })
}

/// Returns the file without an incomplete last line: half a path is a different rule.
fn whole_lines(file: &[u8], is_cut: bool) -> &[u8] {
    let end =
        if is_cut { file.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(0) } else { file.len() };
    &file[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        egress::{connector::SystemNetwork, host::HostPatterns},
        web::testing::{Reply, TestServer},
    };
    use std::sync::Arc;

    const HOUR: i64 = 60 * 60 * 1_000_000;

    fn reach(server: &TestServer) -> WebClient {
        let private = HostPatterns::parse([server.address().to_string()]).unwrap();
        WebClient::new(Arc::new(SystemNetwork::default()), private)
    }

    async fn allowed(status: u16, text: &'static str, path: &str) -> bool {
        let server = TestServer::plain(move |_| Reply::new(status, text)).await;
        let deadline = Instant::now() + Duration::from_secs(60);
        RobotsCache::default()
            .allow(&server.url(path), &reach(&server), &|_| Ok(()), Timestamp(0), deadline)
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn robots_rules_and_response_status_decide_whether_a_path_is_allowed() {
        for (status, text, path, expected) in [
            (200, "User-agent: *\nDisallow: /private/\n", "/private/a", false),
            (200, "User-agent: *\nDisallow: /private/\n", "/public", true),
            (200, "User-agent: *\nDisallow: /\n\nUser-agent: Toolstead\nAllow: /\n", "/a", true),
            (200, "User-agent: toolstead\nDisallow: /*.pdf$\n", "/a.pdf", false),
            (200, "", "/a", true),
            (404, "User-agent: *\nDisallow: /\n", "/a", true),
            (403, "", "/a", true),
            (503, "", "/a", false),
        ] {
            assert_eq!(allowed(status, text, path).await, expected, "{status} {text:?} {path}");
        }
    }

    #[tokio::test]
    async fn too_many_robots_rules_forbid_access_and_one_long_rule_does_not() {
        let many = format!("User-agent: *\n{}", "Allow: /a\n".repeat(20_000)).leak();
        assert!(!allowed(200, many, "/a").await);
        let long = format!("User-agent: *\nDisallow: /{}\n", "*a".repeat(100_000)).leak();
        assert!(allowed(200, long, "/a").await);
    }

    #[test]
    fn a_truncated_last_line_is_no_robots_rule() {
        assert_eq!(whole_lines(b"Allow: /a\nDisallow: /", true), b"Allow: /a");
        assert_eq!(whole_lines(b"Allow: /a\nDisallow: /", false), b"Allow: /a\nDisallow: /");
        assert_eq!(whole_lines(b"Disallow: /", true), b"");
    }

    #[tokio::test]
    async fn robots_txt_is_cached_for_an_hour() {
        let server = TestServer::plain(|_| Reply::new(200, "User-agent: *\nDisallow: /x\n")).await;
        let (robots, deadline) = (RobotsCache::default(), Instant::now() + Duration::from_secs(60));
        for (now, path, expected, reads) in
            [(0, "/a", true, 1), (HOUR - 1, "/x", false, 1), (HOUR, "/x", false, 2), (0, "/a", true, 3)]
        {
            let allowed =
                robots.allow(&server.url(path), &reach(&server), &|_| Ok(()), Timestamp(now), deadline).await.unwrap();
            assert_eq!((allowed, server.requests().len()), (expected, reads), "{now} {path}");
        }
        assert!(server.requests().iter().all(|seen| seen.target == "/robots.txt"));
    }
}
