//! The one place where providers are called: bounded in time, cancellable, and safe from panics.

use super::{
    CallSettings, ExecuteToolCommand, ExecuteToolError, ExecuteToolHandler, ExecuteToolPorts,
    asking::{Asking, Questions},
    events::Watched,
    nesting::Nested,
    record::Record,
    waiting_time::over,
    worn_face,
};
use crate::{cancel_signal::CancelSignal, redaction::Redaction};
use futures::{FutureExt, future::try_join_all};
use serde_json::{Map, json};
use std::{
    any::Any,
    future::Future,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};
use toolstead_domain::{
    access::Access,
    client_capability::Capability,
    client_profile::{Generation, ProtocolVersion},
    error_chain::with_causes,
    error_kind::ErrorKind,
    permission::grant::Grant,
    ports::{
        caller::{Caller, InputResponses, NotAnswered, SilentCaller},
        calls::{NoCalls, WHOLE_OUTPUT},
        tool_provider::{Answers, Beside, CallContext, CallOutcome, InputRequired, ToolProvider},
    },
    tool::{Tool, ToolSource},
    tool_call::ToolCall,
    tool_execution::CancelReason,
    tool_failure::ToolFailure,
    tool_result::ToolResult,
};

/// So often a provider may ask about one call.
const MAX_ROUNDS: usize = 16;
/// The pause before a provider is called again that wants to be and asks nothing; twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The characters that a tool puts on one page for a program, which takes the whole.
const WHOLE_PAGE: usize = 64 << 20;

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
    pub(super) grant: &'a Grant,
    /// Its row as it is by now.
    pub(super) record: &'a Record,
    /// Tells whether that row is on record already.
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
    let Running { command, grant, record, is_on_record } = *running;
    let (parent, wanted) = (command.parent.as_ref(), command.timeout.or_else(|| provider.time_wanted(call)));
    let time = settings.time_for(&call.tool, wanted, parent);
    // Takes its secrets out of texts; `None` where no text of it may be told.
    let redaction = record.redaction();
    let in_own_words = provider.asks_in_own_words(&call.tool);
    let questions = Questions::new(call, grant, record, ports, in_own_words);
    let asking = Asking::new(command, call, record, ports, &handler.open_calls).for_tool(questions);
    let caller = Watched { caller: &asking, bus: &ports.events, call, redaction: redaction.as_deref() };
    let context = context(command, call, grant, &caller, ports, settings, time);
    let nested = Nested::new(handler, command, call, context.deadline, &asking, record, is_on_record);
    let calls = nested.calls();
    let output_characters = match parent.and_then(|nesting| nesting.output_characters) {
        None => context.output_characters,
        Some(WHOLE_OUTPUT) => WHOLE_PAGE,
        Some(wanted) => context.output_characters.min(wanted),
    };
    let context = CallContext { calls: &calls, output_characters, labels: record.labels(), ..context };
    // Whoever waits for the end of the calls that the provider made must not hold on to the provider.
    let ended = {
        let work = pin!(to_its_end(provider, call, &context, command.answers.clone()));
        let at_most = time + settings.grace_for(parent);
        bounded_for(&asking, &call.tool, work, &command.cancel, at_most).await
    };
    nested.end().await;
    asking.end().await;
    match ended? {
        Ok(result) => {
            let is_own = *call.tool.source() == ToolSource::BuiltIn && worn_face::of(&call.tool, command).is_none();
            // Some clients show the first block alone, and the end of an error says what failed.
            let result = if is_own && result.is_error() { result.with_joined_texts() } else { result };
            Ok(CallOutcome::Done(result.said_by_tool()))
        }
        Err(failure) => {
            if let Some(cause) = &failure.source {
                tracing::info!(call = %call.id, tool = %call.tool.name(), error = told(&**cause, redaction.as_deref()), "the tool failed");
            }
            Err(ExecuteToolError::Failed(failure))
        }
    }
}

/// Runs the call, and puts what its provider asks to the client, until there is a result.
async fn to_its_end(
    provider: &dyn ToolProvider,
    call: &ToolCall,
    context: &CallContext<'_>,
    brought: Option<InputResponses>,
) -> Result<ToolResult, ToolFailure> {
    let mut answers = brought.map(|responses| Answers { responses, state: None });
    let mut pause = FIRST_PAUSE;
    for _ in 0..MAX_ROUNDS {
        let context = CallContext { answers: answers.as_ref(), ..*context };
        match provider.call(call, &context).await? {
            CallOutcome::Done(result) => return Ok(result),
            CallOutcome::InputRequired(required) => {
                if required.requests.is_empty() {
                    // It has nothing to ask and wants to be called again: it has something else to do first.
                    tokio::time::sleep(pause).await;
                    pause = (2 * pause).min(LONGEST_PAUSE);
                }
                answers = Some(answered(required, &context).await?);
            }
        }
    }
    let message = format!("The tool `{}` asked again and again, {MAX_ROUNDS} times.", call.tool.name());
    Err(ToolFailure::new(ErrorKind::Unavailable, message).next("Use another tool."))
}

/// The client's answers to what a provider asks, with the provider's own state.
async fn answered(required: InputRequired, context: &CallContext<'_>) -> Result<Answers, ToolFailure> {
    let unavailable = |message: &str| {
        ToolFailure::new(ErrorKind::Unavailable, message).next("Answer it another way, or use another tool.")
    };
    let mut missing = Map::new();
    for question in required.requests.values() {
        match Capability::of(question) {
            Some(capability) if capability.is_declared(&context.client.capabilities) => {}
            Some(capability) => missing.extend(capability.as_object()),
            None => return Err(unavailable("The tool asks for something that MCP does not know.")),
        }
    }
    match context.client.protocol.map(ProtocolVersion::generation) {
        // The client can mend it by declaring more.
        Some(Generation::Modern) if !missing.is_empty() => {
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
        Ok(responses) => Ok(Answers { responses, state: required.state }),
        Err(NotAnswered::Unsupported) => {
            Err(unavailable("The tool needs an answer from the person at the client, which cannot be asked here."))
        }
        Err(why @ NotAnswered::Refused { .. }) => {
            Err(unavailable(&format!("The tool needs an answer of the client: {why}.")).caused_by(why))
        }
        Err(why @ NotAnswered::TimedOut) => {
            let message = format!("The tool needs an answer of the client, and {why}.");
            Err(ToolFailure::new(ErrorKind::Timeout, message).next("Call again to be asked again.").caused_by(why))
        }
        Err(why) => Err(unavailable(&format!("The tool needs an answer of the client, but {why}.")).caused_by(why)),
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
        beside: Beside { meta: Some(&command.meta), params: &command.params },
        labels: &command.labels,
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
    bounded_for(&SilentCaller, tool, work, cancel, at_most).await
}

/// The same without the time in which this caller was asked.
async fn bounded_for<T>(
    caller: &dyn Caller,
    tool: &Tool,
    work: impl Future<Output = Result<T, ToolFailure>>,
    cancel: &CancelSignal,
    at_most: Duration,
) -> Result<Result<T, ToolFailure>, ExecuteToolError> {
    let end = async {
        let end = tokio::time::Instant::now() + at_most;
        over(end, || caller.waited()).await;
    };
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
        () = end => Err(late(tool, at_most)),
    }
}

/// The failure that a panic becomes; what it said is for the operator.
pub(super) fn panicked(what: &str, panic: &(dyn Any + Send)) -> ExecuteToolError {
    report_panic(what, panic);
    ExecuteToolError::Failed(ToolFailure::new(ErrorKind::Internal, format!("{what} failed unexpectedly")))
}

/// Logs a panic of `what` with its message.
pub(crate) fn report_panic(what: &str, panic: &(dyn Any + Send)) {
    let message = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = message.unwrap_or("?"), "{what} panicked");
}

fn late(tool: &Tool, time: Duration) -> ExecuteToolError {
    let message = format!("The tool `{}` did not end within {} s and was stopped.", tool.name(), time.as_secs());
    ExecuteToolError::Failed(ToolFailure::new(ErrorKind::Timeout, message).next("Ask for less, or allow more time."))
}
