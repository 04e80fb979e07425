//! Requests that fit the model's context window: the conversation is shortened if necessary.

use super::{
    CompactionThreshold,
    answer::{AnswerEnd, ask},
    compaction::{CompactionRemainderLimits, outputs_to_mask, plan},
    history::ConversationHistory,
    hooks::{HookPoint, RunHooks},
    request,
    size::{RequestSize, TokenRatio},
    spending::Spending,
    todos::TodoReader,
    usage_events::UsageEvents,
};
use crate::cancel_signal::CancelSignal;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use toolstead_domain::{
    AgentEvent, AppendError, Block, ConversationEventKind, ConversationId, ModelError, ModelFacts, ModelProvider,
    ModelRequest, OfferedTool, StopReason, TokenUsage,
};

/// Share of the context window that may be full after the model has refused a request as too long.
const AFTER_TOO_LONG: f64 = 0.8;
/// Divisor of the context window for the longest text in a request.
const PART_OF_TEXT: u64 = 4;
/// Minimum length of a truncated text, in bytes.
const SHORTEST_CUT: usize = 500;
/// Number of prompts and answers at the end that remain unchanged when a run shortens its conversation.
pub(super) const KEPT_IN_RUN: usize = 6;

/// Builds the requests of one conversation.
pub(super) struct RequestBuilder {
    pub(super) conversation: ConversationId,
    pub(super) model: Arc<dyn ModelProvider>,
    pub(super) summarizer: Arc<dyn ModelProvider>,
    pub(super) system: String,
    pub(super) compaction: CompactionThreshold,
    pub(super) cancel: CancelSignal,
    pub(super) hooks: RunHooks,
    /// Receives the events of the compaction.
    pub(super) events: Option<UnboundedSender<AgentEvent>>,
    pub(super) usage_events: UsageEvents,
    pub(super) todos: TodoReader,
    pub(super) scale: TokenRatio,
    /// Size of the last request.
    pub(super) last_request_size: RequestSize,
}

/// The reason why a conversation was not shortened, or why its state is unknown.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotShortened {
    #[error("a hook blocked it: {0}")]
    Blocked(String),
    #[error("a hook ended the run: {0}")]
    Stopped(String),
    #[error("no summary could be made: {0}")]
    NoSummary(ModelError),
    #[error("the run was cancelled")]
    Cancelled,
    #[error(transparent)]
    NotKept(#[from] AppendError),
}

impl RequestBuilder {
    fn facts(&self) -> &ModelFacts {
        self.model.facts()
    }

    /// Returns the estimated number of tokens of the last request.
    pub(super) fn tokens_asked(&self) -> u64 {
        self.scale.tokens(self.last_request_size)
    }

    /// Estimates the usage of the last request with this answer.
    pub(super) fn guess(&self, answer: &[Block]) -> TokenUsage {
        let output_tokens = self.scale.tokens(RequestSize::of_blocks(answer));
        TokenUsage { input_tokens: self.tokens_asked(), output_tokens, ..TokenUsage::default() }
    }

    /// Adjusts the estimates to the usage that the last request had.
    pub(super) fn answered(&mut self, usage: TokenUsage) {
        self.scale.learn(self.last_request_size, usage.context());
    }

    /// Adjusts the estimates after the last request was refused as too long. Returns `true` if a shorter one can be
    /// built.
    pub(super) fn was_too_long(&mut self) -> bool {
        self.compaction.at = Some(self.compaction.at.unwrap_or(AFTER_TOO_LONG).min(AFTER_TOO_LONG));
        self.scale.was_too_long(self.last_request_size, self.facts().context_tokens);
        self.facts().context_tokens > 0
    }

    /// Builds the next request. If it would be too long, the conversation is shortened first, then each text.
    ///
    /// # Errors
    /// [`NotShortened`], if the run cannot continue.
    pub(super) async fn request(
        &mut self,
        history: &mut ConversationHistory,
        tools: Vec<OfferedTool>,
        spending: &Spending,
    ) -> Result<ModelRequest, NotShortened> {
        let window = self.facts().context_tokens;
        let most = if window == 0 { usize::MAX } else { self.scale.bytes(window / PART_OF_TEXT) };
        let mut request = self.build(history, &tools, most);
        if let Some(limit) = self.limit()
            && self.tokens(&request) > limit
        {
            match self.shorten(history, &tools, limit, spending).await {
                Err(why @ (NotShortened::Blocked(_) | NotShortened::NoSummary(_))) => {
                    self.publish(AgentEvent::Notice(format!("The conversation is not summarized: {why}")));
                }
                other => other?,
            }
            let mut most = most;
            request = self.build(history, &tools, most);
            while self.tokens(&request) > limit && most / 2 > SHORTEST_CUT {
                most /= 2;
                request = self.build(history, &tools, most);
            }
        }
        self.last_request_size = RequestSize::of_request(&request);
        Ok(request)
    }

    /// Returns the maximum number of tokens of a request; `None`: requests are not measured.
    fn limit(&self) -> Option<u64> {
        let window = self.facts().context_tokens;
        self.compaction.at.filter(|_| window > 0).map(|part| (window as f64 * part.clamp(0.01, 1.0)) as u64)
    }

    fn tokens(&self, request: &ModelRequest) -> u64 {
        self.scale.tokens(RequestSize::of_request(request))
    }

    fn build(&self, history: &ConversationHistory, tools: &[OfferedTool], longest_text: usize) -> ModelRequest {
        let mut messages = history.messages();
        request::thin_images(&mut messages, self.facts().takes_images);
        request::cut_texts(&mut messages, longest_text);
        let mut request = ModelRequest::of(if tools.is_empty() { request::without_calls(messages) } else { messages });
        request.system.clone_from(&self.system);
        request.tools = tools.to_vec();
        request.cache_key = Some(self.conversation.session());
        request
    }

    /// Masks old outputs. If that is not enough, replaces the beginning by a summary.
    async fn shorten(
        &mut self,
        history: &mut ConversationHistory,
        tools: &[OfferedTool],
        limit: u64,
        spending: &Spending,
    ) -> Result<(), NotShortened> {
        let tokens = |this: &Self, history: &ConversationHistory| this.tokens(&this.build(history, tools, usize::MAX));
        let before = tokens(self, history);
        let masked = outputs_to_mask(history.events(), self.scale, self.facts().context_tokens);
        if !masked.is_empty() {
            history.add([ConversationEventKind::Masked { events: masked }]).await?;
            let after = tokens(self, history);
            self.publish(AgentEvent::Compacted { how: "masked", before, after });
            if after <= limit {
                return Ok(());
            }
        }
        // The size of the tools and the instructions is fixed. Half of the remaining size is left for the next
        // messages. A summary must cover a minimum size: otherwise each answer would be followed by a summary.
        let mut fixed = ModelRequest::of(Vec::new());
        (fixed.system, fixed.tools) = (self.system.clone(), tools.to_vec());
        let window = self.facts().context_tokens;
        let free = limit.saturating_sub(self.tokens(&fixed));
        let all = CompactionRemainderLimits::steps(KEPT_IN_RUN, window);
        let kept = CompactionRemainderLimits { tokens: all.tokens.min(free / 2), worth: window / 20, ..all };
        self.summarize(history, "auto", kept, spending).await.map(drop)
    }

    /// Replaces the beginning of the conversation by a summary. Returns the estimated tokens before and after; `None`
    /// if there is nothing to summarize, or if a budget does not allow it. `trigger` is the word that hooks receive.
    ///
    /// # Errors
    /// [`NotShortened`]; the conversation is unchanged then.
    pub(super) async fn summarize(
        &mut self,
        history: &mut ConversationHistory,
        trigger: &str,
        kept: CompactionRemainderLimits,
        spending: &Spending,
    ) -> Result<Option<(u64, u64)>, NotShortened> {
        let summarizers_window = self.summarizer.facts().context_tokens;
        let Some(plan) = plan(history.events(), kept, self.scale, summarizers_window) else { return Ok(None) };
        // The summary would exceed the remaining budget.
        if spending.refuses_request(self.tokens(&plan.request)).is_some() {
            return Ok(None);
        }
        let word = tokio::select! {
            biased;
            _ = self.cancel.cancelled() => return Err(NotShortened::Cancelled),
            word = self.hooks.call(HookPoint::Compacting, trigger, false) => word,
        };
        word.messages.into_iter().for_each(|message| self.publish(AgentEvent::Notice(message)));
        if let Some(reason) = word.stop {
            return Err(NotShortened::Stopped(reason));
        }
        if let Some(reason) = word.block {
            return Err(NotShortened::Blocked(reason));
        }
        let answer = ask(self.summarizer.as_ref(), plan.request.clone(), &self.cancel, None).await;
        spending.used(answer.usage, self.summarizer.facts().prices);
        self.usage_events.publish(self.summarizer.as_ref(), answer.usage);
        let summary = answer.text();
        match answer.end {
            AnswerEnd::Cancelled => return Err(NotShortened::Cancelled),
            AnswerEnd::Failed(error) => return Err(NotShortened::NoSummary(error)),
            AnswerEnd::Stopped(StopReason::Refused) => {
                return Err(NotShortened::NoSummary(ModelError::Protocol("the model refused".into())));
            }
            AnswerEnd::Stopped(_) if summary.trim().is_empty() => {
                return Err(NotShortened::NoSummary(ModelError::Protocol("the model wrote nothing".into())));
            }
            AnswerEnd::Stopped(_) => {}
        }
        let before = self.tokens(&self.build(history, &[], usize::MAX));
        history.add([plan.event(&summary, &self.todos.now().await)]).await?;
        let after = self.tokens(&self.build(history, &[], usize::MAX));
        self.publish(AgentEvent::Compacted { how: "summarized", before, after });
        Ok(Some((before, after)))
    }

    fn publish(&self, event: AgentEvent) {
        if let Some(telling) = &self.events {
            // Fails if the events are no longer read; the run is being cancelled then.
            let _ = telling.send(event);
        }
    }
}
