//! Compaction of a conversation on request.

use super::{
    CompactionThreshold, RunAgentHandler,
    compaction::CompactionRemainderLimits,
    history::ConversationHistory,
    hooks::RunHooks,
    request_builder::{NotShortened, RequestBuilder},
    size::{RequestSize, TokenRatio},
    spending::{BudgetLedger, Spending},
    todos::TodoReader,
    usage_events::UsageEvents,
};
use crate::cancel_signal::CancelSignal;
use std::sync::Arc;
use toolstead_domain::{AppendError, Budgets, ConversationId, ModelError, ModelProvider, RequestScope, StoreError};

/// Number of prompts and answers at the end of the conversation that remain unchanged.
const KEPT: usize = 2;

/// Replaces the beginning of a conversation by a summary. No run may be in progress in the conversation.
pub struct CompactConversationCommand {
    /// Id of the conversation.
    pub conversation: ConversationId,
    /// Model that the conversation continues with.
    pub model: Arc<dyn ModelProvider>,
    /// Model that writes the summary; `None`: `model`.
    pub summarizer: Option<Arc<dyn ModelProvider>>,
    /// Scope of the caller.
    pub scope: RequestScope,
    /// Cancels the compaction.
    pub cancel: CancelSignal,
}

impl std::fmt::Debug for CompactConversationCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompactConversationCommand").field("conversation", &self.conversation).finish_non_exhaustive()
    }
}

/// The length of a conversation before and after its compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionTokenCounts {
    /// Estimated number of tokens before.
    pub before: u64,
    /// Estimated number of tokens after.
    pub after: u64,
}

/// The reason why a conversation was not shortened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompactConversationError {
    /// The principal has no conversation with this id.
    #[error("there is no conversation {0}")]
    NotFound(ConversationId),
    /// Nothing precedes the part that remains unchanged.
    #[error("there is nothing to summarize yet")]
    TooShort,
    /// A hook blocked the compaction, for this reason.
    #[error("a hook blocked it: {0}")]
    Blocked(String),
    /// The model wrote no summary.
    #[error("no summary could be made: {0}")]
    NoSummary(ModelError),
    /// The compaction was cancelled.
    #[error("it was cancelled")]
    Cancelled,
    /// The conversation cannot be read.
    #[error(transparent)]
    NotRead(#[from] StoreError),
    /// The summary cannot be stored.
    #[error(transparent)]
    NotKept(#[from] AppendError),
}

impl From<NotShortened> for CompactConversationError {
    fn from(why: NotShortened) -> Self {
        match why {
            NotShortened::Blocked(reason) | NotShortened::Stopped(reason) => Self::Blocked(reason),
            NotShortened::NoSummary(error) => Self::NoSummary(error),
            NotShortened::Cancelled => Self::Cancelled,
            NotShortened::NotKept(error) => Self::NotKept(error),
        }
    }
}

impl RunAgentHandler {
    /// Replaces the beginning of the conversation by a summary. All events remain in the log of the conversation.
    ///
    /// # Errors
    /// [`CompactConversationError`]; the conversation is unchanged then.
    pub async fn compact(
        &self,
        command: CompactConversationCommand,
    ) -> Result<CompactionTokenCounts, CompactConversationError> {
        let CompactConversationCommand { conversation, model, summarizer, scope, cancel } = command;
        let (store, clock) = (self.ports.conversations.clone(), self.ports.clock.clone());
        let found = ConversationHistory::find(store, clock, &scope.principal, conversation).await?;
        let mut history = found.ok_or(CompactConversationError::NotFound(conversation))?;
        let kept = CompactionRemainderLimits::steps(KEPT, model.facts().context_tokens);
        let mut fitting = RequestBuilder {
            conversation,
            summarizer: summarizer.unwrap_or_else(|| model.clone()),
            model,
            system: String::new(),
            compaction: CompactionThreshold::default(),
            cancel,
            usage_events: UsageEvents::new(self.ports.events.clone(), conversation, scope.principal.clone(), None),
            todos: TodoReader::new(self.ports.todos.clone(), &scope.principal, conversation),
            hooks: RunHooks::new(self.ports.hooks.clone(), conversation, scope.principal, None),
            events: None,
            scale: TokenRatio::default(),
            last_request_size: RequestSize::default(),
        };
        let spending = Spending::new(BudgetLedger::new(Budgets::default(), None), None);
        let made = fitting.summarize(&mut history, "manual", kept, &spending).await?;
        let (before, after) = made.ok_or(CompactConversationError::TooShort)?;
        Ok(CompactionTokenCounts { before, after })
    }
}
