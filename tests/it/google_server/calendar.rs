//! Google Calendar's REST API (v3): the events of one user, as far as tools need them. Its calendars are in Berlin, in winter.

use super::{Reply, Seen};
use axum::http::Method;
use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime};
use serde_json::{Map, Value, json};
use url::form_urlencoded;

const ZONE: &str = "Europe/Berlin";
const OFFSET_SECONDS: i32 = 3600;

/// The events of one user, in all calendars.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    /// Each with the id of its calendar.
    events: Vec<(String, Value)>,
    created: usize,
}

impl Agenda {
    /// Adds an event to the usual calendar; what is not said of it is as Google says it.
    pub(crate) fn add(&mut self, event: Value) {
        self.events.push(("primary".into(), whole(event, "bob@example.com")));
    }

    /// The events of the usual calendar.
    pub(crate) fn events(&self) -> Vec<&Value> {
        self.events.iter().filter(|(calendar, _)| calendar == "primary").map(|(_, event)| event).collect()
    }
}

/// Answers a request whose path is `rest` below `/calendar/v3/calendars/`.
pub(super) fn answered(agenda: &mut Agenda, user: &str, rest: &str, seen: &Seen) -> Reply {
    let parts: Vec<String> = rest.split('/').map(decoded).collect();
    match (&seen.method, &*parts.iter().map(String::as_str).collect::<Vec<_>>()) {
        (&Method::GET, [calendar, "events"]) => list(agenda, calendar, seen),
        (&Method::GET, [calendar, "events", id]) => {
            let found = agenda.events.iter().find(|(one, event)| one == calendar && event["id"] == *id);
            found.map_or_else(Reply::not_found, |(_, event)| Reply::json(event.clone()))
        }
        (&Method::POST, [calendar, "events"]) => insert(agenda, user, calendar, seen),
        _ => Reply::not_found(),
    }
}

fn decoded(segment: &str) -> String {
    form_urlencoded::parse(format!("s={segment}").as_bytes()).next().map(|(_, text)| text.into_owned()).unwrap()
}

fn bad(reason: &str, message: &str) -> Reply {
    Reply::error(400, reason, "INVALID_ARGUMENT", message)
}

/// The event with all that Google adds to it.
fn whole(mut event: Value, user: &str) -> Value {
    let defaults = json!({
        "kind": "calendar#event", "etag": "\"35\"", "status": "confirmed",
        "htmlLink": "https://www.google.com/calendar/event?eid=ZXYx", "created": "2025-12-01T10:00:00.000Z",
        "updated": "2025-12-01T10:00:00.000Z", "creator": {"email": user, "self": true},
        "organizer": {"email": user, "self": true}, "sequence": 0, "reminders": {"useDefault": true},
        "eventType": "default",
    });
    for (name, value) in defaults.as_object().unwrap() {
        event.as_object_mut().unwrap().entry(name).or_insert_with(|| value.clone());
    }
    event
}

/// A start or an end in time; days begin in the calendar's zone.
fn instant(bound: &Value) -> Option<DateTime<FixedOffset>> {
    let zone = FixedOffset::east_opt(OFFSET_SECONDS).unwrap();
    let local = |time: NaiveDateTime| time.and_local_timezone(zone).unwrap();
    if let Some(day) = bound["date"].as_str() {
        return Some(local(day.parse::<NaiveDate>().ok()?.into()));
    }
    let text = bound["dateTime"].as_str()?;
    DateTime::parse_from_rfc3339(text).ok().or_else(|| text.parse().ok().map(local))
}

fn list(agenda: &Agenda, calendar: &str, seen: &Seen) -> Reply {
    let is_single = seen.parameter("singleEvents") == Some("true");
    if seen.parameter("orderBy") == Some("startTime") && !is_single {
        return bad("badRequest", "The requested ordering is not available for the particular query.");
    }
    let mut bounds = Vec::new();
    for name in ["timeMin", "timeMax"] {
        match seen.parameter(name).map(DateTime::parse_from_rfc3339).transpose() {
            Ok(time) => bounds.push(time),
            Err(_) => return bad("badRequest", "Bad Request"),
        }
    }
    let words = seen.parameter("q").unwrap_or_default().to_lowercase();
    let mut found: Vec<&Value> = agenda
        .events
        .iter()
        .filter(|(one, event)| one == calendar && event["status"] != "cancelled")
        .map(|(_, event)| event)
        .filter(|event| {
            let (start, end) = (instant(&event["start"]).unwrap(), instant(&event["end"]).unwrap());
            bounds[0].is_none_or(|from| end > from) && bounds[1].is_none_or(|until| start < until)
        })
        .filter(|event| event.to_string().to_lowercase().contains(&words))
        .collect();
    found.sort_by_key(|event| instant(&event["start"]));
    let size: usize = match seen.parameter("maxResults").unwrap_or("250").parse() {
        Ok(size @ 1..=2500) => size,
        _ => return bad("invalidParameter", "Invalid value for maxResults"),
    };
    let from: usize = match seen.parameter("pageToken") {
        None => 0,
        Some(token) => match token.strip_prefix("CkAK-").and_then(|from| from.parse().ok()) {
            Some(from) => from,
            None => return bad("badRequest", "Invalid page token value."),
        },
    };
    let items: Vec<&Value> = found.iter().skip(from).take(size).copied().collect();
    let mut page = json!({
        "kind": "calendar#events", "etag": "\"p33g\"", "summary": "bob@example.com", "description": "",
        "updated": "2026-01-02T08:00:00.000Z", "timeZone": ZONE, "accessRole": "owner",
        "defaultReminders": [{"method": "popup", "minutes": 10}], "items": items,
    });
    match found.len() > from + size {
        true => page["nextPageToken"] = format!("CkAK-{}", from + size).into(),
        false => page["nextSyncToken"] = "CPDA".into(),
    }
    Reply::json(page)
}

fn insert(agenda: &mut Agenda, user: &str, calendar: &str, seen: &Seen) -> Reply {
    let event = &seen.body;
    let (start, end) = (&event["start"], &event["end"]);
    if !start.is_object() || !end.is_object() {
        return bad("required", "Missing end time.");
    }
    for bound in [start, end] {
        let has_offset = bound["dateTime"].as_str().is_some_and(|time| DateTime::parse_from_rfc3339(time).is_ok());
        let is_series = event["recurrence"].is_array();
        if bound["dateTime"].is_string() && bound["timeZone"].is_null() && (!has_offset || is_series) {
            return bad("required", "Missing time zone definition for start time.");
        }
    }
    if start["date"].is_string() != end["date"].is_string() {
        return bad("invalid", "Invalid start time.");
    }
    let (Some(from), Some(until)) = (instant(start), instant(end)) else {
        return bad("invalid", "Invalid start time.");
    };
    if until <= from {
        return bad("timeRangeEmpty", "The specified time range is empty.");
    }
    agenda.created += 1;
    let mut event: Map<String, Value> = event.as_object().unwrap().clone();
    event.insert("id".into(), format!("new{}", agenda.created).into());
    if let Some(Value::Array(attendees)) = event.get_mut("attendees") {
        for attendee in attendees {
            attendee["responseStatus"] = "needsAction".into();
        }
    }
    if event.remove("conferenceData").is_some() && seen.parameter("conferenceDataVersion") == Some("1") {
        let video = json!({"entryPointType": "video", "uri": "https://meet.google.com/new"});
        event.insert("conferenceData".into(), json!({ "entryPoints": [video] }));
    }
    let event = whole(event.into(), user);
    agenda.events.push((calendar.to_owned(), event.clone()));
    Reply::json(event)
}
