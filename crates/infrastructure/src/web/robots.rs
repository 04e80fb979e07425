//! `robots.txt`: the paths of a site that its owner keeps programs out of (RFC 9309).

mod groups;
mod path_pattern;
mod rules;

use crate::web::{
    reach::{Again, Asked, Judge, NamedBy, Reach, Redirects},
    reach_error::ReachError,
};
use http::{HeaderMap, Method};
use rules::Rules;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use toolstead_domain::ports::clock::Timestamp;
use url::Url;

/// The name that rules know this program by.
const AGENT: &str = "toolstead";
/// Bytes of a file; of a longer one so many are read, which the RFC allows from here on.
const MAX_BYTES: usize = 500 << 10;
const REDIRECTS: u32 = 5;
/// The age at which rules are read anew.
const KEPT_FOR: Duration = Duration::from_secs(60 * 60);
/// Sites whose rules are kept. All go at once when there is no room.
const SITES: usize = 100;

/// The rules of the sites that were asked about lately. They are the same for everybody.
#[derive(Debug, Default)]
pub struct Robots(Mutex<HashMap<String, Site>>);

#[derive(Debug, Clone)]
struct Site {
    read_at: Timestamp,
    /// `None` where nothing is to be fetched: the site fails (RFC 9309, 2.3.1.4), or has more rules than are compared.
    rules: Option<Arc<Rules>>,
}

impl Robots {
    /// Returns `true` if the rules of its site allow this program to fetch the address.
    ///
    /// # Errors
    /// [`ReachError`] where nobody answers there at all.
    pub async fn allow(
        &self,
        url: &Url,
        reach: &Reach,
        judge: Judge<'_>,
        now: Timestamp,
        deadline: Instant,
    ) -> Result<bool, ReachError> {
        let site = url.origin().ascii_serialization();
        let rules = match self.known(&site, now) {
            Some(rules) => rules,
            None => {
                let rules = read(url, reach, judge, deadline).await?;
                let mut sites = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                if sites.len() >= SITES {
                    sites.clear();
                }
                sites.insert(site, Site { read_at: now, rules: rules.clone() });
                rules
            }
        };
        // Bounded work, so it is done here: a thread of its own would outlive the call.
        Ok(rules.is_some_and(|rules| rules.allow(&target(url)).unwrap_or(false)))
    }

    fn known(&self, site: &str, now: Timestamp) -> Option<Option<Arc<Rules>>> {
        let sites = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let site = sites.get(site)?;
        let age = now.0.checked_sub(site.read_at.0).and_then(|age| u64::try_from(age).ok())?;
        (Duration::from_micros(age) < KEPT_FOR).then(|| site.rules.clone())
    }
}

/// Returns the path of an address with its query, as rules are compared with it.
fn target(url: &Url) -> String {
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{}{query}", url.path())
}

async fn read(url: &Url, reach: &Reach, judge: Judge<'_>, deadline: Instant) -> Result<Option<Arc<Rules>>, ReachError> {
    let mut place = url.clone();
    place.set_path("/robots.txt");
    place.set_query(None);
    let asked = Asked {
        method: Method::GET,
        url: &place,
        headers: HeaderMap::new(),
        body: bytes::Bytes::new(),
        named_by: NamedBy::Anybody,
        redirects: Redirects::SameHost(REDIRECTS),
        again: Again::Never,
        body_bytes: MAX_BYTES,
        deadline,
    };
    let answer = reach.send(asked, judge).await?;
    Ok(match answer.status.as_u16() {
        200..300 => Rules::read(whole_lines(&answer.body, answer.is_cut), AGENT).ok().map(Arc::new),
        429 | 500.. => None,
        _ => Some(Arc::default()),
    })
}

/// Returns the file without the part of a line that it was cut in: half a path is another rule.
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

    fn reach(server: &TestServer) -> Reach {
        let private = HostPatterns::parse([server.address().to_string()]).unwrap();
        Reach::new(Arc::new(SystemNetwork::default()), private)
    }

    async fn allowed(status: u16, text: &'static str, path: &str) -> bool {
        let server = TestServer::plain(move |_| Reply::new(status, text)).await;
        let deadline = Instant::now() + Duration::from_secs(60);
        Robots::default().allow(&server.url(path), &reach(&server), &|_| Ok(()), Timestamp(0), deadline).await.unwrap()
    }

    #[tokio::test]
    async fn the_rules_of_a_site_hold_for_this_program() {
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
    async fn rules_that_would_take_too_long_keep_out() {
        let many = format!("User-agent: *\n{}", "Allow: /a\n".repeat(20_000)).leak();
        assert!(!allowed(200, many, "/a").await);
        let long = format!("User-agent: *\nDisallow: /{}\n", "*a".repeat(100_000)).leak();
        assert!(allowed(200, long, "/a").await);
    }

    #[test]
    fn half_a_line_is_no_rule() {
        assert_eq!(whole_lines(b"Allow: /a\nDisallow: /", true), b"Allow: /a");
        assert_eq!(whole_lines(b"Allow: /a\nDisallow: /", false), b"Allow: /a\nDisallow: /");
        assert_eq!(whole_lines(b"Disallow: /", true), b"");
    }

    #[tokio::test]
    async fn the_file_is_read_once_an_hour() {
        let server = TestServer::plain(|_| Reply::new(200, "User-agent: *\nDisallow: /x\n")).await;
        let (robots, deadline) = (Robots::default(), Instant::now() + Duration::from_secs(60));
        for (now, path, expected, reads) in
            [(0, "/a", true, 1), (HOUR - 1, "/x", false, 1), (HOUR, "/x", false, 2), (0, "/a", true, 3)]
        {
            let allowed =
                robots.allow(&server.url(path), &reach(&server), &|_| Ok(()), Timestamp(now), deadline).await.unwrap();
            assert_eq!((allowed, server.seen().len()), (expected, reads), "{now} {path}");
        }
        assert!(server.seen().iter().all(|seen| seen.target == "/robots.txt"));
    }
}
