//! Resolution of the called tool, and admission of the call.

use super::{command::ExecuteToolCommand, error::ExecuteToolError};
use crate::{
    open_calls::{NotAdmitted, OpenCallGuard, OpenCalls},
    tool_registry::{AbsentServer, SharedRegisteredTool, ToolRegistry, snapshot::ResolveError},
};
use std::{sync::Arc, time::Duration};
use toolstead_domain::{
    AccessKind, AuditedRequestKind, Availability, CallId, Suggestion, ToolFailure, error_kind::ErrorKind,
};

/// Maximum time to wait for a server that has not listed its tools yet.
const FIRST_LIST_WAITS: Duration = Duration::from_secs(10);

/// Returns the tool of the called name, if it can be called. If the name is unknown and a provider has not listed its
/// tools yet, waits for that list.
pub(super) async fn find(
    registry: &ToolRegistry,
    command: &ExecuteToolCommand,
) -> Result<SharedRegisteredTool, ExecuteToolError> {
    if let Some(answerer) = &command.answered_by {
        let registered = answerer.registered.clone().filter(|one| is_in_views(command, answerer.kind, one));
        return registered.ok_or_else(|| ExecuteToolError::NotCallable(answerer.unknown(&command.tool)));
    }
    let name = command.scope.tool_named(&command.tool);
    if let Ok(registered) = registry.resolve_in(command.scope.dialect, name) {
        if registered.tool.pending.is_none() {
            return callable(registered);
        }
        // Another process may have approved the definition.
        Box::pin(registry.renew_pins(&registered)).await;
        let renewed = registry.resolve_in(command.scope.dialect, name);
        return callable(renewed.unwrap_or(registered));
    }
    // Boxed: rare, and larger than the rest of the lookup.
    Box::pin(find_later(registry, command)).await
}

/// Returns `true` if every view of the call offers the resource or prompt that it requests.
fn is_in_views(command: &ExecuteToolCommand, kind: AuditedRequestKind, registered: &SharedRegisteredTool) -> bool {
    let subject = &command.tool;
    command.scope.contents().all(|(_, content)| match (kind, registered.tool.stands_for()) {
        (AuditedRequestKind::Tool | AuditedRequestKind::Task | AuditedRequestKind::Question, _) => true,
        (_, Some(AccessKind::Prompt)) => content.offers_prompt(subject),
        (AuditedRequestKind::Completion, _) => content.offers_template(subject),
        (AuditedRequestKind::Resource | AuditedRequestKind::Prompt, _) => content.offers_resource(subject),
    })
}

/// Resolves the name again once providers have listed their tools.
async fn find_later(
    registry: &ToolRegistry,
    command: &ExecuteToolCommand,
) -> Result<SharedRegisteredTool, ExecuteToolError> {
    let name = command.scope.tool_named(&command.tool);
    tokio::select! {
        () = registry.settled_for(name, FIRST_LIST_WAITS) => match registry.resolve_in(command.scope.dialect, name) {
            Ok(registered) => callable(registered),
            Err(unresolved) => Err(ExecuteToolError::NotCallable(unknown(&command.tool, unresolved))),
        },
        reason = command.cancel.cancelled() => Err(ExecuteToolError::Cancelled(reason)),
    }
}

/// Returns the tool if it is enabled and available.
fn callable(registered: SharedRegisteredTool) -> Result<SharedRegisteredTool, ExecuteToolError> {
    let tool = &registered.tool;
    match &tool.availability {
        _ if !tool.enabled => Err(ExecuteToolError::NotCallable(
            ToolFailure::new(ErrorKind::Disabled, format!("the tool `{}` is switched off", tool.name()))
                .next("Use another tool; an operator can switch it on again."),
        )),
        // The reason may name settings and commands, which are for users and not for models.
        Availability::Unavailable(reason) => Err(ExecuteToolError::NotCallable(
            ToolFailure::new(ErrorKind::Unavailable, format!("the tool `{}` is unavailable here", tool.name()))
                .suggest(Suggestion::SetUpTool(reason.clone())),
        )),
        Availability::Available => Ok(registered),
    }
}

fn unknown(name: &str, unresolved: ResolveError) -> ToolFailure {
    let shown: String = name.chars().take(128).collect();
    let (message, candidates) = match unresolved {
        ResolveError::Unknown(nearest) => (format!("Unknown tool: {shown}"), nearest),
        ResolveError::Ambiguous(several) => (format!("`{shown}` could be several tools"), several),
        ResolveError::Absent(AbsentServer { server, why, .. }) => {
            // The reason may contain commands for users and text of the server, so it is not part of the message.
            let message = format!("`{shown}` cannot be called now: the MCP server `{server}` is not available");
            return ToolFailure::new(ErrorKind::Unavailable, message)
                .suggest(Suggestion::InspectServer { server, reason: why });
        }
    };
    let failure = ToolFailure::new(ErrorKind::NotFound, message);
    match candidates.is_empty() {
        true => failure.suggest(Suggestion::ListTools),
        false => failure.next(format!(
            "Did you mean {}?",
            candidates.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(" or ")
        )),
    }
}

/// Admits the call within the limits of open calls.
pub(super) fn admit(
    calls: &Arc<OpenCalls>,
    id: CallId,
    command: &ExecuteToolCommand,
) -> Result<OpenCallGuard, ExecuteToolError> {
    calls.admit_in(id, &command.scope, command.cancel.clone()).map_err(|why| match why {
        NotAdmitted::TooMany(_) | NotAdmitted::TooManyInView(_) => ExecuteToolError::Refused(
            ToolFailure::new(ErrorKind::RateLimited, why.to_string())
                .next("Wait for a running call to end, then try again."),
        ),
        NotAdmitted::Closing => ExecuteToolError::Closed,
    })
}
