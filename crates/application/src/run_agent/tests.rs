//! Runs of agents against a scripted model: what is sent, what is called, what is kept, and how a run ends.

use super::*;
use crate::{
    execute_tool::{CallSettings, ExecuteToolPorts},
    open_calls::OpenCalls,
    permission_book::PermissionBook,
    tool_registry::ToolRegistry,
};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Mutex;
use toolstead_domain::{
    access::{Access, PathAccess},
    agent::event::AgentOutcome,
    conversation::{
        Conversation,
        event::{ConversationEvent, ConversationEventKind},
    },
    permission::{
        path_pattern::PatternBase,
        policy::PermissionPolicy,
        remedy::PlainWords,
        rule::{Effect, PermissionRule, RuleOrigin},
    },
    ports::{
        approver::Unattended, clock::Timestamp, conversation_store::AppendError, output_store::NoOutputs,
        tool_repository::StoreError,
    },
    testing::{
        fixed_clock::FixedClock,
        in_memory_execution_log::InMemoryExecutionLog,
        in_memory_rule_store::InMemoryRuleStore,
        in_memory_tool_repository::InMemoryToolRepository,
        scripted_model::{ScriptedAnswer, ScriptedModel},
        scripted_provider::{ScriptedProvider, scripted_tool::ScriptedTool},
        scripted_schema_validator::ScriptedSchemaValidator,
    },
    tool_result::ToolResult,
    workspace_roots::WorkspaceRoots,
};
use uuid::Uuid;

#[derive(Default)]
struct Kept(Mutex<Vec<(Conversation, Vec<ConversationEvent>)>>);

#[async_trait]
impl ConversationStore for Kept {
    async fn begin(&self, conversation: &Conversation) -> Result<(), StoreError> {
        self.0.lock().unwrap().push((conversation.clone(), Vec::new()));
        Ok(())
    }

    async fn append(
        &self,
        _: &Principal,
        id: ConversationId,
        expected: u64,
        at: Timestamp,
        events: Vec<ConversationEventKind>,
    ) -> Result<u64, AppendError> {
        let mut kept = self.0.lock().unwrap();
        let (_, log) = kept.iter_mut().find(|one| one.0.id == id).ok_or(AppendError::NotFound(id))?;
        if log.len() as u64 != expected {
            return Err(AppendError::GoesOnElsewhere { found: log.len() as u64, expected });
        }
        for kind in events {
            log.push(ConversationEvent { number: log.len() as u64 + 1, at, kind });
        }
        Ok(log.len() as u64)
    }

    async fn find(&self, _: &Principal, id: ConversationId) -> Result<Option<Conversation>, StoreError> {
        Ok(self.0.lock().unwrap().iter().find(|one| one.0.id == id).map(|one| one.0.clone()))
    }

    async fn events(&self, _: &Principal, id: ConversationId) -> Result<Vec<ConversationEvent>, StoreError> {
        Ok(self.0.lock().unwrap().iter().find(|one| one.0.id == id).map(|one| one.1.clone()).unwrap_or_default())
    }

    async fn latest(&self, _: &Principal, _: usize) -> Result<Vec<Conversation>, StoreError> {
        Ok(Vec::new())
    }
}

#[tokio::test]
async fn a_model_is_asked_until_it_calls_nothing() {
    let provider = ScriptedProvider::new("built-in")
        .with(ScriptedTool::named("echo").answers(ToolResult::text("hi")))
        .with(ScriptedTool::named("write").touches(vec![Access::WritePath(PathAccess::plain("/w/a"))]));
    let clock = Arc::new(FixedClock::at(Timestamp(1)));
    let registry = ToolRegistry::new(Arc::new(InMemoryToolRepository::new()), clock.clone()).await.unwrap();
    registry.register(Arc::new(provider)).await.unwrap();
    let rule = PermissionRule::parse(Effect::Allow, "echo", RuleOrigin::CommandLine, &PatternBase::default()).unwrap();
    let policy = Arc::new(PermissionPolicy {
        rules: vec![Arc::new(rule)],
        roots: WorkspaceRoots { write: vec!["/w".into()], ..Default::default() },
        ..Default::default()
    });
    let permissions = Arc::new(PermissionBook::new(policy, Arc::new(InMemoryRuleStore::new())));
    let events = EventBus::new(clock.clone());
    let ports = ExecuteToolPorts {
        approver: Arc::new(Unattended),
        log: Arc::new(InMemoryExecutionLog::new()),
        clock: clock.clone(),
        outputs: Arc::new(NoOutputs),
        schemas: Arc::new(ScriptedSchemaValidator::new()),
        hooks: Vec::new(),
        events: events.clone(),
        words: Arc::new(PlainWords),
    };
    let execute_tool = ExecuteToolHandler::new(
        registry.clone(),
        permissions.clone(),
        ports,
        OpenCalls::new(8),
        CallSettings::default(),
    );
    let store = Arc::new(Kept::default());
    let handler = RunAgentHandler::new(RunAgentPorts {
        execute_tool,
        list_tools: Arc::new(ListToolsHandler::new(registry, permissions)),
        conversations: store.clone(),
        hooks: Vec::new(),
        events,
        clock,
    });
    let model = Arc::new(ScriptedModel::answering([
        ScriptedAnswer::call("c1", "echo", json!({})),
        ScriptedAnswer::text("done"),
    ]));
    let id = ConversationId(Uuid::now_v7());
    let mut run = handler.start(RunAgentCommand::new(id, model.clone(), "go"));
    let mut heard = Vec::new();
    while let Some(event) = run.next().await {
        heard.push(event.to_json());
    }
    let kinds: Vec<&str> = heard.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        ["started", "call_written", "answered", "call_started", "call_ended", "text", "text", "answered", "ended"]
    );
    let _: (Option<AgentOutcome>, Value) = (None, Value::Null);
    assert_eq!(model.requests()[1].messages.len(), 3);
}
