//! Execution of one tool call. Calls from MCP clients, the CLI, agents and embedding applications all run here.
//!
//! `CallInProgress::run` lists the steps in their order. Each step is in a file of its own.

mod activity_tracker;
mod answer_limit;
mod applied_dialect;
mod approval;
mod arguments;
mod call_in_progress;
pub mod call_log;
mod command;
mod decision_text_cache;
mod detach_on_drop;
mod detached_calls;
mod ending;
mod error;
mod events;
pub mod explain;
mod hook_words;
mod hooks;
mod nested_answer;
mod nested_calls;
mod nesting;
mod output;
mod output_budget;
mod parked_calls;
mod pending_definition;
mod permitted_call;
mod ports;
mod preview;
mod question_channel;
mod record;
mod references;
mod resolution;
mod restricted_view_label;
mod settings;
mod tasks;
pub mod tool_timeouts;
mod validation;
mod waiting_time;

use crate::{
    context_registry::ContextRegistry, list_tools::ListToolsHandler, open_calls::OpenCalls,
    permission_book::PermissionBook, tool_registry::ToolRegistry,
};
pub(crate) use applied_dialect::AppliedDialect;
use call_in_progress::CallInProgress;
pub use command::ExecuteToolCommand;
use decision_text_cache::DecisionTextCache;
use detach_on_drop::DetachOnDrop;
pub use error::{AuditFailure, ExecuteToolError};
use explain::{CallExplainer, ExplainCallQuery, ExplainedCall};
use futures::FutureExt;
pub use nesting::NestedCallPosition;
use parked_calls::{
    ParkedCalls,
    rounds::{FirstRoundFuture, later_round},
};
pub(crate) use permitted_call::report_panic;
pub use ports::ExecuteToolPorts;
pub(crate) use question_channel::adapt_for_client;
use record::CallRecord;
use serde_json::Value;
pub use settings::{CallSettings, RecordedArguments};
use std::{
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tasks::ProviderTaskRegistry;
use toolstead_domain::{CallId, CallOutcome, CallPreview, OutputStore, Principal, StoreError, SuggestionFormatter};
use uuid::Uuid;

/// Handler of [`ExecuteToolCommand`].
pub struct ExecuteToolHandler {
    registry: Arc<ToolRegistry>,
    permissions: Arc<PermissionBook>,
    ports: ExecuteToolPorts,
    open_calls: Arc<OpenCalls>,
    parked_calls: ParkedCalls,
    tasks: ProviderTaskRegistry,
    decision_texts: DecisionTextCache,
    settings: CallSettings,
    /// Registry that publishes the URIs of resources; empty if the application has none.
    context: OnceLock<Arc<ContextRegistry>>,
    /// Handler of the lists that callers receive, which decides which tools are deferred; empty if it is not set.
    lists: OnceLock<Arc<ListToolsHandler>>,
}

impl std::fmt::Debug for ExecuteToolHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExecuteToolHandler").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl ExecuteToolHandler {
    /// Creates a handler for calls of the tools in `registry`, under the policies of `permissions`.
    pub fn new(
        registry: Arc<ToolRegistry>,
        permissions: Arc<PermissionBook>,
        ports: ExecuteToolPorts,
        open_calls: Arc<OpenCalls>,
        settings: CallSettings,
    ) -> Arc<Self> {
        let parked_calls = ParkedCalls::new(open_calls.clone(), settings.approval_timeout);
        let (tasks, decision_texts) = (ProviderTaskRegistry::default(), DecisionTextCache::default());
        Arc::new(Self {
            registry,
            permissions,
            ports,
            open_calls,
            parked_calls,
            tasks,
            decision_texts,
            settings,
            context: OnceLock::new(),
            lists: OnceLock::new(),
        })
    }

    /// Returns the formatter of suggestions for the users of the application's interface.
    pub fn suggestions(&self) -> &dyn SuggestionFormatter {
        self.ports.suggestions.as_ref()
    }

    /// Replaces the URIs of resources in results by those under which `context` publishes them, from now on. Only the
    /// first call has an effect.
    pub fn name_resources_by(&self, context: &Arc<ContextRegistry>) {
        self.context.get_or_init(|| context.clone());
    }

    /// Sets the lists that callers receive, which decide whether tools that search deferred ones are offered. Only the
    /// first call has an effect.
    pub fn list_by(&self, lists: &Arc<ListToolsHandler>) {
        self.lists.get_or_init(|| lists.clone());
    }

    /// Runs the call and records it. Returns the answer once its record is stored.
    ///
    /// If the caller answers by retry ([`Caller::answers_by_retry`]), the call may return questions and stay parked. A
    /// command with the returned request state resumes that call.
    ///
    /// Dropping the future cancels the call (reason: client). Its record is stored in any case.
    ///
    /// # Errors
    /// [`ExecuteToolError`].
    ///
    /// [`Caller::answers_by_retry`]: toolstead_domain::ports::caller::Caller::answers_by_retry
    pub fn handle(
        self: &Arc<Self>,
        command: ExecuteToolCommand,
    ) -> impl Future<Output = Result<CallOutcome, ExecuteToolError>> + Send + use<> {
        // Boxed, so that the futures of callers do not contain it.
        let (handler, command) = (self.clone(), Box::new(command));
        async move {
            let dialect = handler.applied_dialect(&command).map(Box::new);
            let outcome = handler.first_or_later_round(CallId(Uuid::now_v7()), command).await;
            match dialect {
                Some(dialect) => dialect.apply_to(outcome),
                None => outcome,
            }
        }
    }

    /// Returns the dialect in which the caller of this command receives the answer; `None` if the answer is not
    /// adapted.
    pub(crate) fn applied_dialect(&self, command: &ExecuteToolCommand) -> Option<AppliedDialect> {
        AppliedDialect::of(&self.registry, command, &self.settings)
    }

    /// Runs the call under this id, for a caller that needs the id beforehand. Does not translate the outcome into the
    /// dialect of the caller.
    ///
    /// # Errors
    /// [`ExecuteToolError`].
    pub(crate) fn handle_as(
        self: &Arc<Self>,
        id: CallId,
        command: ExecuteToolCommand,
    ) -> impl Future<Output = Result<CallOutcome, ExecuteToolError>> + Send + use<> {
        let (handler, command) = (self.clone(), Box::new(command));
        async move { handler.first_or_later_round(id, command).await }
    }

    /// Starts the call, or resumes the parked call that the command retries. A retry that cannot resume is recorded as
    /// a refused call.
    async fn first_or_later_round(
        self: &Arc<Self>,
        id: CallId,
        mut command: Box<ExecuteToolCommand>,
    ) -> Result<CallOutcome, ExecuteToolError> {
        let refusal = match self.parked_calls.attach(&command) {
            Some(Ok(call)) => return Box::pin(later_round(call, command.cancel)).await,
            Some(Err(error)) => Some(Box::new(error)),
            None => None,
        };
        let parked = if refusal.is_none() { self.parked_calls.parkable_call(id, &command) } else { None };
        let cancel = command.cancel.clone();
        if let Some(call) = &parked {
            command.caller = call.clone();
        }
        let handler = self.clone();
        // Constructed directly in its box: a future that is passed by value is copied.
        let path = Box::into_pin(Box::write(Box::new_uninit(), async move {
            let recorded = pin!(run_and_record(&handler, id, command, refusal));
            let recorded = AssertUnwindSafe(recorded).catch_unwind().await;
            recorded.unwrap_or_else(|panic| Err(permitted_call::panicked("recording a call", panic.as_ref())))
        }));
        match parked {
            Some(call) => FirstRoundFuture::new(path, call, self.settings.grace).await,
            None => DetachOnDrop::new(path, cancel).await,
        }
    }

    /// Runs the steps of a call up to the decision: it resolves the tool, prepares and validates the arguments, has the
    /// provider determine the accesses, and applies the policy. Nothing runs, no approval is requested, and nothing is
    /// recorded. Hooks are skipped, because they may have effects.
    ///
    /// # Errors
    /// [`ExecuteToolError`] if the call would fail before a decision.
    pub async fn explain(&self, query: ExplainCallQuery) -> Result<ExplainedCall, ExecuteToolError> {
        self.explain_command(ExecuteToolCommand::new(query.tool, query.arguments).within(query.scope)).await
    }

    /// Explains the call of this command, as [`explain`](Self::explain) does. It may be a request other than a tool
    /// call.
    pub(crate) async fn explain_command(&self, command: ExecuteToolCommand) -> Result<ExplainedCall, ExecuteToolError> {
        self.explainer().explain(command).await
    }

    /// Returns the tool and the accesses of a call that may be made later, determined within `time`. See
    /// [`CallPreview`].
    pub(crate) async fn preview_call(
        &self,
        command: ExecuteToolCommand,
        time: Duration,
    ) -> Result<CallPreview, ExecuteToolError> {
        self.explainer().preview(command, time).await
    }

    fn explainer(&self) -> CallExplainer<'_> {
        let Self { registry, permissions, ports, settings, .. } = self;
        CallExplainer { registry, permissions, ports, settings }
    }

    /// Returns the store of large outputs.
    pub(crate) fn outputs(&self) -> &dyn OutputStore {
        self.ports.outputs.as_ref()
    }

    /// Returns the registry that publishes the URIs of resources, if the application has one.
    pub(crate) fn context(&self) -> Option<&Arc<ContextRegistry>> {
        self.context.get()
    }

    /// Returns the arguments as they appear in the audit record and in the events of the call.
    pub(crate) fn recorded_arguments(&self, id: CallId, command: &ExecuteToolCommand) -> Value {
        CallRecord::begin(id, command, self.settings.arguments, self.ports.clock.as_ref())
            .execution()
            .arguments
            .to_value()
    }

    /// Returns `true` once the application closes and admits no new calls.
    pub(crate) fn is_closing(&self) -> bool {
        self.open_calls.is_closed()
    }

    /// Returns the calls that continue as tasks.
    pub(crate) fn tasks(&self) -> &ProviderTaskRegistry {
        &self.tasks
    }

    /// Ends a session: discards its approvals, cancels its parked calls, and has providers release the state that they
    /// store for it.
    pub async fn session_ended(&self, principal: &Principal, session: &Arc<str>) {
        self.permissions.forget(principal, session);
        self.parked_calls.session_ended(principal, session);
        self.registry.session_ended(principal, session).await;
    }

    /// Checks that a call could be recorded now.
    ///
    /// # Errors
    /// The error of the audit log.
    pub async fn can_record(&self) -> Result<(), StoreError> {
        self.ports.log.check().await
    }
}

/// Runs the call and the hooks after it, stores its record, and publishes its end. Returns an error in place of the
/// outcome if the record cannot be stored.
async fn run_and_record(
    handler: &Arc<ExecuteToolHandler>,
    id: CallId,
    command: Box<ExecuteToolCommand>,
    refusal: Option<Box<ExecuteToolError>>,
) -> Result<CallOutcome, ExecuteToolError> {
    let mut call = CallInProgress::new(handler, id, command, refusal);
    let outcome = call.outcome().await;
    // The guard of the open call is dropped after the record is stored: a drain of all calls waits for their records.
    let CallInProgress { command, mut record, hooks, place: _place, .. } = call;
    record.conclude(&outcome, handler.ports.clock.as_ref());
    let (changed, outcome) = match hooks {
        None => (None, outcome),
        // Boxed: the future is large, and most calls have no hooks.
        Some(hooks) => {
            let execution = record.execution().to_execution();
            let after = Box::pin(ending::run_after_hooks(
                &handler.ports,
                &handler.settings,
                &command,
                *hooks,
                execution,
                outcome,
            ));
            let (changed, outcome) = after.await;
            (Some(changed), outcome)
        }
    };
    let (stored, report) =
        ending::store(&handler.ports, &handler.settings, &command, &record, changed.as_deref(), &outcome);
    match stored.await {
        Ok(()) => report.publish(&handler.ports.events),
        Err(source) => return Err(ending::audit_failure(outcome, source)),
    }
    outcome
}

#[cfg(test)]
mod tests;
