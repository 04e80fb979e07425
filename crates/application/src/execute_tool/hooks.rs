//! The hooks around a call.

use super::{
    ExecuteToolCommand, ExecuteToolError,
    arguments::{validated, with_defaults},
    hook_words::joined,
    output::{self, Budget},
    record::Record,
    running,
    validation::Validation,
};
use crate::tool_registry::Registered;
use futures::FutureExt;
use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio::time::timeout;
use toolstead_domain::{
    access::Access,
    client_profile::LogLevel,
    error_kind::ErrorKind,
    permission::decision::{Cause, Decision, Finding, Verdict},
    ports::{
        caller::LogMessage,
        tool_hook::{AfterCall, BeforeCall, EndedCall, HookContext, HookVerdict, ToolHook},
        tool_provider::CallOutcome,
    },
    tool_call::ToolCall,
    tool_execution::ToolExecution,
    tool_failure::ToolFailure,
    tool_result::{ToolResult, text_block},
};

/// How long a hook may take to hear of the end of a call that was taken back: somebody waits for that end.
const TIME_AFTER_CANCEL: Duration = Duration::from_secs(2);

/// State of the hooks for one call on the path.
#[derive(Default)]
pub(super) struct HookOutcome {
    call: Option<ToolCall>,
    /// Accesses of the call that the decision is about.
    accesses: Option<Vec<Access>>,
    context: Vec<(String, String)>,
    /// The first hook that requires approval, with its reason.
    ask: Option<Cause>,
}

impl HookOutcome {
    /// Runs each hook before the call. Rewritten arguments are validated; the rules decide on them afterwards.
    pub(super) async fn before(
        &mut self,
        hooks: &[Arc<dyn ToolHook>],
        registered: &Registered,
        call: &mut ToolCall,
        record: &mut Record,
        command: &ExecuteToolCommand,
        validation: Validation<'_>,
    ) -> Result<(), ExecuteToolError> {
        let mut accesses = Touched::Unknown;
        for hook in hooks {
            if matches!(accesses, Touched::Unknown) {
                accesses = Touched::by(registered, call, command, validation.time).await?;
            }
            let patience = hook.patience().before;
            let asked = AssertUnwindSafe(timeout(patience, hook.before(call, accesses.told()))).catch_unwind();
            let said = tokio::select! {
                said = asked => said,
                reason = command.cancel.cancelled() => return Err(ExecuteToolError::Cancelled(reason)),
            };
            // A gate that does not answer stays shut.
            let said = match said {
                Ok(Ok(said)) => said,
                Ok(Err(_)) => BeforeCall::deny(format!("it did not answer within {} s", patience.as_secs())),
                Err(_) => BeforeCall::deny("it failed inside"),
            };
            self.context.extend(named(hook.as_ref(), said.context));
            tell(command, hook.as_ref(), said.messages);
            let left_out = record.labelled(&said.labels);
            if left_out > 0 {
                tracing::warn!(hook = hook.name(), call = %call.id, left_out, "a call has no room for more labels");
            }
            let name = said.by.as_deref().unwrap_or(hook.name());
            if let Some(arguments) = said.arguments {
                call.arguments = validated(registered, arguments, validation).await?;
                accesses = Touched::Unknown;
                record.rewritten(&call.arguments);
            }
            match said.verdict {
                HookVerdict::Continue => {}
                HookVerdict::Ask(reason) => {
                    self.ask.get_or_insert(Cause::Hook { by: name.to_owned(), reason });
                }
                HookVerdict::Defer(reason) => return Err(refused(name, "put off", &reason)),
                HookVerdict::Deny(reason) => return Err(refused(name, "refused", &reason)),
            }
        }
        if !hooks.is_empty() {
            self.call = Some(call.clone());
        }
        Ok(())
    }

    /// Stores the accesses of the call, for the hooks after it.
    pub(super) fn set_accesses(&mut self, accesses: &[Access]) {
        if self.call.is_some() {
            self.accesses = Some(accesses.to_vec());
        }
    }

    /// Returns the decision with the approval that hooks require. Hooks never weaken a decision. Where rules require
    /// approval as well, there is one more question.
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

    /// Runs each hook after the call, and adds what they say to the answer for the model, or to the client's log where the
    /// answer is not the result of a tool. The record names a hook that changed the output.
    pub(super) async fn after(
        self,
        hooks: &[Arc<dyn ToolHook>],
        command: &ExecuteToolCommand,
        execution: &mut ToolExecution,
        mut outcome: Result<CallOutcome, ExecuteToolError>,
        budget: Budget,
    ) -> Result<CallOutcome, ExecuteToolError> {
        let mut context = self.context;
        for hook in hooks {
            let result = match &outcome {
                Ok(CallOutcome::Done(result)) => Some(result),
                Ok(CallOutcome::InputRequired(_)) | Err(_) => None,
            };
            let ended = EndedCall { call: self.call.as_ref(), accesses: self.accesses.as_deref(), execution, result };
            let patience = match command.cancel.reason() {
                Some(_) => hook.patience().after.min(TIME_AFTER_CANCEL),
                None => hook.patience().after,
            };
            // The row waits for nobody who hangs or panics.
            let told = AssertUnwindSafe(timeout(patience, hook.after(ended))).catch_unwind();
            let said = match cancellable(told, command).await {
                Some(Ok(Ok(said))) => said,
                _ => {
                    tracing::warn!(hook = hook.name(), call = %execution.id, "the hook did not take the end of the call");
                    AfterCall::default()
                }
            };
            context.extend(named(hook.as_ref(), said.context));
            tell(command, hook.as_ref(), said.messages);
            if let (Some(output), Ok(CallOutcome::Done(result))) = (said.output, &mut outcome) {
                let name = said.by.as_deref().unwrap_or(hook.name());
                *result = withheld_if_too_long(output, name, budget);
                // The hook may have wanted to hide what was there.
                execution.metadata = serde_json::Value::Null;
                if let Some(decision) = &mut execution.decision {
                    decision.reason.push_str(&format!("; the hook `{name}` changed the output"));
                }
            }
        }
        with_context(outcome, &context, command)
    }
}

/// What hooks are told of the accesses of a call.
enum Touched {
    /// Its arguments are new.
    Unknown,
    /// These; `None` where the arguments do not say it.
    Told(Option<Vec<Access>>),
}

impl Touched {
    /// What is wrong with the arguments is told when they are judged: a hook may still put them right.
    async fn by(
        registered: &Registered,
        call: &ToolCall,
        command: &ExecuteToolCommand,
        time: Duration,
    ) -> Result<Self, ExecuteToolError> {
        let mut call = call.clone();
        with_defaults(registered, &mut call);
        match running::accesses(registered.provider.as_ref(), &call, &command.cancel, time).await {
            Ok(accesses) => Ok(Self::Told(Some(accesses))),
            Err(error @ ExecuteToolError::Cancelled(_)) => Err(error),
            Err(_) => Ok(Self::Told(None)),
        }
    }

    fn told(&self) -> Option<&[Access]> {
        match self {
            Self::Told(Some(accesses)) => Some(accesses),
            Self::Unknown | Self::Told(None) => None,
        }
    }
}

/// What the work answers; `None` when the call is taken back meanwhile. A call that was taken back before is told to its
/// end: hooks hear of that, too.
async fn cancellable<T>(work: impl Future<Output = T>, command: &ExecuteToolCommand) -> Option<T> {
    if command.cancel.reason().is_some() {
        return Some(work.await);
    }
    tokio::select! {
        done = work => Some(done),
        _ = command.cancel.cancelled() => None,
    }
}

/// An output that a hook made stands in place of one that it may have wanted to hide, so it is not cut, and the first one
/// does not come back.
fn withheld_if_too_long(output: ToolResult, hook: &str, budget: Budget) -> ToolResult {
    match output::is_within(&output, budget) {
        true => output,
        false => ToolResult::text(format!(
            "[the output is withheld: the hook `{hook}` gave one of more than {} characters in its place]",
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
        // A task, a resource or a prompt has no blocks: one more would stand in the place of all that it says.
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

/// What hooks say, each with its name.
fn named(hook: &dyn ToolHook, context: Vec<HookContext>) -> impl Iterator<Item = (String, String)> {
    let name = hook.name().to_owned();
    context.into_iter().map(move |one| (one.by.unwrap_or_else(|| name.clone()), one.text))
}

fn tell(command: &ExecuteToolCommand, hook: &dyn ToolHook, messages: Vec<String>) {
    for message in messages {
        let logger = format!("hook {}", hook.name());
        command.caller.log(LogMessage::new(LogLevel::Warning, message).by(logger));
    }
}

fn refused(hook: &str, what: &str, reason: &str) -> ExecuteToolError {
    let message = format!("The hook `{hook}` {what} the call: {reason}");
    ExecuteToolError::Refused(ToolFailure::new(ErrorKind::PermissionDenied, message))
}
