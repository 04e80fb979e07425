//! An event to be created. It is checked before approval is requested.

use crate::services::{
    calendar::times::{DateOrDateTime, InvalidTime, Zone, rfc3339},
    mail_address,
};
use serde_json::{Map, Value, json};
use std::fmt;

/// Maximum length of attendees and summary together, in characters: an approval request shows at most this.
const SHOWN_CHARACTERS: usize = 1_800;
/// Maximum number of attendees, which Google defines.
pub const MAX_ATTENDEES: usize = 200;
/// Maximum length of an invalid address in an error, in characters.
const TOLD_CHARACTERS: usize = 200;
const RULE_BYTES: usize = 500;

/// Recipients of notification mails about an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SendUpdates {
    /// No one.
    #[default]
    None,
    /// All attendees.
    All,
    /// Attendees that use another calendar than Google's.
    ExternalOnly,
}

impl SendUpdates {
    /// Returns the value for the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::All => "all",
            Self::ExternalOnly => "externalOnly",
        }
    }
}

/// An event, as the caller wrote it.
#[derive(Debug, Clone, Copy)]
pub struct UncheckedEvent<'a> {
    /// Title.
    pub summary: &'a str,
    /// Start: a day or a time.
    pub start: &'a str,
    /// End: a time, or the day after the last whole day.
    pub end: &'a str,
    /// Description.
    pub description: &'a str,
    /// Location.
    pub location: &'a str,
    /// Mail addresses of the attendees.
    pub attendees: &'a [String],
    /// Recurrence rules (RFC 5545).
    pub recurrence: &'a [String],
    /// Recipients of notification mails.
    pub send_updates: SendUpdates,
    /// `true` to create a video meeting for the event.
    pub conference: bool,
}

/// An event that can be created.
#[derive(Debug, Clone)]
pub struct EventDraft {
    event: Map<String, Value>,
    summary: String,
    attendees: Vec<String>,
    send_updates: SendUpdates,
    conference: bool,
}

/// The reason why an event is not created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventDraftError {
    /// A time cannot be parsed.
    #[error("`{0}`: {1}")]
    Time(&'static str, InvalidTime),
    /// One bound is a day, the other one a time.
    #[error("`start` and `end` differ in kind: use days for whole days (\"2026-01-05\"), or times for both")]
    Kinds,
    /// The event does not end after it begins.
    #[error("`end` must be after `start`: `start` is {start}, `end` {end}")]
    Order {
        /// The start.
        start: String,
        /// The end.
        end: String,
    },
    /// The end of whole days is their last day instead of the day after it.
    #[error("`end` is the day after the last one: for an event on {0} alone it is \"{1}\"")]
    NoDays(String, String),
    /// A text contains a control character.
    #[error("`{0}` contains a line break or another control character; nothing was created")]
    Control(&'static str),
    /// An address is invalid.
    #[error("`attendees`: {address:?} is not a mail address: {why}; write \"name@example.com\"")]
    Address {
        /// The text.
        address: String,
        /// The reason.
        why: &'static str,
    },
    /// There are too many attendees.
    #[error("`attendees` has {0} addresses, an event may have at most {MAX_ATTENDEES}")]
    Attendees(usize),
    /// Attendees and summary are too long for an approval request.
    #[error("attendees and summary have {0} characters, the approver sees at most {SHOWN_CHARACTERS}: invite a group")]
    TooMuch(usize),
    /// A recurrence rule is invalid.
    #[error("`recurrence`: {0:?} is not a rule like \"RRULE:FREQ=WEEKLY;COUNT=4\"")]
    Rule(String),
    /// A recurring event at a time needs a named time zone, which defines its clock changes.
    #[error("a series of times requires the name of a time zone: set `time_zone`, like \"Europe/Berlin\"")]
    NamelessZone,
}

impl EventDraft {
    /// Checks an event. Times without an offset are in this zone.
    ///
    /// # Errors
    /// [`EventDraftError`].
    pub fn new(written: &UncheckedEvent<'_>, zone: &Zone) -> Result<Self, EventDraftError> {
        let moment = |name, text| DateOrDateTime::parse(text, zone).map_err(|error| EventDraftError::Time(name, error));
        let (start, end) = (moment("start", written.start)?, moment("end", written.end)?);
        check_order(start, end)?;
        for (name, text) in [("summary", written.summary), ("location", written.location)] {
            if text.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
                return Err(EventDraftError::Control(name));
            }
        }
        if written.description.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
            return Err(EventDraftError::Control("description"));
        }
        let attendees = addresses(written.attendees)?;
        let mut event = Map::new();
        event.insert("summary".into(), written.summary.into());
        event.insert("start".into(), bound(start, zone));
        event.insert("end".into(), bound(end, zone));
        for (name, text) in [("description", written.description), ("location", written.location)] {
            if !text.is_empty() {
                event.insert(name.into(), text.into());
            }
        }
        if !attendees.is_empty() {
            let list: Vec<Value> = attendees.iter().map(|address| json!({"email": address})).collect();
            event.insert("attendees".into(), list.into());
        }
        if !written.recurrence.is_empty() {
            let is_nameless = matches!(start, DateOrDateTime::Instant(_)) && zone.name().is_none();
            if let Some(odd) = written.recurrence.iter().find(|rule| !is_rule(rule)) {
                return Err(EventDraftError::Rule(odd.chars().take(100).collect()));
            }
            if is_nameless {
                return Err(EventDraftError::NamelessZone);
            }
            event.insert("recurrence".into(), written.recurrence.into());
        }
        let draft = Self {
            event,
            summary: written.summary.to_owned(),
            attendees,
            send_updates: written.send_updates,
            conference: written.conference,
        };
        match draft.invitation().map_or(0, |text| text.chars().count()) {
            characters if characters > SHOWN_CHARACTERS => Err(EventDraftError::TooMuch(characters)),
            _ => Ok(draft),
        }
    }

    /// Returns the invitation, for the approver; `None` without attendees. Addresses come first and contain no blank,
    /// comma or semicolon, so that no summary can be mistaken for one.
    pub fn invitation(&self) -> Option<String> {
        (!self.attendees.is_empty()).then(|| self.to_string())
    }

    /// Returns the recipients of notification mails.
    pub fn send_updates(&self) -> SendUpdates {
        self.send_updates
    }

    /// Returns `true` if a video meeting is created for the event.
    pub fn makes_conference(&self) -> bool {
        self.conference
    }

    /// Returns the body of the request; `request` identifies the creation of the video meeting.
    pub fn body(&self, request: &str) -> Value {
        let mut event = self.event.clone();
        if self.conference {
            let solution = json!({"type": "hangoutsMeet"});
            let create = json!({"requestId": request, "conferenceSolutionKey": solution});
            event.insert("conferenceData".into(), json!({"createRequest": create}));
        }
        event.into()
    }
}

impl fmt::Display for EventDraft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match self.send_updates {
            SendUpdates::None => "without a mail",
            SendUpdates::All => "by mail",
            SendUpdates::ExternalOnly => "by mail outside of Google Calendar",
        };
        write!(f, "{}; invitation {by}: {}", self.attendees.join(", "), self.summary)
    }
}

fn check_order(start: DateOrDateTime, end: DateOrDateTime) -> Result<(), EventDraftError> {
    match (start, end) {
        (DateOrDateTime::Day(first), DateOrDateTime::Day(end)) if end <= first => {
            let next = first.succ_opt().unwrap_or(first).to_string();
            if end == first {
                Err(EventDraftError::NoDays(first.to_string(), next))
            } else {
                Err(EventDraftError::Order { start: first.to_string(), end: end.to_string() })
            }
        }
        (DateOrDateTime::Instant(start), DateOrDateTime::Instant(end)) if end <= start => {
            Err(EventDraftError::Order { start: rfc3339(&start), end: rfc3339(&end) })
        }
        (DateOrDateTime::Day(_), DateOrDateTime::Day(_)) | (DateOrDateTime::Instant(_), DateOrDateTime::Instant(_)) => {
            Ok(())
        }
        _ => Err(EventDraftError::Kinds),
    }
}

/// Returns the start or the end for the API: never a time without a zone.
fn bound(moment: DateOrDateTime, zone: &Zone) -> Value {
    match moment {
        DateOrDateTime::Day(day) => json!({"date": day.to_string()}),
        DateOrDateTime::Instant(time) => {
            let mut bound = json!({"dateTime": rfc3339(&time)});
            if let Some(name) = zone.name() {
                bound["timeZone"] = name.into();
            }
            bound
        }
    }
}

fn addresses(texts: &[String]) -> Result<Vec<String>, EventDraftError> {
    let mut addresses: Vec<String> = Vec::new();
    for text in texts {
        let address = mail_address::read(text.trim_matches(' '))
            .map_err(|why| EventDraftError::Address { address: text.chars().take(TOLD_CHARACTERS).collect(), why })?;
        if !addresses.iter().any(|other| other.eq_ignore_ascii_case(&address)) {
            addresses.push(address);
        }
    }
    match addresses.len() {
        count if count > MAX_ATTENDEES => Err(EventDraftError::Attendees(count)),
        _ => Ok(addresses),
    }
}

fn is_rule(rule: &str) -> bool {
    rule.len() <= RULE_BYTES
        && rule.bytes().all(|byte| byte.is_ascii_graphic())
        && ["RRULE:", "EXRULE:", "RDATE:", "RDATE;", "EXDATE:", "EXDATE;"].iter().any(|name| rule.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::Utc;

    fn zone(name: &str) -> Zone {
        Zone::parse(name, Utc::now()).unwrap()
    }

    const REVIEW: UncheckedEvent<'_> = UncheckedEvent {
        summary: "Review",
        start: "2026-01-05T14:00:00",
        end: "2026-01-05T15:00:00",
        description: "",
        location: "",
        attendees: &[],
        recurrence: &[],
        send_updates: SendUpdates::None,
        conference: false,
    };

    #[track_caller]
    fn check(written: &UncheckedEvent<'_>, zone_name: &str, expected: Value) {
        assert_eq!(EventDraft::new(written, &zone(zone_name)).unwrap().body("r1"), expected);
    }

    #[test]
    fn event_times_are_sent_with_an_offset_or_as_whole_days() {
        let at = |time: &str| json!({"dateTime": time, "timeZone": "Europe/Berlin"});
        let (start, end) = (at("2026-01-05T14:00:00+01:00"), at("2026-01-05T15:00:00+01:00"));
        check(&REVIEW, "Europe/Berlin", json!({"summary": "Review", "start": start, "end": end}));
        check(
            &UncheckedEvent { start: "2026-01-05", end: "2026-01-06", ..REVIEW },
            "Europe/Berlin",
            json!({"summary": "Review", "start": {"date": "2026-01-05"}, "end": {"date": "2026-01-06"}}),
        );
        let (start, end) =
            (json!({"dateTime": "2026-01-05T14:00:00-03:00"}), json!({"dateTime": "2026-01-05T15:00:00-03:00"}));
        check(&REVIEW, "-03:00", json!({"summary": "Review", "start": start, "end": end}));
        let utc = |time: &str| json!({"dateTime": time, "timeZone": "UTC"});
        check(
            &UncheckedEvent {
                description: "Q1\nand Q2",
                location: "Room 2",
                attendees: &[
                    "ann@example.com".into(),
                    " ANN@Example.com ".into(),
                    "bob@example.org".into(),
                    "eve@bücher.example".into(),
                    "eve@xn--bcher-kva.example".into(),
                ],
                recurrence: &["RRULE:FREQ=WEEKLY;COUNT=4".into()],
                conference: true,
                ..REVIEW
            },
            "UTC",
            json!({
                "summary": "Review", "start": utc("2026-01-05T14:00:00Z"), "end": utc("2026-01-05T15:00:00Z"),
                "description": "Q1\nand Q2", "location": "Room 2",
                "attendees": [
                    {"email": "ann@example.com"}, {"email": "bob@example.org"}, {"email": "eve@xn--bcher-kva.example"},
                ],
                "recurrence": ["RRULE:FREQ=WEEKLY;COUNT=4"],
                "conferenceData": {"createRequest": {"requestId": "r1", "conferenceSolutionKey": {"type": "hangoutsMeet"}}},
            }),
        );
    }

    #[track_caller]
    fn refused(written: &UncheckedEvent<'_>, expected: &str) {
        let error = EventDraft::new(written, &zone("-03:00")).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn rejects_events_that_google_would_reject_or_a_user_would_not_intend() {
        refused(&UncheckedEvent { end: "2026-01-06", ..REVIEW }, "differ in kind");
        refused(&UncheckedEvent { end: REVIEW.start, ..REVIEW }, "`end` must be after `start`");
        refused(&UncheckedEvent { end: "2026-01-05T16:00:00Z", ..REVIEW }, "`end` must be after `start`");
        refused(&UncheckedEvent { start: "2026-01-05", end: "2026-01-05", ..REVIEW }, "it is \"2026-01-06\"");
        refused(&UncheckedEvent { start: "soon", ..REVIEW }, "`start`");
        refused(&UncheckedEvent { summary: "a\r\nBcc: eve@example.com", ..REVIEW }, "`summary`");
        refused(&UncheckedEvent { location: "a\u{2028}b", ..REVIEW }, "`location`");
        refused(&UncheckedEvent { description: "\u{1b}[0m", ..REVIEW }, "`description`");
        refused(&UncheckedEvent { recurrence: &["RRULE:FREQ=DAILY\nEXDATE:1".into()], ..REVIEW }, "`recurrence`");
        refused(&UncheckedEvent { recurrence: &["weekly".into()], ..REVIEW }, "`recurrence`");
        refused(&UncheckedEvent { recurrence: &["RRULE:FREQ=DAILY".into()], ..REVIEW }, "`time_zone`");
        for address in [
            "",
            "ann",
            "ann@",
            "@example.com",
            "ann@example",
            "ann@example.com\r\nBcc: eve@example.com",
            "a b@example.com",
            "<ann@example.com>",
            "ann@example.com, bob@example.com",
            "ann@ex_ample.com",
            "ann@-a.com",
            "a..b@example.com",
            "änn@example.com",
            "ann@b@example.com",
            "ann@example.com;",
            "\u{202e}ann@example.com",
        ] {
            refused(&UncheckedEvent { attendees: &[address.into()], ..REVIEW }, "is not a mail address");
        }
        let many: Vec<String> = (0..201).map(|n| format!("a{n}@example.com")).collect();
        refused(&UncheckedEvent { attendees: &many, ..REVIEW }, "at most 200");
        refused(&UncheckedEvent { attendees: &many[..150], ..REVIEW }, "the approver sees");
    }

    #[test]
    fn the_approver_sees_the_invited_attendees_first() {
        let attendees = ["ann@example.com".to_owned(), "bob@example.org".to_owned()];
        let written = UncheckedEvent { attendees: &attendees, send_updates: SendUpdates::All, ..REVIEW };
        let draft = EventDraft::new(&written, &zone("UTC")).unwrap();
        assert_eq!(draft.invitation().unwrap(), "ann@example.com, bob@example.org; invitation by mail: Review");
        assert_eq!(EventDraft::new(&REVIEW, &zone("UTC")).unwrap().invitation(), None);
    }
}
