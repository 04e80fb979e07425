//! Runs of agents against a scripted model: the requests, the calls, the stored events, and the end of a run.

mod budgets;
mod cancelled_runs;
mod compaction;
mod deferral;
mod hooks;
mod offers;
mod properties;
mod subagents;
mod surroundings;
mod turns;

use super::*;
use crate::{
    execute_tool::{CallSettings, ExecuteToolPorts},
    open_calls::OpenCalls,
    permission_book::PermissionBook,
    tool_deferral::ToolDeferral,
    tool_registry::ToolRegistry,
};
use serde_json::{Value, json};
use std::path::PathBuf;
use toolstead_domain::{
    Access, AccessPath, AgentOutcome, Approver, BudgetKind, ConversationEvent, ConversationEventKind,
    DefaultSuggestions, Effect, Image, Message, ModelError, ModelEvent, NoApprover, NoOutputs, PatternContext,
    PermissionPolicy, PermissionRule, Role, StopReason, TokenUsage, ToolArguments, ToolProvider, ToolResult,
    ToolResultBlock, WorkspaceRoots,
    conversation::transcript,
    error_kind::ErrorKind,
    permission::rule::RuleOrigin,
    testing::{
        fixed_clock::FixedClock,
        in_memory_conversations::InMemoryConversations,
        in_memory_execution_log::InMemoryExecutionLog,
        in_memory_rule_store::InMemoryRuleStore,
        in_memory_todos::InMemoryTodos,
        in_memory_tool_repository::InMemoryToolRepository,
        in_process_schema_validator::InProcessSchemaValidator,
        samples,
        scripted_model::{ScriptedAnswer, ScriptedModel},
        scripted_provider::{ScriptedProvider, scripted_tool::ScriptedTool},
    },
};
use uuid::Uuid;

struct House {
    handler: Arc<RunAgentHandler>,
    registry: Arc<ToolRegistry>,
    store: Arc<InMemoryConversations>,
    log: Arc<InMemoryExecutionLog>,
    bus: Arc<EventBus>,
    open_calls: Arc<OpenCalls>,
    conversation: ConversationId,
    todos: Arc<InMemoryTodos>,
}

/// The parts that differ from test to test.
struct Plan {
    rules: Vec<(Effect, &'static str)>,
    approver: Arc<dyn Approver>,
    hooks: Vec<Arc<dyn AgentHook>>,
    deferral: ToolDeferral,
    surroundings: Option<Arc<dyn AgentSurroundings>>,
}

impl Default for Plan {
    fn default() -> Self {
        let deferral = ToolDeferral::never();
        Self { rules: Vec::new(), approver: Arc::new(NoApprover), hooks: Vec::new(), deferral, surroundings: None }
    }
}

impl Plan {
    async fn house(self, provider: Arc<dyn ToolProvider>) -> House {
        let rule = |(effect, text)| {
            Arc::new(PermissionRule::parse(effect, text, RuleOrigin::CommandLine, &PatternContext::default()).unwrap())
        };
        let allowed = ["read", "write", "other", "endless", "slow", "quick"].map(|name| (Effect::Allow, name));
        let policy = Arc::new(PermissionPolicy {
            rules: self.rules.into_iter().chain(allowed).map(rule).collect(),
            roots: WorkspaceRoots { write: vec!["/w".into()], ..Default::default() },
            ..Default::default()
        });
        let clock = Arc::new(FixedClock::at(samples::START));
        let registry = ToolRegistry::new(Arc::new(InMemoryToolRepository::new()), clock.clone()).await.unwrap();
        registry.register(provider).await.unwrap();
        let permissions = Arc::new(PermissionBook::new(policy, Arc::new(InMemoryRuleStore::new())));
        let (events, log) = (EventBus::new(clock.clone()), Arc::new(InMemoryExecutionLog::new()));
        let ports = ExecuteToolPorts {
            approver: self.approver,
            log: log.clone(),
            clock: clock.clone(),
            outputs: Arc::new(NoOutputs),
            schemas: Arc::new(InProcessSchemaValidator::new()),
            hooks: Vec::new(),
            events: events.clone(),
            suggestions: Arc::new(DefaultSuggestions),
        };
        let settings = CallSettings { output_characters: 10_000_000, ..CallSettings::default() };
        let open_calls = OpenCalls::new(32);
        let execute_tool =
            ExecuteToolHandler::new(registry.clone(), permissions.clone(), ports, open_calls.clone(), settings);
        let store = Arc::new(InMemoryConversations::new());
        let todos = Arc::new(InMemoryTodos::new());
        let bus = events.clone();
        let handler = RunAgentHandler::new(RunAgentPorts {
            execute_tool,
            list_tools: Arc::new(ListToolsHandler::new(registry.clone(), permissions).with_deferral(self.deferral)),
            conversations: store.clone(),
            todos: Some(todos.clone()),
            hooks: self.hooks,
            surroundings: self.surroundings,
            events,
            clock,
        });
        let conversation = ConversationId(Uuid::now_v7());
        House { handler, registry, store, log, bus, open_calls, conversation, todos }
    }
}

async fn house() -> House {
    Plan::default().house(Arc::new(provider())).await
}

/// The events of a run, from its beginning to its end.
struct Ran {
    events: Vec<AgentEvent>,
}

impl House {
    fn command(&self, model: &Arc<ScriptedModel>, prompt: &str) -> RunAgentCommand {
        RunAgentCommand::new(self.conversation, model.clone(), prompt)
    }

    async fn ran(&self, command: RunAgentCommand) -> Ran {
        let mut run = self.handler.start(command);
        let mut events = Vec::new();
        while let Some(event) = run.next().await {
            events.push(event);
        }
        Ran { events }
    }

    async fn run(&self, model: &Arc<ScriptedModel>, prompt: &str) -> Ran {
        self.ran(self.command(model, prompt)).await
    }

    async fn events(&self) -> Vec<ConversationEvent> {
        self.store.events(&Principal::local(), self.conversation).await.unwrap()
    }

    /// The messages of the next request.
    async fn messages(&self) -> Vec<Message> {
        transcript::messages(&self.events().await)
    }

    /// The events on record, a line each.
    async fn history(&self) -> Vec<String> {
        self.events().await.iter().map(|event| summary(&event.kind)).collect()
    }
}

impl Ran {
    fn outcome(&self) -> &AgentOutcome {
        match self.events.last() {
            Some(AgentEvent::Ended { outcome, .. }) => outcome,
            other => panic!("the last event is {other:?}"),
        }
    }

    /// The outcome as one line.
    fn end(&self) -> String {
        match self.outcome() {
            AgentOutcome::BudgetExhausted(budget) => format!("budget_exhausted {budget}"),
            AgentOutcome::Stopped(why) | AgentOutcome::Looping(why) => format!("{} {why}", self.outcome().as_str()),
            AgentOutcome::Failed { kind, message } => format!("failed {kind}: {message}"),
            other => other.as_str().to_owned(),
        }
    }

    fn text(&self) -> &str {
        match self.events.last() {
            Some(AgentEvent::Ended { text, .. }) => text,
            other => panic!("the last event is {other:?}"),
        }
    }

    fn notices(&self) -> Vec<&str> {
        let notices = self.events.iter().filter_map(|event| match event {
            AgentEvent::Notice(text) => Some(text.as_str()),
            _ => None,
        });
        notices.collect()
    }
}

fn summary(kind: &ConversationEventKind) -> String {
    match kind {
        ConversationEventKind::UserSaid { blocks } => format!("user: {}", words(blocks)),
        ConversationEventKind::ModelAnswered { blocks, stop, .. } => {
            format!("model {}: {}", stop.map_or("-", StopReason::as_str), words(blocks))
        }
        ConversationEventKind::CallEnded { result, call, .. } => format!(
            "{} {}{}: {}",
            if result.is_error { "error" } else { "result" },
            result.id,
            if call.is_some() { "" } else { " (never made)" },
            words(&result.content)
        ),
        ConversationEventKind::Compacted { kept_from, .. } => format!("compacted from {kept_from}"),
        ConversationEventKind::Masked { events } => format!("masked {events:?}"),
        ConversationEventKind::TurnEnded { outcome, .. } => format!("end: {outcome}"),
        other => format!("{other:?}"),
    }
}

fn words(blocks: &[Block]) -> String {
    let words = blocks.iter().map(|block| match block {
        Block::Text { text } => text.clone(),
        Block::Image(image) => format!("<{}>", image.media_type),
        Block::ToolUse(call) => format!("{}={}", call.id, call.name),
        other => format!("{other:?}"),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Checks the order of messages that providers require.
#[track_caller]
fn check_is_sendable(messages: &[Message]) {
    let shown = || format!("{messages:#?}");
    assert_eq!(messages.first().map(|message| message.role), Some(Role::User), "{}", shown());
    for (at, message) in messages.iter().enumerate() {
        assert!(!message.blocks.is_empty(), "{}", shown());
        let results: Vec<&str> = message
            .blocks
            .iter()
            .map_while(|block| match block {
                Block::ToolResult(result) => Some(result.id.as_str()),
                _ => None,
            })
            .collect();
        let all = message.blocks.iter().filter(|block| matches!(block, Block::ToolResult(_))).count();
        assert_eq!(results.len(), all, "results stand first: {}", shown());
        let calls: Vec<&str> = match at.checked_sub(1) {
            Some(before) => messages[before].tool_uses().map(|call| call.id.as_str()).collect(),
            None => Vec::new(),
        };
        assert_eq!(results, calls, "each call has its result: {}", shown());
        assert!(at == 0 || messages[at - 1].role != message.role, "they speak in turn: {}", shown());
    }
    let open = messages.last().map(|message| message.tool_uses().count());
    assert_eq!(open, Some(0), "{}", shown());
}

fn reading(path: &str) -> Vec<Access> {
    vec![Access::ReadPath(AccessPath::plain(PathBuf::from(path)))]
}

fn writing(path: &str) -> Vec<Access> {
    vec![Access::WritePath(AccessPath::plain(PathBuf::from(path)))]
}

fn provider() -> ScriptedProvider {
    ScriptedProvider::new("built-in")
        .with(ScriptedTool::named("echo").answers(ToolResult::text("hi")))
        .with(ScriptedTool::named("other").answers(ToolResult::text("ho")))
        .with(ScriptedTool::named("read").touches(reading("/w/a")).answers(ToolResult::text("content")))
        .with(ScriptedTool::named("write").touches(writing("/w/a")).answers(ToolResult::text("written")))
        .with(ScriptedTool::named("outside").touches(writing("/etc/a")).answers(ToolResult::text("written")))
        .with(ScriptedTool::named("broken").fails(ErrorKind::Io, "the disk is gone"))
        .with(ScriptedTool::named("bomb").panics("boom"))
        .with(ScriptedTool::named("endless").touches(reading("/w/b")).never_ends())
}

fn model(answers: impl IntoIterator<Item = ScriptedAnswer>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::answering(answers))
}

fn call(id: &str, tool: &str) -> ScriptedAnswer {
    ScriptedAnswer::call(id, tool, json!({}))
}

fn text(text: &str) -> ScriptedAnswer {
    ScriptedAnswer::text(text)
}
