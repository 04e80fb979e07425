//! Client of the REST API (v1) of Gmail: searches, reads and sends messages on behalf of a principal.

pub mod message;
pub mod outgoing;

use crate::services::{
    google::{GoogleApiClient, GoogleRequest, RequestEffect, address},
    markup::plain,
    one_line::one_line,
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use futures::{StreamExt, TryStreamExt, stream};
use message::{DecodedMailMessage, PartContentSource, decoded, header, is_id};
use outgoing::{OriginalMessage, OutgoingMessage};
use serde_json::{Value, json};
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};
use url::Url;

/// Name of the grant for Gmail, for reading and sending.
pub const GRANT: &str = "gmail";

/// Maximum number of concurrent requests for message headers.
const AT_ONCE: usize = 5;
/// Maximum size of a list, and of the headers of a message, in bytes.
const LIST_BYTES: usize = 1 << 20;
/// Maximum size of a message as JSON, in bytes. Attachments are requested separately.
const MESSAGE_BYTES: usize = 48 << 20;
/// Maximum size of one attachment, in bytes.
pub const ATTACHMENT_BYTES: usize = 25 << 20;
/// Maximum length of a snippet, in characters.
const SNIPPET_CHARACTERS: usize = 400;
/// Advice after a failed sending whose request may have reached Gmail.
const IN_DOUBT: &str = "The message may have been sent anyway: look for it (`in:sent`) before you send it again.";

/// The mailbox of one principal.
#[derive(Debug)]
pub struct Gmail<'a> {
    account: GoogleApiClient<'a>,
    base_url: &'a Url,
}

/// A search for messages.
#[derive(Debug, Clone, Default)]
pub struct MailSearch {
    /// Query in Gmail's syntax.
    pub query: String,
    /// Maximum number of messages per page.
    pub max_results: u32,
    /// Token of the page, from the page before.
    pub page_token: Option<String>,
    /// Labels that a message must have.
    pub label_ids: Vec<String>,
    /// `true` to include spam and trash.
    pub include_spam_trash: bool,
}

/// One page of search results.
#[derive(Debug, Clone, Default)]
pub struct MailPage {
    /// The headings of the messages, newest first.
    pub messages: Vec<FoundMessage>,
    /// Token of the next page.
    pub next_page_token: Option<String>,
}

/// A message in a search result.
#[derive(Debug, Clone)]
pub struct FoundMessage {
    /// Its heading, id and labels.
    pub message: DecodedMailMessage,
    /// Beginning of its text.
    pub snippet: String,
}

/// A sent message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentMail {
    /// Its id.
    pub id: String,
    /// Id of its thread.
    pub thread_id: String,
}

impl<'a> Gmail<'a> {
    /// Creates a client for this account, at this address.
    pub fn new(account: GoogleApiClient<'a>, base_url: &'a Url) -> Self {
        Self { account, base_url }
    }

    /// Returns one page of the matching messages, in Gmail's order.
    ///
    /// # Errors
    /// Those of [`GoogleApiClient::call`].
    pub async fn search(&self, search: &MailSearch) -> Result<MailPage, ToolFailure> {
        let max_results = search.max_results.to_string();
        let mut query = vec![("q", search.query.as_str()), ("maxResults", &max_results)];
        query.extend(search.page_token.as_deref().map(|token| ("pageToken", token)));
        query.extend(search.label_ids.iter().map(|label| ("labelIds", label.as_str())));
        query.extend(search.include_spam_trash.then_some(("includeSpamTrash", "true")));
        let list = self.read_at(&["messages"], &query, LIST_BYTES).await?;
        let listed = list.get("messages").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let limit = usize::try_from(search.max_results).unwrap_or(usize::MAX);
        let ids = listed.iter().filter_map(|one| one.get("id")?.as_str()).filter(|id| is_id(id)).take(limit);
        let heads: Vec<_> = ids.map(|id| self.head(id)).collect();
        let messages: Vec<Option<FoundMessage>> = stream::iter(heads).buffered(AT_ONCE).try_collect().await?;
        let token = list.get("nextPageToken").and_then(Value::as_str);
        Ok(MailPage {
            messages: messages.into_iter().flatten().collect(),
            next_page_token: token.filter(|token| is_id(token)).map(str::to_owned),
        })
    }

    /// Returns the heading of a message; `None` if it was deleted meanwhile.
    async fn head(&self, id: &str) -> Result<Option<FoundMessage>, ToolFailure> {
        let mut query = vec![("format", "metadata")];
        query.extend(["From", "To", "Cc", "Subject", "Date"].map(|name| ("metadataHeaders", name)));
        match self.read_at(&["messages", id], &query, LIST_BYTES).await {
            Ok(resource) => {
                let snippet = resource.get("snippet").and_then(Value::as_str).unwrap_or_default();
                let snippet = one_line(&plain(snippet), SNIPPET_CHARACTERS);
                Ok(Some(FoundMessage { message: DecodedMailMessage::of(&resource), snippet }))
            }
            Err(failure) if failure.kind == ErrorKind::NotFound => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Returns a message.
    ///
    /// # Errors
    /// Those of [`GoogleApiClient::call`]; `not_found` for an unknown id.
    pub async fn read(&self, id: &str) -> Result<DecodedMailMessage, ToolFailure> {
        let id = known(id)?;
        let resource = self.read_at(&["messages", id], &[("format", "full")], MESSAGE_BYTES).await;
        Ok(DecodedMailMessage::of(&resource.map_err(|failure| no_message(failure, id))?))
    }

    /// Returns the bytes of a content of a message.
    ///
    /// # Errors
    /// Those of [`GoogleApiClient::call`]; `too_large` for more than [`ATTACHMENT_BYTES`].
    pub async fn content(&self, message: &str, content: &PartContentSource) -> Result<Vec<u8>, ToolFailure> {
        let id = match content {
            PartContentSource::Here { bytes, .. } => return Ok(bytes.clone()),
            PartContentSource::Elsewhere { id, .. } => id,
        };
        // Four characters of base64 are three bytes.
        let limit = ATTACHMENT_BYTES / 3 * 4 + (64 << 10);
        let resource = self.read_at(&["messages", known(message)?, "attachments", id], &[], limit).await?;
        let data = resource.get("data").and_then(Value::as_str).and_then(decoded);
        data.ok_or_else(|| ToolFailure::new(ErrorKind::UpstreamProtocol, "Gmail: an attachment is not valid base64"))
    }

    /// Returns the threading data of the message to reply to.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    pub async fn original(&self, id: &str) -> Result<OriginalMessage, ToolFailure> {
        let id = known(id)?;
        let query = [("format", "metadata"), ("metadataHeaders", "Message-ID"), ("metadataHeaders", "References")];
        let resource = self.read_at(&["messages", id], &query, LIST_BYTES).await;
        let resource = resource.map_err(|failure| no_message(failure, id))?;
        let nothing = Value::Null;
        let payload = resource.get("payload").unwrap_or(&nothing);
        let thread_id = resource.get("threadId").and_then(Value::as_str).filter(|id| is_id(id));
        Ok(OriginalMessage::of(thread_id, &header(payload, "Message-ID"), &header(payload, "References")))
    }

    /// Sends a message, without retries.
    ///
    /// # Errors
    /// Those of [`GoogleApiClient::call`]. If the message may have been sent in spite of the error, the failure says
    /// so.
    pub async fn send(
        &self,
        mail: &OutgoingMessage,
        original: Option<&OriginalMessage>,
        now: DateTime<Utc>,
    ) -> Result<SentMail, ToolFailure> {
        let mut body = json!({"raw": URL_SAFE_NO_PAD.encode(mail.raw(original, now))});
        if let Some(thread_id) = original.and_then(|original| original.thread_id.as_deref()) {
            body["threadId"] = thread_id.into();
        }
        let url = self.url(&["messages", "send"], &[]);
        let effect = RequestEffect::Changes { body, doubt: IN_DOUBT };
        let sent = self.account.call(&GoogleRequest { url, effect, answer_bytes: LIST_BYTES }).await?;
        let text = |name: &str| sent.get(name).and_then(Value::as_str).filter(|id| is_id(id)).unwrap_or_default();
        Ok(SentMail { id: text("id").to_owned(), thread_id: text("threadId").to_owned() })
    }

    async fn read_at(
        &self,
        segments: &[&str],
        query: &[(&str, &str)],
        answer_bytes: usize,
    ) -> Result<Value, ToolFailure> {
        let request = GoogleRequest { url: self.url(segments, query), effect: RequestEffect::Reads, answer_bytes };
        self.account.call(&request).await
    }

    fn url(&self, segments: &[&str], query: &[(&str, &str)]) -> Url {
        address(self.base_url, &[&["gmail", "v1", "users", "me"], segments].concat(), query)
    }
}

fn known(id: &str) -> Result<&str, ToolFailure> {
    match is_id(id) {
        true => Ok(id),
        false => Err(ToolFailure::new(ErrorKind::InvalidInput, "this is not the id of a message")
            .next("`gmail_search` finds messages and their ids.")),
    }
}

fn no_message(failure: ToolFailure, id: &str) -> ToolFailure {
    match failure.kind {
        ErrorKind::NotFound => ToolFailure::new(ErrorKind::NotFound, format!("there is no message `{id}`"))
            .next("`gmail_search` finds messages and their ids."),
        _ => failure,
    }
}

#[cfg(test)]
mod tests;
