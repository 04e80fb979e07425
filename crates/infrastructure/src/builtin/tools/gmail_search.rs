//! The tool `gmail_search`.

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
    services::gmail::{FoundMessage, Gmail, MailSearch},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Write;
use toolstead_domain::{Access, Availability, Category, ToolAnnotations, ToolFailure, ToolResult};

/// Tool that finds messages in Gmail.
pub(crate) struct GmailSearch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Gmail's search syntax, such as "is:unread", "from:ann@example.com newer_than:7d" or "has:attachment"; empty for all.
    #[schemars(length(max = 2_000))]
    #[schemars(extend("x-advertised" = "Gmail's syntax: \"from:ann is:unread newer_than:7d\"."))]
    query: String,
    /// Maximum messages per page.
    #[serde(default = "usual_results")]
    #[schemars(range(min = 1, max = 100))]
    #[schemars(extend("x-advertised" = ""))]
    max_results: u32,
    /// `next_page_token` of the previous page.
    #[schemars(length(min = 1, max = 500))]
    #[schemars(extend("x-advertised" = ""))]
    page_token: Option<String>,
    /// Labels that each message must have, such as "INBOX" or "STARRED".
    #[serde(default)]
    #[schemars(length(max = 20), inner(length(min = 1, max = 200)))]
    #[schemars(extend("x-advertised" = false))]
    label_ids: Vec<String>,
    /// Include spam and trash.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    include_spam_trash: bool,
}

fn usual_results() -> u32 {
    10
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// The newest first.
    messages: Vec<MessageSummary>,
    /// Names the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page_token: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct MessageSummary {
    id: String,
    thread_id: String,
    /// As given in the message.
    date: String,
    from: String,
    subject: String,
    /// The beginning of its text.
    snippet: String,
    unread: bool,
}

impl BuiltInTool for GmailSearch {
    const NAME: &str = "gmail_search";
    const TITLE: &str = "Search mail";
    const DESCRIPTION: &str = "Finds messages in the user's Gmail and returns id, date, sender, subject and the \
         beginning of each, the newest first. `gmail_read` reads one by its id.";
    const BRIEF: &str = "Finds messages in Gmail: id, date, sender, subject, beginning.";
    const CATEGORY: Category = Category::Mail;
    const TAGS: &[&str] = &["google", "mail"];
    const KEYWORDS: &str = "email inbox look mail unread";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations { open_world_hint: Some(true), ..ToolAnnotations::READ_ONLY };
    const EXAMPLE: &str = r#"{"query": "from:ann@example.com newer_than:7d"}"#;
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
        let search = MailSearch {
            query: input.query,
            max_results: input.max_results,
            page_token: input.page_token,
            label_ids: input.label_ids,
            include_spam_trash: input.include_spam_trash,
        };
        let page = gmail.search(&search).await?;
        let output = Output {
            messages: page.messages.into_iter().map(MessageSummary::of).collect(),
            next_page_token: page.next_page_token,
        };
        foreign_answer(output.text(), &output, 0)
    }
}

impl MessageSummary {
    fn of(found: FoundMessage) -> Self {
        let message = found.message;
        Self {
            unread: message.labels.iter().any(|label| label == "UNREAD"),
            id: message.id,
            thread_id: message.thread_id,
            date: message.heading.date,
            from: message.heading.from,
            subject: message.heading.subject,
            snippet: found.snippet,
        }
    }
}

impl Output {
    fn text(&self) -> String {
        if self.messages.is_empty() && self.next_page_token.is_none() {
            return "No messages were found.".into();
        }
        let count = self.messages.len();
        let mut text = format!("{count} message{}. {WRITTEN_BY_SENDERS}\n", if count == 1 { "" } else { "s" });
        for MessageSummary { id, date, from, subject, snippet, unread, .. } in &self.messages {
            let unread = if *unread { " (unread)" } else { "" };
            let _ = write!(
                text,
                "\n{id}{unread}\n  Date: {date}\n  From: {from}\n  Subject: {subject}\n  Begins: {snippet}\n"
            );
        }
        if let Some(token) = &self.next_page_token {
            let _ = write!(text, "\n[There are more: `page_token` \"{token}\" gives the next page.]\n");
        }
        text
    }
}
