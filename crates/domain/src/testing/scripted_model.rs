//! A language model with scripted answers.

use super::{lock, waitable_counter::WaitableCounter};
use crate::{
    model::{
        error::ModelError,
        message::{Block, ToolArguments, ToolUse},
        reply::{ModelEvent, StopReason},
        request::ModelRequest,
        usage::{TokenPrices, TokenUsage},
    },
    ports::model_provider::{ModelAnswer, ModelFacts, ModelProvider},
};
use async_trait::async_trait;
use serde_json::Value;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

/// Model that returns one scripted answer per request, in their order, and records the requests. A request after the
/// last of them fails.
#[derive(Debug)]
pub struct ScriptedModel {
    name: String,
    facts: ModelFacts,
    script: Mutex<VecDeque<ScriptedAnswer>>,
    requests: Mutex<Vec<ModelRequest>>,
    state: Arc<ModelSignals>,
}

/// State that answers share with their model.
#[derive(Debug, Default)]
struct ModelSignals {
    asked: WaitableCounter,
    stuck: WaitableCounter,
    released: WaitableCounter,
    dropped_answers: WaitableCounter,
}

/// Scripted answer.
#[derive(Debug, Clone, Default)]
pub struct ScriptedAnswer {
    steps: VecDeque<AnswerStep>,
    calls: bool,
    stop: Option<StopReason>,
    usage: TokenUsage,
    refusal: Option<ModelError>,
    ending: AnswerEnding,
}

#[derive(Debug, Clone)]
enum AnswerStep {
    Event(ModelEvent),
    /// Waits until the model is released.
    Wait,
}

#[derive(Debug, Clone, Default)]
enum AnswerEnding {
    #[default]
    Finished,
    Error(ModelError),
    Never,
}

impl ScriptedModel {
    /// Creates a model with these answers. Its context window has 200,000 tokens, it accepts images, and its prices are
    /// unknown.
    pub fn answering(answers: impl IntoIterator<Item = ScriptedAnswer>) -> Self {
        let facts = ModelFacts {
            provider: "scripted".into(),
            model: "scripted-1".into(),
            context_tokens: 200_000,
            takes_images: true,
            prices: None,
        };
        Self {
            name: "scripted".into(),
            facts,
            script: Mutex::new(answers.into_iter().collect()),
            requests: Mutex::default(),
            state: Arc::default(),
        }
    }

    /// Sets the name.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Sets the size of the context window, in tokens.
    #[must_use]
    pub fn with_window(mut self, tokens: u64) -> Self {
        self.facts.context_tokens = tokens;
        self
    }

    /// Sets the prices.
    #[must_use]
    pub fn with_prices(mut self, prices: TokenPrices) -> Self {
        self.facts.prices = Some(prices);
        self
    }

    /// Makes the model reject images.
    #[must_use]
    pub fn without_sight(mut self) -> Self {
        self.facts.takes_images = false;
        self
    }

    /// Adds an answer after the remaining ones.
    pub fn answers_next(&self, answer: ScriptedAnswer) {
        lock(&self.script).push_back(answer);
    }

    /// Returns the requests so far, in order.
    pub fn requests(&self) -> Vec<ModelRequest> {
        lock(&self.requests).clone()
    }

    /// Returns the number of remaining answers.
    pub fn left(&self) -> usize {
        lock(&self.script).len()
    }

    /// Returns once this number of requests was made.
    pub async fn asked(&self, requests: u64) {
        self.state.asked.reached(requests).await;
    }

    /// Returns once this number of answers has reached a [wait](ScriptedAnswer::waits), or the end of an answer that
    /// never ends.
    pub async fn stuck(&self, answers: u64) {
        self.state.stuck.reached(answers).await;
    }

    /// Resumes all waiting answers, now and later.
    pub fn release(&self) {
        self.state.released.raise();
    }

    /// Returns the number of answers that were dropped before their end.
    pub fn dropped_answers(&self) -> u64 {
        self.state.dropped_answers.count()
    }
}

impl ScriptedAnswer {
    /// Creates an answer without content.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Creates an answer with a text.
    pub fn text(text: &str) -> Self {
        Self::empty().and_text(text)
    }

    /// Creates an answer with a call.
    pub fn call(id: &str, tool: &str, arguments: Value) -> Self {
        Self::empty().and_call(id, tool, arguments)
    }

    /// Creates a script entry with which the request fails instead of being answered.
    pub fn refused(error: ModelError) -> Self {
        Self { refusal: Some(error), ..Self::default() }
    }

    /// Adds a text, in two pieces.
    #[must_use]
    pub fn and_text(self, text: &str) -> Self {
        let middle = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
        let (first, second) = text.split_at(middle);
        self.and_event(ModelEvent::TextDelta(first.into()))
            .and_event(ModelEvent::TextDelta(second.into()))
            .and_block(Block::text(text))
    }

    /// Adds a call. Arguments other than an object are malformed: a text is what the model wrote.
    #[must_use]
    pub fn and_call(mut self, id: &str, tool: &str, arguments: Value) -> Self {
        self.calls = true;
        let arguments = match arguments {
            Value::Object(object) => ToolArguments::Object(object),
            Value::String(text) => ToolArguments::Malformed(text),
            other => ToolArguments::Malformed(other.to_string()),
        };
        self.and_event(ModelEvent::CallBegun { name: tool.into() }).and_block(Block::ToolUse(ToolUse {
            id: id.into(),
            name: tool.into(),
            arguments,
            sealed: None,
        }))
    }

    /// Adds a whole block.
    #[must_use]
    pub fn and_block(self, block: Block) -> Self {
        self.and_event(ModelEvent::Block(block))
    }

    /// Adds an event.
    #[must_use]
    pub fn and_event(mut self, event: ModelEvent) -> Self {
        self.steps.push_back(AnswerStep::Event(event));
        self
    }

    /// Reports a retry of the request before the answer.
    #[must_use]
    pub fn after_retry(mut self, after: Duration, reason: &str) -> Self {
        self.steps.push_front(AnswerStep::Event(ModelEvent::Retrying { after, reason: reason.into() }));
        self
    }

    /// Adds a wait until the model is [released](ScriptedModel::release).
    #[must_use]
    pub fn waits(mut self) -> Self {
        self.steps.push_back(AnswerStep::Wait);
        self
    }

    /// Sets the stop reason. By default, an answer with calls stops for their results, and any other one is complete.
    #[must_use]
    pub fn stops(self, stop: StopReason) -> Self {
        Self { stop: Some(stop), ..self }
    }

    /// Sets the used tokens.
    #[must_use]
    pub fn uses(self, usage: TokenUsage) -> Self {
        Self { usage, ..self }
    }

    /// Ends the answer with an error.
    #[must_use]
    pub fn breaks_off(self, error: ModelError) -> Self {
        Self { ending: AnswerEnding::Error(error), ..self }
    }

    /// Makes the answer never end.
    #[must_use]
    pub fn never_ends(self) -> Self {
        Self { ending: AnswerEnding::Never, ..self }
    }
}

#[async_trait]
impl ModelProvider for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    async fn send(&self, request: ModelRequest) -> Result<Box<dyn ModelAnswer>, ModelError> {
        lock(&self.requests).push(request);
        self.state.asked.raise();
        let next = lock(&self.script).pop_front();
        let answer = next.ok_or_else(|| ModelError::Protocol("the script is at its end".into()))?;
        match answer.refusal {
            Some(error) => Err(error),
            None => Ok(Box::new(AnswerInProgress { answer, state: self.state.clone(), is_over: false })),
        }
    }
}

/// Answer that is being received.
struct AnswerInProgress {
    answer: ScriptedAnswer,
    state: Arc<ModelSignals>,
    is_over: bool,
}

#[async_trait]
impl ModelAnswer for AnswerInProgress {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        if self.is_over {
            return None;
        }
        while let Some(step) = self.answer.steps.front() {
            if let AnswerStep::Event(event) = step {
                let event = event.clone();
                self.answer.steps.pop_front();
                return Some(Ok(event));
            }
            self.state.stuck.raise();
            self.state.released.reached(1).await;
            self.answer.steps.pop_front();
        }
        let end = match &self.answer.ending {
            AnswerEnding::Never => {
                self.state.stuck.raise();
                std::future::pending().await
            }
            AnswerEnding::Error(error) => Err(error.clone()),
            AnswerEnding::Finished => {
                let done = if self.answer.calls { StopReason::ToolUse } else { StopReason::EndTurn };
                Ok(ModelEvent::Finished { stop: self.answer.stop.unwrap_or(done), usage: self.answer.usage })
            }
        };
        self.is_over = true;
        Some(end)
    }
}

impl Drop for AnswerInProgress {
    fn drop(&mut self) {
        if !self.is_over {
            self.state.dropped_answers.raise();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::message::Message, testing::block_on::block_on};
    use serde_json::json;
    use std::{
        pin::pin,
        task::{Context, Poll, Waker},
    };

    fn heard(model: &ScriptedModel) -> Vec<Result<ModelEvent, ModelError>> {
        block_on(async {
            let mut answer = match model.send(ModelRequest::of(vec![Message::user("hi")])).await {
                Ok(answer) => answer,
                Err(error) => return vec![Err(error)],
            };
            let mut heard = Vec::new();
            while let Some(event) = answer.next().await {
                heard.push(event);
            }
            heard
        })
    }

    #[test]
    fn answers_come_in_their_order_and_each_ends_once() {
        let broken = ModelError::Unreachable("gone".into());
        let model = ScriptedModel::answering([
            ScriptedAnswer::text("hello").and_call("c1", "echo", json!({"a": 1})),
            ScriptedAnswer::text("half").breaks_off(broken.clone()),
            ScriptedAnswer::refused(broken.clone()),
        ]);
        let first = heard(&model);
        let stops = |event: &Result<ModelEvent, ModelError>| matches!(event, Ok(ModelEvent::Finished { .. }));
        assert_eq!((first.iter().filter(|event| stops(event)).count(), stops(&first[first.len() - 1])), (1, true));
        let finished = ModelEvent::Finished { stop: StopReason::ToolUse, usage: TokenUsage::default() };
        assert_eq!(first.last(), Some(&Ok(finished)));
        assert_eq!(heard(&model).last(), Some(&Err(broken.clone())));
        assert_eq!(heard(&model), [Err(broken)]);
        assert!(matches!(heard(&model)[..], [Err(ModelError::Protocol(_))]), "the script is at its end");
        assert_eq!((model.requests().len(), model.left(), model.dropped_answers()), (4, 0, 0));
    }

    #[test]
    fn a_waiting_answer_continues_on_release_and_dropped_answers_are_counted() {
        let model = ScriptedModel::answering([
            ScriptedAnswer::empty().waits().and_text("late"),
            ScriptedAnswer::text("half").never_ends(),
        ]);
        block_on(async {
            let mut answer = model.send(ModelRequest::default()).await.unwrap();
            {
                let mut next = pin!(answer.next());
                assert!(next.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
                model.stuck(1).await;
                model.release();
                assert!(matches!(
                    next.as_mut().poll(&mut Context::from_waker(Waker::noop())),
                    Poll::Ready(Some(Ok(ModelEvent::TextDelta(_))))
                ));
            }
            drop(answer);
            let mut endless = model.send(ModelRequest::default()).await.unwrap();
            for _ in 0..3 {
                assert!(matches!(endless.next().await, Some(Ok(_))));
            }
            {
                let mut next = pin!(endless.next());
                assert!(next.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            }
            drop(endless);
        });
        assert_eq!(model.dropped_answers(), 2);
    }
}
