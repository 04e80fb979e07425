//! The calls of one answer. Calls that cannot interfere with each other run concurrently; results are returned in the
//! order of the calls.

use super::{call_progress::ProgressReportingCaller, result, surroundings::touched_paths};
use crate::{
    call_effects::CallEffects,
    cancel_signal::CancelSignal,
    execute_tool::{ExecuteToolCommand, ExecuteToolHandler},
    list_tools::{ListToolsHandler, ListToolsQuery, PageLimit},
    tool_deferral::ToolListForm,
};
use futures::{
    future::{BoxFuture, join_all},
    stream::{FuturesUnordered, StreamExt},
};
use serde_json::Value;
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::sync::mpsc::UnboundedSender;
use toolstead_domain::{
    AgentEvent, CallId, CallPreview, Caller, ClientProfile, Clock, NestedCall, RequestScope, Tool, ToolArguments,
    ToolResult, ToolUse, error_kind::ErrorKind, task_request::without_tasks,
};
use uuid::Uuid;

/// Maximum number of calls of one answer that run at once.
const AT_ONCE: usize = 8;
/// Maximum time for a provider to preview what a call would touch.
const FORESEEING: Duration = Duration::from_secs(30);

/// The context in which a run makes its calls.
pub(super) struct RunCallContext<'w> {
    pub(super) handler: Arc<ExecuteToolHandler>,
    pub(super) list_tools: Arc<ListToolsHandler>,
    /// Port for the calls if they are nested in another call; `None` if they are calls of a client.
    pub(super) within: Option<&'w dyn toolstead_domain::ports::calls::Calls>,
    pub(super) scope: RequestScope,
    pub(super) client: Arc<ClientProfile>,
    pub(super) caller: Arc<dyn Caller>,
    pub(super) cancel: CancelSignal,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) events: UnboundedSender<AgentEvent>,
    /// `true` if each call is previewed for the paths that it touches.
    pub(super) collects_paths: bool,
}

/// A finished call.
pub(super) struct FinishedCall {
    pub(super) result: ToolResult,
    /// The result in the form of the applied dialect, for the model; `None`: `result`.
    pub(super) shown: Option<ToolResult>,
    /// Id of its audit record; `None`: the call was not made.
    pub(super) call: Option<CallId>,
    pub(super) duration: Duration,
}

impl FinishedCall {
    /// Creates the result of a call that is not made, with the reason.
    pub(super) fn never(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { result: ToolResult::error(kind, message), shown: None, call: None, duration: Duration::ZERO }
    }

    fn cancelled() -> Self {
        Self::never(ErrorKind::Cancelled, "cancelled: the run was cancelled before this call was made")
    }
}

/// The calls of one answer in progress.
pub(super) struct AnswerCallBatch<'a, 'w> {
    context: &'a RunCallContext<'w>,
    calls: &'a [ToolUse],
    states: Vec<CallState>,
    touches: Vec<CallEffects>,
    /// Paths that each call touches, as far as they are known before it runs.
    paths: Vec<Vec<PathBuf>>,
    running: FuturesUnordered<BoxFuture<'w, (usize, FinishedCall)>>,
    given: usize,
}

enum CallState {
    Waiting,
    Running,
    /// Finished. Its result is returned after those of the calls before it.
    Finished(Box<FinishedCall>),
    Returned,
}

impl<'w> RunCallContext<'w> {
    /// Returns the tools that can be called, sorted by name, including those that search and call deferred tools.
    pub(super) fn tools(&self) -> Vec<Arc<Tool>> {
        if let Some(calls) = self.within {
            return calls.list();
        }
        let scope = self.scope.clone();
        let (page, form) = (PageLimit::Tools(usize::MAX), ToolListForm::WithSearchTools);
        let query = ListToolsQuery { scope, page, form, ..Default::default() };
        // Only a cursor can be invalid, and the query has none.
        let page = self.list_tools.handle(&query).map(|page| page.tools).unwrap_or_default();
        page.into_iter().map(|one| one.tool.clone()).collect()
    }

    fn nested(call: &ToolUse) -> NestedCall {
        NestedCall::new(&*call.name, arguments(call))
    }

    fn command(&self, call: &ToolUse) -> ExecuteToolCommand {
        let arguments = arguments(call);
        ExecuteToolCommand {
            client: without_tasks(&self.client),
            caller: self.caller.clone(),
            cancel: self.cancel.child(),
            ..ExecuteToolCommand::new(&*call.name, arguments).within(self.scope.clone())
        }
    }

    /// Previews what the call would touch: its effects, and the paths if they are collected. A call whose preview fails
    /// will not run either.
    async fn touch(&self, call: &ToolUse) -> (CallEffects, Vec<PathBuf>) {
        let touch = |foreseen: &CallPreview| {
            let accesses = foreseen.accesses.as_deref().filter(|_| self.collects_paths).unwrap_or_default();
            (CallEffects::of(foreseen), touched_paths(accesses))
        };
        let nothing = || (CallEffects::none(), Vec::new());
        match self.within {
            Some(calls) => calls.preview(Self::nested(call)).await.as_ref().map_or_else(|_| nothing(), touch),
            None => {
                let foreseen = self.handler.preview_call(self.command(call), FORESEEING).await;
                foreseen.as_ref().map_or_else(|_| nothing(), touch)
            }
        }
    }

    fn make(&self, index: usize, call: &ToolUse) -> BoxFuture<'w, (usize, FinishedCall)> {
        let caller = Arc::new(ProgressReportingCaller::new(self.caller.clone(), call.id.clone(), self.events.clone()));
        let (id, command) = (CallId(Uuid::now_v7()), ExecuteToolCommand { caller, ..self.command(call) });
        let started = AgentEvent::CallStarted {
            id: call.id.clone(),
            tool: call.name.clone(),
            arguments: self.handler.recorded_arguments(id, &command),
        };
        // Fails if the events are no longer read; the run is being cancelled then.
        let _ = self.events.send(started);
        let (handler, clock, begun) = (self.handler.clone(), self.clock.clone(), self.clock.now());
        if let Some(calls) = self.within {
            let (nested, cancel) = (Self::nested(call).with_id(id), self.cancel.clone());
            return Box::pin(async move {
                let result = tokio::select! {
                    biased;
                    made = calls.call(nested) => made.unwrap_or_else(|failure| failure.into_result_for_users(handler.suggestions())),
                    // Dropping the future ends the call, and its audit record is still written.
                    _ = cancel.cancelled() => {
                        ToolResult::error(ErrorKind::Cancelled, "cancelled: the run was cancelled during this call")
                    }
                };
                (index, FinishedCall { result, shown: None, call: Some(id), duration: clock.now().since(begun) })
            });
        }
        Box::pin(async move {
            let dialect = handler.applied_dialect(&command);
            let outcome = handler.handle_as(id, command).await;
            let suggestions = handler.suggestions();
            let (result, shown) = match dialect {
                None => (result::of_outcome(outcome, suggestions), None),
                Some(dialect) => {
                    let ours = result::native_result(&outcome, suggestions);
                    (ours, Some(result::of_outcome(dialect.apply_to(outcome), suggestions)))
                }
            };
            (index, FinishedCall { result, shown, call: Some(id), duration: clock.now().since(begun) })
        })
    }
}

fn arguments(call: &ToolUse) -> Value {
    match &call.arguments {
        ToolArguments::Object(object) => Value::Object(object.clone()),
        ToolArguments::Malformed(text) => Value::String(text.clone()),
    }
}

impl<'a, 'w> AnswerCallBatch<'a, 'w> {
    /// Creates the calls of an answer, some of which already have results.
    pub(super) async fn new(
        context: &'a RunCallContext<'w>,
        calls: &'a [ToolUse],
        answered: Vec<Option<FinishedCall>>,
    ) -> Self {
        let states: Vec<CallState> = answered
            .into_iter()
            .map(|made| made.map_or(CallState::Waiting, |made| CallState::Finished(Box::new(made))))
            .collect();
        let is_alone = states.iter().filter(|state| matches!(state, CallState::Waiting)).count() < 2;
        let touch = async |(call, state): (&ToolUse, &CallState)| match state {
            CallState::Waiting if !is_alone || context.collects_paths => context.touch(call).await,
            _ => (CallEffects::none(), Vec::new()),
        };
        let (touches, paths) = join_all(calls.iter().zip(&states).map(touch)).await.into_iter().unzip();
        Self { context, calls, states, touches, paths, running: FuturesUnordered::new(), given: 0 }
    }

    /// Removes and returns the paths that the call at this position touches, as far as they were known before it ran.
    pub(super) fn take_paths(&mut self, index: usize) -> Vec<PathBuf> {
        self.paths.get_mut(index).map(std::mem::take).unwrap_or_default()
    }

    /// Returns the next finished call, in the order of the calls; `None` after the last one. Dropping the future loses
    /// nothing.
    pub(super) async fn next(&mut self) -> Option<FinishedCall> {
        loop {
            let next = self.states.get_mut(self.given)?;
            if let CallState::Finished(_) = next
                && let CallState::Finished(made) = std::mem::replace(next, CallState::Returned)
            {
                self.given += 1;
                return Some(*made);
            }
            self.begin();
            if let Some((index, made)) = self.running.next().await {
                self.states[index] = CallState::Finished(Box::new(made));
            }
        }
    }

    /// Starts each waiting call that cannot interfere with an unfinished call before it, while at most [`AT_ONCE`] run.
    /// Once the run is cancelled, ends each waiting call as cancelled instead.
    fn begin(&mut self) {
        for index in 0..self.calls.len() {
            if !matches!(self.states[index], CallState::Waiting) {
                continue;
            }
            if self.context.cancel.reason().is_some() {
                self.states[index] = CallState::Finished(Box::new(FinishedCall::cancelled()));
                continue;
            }
            let is_over = |state: &CallState| matches!(state, CallState::Finished(_) | CallState::Returned);
            let is_free = |earlier: usize| {
                is_over(&self.states[earlier]) || !self.touches[earlier].conflicts_with(&self.touches[index])
            };
            if self.running.len() < AT_ONCE && (0..index).all(is_free) {
                self.running.push(self.context.make(index, &self.calls[index]));
                self.states[index] = CallState::Running;
            }
        }
    }
}
