//! The HTML pages of DuckDuckGo: `GET /html/`. They are parsed in a child process.

use super::{ServiceRefusal, ServiceRequest, no_such_page, with_sites};
use crate::{
    helper_port::{HelperCall, HelperError, HelperLimits, HelperPort},
    services::address::below,
    web::page::tree,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::{
    io::{Cursor, Read},
    time::Instant,
};
use toolstead_domain::{Freshness, WebHit, WebQuery, WebSearchError};
use url::Url;

/// Name of the helper that parses the pages of DuckDuckGo.
pub(super) const HELPER: &str = "duckduckgo";

/// Maximum length of a query, in characters and in words.
const CHARACTERS: usize = 400;
const WORDS: usize = 50;
/// Maximum number of hits per page, and of characters of each of their texts.
const HITS: usize = 60;
const TEXT: usize = 2_000;
const BOUNDS: HelperLimits = HelperLimits { seconds: 5, memory_bytes: 512 << 20 };
const ANSWER_BYTES: u64 = 4 << 20;

/// The result of parsing a page.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ResultPage {
    /// The page is a captcha.
    Captcha,
    /// The page contains these hits.
    Hits(Vec<Hit>),
    /// The page has neither hits nor the message that there are none.
    Unknown,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Hit {
    title: String,
    link: String,
    description: String,
}

pub(super) fn order(base_url: &Url, query: &WebQuery) -> Result<ServiceRequest, WebSearchError> {
    // Further pages require data of the first page.
    if query.page > 0 {
        return Err(no_such_page("DuckDuckGo"));
    }
    let mut url = below(base_url, "html/");
    let mut pairs = url.query_pairs_mut();
    pairs.append_pair("q", &with_sites(query, CHARACTERS, WORDS));
    if let Some(freshness) = query.freshness {
        let word = match freshness {
            Freshness::Day => "d",
            Freshness::Week => "w",
            Freshness::Month => "m",
            Freshness::Year => "y",
        };
        pairs.append_pair("df", word);
    }
    drop(pairs);
    let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static("text/html"))]);
    Ok(ServiceRequest { method: Method::GET, url, headers, body: Bytes::new(), skipped: 0 })
}

/// Returns the hits of a page from this address.
pub(super) async fn hits(
    helpers: &dyn HelperPort,
    url: &Url,
    page: Bytes,
    deadline: Instant,
) -> Result<Vec<WebHit>, WebSearchError> {
    let call = HelperCall {
        name: HELPER,
        order: RawValue::NULL.to_owned(),
        input_bytes: page.len() as u64,
        input: Box::new(Cursor::new(page)),
        answer_bytes: ANSWER_BYTES,
        bounds: BOUNDS,
        deadline: Some(deadline),
    };
    let answer = helpers.call(call).await.map_err(|error| match error {
        HelperError::NoSandbox | HelperError::NoDoor | HelperError::NotStarted(_) => {
            WebSearchError::Failed(format!("the page of DuckDuckGo could not be read: {error}"))
        }
        other => WebSearchError::Protocol(other.to_string()),
    })?;
    match serde_json::from_slice(&answer) {
        Ok(ResultPage::Captcha) => Err(captcha()),
        Ok(ResultPage::Hits(hits)) => Ok(hits.into_iter().map(|hit| shown(url, hit)).collect()),
        Ok(ResultPage::Unknown) => {
            Err(WebSearchError::Protocol("the page has neither hits nor a notice that there are none".into()))
        }
        Err(error) => Err(WebSearchError::Protocol(format!("the answer of its reader is invalid: {error}"))),
    }
}

pub(super) fn refusal(refusal: &ServiceRefusal<'_>) -> WebSearchError {
    match refusal.status {
        403 | 418 => captcha(),
        _ => refusal.usual(),
    }
}

fn captcha() -> WebSearchError {
    WebSearchError::Captcha("DuckDuckGo requires a human check before it searches".into())
}

fn shown(page: &Url, hit: Hit) -> WebHit {
    let url = target(page, &hit.link).map_or(String::new(), Into::into);
    WebHit { title: hit.title, url, description: hit.description, age: None }
}

/// Returns the target of a link in a hit: links redirect by `/l/?uddg=`. Returns `None` for links to DuckDuckGo itself,
/// which are advertisements.
fn target(page: &Url, link: &str) -> Option<Url> {
    let url = page.join(link).ok()?;
    let own = |host: &str| host == "duckduckgo.com" || host.ends_with(".duckduckgo.com");
    if url.host_str().is_some_and(|host| own(host) || Some(host) == page.host_str()) {
        let wrapped = url.query_pairs().find(|(name, _)| name == "uddg").filter(|_| url.path().ends_with("/l/"))?;
        let target = Url::parse(&wrapped.1).ok()?;
        return (!target.host_str().is_some_and(own)).then_some(target);
    }
    Some(url)
}

/// Runs in the child process: reads a page, and returns a [`ResultPage`] as JSON.
pub(super) fn answer(_: &str, input: &mut dyn Read) -> Vec<u8> {
    let mut html = Vec::new();
    // The bytes before a read error are parsed as a page, too.
    let _ = input.read_to_end(&mut html);
    serde_json::to_vec(&read(&html)).unwrap_or_default()
}

/// Parses a page, in the child process.
fn read(html: &[u8]) -> ResultPage {
    let tree = tree::parse_as_is(html, Some("utf-8"));
    let root = tree.root();
    if tree.select(root, "", "anomaly-modal").next().is_some() {
        return ResultPage::Captcha;
    }
    let text = |node| tree.text_of(node).chars().take(TEXT).collect::<String>();
    let hit = |result| {
        let title = tree.select(result, "a", "result__a").next()?;
        let description = tree.select(result, "", "result__snippet").next();
        Some(Hit {
            title: text(title),
            link: tree.attribute(title, "href")?.chars().take(2 * TEXT).collect(),
            description: description.map(text).unwrap_or_default(),
        })
    };
    let hits: Vec<Hit> = tree.select(root, "div", "result__body").filter_map(hit).take(HITS).collect();
    match hits.is_empty() && tree.select(root, "", "no-result").next().is_none() {
        true => ResultPage::Unknown,
        false => ResultPage::Hits(hits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::helper_port::NoHelpers;

    const FOUND: &str = r#"<!DOCTYPE html><html><head><title>rust at DuckDuckGo</title></head><body>
        <input name="q" value="anomaly-modal">
        <div class="result results_links results_links_deep result--ad "><div class="links_main links_deep result__body">
          <h2 class="result__title"><a class="result__a" href="https://duckduckgo.com/y.js?ad_domain=a.example&amp;u3=x">Advert</a></h2></div></div>
        <div class="result results_links results_links_deep web-result "><div class="links_main links_deep result__body">
          <h2 class="result__title"><a rel="nofollow" class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fexample.com%2Fa%3Fb%3D1%26c&amp;rut=x">The <b>Rust</b> &amp; more</a></h2>
          <a class="result__snippet" href="x">About <b>Rust</b><script>x()</script>.</a>
          <a class="result__url" href="x">example.com</a></div></div>
        <div class="result web-result "><div class="links_main result__body">
          <h2 class="result__title"><a class="result__a" href="https://direct.example/b">Direct</a></h2></div></div>
        </body></html>"#;

    #[test]
    fn search_hits_have_the_target_addresses_of_their_links() {
        let page = Url::parse("https://html.duckduckgo.com/html/?q=rust").unwrap();
        let ResultPage::Hits(hits) = read(FOUND.as_bytes()) else { panic!("no hits") };
        let shown: Vec<[String; 3]> =
            hits.into_iter().map(|hit| shown(&page, hit)).map(|hit| [hit.title, hit.url, hit.description]).collect();
        let expected = [
            ["Advert", "", ""],
            ["The Rust & more", "https://example.com/a?b=1&c", "About Rust."],
            ["Direct", "https://direct.example/b", ""],
        ];
        assert_eq!(shown, expected.map(|hit| hit.map(str::to_owned)));
    }

    #[test]
    fn redirect_links_are_resolved_and_links_to_duckduckgo_pages_are_dropped() {
        let page = Url::parse("https://html.duckduckgo.com/html/").unwrap();
        for (link, expected) in [
            ("/l/?uddg=https%3A%2F%2Fa.example%2F", Some("https://a.example/")),
            ("https://duckduckgo.com/l/?rut=1&uddg=http%3A%2F%2Fa.example", Some("http://a.example/")),
            (
                "https://a.example/l/?uddg=https%3A%2F%2Fb.example",
                Some("https://a.example/l/?uddg=https%3A%2F%2Fb.example"),
            ),
            ("/l/?uddg=https%3A%2F%2Fduckduckgo.com%2Fy.js", None),
            ("/l/?uddg=nothing", None),
            ("/y.js?uddg=https%3A%2F%2Fa.example", None),
            ("/about", None),
            ("http://[", None),
        ] {
            assert_eq!(target(&page, link).map(String::from).as_deref(), expected, "{link}");
        }
    }

    #[test]
    fn captcha_and_unknown_pages_are_not_read_as_pages_without_hits() {
        for (html, expected) in [
            (
                r#"<form action="//duckduckgo.com/anomaly.js"><div class="anomaly-modal__mask"></div></form>"#,
                ResultPage::Captcha,
            ),
            (
                r#"<div class="anomaly-modal__title">Unfortunately, bots use DuckDuckGo too.</div><div class="no-results">No results.</div>"#,
                ResultPage::Captcha,
            ),
            (r#"<div class="no-results">No results.</div>"#, ResultPage::Hits(Vec::new())),
            ("<p>Something else</p>", ResultPage::Unknown),
            ("", ResultPage::Unknown),
        ] {
            assert_eq!(read(html.as_bytes()), expected, "{html}");
        }
    }

    #[tokio::test]
    async fn without_helper_processes_the_error_names_the_sandbox_feature() {
        let url = Url::parse("https://html.duckduckgo.com/html/").unwrap();
        let error = hits(&NoHelpers, &url, FOUND.into(), Instant::now()).await.unwrap_err();
        assert!(error.to_string().contains("feature `sandbox`"), "{error}");
    }

    #[test]
    fn the_parent_decodes_the_result_page_that_the_child_process_encodes() {
        let message = answer("null", &mut Cursor::new(FOUND));
        assert_eq!(serde_json::from_slice::<ResultPage>(&message).unwrap(), read(FOUND.as_bytes()));
    }
}
