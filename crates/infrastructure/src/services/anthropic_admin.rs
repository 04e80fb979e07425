//! Anthropic's Admin API: reports of usage and cost.

pub mod money;
pub mod report;
#[cfg(test)]
mod tests;
pub mod totals;

use crate::{
    http::pause::wanted_pause,
    services::{address::below, error_message::extract_message, settings::AnthropicAdminSettings},
    web::web_client::{HostCheck, RedirectPolicy, RetryPolicy, UrlSource, WebClient, WebRequest, WebResponse},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use report::ReportQuery;
use serde_json::{Value, json};
use std::time::Instant;
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};

/// Version of the API.
const VERSION: &str = "2023-06-01";
/// Value of the header that is required for reports by speed.
const FAST_MODE: &str = "fast-mode-2026-02-01";
/// Maximum size of one page of a report, and of all pages that are read at once, in bytes.
const PAGE_BYTES: usize = 8 << 20;
const REPORT_BYTES: usize = 32 << 20;

/// Access to the API for one call.
#[derive(Clone, Copy)]
pub struct AdminApi<'a> {
    /// Address and key of the API.
    pub settings: &'a AnthropicAdminSettings,
    /// HTTP client.
    pub reach: &'a WebClient,
    /// Check, made before each request, that the host may be reached.
    pub judge: HostCheck<'a>,
    /// Deadline of all requests together.
    pub deadline: Instant,
}

/// Pages of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct AdminReport {
    /// Buckets or records, in the order of the answers.
    pub data: Vec<Value>,
    /// Token of the next page; `None` after the last one.
    pub next_page: Option<String>,
    /// Number of pages that were read.
    pub pages: usize,
}

impl AdminApi<'_> {
    /// Reads at most `max_pages` pages of a report. Stops earlier if they become too large.
    ///
    /// # Errors
    /// Refusals of the API, by kind: `invalid_input` (400), `auth_required` (401, and 403 for a key that does not
    /// belong to an administrator), `not_found`, `rate_limited` (429, 529), otherwise `upstream_http`;
    /// `upstream_protocol` if the answer is not a report.
    pub async fn report(&self, query: &ReportQuery, max_pages: usize) -> Result<AdminReport, ToolFailure> {
        let mut report = AdminReport { data: Vec::new(), next_page: query.page.clone(), pages: 0 };
        let mut bytes = 0;
        loop {
            let answer = self.page(query, report.next_page.as_deref()).await?;
            bytes += answer.body.len();
            let (data, next) = page_of(&answer.body)?;
            report.data.extend(data);
            report.pages += 1;
            if next.is_some() && next == report.next_page {
                return Err(no_report("its next page is the same page"));
            }
            report.next_page = next;
            if report.next_page.is_none() || report.pages >= max_pages || bytes >= REPORT_BYTES {
                return Ok(report);
            }
        }
    }

    async fn page(&self, query: &ReportQuery, page: Option<&str>) -> Result<WebResponse, ToolFailure> {
        let mut url = below(&self.settings.base_url, query.action.path());
        url.query_pairs_mut().extend_pairs(&query.parameters).extend_pairs(page.map(|page| ("page", page)));
        let asked = WebRequest {
            method: Method::GET,
            url: &url,
            headers: self.headers(query)?,
            body: Bytes::new(),
            url_source: UrlSource::Configuration,
            // The key must only be sent to the configured host.
            redirects: RedirectPolicy::None,
            retry: RetryPolicy::OnTransientFailure,
            body_bytes: PAGE_BYTES,
            deadline: self.deadline,
        };
        let sent = self.reach.send(asked, self.judge).await;
        let answer = sent.map_err(|error| error.into_failure("Anthropic's Admin API"))?;
        match answer.status.is_success() {
            true if answer.is_cut => {
                let message = format!("a page of the report has more than {PAGE_BYTES} bytes");
                Err(ToolFailure::new(ErrorKind::TooLarge, message)
                    .next("Use a smaller `limit`, or group by fewer fields."))
            }
            true => Ok(answer),
            false => Err(self.refusal(&answer)),
        }
    }

    fn headers(&self, query: &ReportQuery) -> Result<HeaderMap, ToolFailure> {
        let mut key = HeaderValue::try_from(self.settings.key.expose()).map_err(|_| {
            ToolFailure::new(ErrorKind::Unavailable, "the key of the Admin API contains invalid characters")
        })?;
        key.set_sensitive(true);
        let mut headers = HeaderMap::from_iter([
            (header::ACCEPT, HeaderValue::from_static("application/json")),
            (HeaderName::from_static("x-api-key"), key),
            (HeaderName::from_static("anthropic-version"), HeaderValue::from_static(VERSION)),
        ]);
        if query.needs_speed_header {
            headers.insert(HeaderName::from_static("anthropic-beta"), HeaderValue::from_static(FAST_MODE));
        }
        Ok(headers)
    }

    fn refusal(&self, answer: &WebResponse) -> ToolFailure {
        let status = answer.status.as_u16();
        let (kind, what, next) = match status {
            400 => (ErrorKind::InvalidInput, "rejected the query", "Correct what it names, and try again."),
            401 => (ErrorKind::AuthRequired, "rejected the key", "The operator must check the key."),
            403 => (
                ErrorKind::AuthRequired,
                "denies access to this key",
                "Reports require the key of an administrator (`sk-ant-admin…`), not one for models.",
            ),
            404 => (ErrorKind::NotFound, "has no such report", "The operator must check its address."),
            429 => (ErrorKind::RateLimited, "received too many requests", "Try again later, with fewer pages."),
            529 => (ErrorKind::RateLimited, "is overloaded", "Try again later."),
            500..=599 => (ErrorKind::UpstreamHttp, "failed", "Try again later."),
            _ => (ErrorKind::UpstreamHttp, "has no answer", "The operator must check its address."),
        };
        let words = extract_message(&answer.body, Some(&self.settings.key));
        let colon = if words.is_empty() { "" } else { ": " };
        let failure = ToolFailure::new(kind, format!("Anthropic's Admin API {what} (HTTP {status}){colon}{words}"));
        match wanted_pause(&answer.headers).filter(|_| kind == ErrorKind::RateLimited) {
            Some(wait) => {
                let seconds = wait.as_secs_f64().ceil();
                failure.next(format!("Try again in {seconds} s.")).with_data(json!({"retry_after_seconds": seconds}))
            }
            None => failure.next(next),
        }
    }
}

impl std::fmt::Debug for AdminApi<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdminApi").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Returns the data of a page, and the token of the next page.
fn page_of(body: &[u8]) -> Result<(Vec<Value>, Option<String>), ToolFailure> {
    let mut page: Value =
        serde_json::from_slice(body).map_err(|error| no_report("it is not valid JSON").caused_by(error))?;
    let Some(Value::Array(data)) = page.get_mut("data").map(Value::take) else {
        return Err(no_report("it has no list `data`"));
    };
    if !data.iter().all(Value::is_object) {
        return Err(no_report("not all of its `data` are objects"));
    }
    let next = page["next_page"].as_str().map(str::to_owned);
    match (page["has_more"].as_bool(), next) {
        (Some(true), None) => Err(no_report("it has more pages, but no address for them")),
        (Some(true), next) => Ok((data, next)),
        _ => Ok((data, None)),
    }
}

fn no_report(why: &str) -> ToolFailure {
    ToolFailure::new(ErrorKind::UpstreamProtocol, format!("the answer of Anthropic's Admin API is not a report: {why}"))
}
