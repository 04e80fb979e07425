//! Making a conversation shorter because somebody wants it.

use super::{
    Compaction, RunAgentHandler,
    compaction::Kept,
    fitting::{Fitting, NotShortened},
    history::History,
    hooks::Hooks,
    size::{Scale, Size},
    spending::{Purse, Spending},
    todos::Todos,
    usage_events::UsageEvents,
};
use crate::cancel_signal::CancelSignal;
use std::sync::Arc;
use toolstead_domain::{
    agent::budget::Budgets,
    conversation::ConversationId,
    model::error::ModelError,
    ports::{conversation_store::AppendError, model_provider::ModelProvider, tool_repository::StoreError},
    scope::Scope,
};

/// As many prompts and answers stay as they were.
const KEPT: usize = 2;

/// Makes a summary of what came first in a conversation that no run is in.
pub struct CompactConversationCommand {
    /// The conversation.
    pub conversation: ConversationId,
    /// The model that it goes on with.
    pub model: Arc<dyn ModelProvider>,
    /// The model that writes the summary; `None`: the same.
    pub summarizer: Option<Arc<dyn ModelProvider>>,
    /// On whose behalf.
    pub scope: Scope,
    /// Takes it back.
    pub cancel: CancelSignal,
}

impl std::fmt::Debug for CompactConversationCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompactConversationCommand").field("conversation", &self.conversation).finish_non_exhaustive()
    }
}

/// The length of a conversation before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortened {
    /// Tokens before, as far as can be told.
    pub before: u64,
    /// Tokens after.
    pub after: u64,
}

/// The reason why a conversation is as long as before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotCompacted {
    /// The principal has none of that id.
    #[error("there is no conversation {0}")]
    NotFound(ConversationId),
    /// Nothing stands before what stays as it is.
    #[error("there is nothing to summarize yet")]
    TooShort,
    /// A hook is against it.
    #[error("a hook is against it: {0}")]
    Blocked(String),
    /// The model gave no summary.
    #[error("no summary could be made: {0}")]
    NoSummary(ModelError),
    /// It was taken back.
    #[error("it was taken back")]
    Cancelled,
    /// The conversation cannot be read.
    #[error(transparent)]
    NotRead(#[from] StoreError),
    /// The summary cannot be kept.
    #[error(transparent)]
    NotKept(#[from] AppendError),
}

impl From<NotShortened> for NotCompacted {
    fn from(why: NotShortened) -> Self {
        match why {
            NotShortened::Blocked(reason) | NotShortened::Stopped(reason) => Self::Blocked(reason),
            NotShortened::NoSummary(error) => Self::NoSummary(error),
            NotShortened::TakenBack => Self::Cancelled,
            NotShortened::NotKept(error) => Self::NotKept(error),
        }
    }
}

impl RunAgentHandler {
    /// Makes a summary of what came first, now. All of the conversation stays in its log.
    ///
    /// # Errors
    /// [`NotCompacted`]; then the conversation is as it was.
    pub async fn compact(&self, command: CompactConversationCommand) -> Result<Shortened, NotCompacted> {
        let CompactConversationCommand { conversation, model, summarizer, scope, cancel } = command;
        let (store, clock) = (self.ports.conversations.clone(), self.ports.clock.clone());
        let found = History::find(store, clock, &scope.principal, conversation).await?;
        let mut history = found.ok_or(NotCompacted::NotFound(conversation))?;
        let kept = Kept::steps(KEPT, model.facts().context_tokens);
        let mut fitting = Fitting {
            conversation,
            summarizer: summarizer.unwrap_or_else(|| model.clone()),
            model,
            system: String::new(),
            compaction: Compaction::default(),
            cancel,
            usage_events: UsageEvents::new(self.ports.events.clone(), conversation, scope.principal.clone(), None),
            todos: Todos::new(self.ports.todos.clone(), &scope.principal, conversation),
            hooks: Hooks::new(self.ports.hooks.clone(), conversation, scope.principal, None),
            telling: None,
            scale: Scale::default(),
            asked: Size::default(),
        };
        let spending = Spending::new(Purse::new(Budgets::default(), None), None);
        let made = fitting.summarize(&mut history, "manual", kept, &spending).await?;
        let (before, after) = made.ok_or(NotCompacted::TooShort)?;
        Ok(Shortened { before, after })
    }
}
