//! Gmail's REST API (v1): messages of one user, as far as tools need them.

use super::{Reply, Seen};
use axum::http::Method;
use base64::{
    Engine,
    engine::{
        DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig,
        general_purpose::{URL_SAFE, URL_SAFE_NO_PAD},
    },
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The messages of one user, newest first.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    messages: Vec<Value>,
    attachments: BTreeMap<(String, String), Vec<u8>>,
    sent: Vec<Sent>,
}

/// A message that was sent.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    /// As it came, decoded.
    pub(crate) raw: String,
    pub(crate) thread_id: Option<String>,
}

impl Sent {
    /// The values of a header, unfolded, in their order.
    pub(crate) fn header(&self, name: &str) -> Vec<String> {
        let head = self.raw.split_once("\r\n\r\n").map_or(self.raw.as_str(), |(head, _)| head);
        let head = head.replace("\r\n ", " ").replace("\r\n\t", " ");
        let lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
        let found = lines.filter(|(one, _)| one.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim().to_owned()).collect()
    }

    /// The names of the headers, in their order.
    pub(crate) fn names(&self) -> Vec<String> {
        let head = self.raw.split_once("\r\n\r\n").map_or(self.raw.as_str(), |(head, _)| head);
        let lines = head.split("\r\n").filter(|line| !line.starts_with([' ', '\t']));
        lines.filter_map(|line| Some(line.split_once(':')?.0.to_owned())).collect()
    }

    /// Returns the text after the headers.
    pub(crate) fn body(&self) -> &str {
        self.raw.split_once("\r\n\r\n").map_or("", |(_, body)| body)
    }
}

impl Mailbox {
    /// Adds a message: a resource as `format=full` gives it.
    pub(crate) fn add(&mut self, message: Value) {
        self.messages.push(message);
    }

    /// Adds a message of text.
    pub(crate) fn add_text(&mut self, id: &str, from: &str, subject: &str, text: &str, labels: &[&str]) {
        self.add(json!({
            "id": id, "threadId": format!("t-{id}"), "labelIds": labels, "snippet": escaped(text), "historyId": "9001",
            "internalDate": "1767261600000", "sizeEstimate": text.len(),
            "payload": {"partId": "", "mimeType": "text/plain", "filename": "",
                "headers": [
                    {"name": "From", "value": from}, {"name": "To", "value": "me@example.com"},
                    {"name": "Subject", "value": subject}, {"name": "Date", "value": "Thu, 1 Jan 2026 10:00:00 +0000"},
                    {"name": "Message-ID", "value": format!("<{id}@example.com>")},
                    {"name": "Content-Type", "value": "text/plain; charset=\"UTF-8\""}],
                "body": {"size": text.len(), "data": URL_SAFE_NO_PAD.encode(text)}}
        }));
    }

    /// The content of an attachment that a message names.
    pub(crate) fn attach(&mut self, message: &str, id: &str, content: &[u8]) {
        self.attachments.insert((message.into(), id.into()), content.to_vec());
    }

    /// Returns the sent messages, in their order.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.sent.clone()
    }
}

pub(super) fn answered(mailbox: &mut Mailbox, rest: &str, seen: &Seen) -> Reply {
    let segments: Vec<&str> = rest.split('/').collect();
    match (&seen.method, &segments[..]) {
        (&Method::GET, ["profile"]) => Reply::json(json!({"emailAddress": "me@example.com",
            "messagesTotal": mailbox.messages.len(), "threadsTotal": mailbox.messages.len(), "historyId": "9001"})),
        (&Method::GET, ["messages"]) => list(mailbox, seen),
        (&Method::POST, ["messages", "send"]) => send(mailbox, seen),
        (&Method::GET, ["messages", id]) => get(mailbox, id, seen),
        (&Method::GET, ["messages", id, "attachments", attachment]) => {
            match mailbox.attachments.get(&((*id).to_owned(), (*attachment).to_owned())) {
                Some(content) => Reply::json(json!({"size": content.len(), "data": URL_SAFE.encode(content)})),
                None => Reply::not_found(),
            }
        }
        _ => Reply::not_found(),
    }
}

fn list(mailbox: &Mailbox, seen: &Seen) -> Reply {
    let Ok(limit) = seen.parameter("maxResults").unwrap_or("100").parse::<usize>() else {
        return Reply::invalid("Invalid maxResults");
    };
    let Ok(from) = seen.parameter("pageToken").unwrap_or("0").parse::<usize>() else {
        return Reply::invalid("Invalid pageToken");
    };
    let (query, labels) = (seen.parameter("q").unwrap_or_default(), seen.parameters("labelIds"));
    let hidden = seen.parameter("includeSpamTrash") != Some("true") && !query.contains("in:");
    let found: Vec<&Value> = mailbox
        .messages
        .iter()
        .filter(|message| terms(query).iter().all(|term| fits(message, term)))
        .filter(|message| labels.iter().all(|label| has_label(message, label)))
        .filter(|message| !hidden || !(has_label(message, "SPAM") || has_label(message, "TRASH")))
        .collect();
    let page = found.iter().skip(from).take(limit.min(500));
    let page: Vec<Value> = page.map(|one| json!({"id": one["id"], "threadId": one["threadId"]})).collect();
    let mut body = json!({"resultSizeEstimate": found.len()});
    if from + page.len() < found.len() {
        body["nextPageToken"] = (from + page.len()).to_string().into();
    }
    if !page.is_empty() {
        body["messages"] = page.into();
    }
    Reply::json(body)
}

fn get(mailbox: &Mailbox, id: &str, seen: &Seen) -> Reply {
    let Some(message) = mailbox.messages.iter().find(|message| message["id"] == id) else {
        return Reply::not_found();
    };
    let mut message = message.clone();
    match seen.parameter("format").unwrap_or("full") {
        "full" => {}
        "minimal" => {
            message.as_object_mut().unwrap().remove("payload");
        }
        "metadata" => {
            let wanted = seen.parameters("metadataHeaders");
            let payload = &message["payload"];
            let headers: Vec<&Value> = payload["headers"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|header| {
                    let name = header["name"].as_str().unwrap_or_default();
                    wanted.is_empty() || wanted.iter().any(|one| one.eq_ignore_ascii_case(name))
                })
                .collect();
            message["payload"] = json!({"mimeType": payload["mimeType"], "headers": headers});
        }
        _ => return Reply::invalid("Invalid format"),
    }
    Reply::json(message)
}

fn send(mailbox: &mut Mailbox, seen: &Seen) -> Reply {
    let raw = seen.body["raw"].as_str().and_then(|raw| LENIENT.decode(raw).ok());
    let Some(raw) = raw.and_then(|raw| String::from_utf8(raw).ok()).filter(|raw| raw.contains(':')) else {
        return Reply::invalid("Invalid value for ByteString: raw");
    };
    let sent = Sent { raw, thread_id: seen.body["threadId"].as_str().map(str::to_owned) };
    if ["To", "Cc", "Bcc"].iter().all(|name| sent.header(name).is_empty()) {
        return Reply::invalid("Recipient address required");
    }
    mailbox.sent.push(sent.clone());
    let id = format!("sent-{}", mailbox.sent.len());
    let thread_id = sent.thread_id.unwrap_or_else(|| id.clone());
    Reply::json(json!({"id": id, "threadId": thread_id, "labelIds": ["SENT"]}))
}

fn has_label(message: &Value, label: &str) -> bool {
    message["labelIds"].as_array().is_some_and(|labels| labels.iter().any(|one| *one == *label))
}

fn header<'a>(message: &'a Value, name: &str) -> &'a str {
    let headers = message["payload"]["headers"].as_array();
    let found = headers.and_then(|headers| headers.iter().find(|one| one["name"] == name));
    found.and_then(|one| one["value"].as_str()).unwrap_or_default()
}

/// The terms of a query; a phrase in quotes is one.
fn terms(query: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut quoted = false;
    for c in query.chars() {
        match c {
            '"' => quoted = !quoted,
            ' ' if !quoted => terms.push(String::new()),
            c => terms.last_mut().unwrap().push(c),
        }
    }
    terms.retain(|term| !term.is_empty());
    terms
}

fn fits(message: &Value, term: &str) -> bool {
    if let Some(term) = term.strip_prefix('-') {
        return !fits(message, term);
    }
    let holds = |text: &str, part: &str| text.to_lowercase().contains(&part.to_lowercase());
    match term.split_once(':') {
        Some(("from", value)) => holds(header(message, "From"), value),
        Some(("to", value)) => holds(header(message, "To"), value),
        Some(("subject", value)) => holds(header(message, "Subject"), value),
        Some(("is", value)) => has_label(message, &value.to_uppercase()),
        Some(("label" | "in", value)) => has_label(message, &value.to_uppercase()),
        Some(("has", "attachment")) => message.to_string().contains("attachmentId"),
        _ => holds(header(message, "Subject"), term) || holds(message["snippet"].as_str().unwrap_or_default(), term),
    }
}

fn escaped(text: &str) -> String {
    let text: String = text.chars().take(100).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\'', "&#39;")
}
