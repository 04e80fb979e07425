//! The steps of a call, in their order.

use super::{
    ExecuteToolHandler, answer_limit,
    approval::{self, ApprovalContext},
    arguments::{self, PreparedArguments},
    command::ExecuteToolCommand,
    error::{AuditFailure, ExecuteToolError},
    events,
    hooks::CallHookState,
    output::{self, overflow_writer::OverflowStorage},
    pending_definition,
    permitted_call::{self, PermittedCall},
    preview::PreviewContext,
    record::CallRecord,
    resolution,
    restricted_view_label::labels_in,
    validation::ArgumentValidator,
};
use crate::{open_calls::OpenCallGuard, tool_registry::SharedRegisteredTool};
use futures::FutureExt;
use serde_json::Value;
use std::{panic::AssertUnwindSafe, pin::pin, sync::Arc, time::Duration};
use toolstead_domain::{
    Access, AccessKind, CallId, CallOutcome, CallPermissions, Decision, PermissionPolicy, Tool, ToolCall, ToolProvider,
    ToolSource, Verdict,
};

/// Call in progress: the command, and the results of the steps so far.
pub(super) struct CallInProgress<'a> {
    handler: &'a Arc<ExecuteToolHandler>,
    pub(super) command: Box<ExecuteToolCommand>,
    pub(super) record: CallRecord,
    /// `None` if no hooks are configured.
    pub(super) hooks: Option<Box<CallHookState>>,
    arguments: Value,
    /// Refusal that was determined before the first step.
    refusal: Option<Box<ExecuteToolError>>,
    /// Place among the open calls. A nested call shares that of its parent.
    pub(super) place: Option<OpenCallGuard>,
}

struct CallPermit {
    policy: Arc<PermissionPolicy>,
    accesses: Vec<Access>,
    /// Accesses that the user approved.
    approved: Vec<Access>,
}

impl<'a> CallInProgress<'a> {
    pub(super) fn new(
        handler: &'a Arc<ExecuteToolHandler>,
        id: CallId,
        mut command: Box<ExecuteToolCommand>,
        refusal: Option<Box<ExecuteToolError>>,
    ) -> Self {
        if command.parent.is_none() && command.scope.contents().next().is_some() {
            command.labels = labels_in(&command.scope, &command.labels);
        }
        let record = CallRecord::begin(id, &command, handler.settings.arguments, handler.ports.clock.as_ref());
        let hooks = (!handler.ports.hooks.is_empty()).then(Box::default);
        let arguments = std::mem::take(&mut command.arguments);
        Self { handler, command, record, hooks, arguments, refusal, place: None }
    }

    /// Runs all steps. A panic becomes a failure, and the message of a failure is bounded.
    pub(super) async fn outcome(&mut self) -> Result<CallOutcome, ExecuteToolError> {
        let budget = self.handler.settings.output_characters;
        let path = {
            // Pinned here: a future that is passed by value is copied.
            let path = pin!(self.run());
            AssertUnwindSafe(path).catch_unwind().await
        };
        match path {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(error)) => Err(output::bound_message(error, budget)),
            Err(panic) => {
                Err(output::bound_message(permitted_call::panicked("the path of a call", panic.as_ref()), budget))
            }
        }
    }

    /// Runs the steps of a call in their order.
    async fn run(&mut self) -> Result<CallOutcome, ExecuteToolError> {
        let registered = resolution::find(&self.handler.registry, &self.command).await?;
        self.record.resolved(&registered.tool);
        self.admit()?;
        self.refuse_closed_tool(&registered.tool)?;
        let (call, references, max_output) = self.prepare(&registered).await?;
        let CallPermit { policy, accesses, approved } = self.permit(&registered, &call, &references).await?;
        let is_on_record = self.record_start(&call, &accesses).await?;
        let grant = CallPermissions::new(policy, call.tool.clone(), approved);
        let (handler, provider) = (self.handler, registered.provider.as_ref());
        let (command, record) = (&*self.command, &self.record);
        let running = PermittedCall { handler, provider, command, call: &call, grant: &grant, record, is_on_record };
        let mut outcome = pin!(permitted_call::run(&running)).await;
        self.publish_resources(provider, &mut outcome);
        self.bound(&registered, &call, max_output, outcome).await
    }

    /// Takes a place among the open calls, or checks the limits of the parent's call tree.
    fn admit(&mut self) -> Result<(), ExecuteToolError> {
        if let Some(refusal) = self.refusal.take() {
            return Err(*refusal);
        }
        match &self.command.parent {
            Some(nesting) => nesting.admit(),
            None => {
                self.place = Some(resolution::admit(&self.handler.open_calls, self.record.id(), &self.command)?);
                Ok(())
            }
        }
    }

    /// Refuses a tool of which every call is denied, before its schema or its arguments are used.
    fn refuse_closed_tool(&mut self, tool: &Tool) -> Result<(), ExecuteToolError> {
        let Some(decision) = self.policy().refusal_of_every_call(tool) else { return Ok(()) };
        self.record.decided(&[], &decision, &self.handler.decision_texts);
        Err(approval::refused(tool, &decision))
    }

    /// Prepares the arguments for the tool. Returns the call, its references to stored outputs, and the maximum number
    /// of characters that the caller requests.
    async fn prepare(
        &mut self,
        registered: &SharedRegisteredTool,
    ) -> Result<(ToolCall, Vec<String>, Option<usize>), ExecuteToolError> {
        let time = self.time(&registered.tool);
        let Self { handler, command, record, hooks, arguments, .. } = self;
        let (ports, arguments) = (&handler.ports, std::mem::take(arguments));
        let (outputs, schemas) = (ports.outputs.as_ref(), ports.schemas.as_ref());
        let validation = ArgumentValidator { beside: schemas, cancel: &command.cancel, time };
        let PreparedArguments { arguments, references, max_output } =
            arguments::prepare(registered, command, arguments, outputs, record, validation).await?;
        let mut call = ToolCall {
            id: record.id(),
            principal: command.scope.principal.clone(),
            session: command.scope.session.clone(),
            tool: registered.tool.clone(),
            called_as: command.tool.clone(),
            arguments,
            meta: command.meta.clone(),
        };
        if let Some(hooks) = hooks {
            // Boxed: the future is large, and most calls have no hooks.
            Box::pin(hooks.before(&ports.hooks, registered, &mut call, record, command, validation)).await?;
        }
        arguments::complete(registered, &mut call, validation).await?;
        Ok((call, references, max_output))
    }

    /// Decides on the accesses of the call, and obtains approval if the decision requires it. The approval also
    /// approves a pending definition of the tool.
    async fn permit(
        &mut self,
        registered: &SharedRegisteredTool,
        call: &ToolCall,
        references: &[String],
    ) -> Result<CallPermit, ExecuteToolError> {
        let accesses = self.accesses(registered, call).await?;
        let policy = self.policy();
        let decision = self.decide(&policy, call, &accesses);
        match decision.verdict {
            Verdict::Allow => Ok(CallPermit { policy, accesses, approved: Vec::new() }),
            Verdict::Deny => Err(approval::refused(&call.tool, &decision)),
            // Boxed: rare, and larger than the rest of the path.
            Verdict::Ask => {
                let permit =
                    Box::pin(self.obtain_approval(registered, call, references, accesses, policy, decision)).await?;
                if call.tool.pending.is_some() {
                    self.handler.registry.approve_definition(registered).await;
                }
                Ok(permit)
            }
        }
    }

    /// Requests approval until the approver has been shown the call in its current form. An approval takes time:
    /// meanwhile the accesses of the call and the rules may change.
    async fn obtain_approval(
        &mut self,
        registered: &SharedRegisteredTool,
        call: &ToolCall,
        references: &[String],
        mut accesses: Vec<Access>,
        mut policy: Arc<PermissionPolicy>,
        mut decision: Decision,
    ) -> Result<CallPermit, ExecuteToolError> {
        let handler = self.handler;
        let (events, provider) = (&handler.ports.events, registered.provider.as_ref());
        loop {
            events::permission_requested(events, call, &decision, &self.record);
            let approvals = handler.approvals(&policy, provider);
            let (command, record) = (&self.command, &mut self.record);
            let obtained = approvals.obtain(command, call, references, &accesses, &decision, record).await;
            events::permission_resolved(events, call, &decision, &obtained);
            let approved = obtained?;
            if !approved.was_asked {
                return Ok(CallPermit { policy, accesses, approved: approved.by_person });
            }
            let now = self.accesses(registered, call).await?;
            let current = self.policy();
            let changed = self.complete(&current, call, current.decide(&call.tool, &call.arguments, &now));
            let preview = handler.approvals(&current, provider).previews.of(&self.command, call, &now).await?;
            if approved.covers(&accesses, &now, preview.as_deref(), &changed) {
                return Ok(CallPermit { policy: current, accesses, approved: approved.by_person });
            }
            accesses = now;
            policy = self.policy();
            decision = self.decide(&policy, call, &accesses);
        }
    }

    /// Decides on the call, and adds the decision to its record.
    fn decide(&mut self, policy: &PermissionPolicy, call: &ToolCall, accesses: &[Access]) -> Decision {
        if let Some(hooks) = &mut self.hooks {
            hooks.set_accesses(accesses);
        }
        let decision = self.complete(policy, call, policy.decide(&call.tool, &call.arguments, accesses));
        self.record.decided(accesses, &decision, &self.handler.decision_texts);
        decision
    }

    /// Applies to the decision the approvals that hooks and an unapproved definition of the tool require.
    fn complete(&self, policy: &PermissionPolicy, call: &ToolCall, decision: Decision) -> Decision {
        let decision = pending_definition::apply_to(&call.tool, decision, policy.denies_instead_of_asking());
        match &self.hooks {
            Some(hooks) => hooks.apply_to(decision, policy.denies_instead_of_asking()),
            None => decision,
        }
    }

    /// Stores the record before the call runs, if the call can change something, and publishes the start. Returns
    /// `true` if it stored the record; fails if the call was cancelled.
    async fn record_start(&mut self, call: &ToolCall, accesses: &[Access]) -> Result<bool, ExecuteToolError> {
        // A call that was cancelled during the approval must not run.
        if let Some(reason) = self.command.cancel.reason() {
            return Err(ExecuteToolError::Cancelled(reason));
        }
        let ports = &self.handler.ports;
        let can_change = can_change(&call.tool, accesses);
        if can_change {
            let recorded = ports.log.record_ref(self.record.execution()).await;
            recorded.map_err(|source| ExecuteToolError::AuditFailure { what: AuditFailure::Start, source })?;
        }
        events::started(&ports.events, call, &self.record);
        Ok(can_change)
    }

    /// Replaces the provider's own resource URIs in the result by the published ones.
    fn publish_resources(&self, provider: &dyn ToolProvider, outcome: &mut Result<CallOutcome, ExecuteToolError>) {
        if let (Some(context), Ok(CallOutcome::Done(result))) = (self.handler.context(), outcome) {
            context.snapshot().publish_blocks(provider.name(), result);
        }
    }

    /// Bounds the result of a tool call: the part over the budget is stored under a handle. An answer to another
    /// request, or a task, is an error if it is too large. A task is also registered.
    async fn bound(
        &self,
        registered: &SharedRegisteredTool,
        call: &ToolCall,
        max_output: Option<usize>,
        outcome: Result<CallOutcome, ExecuteToolError>,
    ) -> Result<CallOutcome, ExecuteToolError> {
        let Self { handler, command, .. } = self;
        let settings = &handler.settings;
        if command.answered_by.is_some() {
            return answer_limit::bound(outcome, settings.answer_bytes());
        }
        if matches!(&outcome, Ok(CallOutcome::Done(result)) if result.is_task()) {
            let task = answer_limit::bound(outcome, settings.answer_bytes());
            return handler.tasks.register_if_task(task, command, &call.tool);
        }
        let wanted = command.parent.as_ref().and_then(|nesting| nesting.output_characters);
        let budget = settings.output_budget(registered.provider.as_ref()).requested_by_parent(wanted).up_to(max_output);
        let budget = budget.up_to(command.scope.limits().output_characters);
        if output::fits(registered, &outcome, budget) {
            return outcome;
        }
        // Boxed: the future is large, and most results fit.
        Box::pin(async move {
            let ports = &handler.ports;
            let (tools, max_bytes) = (handler.registry.snapshot(), settings.stored_output_bytes);
            let (outputs, principal) = (ports.outputs.as_ref(), &command.scope.principal);
            let keeper = OverflowStorage::new(outputs, principal, call.id, max_bytes, tools.output_readers());
            output::bound(outcome, registered, budget, keeper, ports.schemas.as_ref()).await
        })
        .await
    }

    /// Returns the accesses of the call.
    async fn accesses(
        &self,
        registered: &SharedRegisteredTool,
        call: &ToolCall,
    ) -> Result<Vec<Access>, ExecuteToolError> {
        let time = self.time(&registered.tool);
        permitted_call::accesses(registered.provider.as_ref(), call, &self.command.cancel, time).await
    }

    fn policy(&self) -> Arc<PermissionPolicy> {
        self.handler.permissions.policy_of(&self.command.scope)
    }

    /// Returns the timeout of each step before the call runs.
    fn time(&self, tool: &Tool) -> Duration {
        self.handler.settings.time_for(tool, self.command.timeout, &self.command)
    }
}

impl ExecuteToolHandler {
    fn approvals<'a>(
        &'a self,
        policy: &'a Arc<PermissionPolicy>,
        provider: &'a dyn ToolProvider,
    ) -> ApprovalContext<'a> {
        ApprovalContext {
            previews: PreviewContext { provider, ports: &self.ports, settings: &self.settings, policy },
            approver: self.ports.approver.as_ref(),
            book: &self.permissions,
            policy,
            open_calls: &self.open_calls,
            timeout: self.settings.approval_timeout,
        }
    }
}

/// Returns `true` if the call can change something, so that its record must be stored before it runs. Decided by its
/// accesses, not by hints of the tool. A tool of the embedding application without accesses is assumed to write.
fn can_change(tool: &Tool, accesses: &[Access]) -> bool {
    let is_silent = accesses.is_empty() && matches!(tool.source(), ToolSource::Embedded(_));
    is_silent || accesses.iter().any(|access| access.kind() != AccessKind::Read)
}
