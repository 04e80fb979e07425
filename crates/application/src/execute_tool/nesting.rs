//! Calls out of a call that runs. Each takes the whole path; here stands what they share with the call that makes them:
//! its scope, its place among the open calls, its deadline and its end.

use super::{
    ExecuteToolCommand, ExecuteToolError, ExecuteToolHandler, Unrecorded,
    activity_tracker::{ActivityTracker, Made},
    asking::Asking,
    begun::Begun,
    nested_answer::{answer, failure},
    record::Record,
    waiting_time::{WaitingTime, over},
    window_label::labels_in,
};
use crate::{cancel_signal::CancelSignal, list_tools::mentions};
use async_trait::async_trait;
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::{OnceCell, watch};
use toolstead_domain::{
    error_kind::ErrorKind,
    ports::{
        caller::{Caller, InputRequest, InputResponse, LogMessage, NotAnswered, Progress},
        calls::{Calls, ForeseenCall, NestedCall},
    },
    scope::{Scope, View},
    task_request::without_tasks,
    tool::Tool,
    tool_call::{CallId, ToolCall},
    tool_execution::CancelReason,
    tool_failure::ToolFailure,
    tool_result::ToolResult,
    tool_selection::ToolSelection,
};
use uuid::Uuid;

/// So deep calls go out of calls.
const MAX_DEPTH: u32 = 8;
/// So many calls one call from outside may lead to, those that these make among them.
const MAX_CALLS: usize = 10_000;

/// The place of a nested call below the call that makes it.
#[derive(Debug)]
pub struct Nesting {
    branch: Arc<Branch>,
    /// The number of calls that the tree had with this one.
    number: usize,
    /// As many characters of its result are wanted at most.
    pub(super) output_characters: Option<usize>,
    _made: Made,
}

/// Shared by the calls that one call makes.
#[derive(Debug)]
struct Branch {
    parent: CallId,
    tool: Arc<Tool>,
    depth: u32,
    deadline: Instant,
    /// The deadline is later by this.
    waiting: WaitingTime,
    /// Knows whether the call that makes them does something.
    activity: Arc<ActivityTracker>,
    /// Ends them all.
    cancel: CancelSignal,
    /// The number of them that are not on record yet.
    open: watch::Sender<usize>,
    /// The number of calls in the whole tree, the one from outside not among them.
    made: Arc<AtomicUsize>,
}

impl Branch {
    /// A place for one more call.
    ///
    /// # Errors
    /// [`ErrorKind::BudgetExhausted`] where so many came that they are not even recorded as refused any more.
    fn place(self: &Arc<Self>, output_characters: Option<usize>) -> Result<Nesting, ToolFailure> {
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        // The first one too many is on record. More rows would tell nothing more.
        if number > MAX_CALLS + 1 {
            return Err(too_many());
        }
        self.open.send_modify(|open| *open += 1);
        Ok(Nesting { branch: self.clone(), number, output_characters, _made: self.activity.makes_one() })
    }
}

impl Drop for Nesting {
    fn drop(&mut self) {
        self.branch.open.send_modify(|open| *open -= 1);
    }
}

impl Nesting {
    /// The call that makes it.
    pub(super) fn parent(&self) -> CallId {
        self.branch.parent
    }

    /// The call from outside that leads to it.
    pub(super) fn root(&self) -> CallId {
        self.branch.activity.root()
    }

    /// The tool of the call that makes it.
    pub(super) fn tool(&self) -> &Tool {
        &self.branch.tool
    }

    /// Lets the call in, under the place of the one that makes it.
    ///
    /// # Errors
    /// A refusal where it is too deep, or one too many.
    pub(super) fn admit(&self) -> Result<(), ExecuteToolError> {
        if self.branch.depth > MAX_DEPTH {
            let message = format!(
                "Calls stand at most {MAX_DEPTH} deep within each other, and this call of `{}` stands as deep as that.",
                self.branch.tool.name()
            );
            let failure = ToolFailure::new(ErrorKind::TooLarge, message);
            return Err(ExecuteToolError::Refused(failure.next("Call the tool by itself.")));
        }
        if self.number > MAX_CALLS { Err(ExecuteToolError::Refused(too_many())) } else { Ok(()) }
    }

    /// The time that the call which makes it has waited for answers. It does so while somebody is asked about this one.
    pub(super) fn waiting(&self) -> &WaitingTime {
        &self.branch.waiting
    }

    /// As much of the time as is left of the time of the call that makes it.
    pub(super) fn time(&self, time: Duration) -> Duration {
        let deadline = self.branch.deadline + self.branch.waiting.so_far();
        time.min(deadline.saturating_duration_since(Instant::now()))
    }

    /// The grace of such a call: less with every level, so that the call that makes it can still tell what became of it.
    pub(super) fn grace(&self, grace: Duration) -> Duration {
        grace / 2_u32.pow(self.branch.depth.min(MAX_DEPTH))
    }
}

fn too_many() -> ToolFailure {
    ToolFailure::new(
        ErrorKind::BudgetExhausted,
        format!("A call may lead to {MAX_CALLS} calls, and that many were made."),
    )
    .next("Do the rest in another call.")
}

/// The calls that a running call may make.
pub(super) struct Nested<'a> {
    handler: &'a Arc<ExecuteToolHandler>,
    command: &'a ExecuteToolCommand,
    call: &'a ToolCall,
    deadline: Instant,
    /// The deadline is later by the time that this has waited.
    asking: &'a Asking<'a>,
    record: &'a Record,
    /// Set once the row of the running call is on record.
    on_record: OnceCell<()>,
    /// Made with the first call.
    branch: OnceLock<Arc<Branch>>,
}

impl<'a> Nested<'a> {
    /// The calls that this call may make until its deadline. A call whose row is not on record yet is recorded before the
    /// first of them.
    pub(super) fn new(
        handler: &'a Arc<ExecuteToolHandler>,
        command: &'a ExecuteToolCommand,
        call: &'a ToolCall,
        deadline: Instant,
        asking: &'a Asking<'a>,
        record: &'a Record,
        is_on_record: bool,
    ) -> Self {
        let on_record = OnceCell::new_with(is_on_record.then_some(()));
        Self { handler, command, call, deadline, asking, record, on_record, branch: OnceLock::new() }
    }

    /// The calls within the scope of the call itself.
    pub(super) fn calls(&self) -> Within<'_> {
        Within { nested: self, narrower: None }
    }

    /// Cancels the calls that are still running. Returns once all are on record.
    pub(super) async fn end(&self) {
        let Some(branch) = self.branch.get() else { return };
        branch.cancel.cancel(CancelReason::Client);
        let mut open = branch.open.subscribe();
        // Boxed: most calls make none. The sender lives as long as the branch, so this ends with the condition.
        let _ = Box::pin(open.wait_for(|open| *open == 0)).await;
    }

    fn branch(&self) -> &Arc<Branch> {
        self.branch.get_or_init(|| {
            let above = self.command.parent.as_ref().map(|nesting| &nesting.branch);
            Arc::new(Branch {
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
        scope: &Scope,
        cancel: CancelSignal,
        parent: Option<Nesting>,
    ) -> ExecuteToolCommand {
        ExecuteToolCommand {
            meta: self.call.meta.clone(),
            labels: labels_in(scope, &self.command.labels),
            client: without_tasks(&self.command.client),
            caller: Arc::new(Below(self.command.caller.clone())),
            cancel,
            parent,
            ..ExecuteToolCommand::new(call.tool, call.arguments).within(scope.clone())
        }
    }

    fn tools(&self, scope: &Scope, which: impl Fn(&Tool) -> bool) -> Vec<Arc<Tool>> {
        self.handler.tools_in(scope, which)
    }

    /// Calls that go on after the running one, in this scope.
    async fn begun(&self, scope: Scope, caller: Arc<dyn Caller>) -> Result<Box<dyn Calls>, ToolFailure> {
        self.recorded().await?;
        Ok(Box::new(Begun {
            handler: self.handler.clone(),
            began_by: self.call.id,
            scope,
            caller,
            client: without_tasks(&self.command.client),
            labels: self.command.labels.clone(),
        }))
    }

    /// Puts the row of the running call on record, so that no call has a parent of which nothing is known.
    async fn recorded(&self) -> Result<(), ToolFailure> {
        let record = || self.handler.ports.log.record_ref(self.record.execution());
        self.on_record
            .get_or_try_init(record)
            .await
            .copied()
            .map_err(|source| ToolFailure::new(ErrorKind::Internal, Unrecorded::Start.to_string()).caused_by(source))
    }
}

/// The calls of a running call within a scope: its own, or a narrower one.
pub(super) struct Within<'a> {
    nested: &'a Nested<'a>,
    /// `None`: the scope of the running call.
    narrower: Option<Scope>,
}

impl Within<'_> {
    fn scope(&self) -> &Scope {
        self.narrower.as_ref().unwrap_or(&self.nested.command.scope)
    }
}

#[async_trait]
impl Calls for Within<'_> {
    fn list(&self) -> Vec<Arc<Tool>> {
        self.nested.tools(self.scope(), |_| true)
    }

    fn search(&self, text: &str) -> Vec<Arc<Tool>> {
        let text = text.to_lowercase();
        self.nested.tools(self.scope(), |tool| mentions(tool, &text))
    }

    fn through<'a>(&'a self, view: Arc<View>) -> Box<dyn Calls + 'a> {
        Box::new(Within { nested: self.nested, narrower: Some(self.scope().clone().narrowed_to(view)) })
    }

    fn for_agent<'a>(&'a self, agent: Arc<str>, session: Arc<str>, tools: ToolSelection) -> Box<dyn Calls + 'a> {
        Box::new(Within {
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
        self.nested.begun(self.nested.handler.scope_of_agent(self.scope(), agent, session, tools), caller).await
    }

    fn window<'a>(&'a self, name: &str, selection: ToolSelection) -> Box<dyn Calls + 'a> {
        let policy = self.nested.handler.permissions.advertising(self.scope()).window_of_program(selection);
        self.through(View::of_run(name, Arc::new(policy)))
    }

    async fn foresee(&self, call: NestedCall) -> Result<ForeseenCall, ToolFailure> {
        self.nested.foresee_in(self.scope(), call).await
    }

    async fn call(&self, call: NestedCall) -> Result<ToolResult, ToolFailure> {
        self.nested.call_in(self.scope(), call).await
    }
}

impl Nested<'_> {
    async fn foresee_in(&self, scope: &Scope, call: NestedCall) -> Result<ForeseenCall, ToolFailure> {
        let command = self.command(call, scope, self.branch().cancel.child(), None);
        let time = (self.deadline + self.asking.time().so_far()).saturating_duration_since(Instant::now());
        self.handler.foresee_call(command, time).await.map_err(failure)
    }

    async fn call_in(&self, scope: &Scope, call: NestedCall) -> Result<ToolResult, ToolFailure> {
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
            // Whatever it is at, save waiting for a person.
            () = over(last.into(), || self.asking.time().so_far()) => {
                cancel.cancel(CancelReason::Deadline);
                made.await
            }
        };
        answer(outcome)
    }
}

/// The way back to the client for a nested call. The progress that the client hears of is that of its own call.
struct Below(Arc<dyn Caller>);

#[async_trait]
impl Caller for Below {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open_calls::OpenCalls;
    use toolstead_domain::testing::samples;

    #[test]
    fn a_tree_has_so_many_calls_and_the_first_one_too_many_is_still_recorded() {
        let branch = Arc::new(Branch {
            parent: samples::call_id(1),
            tool: Arc::new(samples::tool("make")),
            depth: 1,
            deadline: Instant::now(),
            waiting: WaitingTime::default(),
            activity: ActivityTracker::new(samples::call_id(1), &OpenCalls::new(1)),
            cancel: CancelSignal::new(),
            open: watch::Sender::new(0),
            made: Arc::new(AtomicUsize::new(MAX_CALLS - 1)),
        });
        let last = branch.place(None).unwrap();
        assert!(last.admit().is_ok());
        let one_too_many = branch.place(None).unwrap();
        assert_eq!(one_too_many.admit().unwrap_err().kind(), ErrorKind::BudgetExhausted);
        assert_eq!(branch.place(None).unwrap_err().kind, ErrorKind::BudgetExhausted);
        assert_eq!(*branch.open.borrow(), 2);
        drop((last, one_too_many));
        assert_eq!(*branch.open.borrow(), 0);
    }
}
