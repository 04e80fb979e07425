//! `robots.txt`: the paths of a site that its owner keeps programs out of (RFC 9309).

use crate::web::{
    reach::{Again, Asked, Judge, NamedBy, Reach, Redirects},
    reach_error::ReachError,
};
use http::{HeaderMap, Method};
use robotstxt::DefaultMatcher;
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::task::spawn_blocking;
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
    rules: Rules,
}

#[derive(Debug, Clone)]
enum Rules {
    /// There is no file.
    None,
    /// The site is not well: nothing is to be fetched (RFC 9309, 2.3.1.4).
    Unknown,
    Text(String),
}

impl Robots {
    /// Tells whether the rules of its site allow this program to fetch the address.
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
        Ok(match rules {
            Rules::None => true,
            Rules::Unknown => false,
            // Hostile rules take their time, and end the matcher: then nothing is to be fetched.
            Rules::Text(text) => {
                let url = url.clone();
                let matching = spawn_blocking(move || {
                    DefaultMatcher::default().one_agent_allowed_by_robots(&text, AGENT, url.as_str())
                });
                matching.await.unwrap_or(false)
            }
        })
    }

    fn known(&self, site: &str, now: Timestamp) -> Option<Rules> {
        let sites = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let site = sites.get(site)?;
        let age = now.0.checked_sub(site.read_at.0).and_then(|age| u64::try_from(age).ok())?;
        (Duration::from_micros(age) < KEPT_FOR).then(|| site.rules.clone())
    }
}

async fn read(url: &Url, reach: &Reach, judge: Judge<'_>, deadline: Instant) -> Result<Rules, ReachError> {
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
        200..300 => Rules::Text(String::from_utf8_lossy(&answer.body).into_owned()),
        429 | 500.. => Rules::Unknown,
        _ => Rules::None,
    })
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
    async fn rules_that_nobody_can_read_keep_out_and_end_nothing() {
        // The matcher counts what is too long of a line in characters, and cuts the text by bytes.
        let text = format!("{}\u{20ac}\nDisallow: /\n", "x".repeat(17_000)).leak();
        assert!(!allowed(200, text, "/a").await);
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
