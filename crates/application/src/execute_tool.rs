//! The path of one call, whoever makes it: MCP client, CLI, batch item or embedding program. There is no way round it.
//!
//! `ExecuteToolHandler::run` is the order and nothing else; each step stands in a file of its own.

mod answered;
mod approval;
mod arguments;
mod asking;
mod at_work;
mod begun;
pub mod call_log;
mod events;
pub mod explain;
mod held;
mod hook_words;
mod hooks;
mod nested_answer;
mod nesting;
mod outliving;
mod output;
mod preview;
mod record;
mod references;
mod resolution;
mod running;
mod tasks;
mod told_decisions;
pub mod tool_timeouts;
mod validation;
mod waiting_time;
mod window_label;
mod worn_face;

use crate::{
    cancel_signal::CancelSignal,
    context_registry::{ContextRegistry, answerer::Answerer},
    event_bus::EventBus,
    open_calls::{OpenCallGuard, OpenCalls},
    permission_book::PermissionBook,
    tool_registry::ToolRegistry,
};
use approval::Approvals;
use arguments::Prepared;
pub(crate) use asking::fitted;
use call_log::CallLine;
use futures::FutureExt;
use held::{
    HeldCalls,
    rounds::{FirstRound, later_round},
};
use hooks::Hooked;
pub use nesting::Nesting;
use outliving::Outliving;
use output::{Budget, keeper::Keeper};
use preview::Previews;
use record::Record;
use running::Running;
pub(crate) use running::report_panic;
use serde_json::{Map, Value};
use std::{
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tasks::Tasks;
use told_decisions::ToldDecisions;
use tool_timeouts::ToolTimeouts;
use toolstead_domain::{
    access::{Access, AccessKind},
    client_profile::ClientProfile,
    error_kind::ErrorKind,
    labels::Labels,
    permission::{grant::Grant, policy::PermissionPolicy},
    ports::{
        approver::Approver,
        caller::{Caller, InputResponses, SilentCaller},
        clock::Clock,
        event_sink::EventSink,
        execution_log::ExecutionLog,
        output_store::OutputStore,
        schema_validator::SchemaValidator,
        tool_hook::ToolHook,
        tool_provider::{CallOutcome, ToolProvider},
        tool_repository::StoreError,
    },
    principal::Principal,
    scope::Scope,
    suggestion::SuggestionFormatter,
    tool::{Tool, ToolSource},
    tool_call::{CallId, ToolCall},
    tool_execution::{CancelReason, ExecutionRef},
    tool_failure::ToolFailure,
};
use uuid::Uuid;
use validation::Validation;
pub(crate) use worn_face::WornFace;

/// Calls a tool.
pub struct ExecuteToolCommand {
    /// The tool, in any spelling.
    pub tool: String,
    /// The arguments. Anything but an object is malformed; `Null` is an empty object.
    pub arguments: Value,
    /// The request's `_meta`, without what belongs to one hop.
    pub meta: Map<String, Value>,
    /// Members of the request's parameters that nobody here knows, in their order: for the server behind the tool.
    pub params: Vec<(String, Value)>,
    /// On whose behalf it is made.
    pub scope: Scope,
    /// The labels that its row is to be found by.
    pub labels: Labels,
    /// What the client can do.
    pub client: Arc<ClientProfile>,
    /// The way back to the client.
    pub caller: Arc<dyn Caller>,
    /// Answers to what was asked: with a state those of its call, without one some for the tool's provider.
    pub answers: Option<InputResponses>,
    /// The state of the call that this one comes back to (MCP 2026-07-28, `requestState`).
    pub request_state: Option<String>,
    /// How long it may run; `None`: the default. More than the configured maximum is cut to it.
    pub timeout: Option<Duration>,
    /// Ends it from outside.
    pub cancel: CancelSignal,
    /// Its place below the call that makes it; `None`: it comes from outside.
    pub parent: Option<Nesting>,
    /// The call that began what makes this one, where that is over by now.
    pub began_by: Option<CallId>,
    /// The one who answers where this is no call of a tool but a request for something else
    /// ([`forward_request`](crate::forward_request)); `None`: the tool of that name.
    pub answered_by: Option<Answerer>,
}

impl ExecuteToolCommand {
    /// A call by the person at this machine, in the session `program`, who is not asked anything. The fields say what is
    /// different.
    pub fn new(tool: impl Into<String>, arguments: Value) -> Self {
        Self {
            tool: tool.into(),
            arguments,
            meta: Map::new(),
            params: Vec::new(),
            scope: Scope::default(),
            labels: Labels::default(),
            client: Arc::new(ClientProfile::without_protocol("program")),
            caller: Arc::new(SilentCaller),
            answers: None,
            request_state: None,
            timeout: None,
            cancel: CancelSignal::new(),
            parent: None,
            began_by: None,
            answered_by: None,
        }
    }

    /// The same in this scope.
    #[must_use]
    pub fn within(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }

    /// The same with these labels.
    #[must_use]
    pub fn labelled(self, labels: Labels) -> Self {
        Self { labels, ..self }
    }
}

impl std::fmt::Debug for ExecuteToolCommand {
    /// Without the arguments, which may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExecuteToolCommand")
            .field("tool", &self.tool)
            .field("session", &self.scope.session)
            .finish_non_exhaustive()
    }
}

/// The bounds of every call (`[limits]`, `[audit]`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSettings {
    /// For calls that ask for no time of their own.
    pub default_timeout: Duration,
    /// Tools and servers with another default.
    pub timeouts: ToolTimeouts,
    /// The most that a call may ask for.
    pub max_timeout: Duration,
    /// The time that a call waits for a client that is to come back with answers.
    pub approval_timeout: Duration,
    /// How long after its deadline a provider may still return what it has: longer than a program is given to end.
    pub grace: Duration,
    /// Characters of text that a model gets of one result.
    pub output_characters: usize,
    /// Bytes of binary content that go on with one result, as they are sent: base64.
    pub media_bytes: usize,
    /// Bytes that are kept of one output which is over that.
    pub stored_output_bytes: usize,
    /// What the audit trail keeps of arguments.
    pub arguments: RecordedArguments,
    /// True where those who watch hear what each call was given and answered.
    pub tells_details: bool,
    /// Tells whether answers in the face of another system stand in tags, where that system knows them.
    pub faces_in_tags: bool,
}

impl Default for CallSettings {
    fn default() -> Self {
        Self {
            default_timeout: Duration::from_secs(120),
            timeouts: ToolTimeouts::default(),
            max_timeout: Duration::from_secs(600),
            approval_timeout: Duration::from_secs(300),
            grace: Duration::from_secs(4),
            output_characters: 30_000,
            media_bytes: 5 << 20,
            stored_output_bytes: 64 << 20,
            arguments: RecordedArguments::Redacted,
            tells_details: false,
            faces_in_tags: false,
        }
    }
}

impl CallSettings {
    fn bounded_output(&self) -> Budget {
        Budget { characters: self.output_characters, media_bytes: self.media_bytes }
    }

    /// The budget of what the provider's tools answer.
    fn output_budget(&self, provider: &dyn ToolProvider) -> Budget {
        if provider.bounds_output() { self.bounded_output() } else { Budget::WHOLE }
    }

    /// The time of a call of the tool that asks for `wanted`: within that of the call that makes it.
    fn time_for(&self, tool: &Tool, wanted: Option<Duration>, parent: Option<&Nesting>) -> Duration {
        let time = wanted.or_else(|| self.timeouts.of(tool)).unwrap_or(self.default_timeout).min(self.max_timeout);
        parent.map_or(time, |nesting| nesting.time(time))
    }

    fn grace_for(&self, parent: Option<&Nesting>) -> Duration {
        parent.map_or(self.grace, |nesting| nesting.grace(self.grace))
    }

    /// The most that an answer of no tool may have: as much as text or media of one result.
    fn answer_bytes(&self) -> usize {
        self.media_bytes.max(self.output_characters.saturating_mul(4))
    }
}

/// What the audit trail keeps of arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedArguments {
    /// Everything but what looks like a secret; long texts are shortened.
    Redacted,
    /// Everything.
    Full,
    /// Only the digest.
    None,
}

/// A call without a result. Every one of them is in the audit trail, save [`NotRecorded`](Self::NotRecorded).
#[derive(Debug, thiserror::Error)]
pub enum ExecuteToolError {
    /// The caller asked for what there is not: an unknown, disabled or unavailable tool, or arguments that are no
    /// object. MCP answers it with a protocol error.
    #[error(transparent)]
    NotCallable(ToolFailure),
    /// It was not run: the arguments do not fit, or it is not permitted.
    #[error(transparent)]
    Refused(ToolFailure),
    /// It ran and failed, or ran out of time.
    #[error(transparent)]
    Failed(ToolFailure),
    /// It was ended from outside.
    #[error("the call was cancelled ({})", .0.as_str())]
    Cancelled(CancelReason),
    /// The application is closed, and the call did not run.
    #[error("the call did not run: the application is closed")]
    Closed,
    /// It could not be recorded, so it did not run, or its result is withheld.
    #[error("{what}")]
    NotRecorded {
        /// The fate of the call all the same.
        what: Unrecorded,
        /// Why.
        source: StoreError,
    },
}

/// The fate of a call that could not be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unrecorded {
    /// It was about to run, and did not.
    Start,
    /// It was refused, and did not run.
    Refusal,
    /// It did not run, because the application is closed.
    Closed,
    /// It ran and succeeded.
    Success,
    /// It ran and failed.
    Failure,
    /// It was taken back, perhaps after it had begun.
    Cancellation,
}

impl Unrecorded {
    fn of(outcome: &Result<CallOutcome, ExecuteToolError>) -> Self {
        match outcome {
            Ok(CallOutcome::Done(result)) if result.is_error() => Self::Failure,
            Ok(CallOutcome::Done(_)) => Self::Success,
            Ok(CallOutcome::InputRequired(_)) => Self::Start,
            Err(ExecuteToolError::NotCallable(_) | ExecuteToolError::Refused(_)) => Self::Refusal,
            Err(ExecuteToolError::Closed) => Self::Closed,
            Err(ExecuteToolError::Failed(_)) => Self::Failure,
            Err(ExecuteToolError::Cancelled(_)) => Self::Cancellation,
            Err(ExecuteToolError::NotRecorded { what, .. }) => *what,
        }
    }
}

impl std::fmt::Display for Unrecorded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Start => "the call did not run: its start cannot be recorded",
            Self::Closed => "the call did not run: the application is closed, and that could not be recorded",
            Self::Refusal => "the call was refused and did not run, and that could not be recorded",
            Self::Success => {
                "the call ran and succeeded, but its outcome could not be recorded, so its result is withheld"
            }
            Self::Failure => {
                "the call ran and failed, but its outcome could not be recorded, so its result is withheld"
            }
            Self::Cancellation => "the call was taken back, perhaps after it had begun, and that could not be recorded",
        })
    }
}

impl ExecuteToolError {
    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotCallable(failure) | Self::Refused(failure) | Self::Failed(failure) => failure.kind,
            Self::Cancelled(CancelReason::Deadline) => ErrorKind::Timeout,
            Self::Cancelled(CancelReason::Client | CancelReason::Shutdown) | Self::Closed => ErrorKind::Cancelled,
            Self::NotRecorded { .. } => ErrorKind::Internal,
        }
    }
}

/// What the path needs of the outside.
#[derive(Clone)]
pub struct ExecuteToolPorts {
    /// Answers what a rule asks.
    pub approver: Arc<dyn Approver>,
    /// The audit trail.
    pub log: Arc<dyn ExecutionLog>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Where large outputs go.
    pub outputs: Arc<dyn OutputStore>,
    /// Validates arguments where that could cost this process too much.
    pub schemas: Arc<dyn SchemaValidator>,
    /// Run before and after each call, in this order.
    pub hooks: Vec<Arc<dyn ToolHook>>,
    /// Tells what happens to those who watch.
    pub events: Arc<EventBus>,
    /// Formats suggestions for the users of the application's interface.
    pub suggestions: Arc<dyn SuggestionFormatter>,
}

impl std::fmt::Debug for ExecuteToolPorts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExecuteToolPorts").field("hooks", &self.hooks.len()).finish_non_exhaustive()
    }
}

/// Carries out [`ExecuteToolCommand`].
pub struct ExecuteToolHandler {
    registry: Arc<ToolRegistry>,
    permissions: Arc<PermissionBook>,
    ports: ExecuteToolPorts,
    open_calls: Arc<OpenCalls>,
    held: HeldCalls,
    tasks: Tasks,
    told: ToldDecisions,
    settings: CallSettings,
    /// The names of resources here, where there are any.
    context: OnceLock<Arc<ContextRegistry>>,
}

impl std::fmt::Debug for ExecuteToolHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExecuteToolHandler").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl ExecuteToolHandler {
    /// A handler of calls of the registry's tools, under the policies of the book.
    pub fn new(
        registry: Arc<ToolRegistry>,
        permissions: Arc<PermissionBook>,
        ports: ExecuteToolPorts,
        open_calls: Arc<OpenCalls>,
        settings: CallSettings,
    ) -> Arc<Self> {
        let held = HeldCalls::new(open_calls.clone(), settings.approval_timeout);
        let (tasks, told, context) = (Tasks::default(), ToldDecisions::default(), OnceLock::new());
        Arc::new(Self { registry, permissions, ports, open_calls, held, tasks, told, settings, context })
    }

    /// Returns the formatter of suggestions for the users of the application's interface.
    pub fn suggestions(&self) -> &dyn SuggestionFormatter {
        self.ports.suggestions.as_ref()
    }

    /// From now on results name resources as this registry's lists do. Counts once.
    pub fn name_resources_by(&self, context: &Arc<ContextRegistry>) {
        self.context.get_or_init(|| context.clone());
    }

    /// Runs the call and records it. The answer is not returned before its row is on record.
    ///
    /// A call whose caller [answers by retry](Caller::answers_by_retry) may come back with questions, and waits. A command
    /// with the state that came along goes on with that call.
    ///
    /// Dropping the future cancels the call (reason: client); its row is written all the same.
    ///
    /// # Errors
    /// [`ExecuteToolError`].
    pub async fn handle(self: &Arc<Self>, command: ExecuteToolCommand) -> Result<CallOutcome, ExecuteToolError> {
        let face = self.worn_face(&command);
        let outcome = self.handle_as(CallId(Uuid::now_v7()), command).await;
        match face {
            Some(face) => face.over(outcome),
            None => outcome,
        }
    }

    /// The face in which the caller of this command sees the answer.
    pub(crate) fn worn_face(&self, command: &ExecuteToolCommand) -> Option<WornFace> {
        WornFace::of(&self.registry, command, &self.settings)
    }

    /// The same under this id, which is that of its row, for one who has to know it beforehand. The outcome is told as
    /// ours, whatever face its caller sees.
    ///
    /// # Errors
    /// [`ExecuteToolError`].
    pub(crate) async fn handle_as(
        self: &Arc<Self>,
        id: CallId,
        mut command: ExecuteToolCommand,
    ) -> Result<CallOutcome, ExecuteToolError> {
        let barred = match self.held.attach(&command) {
            Some(Ok(call)) => return later_round(call, command.cancel).await,
            Some(Err(error)) => Some(error),
            None => None,
        };
        let held = if barred.is_none() { self.held.hold(id, &command) } else { None };
        let (handler, cancel) = (self.clone(), command.cancel.clone());
        if let Some(call) = &held {
            command.caller = call.clone();
        }
        // Thousands of bytes, made where they stay: what is made before its box is copied into it.
        let path = Box::into_pin(Box::write(Box::new_uninit(), async move {
            // Pinned here and below: a future that is handed on by value is copied, and this one is large.
            let recorded = pin!(handler.run_and_record(id, command, barred));
            let outcome = AssertUnwindSafe(recorded).catch_unwind().await;
            outcome.unwrap_or_else(|panic| Err(running::panicked("recording a call", panic.as_ref())))
        }));
        match held {
            Some(call) => FirstRound::new(path, call, self.settings.grace).await,
            None => Outliving::new(path, cancel).await,
        }
    }

    /// Returns the store of large outputs.
    pub(crate) fn outputs(&self) -> &dyn OutputStore {
        self.ports.outputs.as_ref()
    }

    /// The names of resources here, where there are any.
    pub(crate) fn context(&self) -> Option<&Arc<ContextRegistry>> {
        self.context.get()
    }

    /// The arguments of a call as its row and its events keep them.
    pub(crate) fn kept_arguments(&self, id: CallId, command: &ExecuteToolCommand) -> Value {
        Record::begin(id, command, self.settings.arguments, self.ports.clock.as_ref()).execution().arguments.to_value()
    }

    /// True once everything ends, and no call is let in any more.
    pub(crate) fn is_closing(&self) -> bool {
        self.open_calls.is_closed()
    }

    /// The calls that go on as tasks.
    pub(crate) fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// A session is over: what was approved for it is forgotten, its calls that wait for their client to come back are ended,
    /// and so is what providers keep for it.
    pub async fn session_ended(&self, principal: &Principal, session: &Arc<str>) {
        self.permissions.forget(principal, session);
        self.held.session_ended(principal, session);
        self.registry.session_ended(principal, session).await;
    }

    /// Finds out whether a call could be recorded now.
    ///
    /// # Errors
    /// The store's, with the reason.
    pub async fn can_record(&self) -> Result<(), StoreError> {
        self.ports.log.check().await
    }

    /// Takes the path of the call, or refuses it where it is barred.
    async fn run_and_record(
        self: &Arc<Self>,
        id: CallId,
        mut command: ExecuteToolCommand,
        barred: Option<ExecuteToolError>,
    ) -> Result<CallOutcome, ExecuteToolError> {
        let mut record = Record::begin(id, &command, self.settings.arguments, self.ports.clock.as_ref());
        // Handed on and never copied: they may be large.
        let arguments = std::mem::take(&mut command.arguments);
        // Open until the row is written: who waits for the end of all calls waits for their rows.
        let mut open = None;
        let mut hooked = Hooked::default();
        let work = {
            let run = pin!(self.run(&command, arguments, barred, &mut record, &mut hooked, &mut open));
            AssertUnwindSafe(run).catch_unwind().await
        };
        let outcome = work
            .unwrap_or_else(|panic| Err(running::panicked("the path of a call", panic.as_ref())))
            .map_err(|error| output::bound_message(error, self.settings.output_characters));
        record.conclude(&outcome, self.ports.clock.as_ref());
        // Copied for hooks, which may change it.
        let mut changed = None;
        let budget = self.settings.bounded_output();
        let outcome = match self.ports.hooks.as_slice() {
            [] => outcome,
            // Boxed: large, and most have no hooks.
            hooks => {
                let execution = changed.insert(record.execution().to_execution());
                Box::pin(hooked.after(hooks, &command, execution, outcome, budget)).await
            }
        };
        let execution = changed.as_ref().map_or_else(|| record.execution(), ExecutionRef::from);
        let (origin, end) = events::end(&self.ports.events, &command, &execution);
        let details = match self.settings.tells_details && self.ports.events.is_watched() {
            true => events::details(&record, &execution, &outcome),
            false => None,
        };
        let line = CallLine::of(&execution);
        if let Err(source) = self.ports.log.record_ref(execution).await {
            // Whatever could not be recorded first is what happened.
            return Err(match outcome {
                Err(first @ ExecuteToolError::NotRecorded { .. }) => first,
                outcome => ExecuteToolError::NotRecorded { what: Unrecorded::of(&outcome), source },
            });
        }
        events::ended(&self.ports.events, origin, end, details);
        if let Some(line) = line {
            line.log();
        }
        outcome
    }

    /// The order of every call.
    async fn run(
        self: &Arc<Self>,
        command: &ExecuteToolCommand,
        arguments: Value,
        barred: Option<ExecuteToolError>,
        record: &mut Record,
        hooked: &mut Hooked,
        open: &mut Option<OpenCallGuard>,
    ) -> Result<CallOutcome, ExecuteToolError> {
        let registered = resolution::find(&self.registry, command).await?;
        record.resolved(&registered.tool);
        if let Some(error) = barred {
            return Err(error);
        }
        match &command.parent {
            // It has the place of the call that makes it.
            Some(nesting) => nesting.admit()?,
            None => *open = Some(resolution::admit(&self.open_calls, record.id(), command)?),
        }
        // What no call may do costs nothing: neither its schema nor its arguments are looked at.
        let policy = self.permissions.policy_of(&command.scope);
        if let Some(decision) = policy.refusal_of_every_call(&registered.tool) {
            record.decided(&[], &decision, &self.told);
            return Err(approval::refused(&registered.tool, &decision));
        }
        let time = self.settings.time_for(&registered.tool, command.timeout, command.parent.as_ref());
        let outputs = self.ports.outputs.as_ref();
        let validation = Validation { beside: self.ports.schemas.as_ref(), cancel: &command.cancel, time };
        let Prepared { arguments, references, max_output } =
            arguments::prepare(&registered, command, arguments, outputs, record, validation).await?;
        let mut call = self.call(record.id(), registered.tool.clone(), command, arguments);
        if !self.ports.hooks.is_empty() {
            Box::pin(hooked.before(&self.ports.hooks, &registered, &mut call, record, command, validation)).await?;
        }
        arguments::complete(&registered, &mut call, validation).await?;

        let mut accesses = running::accesses(registered.provider.as_ref(), &call, &command.cancel, time).await?;
        let provider = registered.provider.as_ref();
        let (policy, by_person) = loop {
            hooked.touches(&accesses);
            let policy = self.permissions.policy_of(&command.scope);
            let decision = hooked.judged(policy.decide(&call.tool, &call.arguments, &accesses), policy.asks_nobody());
            record.decided(&accesses, &decision, &self.told);
            events::permission_requested(&self.ports.events, &call, &decision, record);
            let approvals = self.approvals(&policy, provider);
            let obtained = approvals.obtain(command, &call, &references, &accesses, &decision, record).await;
            events::permission_resolved(&self.ports.events, &call, &decision, &obtained);
            let approved = obtained?;
            if !approved.was_asked {
                break (policy, approved.by_person);
            }
            // The user may have taken time: the call may touch something else by now, and the rules may be others.
            let (call, shown, hooked) = (&call, &accesses, &hooked);
            let check = async move {
                let now = running::accesses(provider, call, &command.cancel, time).await?;
                let policy = self.permissions.policy_of(&command.scope);
                let decision = hooked.judged(policy.decide(&call.tool, &call.arguments, &now), policy.asks_nobody());
                let preview = self.approvals(&policy, provider).previews.of(command, call, &now).await?;
                let is_covered = approved.covers(shown, &now, preview.as_deref(), &decision);
                Ok::<_, ExecuteToolError>((is_covered.then_some(approved.by_person), policy, now))
            };
            // Boxed: rare, and larger than most of the path.
            let (by_person, policy, now) = Box::pin(check).await?;
            if let Some(by_person) = by_person {
                break (policy, by_person);
            }
            accesses = now;
        };

        // Whoever took the call back while it waited for its turn must not find that it ran.
        if let Some(reason) = command.cancel.reason() {
            return Err(ExecuteToolError::Cancelled(reason));
        }
        let is_on_record = can_change(&call.tool, &accesses);
        if is_on_record {
            let recorded = self.ports.log.record_ref(record.execution()).await;
            recorded.map_err(|source| ExecuteToolError::NotRecorded { what: Unrecorded::Start, source })?;
        }
        events::started(&self.ports.events, &call, record);
        let grant = Grant::new(policy, call.tool.clone(), by_person);
        let running = Running { command, grant: &grant, record, is_on_record };
        let mut outcome = running::run(self, provider, &call, &running).await;
        if let (Some(context), Ok(CallOutcome::Done(result))) = (self.context(), &mut outcome) {
            context.snapshot().publish_blocks(provider.name(), result.content_mut());
        }
        if command.answered_by.is_some() {
            return answered::bound(outcome, self.settings.answer_bytes());
        }
        if matches!(&outcome, Ok(CallOutcome::Done(result)) if result.is_task()) {
            let task = answered::bound(outcome, self.settings.answer_bytes());
            return self.tasks.kept(task, command, &call.tool);
        }
        let wanted = command.parent.as_ref().and_then(|nesting| nesting.output_characters);
        let budget = self.settings.output_budget(registered.provider.as_ref()).as_wanted(wanted).up_to(max_output);
        let (tools, max_bytes) = (self.registry.snapshot(), self.settings.stored_output_bytes);
        let keeper = Keeper::new(outputs, &command.scope.principal, call.id, max_bytes, tools.output_readers());
        output::bound(outcome, &registered, budget, keeper, self.ports.schemas.as_ref()).await
    }

    fn approvals<'a>(&'a self, policy: &'a Arc<PermissionPolicy>, provider: &'a dyn ToolProvider) -> Approvals<'a> {
        Approvals {
            previews: Previews { provider, ports: &self.ports, settings: &self.settings, policy },
            approver: self.ports.approver.as_ref(),
            book: &self.permissions,
            policy,
            open_calls: &self.open_calls,
            timeout: self.settings.approval_timeout,
        }
    }

    fn call(
        &self,
        id: CallId,
        tool: Arc<Tool>,
        command: &ExecuteToolCommand,
        arguments: Map<String, Value>,
    ) -> ToolCall {
        ToolCall {
            id,
            principal: command.scope.principal.clone(),
            session: command.scope.session.clone(),
            tool,
            called_as: command.tool.clone(),
            arguments,
            meta: command.meta.clone(),
        }
    }
}

/// Whether a call can leave something changed, so that it must be on record before it runs. What it touches says so, and
/// no hint of the tool. A team's tool that names nothing may still write where a rule allows it while it runs.
fn can_change(tool: &Tool, accesses: &[Access]) -> bool {
    let is_silent = accesses.is_empty() && matches!(tool.source(), ToolSource::Embedded(_));
    is_silent || accesses.iter().any(|access| access.kind() != AccessKind::Read)
}

#[cfg(test)]
mod tests;
