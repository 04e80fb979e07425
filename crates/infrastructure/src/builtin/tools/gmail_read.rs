//! The tool `gmail_read`.

use crate::{
    builtin::{
        google::mail::{GMAIL, WRITTEN_BY_SENDERS},
        tool_kit::{
            built_in_tool::BuiltInTool,
            foreign_answer::{foreign_answer, foreign_output_schema},
            tool_context::ToolContext,
            tool_environment::ToolEnvironment,
        },
    },
    services::gmail::{
        ATTACHMENT_BYTES, Gmail,
        message::{Attachment, BodyPiece, DecodedMailMessage, MessageHeaders, PartContentSource},
    },
    web::page::{self, HtmlPageInput, Page, PageFormat, PageLimits},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Write;
use toolstead_domain::{Access, Availability, Category, ToolAnnotations, ToolFailure, ToolResult};
use url::Url;

/// Tool that reads a message of Gmail.
pub(crate) struct GmailRead;

/// Maximum number of text parts that are fetched or converted from HTML.
const PIECES: usize = 16;
/// Maximum size of all text parts, in bytes.
const TEXT_BYTES: usize = 8 << 20;
/// Maximum number of attachments that one call stores.
const KEPT: usize = 20;
/// Maximum size of all attachments that one call stores, in bytes.
const KEPT_BYTES: usize = 2 * ATTACHMENT_BYTES;
/// Placeholder for the address of a message, which has none.
const NO_ADDRESS: &str = "about:blank";
/// Placeholder for the text of a message that has none.
const NO_TEXT: &str = "(no text content)";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The id of the message from `gmail_search`.
    #[schemars(length(min = 1, max = 200))]
    #[schemars(extend("x-advertised" = ""))]
    message_id: String,
    /// "text": the text, converted from any HTML. "html": the HTML unchanged.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    format: Format,
    /// "list": their names. "save": stores each under a handle, for `read_file`.
    #[serde(default)]
    #[schemars(extend("x-advertised" = "\"save\" stores each under a handle, for `read_file`."))]
    include_attachments: Attachments,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Format {
    #[default]
    Text,
    Html,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Attachments {
    #[default]
    List,
    Save,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    id: String,
    thread_id: String,
    from: String,
    to: Vec<String>,
    cc: Vec<String>,
    /// As given in the message.
    date: String,
    subject: String,
    labels: Vec<String>,
    /// Its text, or its HTML.
    body: String,
    attachments: Vec<AttachmentOutput>,
    /// Omitted parts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct AttachmentOutput {
    /// As the sender named it; it may be empty.
    name: String,
    mime: String,
    /// In bytes.
    size: u64,
    /// Its id at Gmail, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Its handle.
    #[serde(skip_serializing_if = "Option::is_none")]
    handle: Option<String>,
}

impl BuiltInTool for GmailRead {
    const NAME: &str = "gmail_read";
    const TITLE: &str = "Read mail";
    const DESCRIPTION: &str = "Reads a message of the user's Gmail by its id: sender, recipients, date, subject, \
         text and the list of attachments. `include_attachments` \"save\" stores these under handles.";
    const BRIEF: &str = "Reads a message of Gmail: headings, text, list of attachments.";
    const CATEGORY: Category = Category::Mail;
    const TAGS: &[&str] = &["google", "mail"];
    const KEYWORDS: &str = "attachment email inbox mail open view";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations { open_world_hint: Some(true), ..ToolAnnotations::READ_ONLY };
    const EXAMPLE: &str = r#"{"message_id": "18f0a1"}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(foreign_output_schema::<Output>())
    }

    fn availability(&self, world: &ToolEnvironment) -> Availability {
        GMAIL.availability(world)
    }

    async fn accesses(&self, _: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        Ok(vec![GMAIL.access(world)?])
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let judge = |host: &str| run.check_host(host);
        let gmail = Gmail::new(GMAIL.account(run, &judge)?, GMAIL.address(run.environment())?);
        let mut message = gmail.read(&input.message_id).await?;
        let mut notes = std::mem::take(&mut message.notes);
        let (body, removed) = body(&gmail, &message, input.format, run, &mut notes).await?;
        let attachments = match input.include_attachments {
            Attachments::List => message.attachments.iter().map(AttachmentOutput::of).collect(),
            Attachments::Save => store_attachments(&gmail, &message, run, &mut notes).await?,
        };
        let MessageHeaders { from, to, cc, date, subject } = message.heading;
        let (id, thread_id, labels) = (message.id, message.thread_id, message.labels);
        let output = Output { id, thread_id, from, to, cc, date, subject, labels, body, attachments, notes };
        foreign_answer(output.text(), &output, removed)
    }
}

/// Returns the text of a message, piece by piece, and the number of invisible characters that were removed from its HTML.
async fn body(
    gmail: &Gmail<'_>,
    message: &DecodedMailMessage,
    format: Format,
    run: &ToolContext<'_>,
    notes: &mut Vec<String>,
) -> Result<(String, usize), ToolFailure> {
    let mut texts: Vec<String> = Vec::new();
    let (mut pieces, mut bytes, mut removed) = (0, 0, 0);
    for piece in &message.body {
        let content = match piece {
            BodyPiece::Forwarded(heading) => {
                texts.push(forwarded(heading));
                continue;
            }
            BodyPiece::Text(content) | BodyPiece::Html(content) => content,
        };
        if pieces == PIECES || bytes >= TEXT_BYTES {
            notes.push("The text of the message is longer; the rest was omitted.".into());
            break;
        }
        pieces += 1;
        let mut raw = gmail.content(&message.id, content).await?;
        if raw.len() > TEXT_BYTES - bytes {
            notes.push("A part of the text was too long and was cut.".into());
            raw.truncate(TEXT_BYTES - bytes);
        }
        bytes += raw.len();
        let text = content.text(&raw);
        let text = match (piece, format) {
            (BodyPiece::Html(_), Format::Text) => {
                let page = page_of_html(text, run).await?;
                removed += page.removed;
                notes.extend(page.notes.into_iter().map(|note| format!("In the HTML, {note}.")));
                page.text
            }
            _ => text,
        };
        if !text.trim().is_empty() {
            texts.push(text.trim_end().to_owned());
        }
    }
    Ok((texts.join("\n\n"), removed))
}

/// Converts HTML to text, in the confined process that reads pages.
async fn page_of_html(html: String, run: &ToolContext<'_>) -> Result<Page, ToolFailure> {
    let order = HtmlPageInput {
        html: html.into_bytes(),
        content_type: Some("text/html; charset=utf-8".into()),
        #[expect(clippy::expect_used, reason = "written above")]
        url: Url::parse(NO_ADDRESS).expect("it is an address"),
        form: PageFormat::Text,
    };
    let read = page::read(run.environment().processes().helpers(), PageLimits::default(), run.deadline(), order).await;
    read.map_err(|failure| {
        ToolFailure::new(failure.kind, "the HTML of the message could not be converted to text")
            .next("`format` \"html\" returns it unchanged.")
            .caused_by(failure)
    })
}

fn forwarded(heading: &MessageHeaders) -> String {
    let MessageHeaders { from, to, date, subject, .. } = heading;
    format!("[Message within the message]\nFrom: {from}\nTo: {}\nDate: {date}\nSubject: {subject}", to.join(", "))
}

/// Returns the attachments. Each is stored under a handle, up to the limits.
async fn store_attachments(
    gmail: &Gmail<'_>,
    message: &DecodedMailMessage,
    run: &ToolContext<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<AttachmentOutput>, ToolFailure> {
    let context = run.context();
    let (mut listed, mut bytes) = (Vec::new(), 0);
    for (at, attachment) in message.attachments.iter().enumerate() {
        let mut one = AttachmentOutput::of(attachment);
        let size = usize::try_from(attachment.size).unwrap_or(usize::MAX);
        if at >= KEPT || size > ATTACHMENT_BYTES || size > KEPT_BYTES - bytes {
            notes.push(format!("Attachment {} was not stored: it is too large, or there are too many.", at + 1));
            listed.push(one);
            continue;
        }
        let content = gmail.content(&message.id, &attachment.content).await?;
        // Gmail may report a wrong size.
        bytes = (bytes + content.len()).min(KEPT_BYTES);
        let stored = context.outputs.store(context.principal, context.id, &attachment.mime, &content).await;
        match stored {
            Ok(stored) => {
                one.size = stored.bytes;
                one.handle = Some(stored.handle.to_string());
            }
            Err(error) => {
                tracing::warn!(call = %context.id, error = &error as &dyn std::error::Error, "an attachment could not be stored");
                notes.push(format!("Attachment {} could not be stored.", at + 1));
            }
        }
        listed.push(one);
    }
    Ok(listed)
}

impl AttachmentOutput {
    fn of(attachment: &Attachment) -> Self {
        Self {
            name: attachment.name.clone(),
            mime: attachment.mime.clone(),
            size: attachment.size,
            id: PartContentSource::id(&attachment.content).map(str::to_owned),
            handle: None,
        }
    }
}

impl Output {
    /// Formats the result. The lines of Toolstead come first and state the length of the message after them, so that no
    /// part of the message can imitate them.
    fn text(&self) -> String {
        let mut text = format!("From: {}\nTo: {}\n", self.from, self.to.join(", "));
        if !self.cc.is_empty() {
            let _ = writeln!(text, "Cc: {}", self.cc.join(", "));
        }
        let _ = writeln!(text, "Date: {}\nSubject: {}", self.date, self.subject);
        if !self.labels.is_empty() {
            let _ = writeln!(text, "Labels: {}", self.labels.join(", "));
        }
        for one in &self.attachments {
            let name = if one.name.is_empty() { "(no name)" } else { &one.name };
            let kept = one.handle.as_deref().map(|handle| format!(", stored as `{handle}`")).unwrap_or_default();
            let _ = writeln!(text, "Attachment: {name} ({}, {} bytes{kept})", one.mime, one.size);
        }
        for note in &self.notes {
            let _ = writeln!(text, "[{note}]");
        }
        if self.body.is_empty() {
            let _ = write!(text, "{WRITTEN_BY_SENDERS}\n\n{NO_TEXT}");
            return text;
        }
        let lines = self.body.lines().count();
        let lines = if lines == 1 { "1 line follows".to_owned() } else { format!("{lines} lines follow") };
        let _ = write!(text, "{WRITTEN_BY_SENDERS} {lines}.\n\n{}", self.body);
        text
    }
}
