//! The calls of one answer: side by side where they cannot get in each other's way, their results in their order.

use super::result;
use crate::{
    cancel_signal::CancelSignal,
    execute_tool::{ExecuteToolCommand, ExecuteToolHandler},
    touch::Touch,
};
use futures::{
    future::{BoxFuture, join_all},
    stream::{FuturesUnordered, StreamExt},
};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc::UnboundedSender;
use toolstead_domain::{
    agent::event::AgentEvent,
    client_profile::ClientProfile,
    error_kind::ErrorKind,
    model::message::{ToolArguments, ToolUse},
    ports::{caller::Caller, clock::Clock},
    scope::Scope,
    task_request::without_tasks,
    tool_call::CallId,
    tool_result::ToolResult,
};
use uuid::Uuid;

/// Calls of an answer that run at once.
const AT_ONCE: usize = 8;
/// So long a provider may take to say what a call would touch.
const FORESEEING: Duration = Duration::from_secs(30);

/// The way on which a run makes its calls.
pub(super) struct Way {
    pub(super) handler: Arc<ExecuteToolHandler>,
    pub(super) scope: Scope,
    pub(super) client: Arc<ClientProfile>,
    pub(super) caller: Arc<dyn Caller>,
    pub(super) cancel: CancelSignal,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) telling: UnboundedSender<AgentEvent>,
}

/// A call that is over.
pub(super) struct Made {
    pub(super) result: ToolResult,
    /// The same in the face of another system, which the model sees.
    pub(super) shown: Option<ToolResult>,
    /// Its row; `None`: it was never made.
    pub(super) call: Option<CallId>,
    pub(super) duration: Duration,
}

impl Made {
    /// A call that is not made, and why.
    pub(super) fn never(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { result: ToolResult::error(kind, message), shown: None, call: None, duration: Duration::ZERO }
    }

    fn taken_back() -> Self {
        Self::never(ErrorKind::Cancelled, "cancelled: the run was taken back before this call was made")
    }
}

/// The calls of one answer while they are made.
pub(super) struct Calls<'a> {
    way: &'a Way,
    calls: &'a [ToolUse],
    states: Vec<State>,
    touches: Vec<Touch>,
    running: FuturesUnordered<BoxFuture<'static, (usize, Made)>>,
    given: usize,
}

enum State {
    Waiting,
    Running,
    /// Its result waits for those of the calls before it.
    Over(Made),
    Given,
}

impl Way {
    fn command(&self, call: &ToolUse) -> ExecuteToolCommand {
        let arguments = match &call.arguments {
            ToolArguments::Object(object) => Value::Object(object.clone()),
            ToolArguments::Malformed(text) => Value::String(text.clone()),
        };
        ExecuteToolCommand {
            client: without_tasks(&self.client),
            caller: self.caller.clone(),
            cancel: self.cancel.child(),
            ..ExecuteToolCommand::new(&*call.name, arguments).within(self.scope.clone())
        }
    }

    /// What the call would touch. One that cannot even be foreseen will not run.
    async fn touch(&self, call: &ToolUse) -> Touch {
        let foreseen = self.handler.foresee_call(self.command(call), FORESEEING).await;
        foreseen.map_or_else(|_| Touch::nothing(), |foreseen| Touch::of(&foreseen))
    }

    fn make(&self, index: usize, call: &ToolUse) -> BoxFuture<'static, (usize, Made)> {
        let (id, command) = (CallId(Uuid::now_v7()), self.command(call));
        let started = AgentEvent::CallStarted {
            id: call.id.clone(),
            tool: call.name.clone(),
            arguments: self.handler.kept_arguments(id, &command),
        };
        // Fails where nobody reads any more; the run is being taken back then.
        let _ = self.telling.send(started);
        let (handler, clock, begun) = (self.handler.clone(), self.clock.clone(), self.clock.now());
        Box::pin(async move {
            let face = handler.worn_face(&command);
            let outcome = handler.handle_as(id, command).await;
            let (result, shown) = match face {
                None => (result::of_outcome(outcome), None),
                Some(face) => (result::as_ours(&outcome), Some(result::of_outcome(face.over(outcome)))),
            };
            (index, Made { result, shown, call: Some(id), duration: clock.now().since(begun) })
        })
    }
}

impl<'a> Calls<'a> {
    /// These calls, of which some are answered already.
    pub(super) async fn new(way: &'a Way, calls: &'a [ToolUse], answered: Vec<Option<Made>>) -> Self {
        let states: Vec<State> = answered.into_iter().map(|made| made.map_or(State::Waiting, State::Over)).collect();
        let is_alone = states.iter().filter(|state| matches!(state, State::Waiting)).count() < 2;
        let touch = async |(call, state): (&ToolUse, &State)| match state {
            State::Waiting if !is_alone => way.touch(call).await,
            _ => Touch::nothing(),
        };
        let touches = join_all(calls.iter().zip(&states).map(touch)).await;
        Self { way, calls, states, touches, running: FuturesUnordered::new(), given: 0 }
    }

    /// The next call in their order, once it is over; `None` after the last. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Option<Made> {
        loop {
            let next = self.states.get_mut(self.given)?;
            if let State::Over(_) = next
                && let State::Over(made) = std::mem::replace(next, State::Given)
            {
                self.given += 1;
                return Some(made);
            }
            self.begin();
            if let Some((index, made)) = self.running.next().await {
                self.states[index] = State::Over(made);
            }
        }
    }

    /// Begins those that may begin: nothing before them is left that they could get in the way of.
    fn begin(&mut self) {
        for index in 0..self.calls.len() {
            if !matches!(self.states[index], State::Waiting) {
                continue;
            }
            if self.way.cancel.reason().is_some() {
                self.states[index] = State::Over(Made::taken_back());
                continue;
            }
            let is_over = |state: &State| matches!(state, State::Over(_) | State::Given);
            let is_free = |earlier: usize| {
                is_over(&self.states[earlier]) || !self.touches[earlier].gets_in_the_way_of(&self.touches[index])
            };
            if self.running.len() < AT_ONCE && (0..index).all(is_free) {
                self.running.push(self.way.make(index, &self.calls[index]));
                self.states[index] = State::Running;
            }
        }
    }
}
