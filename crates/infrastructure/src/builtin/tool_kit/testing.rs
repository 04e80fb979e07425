//! Runs calls of tools on the path that real calls take, for the tests of tool authors (feature `testing`).

use crate::{
    builtin::tool_kit::{
        built_in_tool::AnyTool, into_tool::IntoTool, provider::InProcessTools, tool_context::ToolContext,
        tool_environment::ToolEnvironment,
    },
    sandbox::workspace::{UserPathAliases, Workspace},
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
    Access, CallContext, CallId, CallOutcome, CallPermissions, Calls, ClientProfile, Effect, FormatValidation, NoCalls,
    PatternContext, PermissionPolicy, PermissionRule, Principal, Timestamp, Tool, ToolCall, ToolFailure,
    ToolInputSchema, ToolProvider, ToolResult, Verdict, WorkspaceRoots,
    coercion::coerce,
    defaults::fill_defaults,
    error_kind::ErrorKind,
    permission::rule::RuleOrigin,
    testing::{
        fixed_clock::FixedClock, in_memory_change_journal::InMemoryChangeJournal,
        in_memory_output_store::InMemoryOutputStore, recording_caller::RecordingCaller, samples::call_id,
    },
};

/// Timeout of a call that specifies none.
const TIME: Duration = Duration::from_secs(600);

/// Tools in a folder, with the steps of a real call: its arguments are validated, its accesses are checked against the
/// policy, and its result is checked against its schema. The clock always shows 2026-03-01T12:00:00Z, the default rules
/// apply, and an approver approves every request.
///
/// ```
/// # use toolstead_domain::{category::Category, tool::ToolAnnotations, tool_failure::ToolFailure, tool_result::ToolResult};
/// # use toolstead_infrastructure::builtin::{BuiltInTool, ToolContext, testing::ToolTestHarness};
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
/// #     async fn run(&self, input: Input, _: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
/// #         Ok(ToolResult::text(format!("Hello, {}!", input.name)))
/// #     }
/// # }
/// # let folder = std::env::temp_dir();
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let result = ToolTestHarness::of(Greet, &folder).call("greet", serde_json::json!({"name": "Ada"})).await.unwrap();
/// assert_eq!(result.joined_text(), "Hello, Ada!");
/// # });
/// ```
#[derive(Debug)]
pub struct ToolTestHarness {
    pub(in crate::builtin) world: ToolEnvironment,
    pub(in crate::builtin) tools: InProcessTools,
    pub(in crate::builtin) policy: Arc<PermissionPolicy>,
    pub(in crate::builtin) outputs: InMemoryOutputStore,
    pub(in crate::builtin) journal: Arc<InMemoryChangeJournal>,
    pub(in crate::builtin) principal: Principal,
    pub(in crate::builtin) session: Arc<str>,
    caller: RecordingCaller,
    has_approver: bool,
    asked: Mutex<Vec<Access>>,
    calls: AtomicU32,
}

impl ToolTestHarness {
    /// Returns a run of one tool in a folder, which it may read and write.
    ///
    /// # Panics
    /// As [`of_tools`](Self::of_tools).
    pub fn of<F>(tool: impl IntoTool<F>, folder: impl AsRef<Path>) -> Self {
        Self::of_tools(vec![Box::new(tool.into_tool())], folder)
    }

    /// Returns a run of several tools, such as [`all`](crate::builtin::all), in a folder that they may read and write.
    ///
    /// # Panics
    /// If the folder does not exist, or names of tools are invalid or not unique.
    pub fn of_tools(tools: Vec<Box<dyn AnyTool>>, folder: impl AsRef<Path>) -> Self {
        let root = folder.as_ref().canonicalize().expect("the folder is there");
        let roots = WorkspaceRoots { write: vec![root], ..Default::default() };
        let workspace = Workspace::open(&roots, UserPathAliases::default()).expect("the folder can be opened");
        let journal = Arc::new(InMemoryChangeJournal::new());
        Self::in_environment(
            tools,
            test_environment(workspace).with_journal(journal.clone()),
            PermissionPolicy { roots, ..Default::default() },
            journal,
        )
    }

    pub(in crate::builtin) fn in_environment(
        tools: Vec<Box<dyn AnyTool>>,
        world: ToolEnvironment,
        policy: PermissionPolicy,
        journal: Arc<InMemoryChangeJournal>,
    ) -> Self {
        Self {
            tools: InProcessTools::new(tools, world.clone()).expect("the tools have names of their own"),
            world,
            policy: Arc::new(policy),
            outputs: InMemoryOutputStore::new(),
            journal,
            principal: Principal::local(),
            session: "test".into(),
            caller: RecordingCaller::new(),
            has_approver: true,
            asked: Mutex::default(),
            calls: AtomicU32::new(0),
        }
    }

    /// Returns this run with one more rule, as in `(Effect::Deny, "Read(.env)")`.
    ///
    /// # Panics
    /// If the rule is invalid.
    #[must_use]
    pub fn with_rule(mut self, effect: Effect, rule: &str) -> Self {
        let rule = PermissionRule::parse(effect, rule, RuleOrigin::CommandLine, &PatternContext::default());
        Arc::make_mut(&mut self.policy).rules.push(Arc::new(rule.expect("it is a rule")));
        self
    }

    /// Returns this run without an approver: calls that require approval are refused.
    #[must_use]
    pub fn without_approver(self) -> Self {
        Self { has_approver: false, ..self }
    }

    /// Returns this run with a caller that answers questions.
    #[must_use]
    pub fn with_caller(self, caller: RecordingCaller) -> Self {
        Self { caller, ..self }
    }

    /// Returns this run in another session, optionally of another principal.
    #[must_use]
    pub fn in_session(self, principal: Principal, session: &str) -> Self {
        Self { principal, session: session.into(), ..self }
    }

    /// Returns the caller, which records the messages and questions that it received from calls.
    pub fn caller(&self) -> &RecordingCaller {
        &self.caller
    }

    /// Returns the file changes that calls have recorded.
    pub fn journal(&self) -> &InMemoryChangeJournal {
        &self.journal
    }

    /// Returns the outputs that are stored under handles.
    pub fn outputs(&self) -> &InMemoryOutputStore {
        &self.outputs
    }

    /// Returns the accesses that required approval so far, in order.
    pub fn approval_requests(&self) -> Vec<Access> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the definition of a tool, as clients see it.
    ///
    /// # Panics
    /// If no tool has that name.
    pub fn definition(&self, tool: &str) -> &Tool {
        let found = self.tools.definitions().iter().find(|other| other.name().as_str() == tool);
        found.unwrap_or_else(|| panic!("there is no tool `{tool}`"))
    }

    /// Returns what a call would touch, without a decision by the policy.
    ///
    /// # Errors
    /// The failure of the tool.
    ///
    /// # Panics
    /// If no tool has that name, or the arguments are not an object.
    pub async fn accesses(&self, tool: &str, arguments: Value) -> Result<Vec<Access>, ToolFailure> {
        self.tools.accesses(&self.new_call(Arc::new(self.definition(tool).clone()), object(arguments))).await
    }

    /// Runs a call, from its arguments to its result.
    ///
    /// # Errors
    /// Arguments that do not fit the schema, accesses that are not permitted, and the failure of the tool.
    ///
    /// # Panics
    /// If no tool has that name, the arguments are not an object, or the result breaks the tool's own schema.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<ToolResult, ToolFailure> {
        self.run_call(tool, arguments, TIME, &NoCalls, || ()).await
    }

    /// Runs a call with a timeout.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    ///
    /// # Panics
    /// As [`call`](Self::call).
    pub async fn call_within(&self, time: Duration, tool: &str, arguments: Value) -> Result<ToolResult, ToolFailure> {
        self.run_call(tool, arguments, time, &NoCalls, || ()).await
    }

    /// Passes the [`ToolContext`] of a call of a tool to a function, without a decision on that call. Accesses while it runs
    /// are checked as usual.
    ///
    /// # Panics
    /// If no tool has that name.
    pub async fn with_context<T>(&self, tool: &str, work: impl AsyncFnOnce(&ToolContext<'_>) -> T) -> T {
        self.with_context_and_calls(&NoCalls, tool, work).await
    }

    /// Passes the [`ToolContext`] of a call to a function. The run makes nested calls through `calls`.
    pub(in crate::builtin) async fn with_context_and_calls<T>(
        &self,
        calls: &dyn Calls,
        tool: &str,
        work: impl AsyncFnOnce(&ToolContext<'_>) -> T,
    ) -> T {
        let tool = Arc::new(self.definition(tool).clone());
        let grant = CallPermissions::new(self.policy.clone(), tool.clone(), Vec::new());
        let (call, client) = (self.new_call(tool, Map::new()), client());
        let context = CallContext { calls, ..self.context(&call, &grant, &client, TIME) };
        let run = ToolContext {
            environment: &self.world,
            tools: self.tools.definitions(),
            explained: &[],
            call: &call,
            context: &context,
        };
        work(&run).await
    }

    /// Validates, decides and runs a call of a tool. Nested calls are made through `calls`, and `between` runs after
    /// the permission decision and before the tool.
    pub(in crate::builtin) async fn run_call(
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
        let schema =
            ToolInputSchema::compile(tool.input_schema(), FormatValidation::Asserted).expect("the schema is one");
        schema
            .validate(&Value::Object(arguments.clone()))
            .map_err(|wrong| ToolFailure::new(ErrorKind::InvalidInput, wrong.to_string()))?;
        let tool = Arc::new(tool.clone());
        let call = self.new_call(tool.clone(), arguments);
        let accesses = self.tools.accesses(&call).await?;
        let decision = self.policy.decide(&tool, &call.arguments, &accesses);
        let approved: Vec<Access> = match decision.verdict {
            Verdict::Allow => Vec::new(),
            Verdict::Ask if self.has_approver => decision.asked().cloned().collect(),
            Verdict::Ask | Verdict::Deny => {
                return Err(ToolFailure::new(ErrorKind::PermissionDenied, decision.reason()));
            }
        };
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&approved);
        between();
        let (grant, client) = (CallPermissions::new(self.policy.clone(), tool.clone(), approved), client());
        let context = CallContext { calls, ..self.context(&call, &grant, &client, time) };
        let CallOutcome::Done(result) = self.tools.call(&call, &context).await? else {
            panic!("no tool in Rust asks for input by a retry")
        };
        if let Some(schema) = tool.output_schema() {
            let promised = ToolInputSchema::compile(schema, FormatValidation::Asserted).expect("the schema is one");
            let content = result.structured_content().expect("it promises structured content");
            promised.validate(content).expect("its content fits its schema");
        }
        Ok(result)
    }

    pub(in crate::builtin) fn context<'a>(
        &'a self,
        call: &'a ToolCall,
        grant: &'a CallPermissions,
        client: &'a ClientProfile,
        time: Duration,
    ) -> CallContext<'a> {
        let mut context = CallContext::new(call, grant, client, Instant::now() + time);
        (context.caller, context.outputs) = (&self.caller, &self.outputs);
        context
    }

    /// Returns a call with a new id. Ids sort in the order of the calls.
    pub(in crate::builtin) fn new_call(&self, tool: Arc<Tool>, arguments: Map<String, Value>) -> ToolCall {
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

    /// Returns the id of the latest call.
    pub fn last_call(&self) -> CallId {
        call_id(self.calls.load(Ordering::Relaxed))
    }
}

/// Returns a tool environment whose clock always shows 2026-03-01T12:00:00Z.
pub(in crate::builtin) fn test_environment(workspace: Workspace) -> ToolEnvironment {
    let clock = FixedClock::at(Timestamp(1_772_366_400_000_000));
    ToolEnvironment::new(Arc::new(workspace), Arc::new(clock), "Toolstead test".into())
}

/// Returns the profile of a client that does not use MCP.
pub(in crate::builtin) fn client() -> ClientProfile {
    ClientProfile::without_protocol("test")
}

fn object(arguments: Value) -> Map<String, Value> {
    match arguments {
        Value::Object(arguments) => arguments,
        other => panic!("arguments are a JSON object, and not {other}"),
    }
}
