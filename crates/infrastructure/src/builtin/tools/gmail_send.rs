//! The tool `gmail_send`.

use crate::{
    builtin::{
        google::mail::GMAIL,
        tool_kit::{
            answer::answer, built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext,
            tool_environment::ToolEnvironment,
        },
    },
    services::gmail::{
        Gmail,
        outgoing::{OutgoingMessage, TEXT_CHARACTERS, UncheckedMessage},
    },
};
use chrono::DateTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolstead_domain::{
    Access, Availability, Category, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind,
};

/// Tool that sends a message by Gmail.
pub(crate) struct GmailSend;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Recipients, as `ann@example.com` or `Ann <ann@example.com>`.
    #[schemars(length(min = 1, max = 50), inner(length(min = 3, max = 500)))]
    #[schemars(extend("x-advertised" = ""))]
    to: Vec<String>,
    /// The subject line.
    #[schemars(length(max = 1_000))]
    #[schemars(extend("x-advertised" = ""))]
    subject: String,
    /// The plain text.
    #[schemars(length(max = TEXT_CHARACTERS))]
    #[schemars(extend("x-advertised" = "Plain text."))]
    body: String,
    /// Cc recipients.
    #[serde(default)]
    #[schemars(length(max = 50), inner(length(min = 3, max = 500)))]
    #[schemars(extend("x-advertised" = ""))]
    cc: Vec<String>,
    /// Bcc recipients.
    #[serde(default)]
    #[schemars(length(max = 50), inner(length(min = 3, max = 500)))]
    #[schemars(extend("x-advertised" = ""))]
    bcc: Vec<String>,
    /// The text as HTML, for programs that show it.
    #[schemars(length(min = 1, max = TEXT_CHARACTERS))]
    #[schemars(extend("x-advertised" = false))]
    html: Option<String>,
    /// The id of the message to reply to, in the same thread.
    #[schemars(length(min = 1, max = 200))]
    #[schemars(extend("x-advertised" = ""))]
    reply_to_message_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    id: String,
    thread_id: String,
}

impl BuiltInTool for GmailSend {
    const NAME: &str = "gmail_send";
    const TITLE: &str = "Send mail";
    const DESCRIPTION: &str = "Sends a message from the user's Gmail address. Each message requires approval by a \
         person, who sees recipients and subject. It is sent once: if a failure says that it may have been sent, \
         look for it before you send it again.";
    const BRIEF: &str = "Sends a message from the user's Gmail address. Each message requires approval by a person, \
         who sees recipients and subject.";
    const CATEGORY: Category = Category::Mail;
    const TAGS: &[&str] = &["google", "mail"];
    const KEYWORDS: &str = "compose email forward mail reply write";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations {
        read_only_hint: Some(false),
        destructive_hint: Some(true),
        idempotent_hint: Some(false),
        open_world_hint: Some(true),
    };
    const EXAMPLE: &str = r#"{"to": ["ann@example.com"], "subject": "Thursday", "body": "Ten o'clock suits me."}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    fn availability(&self, world: &ToolEnvironment) -> Availability {
        GMAIL.availability(world)
    }

    async fn accesses(&self, input: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        Ok(vec![Access::Send(input.mail()?.to_string().into()), GMAIL.access(world)?])
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let mail = input.mail()?;
        let judge = |host: &str| run.check_host(host);
        let gmail = Gmail::new(GMAIL.account(run, &judge)?, GMAIL.address(run.environment())?);
        let original = match &input.reply_to_message_id {
            Some(id) => Some(gmail.original(id).await?),
            None => None,
        };
        let now = DateTime::from_timestamp_micros(run.environment().now().0).unwrap_or_default();
        let sent = gmail.send(&mail, original.as_ref(), now).await?;
        let text = format!("Sent (id `{}`, thread `{}`): {mail}", sent.id, sent.thread_id);
        answer(text, &Output { id: sent.id, thread_id: sent.thread_id })
    }
}

impl Input {
    fn mail(&self) -> Result<OutgoingMessage, ToolFailure> {
        let draft = UncheckedMessage {
            to: &self.to,
            cc: &self.cc,
            bcc: &self.bcc,
            subject: &self.subject,
            body: &self.body,
            html: self.html.as_deref(),
        };
        OutgoingMessage::new(&draft).map_err(|unfit| ToolFailure::new(ErrorKind::InvalidInput, unfit.to_string()))
    }
}
