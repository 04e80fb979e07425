//! Parsing of a Gmail message into the parts that a reader sees. All of it is untrusted: parts are visited without
//! recursion, and counts and sizes are bounded.

use crate::services::{foreign_text::with_line_feeds, one_line::one_line};
use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use chrono::{DateTime, SecondsFormat};
use encoding_rs::{Encoding, UTF_8};
use mail_parser::{Address, HeaderValue, MessageParser, MimeHeaders, PartType};
use serde_json::Value;

/// Maximum number of parts of one message that are read.
const PARTS: usize = 500;
/// Maximum number of attachments that are listed.
const ATTACHMENTS: usize = 100;
/// Maximum number of addresses of one header.
const ADDRESSES: usize = 500;
/// Maximum length of a header, and of the name of an attachment or label, in characters.
const HEADER_CHARACTERS: usize = 2_000;
const NAME_CHARACTERS: usize = 200;
/// Maximum length of an id, in bytes.
const ID_CHARACTERS: usize = 2_000;
/// Maximum size of a header that is decoded, in bytes.
const HEADER_BYTES: usize = 64 << 10;
/// Maximum size of a message within a message, in bytes, if its parts are not listed by Gmail.
const NESTED_BYTES: usize = 8 << 20;
/// Maximum number of headers `Content-Type` in it. Each nesting level needs one, and the levels are dropped
/// recursively.
const NESTED_TYPES: usize = 200;

/// Base64url with or without padding.
const BASE64URL: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Decodes a member `data`; `None` if it is not base64url.
pub fn decoded(data: &str) -> Option<Vec<u8>> {
    BASE64URL.decode(data).ok()
}

/// Returns `true` if a text can be an id of Gmail.
pub fn is_id(text: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'=');
    !text.is_empty() && text.len() <= ID_CHARACTERS && text.bytes().all(is_fit)
}

/// A decoded message.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DecodedMailMessage {
    /// Its id.
    pub id: String,
    /// Id of its thread.
    pub thread_id: String,
    /// Its labels.
    pub labels: Vec<String>,
    /// Its heading.
    pub heading: MessageHeaders,
    /// Its text, in order.
    pub body: Vec<BodyPiece>,
    /// Its attachments.
    pub attachments: Vec<Attachment>,
    /// Notes on omitted parts.
    pub notes: Vec<String>,
}

/// The heading of a message, decoded, one line per member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageHeaders {
    /// Author.
    pub from: String,
    /// Recipients.
    pub to: Vec<String>,
    /// Recipients of copies.
    pub cc: Vec<String>,
    /// Date as written in the message, else the time of its arrival (RFC 3339).
    pub date: String,
    /// Subject.
    pub subject: String,
}

/// A piece of the text of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum BodyPiece {
    /// Plain text.
    Text(PartContentSource),
    /// HTML.
    Html(PartContentSource),
    /// Heading of a message within the message; its pieces follow.
    Forwarded(MessageHeaders),
}

/// The content of a part.
#[derive(Debug, Clone, PartialEq)]
pub enum PartContentSource {
    /// The content is included in the message.
    Here {
        /// The bytes.
        bytes: Vec<u8>,
        /// Name of the character set, if there is one.
        charset: Option<String>,
    },
    /// The content must be requested by this id.
    Elsewhere {
        /// The id.
        id: String,
        /// Name of the character set, if there is one.
        charset: Option<String>,
    },
}

/// An attachment.
#[derive(Debug, Clone, PartialEq)]
pub struct Attachment {
    /// Its name, in one line and without folders. It may be empty.
    pub name: String,
    /// Its media type.
    pub mime: String,
    /// Its size in bytes, as reported by Gmail.
    pub size: u64,
    /// Its content.
    pub content: PartContentSource,
}

impl PartContentSource {
    /// Decodes bytes of this content to text with line feeds, in its character set, which is UTF-8 if none is known.
    pub fn text(&self, bytes: &[u8]) -> String {
        let (Self::Here { charset, .. } | Self::Elsewhere { charset, .. }) = self;
        let encoding = charset.as_deref().and_then(|label| Encoding::for_label(label.as_bytes())).unwrap_or(UTF_8);
        with_line_feeds(&encoding.decode(bytes).0)
    }

    /// Returns the id by which the content must be requested; `None` if it is included.
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Here { .. } => None,
            Self::Elsewhere { id, .. } => Some(id),
        }
    }
}

/// One part. Parts are in document order: a part comes before those in it.
struct Part<'a> {
    mime: String,
    name: String,
    value: &'a Value,
    parent: Option<usize>,
    children: Vec<usize>,
}

impl DecodedMailMessage {
    /// Parses a message resource (`format=full` or `metadata`).
    pub fn of(resource: &Value) -> Self {
        let text = |name: &str| line(resource.get(name), NAME_CHARACTERS);
        let labels = resource.get("labelIds").and_then(Value::as_array);
        let labels = labels.into_iter().flatten().take(ATTACHMENTS).map(|label| line(Some(label), NAME_CHARACTERS));
        let nothing = Value::Null;
        let payload = resource.get("payload").unwrap_or(&nothing);
        let mut heading = MessageHeaders::of(payload);
        if heading.date.is_empty() {
            heading.date = arrival_time(resource.get("internalDate")).unwrap_or_default();
        }
        let mut message =
            Self { id: text("id"), thread_id: text("threadId"), labels: labels.collect(), heading, ..Self::default() };
        message.read_parts(payload);
        message
    }

    fn read_parts(&mut self, payload: &Value) {
        let (parts, is_whole) = parts(payload);
        if !is_whole {
            self.notes.push(format!("The message has more than {PARTS} parts; the rest was not read."));
        }
        // From the last part to the first, so that the contents of a part are known before the part.
        let mut chosen: Vec<Vec<BodyPiece>> = parts.iter().map(|_| Vec::new()).collect();
        let mut attachments = Vec::new();
        for at in (0..parts.len()).rev() {
            let part = &parts[at];
            let within: Vec<(usize, Vec<BodyPiece>)> =
                part.children.iter().map(|child| (*child, std::mem::take(&mut chosen[*child]))).collect();
            chosen[at] = match part.mime.as_str() {
                "multipart/alternative" => best(&parts, within),
                "message/rfc822" | "message/global" if !part.children.is_empty() => {
                    let mut pieces = vec![BodyPiece::Forwarded(MessageHeaders::of(part.value))];
                    pieces.extend(within.into_iter().flat_map(|(_, pieces)| pieces));
                    pieces
                }
                _ if !part.children.is_empty() => within.into_iter().flat_map(|(_, pieces)| pieces).collect(),
                mime if is_text(mime) && !part.is_attached() => part.piece().into_iter().collect(),
                "message/rfc822" | "message/global" => match part.content().as_ref().and_then(nested) {
                    Some((pieces, inner)) => {
                        attachments.extend(inner.into_iter().rev());
                        attachments.extend(part.attachment());
                        pieces
                    }
                    None => {
                        attachments.extend(part.attachment());
                        Vec::new()
                    }
                },
                _ => {
                    attachments.extend(part.attachment());
                    Vec::new()
                }
            };
        }
        attachments.reverse();
        if attachments.len() > ATTACHMENTS {
            self.notes.push(format!("The message has {} attachments; {ATTACHMENTS} are listed.", attachments.len()));
            attachments.truncate(ATTACHMENTS);
        }
        self.attachments = attachments;
        self.body = chosen.into_iter().next().unwrap_or_default();
    }
}

impl MessageHeaders {
    /// Parses the `headers` of a part.
    fn of(part: &Value) -> Self {
        Self {
            from: addresses(&header(part, "From")).join(", "),
            to: addresses(&header(part, "To")),
            cc: addresses(&header(part, "Cc")),
            date: one_line(&header(part, "Date"), NAME_CHARACTERS),
            subject: unfolded(&header(part, "Subject")),
        }
    }
}

impl Part<'_> {
    fn is_attached(&self) -> bool {
        !self.name.is_empty() || parameters(&header(self.value, "Content-Disposition")).0 == "attachment"
    }

    fn content(&self) -> Option<PartContentSource> {
        let body = self.value.get("body")?;
        let charset = parameters(&header(self.value, "Content-Type")).1;
        if let Some(data) = body.get("data").and_then(Value::as_str).filter(|data| !data.is_empty()) {
            return Some(PartContentSource::Here { bytes: decoded(data)?, charset });
        }
        let id = body.get("attachmentId")?.as_str().filter(|id| is_id(id))?.to_owned();
        Some(PartContentSource::Elsewhere { id, charset })
    }

    fn piece(&self) -> Option<BodyPiece> {
        let content = self.content()?;
        Some(if self.mime == "text/html" { BodyPiece::Html(content) } else { BodyPiece::Text(content) })
    }

    fn attachment(&self) -> Option<Attachment> {
        let content = self.content()?;
        let size = self.value.get("body").and_then(|body| body.get("size")).and_then(Value::as_u64);
        Some(Attachment { name: self.name.clone(), mime: self.mime.clone(), size: size.unwrap_or_default(), content })
    }
}

/// Returns the parts of a message, and `true` if these are all.
fn parts(payload: &Value) -> (Vec<Part<'_>>, bool) {
    let mut parts: Vec<Part<'_>> = Vec::new();
    let mut open = vec![(payload, None)];
    while let Some((value, parent)) = open.pop() {
        if parts.len() == PARTS {
            return (parts, false);
        }
        let at = parts.len();
        parts.push(Part {
            mime: mime(value.get("mimeType").and_then(Value::as_str).unwrap_or_default()),
            name: file_name(value.get("filename").and_then(Value::as_str).unwrap_or_default()),
            value,
            parent,
            children: Vec::new(),
        });
        if let Some(parent) = parts[at].parent {
            parts[parent].children.push(at);
        }
        let within = value.get("parts").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        open.extend(within.iter().take(PARTS).rev().map(|part| (part, Some(at))));
    }
    (parts, true)
}

/// Selects one of several alternatives, the one with the most content: the last HTML, else the last part with text in
/// inner parts, else the first text.
fn best(parts: &[Part<'_>], within: Vec<(usize, Vec<BodyPiece>)>) -> Vec<BodyPiece> {
    let with_text = || within.iter().enumerate().filter(|(_, (_, pieces))| !pieces.is_empty());
    let is = |at: usize, mime: &str| parts[within[at].0].mime == mime;
    let html = with_text().map(|(at, _)| at).rfind(|at| is(*at, "text/html"));
    let nested = || with_text().map(|(at, _)| at).rfind(|at| !parts[within[*at].0].children.is_empty());
    let plain = || with_text().map(|(at, _)| at).find(|at| is(*at, "text/plain"));
    let any = || with_text().map(|(at, _)| at).next();
    let found = html.or_else(nested).or_else(plain).or_else(any);
    found.and_then(|at| within.into_iter().nth(at)).map(|(_, pieces)| pieces).unwrap_or_default()
}

/// Returns the text and the attachments of a message that is included as bytes, and of the messages in it; `None` if
/// there are no bytes, too many or invalid ones.
fn nested(content: &PartContentSource) -> Option<(Vec<BodyPiece>, Vec<Attachment>)> {
    let PartContentSource::Here { bytes, .. } = content else { return None };
    if bytes.len() > NESTED_BYTES || types_in(bytes) > NESTED_TYPES {
        return None;
    }
    let parsed = MessageParser::default().parse(bytes)?;
    let (mut pieces, mut attachments) = (Vec::new(), Vec::new());
    let mut open = vec![&parsed];
    while let Some(message) = open.pop() {
        pieces.push(BodyPiece::Forwarded(MessageHeaders {
            from: message.from().map(shown).unwrap_or_default().join(", "),
            to: message.to().map(shown).unwrap_or_default(),
            cc: message.cc().map(shown).unwrap_or_default(),
            date: one_line(message.header_raw("Date").unwrap_or_default(), NAME_CHARACTERS),
            subject: one_line(message.subject().unwrap_or_default(), HEADER_CHARACTERS),
        }));
        for part in message.html_bodies().take(PARTS) {
            let here = |text: &str| PartContentSource::Here { bytes: text.as_bytes().to_vec(), charset: None };
            match &part.body {
                PartType::Html(html) => pieces.push(BodyPiece::Html(here(html))),
                PartType::Text(text) => pieces.push(BodyPiece::Text(here(text))),
                _ => {}
            }
        }
        let mut inner = Vec::new();
        for part in message.attachments().take(PARTS) {
            if let PartType::Message(message) = &part.body {
                inner.push(message);
                continue;
            }
            let kind = part.content_type();
            let kind = kind.map(|kind| format!("{}/{}", kind.ctype(), kind.subtype().unwrap_or_default()));
            attachments.push(Attachment {
                name: file_name(part.attachment_name().unwrap_or_default()),
                mime: mime(&kind.unwrap_or_default()),
                size: part.contents().len() as u64,
                content: PartContentSource::Here { bytes: part.contents().to_vec(), charset: None },
            });
        }
        open.extend(inner.into_iter().rev());
    }
    Some((pieces, attachments))
}

/// Returns an upper bound of the number of headers `Content-Type` in a raw message: the parser also ignores blanks in a
/// name.
fn types_in(bytes: &[u8]) -> usize {
    let name = b"content-type";
    let shown = bytes.iter().filter(|byte| !byte.is_ascii_whitespace()).map(u8::to_ascii_lowercase).collect::<Vec<_>>();
    shown.windows(name.len()).filter(|window| window == name).count()
}

/// Returns the first header of this name, undecoded; empty if there is none.
pub fn header(part: &Value, name: &str) -> String {
    let headers = part.get("headers").and_then(Value::as_array);
    let is_it =
        |one: &&Value| one.get("name").and_then(Value::as_str).is_some_and(|found| found.eq_ignore_ascii_case(name));
    let found = headers.and_then(|headers| headers.iter().find(is_it));
    let value = found.and_then(|one| one.get("value")).and_then(Value::as_str).unwrap_or_default();
    let end = value.floor_char_boundary(HEADER_BYTES);
    value[..end].to_owned()
}

/// Decodes a header of free text, with its encoded words (RFC 2047).
pub fn unfolded(value: &str) -> String {
    let line = format!("Subject: {}\r\n\r\n", value.replace(['\r', '\n'], " "));
    let parsed = MessageParser::default().parse_headers(line.as_bytes());
    one_line(parsed.as_ref().and_then(|parsed| parsed.subject()).unwrap_or_default(), HEADER_CHARACTERS)
}

/// Returns the addresses of a header, as people write them.
fn addresses(value: &str) -> Vec<String> {
    let line = format!("To: {}\r\n\r\n", value.replace(['\r', '\n'], " "));
    let parsed = MessageParser::default().parse_headers(line.as_bytes());
    parsed.as_ref().and_then(|parsed| parsed.to()).map(shown).unwrap_or_default()
}

/// Returns an address with its name. A name that could be mistaken for an address is quoted.
pub fn named(name: &str, address: &str) -> String {
    let is_plain = |c: char| !matches!(c, '<' | '>' | '@' | ',' | ';' | ':' | '"' | '\\' | '(' | ')' | '[' | ']');
    match name.chars().all(is_plain) {
        true => format!("{name} <{address}>"),
        false => format!("\"{}\" <{address}>", name.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

fn shown(addresses: &Address<'_>) -> Vec<String> {
    let one = |one: &mail_parser::Addr<'_>| {
        let line =
            |text: &Option<std::borrow::Cow<'_, str>>| one_line(text.as_deref().unwrap_or_default(), NAME_CHARACTERS);
        let (name, address) = (line(&one.name), line(&one.address));
        match (name.is_empty(), address.is_empty()) {
            (true, _) => address,
            (false, true) => name,
            (false, false) => named(&name, &address),
        }
    };
    addresses.iter().take(ADDRESSES).map(one).filter(|one| !one.is_empty()).collect()
}

/// Returns the first word of a `Content-Type` or `Content-Disposition`, and its character set.
fn parameters(value: &str) -> (String, Option<String>) {
    let line = format!("Content-Type: {}\r\n\r\n", value.replace(['\r', '\n'], " "));
    let parsed = MessageParser::default().parse_headers(line.as_bytes());
    let found = parsed.as_ref().and_then(|parsed| parsed.header("Content-Type")).and_then(HeaderValue::as_content_type);
    let word = found.map(|found| found.ctype().to_ascii_lowercase()).unwrap_or_default();
    (word, found.and_then(|found| found.attribute("charset")).map(str::to_owned))
}

fn is_text(mime: &str) -> bool {
    mime.starts_with("text/")
}

/// Returns a valid media type in lower case; `application/octet-stream` for an invalid one.
fn mime(said: &str) -> String {
    let said = said.trim().to_ascii_lowercase();
    let is_token = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
    };
    match said.split_once('/') {
        Some((kind, of)) if said.len() <= 127 && is_token(kind) && is_token(of) => said,
        _ => "application/octet-stream".into(),
    }
}

/// Returns a file name without its folders. It is never `.` or `..`.
fn file_name(said: &str) -> String {
    let line = unfolded(said);
    let name = line.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.trim_matches(|c: char| c == '.' || c == ' ');
    one_line(name, NAME_CHARACTERS)
}

fn line(value: Option<&Value>, characters: usize) -> String {
    one_line(value.and_then(Value::as_str).unwrap_or_default(), characters)
}

/// Returns the time at which a message arrived, from milliseconds since 1970 as text.
fn arrival_time(value: Option<&Value>) -> Option<String> {
    let milliseconds = value?.as_str()?.parse().ok()?;
    Some(DateTime::from_timestamp_millis(milliseconds)?.to_rfc3339_opts(SecondsFormat::Secs, true))
}

#[cfg(test)]
mod tests;
