//! Hooks before and after a call.

use super::{
    arguments::{validate_arguments, with_defaults},
    command::ExecuteToolCommand,
    error::ExecuteToolError,
    hook_words::joined,
    output,
    output_budget::ResultSizeLimits,
    permitted_call,
    record::CallRecord,
    validation::ArgumentValidator,
};
use crate::tool_registry::SharedRegisteredTool;
use futures::FutureExt;
use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio::time::timeout;
use toolstead_domain::{
    Access, AdditionalContext, AfterCallResponse, BeforeCallResponse, CallOutcome, Cause, Decision, EndedCall, Finding,
    HookVerdict, LogLevel, LogMessage, ToolCall, ToolExecution, ToolFailure, ToolHook, ToolResult, Verdict,
    error_kind::ErrorKind, tool_result::text_block,
};

/// Timeout of a hook after a cancelled call, whose caller waits for it.
const TIME_AFTER_CANCEL: Duration = Duration::from_secs(2);

/// State of the hooks for one call.
#[derive(Default)]
pub(super) struct CallHookState {
    call: Option<ToolCall>,
    /// Accesses on which the decision is based.
    accesses: Option<Vec<Access>>,
    context: Vec<(String, String)>,
    /// The first hook that requires approval, with its reason.
    ask: Option<Cause>,
}

impl CallHookState {
    /// Runs each hook before the call. A hook that denies or defers the call, panics or times out ends it with a
    /// refusal. Rewritten arguments are validated again, and the policy decides on them afterwards.
    pub(super) async fn before(
        &mut self,
        hooks: &[Arc<dyn ToolHook>],
        registered: &SharedRegisteredTool,
        call: &mut ToolCall,
        record: &mut CallRecord,
        command: &ExecuteToolCommand,
        validation: ArgumentValidator<'_>,
    ) -> Result<(), ExecuteToolError> {
        let mut accesses = KnownAccesses::Unknown;
        for hook in hooks {
            if matches!(accesses, KnownAccesses::Unknown) {
                accesses = KnownAccesses::by(registered, call, command, validation.time).await?;
            }
            let patience = hook.timeout().before;
            let asked = AssertUnwindSafe(timeout(patience, hook.before(call, accesses.accesses()))).catch_unwind();
            let said = tokio::select! {
                said = asked => said,
                reason = command.cancel.cancelled() => return Err(ExecuteToolError::Cancelled(reason)),
            };
            // A hook that fails or times out denies the call.
            let said = match said {
                Ok(Ok(said)) => said,
                Ok(Err(_)) => BeforeCallResponse::deny(format!("it did not answer within {} s", patience.as_secs())),
                Err(_) => BeforeCallResponse::deny("it panicked"),
            };
            self.context.extend(named(hook.as_ref(), said.context));
            log_messages(command, hook.as_ref(), said.messages);
            let left_out = record.labelled(&said.labels);
            if left_out > 0 {
                tracing::warn!(hook = hook.name(), call = %call.id, left_out, "some labels are left out: too many");
            }
            let name = said.by.as_deref().unwrap_or(hook.name());
            if let Some(arguments) = said.arguments {
                call.arguments = validate_arguments(registered, arguments, validation).await?;
                accesses = KnownAccesses::Unknown;
                record.rewritten(&call.arguments);
            }
            match said.verdict {
                HookVerdict::Continue => {}
                HookVerdict::Ask(reason) => {
                    self.ask.get_or_insert(Cause::Hook { by: name.to_owned(), reason });
                }
                HookVerdict::Defer(reason) => return Err(refused(name, "deferred", &reason)),
                HookVerdict::Deny(reason) => return Err(refused(name, "refused", &reason)),
            }
        }
        if !hooks.is_empty() {
            self.call = Some(call.clone());
        }
        Ok(())
    }

    /// Stores the accesses of the call for the hooks after it.
    pub(super) fn set_accesses(&mut self, accesses: &[Access]) {
        if self.call.is_some() {
            self.accesses = Some(accesses.to_vec());
        }
    }

    /// Adds the approval that hooks require to the decision; with `asks_nobody`, the decision becomes a denial. Hooks
    /// never weaken a decision. If rules require approval as well, the user is asked once more.
    pub(super) fn apply_to(&self, decision: Decision, asks_nobody: bool) -> Decision {
        let Some(cause) = self.ask.clone().filter(|_| decision.verdict != Verdict::Deny) else { return decision };
        let verdict = if asks_nobody { Verdict::Deny } else { Verdict::Ask };
        let finding = Finding::new(verdict, None, cause);
        let decisive = match decision.verdict {
            Verdict::Ask => decision.decisive,
            Verdict::Allow | Verdict::Deny => finding.clone(),
        };
        let mut trace = decision.trace;
        trace.insert(0, finding);
        Decision { verdict, decisive, trace }
    }

    /// Runs each hook after the call. Its messages are added to the answer for the model, or logged to the client if
    /// the answer is not the result of a tool. If a hook replaces the output, the record names it and loses its
    /// metadata. A hook that fails is only logged.
    pub(super) async fn after(
        self,
        hooks: &[Arc<dyn ToolHook>],
        command: &ExecuteToolCommand,
        execution: &mut ToolExecution,
        mut outcome: Result<CallOutcome, ExecuteToolError>,
        budget: ResultSizeLimits,
    ) -> Result<CallOutcome, ExecuteToolError> {
        let mut context = self.context;
        for hook in hooks {
            let result = match &outcome {
                Ok(CallOutcome::Done(result)) => Some(result),
                Ok(CallOutcome::InputRequired(_)) | Err(_) => None,
            };
            let ended = EndedCall { call: self.call.as_ref(), accesses: self.accesses.as_deref(), execution, result };
            let patience = match command.cancel.reason() {
                Some(_) => hook.timeout().after.min(TIME_AFTER_CANCEL),
                None => hook.timeout().after,
            };
            // A hook that hangs or panics does not block the record.
            let notified = AssertUnwindSafe(timeout(patience, hook.after(ended))).catch_unwind();
            let said = match cancellable(notified, command).await {
                Some(Ok(Ok(said))) => said,
                _ => {
                    tracing::warn!(hook = hook.name(), call = %execution.id, "the hook failed at the end of the call");
                    AfterCallResponse::default()
                }
            };
            context.extend(named(hook.as_ref(), said.context));
            log_messages(command, hook.as_ref(), said.messages);
            if let (Some(output), Ok(CallOutcome::Done(result))) = (said.output, &mut outcome) {
                let name = said.by.as_deref().unwrap_or(hook.name());
                *result = withheld_if_too_long(output, name, budget);
                // The metadata may contain what the hook removed from the output.
                execution.metadata = serde_json::Value::Null;
                if let Some(decision) = &mut execution.decision {
                    decision.reason.push_str(&format!("; the hook `{name}` changed the output"));
                }
            }
        }
        with_context(outcome, &context, command)
    }
}

/// Accesses of a call, as hooks receive them.
enum KnownAccesses {
    /// Not determined for the current arguments.
    Unknown,
    /// Determined accesses; `None` if they cannot be determined from the arguments.
    Determined(Option<Vec<Access>>),
}

impl KnownAccesses {
    /// Determines the accesses that hooks filter by. Errors other than a cancellation are ignored: a hook may still
    /// correct the arguments, and they are validated later.
    async fn by(
        registered: &SharedRegisteredTool,
        call: &ToolCall,
        command: &ExecuteToolCommand,
        time: Duration,
    ) -> Result<Self, ExecuteToolError> {
        let mut call = call.clone();
        with_defaults(registered, &mut call);
        match permitted_call::accesses(registered.provider.as_ref(), &call, &command.cancel, time).await {
            Ok(accesses) => Ok(Self::Determined(Some(accesses))),
            Err(error @ ExecuteToolError::Cancelled(_)) => Err(error),
            Err(_) => Ok(Self::Determined(None)),
        }
    }

    fn accesses(&self) -> Option<&[Access]> {
        match self {
            Self::Determined(Some(accesses)) => Some(accesses),
            Self::Unknown | Self::Determined(None) => None,
        }
    }
}

/// Runs the work; `None` if the call is cancelled meanwhile. If it was cancelled before, the work runs to its end, so
/// that hooks are notified of cancelled calls as well.
async fn cancellable<T>(work: impl Future<Output = T>, command: &ExecuteToolCommand) -> Option<T> {
    if command.cancel.reason().is_some() {
        return Some(work.await);
    }
    tokio::select! {
        done = work => Some(done),
        _ = command.cancel.cancelled() => None,
    }
}

/// Returns the output that a hook substituted, or a notice if it exceeds the budget. It is not cut, and the original is
/// not restored, because the hook may have hidden parts of it.
fn withheld_if_too_long(output: ToolResult, hook: &str, budget: ResultSizeLimits) -> ToolResult {
    match output::is_within(&output, budget) {
        true => output,
        false => ToolResult::text(format!(
            "[the output is withheld: the hook `{hook}` replaced it with more than {} characters]",
            budget.characters
        )),
    }
}

fn with_context(
    outcome: Result<CallOutcome, ExecuteToolError>,
    context: &[(String, String)],
    command: &ExecuteToolCommand,
) -> Result<CallOutcome, ExecuteToolError> {
    let Some(text) = joined(context) else { return outcome };
    let is_of_no_tool =
        |result: &ToolResult| command.answered_by.is_some() && !result.as_object().contains_key("content");
    let add = |mut failure: ToolFailure| {
        failure.next = Some(failure.next.map_or(text.clone(), |next| format!("{next}\n{text}")));
        failure
    };
    match outcome {
        // A task, a resource or a prompt has no content blocks, so the text is logged instead.
        Ok(CallOutcome::Done(result)) if result.is_task() || is_of_no_tool(&result) => {
            command.caller.log(LogMessage::new(LogLevel::Info, text).by("hooks"));
            Ok(CallOutcome::Done(result))
        }
        Ok(CallOutcome::Done(result)) => Ok(CallOutcome::Done(result.with_block(text_block(text)))),
        Err(ExecuteToolError::Refused(failure)) => Err(ExecuteToolError::Refused(add(failure))),
        Err(ExecuteToolError::Failed(failure)) => Err(ExecuteToolError::Failed(add(failure))),
        other => other,
    }
}

/// Returns the messages with the names of their hooks.
fn named(hook: &dyn ToolHook, context: Vec<AdditionalContext>) -> impl Iterator<Item = (String, String)> {
    let name = hook.name().to_owned();
    context.into_iter().map(move |one| (one.by.unwrap_or_else(|| name.clone()), one.text))
}

fn log_messages(command: &ExecuteToolCommand, hook: &dyn ToolHook, messages: Vec<String>) {
    for message in messages {
        let logger = format!("hook {}", hook.name());
        command.caller.log(LogMessage::new(LogLevel::Warning, message).by(logger));
    }
}

fn refused(hook: &str, what: &str, reason: &str) -> ExecuteToolError {
    let message = format!("The hook `{hook}` {what} the call: {reason}");
    ExecuteToolError::Refused(ToolFailure::new(ErrorKind::PermissionDenied, message))
}
