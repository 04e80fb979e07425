//! The path that a call takes to a tool, for the tests of whoever writes one (feature `testing`).

use crate::{
    builtin::{built_in_tool::AnyBuiltInTool, into_tool::IntoTool, provider::BuiltInTools, run::Run, world::World},
    sandbox::workspace::{FolderNames, Workspace},
};
use serde_json::{Map, Value};
use std::{
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};
use toolstead_domain::{
    access::Access,
    client_profile::ClientProfile,
    coercion::coerce,
    defaults::fill_defaults,
    error_kind::ErrorKind,
    permission::{
        decision::Verdict,
        grant::Grant,
        path_pattern::PatternBase,
        policy::PermissionPolicy,
        rule::{Effect, PermissionRule, RuleOrigin},
    },
    ports::{
        calls::{Calls, NoCalls},
        clock::Timestamp,
        tool_provider::{CallContext, CallOutcome, ToolProvider},
    },
    principal::Principal,
    testing::{
        fixed_clock::FixedClock, in_memory_change_journal::InMemoryChangeJournal,
        in_memory_output_store::InMemoryOutputStore, recording_caller::RecordingCaller, samples::call_id,
    },
    tool::Tool,
    tool_call::{CallId, ToolCall},
    tool_failure::ToolFailure,
    tool_input_schema::{Formats, ToolInputSchema},
    tool_result::ToolResult,
    workspace_roots::WorkspaceRoots,
};

/// How long a call may take that is given no time of its own.
const TIME: Duration = Duration::from_secs(600);

/// Tools in a folder, and all that a call of them meets on its path: its arguments are validated, what it would touch is
/// judged, and its result is held to its schema. It is 2026-03-01T12:00:00Z, the default rules hold, and somebody is there
/// who says yes to whatever is asked.
///
/// ```
/// # use toolstead_domain::{category::Category, tool::ToolAnnotations, tool_failure::ToolFailure, tool_result::ToolResult};
/// # use toolstead_infrastructure::builtin::{built_in_tool::BuiltInTool, run::Run, testing::TestRun};
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct Input { name: String }
/// # struct Greet;
/// # impl BuiltInTool for Greet {
/// #     const NAME: &str = "greet";
/// #     const TITLE: &str = "Greet";
/// #     const DESCRIPTION: &str = "Greets somebody by name.";
/// #     const CATEGORY: Category = Category::Utility;
/// #     const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
/// #     const EXAMPLE: &str = r#"{"name": "Ada"}"#;
/// #     type Input = Input;
/// #     async fn run(&self, input: Input, _: &Run<'_>) -> Result<ToolResult, ToolFailure> {
/// #         Ok(ToolResult::text(format!("Hello, {}!", input.name)))
/// #     }
/// # }
/// # let folder = std::env::temp_dir();
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let result = TestRun::of(Greet, &folder).call("greet", serde_json::json!({"name": "Ada"})).await.unwrap();
/// assert_eq!(result.joined_text(), "Hello, Ada!");
/// # });
/// ```
#[derive(Debug)]
pub struct TestRun {
    pub(super) world: World,
    pub(super) tools: BuiltInTools,
    pub(super) policy: Arc<PermissionPolicy>,
    pub(super) outputs: InMemoryOutputStore,
    pub(super) journal: Arc<InMemoryChangeJournal>,
    pub(super) principal: Principal,
    pub(super) session: Arc<str>,
    caller: RecordingCaller,
    is_attended: bool,
    asked: Mutex<Vec<Access>>,
    calls: AtomicU32,
}

impl TestRun {
    /// Returns a run of one tool in a folder, which it may read and write.
    ///
    /// # Panics
    /// As [`of_tools`](Self::of_tools).
    pub fn of<F>(tool: impl IntoTool<F>, folder: impl AsRef<Path>) -> Self {
        Self::of_tools(vec![Box::new(tool.into_tool())], folder)
    }

    /// Several tools, such as [`all`](crate::builtin::all), in a folder that they may read and write.
    ///
    /// # Panics
    /// When there is no such folder, or the tools' names are none, or not their own.
    pub fn of_tools(tools: Vec<Box<dyn AnyBuiltInTool>>, folder: impl AsRef<Path>) -> Self {
        let root = folder.as_ref().canonicalize().expect("the folder is there");
        let roots = WorkspaceRoots { write: vec![root], ..Default::default() };
        let workspace = Workspace::open(&roots, FolderNames::default()).expect("the folder can be opened");
        let journal = Arc::new(InMemoryChangeJournal::new());
        Self::in_world(
            tools,
            test_world(workspace).with_journal(journal.clone()),
            PermissionPolicy { roots, ..Default::default() },
            journal,
        )
    }

    pub(super) fn in_world(
        tools: Vec<Box<dyn AnyBuiltInTool>>,
        world: World,
        policy: PermissionPolicy,
        journal: Arc<InMemoryChangeJournal>,
    ) -> Self {
        Self {
            tools: BuiltInTools::new(tools, world.clone()).expect("the tools have names of their own"),
            world,
            policy: Arc::new(policy),
            outputs: InMemoryOutputStore::new(),
            journal,
            principal: Principal::local(),
            session: "test".into(),
            caller: RecordingCaller::new(),
            is_attended: true,
            asked: Mutex::default(),
            calls: AtomicU32::new(0),
        }
    }

    /// The same under one rule more, as in `(Effect::Deny, "Read(.env)")`.
    ///
    /// # Panics
    /// When it is no rule.
    #[must_use]
    pub fn under(mut self, effect: Effect, rule: &str) -> Self {
        let rule = PermissionRule::parse(effect, rule, RuleOrigin::CommandLine, &PatternBase::default());
        Arc::make_mut(&mut self.policy).rules.push(Arc::new(rule.expect("it is a rule")));
        self
    }

    /// The same with nobody there: what would be asked is refused.
    #[must_use]
    pub fn unattended(self) -> Self {
        Self { is_attended: false, ..self }
    }

    /// The same for a caller that answers questions.
    #[must_use]
    pub fn with_caller(self, caller: RecordingCaller) -> Self {
        Self { caller, ..self }
    }

    /// The same in another session, perhaps of somebody else.
    #[must_use]
    pub fn in_session(self, principal: Principal, session: &str) -> Self {
        Self { principal, session: session.into(), ..self }
    }

    /// What calls told their caller and asked it.
    pub fn caller(&self) -> &RecordingCaller {
        &self.caller
    }

    /// What calls recorded of their changes of files.
    pub fn journal(&self) -> &InMemoryChangeJournal {
        &self.journal
    }

    /// What is kept under handles.
    pub fn outputs(&self) -> &InMemoryOutputStore {
        &self.outputs
    }

    /// What somebody was asked about so far, in order.
    pub fn asked(&self) -> Vec<Access> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The definition of a tool, as clients see it.
    ///
    /// # Panics
    /// When there is none of that name.
    pub fn definition(&self, tool: &str) -> &Tool {
        let found = self.tools.definitions().iter().find(|other| other.name().as_str() == tool);
        found.unwrap_or_else(|| panic!("there is no tool `{tool}`"))
    }

    /// What a call would touch, judged by nobody.
    ///
    /// # Errors
    /// What the tool fails with.
    ///
    /// # Panics
    /// When there is no such tool, or the arguments are no object.
    pub async fn accesses(&self, tool: &str, arguments: Value) -> Result<Vec<Access>, ToolFailure> {
        self.tools.accesses(&self.new_call(Arc::new(self.definition(tool).clone()), object(arguments))).await
    }

    /// One call, from its arguments to its result.
    ///
    /// # Errors
    /// Arguments that do not fit the schema, what is not permitted, and what the tool fails with.
    ///
    /// # Panics
    /// When there is no such tool, the arguments are no object, or the result breaks the tool's own schema.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<ToolResult, ToolFailure> {
        self.called(tool, arguments, TIME, &NoCalls, || ()).await
    }

    /// The same within a time.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    ///
    /// # Panics
    /// As [`call`](Self::call).
    pub async fn call_within(&self, time: Duration, tool: &str, arguments: Value) -> Result<ToolResult, ToolFailure> {
        self.called(tool, arguments, time, &NoCalls, || ()).await
    }

    /// Gives the [`Run`] of a call of one of the tools to work that needs one, without judging the call. What it does
    /// while running is judged as ever.
    ///
    /// # Panics
    /// When there is no such tool.
    pub async fn with_run<T>(&self, tool: &str, work: impl AsyncFnOnce(&Run<'_>) -> T) -> T {
        self.with_run_among(&NoCalls, tool, work).await
    }

    /// The same with these calls out of it.
    pub(super) async fn with_run_among<T>(
        &self,
        calls: &dyn Calls,
        tool: &str,
        work: impl AsyncFnOnce(&Run<'_>) -> T,
    ) -> T {
        let tool = Arc::new(self.definition(tool).clone());
        let grant = Grant::new(self.policy.clone(), tool.clone(), Vec::new());
        let (call, client) = (self.new_call(tool, Map::new()), client());
        let context = CallContext { calls, ..self.context(&call, &grant, &client, TIME) };
        let run =
            Run { world: &self.world, tools: self.tools.definitions(), explained: &[], call: &call, context: &context };
        work(&run).await
    }

    /// One call, with these calls out of it, and something that happens between judging and running it.
    pub(super) async fn called(
        &self,
        tool: &str,
        arguments: Value,
        time: Duration,
        calls: &dyn Calls,
        between: impl FnOnce(),
    ) -> Result<ToolResult, ToolFailure> {
        let tool = self.definition(tool);
        let mut arguments = object(arguments);
        coerce(tool.input_schema(), &mut arguments);
        fill_defaults(tool.input_schema(), &mut arguments);
        let schema = ToolInputSchema::compile(tool.input_schema(), Formats::Asserted).expect("the schema is one");
        schema
            .validate(&Value::Object(arguments.clone()))
            .map_err(|wrong| ToolFailure::new(ErrorKind::InvalidInput, wrong.to_string()))?;
        let tool = Arc::new(tool.clone());
        let call = self.new_call(tool.clone(), arguments);
        let accesses = self.tools.accesses(&call).await?;
        let decision = self.policy.decide(&tool, &call.arguments, &accesses);
        let approved: Vec<Access> = match decision.verdict {
            Verdict::Allow => Vec::new(),
            Verdict::Ask if self.is_attended => decision.asked().cloned().collect(),
            Verdict::Ask | Verdict::Deny => {
                return Err(ToolFailure::new(ErrorKind::PermissionDenied, decision.reason()));
            }
        };
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&approved);
        between();
        let (grant, client) = (Grant::new(self.policy.clone(), tool.clone(), approved), client());
        let context = CallContext { calls, ..self.context(&call, &grant, &client, time) };
        let CallOutcome::Done(result) = self.tools.call(&call, &context).await? else {
            panic!("no tool in Rust asks for input by a retry")
        };
        if let Some(schema) = tool.output_schema() {
            let promised = ToolInputSchema::compile(schema, Formats::Asserted).expect("the schema is one");
            let content = result.structured_content().expect("it promises structured content");
            promised.validate(content).expect("its content fits its schema");
        }
        Ok(result)
    }

    pub(super) fn context<'a>(
        &'a self,
        call: &'a ToolCall,
        grant: &'a Grant,
        client: &'a ClientProfile,
        time: Duration,
    ) -> CallContext<'a> {
        let mut context = CallContext::new(call, grant, client, Instant::now() + time);
        (context.caller, context.outputs) = (&self.caller, &self.outputs);
        context
    }

    /// A call with an id of its own; ids sort as the calls were made.
    pub(super) fn new_call(&self, tool: Arc<Tool>, arguments: Map<String, Value>) -> ToolCall {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        ToolCall {
            id: call_id(number),
            principal: self.principal.clone(),
            session: self.session.clone(),
            called_as: tool.name().to_string(),
            tool,
            arguments,
            meta: Map::new(),
        }
    }

    /// The id of the call that was made last.
    pub fn last_call(&self) -> CallId {
        call_id(self.calls.load(Ordering::Relaxed))
    }
}

/// Surroundings in which it is 2026-03-01T12:00:00Z, always.
pub(super) fn test_world(workspace: Workspace) -> World {
    let clock = FixedClock::at(Timestamp(1_772_366_400_000_000));
    World::new(Arc::new(workspace), Arc::new(clock), "Toolstead test".into())
}

/// A client that speaks no MCP.
pub(super) fn client() -> ClientProfile {
    ClientProfile::without_protocol("test")
}

fn object(arguments: Value) -> Map<String, Value> {
    match arguments {
        Value::Object(arguments) => arguments,
        other => panic!("arguments are a JSON object, and not {other}"),
    }
}
