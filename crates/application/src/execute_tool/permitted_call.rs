//! The only module that calls providers: with timeouts, cancellable, and safe from panics.

use super::{
    ExecuteToolHandler, applied_dialect,
    command::ExecuteToolCommand,
    error::ExecuteToolError,
    events::PublishingCaller,
    nested_calls::NestedCalls,
    ports::ExecuteToolPorts,
    question_channel::{QuestionChannel, QuestionRelay},
    record::CallRecord,
    settings::CallSettings,
    waiting_time::over,
};
use crate::{cancel_signal::CancelSignal, redaction::CallRedactor};
use futures::{
    FutureExt,
    future::{BoxFuture, try_join_all},
};
use serde_json::{Map, json};
use std::{
    any::Any,
    future::{Future, poll_fn},
    panic::AssertUnwindSafe,
    pin::pin,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};
use toolstead_domain::{
    Access, CallContext, CallOutcome, CallPermissions, Caller, CancelReason, ClientCapability, ForwardedMembers,
    InputAnswers, InputRequired, InputResponses, NoCalls, NotAnswered, ProtocolGeneration, ProtocolVersion,
    SilentCaller, Tool, ToolCall, ToolFailure, ToolProvider, ToolResult, ToolSource, error_chain::with_causes,
    error_kind::ErrorKind, ports::calls::WHOLE_OUTPUT,
};

/// Maximum number of rounds of questions of a provider per call.
const MAX_ROUNDS: usize = 16;
/// First pause before a provider that required input without a question is called again; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// Longest such pause of a provider without a question.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Number of characters per page for a program, which requests the whole output.
const WHOLE_PAGE: usize = 64 << 20;

/// Returns the accesses of the call, which the provider determines within `at_most`. A failure of the provider is a
/// refusal.
pub(super) async fn accesses(
    provider: &dyn ToolProvider,
    call: &ToolCall,
    cancel: &CancelSignal,
    at_most: Duration,
) -> Result<Vec<Access>, ExecuteToolError> {
    let work = provider.accesses(call);
    bounded(&call.tool, work, cancel, at_most).await?.map_err(ExecuteToolError::Refused)
}

/// Permitted call, and the state that it needs to run.
pub(super) struct PermittedCall<'a> {
    pub(super) handler: &'a Arc<ExecuteToolHandler>,
    pub(super) provider: &'a dyn ToolProvider,
    pub(super) command: &'a ExecuteToolCommand,
    pub(super) call: &'a ToolCall,
    pub(super) grant: &'a CallPermissions,
    pub(super) record: &'a CallRecord,
    /// `true` if `record` is stored already.
    pub(super) is_on_record: bool,
}

/// Runs the call until it ends, is cancelled, or exceeds its deadline and grace period. In each case the provider's
/// future is dropped when this returns, and all nested calls are recorded.
pub(super) async fn run(running: &PermittedCall<'_>) -> Result<CallOutcome, ExecuteToolError> {
    let PermittedCall { handler, provider, command, call, grant, record, is_on_record } = *running;
    let (ports, settings) = (&handler.ports, &handler.settings);
    let (parent, wanted) = (command.parent.as_ref(), command.timeout.or_else(|| provider.requested_time(call)));
    let time = settings.time_for(&call.tool, wanted, command);
    // Removes the call's secrets from texts; `None` if its texts are not recorded.
    let redaction = record.redaction();
    let in_own_words = provider.asks_in_own_words(&call.tool);
    let questions = QuestionRelay::new(call, grant, record, ports, in_own_words);
    let asking = QuestionChannel::new(command, call, record, ports, &handler.open_calls).for_tool(questions);
    let caller = PublishingCaller { caller: &asking, bus: &ports.events, call, redaction: redaction.as_deref() };
    let deadline = Instant::now() + time;
    let nested = NestedCalls::new(handler, command, call, deadline, &asking, record, is_on_record);
    let calls = nested.calls();
    let output_characters = match parent.and_then(|nesting| nesting.output_characters) {
        None => settings.output_characters,
        Some(WHOLE_OUTPUT) => WHOLE_PAGE,
        Some(wanted) => settings.output_characters.min(wanted),
    };
    let output_characters = output_characters.min(command.scope.limits().output_characters.unwrap_or(usize::MAX));
    let given = command.answers.clone().map(|responses| InputAnswers { responses, state: None });
    let context = CallContext {
        calls: &calls,
        output_characters,
        labels: record.labels(),
        answers: given.as_ref(),
        ..context(command, call, grant, &caller, ports, settings, deadline)
    };
    // The provider's future is dropped before its nested calls are awaited.
    let ended = {
        let work = pin!(call_with_answers(provider, call, &context));
        let at_most = time + settings.grace_for(parent);
        bounded_for(&asking, &call.tool, work, &command.cancel, at_most).await
    };
    nested.end().await;
    asking.end().await;
    match ended? {
        Ok(result) => {
            let is_own = *call.tool.source() == ToolSource::BuiltIn
                && applied_dialect::adapter_for(&call.tool, command).is_none();
            // Some clients show only the first block, and the end of an error contains its cause.
            let result = if is_own && result.is_error() { result.with_joined_texts() } else { result };
            Ok(CallOutcome::Done(result.mark_tool_output()))
        }
        Err(failure) => {
            if let Some(cause) = &failure.source {
                tracing::info!(call = %call.id, tool = %call.tool.name(), error = redacted_error(&**cause, redaction.as_deref()), "the tool failed");
            }
            Err(ExecuteToolError::Failed(failure))
        }
    }
}

/// Runs the call, and forwards the provider's questions to the client, until there is a result.
async fn call_with_answers(
    provider: &dyn ToolProvider,
    call: &ToolCall,
    context: &CallContext<'_>,
) -> Result<ToolResult, ToolFailure> {
    let required = match provider.call(call, context).await? {
        CallOutcome::Done(result) => return Ok(result),
        CallOutcome::InputRequired(required) => required,
    };
    // Boxed: rare, and larger than the rest of the call.
    Box::pin(later_rounds(provider, call, context, required)).await
}

/// Runs the rounds of a call after its provider's first question.
async fn later_rounds(
    provider: &dyn ToolProvider,
    call: &ToolCall,
    context: &CallContext<'_>,
    mut required: InputRequired,
) -> Result<ToolResult, ToolFailure> {
    let mut pause = FIRST_PAUSE;
    for round in 1..=MAX_ROUNDS {
        if required.requests.is_empty() {
            // The provider has no question, and requests to be called again later.
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
        let answers = obtain_answers(required, context).await?;
        if round == MAX_ROUNDS {
            break;
        }
        match provider.call(call, &CallContext { answers: Some(&answers), ..*context }).await? {
            CallOutcome::Done(result) => return Ok(result),
            CallOutcome::InputRequired(next) => required = next,
        }
    }
    let message = format!("The tool `{}` asked for input {MAX_ROUNDS} times without finishing.", call.tool.name());
    Err(ToolFailure::new(ErrorKind::Unavailable, message).next("Use another tool."))
}

/// Obtains the client's answers to a provider's questions. Returns them with the provider's state.
async fn obtain_answers(required: InputRequired, context: &CallContext<'_>) -> Result<InputAnswers, ToolFailure> {
    let unavailable = |message: &str| {
        ToolFailure::new(ErrorKind::Unavailable, message).next("Answer it another way, or use another tool.")
    };
    let mut missing = Map::new();
    for question in required.requests.values() {
        match ClientCapability::of(question) {
            Some(capability) if capability.is_declared(&context.client.capabilities) => {}
            Some(capability) => missing.extend(capability.as_object()),
            None => return Err(unavailable("The tool made a request that MCP does not define.")),
        }
    }
    match context.client.protocol.map(ProtocolVersion::generation) {
        // A modern client can correct this by declaring more capabilities.
        Some(ProtocolGeneration::Modern) if !missing.is_empty() => {
            let failure = ToolFailure::new(ErrorKind::MissingCapability, "Missing required client capability");
            return Err(failure.with_data(json!({"requiredCapabilities": missing})));
        }
        _ => {}
    }
    let asked = required.requests.into_iter().map(async |(key, question)| {
        let answer = context.caller.ask_as(&key, question).await?;
        Ok((key, answer))
    });
    let answers: Result<InputResponses, NotAnswered> = try_join_all(asked).await.map(|all| all.into_iter().collect());
    match answers {
        Ok(responses) => Ok(InputAnswers { responses, state: required.state }),
        Err(NotAnswered::Unsupported) => {
            Err(unavailable("The tool needs an answer from the user, who cannot be asked here."))
        }
        Err(why @ NotAnswered::Refused { .. }) => {
            Err(unavailable(&format!("The tool needs an answer from the client: {why}.")).caused_by(why))
        }
        Err(why @ NotAnswered::TimedOut) => {
            let message = format!("The tool needs an answer from the client, and {why}.");
            Err(ToolFailure::new(ErrorKind::Timeout, message).next("Call again to be asked again.").caused_by(why))
        }
        Err(why) => Err(unavailable(&format!("The tool needs an answer from the client, but {why}.")).caused_by(why)),
    }
}

/// Determines the changes of a call. The client receives no progress or log messages meanwhile.
pub(super) async fn preview(
    provider: &dyn ToolProvider,
    call: &ToolCall,
    command: &ExecuteToolCommand,
    grant: &CallPermissions,
    ports: &ExecuteToolPorts,
    settings: &CallSettings,
    at_most: Duration,
) -> Result<Option<String>, ExecuteToolError> {
    let context = context(command, call, grant, &SilentCaller, ports, settings, Instant::now() + at_most);
    let work = provider.preview(call, &context);
    bounded(&call.tool, work, &command.cancel, at_most).await?.map_err(ExecuteToolError::Failed)
}

fn context<'a>(
    command: &'a ExecuteToolCommand,
    call: &ToolCall,
    grant: &'a CallPermissions,
    caller: &'a dyn Caller,
    ports: &'a ExecuteToolPorts,
    settings: &CallSettings,
    deadline: Instant,
) -> CallContext<'a> {
    CallContext {
        id: call.id,
        principal: &command.scope.principal,
        session: &command.scope.session,
        deadline,
        grant,
        client: &command.client,
        forwarded: ForwardedMembers { meta: Some(&command.meta), params: &command.params },
        labels: &command.labels,
        answers: None,
        caller,
        calls: &NoCalls,
        outputs: ports.outputs.as_ref(),
        output_characters: settings.output_characters,
    }
}

/// Returns the error with all its causes for the log, redacted.
fn redacted_error(error: &(dyn std::error::Error + 'static), redaction: Option<&CallRedactor>) -> String {
    let Some(redaction) = redaction else { return "[not kept]".into() };
    redaction.text(&with_causes(error)).into_owned()
}

/// Runs work for a call of the tool until it ends, is cancelled, or times out.
pub(super) async fn bounded<T>(
    tool: &Tool,
    work: impl Future<Output = Result<T, ToolFailure>>,
    cancel: &CancelSignal,
    at_most: Duration,
) -> Result<Result<T, ToolFailure>, ExecuteToolError> {
    bounded_for(&SilentCaller, tool, work, cancel, at_most).await
}

/// Runs work as [`bounded`] does, but excludes the time that `caller` has waited for answers.
async fn bounded_for<T>(
    caller: &dyn Caller,
    tool: &Tool,
    work: impl Future<Output = Result<T, ToolFailure>>,
    cancel: &CancelSignal,
    at_most: Duration,
) -> Result<Result<T, ToolFailure>, ExecuteToolError> {
    let mut work = pin!(AssertUnwindSafe(work).catch_unwind());
    // Created only if the work does not end at the first poll, which is rare.
    let mut stop: Option<BoxFuture<'_, CancelReason>> = None;
    let ended = poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Ok(done)),
        Poll::Pending => {
            let stop = stop.get_or_insert_with(|| Box::pin(cancelled_or_late(caller, cancel, at_most)));
            stop.as_mut().poll(context).map(Err)
        }
    });
    match ended.await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(panic)) => Err(panicked(&format!("the tool `{}`", tool.name()), panic.as_ref())),
        Err(CancelReason::Deadline) => Err(late(tool, at_most)),
        Err(reason @ (CancelReason::Client | CancelReason::Shutdown)) => Err(ExecuteToolError::Cancelled(reason)),
    }
}

/// Waits until the call is cancelled or times out. The time that the caller has waited for answers is excluded.
async fn cancelled_or_late(caller: &dyn Caller, cancel: &CancelSignal, at_most: Duration) -> CancelReason {
    let end = tokio::time::Instant::now() + at_most;
    tokio::select! {
        biased;
        reason = cancel.cancelled() => reason,
        () = over(end, || caller.waited()) => CancelReason::Deadline,
    }
}

/// Returns the failure for a panic. The panic's message is logged for the operator.
#[cold]
pub(super) fn panicked(what: &str, panic: &(dyn Any + Send)) -> ExecuteToolError {
    report_panic(what, panic);
    ExecuteToolError::Failed(ToolFailure::new(ErrorKind::Internal, format!("{what} failed unexpectedly")))
}

/// Logs a panic of `what` with its message.
pub(crate) fn report_panic(what: &str, panic: &(dyn Any + Send)) {
    let message = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = message.unwrap_or("?"), "{what} panicked");
}

#[cold]
fn late(tool: &Tool, time: Duration) -> ExecuteToolError {
    let message = format!("The tool `{}` did not end within {} s and was stopped.", tool.name(), time.as_secs());
    ExecuteToolError::Failed(ToolFailure::new(ErrorKind::Timeout, message).next("Ask for less, or allow more time."))
}
