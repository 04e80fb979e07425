//! The one place where providers are called: bounded in time, cancellable, and safe from panics.

use super::{
    CallSettings, ExecuteToolCommand, ExecuteToolError, ExecuteToolHandler, ExecuteToolPorts, events::Watched,
    nesting::Nested, record::Record,
};
use crate::{cancel_signal::CancelSignal, redaction::Redaction};
use futures::FutureExt;
use std::{
    any::Any,
    future::Future,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};
use toolstead_domain::{
    access::Access,
    error_chain::with_causes,
    error_kind::ErrorKind,
    permission::grant::Grant,
    ports::{
        caller::{Caller, InputResponses, SilentCaller},
        calls::NoCalls,
        tool_provider::{CallContext, CallOutcome, ToolProvider},
    },
    tool::Tool,
    tool_call::ToolCall,
    tool_execution::CancelReason,
    tool_failure::ToolFailure,
};

/// What the call would touch.
pub(super) async fn accesses(
    provider: &dyn ToolProvider,
    call: &ToolCall,
    cancel: &CancelSignal,
    at_most: Duration,
) -> Result<Vec<Access>, ExecuteToolError> {
    let work = provider.accesses(call);
    bounded(&call.tool, work, cancel, at_most).await?.map_err(ExecuteToolError::Refused)
}

/// The company of a call that runs.
pub(super) struct Running<'a> {
    pub(super) command: &'a ExecuteToolCommand,
    pub(super) answers: Option<&'a InputResponses>,
    pub(super) grant: &'a Grant,
    /// Its row as it is by now.
    pub(super) record: &'a Record,
    /// Whether that row is on record already.
    pub(super) is_on_record: bool,
}

/// Runs the call until it ends, is taken back, or is a grace past its deadline. Whichever comes first, the provider's
/// future is gone when this returns, and every call that it made is on record.
pub(super) async fn run(
    handler: &Arc<ExecuteToolHandler>,
    provider: &dyn ToolProvider,
    call: &ToolCall,
    running: &Running<'_>,
) -> Result<CallOutcome, ExecuteToolError> {
    let (ports, settings) = (&handler.ports, &handler.settings);
    let Running { command, answers, grant, record, is_on_record } = *running;
    let (parent, wanted) = (command.parent.as_ref(), command.timeout.or_else(|| provider.time_wanted(call)));
    let time = settings.time_for(&call.tool, wanted, parent);
    // Takes its secrets out of texts; `None` where no text of it may be told.
    let redaction = record.redaction();
    let caller = Watched { caller: command.caller.as_ref(), bus: &ports.events, call, redaction: redaction.as_deref() };
    let context = context(command, call, grant, &caller, ports, settings, time);
    let nested = Nested::new(handler, command, call, context.deadline, record, is_on_record);
    let output_characters = parent.and_then(|nesting| nesting.output_characters).unwrap_or(usize::MAX);
    let context = CallContext {
        answers,
        calls: &nested,
        output_characters: context.output_characters.min(output_characters),
        ..context
    };
    let work = provider.call(call, &context);
    let ended = bounded(&call.tool, work, &command.cancel, time + settings.grace_for(parent)).await;
    nested.end().await;
    match ended? {
        Ok(outcome) => Ok(outcome),
        Err(failure) => {
            if let Some(cause) = &failure.source {
                tracing::info!(call = %call.id, tool = %call.tool.name(), error = told(&**cause, redaction.as_deref()), "the tool failed");
            }
            Err(ExecuteToolError::Failed(failure))
        }
    }
}

/// Finds out what the call would change. Its caller hears nothing meanwhile.
pub(super) async fn preview(
    provider: &dyn ToolProvider,
    call: &ToolCall,
    command: &ExecuteToolCommand,
    grant: &Grant,
    ports: &ExecuteToolPorts,
    settings: &CallSettings,
    at_most: Duration,
) -> Result<Option<String>, ExecuteToolError> {
    let context = context(command, call, grant, &SilentCaller, ports, settings, at_most);
    let work = provider.preview(call, &context);
    bounded(&call.tool, work, &command.cancel, at_most).await?.map_err(ExecuteToolError::Failed)
}

fn context<'a>(
    command: &'a ExecuteToolCommand,
    call: &ToolCall,
    grant: &'a Grant,
    caller: &'a dyn Caller,
    ports: &'a ExecuteToolPorts,
    settings: &CallSettings,
    time: Duration,
) -> CallContext<'a> {
    CallContext {
        id: call.id,
        principal: &command.scope.principal,
        session: &command.scope.session,
        deadline: Instant::now() + time,
        grant,
        client: &command.client,
        answers: None,
        caller,
        calls: &NoCalls,
        outputs: ports.outputs.as_ref(),
        output_characters: settings.output_characters,
    }
}

/// The error with all its causes, as a log may have it.
fn told(error: &(dyn std::error::Error + 'static), redaction: Option<&Redaction>) -> String {
    let Some(redaction) = redaction else { return "[not kept]".into() };
    redaction.text(&with_causes(error)).into_owned()
}

/// Does the work of a call of the tool until it ends, is taken back, or is out of time.
pub(super) async fn bounded<T>(
    tool: &Tool,
    work: impl Future<Output = Result<T, ToolFailure>>,
    cancel: &CancelSignal,
    at_most: Duration,
) -> Result<Result<T, ToolFailure>, ExecuteToolError> {
    tokio::select! {
        biased;
        done = AssertUnwindSafe(work).catch_unwind() => match done {
            Ok(done) => Ok(done),
            Err(panic) => Err(panicked(&format!("the tool `{}`", tool.name()), panic.as_ref())),
        },
        reason = cancel.cancelled() => match reason {
            CancelReason::Deadline => Err(late(tool, at_most)),
            CancelReason::Client | CancelReason::Shutdown => Err(ExecuteToolError::Cancelled(reason)),
        },
        () = tokio::time::sleep(at_most) => Err(late(tool, at_most)),
    }
}

/// The failure that a panic becomes; what it said is for the operator.
pub(super) fn panicked(what: &str, panic: &(dyn Any + Send)) -> ExecuteToolError {
    let said = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = said.unwrap_or("?"), "{what} panicked");
    ExecuteToolError::Failed(ToolFailure::new(ErrorKind::Internal, format!("{what} failed unexpectedly")))
}

fn late(tool: &Tool, time: Duration) -> ExecuteToolError {
    let message = format!("The tool `{}` did not end within {} s and was stopped.", tool.name(), time.as_secs());
    ExecuteToolError::Failed(ToolFailure::new(ErrorKind::Timeout, message).next("Ask for less, or allow more time."))
}
