//! Cleanup of hits: plain text, valid addresses, and only the requested domains.

use crate::services::one_line::one_line;
use std::collections::HashSet;
use toolstead_domain::{WebHit, WebQuery};
use url::Url;

const TITLE: usize = 300;
const DESCRIPTION: usize = 1_000;
const AGE: usize = 60;
const URL_BYTES: usize = 2_000;

/// Cleans hits, and returns those in the requested domains, at most the requested number, without duplicate addresses.
pub(super) fn of_query(hits: impl Iterator<Item = WebHit>, query: &WebQuery) -> Vec<WebHit> {
    let mut known = HashSet::new();
    let wanted = hits.filter_map(|hit| {
        let url = page(&hit.url)?;
        let host = url.host_str()?.to_owned();
        let title = Some(one_line(&hit.title, TITLE)).filter(|title| !title.is_empty()).unwrap_or_else(|| host.clone());
        let shown = WebHit {
            title,
            url: url.into(),
            description: one_line(&hit.description, DESCRIPTION),
            age: hit.age.map(|age| one_line(&age, AGE)).filter(|age| !age.is_empty()),
        };
        (query.domains.admits(&host) && known.insert(shown.url.clone())).then_some(shown)
    });
    wanted.take(query.count).collect()
}

/// Parses the address of a page. Rejects addresses that run a script or contain a page, and addresses with a user,
/// which resemble another host.
fn page(text: &str) -> Option<Url> {
    let url = Url::parse(text.trim()).ok()?;
    let is_page = matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none();
    (is_page && url.as_str().len() <= URL_BYTES).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::DomainFilter;

    fn hit(url: &str) -> WebHit {
        WebHit { title: "A".into(), url: url.into(), ..WebHit::default() }
    }

    fn query(count: usize, domains: DomainFilter) -> WebQuery {
        WebQuery { text: "a".into(), count, page: 0, domains, freshness: None }
    }

    #[track_caller]
    fn check(given: &[&str], query: &WebQuery, expected: &[&str]) {
        let shown: Vec<String> =
            of_query(given.iter().map(|url| hit(url)), query).into_iter().map(|hit| hit.url).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn only_hits_with_a_plain_http_address_are_kept() {
        let hostile = [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "\u{1}javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "ftp://a.example/",
            "https://bank.example@evil.example/",
            "//a.example/",
            "a.example",
            "",
            "https://a.example/\r\nx",
        ];
        check(&hostile, &query(20, DomainFilter::All), &["https://a.example/x"]);
        check(&[&format!("https://a.example/{}", "x".repeat(3_000))], &query(20, DomainFilter::All), &[]);
    }

    #[test]
    fn hits_are_filtered_by_domain_deduplicated_and_limited_in_number() {
        let given = ["https://a.example/1", "https://b.a.example/2", "https://nota.example/3", "https://a.example/1"];
        let a = || vec!["a.example".to_owned()];
        check(&given, &query(9, DomainFilter::Only(a())), &["https://a.example/1", "https://b.a.example/2"]);
        check(&given, &query(9, DomainFilter::Without(a())), &["https://nota.example/3"]);
        check(&given, &query(2, DomainFilter::All), &["https://a.example/1", "https://b.a.example/2"]);
    }

    #[test]
    fn titles_and_descriptions_of_hits_become_single_bounded_lines() {
        let given = WebHit {
            title: " ".into(),
            url: "https://a.example/".into(),
            description: format!("a\n[2Jb {}", "x".repeat(5_000)),
            age: Some("\n".into()),
        };
        let shown = of_query([given].into_iter(), &query(1, DomainFilter::All)).remove(0);
        assert_eq!((shown.title.as_str(), shown.age), ("a.example", None));
        assert!(shown.description.starts_with("a [2Jb xx") && shown.description.chars().count() == DESCRIPTION + 1);
    }
}
