//! The way to the client: that a call waits for its answers is told in its row and to those who watch, and not counted.

mod questions;

use super::{
    ExecuteToolCommand, ExecuteToolPorts, Nesting,
    activity_tracker::{ActivityTracker, BlockedGuard},
    events,
    record::Record,
    waiting_time::{Wait, WaitingTime},
};
use crate::open_calls::OpenCalls;
use async_trait::async_trait;
pub(super) use questions::Questions;
use questions::Rows;
pub(crate) use questions::fitted;
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::runtime::Handle;
use toolstead_domain::{
    ports::{
        caller::{Caller, InputRequest, InputResponse, LogMessage, NotAnswered, Progress},
        execution_log::ExecutionLog,
    },
    tool_call::ToolCall,
    tool_execution::{Outcome, ToolExecution},
};

/// The way to the client, for whoever asks something about a call. What cannot be recorded is not asked.
pub(super) struct Asking<'a> {
    caller: &'a dyn Caller,
    call: &'a ToolCall,
    ports: &'a ExecuteToolPorts,
    open_calls: &'a Arc<OpenCalls>,
    parent: Option<&'a Nesting>,
    /// Time that the call waits for answers. Created with the first wait, as is the tracker: most calls have none.
    time: OnceLock<WaitingTime>,
    activity: OnceLock<Arc<ActivityTracker>>,
    /// The record of the call, as it is before anything is asked.
    record: &'a Record,
    /// Made with the first question, which most calls never ask.
    telling: OnceLock<Arc<Telling>>,
    /// Those of the call's own tool; `None` before it runs.
    questions: Option<Questions<'a>>,
}

/// Tells the row of the call what it does.
struct Telling {
    log: Arc<dyn ExecutionLog>,
    row: ToolExecution,
    own: WaitingTime,
    /// The row changes under this, so that it says what is.
    lock: tokio::sync::Mutex<()>,
}

/// An answer that is waited for. Dropping it unanswered takes the question back, and the call goes on.
struct Waited {
    wait: Option<(Wait, BlockedGuard)>,
    telling: Arc<Telling>,
    rows: Option<Arc<Rows>>,
}

impl<'a> Asking<'a> {
    /// For the call with this row, as it is before it asks.
    pub(super) fn new(
        command: &'a ExecuteToolCommand,
        call: &'a ToolCall,
        record: &'a Record,
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
            telling: OnceLock::new(),
            questions: None,
        }
    }

    /// The same for what the call's own tool asks.
    pub(super) fn for_tool(self, questions: Questions<'a>) -> Self {
        Self { questions: Some(questions), ..self }
    }

    /// Returns once every question of the call, which has ended, is on record.
    pub(super) async fn end(&self) {
        if let Some(rows) = self.questions.as_ref().and_then(Questions::open_rows) {
            // Boxed: most calls ask nothing.
            Box::pin(rows.settle()).await;
        }
    }

    /// Returns the time that the call has waited for answers, those about nested calls included.
    pub(super) fn time(&self) -> &WaitingTime {
        self.time.get_or_init(|| WaitingTime::below(self.parent.map(Nesting::waiting)))
    }

    /// Returns the tracker of the call's activity.
    pub(super) fn activity(&self) -> &Arc<ActivityTracker> {
        self.activity.get_or_init(|| {
            let root = self.parent.map_or(self.call.id, Nesting::root);
            ActivityTracker::new(root, self.open_calls)
        })
    }

    fn telling(&self) -> &Arc<Telling> {
        self.telling.get_or_init(|| {
            let (log, own) = (self.ports.log.clone(), WaitingTime::below(Some(self.time())));
            let row = self.record.execution().to_execution();
            Arc::new(Telling { log, row, own, lock: tokio::sync::Mutex::default() })
        })
    }

    /// Waits for the answer, once it is on record that the call does.
    async fn waiting(
        &self,
        answer: impl Future<Output = Result<InputResponse, NotAnswered>> + Send,
    ) -> Result<InputResponse, NotAnswered> {
        let telling = self.telling();
        let mut waited = {
            let _lock = telling.lock.lock().await;
            let rows = self.questions.as_ref().map(|questions| questions.rows().clone());
            let waited =
                Waited { wait: Some((telling.own.begin(), self.activity().block())), telling: telling.clone(), rows };
            if telling.own.open() == 1 {
                telling.tell(Outcome::InputRequired).await?;
                events::suspended(&self.ports.events, self.call);
            }
            waited
        };
        let said = answer.await;
        let wait = waited.wait.take();
        telling.goes_on(wait).await;
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

impl Telling {
    /// One answer is waited for no longer.
    async fn goes_on(&self, wait: Option<(Wait, BlockedGuard)>) {
        let _lock = self.lock.lock().await;
        drop(wait);
        if self.own.open() == 0 {
            // The final row tells what is, should this one not get there.
            let _ = self.tell(Outcome::Running).await;
        }
    }

    async fn tell(&self, outcome: Outcome) -> Result<(), NotAnswered> {
        let row = ToolExecution { outcome, ..self.row.clone() };
        self.log.record(row).await.map_err(|error| {
            tracing::error!(call = %self.row.id, error = &error as &dyn std::error::Error, "a question is not recorded");
            NotAnswered::NotRecorded
        })
    }
}

impl Drop for Waited {
    fn drop(&mut self) {
        let (Some(wait), Ok(runtime)) = (self.wait.take(), Handle::try_current()) else { return };
        let (telling, rows) = (self.telling.clone(), self.rows.take());
        // A call that is over by then has its final row, which this does not change.
        runtime.spawn(async move {
            if let Some(rows) = rows {
                rows.settle().await;
            }
            telling.goes_on(Some(wait)).await;
        });
    }
}

#[async_trait]
impl Caller for Asking<'_> {
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
