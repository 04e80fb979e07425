//! Fetches an image from the web: a `HEAD` request first, then a `GET` request, both without redirects, so that the
//! host is always the one that was checked.

use crate::{
    builtin::tool_kit::tool_context::ToolContext,
    web::web_client::{RedirectPolicy, RetryPolicy, UrlSource, WebRequest, WebResponse},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use std::time::{Duration, Instant};
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};
use url::Url;

/// Maximum size of a fetched image, in bytes.
const MAX_BYTES: usize = 5 << 20;
/// Maximum number of characters of a media type in a message.
const MAX_CONTENT_TYPE: usize = 100;
const TIME: Duration = Duration::from_secs(30);

/// Fetches the image and returns its bytes.
///
/// # Errors
/// `unsupported_type` if the server declares another media type, `too_large` beyond 5 MiB, `not_found` if there is no
/// image, `upstream_http` for a redirect or another error status, and every failure of a request.
pub(super) async fn fetch(url: &Url, run: &ToolContext<'_>) -> Result<Bytes, ToolFailure> {
    let head = ask(Method::HEAD, url, run).await?;
    let header = |name| head.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
    let content_type = header(header::CONTENT_TYPE);
    if !content_type.to_ascii_lowercase().starts_with("image/") {
        let shown: String = content_type.chars().take(MAX_CONTENT_TYPE).flat_map(char::escape_debug).collect();
        let message = format!("the server declares `{url}` as `{shown}`, not as an image");
        return Err(ToolFailure::new(ErrorKind::UnsupportedType, message).next("`web_fetch` shows what it is."));
    }
    let is_large = header(header::CONTENT_LENGTH).parse::<usize>().is_ok_and(|bytes| bytes > MAX_BYTES);
    let too_large = || {
        ToolFailure::new(ErrorKind::TooLarge, format!("the image `{url}` is larger than 5 MiB"))
            .next("Use a smaller version.")
    };
    if is_large {
        return Err(too_large());
    }
    let answer = ask(Method::GET, url, run).await?;
    if answer.is_cut { Err(too_large()) } else { Ok(answer.body) }
}

async fn ask(method: Method, url: &Url, run: &ToolContext<'_>) -> Result<WebResponse, ToolFailure> {
    let asked = WebRequest {
        method,
        url,
        headers: HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static("image/*"))]),
        body: Bytes::new(),
        url_source: UrlSource::Untrusted,
        redirects: RedirectPolicy::None,
        retry: RetryPolicy::OnTransientFailure,
        body_bytes: MAX_BYTES,
        deadline: run.deadline().min(Instant::now() + TIME),
    };
    let answer = run.environment().web().client().send(asked, &|host| run.check_host(host)).await;
    let answer = answer.map_err(|error| error.into_failure(&format!("the image `{url}` could not be fetched")))?;
    match answer.status.as_u16() {
        200..300 => Ok(answer),
        status @ 300..400 => {
            let to = answer.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
            let to = to.and_then(|to| url.join(to).ok()).map(|to| format!(" to {to}")).unwrap_or_default();
            let message =
                format!("the image `{url}` is redirected{to} (HTTP {status}), and redirects are not followed");
            Err(ToolFailure::new(ErrorKind::UpstreamHttp, message).next("To use that address, call the tool with it."))
        }
        404 | 410 => Err(ToolFailure::new(ErrorKind::NotFound, format!("there is no image at `{url}`"))),
        status => Err(ToolFailure::new(ErrorKind::UpstreamHttp, format!("`{url}` returned HTTP {status}"))
            .next("Use another address of the image.")),
    }
}
