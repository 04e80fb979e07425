//! A caller that records all messages and returns scripted answers.

use super::lock;
use crate::ports::caller::{Caller, InputRequest, InputResponse, LogMessage, NotAnswered, Progress};
use async_trait::async_trait;
use std::{collections::VecDeque, sync::Mutex};

/// Caller that records everything, and answers questions in the order of the given answers. Further questions are not
/// answered.
#[derive(Debug, Default)]
pub struct RecordingCaller {
    progress: Mutex<Vec<Progress>>,
    logs: Mutex<Vec<LogMessage>>,
    questions: Mutex<Vec<InputRequest>>,
    answers: Mutex<VecDeque<Result<InputResponse, NotAnswered>>>,
}

impl RecordingCaller {
    /// Creates a caller that answers every question with [`NotAnswered::Unsupported`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a caller with these answers, one per question.
    pub fn answering(answers: impl IntoIterator<Item = Result<InputResponse, NotAnswered>>) -> Self {
        Self { answers: Mutex::new(answers.into_iter().collect()), ..Self::default() }
    }

    /// Returns the reported progress, in order.
    pub fn progress_reports(&self) -> Vec<Progress> {
        lock(&self.progress).clone()
    }

    /// Returns the log messages, in order.
    pub fn log_messages(&self) -> Vec<LogMessage> {
        lock(&self.logs).clone()
    }

    /// Returns the questions so far, in order.
    pub fn questions(&self) -> Vec<InputRequest> {
        lock(&self.questions).clone()
    }
}

#[async_trait]
impl Caller for RecordingCaller {
    fn progress(&self, progress: Progress) {
        lock(&self.progress).push(progress);
    }

    fn log(&self, message: LogMessage) {
        lock(&self.logs).push(message);
    }

    async fn ask(&self, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        lock(&self.questions).push(request);
        lock(&self.answers).pop_front().unwrap_or(Err(NotAnswered::Unsupported))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::block_on::block_on;
    use serde_json::json;

    #[test]
    fn the_caller_returns_its_answers_in_order_and_then_unsupported() {
        let yes = InputResponse(json!({"action": "accept"}));
        let caller = RecordingCaller::answering([Ok(yes.clone()), Err(NotAnswered::Disconnected)]);
        let ask = || block_on(caller.ask(InputRequest { method: "roots/list".into(), params: json!({}) }));
        assert_eq!([ask(), ask(), ask()], [Ok(yes), Err(NotAnswered::Disconnected), Err(NotAnswered::Unsupported)]);
        assert_eq!(caller.questions().len(), 3);
    }
}
