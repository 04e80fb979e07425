//! Asking for guest pages: page after page, one request at a time, and no more once LinkedIn wants none.

use super::{
    LinkedinSettings,
    job_id::JobId,
    pace::Pace,
    pages::{Card, Found, Job, Order, Wanted},
    query::JobQuery,
    reading::{PAGE_BYTES, read},
    search::{FoundJobs, Search},
};
use crate::{
    helper_port::HelperPort,
    http::pause::wanted_pause,
    services::address::below,
    web::reach::{Again, Answer, Asked, Judge, NamedBy, Reach, Redirects},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::json;
use std::{
    fmt,
    time::{Duration, Instant},
};
use tokio::time::{sleep, timeout_at};
use toolstead_domain::{error_kind::ErrorKind, tool_failure::ToolFailure};
use url::Url;

/// A page is asked for so often while it is refused.
const TRIES: u32 = 3;
/// So long LinkedIn is left alone where it does not say.
const USUAL_WAIT: Duration = Duration::from_secs(60);
/// LinkedIn's own status for requests that it does not want.
const DENIED: u16 = 999;

/// It begins as browsers do, and says who it is.
const USER_AGENT: &str = concat!("Mozilla/5.0 (compatible; toolstead/", env!("CARGO_PKG_VERSION"), ")");
/// The labels of the pages, and what they say of time, come in this language.
const LANGUAGE: &str = "en-US,en;q=0.9";

/// The guest pages, as one call asks for them.
pub struct GuestPages<'a> {
    /// The way there.
    pub reach: &'a Reach,
    /// The processes that read them.
    pub helpers: &'a dyn HelperPort,
    /// Their address.
    pub settings: &'a LinkedinSettings,
    /// The pace.
    pub pace: &'a Pace,
    /// The judge of the call.
    pub judge: Judge<'a>,
    /// The end of the call.
    pub deadline: Instant,
}

impl fmt::Debug for GuestPages<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuestPages").field("settings", self.settings).finish_non_exhaustive()
    }
}

impl GuestPages<'_> {
    /// Searches for jobs.
    ///
    /// # Errors
    /// Words that no filter has, what stands in the way of a page, and a page that holds no jobs and does not say that
    /// there are none. Jobs that were found before are not lost by it.
    pub async fn jobs(&self, query: &JobQuery) -> Result<FoundJobs, ToolFailure> {
        let mut search = Search::of(query);
        while let Some(start) = search.next_page() {
            match self.cards(query, start).await {
                Ok(page) => search.add(page),
                Err(failure) if search.is_empty() => return Err(failure),
                Err(failure) => search.break_off(&failure),
            }
        }
        Ok(search.found())
    }

    /// The cards of the page that begins there; `None` where there is no such page.
    async fn cards(&self, query: &JobQuery, start: usize) -> Result<Option<Vec<Option<Card>>>, ToolFailure> {
        let url = query.url(&self.settings.base_url, start)?;
        let answer = self.asked(&url).await?;
        if answer.status == StatusCode::BAD_REQUEST && start > 0 {
            return Ok(None);
        }
        match self.read(answer, Wanted::Cards, url).await? {
            Found::Cards(cards) if cards.iter().all(Option::is_none) => {
                Err(strange(&format!("it has {} cards of jobs, and none has a title", cards.len())))
            }
            Found::Cards(cards) => Ok(Some(cards)),
            Found::Empty => Ok(None),
            other => Err(no_use(&other)),
        }
    }

    /// A job in full.
    ///
    /// # Errors
    /// `not_found`, what stands in the way of the page, and a page without a description.
    pub async fn job(&self, id: JobId) -> Result<Job, ToolFailure> {
        let url = below(&self.settings.base_url, &format!("jobs-guest/jobs/api/jobPosting/{id}"));
        let answer = self.asked(&url).await?;
        if matches!(answer.status, StatusCode::NOT_FOUND | StatusCode::GONE) {
            let message = format!("LinkedIn has no job {id}, or none that it shows to guests");
            return Err(with_status(ToolFailure::new(ErrorKind::NotFound, message), answer.status));
        }
        // Links in it are those of the page for people.
        let page = Url::parse(&id.page()).unwrap_or(url);
        match self.read(answer, Wanted::Job, page).await? {
            Found::Job(job) => Ok(*job),
            other => Err(no_use(&other)),
        }
    }

    async fn read(&self, answer: Answer, wanted: Wanted, url: Url) -> Result<Found, ToolFailure> {
        match answer.status {
            StatusCode::OK => read(self.helpers, &Order { wanted, url }, answer.body, self.deadline).await,
            status if status.is_redirection() => Err(led_away(&answer)),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(with_status(wants_login(), answer.status)),
            status => {
                let message = format!("LinkedIn answered with HTTP {}", status.as_u16());
                Err(with_status(ToolFailure::new(ErrorKind::UpstreamHttp, message), status))
            }
        }
    }

    /// Asks for a page when it is its turn. While LinkedIn refuses, the turn is kept, so that nobody else asks either.
    async fn asked(&self, url: &Url) -> Result<Answer, ToolFailure> {
        let too_late = |_| {
            let message = "other requests to LinkedIn go first, and the time of the call is over";
            ToolFailure::new(ErrorKind::Timeout, message).next("Ask again, for fewer jobs at once.")
        };
        let _turn = timeout_at(self.deadline.into(), self.pace.turn()).await.map_err(too_late)?;
        let mut tries = 0;
        loop {
            tries += 1;
            let asked = Asked {
                method: Method::GET,
                url,
                headers: self.headers(),
                body: Bytes::new(),
                named_by: NamedBy::Configuration,
                redirects: Redirects::None,
                // Tried again below, with longer pauses.
                again: Again::Never,
                body_bytes: PAGE_BYTES,
                deadline: self.deadline,
            };
            let answer = self.reach.send(asked, self.judge).await.map_err(|error| error.into_failure("LinkedIn"))?;
            let is_denied = matches!(answer.status.as_u16(), 429 | DENIED);
            if !is_denied && !answer.status.is_server_error() {
                return Ok(answer);
            }
            let said = wanted_pause(&answer.headers);
            let pause = said.unwrap_or_else(|| self.pace.apart() * 2_u32.pow(tries));
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
        Some(_) => format!("It wants to be left alone for {wait} seconds: ask again after that."),
        None => format!("It does not say for how long: leave it alone for {wait} seconds at least, then ask for less."),
    };
    let message = format!("LinkedIn refuses requests for now (HTTP {})", status.as_u16());
    ToolFailure::new(ErrorKind::RateLimited, message).next(next)
}

fn wants_login() -> ToolFailure {
    ToolFailure::new(ErrorKind::AuthRequired, "LinkedIn shows this only to people who are signed in")
        .next("Nobody signs in there for you: try later, ask for something else, or give the person the address.")
}

fn led_away(answer: &Answer) -> ToolFailure {
    let location = answer.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
    let target = answer.leads_to.clone().or_else(|| answer.url.join(location?).ok());
    let is_wall = target.as_ref().is_some_and(|target| {
        let mut parts = target.path_segments().into_iter().flatten();
        parts.any(|part| matches!(part, "authwall" | "login" | "checkpoint" | "uas" | "signup"))
    });
    let failure = match (is_wall, target) {
        (true, _) => wants_login(),
        (false, Some(target)) => {
            let place = target.origin().ascii_serialization();
            strange(&format!("it leads to another page, at {place}, which is not followed"))
        }
        (false, None) => strange("it leads to another page and does not say which"),
    };
    with_status(failure, answer.status)
}

/// The failure where a page is not what was asked for.
fn no_use(found: &Found) -> ToolFailure {
    match found {
        Found::Wall => wants_login(),
        Found::Scripts => ToolFailure::new(
            ErrorKind::RateLimited,
            "LinkedIn answered with a page of scripts alone, as it does to programs that it wants to keep away",
        )
        .next(format!("Leave it alone for {} seconds at least, then ask for less.", USUAL_WAIT.as_secs())),
        Found::Empty => strange("it is empty"),
        Found::Cards(_) | Found::Job(_) | Found::Other => strange("it holds nothing of what such a page holds"),
    }
}

fn strange(what: &str) -> ToolFailure {
    let message = format!("the page of LinkedIn was not understood: {what}");
    ToolFailure::new(ErrorKind::UpstreamProtocol, message)
        .next("Its pages may have changed; that is for whoever runs Toolstead.")
}
