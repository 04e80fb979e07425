//! A message to be sent. It is checked before approval is requested, and formatted as RFC 5322 requires.

use crate::services::mail_address;
use chrono::{DateTime, Utc};
use mail_builder::{
    MessageBuilder,
    headers::{address::Address, date::Date, message_id::MessageId},
};
use std::fmt;

/// Maximum length of all addresses and the subject together, in characters: an approval request shows at most this.
const SHOWN_CHARACTERS: usize = 1_800;
/// Maximum length of a text, plain or HTML, in characters.
pub const TEXT_CHARACTERS: u32 = 1_000_000;
/// Maximum length of the name of an address, in characters.
const NAME_CHARACTERS: usize = 200;
/// Maximum number of messages of a thread that a reply refers to.
const REFERENCES: usize = 20;
const REFERENCE_BYTES: usize = 250;

/// A message to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingMessage {
    to: Vec<Recipient>,
    cc: Vec<Recipient>,
    bcc: Vec<Recipient>,
    subject: String,
    body: String,
    html: Option<String>,
}

/// The texts of a message, as the caller wrote them.
#[derive(Debug, Clone, Copy, Default)]
pub struct UncheckedMessage<'a> {
    /// Recipients: addresses, with or without a name.
    pub to: &'a [String],
    /// Recipients of copies.
    pub cc: &'a [String],
    /// Bcc recipients.
    pub bcc: &'a [String],
    /// Subject.
    pub subject: &'a str,
    /// Text.
    pub body: &'a str,
    /// HTML form of the text.
    pub html: Option<&'a str>,
}

/// A recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Recipient {
    name: Option<String>,
    /// Address with the ASCII form of the host (`xn--…`).
    address: String,
}

/// The message to reply to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OriginalMessage {
    /// Id of its thread.
    pub thread_id: Option<String>,
    /// Id in its own header, without brackets.
    message_id: Option<String>,
    /// Ids of the messages before it.
    references: Vec<String>,
}

/// The reason why a message is not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutgoingMessageError {
    /// A text for a header contains a line break or another control character.
    #[error("`{0}` contains a line break or another control character; nothing was sent")]
    Control(&'static str),
    /// A text contains a control character, which mail programs would not show.
    #[error("`{0}` contains a control character; nothing was sent")]
    ControlInText(&'static str),
    /// An address is invalid.
    #[error("`{field}`: {address:?} is not a mail address: {why}")]
    Address {
        /// Name of the argument.
        field: &'static str,
        /// The address.
        address: String,
        /// The reason.
        why: &'static str,
    },
    /// There is no recipient.
    #[error("`to` has no address")]
    NoRecipient,
    /// Recipients and subject are too long for an approval request.
    #[error("recipients and subject have {0} characters, the approver sees at most {SHOWN_CHARACTERS}")]
    TooMuch(usize),
}

impl OutgoingMessage {
    /// Checks a message.
    ///
    /// # Errors
    /// [`OutgoingMessageError`].
    pub fn new(draft: &UncheckedMessage<'_>) -> Result<Self, OutgoingMessageError> {
        let mail = Self {
            to: recipients("to", draft.to)?,
            cc: recipients("cc", draft.cc)?,
            bcc: recipients("bcc", draft.bcc)?,
            subject: in_a_line("subject", draft.subject)?.to_owned(),
            body: as_text("body", draft.body)?.to_owned(),
            html: draft.html.map(|html| as_text("html", html).map(str::to_owned)).transpose()?,
        };
        if mail.to.is_empty() {
            return Err(OutgoingMessageError::NoRecipient);
        }
        match mail.to_string().chars().count() {
            characters if characters > SHOWN_CHARACTERS => Err(OutgoingMessageError::TooMuch(characters)),
            _ => Ok(mail),
        }
    }

    /// Returns the message in the format of RFC 5322, without the sender, which Gmail adds. It is a reply if `original`
    /// is given.
    pub fn raw(&self, original: Option<&OriginalMessage>, now: DateTime<Utc>) -> Vec<u8> {
        let list = |all: &[Recipient]| {
            let one = |one: &Recipient| Address::new_address(one.name.clone(), one.address.clone());
            Address::new_list(all.iter().map(one).collect())
        };
        let mut mail = MessageBuilder::new().date(Date::new(now.timestamp())).to(list(&self.to));
        if !self.cc.is_empty() {
            mail = mail.cc(list(&self.cc));
        }
        if !self.bcc.is_empty() {
            mail = mail.bcc(list(&self.bcc));
        }
        mail = mail.subject(self.subject.as_str());
        if let Some(OriginalMessage { message_id: Some(id), references, .. }) = original {
            let all = references.iter().chain([id]).cloned();
            mail = mail.in_reply_to(id.as_str()).references(MessageId::new_list(all));
        }
        mail = mail.text_body(self.body.as_str());
        if let Some(html) = &self.html {
            mail = mail.html_body(html.as_str());
        }
        let mut raw = Vec::new();
        mail.serialize(&mut raw);
        raw
    }
}

/// Recipients and subject, for the approver. Addresses come first and contain no blank, comma or semicolon, so that no
/// subject can be mistaken for one. Names are omitted.
impl fmt::Display for OutgoingMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (word, all) in [("", &self.to), ("; cc: ", &self.cc), ("; bcc: ", &self.bcc)] {
            if !all.is_empty() {
                let addresses: Vec<&str> = all.iter().map(|one| one.address.as_str()).collect();
                write!(f, "{word}{}", addresses.join(", "))?;
            }
        }
        write!(f, "; subject: {}", self.subject)
    }
}

impl OriginalMessage {
    /// Parses the headers of the message to reply to, which are untrusted: anything but plain ids is omitted.
    pub fn of(thread_id: Option<&str>, message_id: &str, references: &str) -> Self {
        let mut references = ids(references);
        let before = references.len().saturating_sub(REFERENCES);
        Self {
            thread_id: thread_id.map(str::to_owned),
            message_id: ids(message_id).into_iter().next(),
            references: references.split_off(before),
        }
    }
}

fn ids(header: &str) -> Vec<String> {
    let is_plain = |id: &&str| {
        (3..=REFERENCE_BYTES).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'<')
    };
    let pieces = header.split('<').skip(1).filter_map(|piece| Some(piece.split_once('>')?.0));
    pieces.filter(is_plain).map(str::to_owned).collect()
}

fn in_a_line<'a>(field: &'static str, text: &'a str) -> Result<&'a str, OutgoingMessageError> {
    match text.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        true => Err(OutgoingMessageError::Control(field)),
        false => Ok(text),
    }
}

fn as_text<'a>(field: &'static str, text: &'a str) -> Result<&'a str, OutgoingMessageError> {
    match text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        true => Err(OutgoingMessageError::ControlInText(field)),
        false => Ok(text),
    }
}

fn recipients(field: &'static str, texts: &[String]) -> Result<Vec<Recipient>, OutgoingMessageError> {
    texts.iter().map(|text| Recipient::parse(field, in_a_line(field, text)?)).collect()
}

impl Recipient {
    fn parse(field: &'static str, text: &str) -> Result<Self, OutgoingMessageError> {
        let unfit =
            |why| OutgoingMessageError::Address { field, address: text.chars().take(NAME_CHARACTERS).collect(), why };
        let text = text.trim();
        let (name, address) = match text.strip_suffix('>').and_then(|rest| rest.rsplit_once('<')) {
            Some((name, address)) => (name.trim(), address.trim()),
            None => ("", text),
        };
        let address = mail_address::read(address).map_err(unfit)?;
        let name = match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
            Some(quoted) => quoted.replace("\\\"", "\"").replace("\\\\", "\\"),
            None => name.to_owned(),
        };
        if name.chars().count() > NAME_CHARACTERS {
            return Err(unfit("its display name is too long"));
        }
        Ok(Self { name: (!name.is_empty()).then_some(name), address })
    }
}

#[cfg(test)]
mod tests;
