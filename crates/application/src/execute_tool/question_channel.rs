//! Questions to the client. While a call waits for answers, its audit record and its events show that, and its timeout
//! is paused.

mod questions;

use super::{
    activity_tracker::{ActivityTracker, BlockedGuard},
    command::ExecuteToolCommand,
    events,
    nesting::NestedCallPosition,
    ports::ExecuteToolPorts,
    record::CallRecord,
    waiting_time::{WaitingTime, WaitingTimeGuard},
};
use crate::open_calls::OpenCalls;
use async_trait::async_trait;
use questions::QuestionAuditWriter;
pub(super) use questions::QuestionRelay;
pub(crate) use questions::adapt_for_client;
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::runtime::Handle;
use toolstead_domain::{
    Caller, ExecutionLog, ExecutionOutcome, InputRequest, InputResponse, LogMessage, NotAnswered, Progress, ToolCall,
    ToolExecution,
};

/// Channel to the client for questions about a call. A question that cannot be recorded is not asked.
pub(super) struct QuestionChannel<'a> {
    caller: &'a dyn Caller,
    call: &'a ToolCall,
    ports: &'a ExecuteToolPorts,
    open_calls: &'a Arc<OpenCalls>,
    parent: Option<&'a NestedCallPosition>,
    /// Time that the call waits for answers. Created with the first wait, as is `activity`: most calls have none.
    time: OnceLock<WaitingTime>,
    activity: OnceLock<Arc<ActivityTracker>>,
    /// Record of the call before its first question.
    record: &'a CallRecord,
    /// Created with the first question. Most calls ask none.
    wait_recorder: OnceLock<Arc<WaitingStateRecorder>>,
    /// Questions of the call's own tool; `None` for questions of the runtime, such as approval.
    questions: Option<QuestionRelay<'a>>,
}

/// Writer of the waiting state of a call to its audit record.
struct WaitingStateRecorder {
    log: Arc<dyn ExecutionLog>,
    row: ToolExecution,
    own: WaitingTime,
    /// Held while the record is written, so that its outcome matches the number of pending answers.
    lock: tokio::sync::Mutex<()>,
}

/// Pending answer. Dropping it before the answer arrives withdraws the question, and the call resumes.
struct PendingAnswerGuard {
    wait: Option<(WaitingTimeGuard, BlockedGuard)>,
    recorder: Arc<WaitingStateRecorder>,
    rows: Option<Arc<QuestionAuditWriter>>,
}

impl<'a> QuestionChannel<'a> {
    /// Creates a channel for questions about the call with this record.
    pub(super) fn new(
        command: &'a ExecuteToolCommand,
        call: &'a ToolCall,
        record: &'a CallRecord,
        ports: &'a ExecuteToolPorts,
        open_calls: &'a Arc<OpenCalls>,
    ) -> Self {
        Self {
            caller: command.caller.as_ref(),
            call,
            ports,
            open_calls,
            parent: command.parent.as_ref(),
            time: OnceLock::new(),
            activity: OnceLock::new(),
            record,
            wait_recorder: OnceLock::new(),
            questions: None,
        }
    }

    /// Returns the channel for questions of the call's own tool.
    pub(super) fn for_tool(self, questions: QuestionRelay<'a>) -> Self {
        Self { questions: Some(questions), ..self }
    }

    /// Waits until the records of all questions are stored. Requires that the call has ended.
    pub(super) async fn end(&self) {
        if let Some(rows) = self.questions.as_ref().and_then(QuestionRelay::open_rows) {
            // Boxed: most calls ask nothing.
            Box::pin(rows.settle()).await;
        }
    }

    /// Returns the time that the call has waited for answers, including those about nested calls.
    pub(super) fn time(&self) -> &WaitingTime {
        self.time.get_or_init(|| WaitingTime::below(self.parent.map(NestedCallPosition::waiting)))
    }

    /// Returns the tracker of the call's activity.
    pub(super) fn activity(&self) -> &Arc<ActivityTracker> {
        self.activity.get_or_init(|| {
            let root = self.parent.map_or(self.call.id, NestedCallPosition::root);
            ActivityTracker::new(root, self.open_calls)
        })
    }

    fn wait_recorder(&self) -> &Arc<WaitingStateRecorder> {
        self.wait_recorder.get_or_init(|| {
            let (log, own) = (self.ports.log.clone(), WaitingTime::below(Some(self.time())));
            let row = self.record.execution().to_execution();
            Arc::new(WaitingStateRecorder { log, row, own, lock: tokio::sync::Mutex::default() })
        })
    }

    /// Records that the call waits, then waits for the answer.
    async fn waiting(
        &self,
        answer: impl Future<Output = Result<InputResponse, NotAnswered>> + Send,
    ) -> Result<InputResponse, NotAnswered> {
        let telling = self.wait_recorder();
        let mut waited = {
            let _lock = telling.lock.lock().await;
            let rows = self.questions.as_ref().map(|questions| questions.rows().clone());
            let waited = PendingAnswerGuard {
                wait: Some((telling.own.begin(), self.activity().block())),
                recorder: telling.clone(),
                rows,
            };
            if telling.own.open() == 1 {
                telling.record_outcome(ExecutionOutcome::InputRequired).await?;
                events::suspended(&self.ports.events, self.call);
            }
            waited
        };
        let said = answer.await;
        let wait = waited.wait.take();
        telling.end_wait(wait).await;
        said
    }

    async fn put<F>(
        &self,
        request: InputRequest,
        ask: impl FnOnce(InputRequest) -> F + Send,
    ) -> Result<InputResponse, NotAnswered>
    where
        F: Future<Output = Result<InputResponse, NotAnswered>> + Send,
    {
        match &self.questions {
            Some(questions) => {
                questions.admit(&request)?;
                self.waiting(questions.put(request, ask)).await
            }
            None => self.waiting(ask(request)).await,
        }
    }
}

impl WaitingStateRecorder {
    /// Ends one wait. Records the call as running if no other answer is pending.
    async fn end_wait(&self, wait: Option<(WaitingTimeGuard, BlockedGuard)>) {
        let _lock = self.lock.lock().await;
        drop(wait);
        if self.own.open() == 0 {
            // If this write fails, the final record still contains the outcome.
            let _ = self.record_outcome(ExecutionOutcome::Running).await;
        }
    }

    async fn record_outcome(&self, outcome: ExecutionOutcome) -> Result<(), NotAnswered> {
        let row = ToolExecution { outcome, ..self.row.clone() };
        self.log.record(row).await.map_err(|error| {
            tracing::error!(call = %self.row.id, error = &error as &dyn std::error::Error, "a question is not recorded");
            NotAnswered::NotRecorded
        })
    }
}

impl Drop for PendingAnswerGuard {
    fn drop(&mut self) {
        let (Some(wait), Ok(runtime)) = (self.wait.take(), Handle::try_current()) else { return };
        let (telling, rows) = (self.recorder.clone(), self.rows.take());
        // If the call has ended by then, its final record remains unchanged.
        runtime.spawn(async move {
            if let Some(rows) = rows {
                rows.settle().await;
            }
            telling.end_wait(Some(wait)).await;
        });
    }
}

#[async_trait]
impl Caller for QuestionChannel<'_> {
    fn wants_progress(&self) -> bool {
        self.caller.wants_progress()
    }

    async fn hurried(&self) {
        self.caller.hurried().await;
    }

    async fn disconnected(&self) {
        self.caller.disconnected().await;
    }

    fn waited(&self) -> Duration {
        self.time.get().map_or(Duration::ZERO, WaitingTime::so_far)
    }

    fn progress(&self, progress: Progress) {
        self.caller.progress(progress);
    }

    fn log(&self, message: LogMessage) {
        self.caller.log(message);
    }

    fn elicitation_completed(&self, elicitation_id: &str) {
        self.caller.elicitation_completed(elicitation_id);
    }

    async fn ask(&self, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        self.put(request, |request| self.caller.ask(request)).await
    }

    async fn ask_as(&self, key: &str, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        self.put(request, |request| self.caller.ask_as(key, request)).await
    }
}
