//! Fetches a page, from the cache or from the server.

use super::FetchFormat;
use crate::{
    builtin::{
        tool_kit::tool_context::ToolContext,
        web::{page_cache::PageCacheKey, web_address::host},
    },
    egress::host::Host,
    web::{
        charset::charset_of,
        web_client::{RedirectPolicy, RetryPolicy, UrlSource, WebRequest, WebResponse},
        web_error::WebError,
    },
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use std::time::{Duration, Instant};
use toolstead_domain::{Suggestion, ToolFailure, error_kind::ErrorKind};
use url::Url;

/// Maximum size of a response after decompression, in bytes.
pub(super) const MAX_BYTES: usize = 5 << 20;
const REDIRECTS: u32 = 5;
/// Timeout of the https request to a host that the caller named with http.
const TIME_FOR_TLS: Duration = Duration::from_secs(5);

/// Response of a server, possibly from the cache.
pub(super) struct FetchedPage {
    pub(super) answer: WebResponse,
    pub(super) from_cache: bool,
}

impl FetchedPage {
    /// Returns the media type with its parameters, as the server sent it; empty if there is none.
    pub(super) fn content_type(&self) -> &str {
        self.header(header::CONTENT_TYPE)
    }

    /// Returns the media type without parameters, in lower case.
    pub(super) fn media_type(&self) -> String {
        self.content_type().split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// Returns the charset that the server declares.
    pub(super) fn charset(&self) -> Option<&str> {
        charset_of(self.content_type()).filter(|charset| !charset.is_empty())
    }

    /// Returns the value of a header; empty if there is none.
    pub(super) fn header(&self, name: header::HeaderName) -> &str {
        self.answer.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// Returns the page from the cache if that has a recent response for the same principal, otherwise from the server, and
/// then caches it if the response allows that. An http address of a named host is tried as https first. The host is
/// checked in all cases.
pub(super) async fn fetch(
    url: &Url,
    format: FetchFormat,
    run: &ToolContext<'_>,
    deadline: Instant,
) -> Result<FetchedPage, ToolFailure> {
    let world = run.environment();
    run.check_host(host(url))?;
    let accept = accepted(format);
    let request = PageCacheKey { principal: run.context().principal.clone(), url: url.to_string(), accept };
    if let Some(answer) = world.web().page_cache().answer(&request, world.now()) {
        return Ok(FetchedPage { answer, from_cache: true });
    }
    let answer = match upgraded(url) {
        None => send(url, accept, RetryPolicy::OnTransientFailure, run, deadline).await,
        Some(secure) => {
            let soon = deadline.min(Instant::now() + TIME_FOR_TLS);
            match send(&secure, accept, RetryPolicy::Never, run, soon).await {
                // The host does not answer by TLS, or only its port 80 may be reached: the page is fetched as
                // requested.
                Err(FetchFailure::Web(error))
                    if is_silence(&error) || matches!(error, WebError::Address(_) | WebError::Port { .. }) =>
                {
                    send(url, accept, RetryPolicy::OnTransientFailure, run, deadline).await
                }
                other => other,
            }
        }
    };
    let answer = answer.map_err(|error| error.into_failure(url))?;
    world.web().page_cache().remember(request, answer.clone(), world.now());
    Ok(FetchedPage { answer, from_cache: false })
}

/// Reason why there is no response.
enum FetchFailure {
    Web(WebError),
    /// The site's `robots.txt` excludes programs.
    Robots,
}

impl FetchFailure {
    fn into_failure(self, url: &Url) -> ToolFailure {
        match self {
            Self::Web(error @ (WebError::TimedOut | WebError::Silent(_))) => {
                error.into_failure(&format!("`{url}` could not be fetched")).next("Give a longer `timeout_ms`.")
            }
            Self::Web(error) => error.into_failure(&format!("`{url}` could not be fetched")),
            Self::Robots => ToolFailure::new(
                ErrorKind::PermissionDenied,
                format!("`{url}` is not fetched: the `robots.txt` of its site excludes programs from it"),
            )
            .next("Use another source.")
            .suggest(Suggestion::ChangeSettings("`[web] respect_robots` set to false ignores it".into())),
        }
    }
}

async fn send(
    url: &Url,
    accept: &'static str,
    again: RetryPolicy,
    run: &ToolContext<'_>,
    deadline: Instant,
) -> Result<WebResponse, FetchFailure> {
    let (world, judge) = (run.environment(), |host: &str| run.check_host(host));
    if let Some(robots) = world.web().robots() {
        let allowed = robots.allow(url, world.web().client(), &judge, world.now(), deadline).await;
        if !allowed.map_err(FetchFailure::Web)? {
            return Err(FetchFailure::Robots);
        }
    }
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
    let asked = WebRequest {
        method: Method::GET,
        url,
        headers,
        body: Bytes::new(),
        url_source: UrlSource::Untrusted,
        redirects: RedirectPolicy::SameHost(REDIRECTS),
        retry: again,
        body_bytes: MAX_BYTES,
        deadline,
    };
    world.web().client().send(asked, &judge).await.map_err(FetchFailure::Web)
}

/// Returns the https address that is tried before an http address; `None` if the address has another scheme or a port,
/// or if its host is an IP address or `localhost`.
fn upgraded(url: &Url) -> Option<Url> {
    let is_plain = url.scheme() == "http" && url.port().is_none();
    let host = Host::parse(url.host_str()?).ok()?;
    if !is_plain || matches!(&host, Host::Address(_)) || url.host_str() == Some("localhost") {
        return None;
    }
    let mut secure = url.clone();
    secure.set_scheme("https").ok()?;
    Some(secure)
}

/// Returns `true` if the host did not answer at all.
fn is_silence(error: &WebError) -> bool {
    match error {
        WebError::TimedOut | WebError::Silent(_) => true,
        WebError::Http(error) => error.is_unsent(),
        _ => false,
    }
}

fn accepted(format: FetchFormat) -> &'static str {
    match format {
        FetchFormat::Markdown | FetchFormat::Page => {
            "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.5"
        }
        FetchFormat::Text => "text/html, application/xhtml+xml, text/plain;q=0.9, */*;q=0.5",
        FetchFormat::Html => "text/html, application/xhtml+xml;q=0.9, */*;q=0.5",
        FetchFormat::Raw => "*/*",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upgrades_http_urls_except_for_localhost_addresses_and_explicit_ports() {
        for (url, expected) in [
            ("http://example.com/a?b", Some("https://example.com/a?b")),
            ("https://example.com/", None),
            ("http://example.com:8080/", None),
            ("http://localhost/", None),
            ("http://127.0.0.1/", None),
            ("http://[::1]/", None),
        ] {
            let secure = upgraded(&url.parse().unwrap());
            assert_eq!(secure.as_ref().map(Url::as_str), expected, "{url}");
        }
    }
}
