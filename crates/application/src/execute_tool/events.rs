//! Events about a call, published during its steps.

use super::{command::ExecuteToolCommand, error::ExecuteToolError, record::CallRecord};
use crate::{event_bus::EventBus, redaction::CallRedactor};
use async_trait::async_trait;
use std::time::Duration;
use toolstead_domain::{
    BorrowedToolExecution, CallOutcome, Caller, Decision, EventKind, EventOrigin, EventSink, ExecutionOutcome,
    InputRequest, InputResponse, LogMessage, NotAnswered, Progress, Timestamp, ToolCall, Verdict,
    error_kind::ErrorKind,
};

/// Publishes that the user is asked for approval, if the decision requires it. The texts are those of the record.
pub(super) fn permission_requested(bus: &EventBus, call: &ToolCall, decision: &Decision, record: &CallRecord) {
    if decision.verdict == Verdict::Ask && bus.is_watched() {
        let row = record.execution();
        let reason = row.decision.map(|decision| decision.reason.to_owned()).unwrap_or_default();
        let kind = EventKind::PermissionRequested { tool: tool(call), reason, accesses: row.accesses.to_vec() };
        bus.send(of(call), kind);
    }
}

/// Publishes the end of an approval request, if the decision required one. An `Ok` answer counts as granted.
pub(super) fn permission_resolved<T>(
    bus: &EventBus,
    call: &ToolCall,
    decision: &Decision,
    answer: &Result<T, ExecuteToolError>,
) {
    if decision.verdict == Verdict::Ask && bus.is_watched() {
        bus.send(of(call), EventKind::PermissionResolved { tool: tool(call), granted: answer.is_ok() });
    }
}

/// Publishes that the call waits for answers of its client.
pub(super) fn suspended(bus: &EventBus, call: &ToolCall) {
    if bus.is_watched() {
        bus.send(of(call), EventKind::ToolCallSuspended { tool: tool(call) });
    }
}

/// Publishes that the call's tool asked the client a question.
pub(super) fn question_asked(bus: &EventBus, call: &ToolCall, method: &str) {
    if bus.is_watched() {
        let source = call.tool.source().label();
        bus.send(of(call), EventKind::QuestionAsked { tool: tool(call), method: method.to_owned(), source });
    }
}

/// Publishes that a question of the call's tool ended.
pub(super) fn question_closed(bus: &EventBus, call: &ToolCall, method: &str, outcome: &'static str) {
    if bus.is_watched() {
        bus.send(of(call), EventKind::QuestionClosed { tool: tool(call), method: method.to_owned(), outcome });
    }
}

/// Publishes that the call is about to run, with the recorded arguments.
pub(super) fn started(bus: &EventBus, call: &ToolCall, record: &CallRecord) {
    if bus.is_watched() {
        let arguments = record.execution().arguments.to_value();
        bus.send(of(call), EventKind::ToolCallStarted { tool: tool(call), arguments });
    }
}

/// Events about the end of a call.
pub(super) struct EndEvents {
    origin: EventOrigin,
    end: Option<EventKind>,
    details: Option<EventKind>,
}

/// Returns the events about the end of a call with this final record; `None` without subscribers. `details` is the
/// record of the call, if events contain arguments and answers.
pub(super) fn end(
    bus: &EventBus,
    command: &ExecuteToolCommand,
    row: &BorrowedToolExecution<'_>,
    outcome: &Result<CallOutcome, ExecuteToolError>,
    details: Option<&CallRecord>,
) -> Option<Box<EndEvents>> {
    if !bus.is_watched() {
        return None;
    }
    Some(Box::new(EndEvents {
        origin: EventOrigin::call(&command.scope.principal, &command.scope.session, row.id),
        end: end_of(row),
        details: details.and_then(|record| details_of(record, row, outcome)),
    }))
}

impl EndEvents {
    pub(super) fn publish(self, bus: &EventBus) {
        for kind in self.end.into_iter().chain(self.details) {
            bus.send(self.origin.clone(), kind);
        }
    }
}

/// Returns the arguments and the answer of the call, after its hooks; `None` for a call that waits for its client.
fn details_of(
    record: &CallRecord,
    row: &BorrowedToolExecution<'_>,
    outcome: &Result<CallOutcome, ExecuteToolError>,
) -> Option<EventKind> {
    let (response, is_error) = match outcome {
        Ok(CallOutcome::Done(result)) => (record.response(result), result.is_error()),
        Ok(CallOutcome::InputRequired(_)) => return None,
        Err(_) => (words_of(row.outcome).into(), true),
    };
    Some(EventKind::ToolCallDetails { tool: row.tool.to_owned(), input: row.arguments.to_value(), response, is_error })
}

/// Returns the recorded reason for a missing result.
fn words_of(outcome: &ExecutionOutcome) -> String {
    match outcome {
        ExecutionOutcome::Failed(_, message) | ExecutionOutcome::Refused(_, message) => message.clone(),
        ExecutionOutcome::Cancelled(reason) => format!("cancelled ({})", reason.as_str()),
        ExecutionOutcome::Running
        | ExecutionOutcome::Succeeded
        | ExecutionOutcome::InputRequired
        | ExecutionOutcome::Interrupted => String::new(),
    }
}

fn end_of(row: &BorrowedToolExecution<'_>) -> Option<EventKind> {
    let tool = row.tool.to_owned();
    let duration = row.ended.unwrap_or(Timestamp(0)).since(row.started);
    Some(match row.outcome {
        ExecutionOutcome::Succeeded => EventKind::ToolCallCompleted { tool, duration, result_bytes: row.result_bytes },
        ExecutionOutcome::Refused(ErrorKind::PermissionDenied | ErrorKind::ApprovalTimeout, reason) => {
            EventKind::ToolCallDenied { tool, reason: reason.clone() }
        }
        ExecutionOutcome::Failed(error, message) | ExecutionOutcome::Refused(error, message) => {
            EventKind::ToolCallFailed { tool, error: *error, message: message.clone(), duration }
        }
        ExecutionOutcome::Cancelled(reason) => EventKind::ToolCallFailed {
            tool,
            error: row.outcome.error_kind().unwrap_or(ErrorKind::Cancelled),
            message: format!("cancelled ({})", reason.as_str()),
            duration,
        },
        ExecutionOutcome::Running | ExecutionOutcome::InputRequired | ExecutionOutcome::Interrupted => return None,
    })
}

/// Channel to the client that also publishes progress to event subscribers.
pub(super) struct PublishingCaller<'a> {
    pub(super) caller: &'a dyn Caller,
    pub(super) bus: &'a EventBus,
    pub(super) call: &'a ToolCall,
    /// Removes secrets of the call from texts; `None` if events must not contain any of its texts.
    pub(super) redaction: Option<&'a CallRedactor>,
}

#[async_trait]
impl Caller for PublishingCaller<'_> {
    fn wants_progress(&self) -> bool {
        self.caller.wants_progress() || self.bus.is_watched()
    }

    async fn hurried(&self) {
        self.caller.hurried().await;
    }

    async fn disconnected(&self) {
        self.caller.disconnected().await;
    }

    fn waited(&self) -> Duration {
        self.caller.waited()
    }

    fn progress(&self, progress: Progress) {
        if self.bus.is_watched() {
            let Progress { progress, total, message, .. } = progress.clone();
            let redacted = |text: String| Some(self.redaction?.text(&text).into_owned());
            let message = message.and_then(redacted);
            self.bus.send(of(self.call), EventKind::ToolCallProgress { progress, total, message });
        }
        self.caller.progress(progress);
    }

    fn log(&self, message: LogMessage) {
        self.caller.log(message);
    }

    fn elicitation_completed(&self, elicitation_id: &str) {
        self.caller.elicitation_completed(elicitation_id);
    }

    async fn ask(&self, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        self.caller.ask(request).await
    }

    async fn ask_as(&self, key: &str, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        self.caller.ask_as(key, request).await
    }
}

fn of(call: &ToolCall) -> EventOrigin {
    EventOrigin::call(&call.principal, &call.session, call.id)
}

fn tool(call: &ToolCall) -> String {
    call.tool.name().to_string()
}
