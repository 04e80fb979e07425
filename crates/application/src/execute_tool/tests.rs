//! Tests of calls from outside: the answer, the executed tool calls, and the audit records.

mod auto_approval_rules;
mod calls;
mod decisions;
mod dialect_adapters;
mod hooks;
mod interplay;
mod mocked;
mod nesting;
mod outputs;
mod questions;
mod records;
mod registry;
mod restricted_views;
mod retries;
mod schemas;
mod scopes;
mod search;
mod views;
mod written_rules;

use super::{explain::ExplainCallQuery, *};
use crate::{
    cancel_signal::CancelSignal,
    event_bus::{EventBus, EventSubscription},
    list_tools::{InvalidCursor, ListToolsHandler, ListToolsQuery, PageLimit, ToolFilter},
    open_calls::OpenCallGuard,
};
use async_trait::async_trait;
use serde_json::{Map, json};
use std::{
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use toolstead_domain::{
    Access, AccessPath, AfterCallResponse, Alias, ApprovalOutcome, ApprovalRequest, ApprovalScope, Approver,
    AuditedRequestKind, Availability, BeforeCallResponse, Caller, CancelReason, Category, ClientProfile, Clock,
    CommandAccess, DefaultSuggestions, DefinitionChange, Dialect, Effect, EndedCall, ExecutionLog, ExecutionOutcome,
    HookVerdict, InputRequest, InputResponse, NoApprover, NoOutputs, OutputHandle, OutputReaderParameters, OutputStore,
    PatternContext, PermissionPolicy, PermissionRule, Principal, Progress, ProviderIdentity, ProviderState,
    ReadOnlyCommands, RequestScope, RuleStore, SchemaValidationError, SchemaValidator, ServerName, StoreError,
    StoredContent, StoredOutput, StoredToolCatalogue, Timestamp, Tool, ToolCall, ToolExecution, ToolFailure, ToolHook,
    ToolName, ToolProvider, ToolRepository, ToolResult, ToolSource, Verdict, WorkspaceRoots,
    alias::Rewrite,
    error_kind::ErrorKind,
    permission::rule::RuleOrigin,
    testing::{
        fixed_clock::FixedClock,
        in_memory_execution_log::InMemoryExecutionLog,
        in_memory_output_store::InMemoryOutputStore,
        in_memory_rule_store::InMemoryRuleStore,
        in_memory_tool_repository::InMemoryToolRepository,
        in_process_schema_validator::InProcessSchemaValidator,
        samples,
        scripted_approver::ScriptedApprover,
        scripted_provider::{
            ObservedCallEnd, ScriptedProvider,
            scripted_tool::{Ending, ScriptedTool},
        },
    },
};

struct House {
    handler: Arc<ExecuteToolHandler>,
    provider: Arc<ScriptedProvider>,
    log: Arc<InMemoryExecutionLog>,
    registry: Arc<ToolRegistry>,
    permissions: Arc<PermissionBook>,
    open_calls: Arc<OpenCalls>,
    events: Arc<EventBus>,
}

/// Configuration of a test.
struct Plan {
    rules: Vec<(Effect, &'static str)>,
    approver: Arc<dyn Approver>,
    hooks: Vec<Arc<dyn ToolHook>>,
    outputs: Arc<dyn OutputStore>,
    schemas: Arc<dyn SchemaValidator>,
    settings: CallSettings,
    store: Arc<dyn RuleStore>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            approver: Arc::new(NoApprover),
            hooks: Vec::new(),
            outputs: Arc::new(NoOutputs),
            schemas: Arc::new(InProcessSchemaValidator::new()),
            settings: CallSettings::default(),
            store: Arc::new(InMemoryRuleStore::new()),
        }
    }
}

impl Plan {
    async fn house(self, provider: ScriptedProvider) -> House {
        let (provider, log) = (Arc::new(provider), Arc::new(InMemoryExecutionLog::new()));
        let Built { handler, registry, permissions, open_calls, events } =
            self.built(provider.clone(), log.clone()).await;
        House { handler, provider, log, registry, permissions, open_calls, events }
    }

    async fn built(self, provider: Arc<dyn ToolProvider>, log: Arc<dyn ExecutionLog>) -> Built {
        let rule = |(effect, text)| {
            Arc::new(PermissionRule::parse(effect, text, RuleOrigin::CommandLine, &PatternContext::default()).unwrap())
        };
        let policy = Arc::new(PermissionPolicy {
            rules: self.rules.into_iter().map(rule).collect(),
            roots: WorkspaceRoots { write: vec!["/w".into()], ..Default::default() },
            ..Default::default()
        });
        let clock = Arc::new(FixedClock::at(Timestamp(1)));
        let registry = ToolRegistry::new(Arc::new(InMemoryToolRepository::new()), clock.clone()).await.unwrap();
        registry.register(provider).await.unwrap();
        let open_calls = OpenCalls::new(8);
        let events = EventBus::new(clock.clone());
        let ports = ExecuteToolPorts {
            approver: self.approver,
            log,
            clock,
            outputs: self.outputs,
            schemas: self.schemas,
            hooks: self.hooks,
            events: events.clone(),
            suggestions: Arc::new(DefaultSuggestions),
        };
        let read_only = ReadOnlyCommands::new(&["ls *", "cat *", "wc *", "git status *"]);
        let permissions = Arc::new(PermissionBook::new(policy, self.store).with_read_only_commands(read_only));
        let handler =
            ExecuteToolHandler::new(registry.clone(), permissions.clone(), ports, open_calls.clone(), self.settings);
        Built { handler, registry, permissions, open_calls, events }
    }
}

/// Handler with its registry and ports.
struct Built {
    handler: Arc<ExecuteToolHandler>,
    registry: Arc<ToolRegistry>,
    permissions: Arc<PermissionBook>,
    open_calls: Arc<OpenCalls>,
    events: Arc<EventBus>,
}

fn command(tool: &str, arguments: Value) -> ExecuteToolCommand {
    ExecuteToolCommand::new(tool, arguments).within(RequestScope::of(Principal::local(), "s"))
}

impl House {
    /// Returns the answer's text, or the error as `class kind: message`.
    async fn call(&self, tool: &str, arguments: Value) -> String {
        match self.handler.handle(command(tool, arguments)).await {
            Ok(CallOutcome::Done(result)) => result.joined_text(),
            Ok(CallOutcome::InputRequired(_)) => "input required".into(),
            Err(ExecuteToolError::NotCallable(failure)) => format!("not callable {}: {}", failure.kind, failure.text()),
            Err(ExecuteToolError::Refused(failure)) => format!("refused {}: {}", failure.kind, failure.text()),
            Err(ExecuteToolError::Failed(failure)) => format!("failed {}: {}", failure.kind, failure.text()),
            Err(other) => other.to_string(),
        }
    }

    /// Returns the audit records except those of questions.
    fn calls_on_record(&self) -> Vec<ToolExecution> {
        let is_call = |row: &ToolExecution| row.kind != AuditedRequestKind::Question;
        self.log.rows().into_iter().filter(is_call).collect()
    }

    fn only_row(&self) -> ToolExecution {
        let rows = self.calls_on_record();
        assert_eq!(rows.len(), 1, "{rows:#?}");
        rows.into_iter().next().unwrap()
    }
}

fn write(path: &str) -> Vec<Access> {
    vec![Access::WritePath(AccessPath::plain(PathBuf::from(path)))]
}

fn tool_with_schema(name: &str, schema: Value) -> Tool {
    let definition = json!({"name": name, "inputSchema": schema}).as_object().unwrap().clone();
    Tool::new(samples::tool(name).name().clone(), definition, Category::Utility, ToolSource::BuiltIn)
}

/// Returns a tool that sends something.
fn send() -> ScriptedTool {
    ScriptedTool::named("send").touches(vec![Access::Send("a@b.c".into())]).answers(ToolResult::text("sent"))
}

/// Returns a tool with a command that no rule can match.
fn opaque() -> ScriptedTool {
    let command = CommandAccess::opaque("$(x)", "a substitution");
    ScriptedTool::named("opaque").touches(vec![Access::RunCommand(command)]).answers(ToolResult::text("ran"))
}

fn provider() -> ScriptedProvider {
    let strict = json!({"type": "object", "required": ["path"], "additionalProperties": false,
                        "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}});
    let mut read = tool_with_schema("read", strict);
    read.aliases = vec![Alias::new("Read", Dialect("other"), &[Rewrite::Rename("file_path", "path")])];
    read.reads_outputs = Some(OutputReaderParameters::lines("path", "offset"));
    let mut away = samples::tool("away");
    away.availability = Availability::Unavailable("the key is missing".into());
    ScriptedProvider::new("built-in")
        .with(ScriptedTool::named("echo").answers(ToolResult::text("hi")))
        .with(ScriptedTool::of(read).answers(ToolResult::text("content")))
        .with(ScriptedTool::of(away))
        .with(ScriptedTool::named("write").touches(write("/w/a")).answers(ToolResult::text("written")))
        .with(ScriptedTool::named("outside").touches(write("/etc/a")).answers(ToolResult::text("written")))
        .with(ScriptedTool::named("broken").fails(ErrorKind::Io, "the disk is gone"))
        .with(ScriptedTool::named("bomb").panics("boom"))
        .with(ScriptedTool::named("endless").touches(write("/w/a")).never_ends())
        .with(ScriptedTool::named("long").answers(ToolResult::text("x".repeat(50_000))))
}
