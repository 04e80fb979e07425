//! A tool provider with scripted tools, accesses and behavior.

pub mod scripted_tool;

use super::{lock, waitable_counter::WaitableCounter};
use crate::{
    access::Access,
    error_kind::ErrorKind,
    ports::tool_provider::{CallContext, CallOutcome, ProviderListError, ProviderState, ToolProvider},
    provider_identity::ProviderIdentity,
    tool::Tool,
    tool_call::{CallId, ToolCall},
    tool_failure::ToolFailure,
};
use async_trait::async_trait;
use scripted_tool::{Ending, EndingContext, ScriptedTool, Step};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// Provider that performs its [`ScriptedTool`]s, and records the calls that it received and their ends.
#[derive(Debug)]
pub struct ScriptedProvider {
    name: String,
    identity: ProviderIdentity,
    owns_schemas: bool,
    tools: Mutex<Vec<Arc<ScriptedTool>>>,
    list_failure: Mutex<Option<String>>,
    state: Mutex<ProviderState>,
    /// Rises with every announced change; `listed` is its value at the last `list`.
    version: WaitableCounter,
    listed: AtomicU64,
    calls: Mutex<Vec<ToolCall>>,
    began: WaitableCounter,
    ends: Mutex<Vec<(CallId, ObservedCallEnd)>>,
    ended: WaitableCounter,
    closed: AtomicBool,
}

/// Way in which a call left the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObservedCallEnd {
    /// The call returned, with a result or a failure.
    Returned,
    /// The future of the call was dropped before it returned.
    Dropped,
    /// The call panicked.
    Panicked,
}

impl ScriptedProvider {
    /// Creates a provider with this name, without tools, in the state `Ready`.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            identity: ProviderIdentity::of_program(name),
            owns_schemas: true,
            tools: Mutex::default(),
            list_failure: Mutex::default(),
            state: Mutex::new(ProviderState::Ready),
            version: WaitableCounter::default(),
            listed: AtomicU64::new(0),
            calls: Mutex::default(),
            began: WaitableCounter::default(),
            ends: Mutex::default(),
            ended: WaitableCounter::default(),
            closed: AtomicBool::new(false),
        }
    }

    /// Adds a tool.
    #[must_use]
    pub fn with(self, tool: ScriptedTool) -> Self {
        lock(&self.tools).push(Arc::new(tool));
        self
    }

    /// Uses schemas as received, as the provider of an MCP server does ([`ToolProvider::owns_schemas`] is `false`).
    #[must_use]
    pub fn with_foreign_schemas(mut self) -> Self {
        self.owns_schemas = false;
        self
    }

    /// Sets an identity other than that of an embedding application's provider.
    #[must_use]
    pub fn with_identity(mut self, identity: ProviderIdentity) -> Self {
        self.identity = identity;
        self
    }

    /// Replaces the tools and announces the change.
    pub fn replace_tools(&self, tools: impl IntoIterator<Item = ScriptedTool>) {
        *lock(&self.tools) = tools.into_iter().map(Arc::new).collect();
        self.announce_change();
    }

    /// Makes [`ToolProvider::changed`] return, until `list` is called again.
    pub fn announce_change(&self) {
        self.version.raise();
    }

    /// Makes `list` fail from now on.
    pub fn fail_list(&self, reason: &str) {
        *lock(&self.list_failure) = Some(reason.into());
    }

    /// Makes `list` succeed again.
    pub fn mend_list(&self) {
        *lock(&self.list_failure) = None;
    }

    /// Sets the state.
    pub fn set_state(&self, state: ProviderState) {
        *lock(&self.state) = state;
    }

    /// Returns the calls that reached the provider, in order.
    pub fn calls(&self) -> Vec<ToolCall> {
        lock(&self.calls).clone()
    }

    /// Returns the ends of calls, in their order.
    pub fn ends(&self) -> Vec<(CallId, ObservedCallEnd)> {
        lock(&self.ends).clone()
    }

    /// Returns once this number of calls has reached the provider.
    pub async fn began(&self, calls: u64) {
        self.began.reached(calls).await;
    }

    /// Returns once this number of calls has left the provider, in any way.
    pub async fn ended(&self, calls: u64) {
        self.ended.reached(calls).await;
    }

    /// Returns `true` if `close` was called.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    fn find(&self, tool: &Tool) -> Result<Arc<ScriptedTool>, ToolFailure> {
        let found = lock(&self.tools).iter().find(|scripted| scripted.tool.name() == tool.name()).cloned();
        let unknown =
            || ToolFailure::new(ErrorKind::NotFound, format!("`{}` has no tool `{}`", self.name, tool.name()));
        found.ok_or_else(unknown)
    }
}

#[async_trait]
impl ToolProvider for ScriptedProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn identity(&self) -> ProviderIdentity {
        self.identity.clone()
    }

    async fn list(&self) -> Result<Vec<Tool>, ProviderListError> {
        if let Some(reason) = lock(&self.list_failure).clone() {
            return Err(ProviderListError { provider: self.name.as_str().into(), reason });
        }
        // Read before the tools: a change in between is then announced once too often rather than never.
        self.listed.store(self.version.count(), Ordering::SeqCst);
        Ok(lock(&self.tools).iter().map(|scripted| scripted.tool.clone()).collect())
    }

    async fn changed(&self) {
        self.version.reached(self.listed.load(Ordering::SeqCst) + 1).await;
    }

    fn state(&self) -> ProviderState {
        lock(&self.state).clone()
    }

    fn owns_schemas(&self) -> bool {
        self.owns_schemas
    }

    async fn accesses(&self, call: &ToolCall) -> Result<Vec<Access>, ToolFailure> {
        (self.find(&call.tool)?.accesses)(call)
    }

    async fn call(&self, call: &ToolCall, context: &CallContext<'_>) -> Result<CallOutcome, ToolFailure> {
        lock(&self.calls).push(call.clone());
        let mut end = CallEndGuard { provider: self, id: call.id, returned: false };
        self.began.raise();
        let outcome = play(&*self.find(&call.tool)?, call, context).await;
        end.returned = true;
        outcome
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.set_state(ProviderState::Closed);
    }
}

async fn play(scripted: &ScriptedTool, call: &ToolCall, context: &CallContext<'_>) -> Result<CallOutcome, ToolFailure> {
    let mut responses = Vec::new();
    for step in &scripted.steps {
        match step {
            Step::Progress(progress) => context.caller.progress(progress.clone()),
            Step::Log(message) => context.caller.log(message.clone()),
            Step::Ask(request) => match context.caller.ask(request.clone()).await {
                Ok(response) => responses.push(response),
                Err(error) => {
                    let failure = ToolFailure::new(ErrorKind::ExecutionFailed, format!("not answered: {error}"));
                    return Err(failure.caused_by(error));
                }
            },
        }
    }
    match (scripted.ending)(&EndingContext { call, context, responses: &responses }) {
        Ending::Done(result) => Ok(CallOutcome::Done(result)),
        Ending::InputRequired(questions) => Ok(CallOutcome::InputRequired(questions)),
        Ending::Failure(failure) => Err(failure),
        #[expect(clippy::panic, reason = "the test wants to see what becomes of a provider that panics")]
        Ending::Panic(message) => panic!("{message}"),
        Ending::Never => std::future::pending().await,
    }
}

/// Records how a call ended, even if its future is dropped or its tool panics.
struct CallEndGuard<'a> {
    provider: &'a ScriptedProvider,
    id: CallId,
    returned: bool,
}

impl Drop for CallEndGuard<'_> {
    fn drop(&mut self) {
        let end = match (self.returned, std::thread::panicking()) {
            (true, _) => ObservedCallEnd::Returned,
            (false, true) => ObservedCallEnd::Panicked,
            (false, false) => ObservedCallEnd::Dropped,
        };
        lock(&self.provider.ends).push((self.id, end));
        self.provider.ended.raise();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        client_profile::ClientProfile,
        permission::{grant::CallPermissions, policy::PermissionPolicy},
        ports::{
            caller::{InputRequest, InputResponse, Progress},
            calls::NoCalls,
            output_store::NoOutputs,
        },
        principal::Principal,
        testing::{block_on::block_on, recording_caller::RecordingCaller, samples},
        tool_result::ToolResult,
    };
    use serde_json::json;
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        pin::pin,
        task::{Context, Poll, Waker},
        time::Instant,
    };

    fn scripted() -> ScriptedProvider {
        let question = InputRequest { method: "elicitation/create".into(), params: json!({"message": "sure?"}) };
        ScriptedProvider::new("scripted")
            .with(
                ScriptedTool::named("echo")
                    .ends_by(|moment| Ending::Done(ToolResult::json(moment.call.arguments.clone().into()))),
            )
            .with(ScriptedTool::named("broken").fails(ErrorKind::Io, "the disk is gone"))
            .with(ScriptedTool::named("bomb").panics("boom"))
            .with(ScriptedTool::named("endless").never_ends())
            .with(
                ScriptedTool::named("chatty")
                    .reports(Progress::at(1.0))
                    .asks(question)
                    .ends_by(|moment| Ending::Done(ToolResult::json(moment.responses[0].0.clone()))),
            )
    }

    fn call(provider: &ScriptedProvider, tool: &str, caller: &RecordingCaller) -> Result<CallOutcome, ToolFailure> {
        let call = samples::call(1, samples::tool(tool), json!({"text": "hi"}));
        with_context(&call, caller, |context| block_on(provider.call(&call, context)))
    }

    fn with_context<T>(call: &ToolCall, caller: &RecordingCaller, run: impl FnOnce(&CallContext<'_>) -> T) -> T {
        run(&CallContext {
            id: call.id,
            principal: &Principal::local(),
            session: "s",
            deadline: Instant::now(),
            grant: &CallPermissions::new(Arc::new(PermissionPolicy::default()), call.tool.clone(), vec![]),
            client: &ClientProfile::without_protocol("test"),
            forwarded: Default::default(),
            labels: &Default::default(),
            answers: None,
            caller,
            calls: &NoCalls,
            outputs: &NoOutputs,
            output_characters: 30_000,
        })
    }

    #[test]
    #[cfg(feature = "json-schema")]
    fn the_scripted_provider_keeps_the_contract() {
        block_on(crate::testing::tool_provider_contract::tool_provider_contract(&scripted()));
    }

    #[test]
    fn each_tool_ends_as_its_script_says() {
        let provider = scripted();
        let silent = RecordingCaller::new();
        let done = CallOutcome::Done(ToolResult::json(json!({"text": "hi"})));
        assert_eq!(call(&provider, "echo", &silent).unwrap(), done);
        assert_eq!(call(&provider, "broken", &silent).unwrap_err().kind, ErrorKind::Io);
        assert!(catch_unwind(AssertUnwindSafe(|| call(&provider, "bomb", &silent))).is_err());
        assert_eq!(call(&provider, "chatty", &silent).unwrap_err().kind, ErrorKind::ExecutionFailed);
        let ends: Vec<ObservedCallEnd> = provider.ends().into_iter().map(|(_, end)| end).collect();
        assert_eq!(
            ends,
            [
                ObservedCallEnd::Returned,
                ObservedCallEnd::Returned,
                ObservedCallEnd::Panicked,
                ObservedCallEnd::Returned
            ]
        );
        assert_eq!(provider.calls().len(), 4);
    }

    #[test]
    fn a_tool_may_report_and_ask_before_it_ends() {
        let caller = RecordingCaller::answering([Ok(InputResponse(json!({"action": "accept"})))]);
        let outcome = call(&scripted(), "chatty", &caller).unwrap();
        assert_eq!(outcome, CallOutcome::Done(ToolResult::json(json!({"action": "accept"}))));
        assert_eq!((caller.progress_reports().len(), caller.questions().len()), (1, 1));
    }

    #[test]
    fn a_dropped_endless_call_is_recorded_as_dropped() {
        let provider = scripted();
        let endless = samples::call(7, samples::tool("endless"), json!({}));
        with_context(&endless, &RecordingCaller::new(), |context| {
            let mut calling = pin!(provider.call(&endless, context));
            assert!(calling.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            block_on(provider.began(1));
            assert_eq!(provider.ends(), []);
        });
        block_on(provider.ended(1));
        assert_eq!(provider.ends(), [(samples::call_id(7), ObservedCallEnd::Dropped)]);
    }

    #[test]
    fn a_change_is_reported_until_the_tool_list_is_read_again() {
        let provider = scripted();
        let changed = || pin!(provider.changed()).poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(changed(), Poll::Pending);
        provider.replace_tools([ScriptedTool::named("only")]);
        assert_eq!((changed(), changed()), (Poll::Ready(()), Poll::Ready(())));
        assert_eq!(block_on(provider.list()).unwrap().len(), 1);
        assert_eq!(changed(), Poll::Pending);
    }

    #[test]
    fn a_list_that_fails_can_be_mended() {
        let provider = scripted();
        provider.fail_list("no answer");
        assert_eq!(
            block_on(provider.list()).unwrap_err().to_string(),
            "`scripted` could not list its tools: no answer"
        );
        provider.mend_list();
        assert_eq!(block_on(provider.list()).unwrap().len(), 5);
    }
}
