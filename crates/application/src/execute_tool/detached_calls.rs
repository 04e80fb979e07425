//! Calls of detached work that outlives the call which started it. Each has its own open-call place and timeout. Its
//! audit record has the starting call as its parent.

use super::{
    ExecuteToolHandler,
    command::ExecuteToolCommand,
    nested_answer::{answer, failure},
    restricted_view_label::labels_in,
};
use crate::{cancel_signal::CancelSignal, list_tools::mentions, view_forms};
use async_trait::async_trait;
use std::sync::Arc;
use toolstead_domain::{
    CallId, CallLabels, CallPreview, Caller, Calls, ClientProfile, NestedCall, RequestScope, Tool, ToolFailure,
    ToolResult, ToolSelection, View,
};
use uuid::Uuid;

/// Port for the calls of detached work.
#[derive(Clone)]
pub(super) struct DetachedWorkCalls {
    pub(super) handler: Arc<ExecuteToolHandler>,
    pub(super) began_by: CallId,
    pub(super) scope: RequestScope,
    pub(super) caller: Arc<dyn Caller>,
    pub(super) client: Arc<ClientProfile>,
    pub(super) labels: CallLabels,
}

impl DetachedWorkCalls {
    fn command(&self, call: NestedCall) -> ExecuteToolCommand {
        ExecuteToolCommand {
            labels: labels_in(&self.scope, &self.labels),
            client: self.client.clone(),
            caller: self.caller.clone(),
            cancel: CancelSignal::new(),
            began_by: Some(self.began_by),
            ..ExecuteToolCommand::new(call.tool, call.arguments).within(self.scope.clone())
        }
    }
}

#[async_trait]
impl Calls for DetachedWorkCalls {
    fn list(&self) -> Vec<Arc<Tool>> {
        self.handler.tools_in(&self.scope, |_| true)
    }

    fn search(&self, text: &str) -> Vec<Arc<Tool>> {
        let text = text.to_lowercase();
        self.handler.tools_in(&self.scope, |tool| mentions(tool, &text))
    }

    fn through<'a>(&'a self, view: Arc<View>) -> Box<dyn Calls + 'a> {
        Box::new(Self { scope: self.scope.clone().narrowed_to(view), ..self.clone() })
    }

    fn window<'a>(&'a self, name: &str, selection: ToolSelection) -> Box<dyn Calls + 'a> {
        let policy = self.handler.permissions.advertising(&self.scope).window_of_program(selection);
        self.through(View::of_run(name, Arc::new(policy)))
    }

    fn for_agent<'a>(&'a self, agent: Arc<str>, session: Arc<str>, tools: ToolSelection) -> Box<dyn Calls + 'a> {
        Box::new(Self { scope: self.handler.scope_of_agent(&self.scope, agent, session, tools), ..self.clone() })
    }

    async fn outliving(
        &self,
        agent: Arc<str>,
        session: Arc<str>,
        tools: ToolSelection,
        caller: Arc<dyn Caller>,
    ) -> Result<Box<dyn Calls>, ToolFailure> {
        Ok(Box::new(Self {
            scope: self.handler.scope_of_agent(&self.scope, agent, session, tools),
            caller,
            ..self.clone()
        }))
    }

    async fn preview(&self, call: NestedCall) -> Result<CallPreview, ToolFailure> {
        let time = self.handler.settings.default_timeout;
        self.handler.preview_call(self.command(call), time).await.map_err(failure)
    }

    async fn call(&self, call: NestedCall) -> Result<ToolResult, ToolFailure> {
        let id = call.id.unwrap_or_else(|| CallId(Uuid::now_v7()));
        answer(self.handler.handle_as(id, self.command(call)).await)
    }
}

impl ExecuteToolHandler {
    /// Returns the scope of an agent with these tools, narrowed from `scope`.
    pub(super) fn scope_of_agent(
        &self,
        scope: &RequestScope,
        agent: Arc<str>,
        session: Arc<str>,
        tools: ToolSelection,
    ) -> RequestScope {
        let policy = self.permissions.advertising(scope).window(tools);
        scope.clone().narrowed_to(View::of_run(agent.clone(), Arc::new(policy))).for_agent(agent, session)
    }

    /// Returns the tools that may be called in the scope and match `which`, sorted by name.
    pub(super) fn tools_in(&self, scope: &RequestScope, which: impl Fn(&Tool) -> bool) -> Vec<Arc<Tool>> {
        let policy = self.permissions.advertising(scope);
        let snapshot = self.registry.snapshot();
        let callable = snapshot.tools().iter().filter(|one| one.tool.is_callable() && policy.advertises(&one.tool));
        if scope.contents().next().is_none() {
            return callable.map(|one| &one.tool).filter(|tool| which(tool)).cloned().collect();
        }
        let shown = callable.filter_map(|one| view_forms::shown(scope, one));
        shown.map(|one| one.tool.clone()).filter(|tool| which(tool)).collect()
    }
}
