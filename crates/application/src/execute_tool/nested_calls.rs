//! Port through which a running call makes nested calls. Each runs all steps, in the scope of its parent or a narrower
//! one.

use super::{
    ExecuteToolHandler,
    command::ExecuteToolCommand,
    detached_calls::DetachedWorkCalls,
    error::AuditFailure,
    nested_answer::{answer, failure},
    nesting::{NestedCallPosition, ParentCall},
    question_channel::QuestionChannel,
    record::CallRecord,
    restricted_view_label::labels_in,
    waiting_time::over,
};
use crate::{
    cancel_signal::CancelSignal,
    list_tools::{ListToolsHandler, mentions},
    tool_deferral::is_search_tool,
};
use async_trait::async_trait;
use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};
use tokio::sync::{OnceCell, watch};
use toolstead_domain::{
    CallId, CallPreview, Caller, Calls, CancelReason, InputRequest, InputResponse, LogMessage, NestedCall, NotAnswered,
    Progress, RequestScope, Tool, ToolCall, ToolFailure, ToolResult, ToolSelection, View, error_kind::ErrorKind,
    task_request::without_tasks,
};
use uuid::Uuid;

/// Port for the nested calls of a running call.
pub(super) struct NestedCalls<'a> {
    handler: &'a Arc<ExecuteToolHandler>,
    command: &'a ExecuteToolCommand,
    call: &'a ToolCall,
    deadline: Instant,
    /// Channel whose waiting time extends the deadline.
    asking: &'a QuestionChannel<'a>,
    record: &'a CallRecord,
    /// Set once the record of the running call is stored.
    on_record: OnceCell<()>,
    /// Created with the first nested call.
    branch: OnceLock<Arc<ParentCall>>,
}

impl<'a> NestedCalls<'a> {
    /// Creates the port for nested calls until the deadline. The record of the running call is stored before the first
    /// of them.
    pub(super) fn new(
        handler: &'a Arc<ExecuteToolHandler>,
        command: &'a ExecuteToolCommand,
        call: &'a ToolCall,
        deadline: Instant,
        asking: &'a QuestionChannel<'a>,
        record: &'a CallRecord,
        is_on_record: bool,
    ) -> Self {
        let on_record = OnceCell::new_with(is_on_record.then_some(()));
        Self { handler, command, call, deadline, asking, record, on_record, branch: OnceLock::new() }
    }

    /// Returns the port in the scope of the running call.
    pub(super) fn calls(&self) -> ScopedCalls<'_> {
        ScopedCalls { nested: self, narrower: None }
    }

    /// Cancels the nested calls that are still running, and waits until all are recorded.
    pub(super) async fn end(&self) {
        let Some(branch) = self.branch.get() else { return };
        branch.cancel.cancel(CancelReason::Client);
        let mut open = branch.open.subscribe();
        // Boxed: most calls make no nested calls. The sender lives as long as the branch, so the wait always ends.
        let _ = Box::pin(open.wait_for(|open| *open == 0)).await;
    }

    fn branch(&self) -> &Arc<ParentCall> {
        self.branch.get_or_init(|| {
            let above = self.command.parent.as_ref().map(|nesting| &nesting.branch);
            Arc::new(ParentCall {
                parent: self.call.id,
                tool: self.call.tool.clone(),
                depth: above.map_or(0, |above| above.depth) + 1,
                deadline: self.deadline,
                waiting: self.asking.time().clone(),
                activity: self.asking.activity().clone(),
                cancel: self.command.cancel.child(),
                open: watch::Sender::new(0),
                made: above.map_or_else(Arc::default, |above| above.made.clone()),
            })
        })
    }

    fn command(
        &self,
        call: NestedCall,
        scope: &RequestScope,
        cancel: CancelSignal,
        parent: Option<NestedCallPosition>,
    ) -> ExecuteToolCommand {
        ExecuteToolCommand {
            meta: self.call.meta.clone(),
            labels: labels_in(scope, &self.command.labels),
            client: without_tasks(&self.command.client),
            caller: Arc::new(NestedCaller(self.command.caller.clone())),
            cancel,
            parent,
            ..ExecuteToolCommand::new(call.tool, call.arguments).within(scope.clone())
        }
    }

    fn tools(&self, scope: &RequestScope, which: impl Fn(&Tool) -> bool) -> Vec<Arc<Tool>> {
        self.handler.tools_in(scope, which)
    }

    /// Stores the record of the running call, and returns the port for detached calls, which may outlive it, in this
    /// scope.
    async fn detached_calls(
        &self,
        scope: RequestScope,
        caller: Arc<dyn Caller>,
    ) -> Result<Box<dyn Calls>, ToolFailure> {
        self.recorded().await?;
        Ok(Box::new(DetachedWorkCalls {
            handler: self.handler.clone(),
            began_by: self.call.id,
            scope,
            caller,
            client: without_tasks(&self.command.client),
            labels: self.command.labels.clone(),
        }))
    }

    /// Stores the record of the running call unless it is stored already, so that every recorded call has a recorded
    /// parent.
    async fn recorded(&self) -> Result<(), ToolFailure> {
        let record = || self.handler.ports.log.record_ref(self.record.execution());
        self.on_record
            .get_or_try_init(record)
            .await
            .copied()
            .map_err(|source| ToolFailure::new(ErrorKind::Internal, AuditFailure::Start.to_string()).caused_by(source))
    }
}

/// Nested calls in the scope of the running call, or in a narrower one.
pub(super) struct ScopedCalls<'a> {
    nested: &'a NestedCalls<'a>,
    /// Narrower scope; `None`: that of the running call.
    narrower: Option<RequestScope>,
}

impl ScopedCalls<'_> {
    fn scope(&self) -> &RequestScope {
        self.narrower.as_ref().unwrap_or(&self.nested.command.scope)
    }
}

#[async_trait]
impl Calls for ScopedCalls<'_> {
    fn list(&self) -> Vec<Arc<Tool>> {
        self.nested.tools(self.scope(), |_| true)
    }

    fn search(&self, text: &str) -> Vec<Arc<Tool>> {
        let text = text.to_lowercase();
        self.nested.tools(self.scope(), |tool| mentions(tool, &text))
    }

    fn offers(&self, tool: &Tool) -> bool {
        let lists = || self.nested.handler.lists.get();
        let is_deferred = |lists: &Arc<ListToolsHandler>| lists.is_deferred(self.scope(), &self.nested.command.client);
        !is_search_tool(tool) || lists().is_none_or(is_deferred)
    }

    fn through<'a>(&'a self, view: Arc<View>) -> Box<dyn Calls + 'a> {
        Box::new(ScopedCalls { nested: self.nested, narrower: Some(self.scope().clone().narrowed_to(view)) })
    }

    fn for_agent<'a>(&'a self, agent: Arc<str>, session: Arc<str>, tools: ToolSelection) -> Box<dyn Calls + 'a> {
        Box::new(ScopedCalls {
            nested: self.nested,
            narrower: Some(self.nested.handler.scope_of_agent(self.scope(), agent, session, tools)),
        })
    }

    async fn outliving(
        &self,
        agent: Arc<str>,
        session: Arc<str>,
        tools: ToolSelection,
        caller: Arc<dyn Caller>,
    ) -> Result<Box<dyn Calls>, ToolFailure> {
        self.nested
            .detached_calls(self.nested.handler.scope_of_agent(self.scope(), agent, session, tools), caller)
            .await
    }

    fn window<'a>(&'a self, name: &str, selection: ToolSelection) -> Box<dyn Calls + 'a> {
        let policy = self.nested.handler.permissions.advertising(self.scope()).window_of_program(selection);
        self.through(View::of_run(name, Arc::new(policy)))
    }

    async fn preview(&self, call: NestedCall) -> Result<CallPreview, ToolFailure> {
        self.nested.foresee_in(self.scope(), call).await
    }

    async fn call(&self, call: NestedCall) -> Result<ToolResult, ToolFailure> {
        self.nested.call_in(self.scope(), call).await
    }
}

impl NestedCalls<'_> {
    async fn foresee_in(&self, scope: &RequestScope, call: NestedCall) -> Result<CallPreview, ToolFailure> {
        let command = self.command(call, scope, self.branch().cancel.child(), None);
        let time = (self.deadline + self.asking.time().so_far()).saturating_duration_since(Instant::now());
        self.handler.preview_call(command, time).await.map_err(failure)
    }

    async fn call_in(&self, scope: &RequestScope, call: NestedCall) -> Result<ToolResult, ToolFailure> {
        let branch = self.branch();
        let nesting = branch.place(call.output_characters)?;
        self.recorded().await?;
        let last = self.deadline + nesting.grace(self.handler.settings.grace);
        let (cancel, id) = (branch.cancel.child(), call.id.unwrap_or_else(|| CallId(Uuid::now_v7())));
        let made = self.handler.handle_as(id, self.command(call, scope, cancel.clone(), Some(nesting)));
        tokio::pin!(made);
        let outcome = tokio::select! {
            biased;
            outcome = &mut made => outcome,
            // Ends the call at its deadline, extended by the time that it waited for answers.
            () = over(last.into(), || self.asking.time().so_far()) => {
                cancel.cancel(CancelReason::Deadline);
                made.await
            }
        };
        answer(outcome)
    }
}

/// Channel to the client for a nested call. Drops progress: the client receives the progress of its own call only.
struct NestedCaller(Arc<dyn Caller>);

#[async_trait]
impl Caller for NestedCaller {
    fn wants_progress(&self) -> bool {
        false
    }

    async fn hurried(&self) {
        self.0.hurried().await;
    }

    async fn disconnected(&self) {
        self.0.disconnected().await;
    }

    fn progress(&self, _: Progress) {}

    fn log(&self, message: LogMessage) {
        self.0.log(message);
    }

    fn elicitation_completed(&self, elicitation_id: &str) {
        self.0.elicitation_completed(elicitation_id);
    }

    async fn ask(&self, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        self.0.ask(request).await
    }

    async fn ask_as(&self, key: &str, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        self.0.ask_as(key, request).await
    }
}
