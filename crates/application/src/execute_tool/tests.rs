//! The path of a call from outside: what comes back, what was run, and what is on record.

use super::{explain::ExplainCallQuery, *};
use crate::event_bus::EventSubscription;
use crate::list_tools::{InvalidCursor, ListToolsHandler, ListToolsQuery, PageSize, ToolFilter};
use async_trait::async_trait;
use serde_json::json;
use std::{
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
};
use toolstead_domain::{
    access::PathAccess,
    alias::{Alias, Dialect, Rewrite},
    category::Category,
    permission::{
        decision::Verdict,
        path_pattern::PatternBase,
        rule::{Effect, PermissionRule, RuleOrigin},
    },
    ports::{
        approver::{Approval, ApprovalRequest, ApprovalScope, Unattended},
        caller::{InputRequest, InputResponse, Progress, SilentCaller},
        clock::Timestamp,
        output_store::{NoOutputs, OutputHandle, OutputStore, StoredContent, StoredOutput},
        rule_store::RuleStore,
        schema_validator::NotValidated,
        tool_hook::{AfterCall, BeforeCall, EndedCall, HookVerdict},
        tool_provider::{ProviderIdentity, ProviderState, ToolProvider},
        tool_repository::{Catalogue, DefinitionChange, StoreError, ToolRepository},
    },
    server_name::ServerName,
    testing::{
        fixed_clock::FixedClock,
        in_memory_execution_log::InMemoryExecutionLog,
        in_memory_output_store::InMemoryOutputStore,
        in_memory_rule_store::InMemoryRuleStore,
        in_memory_tool_repository::InMemoryToolRepository,
        samples,
        scripted_approver::ScriptedApprover,
        scripted_provider::{
            CallEnd, ScriptedProvider,
            scripted_tool::{Ending, ScriptedTool},
        },
        scripted_schema_validator::ScriptedSchemaValidator,
    },
    tool::{Availability, ToolSource},
    tool_execution::{Outcome, ToolExecution},
    tool_name::ToolName,
    tool_result::ToolResult,
    workspace_roots::WorkspaceRoots,
};

struct House {
    handler: Arc<ExecuteToolHandler>,
    provider: Arc<ScriptedProvider>,
    log: Arc<InMemoryExecutionLog>,
    registry: Arc<ToolRegistry>,
    policy: Arc<PermissionPolicy>,
    open_calls: Arc<OpenCalls>,
    events: Arc<EventBus>,
}

/// What differs from test to test.
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
            approver: Arc::new(Unattended),
            hooks: Vec::new(),
            outputs: Arc::new(NoOutputs),
            schemas: Arc::new(ScriptedSchemaValidator::new()),
            settings: CallSettings::default(),
            store: Arc::new(InMemoryRuleStore::new()),
        }
    }
}

impl Plan {
    async fn house(self, provider: ScriptedProvider) -> House {
        let rule = |(effect, text)| {
            Arc::new(PermissionRule::parse(effect, text, RuleOrigin::CommandLine, &PatternBase::default()).unwrap())
        };
        let policy = Arc::new(PermissionPolicy {
            rules: self.rules.into_iter().map(rule).collect(),
            roots: WorkspaceRoots { write: vec!["/w".into()], ..Default::default() },
            ..Default::default()
        });
        let (provider, log) = (Arc::new(provider), Arc::new(InMemoryExecutionLog::new()));
        let clock = Arc::new(FixedClock::at(Timestamp(1)));
        let registry = ToolRegistry::new(Arc::new(InMemoryToolRepository::new()), clock.clone()).await.unwrap();
        registry.register(provider.clone()).await.unwrap();
        let open_calls = OpenCalls::new(8);
        let events = EventBus::new(clock.clone());
        let ports = ExecuteToolPorts {
            approver: self.approver,
            log: log.clone(),
            clock,
            outputs: self.outputs,
            schemas: self.schemas,
            hooks: self.hooks,
            events: events.clone(),
        };
        let permissions = Arc::new(PermissionBook::new(policy.clone(), self.store));
        let handler = ExecuteToolHandler::new(registry.clone(), permissions, ports, open_calls.clone(), self.settings);
        House { handler, provider, log, registry, policy, open_calls, events }
    }
}

fn command(tool: &str, arguments: Value) -> ExecuteToolCommand {
    ExecuteToolCommand {
        tool: tool.into(),
        arguments,
        meta: Map::new(),
        principal: Principal::local(),
        session: "s".into(),
        client: Arc::new(ClientProfile::without_protocol("test")),
        caller: Arc::new(SilentCaller),
        answers: None,
        request_state: None,
        timeout: None,
        cancel: CancelSignal::new(),
    }
}

impl House {
    /// The answer's text, or the error as `class kind: message`.
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

    fn only_row(&self) -> ToolExecution {
        let rows = self.log.rows();
        assert_eq!(rows.len(), 1, "{rows:#?}");
        rows.into_iter().next().unwrap()
    }
}

fn write(path: &str) -> Vec<Access> {
    vec![Access::WritePath(PathAccess::plain(PathBuf::from(path)))]
}

fn tool_with_schema(name: &str, schema: Value) -> Tool {
    let definition = json!({"name": name, "inputSchema": schema}).as_object().unwrap().clone();
    Tool::new(samples::tool(name).name().clone(), definition, Category::Utility, ToolSource::BuiltIn)
}

fn provider() -> ScriptedProvider {
    let strict = json!({"type": "object", "required": ["path"], "additionalProperties": false,
                        "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}});
    let mut read = tool_with_schema("read", strict);
    read.aliases =
        vec![Alias { name: "Read", dialect: Dialect::ClaudeCode, rewrites: &[Rewrite::Rename("file_path", "path")] }];
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

#[tokio::test]
async fn a_call_answers_and_is_on_record() {
    let house = Plan::default().house(provider()).await;
    assert_eq!(house.call("echo", json!({"a": 1})).await, "hi");
    let row = house.only_row();
    assert_eq!((row.tool.as_str(), &row.outcome, row.ended), ("echo", &Outcome::Succeeded, Some(Timestamp(1))));
    assert_eq!((row.arguments, row.source.as_str()), (json!({"a": 1}), "built-in"));
    assert_eq!(row.decision.unwrap().reason, "calls that touch nothing are allowed by default");
}

#[tokio::test]
async fn what_is_not_there_is_told_with_what_is() {
    let house = Plan::default().house(provider()).await;
    assert_eq!(house.call("ecko", json!({})).await, "not callable not_found: Unknown tool: ecko. Did you mean `echo`?");
    assert!(
        house
            .call("Echo!", json!({}))
            .await
            .starts_with("not callable not_found: Unknown tool: Echo! Did you mean `echo`?")
    );
    assert_eq!(
        house.call("away", json!({})).await,
        "not callable unavailable: the tool `away` is unavailable here: the key is missing"
    );
    house.registry.set_enabled("echo", false).await.unwrap();
    assert!(house.call("echo", json!({})).await.starts_with("not callable disabled: the tool `echo` is switched off."));
    assert!(
        house
            .call("read", json!([1]))
            .await
            .starts_with("not callable invalid_input: `arguments` must be a JSON object, got [1]")
    );
    assert_eq!(house.provider.calls().len(), 0);
    let kinds: Vec<_> = house.log.rows().iter().filter_map(|row| row.outcome.error_kind()).collect();
    assert_eq!(kinds.len(), 5, "every refusal is on record");
}

#[tokio::test]
async fn arguments_are_renamed_repaired_and_validated_before_the_provider_sees_them() {
    let house = Plan::default().house(provider()).await;
    assert_eq!(house.call("Read", json!({"file_path": "a", "limit": "10"})).await, "content");
    let seen = &house.provider.calls()[0];
    assert_eq!(Value::Object(seen.arguments.clone()), json!({"limit": 10, "path": "a"}));
    assert_eq!((seen.called_as.as_str(), house.log.rows()[0].tool.as_str()), ("Read", "read"));
    assert_eq!(
        house.call("read", json!({"pth": "a", "limit": "x"})).await,
        "refused invalid_input: The arguments do not fit the tool `read`:\n\
         the arguments: expected only known properties; did you mean `path` for `pth`?, got the unknown `pth`\n\
         the arguments: expected the property \"path\", got nothing\n\
         /limit: expected an integer, got \"x\"\nCorrect them and call again."
    );
    assert_eq!(house.provider.calls().len(), 1);
}

#[tokio::test]
async fn what_no_rule_allows_does_not_run_and_the_refusal_teaches() {
    let house = Plan::default().house(provider()).await;
    let told = house.call("write", json!({})).await;
    assert!(told.starts_with("refused permission_denied: The call of `write` is not permitted: changes of files are asked about by default: to write /w/a. Nobody can be asked here."), "{told}");
    assert!(told.contains("--allow 'Write(//w/a)'"), "{told}");
    let told = house.call("outside", json!({})).await;
    assert!(told.contains("outside of the workspace's roots") && told.contains("--root DIR"), "{told}");
    assert_eq!(house.provider.calls().len(), 0);
    assert!(house.log.rows().iter().all(|row| matches!(row.outcome, Outcome::Refused(ErrorKind::PermissionDenied, _))));
}

#[tokio::test]
async fn the_row_of_a_call_and_its_refusal_tell_what_decided_on_each_part() {
    let house = Plan { rules: vec![(Effect::Deny, "Write(a)")], ..Default::default() }.house(provider()).await;
    let outcome = house.handler.handle(command("write", json!({}))).await;
    let Err(ExecuteToolError::Refused(failure)) = outcome else { panic!("{outcome:?}") };
    let trace = house.log.rows()[0].decision.clone().unwrap().trace;
    assert_eq!(
        trace,
        json!([{
            "verdict": "deny", "part": "write /w/a", "cause": "the deny rule `Write(a)` in the command line",
            "rule": "Write(a)", "origin": "the command line",
        }])
    );
    assert_eq!(failure.data["decision"], trace);
}

#[tokio::test]
async fn a_call_is_explained_as_it_would_be_decided_and_nothing_happens() {
    let house = Plan { rules: vec![(Effect::Ask, "echo")], ..Default::default() }.house(provider()).await;
    let verdict = async |tool: &str| {
        let explained = house.handler.explain(ExplainCallQuery::local(tool, json!({}))).await;
        explained.map(|explained| explained.decision.verdict).map_err(|error| error.kind())
    };
    assert_eq!(verdict("write").await, Ok(Verdict::Ask));
    assert_eq!(verdict("echo").await, Ok(Verdict::Ask));
    assert_eq!(verdict("outside").await, Ok(Verdict::Deny));
    assert_eq!(verdict("nonsense").await, Err(ErrorKind::NotFound));
    assert!(house.provider.calls().is_empty() && house.log.rows().is_empty());
}

#[tokio::test]
async fn a_denying_rule_hides_a_tool_and_refuses_its_call() {
    let house = Plan { rules: vec![(Effect::Deny, "echo")], ..Default::default() }.house(provider()).await;
    let list = ListToolsHandler::new(house.registry.clone(), house.policy.clone());
    let page = list.handle(&ListToolsQuery::default()).unwrap();
    assert!(page.tools.iter().all(|one| !matches!(one.tool.name().as_str(), "echo" | "away")));
    let told = house.call("echo", json!({})).await;
    assert!(told.contains("the deny rule `echo` in the command line") && told.contains("change `echo`"), "{told}");
}

#[tokio::test]
async fn a_person_may_say_yes_or_no_and_the_record_says_who() {
    let denied = Approval::Denied { by: "ann".into() };
    let approver = ScriptedApprover::answering([Approval::once("ann"), denied, Approval::TimedOut]);
    let house = Plan { approver: Arc::new(approver), ..Default::default() }.house(provider()).await;
    assert_eq!(house.call("write", json!({})).await, "written");
    assert_eq!(
        house.call("write", json!({})).await,
        "refused permission_denied: The call of `write` was refused by ann."
    );
    assert!(house.call("write", json!({})).await.starts_with("refused approval_timeout"));
    let rows = house.log.rows();
    let approved: Vec<_> = rows.iter().map(|row| row.decision.clone().unwrap().approved_by).collect();
    assert_eq!(approved, [Some("ann".to_owned()), Some("ann".into()), None]);
    assert_eq!(house.provider.calls().len(), 1);
}

#[tokio::test]
async fn failures_and_panics_become_answers() {
    let house = Plan::default().house(provider()).await;
    assert_eq!(house.call("broken", json!({})).await, "failed io: the disk is gone");
    assert_eq!(house.call("bomb", json!({})).await, "failed internal: the tool `bomb` failed unexpectedly");
    assert_eq!(house.call("echo", json!({})).await, "hi");
    assert_eq!(house.log.rows().len(), 3);
}

#[tokio::test]
async fn a_call_that_can_change_something_is_on_record_before_it_runs() {
    let house = Plan { rules: vec![(Effect::Allow, "Write")], ..Default::default() }.house(provider()).await;
    let calling = tokio::spawn({
        let handler = house.handler.clone();
        async move { handler.handle(command("endless", json!({}))).await }
    });
    house.provider.began(1).await;
    assert_eq!(house.only_row().outcome, Outcome::Running);
    // The caller goes away: the provider's future is dropped, the row is finished all the same.
    calling.abort();
    house.provider.ended(1).await;
    house.open_calls.drained().await;
    assert_eq!(house.provider.ends()[0].1, CallEnd::Dropped);
    assert_eq!(wait_for_end(&house).await.outcome, Outcome::Cancelled(CancelReason::Client));
}

/// The only row, once it is final: it is written just after the call is closed.
async fn wait_for_end(house: &House) -> ToolExecution {
    loop {
        let row = house.only_row();
        if row.outcome.is_final() {
            return row;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_call_that_cannot_be_recorded_does_not_run_or_keeps_its_result_and_says_which() {
    let house = Plan { rules: vec![(Effect::Allow, "Write")], ..Default::default() }.house(provider()).await;
    house.log.fail_next_record();
    assert_eq!(house.call("write", json!({})).await, "the call did not run: its start cannot be recorded");
    assert_eq!(house.provider.calls().len(), 0, "it did not run");
    house.log.fail_next_record();
    let told = "the call ran and succeeded, but its outcome could not be recorded, so its result is withheld";
    assert_eq!(house.call("echo", json!({})).await, told);
    assert_eq!(house.provider.calls().len(), 1, "it ran, and its result is withheld");
    // A disk that stays full: what was met first is told, and not that the row of the failure failed as well.
    house.log.be_full(true);
    for (tool, told) in [
        ("write", "the call did not run: its start cannot be recorded"),
        ("nothing", "the call was refused and did not run, and that could not be recorded"),
    ] {
        assert_eq!(house.call(tool, json!({})).await, told);
    }
    assert_eq!(house.provider.calls().len(), 1, "nothing ran");
    assert!(house.handler.can_record().await.is_err());
    house.log.be_full(false);
    assert!(house.handler.can_record().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_call_past_its_deadline_is_dropped_after_a_grace() {
    let house = Plan { rules: vec![(Effect::Allow, "Write")], ..Default::default() }.house(provider()).await;
    let mut late = command("endless", json!({}));
    late.timeout = Some(Duration::from_secs(5));
    let error = house.handler.handle(late).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(house.provider.ends()[0].1, CallEnd::Dropped);
    assert!(matches!(house.only_row().outcome, Outcome::Failed(ErrorKind::Timeout, _)));
}

#[tokio::test]
async fn a_cancelled_call_stops_with_its_reason() {
    let house = Plan { rules: vec![(Effect::Allow, "Write")], ..Default::default() }.house(provider()).await;
    for reason in [CancelReason::Client, CancelReason::Shutdown] {
        let call = command("endless", json!({}));
        let cancel = call.cancel.clone();
        let calling = tokio::spawn({
            let handler = house.handler.clone();
            async move { handler.handle(call).await }
        });
        house.provider.began(house.provider.ends().len() as u64 + 1).await;
        cancel.cancel(reason);
        let error = calling.await.unwrap().unwrap_err();
        assert!(matches!(error, ExecuteToolError::Cancelled(told) if told == reason), "{error}");
    }
}

#[tokio::test]
async fn too_many_calls_at_once_are_refused() {
    let house = Plan { rules: vec![(Effect::Allow, "Write")], ..Default::default() }.house(provider()).await;
    let mut calls = Vec::new();
    for _ in 0..8 {
        let handler = house.handler.clone();
        calls.push(tokio::spawn(async move { handler.handle(command("endless", json!({}))).await }));
    }
    house.provider.began(8).await;
    assert!(house.call("echo", json!({})).await.starts_with("refused rate_limited: 8 calls are open already"));
    house.open_calls.close();
    house.open_calls.cancel_all(CancelReason::Shutdown);
    for call in calls {
        assert!(call.await.unwrap().is_err());
    }
    assert!(house.call("echo", json!({})).await.contains("cancelled (shutdown)"));
}

#[tokio::test]
async fn output_over_the_budget_is_cut_and_says_so() {
    let house = Plan::default().house(provider()).await;
    let text = house.call("long", json!({})).await;
    assert!(
        text.chars().count() <= 30_000
            && text.contains(" of 50000 characters (within line 1) are left out here; it is not kept"),
        "{}",
        text.len()
    );
    assert_eq!(house.only_row().outcome, Outcome::Succeeded);
}

#[tokio::test]
async fn what_is_cut_is_stored_once_and_whole_and_the_cut_names_its_handle() {
    let outputs = Arc::new(InMemoryOutputStore::new());
    let house = Plan { outputs: outputs.clone(), ..Default::default() }.house(provider()).await;
    assert!(house.call("long", json!({})).await.contains("all of it is `o1`: read_file {\"path\": \"o1\""));
    assert_eq!(house.call("echo", json!({})).await, "hi");
    assert_eq!(outputs.len(), 1);
}

/// Takes a text and no other parameter.
fn keep_text() -> ScriptedTool {
    let schema = json!({"type": "object", "required": ["text"], "additionalProperties": false,
                        "properties": {"text": {"type": "string"}}});
    let mut tool = tool_with_schema("keep", schema);
    tool.aliases =
        vec![Alias { name: "Keep", dialect: Dialect::ClaudeCode, rewrites: &[Rewrite::Rename("body", "text")] }];
    ScriptedTool::of(tool).touches(write("/w/a")).answers(ToolResult::text("kept"))
}

#[tokio::test]
async fn a_stored_output_stands_as_an_argument_and_the_record_keeps_the_reference() {
    let outputs: Arc<dyn OutputStore> = Arc::new(InMemoryOutputStore::new());
    let rules = vec![(Effect::Allow, "Write")];
    let house = Plan { outputs, rules, ..Default::default() }.house(provider().with(keep_text())).await;
    assert!(house.call("long", json!({})).await.contains("`o1`"));
    // Under another spelling, too.
    let arguments = json!({"body": {"$ref": "o1"}});
    assert_eq!(house.call("Keep", arguments.clone()).await, "kept");
    assert_eq!(house.provider.calls()[1].arguments["text"], "x".repeat(50_000));
    let row = house.log.rows().pop().unwrap();
    assert_eq!(row.arguments, arguments);
    assert_eq!(house.call("Keep", json!({"body": "x".repeat(50_000)})).await, "kept");
    assert_eq!(
        house.log.rows().pop().unwrap().arguments_digest,
        row.arguments_digest,
        "the digest is that of the values"
    );
    // What a reference names is validated like any other value.
    assert!(house.call("read", json!({"path": {"$ref": "o1", "select": "/a"}})).await.contains("it is no JSON text"));
    assert!(house.call("keep", json!({"text": {"$ref": "o7"}})).await.contains("`o7` names no stored output"));
    assert!(house.call("keep", json!({"text": {"$ref": "o1", "x": 1}})).await.contains("/text: expected a string"));
    let mut others = command("keep", json!({"text": {"$ref": "o1"}}));
    others.principal = Principal::token("other");
    assert!(house.handler.handle(others).await.unwrap_err().to_string().contains("`o1` names no stored output"));
    assert_eq!(house.provider.calls().len(), 3, "none of these ran");
}

#[tokio::test]
async fn a_stored_value_becomes_its_text_where_a_text_is_wanted() {
    let outputs = Arc::new(InMemoryOutputStore::new());
    let json = r#"{"rows": [1, 2], "name": "x"}"#;
    let stored = outputs.store(&Principal::local(), samples::call_id(1), "application/json", json.as_bytes()).await;
    assert_eq!(stored.unwrap().handle.to_string(), "o1");
    let rules = vec![(Effect::Allow, "Write")];
    let house = Plan { outputs, rules, ..Default::default() }.house(provider().with(keep_text())).await;
    for (select, text) in [(None, json), (Some("/rows"), "[1, 2]"), (Some("/name"), "x")] {
        let mut reference = json!({"$ref": "o1"});
        if let Some(select) = select {
            reference["select"] = select.into();
        }
        assert_eq!(house.call("keep", json!({"text": reference})).await, "kept");
        assert_eq!(house.provider.calls().last().unwrap().arguments["text"], text);
    }
    house.call("echo", json!({"any": {"$ref": "o1", "select": "/rows"}})).await;
    assert_eq!(house.provider.calls().last().unwrap().arguments["any"], json!([1, 2]));
}

#[tokio::test]
async fn only_those_stored_values_become_texts_where_a_text_is_wanted() {
    let outputs = Arc::new(InMemoryOutputStore::new());
    let huge = format!("{{\"n\":[\"{}\"]}}", "\\\"".repeat(5 << 20));
    let many = format!("{{\"n\":[{}0]}}", "0,".repeat(1 << 20));
    for content in [r#"{"n": [1, 2]}"#.to_owned(), huge, many.clone()] {
        outputs.store(&Principal::local(), samples::call_id(1), "application/json", content.as_bytes()).await.unwrap();
    }
    let schema = json!({"type": "object", "additionalProperties": false, "properties": {
        "text": {"type": "string"}, "value": {"type": "object"}, "texts": {"type": "array", "items": {"type": "string"}},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}});
    let mut tool = tool_with_schema("both", schema);
    tool.aliases =
        vec![Alias { name: "Both", dialect: Dialect::ClaudeCode, rewrites: &[Rewrite::Rename("body", "text")] }];
    let both = ScriptedTool::of(tool).touches(write("/w/a")).answers(ToolResult::text("kept"));
    let rules = vec![(Effect::Allow, "Write")];
    let house = Plan { outputs, rules, ..Default::default() }.house(provider().with(both)).await;
    let check = async |tool: &str, given: Value, expected: Value| {
        assert_eq!(house.call(tool, given).await, "kept");
        assert_eq!(Value::Object(house.provider.calls().last().unwrap().arguments.clone()), expected);
    };
    let (all, text, value) = (json!({"$ref": "o1"}), r#"{"n": [1, 2]}"#, json!({"n": [1, 2]}));
    check("both", json!({"text": all, "value": all}), json!({"text": text, "value": value})).await;
    check("Both", json!({"body": all, "value": all}), json!({"value": value, "text": text})).await;
    check("both", json!({"texts": [all], "value": all}), json!({"texts": [text], "value": value})).await;
    check("both", json!({"either": all}), json!({"either": text})).await;
    let refused = house.call("both", json!({"text": all, "value": {"$ref": "o1", "select": "/n"}})).await;
    assert!(refused.contains("/value: expected an object"), "{refused}");
    // As a text each of its quotes has one byte more.
    assert_eq!(house.call("both", json!({"value": {"$ref": "o2"}})).await, "kept");
    let refused = house.call("both", json!({"text": {"$ref": "o2"}})).await;
    assert!(refused.contains("with the stored outputs as texts the arguments are larger than 16777216"), "{refused}");
    // As values it would be many times larger, so that it is a text.
    check("both", json!({"text": {"$ref": "o3"}}), json!({"text": many})).await;
    let refused = house.call("both", json!({"value": {"$ref": "o3", "select": "/n"}})).await;
    assert!(refused.contains("it holds too many values"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn looking_for_what_is_referred_to_ends_with_the_signal_and_in_time() {
    /// Takes the call back as soon as it is asked, and never answers.
    struct Silent(CancelSignal, bool);
    #[async_trait]
    impl OutputStore for Silent {
        async fn store(&self, _: &Principal, _: CallId, _: &str, _: &[u8]) -> Result<StoredOutput, StoreError> {
            std::future::pending().await
        }
        async fn find(&self, _: &Principal, _: OutputHandle) -> Result<Option<StoredOutput>, StoreError> {
            if self.1 {
                self.0.cancel(CancelReason::Client);
            }
            std::future::pending().await
        }
        async fn open(&self, _: &Principal, _: OutputHandle) -> Result<Option<Box<dyn StoredContent>>, StoreError> {
            std::future::pending().await
        }
        async fn latest(&self, _: &Principal, _: usize) -> Result<Vec<StoredOutput>, StoreError> {
            std::future::pending().await
        }
    }
    for (cancels, expected) in [(true, ErrorKind::Cancelled), (false, ErrorKind::Timeout)] {
        let cancel = CancelSignal::new();
        let plan = Plan { outputs: Arc::new(Silent(cancel.clone(), cancels)), ..Default::default() };
        let house = plan.house(provider().with(keep_text())).await;
        let call = ExecuteToolCommand { cancel, ..command("keep", json!({"text": {"$ref": "o1"}})) };
        assert_eq!(house.handler.handle(call).await.unwrap_err().kind(), expected);
        assert!(house.provider.calls().is_empty());
    }
}

#[tokio::test]
async fn who_is_asked_sees_what_is_referred_to() {
    struct Shown(std::sync::Mutex<Vec<String>>);
    #[async_trait]
    impl Approver for Shown {
        async fn ask(&self, request: ApprovalRequest<'_>) -> Approval {
            assert_eq!(request.call.arguments["text"].as_str().map(str::len), Some(50_000));
            self.0.lock().unwrap().extend(request.references.iter().cloned());
            Approval::once("ann")
        }
    }
    let shown = Arc::new(Shown(Default::default()));
    let plan = Plan { outputs: Arc::new(InMemoryOutputStore::new()), approver: shown.clone(), ..Default::default() };
    let house = plan.house(provider().with(keep_text())).await;
    house.call("long", json!({})).await;
    assert_eq!(house.call("keep", json!({"text": {"$ref": "o1"}})).await, "kept");
    assert_eq!(*shown.0.lock().unwrap(), ["`/text` is the stored output `o1` (50000 bytes of text/plain)"]);
}

#[tokio::test]
async fn a_caller_may_want_less_than_the_budget() {
    let plan = Plan { outputs: Arc::new(InMemoryOutputStore::new()), ..Default::default() };
    let house = plan.house(provider().with(keep_text())).await;
    let text = house.call("long", json!({"$max_output": 300})).await;
    assert!(text.chars().count() <= 300 && text.contains("`o1`"), "{text}");
    assert_eq!(house.provider.calls()[0].arguments, Map::new(), "the tool does not hear of it");
    assert_eq!(house.call("long", json!({"$max_output": 1_000_000})).await.chars().count(), 30_000, "and never more");
    assert!(house.call("long", json!({"$max_output": "all"})).await.contains("must be a whole number"));
}

#[tokio::test]
async fn what_a_failed_call_leaves_is_bounded_as_well() {
    let outputs = Arc::new(InMemoryOutputStore::new());
    let fails = |message: String, partial: String| {
        ScriptedTool::named("half").ends_by(move |_| {
            let failure = ToolFailure::new(ErrorKind::Timeout, message.as_str());
            Ending::Failure(failure.with_partial(ToolResult::text(partial.as_str())))
        })
    };
    for (message, partial, told) in [
        ("too slow".to_owned(), "y".repeat(90_000), "all of it is `o1`"),
        ("z".repeat(90_000), "short".to_owned(), "60000 more characters are left out and not kept"),
    ] {
        let plan = Plan { outputs: outputs.clone(), ..Default::default() };
        let house = plan.house(provider().with(fails(message, partial))).await;
        let Err(ExecuteToolError::Failed(failure)) = house.handler.handle(command("half", json!({}))).await else {
            panic!("it failed")
        };
        let text = failure.into_result().joined_text();
        assert!(text.chars().count() < 30_200 && text.contains(told), "{}", text.chars().count());
    }
}

/// Refuses, rewrites or lets pass by the path, and counts how many ends it heard of.
#[derive(Default)]
struct Guard(AtomicUsize);

#[async_trait]
impl ToolHook for Guard {
    fn name(&self) -> &str {
        "guard"
    }

    async fn before(&self, call: &ToolCall, _: Option<&[Access]>) -> BeforeCall {
        let rewritten = |arguments: Value| BeforeCall::rewrite(arguments.as_object().unwrap().clone());
        match call.arguments.get("path").and_then(Value::as_str) {
            Some("secret") => BeforeCall::deny("not that one"),
            Some("old") => rewritten(json!({"path": "new"})),
            Some("bad") => rewritten(json!({"path": 7})),
            Some("doubtful") => BeforeCall::ask("is that meant?"),
            Some("later") => HookVerdict::Defer("after the release".into()).into(),
            Some("panic") => panic!("a hook that panics"),
            Some("context") => BeforeCall { context: vec!["mind the gap".into()], ..Default::default() },
            _ => BeforeCall::go_on(),
        }
    }

    async fn after(&self, ended: EndedCall<'_>) -> AfterCall {
        assert_eq!(ended.execution.outcome == Outcome::Succeeded, ended.result.is_some());
        self.0.fetch_add(1, Ordering::SeqCst);
        match ended.call.and_then(|call| call.arguments.get("path")?.as_str()) {
            Some("hide") => AfterCall { output: Some(ToolResult::text("hidden")), ..Default::default() },
            Some("flood") => AfterCall { output: Some(ToolResult::text("x".repeat(40_000))), ..Default::default() },
            Some("talk") => AfterCall { context: vec!["y".repeat(20_000).into()], ..Default::default() },
            _ => AfterCall::default(),
        }
    }
}

#[tokio::test]
async fn hooks_may_refuse_and_rewrite_and_hear_of_the_end() {
    let guard = Arc::new(Guard::default());
    let house = Plan { hooks: vec![guard.clone()], ..Default::default() }.house(provider()).await;
    let told = house.call("read", json!({"path": "secret"})).await;
    assert_eq!(told, "refused permission_denied: The hook `guard` refused the call: not that one");
    assert_eq!(house.call("read", json!({"path": "old"})).await, "content");
    assert_eq!(house.provider.calls()[0].arguments["path"], "new");
    assert!(house.call("read", json!({"path": "bad"})).await.starts_with("refused invalid_input"), "validated again");
    assert_eq!(guard.0.load(Ordering::SeqCst), 3);
    let told = house.call("read", json!({"path": "later"})).await;
    assert_eq!(told, "refused permission_denied: The hook `guard` put off the call: after the release");
    let told = house.call("read", json!({"path": "panic"})).await;
    assert_eq!(told, "refused permission_denied: The hook `guard` refused the call: it failed inside");
}

#[tokio::test]
async fn a_hook_has_somebody_asked_about_what_the_rules_allow() {
    let plan =
        |rules, approver| Plan { hooks: vec![Arc::new(Guard::default())], rules, approver, ..Default::default() };
    let yes = Arc::new(ScriptedApprover::answering([Approval::once("ada")]));
    for (rules, approver, expected) in [
        (vec![], Arc::new(Unattended) as Arc<dyn Approver>, "Nobody can be asked here"),
        (vec![], yes, "content"),
        // Nobody is asked about what a rule denies.
        (
            vec![(Effect::Deny, "read(path:doubtful)")],
            Arc::new(ScriptedApprover::answering([Approval::once("ada")])),
            "the deny rule",
        ),
    ] {
        let house = plan(rules, approver).house(provider()).await;
        let told = house.call("read", json!({"path": "doubtful"})).await;
        assert!(told.contains(expected), "{told}");
        if expected == "content" {
            let decision = house.only_row().decision.unwrap();
            assert_eq!((decision.verdict.as_str(), decision.approved_by.as_deref()), ("ask", Some("ada")));
            assert_eq!(decision.reason, "the hook `guard` wants somebody to be asked: is that meant?");
        }
    }
}

#[tokio::test]
async fn what_hooks_say_reaches_the_model_and_a_changed_output_is_marked() {
    let house = Plan { hooks: vec![Arc::new(Guard::default())], ..Default::default() }.house(provider()).await;
    let told = house.call("read", json!({"path": "context"})).await;
    assert_eq!(told, "content\n[the hook `guard` says: mind the gap]");
    let plain = house.log.rows()[0].clone();
    assert_eq!(house.call("read", json!({"path": "hide"})).await, "hidden");
    let hidden = house.log.rows().into_iter().max_by_key(|row| row.id).unwrap();
    assert_eq!(hidden.result_digest, plain.result_digest, "the digest is that of the first output");
    assert!(hidden.decision.unwrap().reason.ends_with("; the hook `guard` changed the output"));
    let told = house.call("read", json!({"path": "flood"})).await;
    assert!(told.starts_with("[the output is withheld: the hook `guard` gave one of more than 30000"), "{told}");
    let told = house.call("read", json!({"path": "talk"})).await;
    assert!(told.len() < 10_200 && told.ends_with("ends here, after 10000 characters]"), "{}", told.len());
}

/// The kinds of events that were sent, and whether anything of `secret` is in them.
fn heard(watch: &mut EventSubscription) -> Vec<String> {
    let mut kinds = Vec::new();
    while let Some(heard) = watch.waiting() {
        let json = heard.to_json();
        assert!(!json.to_string().contains("hunter2"), "{json}");
        assert!(json["principal"].is_string() && json["session"].is_string() && json["call"].is_string(), "{json}");
        kinds.push(json["type"].as_str().unwrap().to_owned());
    }
    kinds
}

#[tokio::test]
async fn those_who_watch_hear_of_each_step_of_a_call_in_order_and_of_no_secret() {
    let yes = Arc::new(ScriptedApprover::answering([Approval::once("ada")]));
    let approver: Arc<dyn Approver> = yes;
    let hooks: Vec<Arc<dyn ToolHook>> = vec![Arc::new(Guard::default())];
    let secret = ScriptedTool::of(tool_with_schema("login", json!({"type": "object"})))
        .answers(ToolResult::text("welcome, hunter2"));
    let house = Plan { hooks, approver, ..Default::default() }.house(provider().with(secret)).await;
    let mut watch = house.events.subscribe();
    house.call("login", json!({"password": "hunter2"})).await;
    assert_eq!(heard(&mut watch), ["tool_call_started", "tool_call_completed"]);
    house.call("read", json!({"path": "doubtful"})).await;
    assert_eq!(
        heard(&mut watch),
        ["permission_requested", "permission_resolved", "tool_call_started", "tool_call_completed"]
    );
    house.call("read", json!({"path": "secret"})).await;
    assert_eq!(heard(&mut watch), ["tool_call_denied"]);
    house.call("nothing", json!({})).await;
    assert_eq!(heard(&mut watch), ["tool_call_failed"]);
}

#[tokio::test]
async fn tools_come_and_go_while_it_runs() {
    let house = Plan::default().house(provider()).await;
    let mut changes = house.registry.changes();
    let more =
        Arc::new(ScriptedProvider::new("more").with(ScriptedTool::named("fresh").answers(ToolResult::text("new"))));
    house.registry.register(more.clone()).await.unwrap();
    assert_eq!(house.call("fresh", json!({})).await, "new");
    changes.mark_unchanged();
    more.replace_tools([ScriptedTool::named("fresher").answers(ToolResult::text("newer"))]);
    changes.changed().await.unwrap();
    assert_eq!(house.call("fresher", json!({})).await, "newer");
    assert!(house.registry.register(more.clone()).await.unwrap_err().to_string().contains("registered already"));
    let clash = ScriptedProvider::new("clash").with(ScriptedTool::named("echo"));
    assert!(house.registry.register(Arc::new(clash)).await.unwrap_err().to_string().contains("offered by `built-in`"));
    let other =
        Arc::new(ScriptedProvider::new("more").with(ScriptedTool::named("other").answers(ToolResult::text("other"))));
    house.registry.replace(other).await.unwrap();
    assert!(more.is_closed());
    assert_eq!(house.call("other", json!({})).await, "other");
    house.registry.unregister("more").await.unwrap();
    assert!(house.call("other", json!({})).await.contains("Unknown tool: other"));
}

#[tokio::test]
async fn a_provider_that_is_down_shows_its_last_catalogue() {
    let repository = Arc::new(InMemoryToolRepository::new());
    let clock: Arc<dyn Clock> = Arc::new(FixedClock::at(Timestamp(1)));
    let known = samples::tool("known");
    let source = ToolSource::Embedded(ServerName::parse("up").unwrap());
    let stored = Tool::new(known.name().clone(), known.definition().clone(), Category::Mcp, source);
    let stored = Catalogue { tools: vec![stored], changes: Vec::new() };
    repository.save_catalogue(&ProviderIdentity::of_program("up"), &stored, Timestamp(0)).await.unwrap();
    let registry = ToolRegistry::new(repository, clock).await.unwrap();
    let provider = Arc::new(ScriptedProvider::new("up").with(ScriptedTool::named("fresh")));
    provider.fail_list("not there yet");
    registry.register(provider.clone()).await.unwrap();
    assert!(registry.snapshot().resolve("known").is_ok());
    let mut changes = registry.changes();
    provider.mend_list();
    provider.announce_change();
    changes.changed().await.unwrap();
    assert!(registry.snapshot().resolve("fresh").is_ok() && registry.snapshot().resolve("known").is_err());
    assert_eq!(provider.list().await.unwrap().len(), 1);
}

/// A provider as an MCP server is one: its schemas are its own.
fn upstream(server: &str, tools: &[(&str, &str)]) -> ScriptedProvider {
    let provider = ScriptedProvider::new(server).with_foreign_schemas();
    tools.iter().fold(provider, |all, (name, description)| all.with(upstream_tool(server, name, description)))
}

fn upstream_tool(server: &str, name: &str, description: &str) -> ScriptedTool {
    let mut definition = samples::tool(name).definition().clone();
    definition.insert("description".into(), description.into());
    let answer = ToolResult::text(format!("{server} says {name}"));
    let server = ServerName::parse(server).unwrap();
    let source = ToolSource::McpServer { server: server.clone(), tool: name.into() };
    let tool = Tool::new(ToolName::for_upstream(&server, name), definition, Category::Mcp, source);
    ScriptedTool::of(tool).answers(answer)
}

#[tokio::test]
async fn a_name_that_a_server_may_own_that_is_not_there_leads_to_nobody_else() {
    let house = Plan { rules: vec![(Effect::Allow, "mcp__x__*")], ..Plan::default() }
        .house(ScriptedProvider::new("built-in"))
        .await;
    house.registry.register(Arc::new(upstream("x", &[("git_status", "")]))).await.unwrap();
    assert_eq!(house.call("mcp_git_status", json!({})).await, "x says git_status", "nobody else may be meant");
    let git = Arc::new(upstream("git", &[("status", "")]));
    let failed = |reason: &str| ProviderState::Failed { reason: reason.into() };
    git.fail_list("down");
    git.set_state(failed("no such program"));
    house.registry.register(git.clone()).await.unwrap();
    for name in ["mcp__git__status", "git__status", "mcp_git_status", "mcp_git_log"] {
        let said = house.call(name, json!({})).await;
        assert!(said.contains("MCP server `git` is not there: it is down: no such program"), "{name}: {said}");
    }
    for name in ["mcp__x__git_status", "x__git_status", "mcp_x_git_status"] {
        assert_eq!(house.call(name, json!({})).await, "x says git_status", "{name}");
    }
    assert!(house.call("github__status", json!({})).await.contains("Unknown tool"), "another server's name");
    git.mend_list();
    git.set_state(ProviderState::Ready);
    let mut news = house.registry.news();
    git.announce_change();
    while !house.registry.absent().is_empty() {
        news.changed().await.unwrap();
    }
    assert!(house.call("mcp_git_status", json!({})).await.contains("could be several tools"));
    // Now that it is there, what it does not have is nobody's but the other's.
    git.replace_tools([]);
    while house.registry.resolve("mcp__git__status").is_ok() {
        news.changed().await.unwrap();
    }
    assert_eq!(house.call("mcp_git_status", json!({})).await, "x says git_status");
    house.registry.note_absent("git_status", "it is switched off");
    let said = house.call("mcp_git_status_now", json!({})).await;
    assert!(said.contains("`git_status` is not there: it is switched off"), "{said}");
    assert_eq!(house.registry.absent().iter().map(|one| one.server.as_str()).collect::<Vec<_>>(), ["git_status"]);
}

#[tokio::test]
async fn a_call_waits_for_the_server_that_its_name_is_of() {
    let house = Plan { rules: vec![(Effect::Allow, "mcp__slow__*")], ..Plan::default() }
        .house(ScriptedProvider::new("built-in"))
        .await;
    let slow = Arc::new(upstream("slow", &[("old", ""), ("new", "")]));
    slow.fail_list("not there yet");
    slow.set_state(ProviderState::Connecting);
    house.registry.register(slow.clone()).await.unwrap();
    let (said, ()) = tokio::join!(house.call("mcp__slow__new", json!({})), async {
        slow.mend_list();
        slow.set_state(ProviderState::Ready);
        slow.announce_change();
    });
    assert_eq!(said, "slow says new");
}

#[tokio::test]
async fn definitions_that_say_something_else_are_noted_and_kept() {
    let repository = Arc::new(InMemoryToolRepository::new());
    let clock: Arc<dyn Clock> = Arc::new(FixedClock::at(Timestamp(7)));
    let identity = ProviderIdentity::of_program("s");
    let noted = |changes: &[DefinitionChange]| -> Vec<String> {
        changes.iter().map(|one| format!("{} {:?} {}", one.tool, one.parts, one.at.0)).collect()
    };
    let run = async |server: ScriptedProvider| {
        let registry = ToolRegistry::new(repository.clone(), clock.clone()).await.unwrap();
        registry.register(Arc::new(server)).await.unwrap();
        let changes = noted(&registry.providers()[0].changes);
        let stored = repository.catalogue(&identity).await.unwrap();
        assert_eq!(noted(&stored.changes), changes, "what is told is kept");
        changes
    };
    let nothing: [String; 0] = [];
    assert_eq!(run(upstream("s", &[("a", "one"), ("b", "one")])).await, nothing, "what is new has not changed");
    let changed = ["mcp__s__a [Description] 7"];
    assert_eq!(run(upstream("s", &[("a", "two"), ("b", "one")])).await, changed);
    assert_eq!(run(upstream("s", &[("a", "two"), ("b", "one")])).await, changed, "the next run tells it, too");
    let more = ["mcp__s__a [Description] 7", "mcp__s__b [Description] 7"];
    assert_eq!(run(upstream("s", &[("a", "two"), ("b", "two"), ("c", "")])).await, more);
    assert_eq!(run(upstream("s", &[("c", "")])).await, nothing, "a change goes with its tool");
    // Also where a server says so while it runs.
    let registry = ToolRegistry::new(repository.clone(), clock.clone()).await.unwrap();
    let server = Arc::new(upstream("s", &[("c", "")]));
    registry.register(server.clone()).await.unwrap();
    let mut news = registry.news();
    server.replace_tools([upstream_tool("s", "c", "other")]);
    while registry.providers()[0].changes.is_empty() {
        news.changed().await.unwrap();
    }
    assert_eq!(noted(&registry.providers()[0].changes), ["mcp__s__c [Description] 7"]);
}

#[tokio::test]
async fn a_catalogue_of_another_start_is_not_shown() {
    let repository = Arc::new(InMemoryToolRepository::new());
    let clock: Arc<dyn Clock> = Arc::new(FixedClock::at(Timestamp(1)));
    let run = async |file: &str, start: &str, is_down: bool| {
        let registry = ToolRegistry::new(repository.clone(), clock.clone()).await.unwrap();
        let identity = ProviderIdentity { configured_in: file.into(), name: "s".into(), start: start.into() };
        let server = upstream("s", &[("a", "")]).with_identity(identity);
        if is_down {
            server.fail_list("down");
        }
        registry.register(Arc::new(server)).await.unwrap();
        registry.snapshot().tools().len()
    };
    assert_eq!(run("/a", "1", false).await, 1);
    for (file, start, shown) in [("/a", "1", 1), ("/b", "1", 0), ("/a", "2", 0)] {
        assert_eq!(run(file, start, true).await, shown, "{file} {start}");
    }
}

#[tokio::test]
async fn pages_follow_a_cursor_that_belongs_to_one_list() {
    let names: Vec<String> = (0..7).map(|n| format!("tool_{n}")).collect();
    let provider =
        names.iter().fold(ScriptedProvider::new("built-in"), |all, name| all.with(ScriptedTool::named(name)));
    let house = Plan::default().house(provider).await;
    let list = ListToolsHandler::new(house.registry.clone(), house.policy.clone());
    let ask = |cursor: Option<String>, text: Option<&str>| {
        let filter = ToolFilter { text: text.map(str::to_owned), ..Default::default() };
        list.handle(&ListToolsQuery { filter, cursor, page: PageSize::Tools(3) })
    };
    let (mut seen, mut cursor) = (Vec::new(), None);
    let mut first_cursor = None;
    loop {
        let page = ask(cursor, None).unwrap();
        seen.extend(page.tools.iter().map(|one| one.tool.name().to_string()));
        first_cursor = first_cursor.or(page.next_cursor.clone());
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    assert_eq!(seen, names);
    assert_eq!(ask(first_cursor.clone(), Some("tool")).unwrap_err(), InvalidCursor::Foreign, "another filter");
    assert_eq!(ask(Some("nonsense".into()), None).unwrap_err(), InvalidCursor::Foreign);
    house.registry.set_enabled("tool_0", false).await.unwrap();
    assert_eq!(
        ask(first_cursor.clone(), None).unwrap().tools[0].tool.name().as_str(),
        "tool_3",
        "the old list is kept for a while"
    );
    for enabled in [true, false, true, false, true] {
        house.registry.set_enabled("tool_1", enabled).await.unwrap();
    }
    assert_eq!(ask(first_cursor, None).unwrap_err(), InvalidCursor::Stale);
}

/// Puts its question to the client, and says yes where the client's answer is `yes`.
#[derive(Default)]
struct ByRetry {
    scopes: Vec<ApprovalScope>,
}

#[async_trait]
impl Approver for ByRetry {
    async fn ask(&self, request: ApprovalRequest<'_>) -> Approval {
        match request.answer {
            None => Approval::Pending(InputRequest { method: "elicitation/create".into(), params: json!({}) }),
            Some(answer) if answer.0 == "yes" => Approval::Granted { by: "ann".into(), scopes: self.scopes.clone() },
            Some(_) => Approval::Denied { by: "ann".into() },
        }
    }
}

impl House {
    /// Calls, and returns the state of the question that is put to the client.
    async fn asked(&self, command: ExecuteToolCommand) -> String {
        match self.handler.handle(command).await {
            Ok(CallOutcome::InputRequired(required)) => {
                assert_eq!(required.requests.keys().collect::<Vec<_>>(), ["toolstead/approval"]);
                required.state.unwrap()
            }
            other => panic!("{other:?}"),
        }
    }

    async fn told(&self, command: ExecuteToolCommand) -> String {
        match self.handler.handle(command).await {
            Ok(CallOutcome::Done(result)) => result.joined_text(),
            Ok(CallOutcome::InputRequired(_)) => "asked".into(),
            Err(error) => format!("{}: {error}", error.kind()),
        }
    }
}

fn retry(of: ExecuteToolCommand, state: &str, answer: &str) -> ExecuteToolCommand {
    let answers = [("toolstead/approval".to_owned(), InputResponse(answer.into()))].into();
    ExecuteToolCommand { answers: Some(answers), request_state: Some(state.into()), ..of }
}

async fn asking_by_retry() -> House {
    Plan { approver: Arc::new(ByRetry::default()), ..Default::default() }.house(provider()).await
}

#[tokio::test]
async fn an_answer_that_comes_with_a_retry_lets_the_call_run_once() {
    let house = asking_by_retry().await;
    let state = house.asked(command("write", json!({"a": 1, "b": 2}))).await;
    assert_eq!(house.provider.calls().len(), 0, "nothing runs before the answer");
    // The order of the keys is the client's business.
    assert_eq!(house.told(retry(command("write", json!({"b": 2, "a": 1})), &state, "yes")).await, "written");
    let replayed = house.told(retry(command("write", json!({"a": 1, "b": 2})), &state, "yes")).await;
    assert!(replayed.starts_with("invalid_input: `requestState` is of no open question"), "{replayed}");
    let state = house.asked(command("write", json!({}))).await;
    let denied = house.told(retry(command("write", json!({})), &state, "no")).await;
    assert_eq!(denied, "permission_denied: The call of `write` was refused by ann.");
    assert_eq!(house.provider.calls().len(), 1);
    let rows: Vec<_> = house.log.rows().into_iter().map(|row| row.outcome.kind()).collect();
    use toolstead_domain::tool_execution::OutcomeKind::{InputRequired, Refused, Succeeded};
    assert_eq!(rows, [InputRequired, Succeeded, Refused, InputRequired, Refused]);
}

#[tokio::test]
async fn an_answer_is_bound_to_principal_tool_and_arguments() {
    let house = asking_by_retry().await;
    let asked = || command("write", json!({"a": 1}));
    let stranger = ExecuteToolCommand { principal: Principal::token("other"), ..asked() };
    for (other, is_used_up) in
        [(command("write", json!({"a": 2})), true), (command("endless", json!({"a": 1})), true), (stranger, false)]
    {
        let state = house.asked(asked()).await;
        let told = house.told(retry(other, &state, "yes")).await;
        assert!(told.starts_with("invalid_input"), "{told}");
        let told = house.told(retry(asked(), &state, "yes")).await;
        assert_eq!(told == "written", !is_used_up, "{told}");
    }
    let told = house.told(retry(asked(), "toolstead-approval-guessed", "yes")).await;
    assert!(told.starts_with("invalid_input"), "{told}");
    // Without a state, and with one of somebody else's making, there is nothing that it could answer.
    assert_eq!(house.told(ExecuteToolCommand { request_state: None, ..retry(asked(), "", "yes") }).await, "asked");
    assert_eq!(house.told(retry(asked(), "an upstream's", "yes")).await, "asked");
    assert_eq!(house.provider.calls().len(), 1);
}

#[tokio::test]
async fn an_answer_holds_for_the_parts_that_were_shown() {
    let target = Arc::new(std::sync::Mutex::new("/w/a"));
    let now = target.clone();
    let moving = ScriptedTool::named("moving").touches_by(move |_| Ok(write(&now.lock().unwrap())));
    let provider = ScriptedProvider::new("built-in").with(moving.answers(ToolResult::text("written")));
    let house = Plan { approver: Arc::new(ByRetry::default()), ..Default::default() }.house(provider).await;
    let call = || command("moving", json!({}));
    let state = house.asked(call()).await;
    // The same arguments lead elsewhere by now, as by a link.
    *target.lock().unwrap() = "/w/b";
    let state = house.asked(retry(call(), &state, "yes")).await;
    assert_eq!(house.provider.calls().len(), 0);
    assert_eq!(house.told(retry(call(), &state, "yes")).await, "written");
}

/// Wants somebody to be asked about every call, for another reason each time.
#[derive(Default)]
struct Wordy(AtomicUsize);

#[async_trait]
impl ToolHook for Wordy {
    fn name(&self) -> &str {
        "wordy"
    }

    async fn before(&self, _: &ToolCall, _: Option<&[Access]>) -> BeforeCall {
        BeforeCall::ask(format!("reason {}", self.0.fetch_add(1, Ordering::SeqCst)))
    }

    async fn after(&self, _: EndedCall<'_>) -> AfterCall {
        AfterCall::default()
    }
}

#[tokio::test]
async fn an_answer_holds_whatever_reason_a_hook_has_the_second_time() {
    let hooks: Vec<Arc<dyn ToolHook>> = vec![Arc::new(Wordy::default())];
    let house = Plan { approver: Arc::new(ByRetry::default()), hooks, ..Default::default() }.house(provider()).await;
    let state = house.asked(command("write", json!({}))).await;
    assert_eq!(house.told(retry(command("write", json!({})), &state, "yes")).await, "written");
}

#[tokio::test]
async fn a_no_is_heard_also_where_somebody_said_yes_to_the_same_meanwhile() {
    let send =
        || ScriptedTool::named("send").touches(vec![Access::Send("a@b.c".into())]).answers(ToolResult::text("sent"));
    // One yes is kept as a rule, the other for exactly this call.
    for (tool, done) in [("write", "written"), ("send", "sent")] {
        let approver = ByRetry { scopes: vec![ApprovalScope::Session] };
        let provider = provider().with(send());
        let house = Plan { approver: Arc::new(approver), ..Default::default() }.house(provider).await;
        let call = || command(tool, json!({}));
        let (first, second, third) = (house.asked(call()).await, house.asked(call()).await, house.asked(call()).await);
        assert_eq!(house.told(retry(call(), &first, "yes")).await, done);
        let told = house.told(retry(call(), &second, "no")).await;
        assert_eq!(told, format!("permission_denied: The call of `{tool}` was refused by ann."));
        assert_eq!(house.told(retry(call(), &third, "yes")).await, done);
        assert_eq!(house.provider.calls().len(), 2, "{tool}");
    }
}

#[tokio::test]
async fn a_yes_to_one_part_of_a_call_answers_no_rule_about_another() {
    let secret = || Access::ReadPath(PathAccess::plain("/w/secret"));
    let everything = Access::ReadPath(PathAccess::plain("/w").whole_tree());
    let copying = ScriptedTool::named("copying").touches([vec![everything], write("/w/a")].concat());
    let copying = copying.ends_by(move |moment| {
        let grant = moment.context.grant;
        Ending::Done(ToolResult::text(format!("{} {}", grant.permits(&write("/w/a")[0]), grant.permits(&secret()))))
    });
    let approver = Arc::new(ScriptedApprover::granting(1));
    let plan = Plan { approver, rules: vec![(Effect::Ask, "Read(secret)")], ..Default::default() };
    let house = plan.house(ScriptedProvider::new("built-in").with(copying)).await;
    assert_eq!(house.call("copying", json!({})).await, "true false");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_travels_expires() {
    let house = asking_by_retry().await;
    let state = house.asked(command("write", json!({}))).await;
    tokio::time::advance(CallSettings::default().approval_timeout).await;
    let told = house.told(retry(command("write", json!({})), &state, "yes")).await;
    assert_eq!(told, "approval_timeout: The answer came too late. Nothing has run.");
}

#[tokio::test]
async fn a_retry_without_the_answer_is_asked_anew_and_answers_of_the_tool_come_through() {
    let told = ScriptedTool::named("told").touches(write("/w/a")).ends_by(|moment| {
        let answers = moment.context.answers.map(|answers| answers.values().map(|one| one.0.to_string()).collect());
        Ending::Done(ToolResult::text(answers.unwrap_or_else(|| "nothing".to_owned())))
    });
    let provider = ScriptedProvider::new("built-in").with(told);
    let house = Plan { approver: Arc::new(ByRetry::default()), ..Default::default() }.house(provider).await;
    let with_answers = ExecuteToolCommand {
        answers: Some([("name".to_owned(), InputResponse("eve".into()))].into()),
        ..command("told", json!({}))
    };
    let state = house.asked(with_answers).await;
    let unanswered = ExecuteToolCommand { request_state: Some(state), ..command("told", json!({})) };
    let state = house.asked(unanswered).await;
    assert_eq!(house.told(retry(command("told", json!({})), &state, "yes")).await, r#""eve""#);
    let state = house.asked(command("told", json!({}))).await;
    assert_eq!(house.told(retry(command("told", json!({})), &state, "yes")).await, "nothing", "ours is ours");
}

#[tokio::test]
async fn open_questions_are_bounded() {
    let house = asking_by_retry().await;
    let first = house.asked(command("write", json!({}))).await;
    let mut last = String::new();
    for _ in 0..64 {
        last = house.asked(command("write", json!({}))).await;
    }
    assert!(house.told(retry(command("write", json!({})), &first, "yes")).await.starts_with("invalid_input"));
    assert_eq!(house.told(retry(command("write", json!({})), &last, "yes")).await, "written");
}

#[tokio::test]
async fn what_is_approved_for_the_session_is_not_asked_again_and_the_trace_says_so() {
    let approver =
        ScriptedApprover::answering([Approval::Granted { by: "ann".into(), scopes: vec![ApprovalScope::Session] }]);
    let house = Plan { approver: Arc::new(approver), ..Default::default() }.house(provider()).await;
    assert_eq!(house.call("write", json!({})).await, "written");
    assert_eq!(house.call("write", json!({"other": true})).await, "written");
    let elsewhere = ExecuteToolCommand { session: "t".into(), ..command("write", json!({})) };
    assert!(house.told(elsewhere).await.starts_with("permission_denied"));
    let decisions: Vec<_> = house.log.rows().into_iter().map(|row| row.decision.unwrap()).collect();
    assert_eq!(decisions[0].approved_by.as_deref(), Some("ann (session)"));
    assert_eq!(
        decisions[1].reason,
        "the allow rule `Write(//w/a)` in what was approved in this session: to write /w/a"
    );
}

#[tokio::test]
async fn sending_is_approved_for_the_same_arguments_alone() {
    let send =
        ScriptedTool::named("send").touches(vec![Access::Send("a@b.c".into())]).answers(ToolResult::text("sent"));
    let yes = || Approval::Granted { by: "ann".into(), scopes: vec![ApprovalScope::Session] };
    let approver = Arc::new(ScriptedApprover::answering([yes()]));
    let plan = Plan { approver: approver.clone(), ..Default::default() };
    let house = plan.house(ScriptedProvider::new("built-in").with(send)).await;
    for _ in 0..2 {
        assert_eq!(house.call("send", json!({"text": "hi"})).await, "sent");
    }
    assert!(house.call("send", json!({"text": "other"})).await.starts_with("refused permission_denied"));
    let question = &approver.questions()[0];
    assert_eq!((&question.parts[0].rule, question.parts[0].scopes.len()), (&None, 2));
    let rows = house.log.rows();
    let approved_by = rows[1].decision.as_ref().unwrap().approved_by.as_deref();
    assert_eq!(approved_by, Some("what was approved in this session, for exactly this call"));
}

#[tokio::test]
async fn what_a_rule_asks_about_is_asked_every_time() {
    let yes = || Approval::Granted { by: "ann".into(), scopes: vec![ApprovalScope::Always] };
    for rule in ["write", "Write(a)"] {
        let approver = Arc::new(ScriptedApprover::answering([yes(), yes()]));
        let plan = Plan { rules: vec![(Effect::Ask, rule)], approver: approver.clone(), ..Default::default() };
        let house = plan.house(provider()).await;
        for _ in 0..2 {
            assert_eq!(house.call("write", json!({})).await, "written");
        }
        assert!(house.call("write", json!({})).await.starts_with("refused"), "{rule}");
        assert_eq!(approver.questions().len(), 3);
        assert_eq!(approver.questions()[0].parts[0].scopes, [ApprovalScope::Once]);
    }
}

/// Rewrites the path, and keeps what the hooks beside it are told of the call.
#[derive(Default)]
struct Witness {
    rewrites: bool,
    told: std::sync::Mutex<Vec<Option<String>>>,
}

impl Witness {
    fn hears(&self, accesses: Option<&[Access]>) {
        let told = accesses.map(|accesses| accesses.iter().map(ToString::to_string).collect());
        self.told.lock().unwrap().push(told);
    }
}

#[async_trait]
impl ToolHook for Witness {
    fn name(&self) -> &str {
        "witness"
    }

    async fn before(&self, _: &ToolCall, accesses: Option<&[Access]>) -> BeforeCall {
        self.hears(accesses);
        let rewritten = json!({"path": "/w/b"}).as_object().unwrap().clone();
        if self.rewrites { BeforeCall::rewrite(rewritten) } else { BeforeCall::go_on() }
    }

    async fn after(&self, ended: EndedCall<'_>) -> AfterCall {
        self.hears(ended.accesses);
        AfterCall::default()
    }
}

#[tokio::test]
async fn hooks_know_what_a_call_touches_with_the_arguments_that_it_has_by_then() {
    let by_path = |call: &ToolCall| match call.arguments.get("path").and_then(Value::as_str) {
        Some(path) => Ok(vec![Access::ReadPath(PathAccess::plain(path))]),
        None => Err(ToolFailure::new(ErrorKind::InvalidInput, "no path")),
    };
    let (first, second) = (Arc::new(Witness { rewrites: true, ..Default::default() }), Arc::new(Witness::default()));
    let plan = Plan { hooks: vec![first.clone(), second.clone()], ..Default::default() };
    let provider = ScriptedProvider::new("built-in").with(ScriptedTool::named("look").touches_by(by_path));
    let house = plan.house(provider).await;
    let told = |witness: &Witness| witness.told.lock().unwrap().split_off(0);
    let read = |path: &str| Some(format!("read {path}"));
    house.call("look", json!({"path": "/w/a"})).await;
    assert_eq!(told(&first), [read("/w/a"), read("/w/b")]);
    assert_eq!(told(&second), [read("/w/b"), read("/w/b")]);
    // What cannot be told yet can be put right by a hook.
    house.call("look", json!({})).await;
    assert_eq!((told(&first), told(&second)), (vec![None, read("/w/b")], vec![read("/w/b"); 2]));
}

/// Has somebody asked about every call but the first.
#[derive(Default)]
struct Doubt(AtomicUsize);

#[async_trait]
impl ToolHook for Doubt {
    fn name(&self) -> &str {
        "doubt"
    }

    async fn before(&self, _: &ToolCall, _: Option<&[Access]>) -> BeforeCall {
        match self.0.fetch_add(1, Ordering::SeqCst) {
            0 => BeforeCall::go_on(),
            _ => BeforeCall::ask("again?"),
        }
    }

    async fn after(&self, _: EndedCall<'_>) -> AfterCall {
        AfterCall::default()
    }
}

#[tokio::test]
async fn an_approval_of_the_session_answers_no_question_of_a_hook() {
    let yes = || Approval::Granted { by: "ann".into(), scopes: vec![ApprovalScope::Session; 2] };
    let send =
        || ScriptedTool::named("send").touches(vec![Access::Send("a@b.c".into())]).answers(ToolResult::text("sent"));
    // One call is remembered by a rule, the other by its arguments.
    for (tool, answer) in [("write", "written"), ("send", "sent")] {
        let approver = Arc::new(ScriptedApprover::answering([yes(), yes()]));
        let hooks: Vec<Arc<dyn ToolHook>> = vec![Arc::new(Doubt::default())];
        let house =
            Plan { hooks, approver: approver.clone(), ..Default::default() }.house(provider().with(send())).await;
        for _ in 0..2 {
            assert_eq!(house.call(tool, json!({})).await, answer);
        }
        assert!(house.call(tool, json!({})).await.starts_with("refused permission_denied"), "{tool}");
        let questions = approver.questions();
        assert_eq!(questions.len(), 3, "{tool}");
        for question in &questions[1..] {
            let parts: Vec<_> = question.parts.iter().map(|part| (part.cause.to_string(), part.scopes.len())).collect();
            assert_eq!(parts, [("the hook `doubt` wants somebody to be asked: again?".to_owned(), 1)], "{tool}");
        }
    }
}

#[tokio::test]
async fn two_questions_about_the_same_call_are_two() {
    let approver = Arc::new(ScriptedApprover::granting(2));
    let house = Arc::new(Plan { approver: approver.clone(), ..Default::default() }.house(provider()).await);
    let (one, two) = tokio::join!(house.call("write", json!({})), house.call("write", json!({})));
    assert_eq!((one.as_str(), two.as_str(), approver.questions().len()), ("written", "written", 2));
}

#[tokio::test]
async fn an_answer_to_a_call_that_was_taken_back_grants_nothing() {
    struct TooLate(CancelSignal);
    #[async_trait]
    impl Approver for TooLate {
        async fn ask(&self, _: ApprovalRequest<'_>) -> Approval {
            self.0.cancel(CancelReason::Client);
            tokio::task::yield_now().await;
            Approval::Granted { by: "ann".into(), scopes: vec![ApprovalScope::Always] }
        }
    }
    let (cancel, store) = (CancelSignal::new(), Arc::new(InMemoryRuleStore::new()));
    let plan = Plan { approver: Arc::new(TooLate(cancel.clone())), store: store.clone(), ..Default::default() };
    let house = plan.house(provider()).await;
    let told = house.told(ExecuteToolCommand { cancel, ..command("write", json!({})) }).await;
    assert!(told.starts_with("cancelled"), "{told}");
    assert_eq!(store.kept(), []);
}

/// A schema that a deep value is compared with for longer than anybody lives.
fn endless_schema() -> Value {
    json!({"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}, "required": ["b"]})
}

fn deep_value() -> Value {
    (0..40).fold(json!({}), |inner, _| json!({"a": inner}))
}

#[tokio::test]
async fn a_schema_without_a_bound_is_validated_beside_this_process_or_the_call_is_refused() {
    async fn check(schemas: ScriptedSchemaValidator, arguments: Value, expected: &str) {
        let schemas = Arc::new(schemas);
        let provider = ScriptedProvider::new("p").with(ScriptedTool::of(tool_with_schema("t", endless_schema())));
        let house = Plan { schemas: schemas.clone(), ..Plan::default() }.house(provider).await;
        let told = house.call("t", arguments.clone()).await;
        assert!(told.contains(expected), "{told}");
        assert_eq!(schemas.seen(), [arguments]);
        assert_eq!(house.log.rows().len(), 1);
    }
    check(ScriptedSchemaValidator::new(), json!({"b": 1}), "(no output)").await;
    check(ScriptedSchemaValidator::new(), json!({"a": 1}), "refused invalid_input: The arguments do not fit").await;
    let why = "(of its schema: it contains itself, and refers twice to one place of what it describes)";
    for (failure, kind) in [
        (NotValidated::OutOfTime, "refused timeout"),
        (NotValidated::OutOfMemory, "refused too_large"),
        (NotValidated::Unavailable("there is no other process".into()), "refused unavailable"),
        (NotValidated::Ended("killed".into()), "refused unavailable"),
    ] {
        check(ScriptedSchemaValidator::failing(failure.clone()), deep_value(), kind).await;
        check(ScriptedSchemaValidator::failing(failure), deep_value(), why).await;
    }
    let broken = NotValidated::Schema(toolstead_domain::tool_input_schema::InvalidSchema::new("it is none"));
    check(
        ScriptedSchemaValidator::failing(broken),
        json!({}),
        "not callable unavailable: the tool `t` cannot be called",
    )
    .await;
}

#[tokio::test]
async fn what_no_rule_lets_be_called_is_refused_before_its_schema_is_looked_at() {
    let schemas = Arc::new(ScriptedSchemaValidator::new());
    let provider = ScriptedProvider::new("p").with(ScriptedTool::of(tool_with_schema("t", endless_schema())));
    let plan = Plan { rules: vec![(Effect::Deny, "t")], schemas: schemas.clone(), ..Plan::default() };
    let house = plan.house(provider).await;
    let told = house.call("t", deep_value()).await;
    assert!(
        told.starts_with("refused permission_denied: The call of `t` is not permitted: the deny rule `t`"),
        "{told}"
    );
    assert!(schemas.seen().is_empty());
    let row = house.only_row();
    assert!(matches!(row.outcome, Outcome::Refused(ErrorKind::PermissionDenied, _)), "{row:?}");
    assert_eq!(row.decision.map(|decision| decision.verdict).as_deref(), Some("deny"));
}

const SECRETS: [&str; 4] = ["tok123456789", "hunter2pw", "querytok", "bearertok"];

/// A call that a rule allows and that fails, whose secrets stand in all that is said of it.
async fn secretive(
    keep: RecordedArguments,
    verdict: Effect,
) -> (House, ExecuteToolError, Vec<toolstead_domain::event::EventKind>) {
    let settings = CallSettings { arguments: keep, ..CallSettings::default() };
    let line = "export MY_TOKEN='tok123456789'; curl -H 'Authorization: Bearer bearertok' https://me:hunter2pw@h/?token=querytok";
    let runs = Access::RunCommand(toolstead_domain::access::CommandAccess::opaque(line, "it says tok123456789"));
    let failing = ScriptedTool::named("shell").touches(vec![runs]).reports(Progress {
        progress: 1.0,
        total: None,
        message: Some("using tok123456789".into()),
    });
    let failing = failing.ends_by(|_| {
        let said = ToolResult::error(ErrorKind::ExecutionFailed, "tok123456789 of https://me:hunter2pw@h is wrong");
        Ending::Done(said.with_structured_content(json!({"exit": 1, "stderr": "tok123456789 is wrong"})))
    });
    let provider = ScriptedProvider::new("built-in").with(failing);
    let house = Plan { rules: vec![(verdict, "Bash")], settings, ..Default::default() }.house(provider).await;
    let mut watch = house.events.subscribe();
    let arguments = json!({"command": "true", "env": {"MY_TOKEN": "tok123456789"}, "line": line});
    let outcome = house.handler.handle(command("shell", arguments)).await;
    let error = match outcome {
        Ok(_) => ExecuteToolError::Cancelled(CancelReason::Client),
        Err(error) => error,
    };
    let mut events = Vec::new();
    while let Some(crate::event_bus::Heard::Event(event)) = watch.waiting() {
        events.push(event.kind.clone());
    }
    (house, error, events)
}

#[tokio::test]
async fn no_text_of_a_row_or_an_event_tells_a_secret_of_the_arguments() {
    for verdict in [Effect::Allow, Effect::Ask, Effect::Deny] {
        let (house, _, events) = secretive(RecordedArguments::Redacted, verdict).await;
        let row = house.only_row();
        let all = format!("{row:?} {events:?}");
        for secret in SECRETS {
            assert!(!all.contains(secret), "{verdict:?} {secret}: {all}");
        }
        assert!(row.accesses[0].starts_with("run export MY_TOKEN=[redacted]; curl"), "{row:?}");
        assert!(events.len() >= if verdict == Effect::Deny { 1 } else { 3 }, "{events:?}");
    }
}

#[tokio::test]
async fn where_arguments_are_not_kept_no_text_of_a_row_tells_of_them() {
    for verdict in [Effect::Allow, Effect::Ask, Effect::Deny] {
        let (house, _, _) = secretive(RecordedArguments::None, verdict).await;
        let row = house.only_row();
        let all = format!("{row:?}");
        for text in SECRETS.iter().chain(&["curl", "MY_TOKEN", "it says", "is wrong"]) {
            assert!(!all.contains(text), "{verdict:?} {text}: {all}");
        }
        let decision = row.decision.as_ref().unwrap();
        assert_eq!(row.accesses, ["run"]);
        assert_eq!(decision.trace[0]["part"], "run");
        assert!(decision.reason.contains("rule `Bash` in the command line"), "{decision:?}");
        match (verdict, &row.outcome) {
            (Effect::Allow, Outcome::Failed(ErrorKind::ExecutionFailed, detail)) => assert_eq!(detail, "[not kept]"),
            (Effect::Ask | Effect::Deny, Outcome::Refused(ErrorKind::PermissionDenied, detail)) => {
                assert_eq!(*detail, decision.reason);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn who_wants_everything_kept_gets_everything() {
    let (house, _, _) = secretive(RecordedArguments::Full, Effect::Allow).await;
    let row = house.only_row();
    assert!(row.accesses[0].contains("tok123456789") && row.arguments["env"]["MY_TOKEN"] == "tok123456789");
    assert_eq!(row.metadata, json!({"exit": 1, "stderr": "tok123456789 is wrong"}));
}

#[tokio::test]
async fn a_hint_that_it_only_reads_spares_no_call_the_record_of_its_start() {
    for access in [
        Access::ReachHost("a.org".into()),
        Access::CallUpstream { server: ServerName::parse("up").unwrap(), tool: "t".into() },
    ] {
        let mut definition = samples::tool("t").definition().clone();
        definition.insert("annotations".into(), json!({"readOnlyHint": true}));
        let tool = Tool::new(ToolName::parse("t").unwrap(), definition, Category::Web, ToolSource::BuiltIn);
        let provider = ScriptedProvider::new("built-in").with(ScriptedTool::of(tool).touches(vec![access]));
        let rules = vec![(Effect::Allow, "t"), (Effect::Allow, "WebFetch")];
        let house = Plan { rules, ..Default::default() }.house(provider).await;
        house.log.be_full(true);
        assert_eq!(house.call("t", json!({})).await, "the call did not run: its start cannot be recorded");
        assert_eq!(house.provider.calls().len(), 0);
    }
}
