//! The way to the client: that a call waits for its answers is told in its row and to those who watch, and not counted.

use super::{ExecuteToolCommand, ExecuteToolPorts, Nesting, events, waiting_time::WaitingTime};
use async_trait::async_trait;
use std::time::Duration;
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
