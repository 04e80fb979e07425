//! The time in which a call waits for answers of its client: told in its row and to those who watch, and not counted.

use super::{ExecuteToolCommand, ExecuteToolPorts, Nesting, events};
use async_trait::async_trait;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;
use toolstead_domain::{
    ports::caller::{Caller, InputRequest, InputResponse, LogMessage, NotAnswered, Progress},
    tool_call::ToolCall,
    tool_execution::{Outcome, ToolExecution},
};

/// How long a call has waited for answers: to what it asked, and to what was asked about the calls that it makes.
#[derive(Debug, Clone, Default)]
pub(super) struct WaitingTime {
    waits: Arc<Mutex<Waits>>,
    /// That of the call that makes it, which waits with it.
    above: Option<Arc<WaitingTime>>,
}

#[derive(Debug, Default)]
struct Waits {
    open: usize,
    since: Option<Instant>,
    before: Duration,
}

impl WaitingTime {
    /// None so far. What is waited here is waited above as well.
    pub(super) fn below(above: Option<&Self>) -> Self {
        Self { waits: Arc::default(), above: above.cloned().map(Arc::new) }
    }

    /// An answer is waited for from now on, until this is dropped.
    pub(super) fn begin(&self) -> Wait {
        for one in self.with_those_above() {
            let mut waits = one.lock();
            waits.open += 1;
            waits.since.get_or_insert_with(Instant::now);
        }
        Wait(self.clone())
    }

    /// With that for the answer that is waited for now.
    pub(super) fn so_far(&self) -> Duration {
        let waits = self.lock();
        waits.before + waits.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// How many answers are waited for.
    fn open(&self) -> usize {
        self.lock().open
    }

    fn with_those_above(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |one| one.above.as_deref())
    }

    fn lock(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One answer that is waited for.
#[derive(Debug)]
pub(super) struct Wait(WaitingTime);

impl Drop for Wait {
    fn drop(&mut self) {
        for one in self.0.with_those_above() {
            let mut waits = one.lock();
            waits.open -= 1;
            if waits.open == 0
                && let Some(since) = waits.since.take()
            {
                waits.before += since.elapsed();
            }
        }
    }
}

/// The way to the client, for whoever asks something about a call. What cannot be recorded is not asked.
pub(super) struct Asking<'a> {
    caller: &'a dyn Caller,
    call: &'a ToolCall,
    row: &'a ToolExecution,
    ports: &'a ExecuteToolPorts,
    /// For all that is asked while the call runs.
    time: WaitingTime,
    /// For what is asked here.
    own: WaitingTime,
    /// The row changes under this, so that it says what is.
    telling: tokio::sync::Mutex<()>,
}

impl<'a> Asking<'a> {
    /// For the call with this row, as it is before it asks.
    pub(super) fn new(
        command: &'a ExecuteToolCommand,
        call: &'a ToolCall,
        row: &'a ToolExecution,
        ports: &'a ExecuteToolPorts,
    ) -> Self {
        let time = WaitingTime::below(command.parent.as_ref().map(Nesting::waiting));
        let own = WaitingTime::below(Some(&time));
        Self { caller: command.caller.as_ref(), call, row, ports, time, own, telling: tokio::sync::Mutex::default() }
    }

    /// How long the call has waited, with what is asked about the calls that it makes.
    pub(super) fn time(&self) -> &WaitingTime {
        &self.time
    }

    /// Waits for the answer, once it is on record that the call does.
    async fn waiting(
        &self,
        answer: impl Future<Output = Result<InputResponse, NotAnswered>> + Send,
    ) -> Result<InputResponse, NotAnswered> {
        let wait = {
            let _telling = self.telling.lock().await;
            let wait = self.own.begin();
            if self.own.open() == 1 {
                self.told(Outcome::InputRequired).await?;
                events::suspended(&self.ports.events, self.call);
            }
            wait
        };
        let said = answer.await;
        let _telling = self.telling.lock().await;
        drop(wait);
        if self.own.open() == 0 {
            // The final row tells what is, should this one not get there.
            let _ = self.told(Outcome::Running).await;
        }
        said
    }

    async fn told(&self, outcome: Outcome) -> Result<(), NotAnswered> {
        let row = ToolExecution { outcome, ..self.row.clone() };
        self.ports.log.record(row).await.map_err(|error| {
            tracing::error!(call = %self.row.id, error = &error as &dyn std::error::Error, "a question is not recorded");
            NotAnswered::NotRecorded
        })
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

    fn waited(&self) -> Duration {
        self.time.so_far()
    }

    fn progress(&self, progress: Progress) {
        self.caller.progress(progress);
    }

    fn log(&self, message: LogMessage) {
        self.caller.log(message);
    }

    async fn ask(&self, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        self.waiting(self.caller.ask(request)).await
    }

    async fn ask_as(&self, key: &str, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        self.waiting(self.caller.ask_as(key, request)).await
    }
}
