//! Requests that fit the model's window: what came before is made shorter where it must be.

use super::{
    Compaction,
    answer::{End, ask},
    compaction::{Kept, outputs_to_mask, plan},
    history::History,
    hooks::{Hooks, Told},
    request,
    size::{Scale, Size},
    spending::Spending,
    todos::Todos,
    usage_events::UsageEvents,
};
use crate::cancel_signal::CancelSignal;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use toolstead_domain::{
    agent::event::AgentEvent,
    conversation::{ConversationId, event::ConversationEventKind},
    model::{
        error::ModelError,
        message::Block,
        reply::StopReason,
        request::{ModelRequest, OfferedTool},
        usage::Usage,
    },
    ports::{
        conversation_store::AppendError,
        model_provider::{ModelFacts, ModelProvider},
    },
};

/// The part of the window that may be full after the model said that a request was too long.
const AFTER_TOO_LONG: f64 = 0.8;
/// A text has at most this part of the window.
const PART_OF_TEXT: u64 = 4;
/// No text is cut to fewer bytes.
const SHORTEST_CUT: usize = 500;
/// As many prompts and answers stay as they were before a run goes on.
pub(super) const KEPT_IN_RUN: usize = 6;

/// Makes the requests of one conversation.
pub(super) struct Fitting {
    pub(super) conversation: ConversationId,
    pub(super) model: Arc<dyn ModelProvider>,
    pub(super) summarizer: Arc<dyn ModelProvider>,
    pub(super) system: String,
    pub(super) compaction: Compaction,
    pub(super) cancel: CancelSignal,
    pub(super) hooks: Hooks,
    /// Hears what happens to the conversation.
    pub(super) telling: Option<UnboundedSender<AgentEvent>>,
    pub(super) usage_events: UsageEvents,
    pub(super) todos: Todos,
    pub(super) scale: Scale,
    /// The last request.
    pub(super) asked: Size,
}

/// The reason why a conversation is as long as before, or why nobody knows what became of it.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotShortened {
    #[error("a hook is against it: {0}")]
    Blocked(String),
    #[error("a hook ended the run: {0}")]
    Stopped(String),
    #[error("no summary could be made: {0}")]
    NoSummary(ModelError),
    #[error("the run was taken back")]
    TakenBack,
    #[error(transparent)]
    NotKept(#[from] AppendError),
}

impl Fitting {
    fn facts(&self) -> &ModelFacts {
        self.model.facts()
    }

    /// Tokens of the last request, as far as can be told.
    pub(super) fn tokens_asked(&self) -> u64 {
        self.scale.tokens(self.asked)
    }

    /// The tokens of the last request with this answer, as far as can be told.
    pub(super) fn guess(&self, answer: &[Block]) -> Usage {
        let output_tokens = self.scale.tokens(Size::of_blocks(answer));
        Usage { input_tokens: self.tokens_asked(), output_tokens, ..Usage::default() }
    }

    /// The last request took this.
    pub(super) fn answered(&mut self, usage: Usage) {
        self.scale.learn(self.asked, usage.context());
    }

    /// The last request was too long. Tells whether another one can be shorter.
    pub(super) fn was_too_long(&mut self) -> bool {
        self.compaction.at = Some(self.compaction.at.unwrap_or(AFTER_TOO_LONG).min(AFTER_TOO_LONG));
        self.scale.was_too_long(self.asked, self.facts().context_tokens);
        self.facts().context_tokens > 0
    }

    /// The next request. Where it would be too long what came before is made shorter, and in the end each text is.
    ///
    /// # Errors
    /// [`NotShortened`], save what leaves the run able to go on.
    pub(super) async fn request(
        &mut self,
        history: &mut History,
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
                    self.tell(AgentEvent::Notice(format!("The conversation is not summarized: {why}")));
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
        self.asked = Size::of_request(&request);
        Ok(request)
    }

    /// The tokens that a request may have; `None`: it is not looked at.
    fn limit(&self) -> Option<u64> {
        let window = self.facts().context_tokens;
        self.compaction.at.filter(|_| window > 0).map(|part| (window as f64 * part.clamp(0.01, 1.0)) as u64)
    }

    fn tokens(&self, request: &ModelRequest) -> u64 {
        self.scale.tokens(Size::of_request(request))
    }

    fn build(&self, history: &History, tools: &[OfferedTool], longest_text: usize) -> ModelRequest {
        let mut messages = history.messages();
        request::thin_images(&mut messages, self.facts().takes_images);
        request::cut_texts(&mut messages, longest_text);
        let mut request = ModelRequest::of(if tools.is_empty() { request::without_calls(messages) } else { messages });
        request.system.clone_from(&self.system);
        request.tools = tools.to_vec();
        request.cache_key = Some(self.conversation.session());
        request
    }

    /// Masks old outputs; where that is not enough what came first becomes a summary.
    async fn shorten(
        &mut self,
        history: &mut History,
        tools: &[OfferedTool],
        limit: u64,
        spending: &Spending,
    ) -> Result<(), NotShortened> {
        let tokens = |this: &Self, history: &History| this.tokens(&this.build(history, tools, usize::MAX));
        let before = tokens(self, history);
        let masked = outputs_to_mask(history.events(), self.scale, self.facts().context_tokens);
        if !masked.is_empty() {
            history.add([ConversationEventKind::Masked { events: masked }]).await?;
            let after = tokens(self, history);
            self.tell(AgentEvent::Compacted { how: "masked", before, after });
            if after <= limit {
                return Ok(());
            }
        }
        // The tools and the instructions stay as large as they are. Half of the rest is left to what comes next, and no
        // summary is made for a few words: otherwise each answer would be followed by one.
        let mut fixed = ModelRequest::of(Vec::new());
        (fixed.system, fixed.tools) = (self.system.clone(), tools.to_vec());
        let window = self.facts().context_tokens;
        let free = limit.saturating_sub(self.tokens(&fixed));
        let all = Kept::steps(KEPT_IN_RUN, window);
        let kept = Kept { tokens: all.tokens.min(free / 2), worth: window / 20, ..all };
        self.summarize(history, "auto", kept, spending).await.map(drop)
    }

    /// Makes a summary of what came first. Tells the tokens before and after; `None` where there is nothing to summarize, or
    /// a budget does not allow it.
    ///
    /// # Errors
    /// [`NotShortened`]; then nothing is another than before.
    pub(super) async fn summarize(
        &mut self,
        history: &mut History,
        trigger: &str,
        kept: Kept,
        spending: &Spending,
    ) -> Result<Option<(u64, u64)>, NotShortened> {
        let summarizers_window = self.summarizer.facts().context_tokens;
        let Some(plan) = plan(history.events(), kept, self.scale, summarizers_window) else { return Ok(None) };
        // It would take what is left of the run.
        if spending.refuses_request(self.tokens(&plan.request)).is_some() {
            return Ok(None);
        }
        let word = tokio::select! {
            biased;
            _ = self.cancel.cancelled() => return Err(NotShortened::TakenBack),
            word = self.hooks.hear(Told::Compacting, trigger, false) => word,
        };
        word.messages.into_iter().for_each(|message| self.tell(AgentEvent::Notice(message)));
        if let Some(reason) = word.stop {
            return Err(NotShortened::Stopped(reason));
        }
        if let Some(reason) = word.block {
            return Err(NotShortened::Blocked(reason));
        }
        let answer = ask(self.summarizer.as_ref(), plan.request.clone(), &self.cancel, None).await;
        spending.used(answer.usage, self.summarizer.facts().prices);
        self.usage_events.tell(self.summarizer.as_ref(), answer.usage);
        let summary = answer.text();
        match answer.end {
            End::TakenBack => return Err(NotShortened::TakenBack),
            End::Failed(error) => return Err(NotShortened::NoSummary(error)),
            End::Stopped(StopReason::Refused) => {
                return Err(NotShortened::NoSummary(ModelError::Protocol("the model is against it".into())));
            }
            End::Stopped(_) if summary.trim().is_empty() => {
                return Err(NotShortened::NoSummary(ModelError::Protocol("the model wrote nothing".into())));
            }
            End::Stopped(_) => {}
        }
        let before = self.tokens(&self.build(history, &[], usize::MAX));
        history.add([plan.event(&summary, &self.todos.now().await)]).await?;
        let after = self.tokens(&self.build(history, &[], usize::MAX));
        self.tell(AgentEvent::Compacted { how: "summarized", before, after });
        Ok(Some((before, after)))
    }

    fn tell(&self, event: AgentEvent) {
        if let Some(telling) = &self.telling {
            // Fails where nobody reads any more; the run is being taken back then.
            let _ = telling.send(event);
        }
    }
}
