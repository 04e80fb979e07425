//! One answer of a model, read while it is streamed.

use crate::cancel_signal::CancelSignal;
use tokio::sync::mpsc::UnboundedSender;
use toolstead_domain::{
    AgentEvent, Block, ModelError, ModelEvent, ModelProvider, ModelRequest, StopReason, TokenUsage, ToolUse,
};

/// The answer of a model, complete or partial.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) blocks: Vec<Block>,
    pub(super) usage: TokenUsage,
    pub(super) end: AnswerEnd,
    /// Name of the last call whose beginning, but not its end, arrived.
    pub(super) lost_call: Option<String>,
}

/// The end of an answer.
#[derive(Debug, Default)]
pub(super) enum AnswerEnd {
    /// Ended by the model, for this reason.
    Stopped(StopReason),
    /// Failed, before or after a part of the answer arrived.
    Failed(ModelError),
    /// The run was cancelled.
    #[default]
    Cancelled,
}

impl Answer {
    pub(super) fn calls(&self) -> Vec<ToolUse> {
        let calls = self.blocks.iter().filter_map(|block| match block {
            Block::ToolUse(call) => Some(call.clone()),
            _ => None,
        });
        calls.collect()
    }

    pub(super) fn text(&self) -> String {
        let texts = self.blocks.iter().filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// Returns `true` if the answer has text or a call. An incomplete answer without either is not stored.
    pub(super) fn says_something(&self) -> bool {
        self.blocks.iter().any(|block| matches!(block, Block::Text { .. } | Block::ToolUse(_)))
    }
}

/// Sends the request to the model and publishes its answer while it arrives. If the run is cancelled, the request is
/// cancelled, and the part received so far is the answer.
pub(super) async fn ask(
    model: &dyn ModelProvider,
    request: ModelRequest,
    cancel: &CancelSignal,
    telling: Option<&UnboundedSender<AgentEvent>>,
) -> Answer {
    let mut answer = Answer::default();
    let mut partial = PartialBlocks::default();
    let read = read(model, request, telling, &mut answer, &mut partial);
    let end = tokio::select! {
        biased;
        _ = cancel.cancelled() => AnswerEnd::Cancelled,
        end = read => end,
    };
    if !partial.text.is_empty() {
        answer.blocks.push(Block::text(partial.text));
    }
    answer.lost_call = partial.call;
    answer.end = end;
    answer
}

/// The parts of blocks that are not complete yet.
#[derive(Default)]
struct PartialBlocks {
    text: String,
    call: Option<String>,
}

async fn read(
    model: &dyn ModelProvider,
    request: ModelRequest,
    telling: Option<&UnboundedSender<AgentEvent>>,
    answer: &mut Answer,
    partial: &mut PartialBlocks,
) -> AnswerEnd {
    let tell = |event: AgentEvent| {
        if let Some(telling) = telling {
            // Fails if the events are no longer read; the run is being cancelled then.
            let _ = telling.send(event);
        }
    };
    let mut pieces = match model.send(request).await {
        Ok(pieces) => pieces,
        Err(error) => return AnswerEnd::Failed(error),
    };
    loop {
        match pieces.next().await {
            Some(Ok(ModelEvent::Retrying { after, reason })) => tell(AgentEvent::Retrying { after, reason }),
            Some(Ok(ModelEvent::TextDelta(text))) => {
                partial.text.push_str(&text);
                tell(AgentEvent::Text(text));
            }
            Some(Ok(ModelEvent::ThinkingDelta(text))) => tell(AgentEvent::Thinking(text)),
            Some(Ok(ModelEvent::CallBegun { name })) => {
                partial.call = Some(name.clone());
                tell(AgentEvent::CallWritten { tool: name });
            }
            Some(Ok(ModelEvent::Block(block))) => {
                match &block {
                    Block::Text { .. } => partial.text.clear(),
                    Block::ToolUse(_) => partial.call = None,
                    _ => {}
                }
                answer.blocks.push(block);
            }
            Some(Ok(ModelEvent::Finished { stop, usage })) => {
                partial.text.clear();
                answer.usage = usage;
                return AnswerEnd::Stopped(stop);
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => return AnswerEnd::Failed(error),
            None => return AnswerEnd::Failed(ModelError::Unreachable("the answer broke off without an end".into())),
        }
    }
}
