//! The time in which a call waits for answers of its client: told in its row and to those who watch, and not counted.

use super::{ExecuteToolPorts, events};
use async_trait::async_trait;
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;
use toolstead_domain::{
    ports::caller::{Caller, InputRequest, InputResponse, LogMessage, NotAnswered, Progress},
    tool_call::ToolCall,
    tool_execution::{Outcome, ToolExecution},
};

/// The way to the client, for whoever asks something about a call. What cannot be recorded is not asked.
pub(super) struct Asking<'a> {
    caller: &'a dyn Caller,
    call: &'a ToolCall,
    row: &'a ToolExecution,
    ports: &'a ExecuteToolPorts,
    waits: Mutex<Waits>,
    /// The row changes under this, so that it says what is.
    telling: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Waits {
    open: usize,
    since: Option<Instant>,
    before: Duration,
}

impl<'a> Asking<'a> {
    /// For the call with this row, as it is before it asks.
    pub(super) fn new(
        caller: &'a dyn Caller,
        call: &'a ToolCall,
        row: &'a ToolExecution,
        ports: &'a ExecuteToolPorts,
    ) -> Self {
        Self { caller, call, row, ports, waits: Mutex::default(), telling: tokio::sync::Mutex::default() }
    }

    /// Waits for the answer, once it is on record that the call does.
    async fn waiting(
        &self,
        answer: impl Future<Output = Result<InputResponse, NotAnswered>> + Send,
    ) -> Result<InputResponse, NotAnswered> {
        let wait = {
            let _telling = self.telling.lock().await;
            let wait = Wait::begin(self);
            if self.lock().open == 1 {
                self.told(Outcome::InputRequired).await?;
                events::suspended(&self.ports.events, self.call);
            }
            wait
        };
        let said = answer.await;
        let _telling = self.telling.lock().await;
        drop(wait);
        if self.lock().open == 0 {
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

    fn lock(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One answer that is waited for.
struct Wait<'a>(&'a Asking<'a>);

impl<'a> Wait<'a> {
    fn begin(asking: &'a Asking<'a>) -> Self {
        let mut waits = asking.lock();
        waits.open += 1;
        waits.since.get_or_insert_with(Instant::now);
        Self(asking)
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut waits = self.0.lock();
        waits.open -= 1;
        if waits.open == 0
            && let Some(since) = waits.since.take()
        {
            waits.before += since.elapsed();
        }
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
        let waits = self.lock();
        waits.before + waits.since.map_or(Duration::ZERO, |since| since.elapsed())
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
