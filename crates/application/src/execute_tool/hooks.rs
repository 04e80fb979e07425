//! The hooks around a call.

use super::{ExecuteToolError, arguments::validated, record::Record};
use crate::{cancel_signal::CancelSignal, tool_registry::Registered};
use futures::FutureExt;
use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio::time::timeout;
use toolstead_domain::{
    error_kind::ErrorKind,
    ports::{
        tool_hook::{HookVerdict, ToolHook},
        tool_provider::CallOutcome,
    },
    tool_call::ToolCall,
    tool_execution::ToolExecution,
    tool_failure::ToolFailure,
};

/// How long a hook may take to decide.
const HOOK_TIME: Duration = Duration::from_secs(60);
/// How long a hook may take to hear of the end.
const AFTER_TIME: Duration = Duration::from_secs(2);

/// Asks each hook. Rewritten arguments are validated, and the rules judge them afterwards.
pub(super) async fn before(
    hooks: &[Arc<dyn ToolHook>],
    registered: &Registered,
    call: &mut ToolCall,
    record: &mut Record,
    cancel: &CancelSignal,
) -> Result<(), ExecuteToolError> {
    for hook in hooks {
        let verdict = tokio::select! {
            verdict = timeout(HOOK_TIME, hook.before(call)) => verdict,
            reason = cancel.cancelled() => return Err(ExecuteToolError::Cancelled(reason)),
        };
        // A gate that does not answer stays shut.
        let silent = || HookVerdict::Deny(format!("it did not answer within {} s", HOOK_TIME.as_secs()));
        match verdict.unwrap_or_else(|_| silent()) {
            HookVerdict::Continue => {}
            HookVerdict::Rewrite(arguments) => {
                call.arguments = validated(registered, arguments)?;
                record.rewritten(&call.arguments);
            }
            HookVerdict::Deny(reason) => {
                let message = format!("The hook `{}` refused the call: {reason}", hook.name());
                return Err(ExecuteToolError::Refused(ToolFailure::new(ErrorKind::PermissionDenied, message)));
            }
        }
    }
    Ok(())
}

/// Tells each hook how the call ended.
pub(super) async fn after(
    hooks: &[Arc<dyn ToolHook>],
    execution: &ToolExecution,
    outcome: &Result<CallOutcome, ExecuteToolError>,
) {
    let result = match outcome {
        Ok(CallOutcome::Done(result)) => Some(result),
        Ok(CallOutcome::InputRequired(_)) | Err(_) => None,
    };
    for hook in hooks {
        // The row waits for nobody who hangs or panics.
        let told = AssertUnwindSafe(timeout(AFTER_TIME, hook.after(execution, result))).catch_unwind().await;
        if !matches!(told, Ok(Ok(()))) {
            tracing::warn!(hook = hook.name(), call = %execution.id, "the hook did not take the end of the call");
        }
    }
}
