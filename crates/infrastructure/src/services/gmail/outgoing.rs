//! A message to be sent: checked before anybody is asked about it, and written as RFC 5322 wants it.

use crate::services::mail_address;
use chrono::{DateTime, Utc};
use mail_builder::{
    MessageBuilder,
    headers::{address::Address, date::Date, message_id::MessageId},
};
use std::fmt;

/// Characters of all addresses and the subject together: as many as somebody who is asked sees at once.
const SHOWN_CHARACTERS: usize = 1_800;
/// Characters of a text, plain or HTML.
pub const TEXT_CHARACTERS: u32 = 1_000_000;
/// Characters of the name beside an address.
const NAME_CHARACTERS: usize = 200;
/// Messages of a thread that a reply refers to.
const REFERENCES: usize = 20;
const REFERENCE_BYTES: usize = 250;

/// A message to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    to: Vec<Recipient>,
    cc: Vec<Recipient>,
    bcc: Vec<Recipient>,
    subject: String,
    body: String,
    html: Option<String>,
}

/// The texts of a message, as somebody wrote them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Draft<'a> {
    /// Addresses, with a name or without.
    pub to: &'a [String],
    /// Those who get a copy.
    pub cc: &'a [String],
    /// Those who get a copy that nobody else is told of.
    pub bcc: &'a [String],
    /// The subject.
    pub subject: &'a str,
    /// The text.
    pub body: &'a str,
    /// The same as HTML.
    pub html: Option<&'a str>,
}

/// One who gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Recipient {
    name: Option<String>,
    /// With the host as it is asked for (`xn--…`).
    address: String,
}

/// The message that is replied to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Original {
    /// Its thread.
    pub thread_id: Option<String>,
    /// Its id in its own header, without brackets.
    message_id: Option<String>,
    /// The ids before it.
    references: Vec<String>,
}

/// The reason why a message is not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnfitMail {
    /// A line break or another control character stands where a header is made of it.
    #[error("`{0}` holds a line break or another control character; nothing was sent")]
    Control(&'static str),
    /// A text that no mail program would show as it is.
    #[error("`{0}` holds a control character; nothing was sent")]
    ControlInText(&'static str),
    /// An address that is none.
    #[error("`{field}`: {address:?} is no address that mail can be sent to: {why}")]
    Address {
        /// The argument.
        field: &'static str,
        /// The address.
        address: String,
        /// The reason.
        why: &'static str,
    },
    /// Nobody gets it.
    #[error("`to` names nobody")]
    Nobody,
    /// More than a person can be shown.
    #[error("recipients and subject have {0} characters, and the one who is asked sees {SHOWN_CHARACTERS}")]
    TooMuch(usize),
}

impl Outgoing {
    /// Checks it.
    ///
    /// # Errors
    /// [`UnfitMail`].
    pub fn new(draft: &Draft<'_>) -> Result<Self, UnfitMail> {
        let mail = Self {
            to: recipients("to", draft.to)?,
            cc: recipients("cc", draft.cc)?,
            bcc: recipients("bcc", draft.bcc)?,
            subject: in_a_line("subject", draft.subject)?.to_owned(),
            body: as_text("body", draft.body)?.to_owned(),
            html: draft.html.map(|html| as_text("html", html).map(str::to_owned)).transpose()?,
        };
        if mail.to.is_empty() {
            return Err(UnfitMail::Nobody);
        }
        match mail.to_string().chars().count() {
            characters if characters > SHOWN_CHARACTERS => Err(UnfitMail::TooMuch(characters)),
            _ => Ok(mail),
        }
    }

    /// The message as Gmail takes it. Gmail says whom it is from.
    pub fn raw(&self, original: Option<&Original>, now: DateTime<Utc>) -> Vec<u8> {
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
        if let Some(Original { message_id: Some(id), references, .. }) = original {
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

/// Recipients and subject, for the one who is asked. Addresses stand first and hold no blank, comma or semicolon,
/// so that no subject can pass for one; names beside them are left out.
impl fmt::Display for Outgoing {
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

impl Original {
    /// Reads its headers, which strangers wrote: what is no plain id is left out.
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

fn in_a_line<'a>(field: &'static str, text: &'a str) -> Result<&'a str, UnfitMail> {
    match text.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        true => Err(UnfitMail::Control(field)),
        false => Ok(text),
    }
}

fn as_text<'a>(field: &'static str, text: &'a str) -> Result<&'a str, UnfitMail> {
    match text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        true => Err(UnfitMail::ControlInText(field)),
        false => Ok(text),
    }
}

fn recipients(field: &'static str, texts: &[String]) -> Result<Vec<Recipient>, UnfitMail> {
    texts.iter().map(|text| Recipient::parse(field, in_a_line(field, text)?)).collect()
}

impl Recipient {
    fn parse(field: &'static str, text: &str) -> Result<Self, UnfitMail> {
        let unfit = |why| UnfitMail::Address { field, address: text.chars().take(NAME_CHARACTERS).collect(), why };
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
            return Err(unfit("the name beside it is too long"));
        }
        Ok(Self { name: (!name.is_empty()).then_some(name), address })
    }
}

#[cfg(test)]
mod tests;
