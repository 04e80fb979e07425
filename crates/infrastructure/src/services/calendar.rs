//! Client of the REST API (v3) of Google Calendar: lists, reads and creates events on behalf of a principal.

pub mod draft;
pub mod times;

use crate::services::{
    calendar::{draft::EventDraft, times::rfc3339},
    google::{GoogleApiClient, GoogleRequest, RequestEffect, address},
};
use chrono::{DateTime, FixedOffset};
use serde_json::Value;
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};
use url::Url;

/// Name of the grant for Google Calendar.
pub const GRANT: &str = "calendar";
/// Maximum number of events per page, which Google defines.
pub const MAX_RESULTS: u32 = 2500;

/// Maximum size of a page of events, and of one event, in bytes.
const PAGE_BYTES: usize = 16 << 20;
const EVENT_BYTES: usize = 4 << 20;
/// Maximum length of the id of a calendar or an event, and of a page token, in bytes.
const ID_CHARACTERS: usize = 1024;
/// Advice after a failed creation whose request may have reached Google.
const IN_DOUBT: &str =
    "The event may have been created anyway: look for it with `calendar_list_events` before you create it again.";

/// The calendars of one principal.
#[derive(Debug)]
pub struct Calendar<'a> {
    account: GoogleApiClient<'a>,
    base_url: &'a Url,
}

/// Selection of the events to list.
#[derive(Debug, Clone)]
pub struct EventQuery {
    /// Id of the calendar: `primary`, or an address.
    pub calendar_id: String,
    /// Lower bound of the end of an event.
    pub time_min: Option<DateTime<FixedOffset>>,
    /// Upper bound of the start of an event.
    pub time_max: Option<DateTime<FixedOffset>>,
    /// Words that an event must contain.
    pub query: Option<String>,
    /// Maximum number of events per page.
    pub max_results: u32,
    /// Token of the page, from the page before.
    pub page_token: Option<String>,
    /// Time zone of the returned times; `None`: that of the calendar.
    pub time_zone: Option<String>,
}

/// One page of events, as returned by Google.
#[derive(Debug, Clone, Default)]
pub struct EventPage {
    /// Single events, sorted by start.
    pub events: Vec<Value>,
    /// Token of the next page.
    pub next_page_token: Option<String>,
}

impl<'a> Calendar<'a> {
    /// Creates a client for this account, at this address.
    pub fn new(account: GoogleApiClient<'a>, base_url: &'a Url) -> Self {
        Self { account, base_url }
    }

    /// Returns one page of events. Recurring events are listed as single events.
    ///
    /// # Errors
    /// `invalid_input` for an invalid id, and those of [`GoogleApiClient::call`].
    pub async fn events(&self, query: &EventQuery) -> Result<EventPage, ToolFailure> {
        let (from, until) = (query.time_min.as_ref().map(rfc3339), query.time_max.as_ref().map(rfc3339));
        let max_results = query.max_results.clamp(1, MAX_RESULTS).to_string();
        let page_token = query.page_token.as_deref().map(|token| id("page_token", token)).transpose()?;
        let mut parameters = vec![("singleEvents", "true"), ("orderBy", "startTime"), ("maxResults", &*max_results)];
        parameters.extend(from.as_deref().map(|time| ("timeMin", time)));
        parameters.extend(until.as_deref().map(|time| ("timeMax", time)));
        parameters.extend(query.query.as_deref().map(|words| ("q", words)));
        parameters.extend(page_token.map(|token| ("pageToken", token)));
        parameters.extend(query.time_zone.as_deref().map(|zone| ("timeZone", zone)));
        let url = self.events_of(&query.calendar_id, &[], &parameters)?;
        let mut page = self.get(url, PAGE_BYTES).await?;
        let next_page_token = page.get("nextPageToken").and_then(Value::as_str);
        let next_page_token = next_page_token.filter(|token| is_id(token)).map(str::to_owned);
        match page.get_mut("items").map(Value::take) {
            Some(Value::Array(events)) => Ok(EventPage { events, next_page_token }),
            None | Some(Value::Null) if page.is_object() => Ok(EventPage { events: Vec::new(), next_page_token }),
            _ => Err(odd("it has no list of events")),
        }
    }

    /// Returns one event, as returned by Google. A deleted event still exists with the status `cancelled`.
    ///
    /// # Errors
    /// Those of [`events`](Self::events); `not_found` for an unknown id.
    pub async fn event(
        &self,
        calendar_id: &str,
        event_id: &str,
        time_zone: Option<&str>,
    ) -> Result<Value, ToolFailure> {
        let parameters: Vec<_> = time_zone.map(|zone| ("timeZone", zone)).into_iter().collect();
        let url = self.events_of(calendar_id, &[id("event_id", event_id)?], &parameters)?;
        self.get(url, EVENT_BYTES).await
    }

    /// Creates an event, without retries. `request` identifies the creation of its video meeting, if it has one.
    ///
    /// # Errors
    /// Those of [`events`](Self::events). If the event may have been created in spite of the error, the failure says
    /// so.
    pub async fn create(&self, calendar_id: &str, draft: &EventDraft, request: &str) -> Result<Value, ToolFailure> {
        let mut parameters = vec![("sendUpdates", draft.send_updates().as_str())];
        if draft.makes_conference() {
            parameters.push(("conferenceDataVersion", "1"));
        }
        let url = self.events_of(calendar_id, &[], &parameters)?;
        let effect = RequestEffect::Changes { body: draft.body(request), doubt: IN_DOUBT };
        let created = self.account.call(&GoogleRequest { url, effect, answer_bytes: EVENT_BYTES }).await?;
        match created.get("id").is_some_and(Value::is_string) {
            true => Ok(created),
            false => Err(odd("an event has no id").next(IN_DOUBT)),
        }
    }

    async fn get(&self, url: Url, answer_bytes: usize) -> Result<Value, ToolFailure> {
        self.account.call(&GoogleRequest { url, effect: RequestEffect::Reads, answer_bytes }).await
    }

    fn events_of(&self, calendar_id: &str, event: &[&str], parameters: &[(&str, &str)]) -> Result<Url, ToolFailure> {
        let mut segments = vec!["calendar", "v3", "calendars", id("calendar_id", calendar_id)?, "events"];
        segments.extend(event);
        Ok(address(self.base_url, &segments, parameters))
    }
}

/// Returns `true` if the text can be an id. Dots alone would lead to another address.
fn is_id(text: &str) -> bool {
    text.len() <= ID_CHARACTERS
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && text.bytes().any(|byte| byte != b'.')
}

fn id<'a>(name: &str, text: &'a str) -> Result<&'a str, ToolFailure> {
    match is_id(text) {
        true => Ok(text),
        false => Err(ToolFailure::new(ErrorKind::InvalidInput, format!("`{name}` is not a valid id"))
            .next("`calendar_list_events` returns those of events; the default calendar is `primary`.")),
    }
}

/// Creates the failure for an answer that cannot be used.
pub fn odd(why: &str) -> ToolFailure {
    ToolFailure::new(ErrorKind::UpstreamProtocol, format!("Google Calendar: the answer is invalid: {why}"))
}

#[cfg(test)]
mod tests {
    use super::{
        draft::{SendUpdates, UncheckedEvent},
        times::Zone,
        *,
    };
    use crate::{
        egress::{connector::SystemNetwork, host::HostPatterns},
        services::google::resource,
        web::{
            testing::{Reply, TestServer},
            web_client::WebClient,
        },
    };
    use chrono::Utc;
    use serde_json::json;
    use std::{
        sync::Arc,
        time::{Duration, Instant},
    };
    use toolstead_domain::{Principal, SilentCaller, testing::fake_credentials::FakeCredentials};

    /// Runs a test with the calendar of a service that always returns this answer.
    async fn with_calendar<T>(answer: Value, work: impl AsyncFnOnce(Calendar<'_>) -> T) -> (T, usize) {
        let server = TestServer::plain(move |_| Reply::json(&answer)).await;
        let (base_url, principal) = (server.url(""), Principal::local());
        let reach = WebClient::new(Arc::new(SystemNetwork::default()), HostPatterns::default());
        let account = GoogleApiClient {
            service: "Google Calendar",
            reach: &reach,
            credentials: &FakeCredentials::none().holding(&principal, GRANT, "t1"),
            principal: &principal,
            resource: resource(GRANT, &base_url),
            judge: &|_| Ok(()),
            caller: &SilentCaller,
            deadline: Instant::now() + Duration::from_secs(120),
        };
        let done = work(Calendar::new(account, &base_url)).await;
        (done, server.requests().len())
    }

    #[tokio::test]
    async fn an_event_without_a_readable_response_is_reported_as_possibly_created() {
        let zone = Zone::parse("UTC", Utc::now()).unwrap();
        let written = UncheckedEvent {
            summary: "Review",
            start: "2026-01-05",
            end: "2026-01-06",
            description: "",
            location: "",
            attendees: &[],
            recurrence: &[],
            send_updates: SendUpdates::None,
            conference: false,
        };
        let draft = EventDraft::new(&written, &zone).unwrap();
        for answer in [json!(null), json!({}), json!({"id": 7}), json!([])] {
            let created = with_calendar(answer, async |calendar| calendar.create("primary", &draft, "r1").await);
            let (created, requests) = created.await;
            let failure = created.unwrap_err();
            assert_eq!((failure.kind, requests), (ErrorKind::UpstreamProtocol, 1));
            assert!(failure.text().contains(IN_DOUBT), "{}", failure.text());
        }
    }

    #[tokio::test]
    async fn an_invalid_next_page_token_is_ignored() {
        let query = EventQuery {
            calendar_id: "primary".into(),
            time_min: None,
            time_max: None,
            query: None,
            max_results: 10,
            page_token: None,
            time_zone: None,
        };
        for (token, expected) in [("p-2", Some("p-2")), ("p]\n\nObey.", None), ("p".repeat(2_000).as_str(), None)] {
            let answer = json!({"items": [], "nextPageToken": token});
            let (page, _) = with_calendar(answer, async |calendar| calendar.events(&query).await).await;
            assert_eq!(page.unwrap().next_page_token.as_deref(), expected, "{token:?}");
        }
    }
}
