//! Requests for guest pages: page after page, one at a time, and none after LinkedIn refuses them.

use super::{
    LinkedinSettings,
    job_id::JobId,
    pace::RateLimiter,
    pages::{Job, JobCard, PageParseRequest, ParsedPage, RequestedPageKind},
    query::JobQuery,
    reading::{PAGE_BYTES, read},
    search::{FoundJobs, SearchProgress},
};
use crate::{
    helper_port::HelperPort,
    http::pause::wanted_pause,
    services::address::below,
    web::web_client::{HostCheck, RedirectPolicy, RetryPolicy, UrlSource, WebClient, WebRequest, WebResponse},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::json;
use std::{
    fmt,
    time::{Duration, Instant},
};
use tokio::time::{sleep, timeout_at};
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};
use url::Url;

/// Maximum number of requests for a page that is refused.
const TRIES: u32 = 3;
/// Pause to suggest if LinkedIn names none.
const USUAL_WAIT: Duration = Duration::from_secs(60);
/// LinkedIn's own status for refused requests.
const DENIED: u16 = 999;

/// User agent: it begins like those of browsers, and names Toolstead.
const USER_AGENT: &str = concat!("Mozilla/5.0 (compatible; toolstead/", env!("CARGO_PKG_VERSION"), ")");
/// Language of the labels and relative times in the pages.
const LANGUAGE: &str = "en-US,en;q=0.9";

/// Client of LinkedIn's guest pages, for one call.
pub struct GuestPageClient<'a> {
    /// HTTP client.
    pub reach: &'a WebClient,
    /// Child processes that parse the pages.
    pub helpers: &'a dyn HelperPort,
    /// Address and user agent.
    pub settings: &'a LinkedinSettings,
    /// Limiter of the request rate.
    pub pace: &'a RateLimiter,
    /// Check, made before each request, that the host may be reached.
    pub judge: HostCheck<'a>,
    /// Deadline of the call.
    pub deadline: Instant,
}

impl fmt::Debug for GuestPageClient<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuestPageClient").field("settings", self.settings).finish_non_exhaustive()
    }
}

impl GuestPageClient<'_> {
    /// Searches for jobs.
    ///
    /// # Errors
    /// Words that no filter has, failed requests, and pages without jobs that do not say so. An error after the first
    /// jobs does not lose them.
    pub async fn jobs(&self, query: &JobQuery) -> Result<FoundJobs, ToolFailure> {
        let mut search = SearchProgress::of(query);
        while let Some(start) = search.next_page() {
            match self.cards(query, start).await {
                Ok(page) => search.add(page),
                Err(failure) if search.is_empty() => return Err(failure),
                Err(failure) => search.break_off(&failure),
            }
        }
        Ok(search.found())
    }

    /// Returns the cards of the page that begins with the job of index `start`; `None` if there is no such page. A card
    /// without a title is `None` at its position.
    async fn cards(&self, query: &JobQuery, start: usize) -> Result<Option<Vec<Option<JobCard>>>, ToolFailure> {
        let url = query.url(&self.settings.base_url, start)?;
        let answer = self.asked(&url).await?;
        if answer.status == StatusCode::BAD_REQUEST && start > 0 {
            return Ok(None);
        }
        match self.read(answer, RequestedPageKind::Cards, url).await? {
            ParsedPage::Cards(cards) if cards.iter().all(Option::is_none) => {
                Err(strange(&format!("it has {} job cards without a title", cards.len())))
            }
            ParsedPage::Cards(cards) => Ok(Some(cards)),
            ParsedPage::Empty => Ok(None),
            other => Err(no_use(&other)),
        }
    }

    /// Returns a job in full.
    ///
    /// # Errors
    /// `not_found`, failed requests, and pages without a description.
    pub async fn job(&self, id: JobId) -> Result<Job, ToolFailure> {
        let url = below(&self.settings.base_url, &format!("jobs-guest/jobs/api/jobPosting/{id}"));
        let answer = self.asked(&url).await?;
        if matches!(answer.status, StatusCode::NOT_FOUND | StatusCode::GONE) {
            let message = format!("LinkedIn has no job {id}, or does not show it to guests");
            return Err(with_status(ToolFailure::new(ErrorKind::NotFound, message), answer.status));
        }
        // Relative links refer to the page for people.
        let page = Url::parse(&id.page()).unwrap_or(url);
        match self.read(answer, RequestedPageKind::Job, page).await? {
            ParsedPage::Job(job) => Ok(*job),
            other => Err(no_use(&other)),
        }
    }

    async fn read(&self, answer: WebResponse, wanted: RequestedPageKind, url: Url) -> Result<ParsedPage, ToolFailure> {
        match answer.status {
            StatusCode::OK => read(self.helpers, &PageParseRequest { wanted, url }, answer.body, self.deadline).await,
            status if status.is_redirection() => Err(led_away(&answer)),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(with_status(wants_login(), answer.status)),
            status => {
                let message = format!("LinkedIn answered with HTTP {}", status.as_u16());
                Err(with_status(ToolFailure::new(ErrorKind::UpstreamHttp, message), status))
            }
        }
    }

    /// Requests a page when its turn has come, again if LinkedIn refuses or fails, at most three times. The turn is not
    /// released before, so that no other request is made while LinkedIn refuses.
    async fn asked(&self, url: &Url) -> Result<WebResponse, ToolFailure> {
        let too_late = |_| {
            let message = "the call timed out while it waited for other requests to LinkedIn";
            ToolFailure::new(ErrorKind::Timeout, message).next("Try again with fewer jobs at once.")
        };
        let _turn = timeout_at(self.deadline.into(), self.pace.turn()).await.map_err(too_late)?;
        let mut tries = 0;
        loop {
            tries += 1;
            let asked = WebRequest {
                method: Method::GET,
                url,
                headers: self.headers(),
                body: Bytes::new(),
                url_source: UrlSource::Configuration,
                redirects: RedirectPolicy::None,
                // Retried below, with longer pauses.
                retry: RetryPolicy::Never,
                body_bytes: PAGE_BYTES,
                deadline: self.deadline,
            };
            let answer = self.reach.send(asked, self.judge).await.map_err(|error| error.into_failure("LinkedIn"))?;
            let is_denied = matches!(answer.status.as_u16(), 429 | DENIED);
            if !is_denied && !answer.status.is_server_error() {
                return Ok(answer);
            }
            let said = wanted_pause(&answer.headers);
            let pause = said.unwrap_or_else(|| self.pace.pause() * 2_u32.pow(tries));
            let is_too_long = Instant::now().checked_add(pause).is_none_or(|then| then >= self.deadline);
            if tries == TRIES || is_too_long {
                return match is_denied {
                    true => Err(with_status(denied(&answer.status, said), answer.status)),
                    false => Ok(answer),
                };
            }
            sleep(pause).await;
        }
    }

    fn headers(&self) -> HeaderMap {
        let own = self.settings.user_agent.as_deref().and_then(|name| HeaderValue::from_str(name).ok());
        HeaderMap::from_iter([
            (header::USER_AGENT, own.unwrap_or(HeaderValue::from_static(USER_AGENT))),
            (header::ACCEPT, HeaderValue::from_static("text/html")),
            (header::ACCEPT_LANGUAGE, HeaderValue::from_static(LANGUAGE)),
        ])
    }
}

fn with_status(failure: ToolFailure, status: StatusCode) -> ToolFailure {
    failure.with_data(json!({"status": status.as_u16()}))
}

fn denied(status: &StatusCode, said: Option<Duration>) -> ToolFailure {
    let wait = said.unwrap_or(USUAL_WAIT).as_secs();
    let next = match said {
        Some(_) => format!("Wait {wait} seconds as LinkedIn requires, then try again."),
        None => format!("Wait at least {wait} seconds, then request less."),
    };
    let message = format!("LinkedIn refuses requests for now (HTTP {})", status.as_u16());
    ToolFailure::new(ErrorKind::RateLimited, message).next(next)
}

fn wants_login() -> ToolFailure {
    ToolFailure::new(ErrorKind::AuthRequired, "LinkedIn shows this only to signed-in users")
        .next("Toolstead cannot sign in there: try later, request something else, or give the user the address.")
}

fn led_away(answer: &WebResponse) -> ToolFailure {
    let location = answer.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
    let target = answer.redirect_target.clone().or_else(|| answer.url.join(location?).ok());
    let is_wall = target.as_ref().is_some_and(|target| {
        let mut parts = target.path_segments().into_iter().flatten();
        parts.any(|part| matches!(part, "authwall" | "login" | "checkpoint" | "uas" | "signup"))
    });
    let failure = match (is_wall, target) {
        (true, _) => wants_login(),
        (false, Some(target)) => {
            let place = target.origin().ascii_serialization();
            strange(&format!("it redirects to {place}, which is not followed"))
        }
        (false, None) => strange("it redirects without an address"),
    };
    with_status(failure, answer.status)
}

/// Returns the failure for a page of another kind than requested.
fn no_use(found: &ParsedPage) -> ToolFailure {
    match found {
        ParsedPage::Wall => wants_login(),
        ParsedPage::Scripts => ToolFailure::new(
            ErrorKind::RateLimited,
            "LinkedIn answered only with scripts, as it does to block programs",
        )
        .next(format!("Wait at least {} seconds, then request less.", USUAL_WAIT.as_secs())),
        ParsedPage::Empty => strange("it is empty"),
        ParsedPage::Cards(_) | ParsedPage::Job(_) | ParsedPage::Other => strange("it has none of the expected content"),
    }
}

fn strange(what: &str) -> ToolFailure {
    let message = format!("the page of LinkedIn could not be parsed: {what}");
    ToolFailure::new(ErrorKind::UpstreamProtocol, message)
        .next("Its pages may have changed; report this to the operator of Toolstead.")
}
