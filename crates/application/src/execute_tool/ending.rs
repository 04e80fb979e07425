//! The end of a call: the hooks after it, its final record, and its events and log line once that is stored.

use super::{
    call_log::CallLine,
    command::ExecuteToolCommand,
    error::{AuditFailure, ExecuteToolError},
    events::{self, EndEvents},
    hooks::CallHookState,
    ports::ExecuteToolPorts,
    record::CallRecord,
    settings::CallSettings,
};
use crate::event_bus::EventBus;
use futures::future::BoxFuture;
use toolstead_domain::{BorrowedToolExecution, CallOutcome, StoreError, ToolExecution};

type Outcome = Result<CallOutcome, ExecuteToolError>;

/// Events and log line of a call, published after its record is stored.
pub(super) struct CallEndAnnouncement {
    events: Option<Box<EndEvents>>,
    line: Option<Box<CallLine>>,
}

/// Runs the hooks after a call. They may change its output and its record.
pub(super) async fn run_after_hooks(
    ports: &ExecuteToolPorts,
    settings: &CallSettings,
    command: &ExecuteToolCommand,
    hooks: CallHookState,
    mut execution: ToolExecution,
    outcome: Outcome,
) -> (Box<ToolExecution>, Outcome) {
    let budget = settings.bounded_output();
    let outcome = hooks.after(&ports.hooks, command, &mut execution, outcome, budget).await;
    (Box::new(execution), outcome)
}

/// Returns the future that stores the final record, or the one that hooks changed, and the report to publish once it is
/// stored.
pub(super) fn store<'a>(
    ports: &'a ExecuteToolPorts,
    settings: &CallSettings,
    command: &ExecuteToolCommand,
    record: &'a CallRecord,
    changed: Option<&'a ToolExecution>,
    outcome: &Outcome,
) -> (BoxFuture<'a, Result<(), StoreError>>, CallEndAnnouncement) {
    let execution = changed.map_or_else(|| record.execution(), BorrowedToolExecution::from);
    let details = settings.tells_details.then_some(record);
    let events = events::end(&ports.events, command, &execution, outcome, details);
    let line = CallLine::of(&execution);
    (ports.log.record_ref(execution), CallEndAnnouncement { events, line })
}

/// Returns the error of a call whose final record cannot be stored. An earlier error of this kind takes precedence.
#[cold]
pub(super) fn audit_failure(outcome: Outcome, source: StoreError) -> ExecuteToolError {
    match outcome {
        Err(first @ ExecuteToolError::AuditFailure { .. }) => first,
        outcome => ExecuteToolError::AuditFailure { what: AuditFailure::of(&outcome), source },
    }
}

impl CallEndAnnouncement {
    pub(super) fn publish(self, bus: &EventBus) {
        if let Some(events) = self.events {
            events.publish(bus);
        }
        if let Some(line) = self.line {
            line.log();
        }
    }
}
