//! Calls that a call makes.

use super::{
    retries::{Forms, modern, retry},
    *,
};
use crate::orchestration::{OrchestrationToolExamples, OrchestrationTools};
use futures::poll;
use proptest::prelude::*;
use std::{pin::pin, task::Poll};
use tokio::task::yield_now;
use toolstead_domain::{
    CallContext, CallLabels, LogLevel, LogMessage, NestedCall, OutcomeKind, ProviderListError, ToolCall, ToolSelection,
    testing::recording_caller::RecordingCaller,
};
use uuid::Uuid;

/// Provider of `make`, which makes the calls of its argument `calls` one after another and reports their results, and
/// of `abandon`, which starts a call, drops it and ends. With the argument `window`, `make` calls through a restricted
/// view on these tools. A call of `?` lists the tools.
struct Maker(Arc<ScriptedProvider>);

#[async_trait]
impl ToolProvider for Maker {
    fn name(&self) -> &str {
        "maker"
    }

    async fn list(&self) -> Result<Vec<Tool>, ProviderListError> {
        Ok(vec![samples::tool("make"), samples::tool("abandon")])
    }

    async fn accesses(&self, _: &ToolCall) -> Result<Vec<Access>, ToolFailure> {
        Ok(Vec::new())
    }

    async fn call(&self, call: &ToolCall, context: &CallContext<'_>) -> Result<CallOutcome, ToolFailure> {
        if call.tool.name().as_str() == "abandon" {
            tokio::select! {
                _ = context.calls.call(NestedCall::new("endless", Value::Null)) => {}
                () = self.0.began(1) => {}
            }
            return Ok(CallOutcome::Done(ToolResult::text("left")));
        }
        let names = call.arguments.get("window").and_then(Value::as_array);
        let names = names.map(|names| ToolSelection::canonical(names.iter().filter_map(Value::as_str)));
        let window = names.map(|names| context.calls.window("run", names));
        let calls = window.as_deref().unwrap_or(context.calls);
        let mut output = Vec::new();
        for nested in call.arguments["calls"].as_array().into_iter().flatten() {
            let [tool, arguments] = [&nested[0], &nested[1]];
            if tool == "?" {
                let names: Vec<String> = calls.list().iter().map(|tool| tool.name().to_string()).collect();
                assert!(calls.search("").iter().map(|tool| tool.name().as_str()).eq(names.iter().map(String::as_str)));
                output.push(format!("[{}]", names.join(",")));
                continue;
            }
            let nested = NestedCall::new(tool.as_str().unwrap(), arguments.clone());
            output.push(match calls.call(nested).await {
                Ok(result) => result.joined_text(),
                Err(failure) => format!("{}: {}", failure.kind, failure.text()),
            });
        }
        Ok(CallOutcome::Done(ToolResult::text(output.join("\n"))))
    }
}

impl Plan {
    pub(super) async fn house_that_nests(self) -> House {
        let house = self.house(provider().with(send()).with(opaque())).await;
        house.registry.register(Arc::new(Maker(house.provider.clone()))).await.unwrap();
        let examples = OrchestrationToolExamples {
            batch: r#"{"invocations": [{"tool_name": "one"}]}"#,
            subagent: r#"{"prompt": "p"}"#,
            tool_search: r#"{"query": "q"}"#,
            call_tool: r#"{"name": "one"}"#,
        };
        house.registry.register(Arc::new(OrchestrationTools::new(examples, |_| Vec::new(), None))).await.unwrap();
        house
    }
}

pub(super) fn calls(calls: Value) -> Value {
    json!({"calls": calls})
}

/// Returns `depth` nested calls of `make` around a call of `echo`.
fn nest(depth: usize) -> Value {
    (0..depth).fold(json!(["echo", {}]), |inner, _| json!(["make", {"calls": [inner]}]))
}

impl House {
    fn row(&self, tool: &str) -> ToolExecution {
        self.log.rows().into_iter().find(|row| row.tool == tool).unwrap()
    }

    /// Checks that every record is final, and that every nested one has a recorded parent and starts after it.
    #[track_caller]
    fn check_tree(&self, about: &str) {
        let rows = self.log.rows();
        for row in &rows {
            assert!(row.outcome.is_final(), "{about}: {row:#?}");
            if let Some(parent) = row.parent {
                assert!(rows.iter().any(|row| row.id == parent), "{about}: {row:#?} has no parent in {rows:#?}");
            }
            assert_eq!(row.parent.is_none(), row.tool == rows[0].tool && row.id == rows[0].id, "{about}: {rows:#?}");
        }
    }
}

#[tokio::test]
async fn a_nested_call_has_its_own_record_that_refers_to_its_parent_call() {
    let house = Plan::default().house_that_nests().await;
    assert_eq!(
        house.call("make", calls(json!([["echo", {}], ["broken", {}], ["nowhere", {}]]))).await,
        "\
        hi\nio: the disk is gone\nnot_found: Unknown tool: nowhere. Call one of the tools that are listed."
    );
    let rows = house.log.rows();
    let output: Vec<_> = rows.iter().map(|row| (row.tool.as_str(), row.outcome.kind(), row.parent)).collect();
    let parent = Some(rows[0].id);
    assert_eq!(
        output,
        [
            ("make", OutcomeKind::Succeeded, None),
            ("echo", OutcomeKind::Succeeded, parent),
            ("broken", OutcomeKind::Failed, parent),
            ("nowhere", OutcomeKind::Refused, parent),
        ]
    );
    assert_eq!((&rows[1].session, &rows[1].client), (&rows[0].session, &rows[0].client));
}

#[tokio::test]
async fn nested_calls_inherit_the_labels_of_their_parent_call() {
    let house = Plan::default().house_that_nests().await;
    let labels = CallLabels::default().with("ticket", "T-1").unwrap();
    let labelled = command("make", calls(json!([nest(2)]))).labelled(labels.clone());
    house.handler.handle(labelled).await.unwrap();
    let rows = house.log.rows();
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row.labels == labels), "{rows:#?}");
}

#[tokio::test]
async fn calls_can_be_nested_eight_deep_and_no_deeper() {
    let house = Plan::default().house_that_nests().await;
    assert_eq!(house.call("make", calls(json!([nest(7)]))).await, "hi");
    let answer = house.call("make", calls(json!([nest(8)]))).await;
    assert!(answer.starts_with("too_large: Calls can be nested at most 8 deep"), "{answer}");
    let refused = house.log.rows().pop().unwrap();
    assert_eq!((refused.outcome.kind(), refused.tool.as_str()), (OutcomeKind::Refused, "echo"));
}

#[tokio::test]
async fn nested_calls_do_not_count_toward_the_limit_of_open_calls() {
    let house = Plan { hooks: vec![Arc::new(Yields)], ..Default::default() }.house_that_nests().await;
    let admit = || house.open_calls.admit(CallId(Uuid::now_v7()), Principal::local(), CancelSignal::new());
    let _full: Vec<OpenCallGuard> = (0..7).map(|_| admit().unwrap()).collect();
    let one = json!({"tool_name": "echo"});
    let batch = json!({"invocations": [one, one, one]});
    let (outcome, other) = tokio::join!(house.call("batch", batch), house.call("echo", json!({})));
    assert_eq!(outcome, "[0] echo\nhi\n[1] echo\nhi\n[2] echo\nhi");
    assert!(other.starts_with("refused rate_limited"), "{other}");
}

#[tokio::test]
async fn an_approval_request_for_a_nested_call_names_its_parent_tool() {
    let approver = Arc::new(ScriptedApprover::granting(2));
    let house = Plan { approver: approver.clone(), ..Default::default() }.house_that_nests().await;
    assert_eq!(house.call("make", calls(json!([["write", {}]]))).await, "written");
    house.call("write", json!({})).await;
    let within: Vec<Option<String>> = approver.questions().into_iter().map(|question| question.within).collect();
    assert_eq!(within, [Some("make".to_owned()), None]);
}

#[tokio::test]
async fn approval_of_a_nested_call_is_requested_from_the_client_of_the_root_call() {
    let house = Plan { approver: Arc::new(Forms::default()), ..Default::default() }.house_that_nests().await;
    let make = || modern("make", calls(json!([["write", {}]])));
    let state = house.asked(make()).await;
    assert_eq!((house.row("write").outcome.kind(), house.provider.calls().len()), (OutcomeKind::InputRequired, 0));
    assert_eq!(house.execute(retry(make(), &state, "yes")).await, "written");
    assert_eq!((house.row("write").outcome.kind(), house.provider.calls().len()), (OutcomeKind::Succeeded, 1));
}

#[tokio::test]
async fn a_call_that_ends_cancels_its_unfinished_nested_calls() {
    let rules = vec![(Effect::Allow, "write"), (Effect::Allow, "endless")];
    let house = Plan { rules, ..Default::default() }.house_that_nests().await;
    assert_eq!(house.call("abandon", json!({})).await, "left");
    house.check_tree("abandoned");
    assert_eq!(house.row("endless").outcome, ExecutionOutcome::Cancelled(CancelReason::Client));
    assert_eq!(house.provider.ends()[0].1, ObservedCallEnd::Dropped);
}

#[tokio::test(start_paused = true)]
async fn a_nested_call_is_limited_to_the_remaining_time_of_its_parent() {
    let house = Plan { rules: vec![(Effect::Allow, "endless")], ..Default::default() }.house_that_nests().await;
    let arguments = calls(json!([["endless", {}], ["echo", {}]]));
    let command = ExecuteToolCommand { timeout: Some(Duration::from_secs(5)), ..command("make", arguments) };
    let answer = house.execute(command).await;
    assert!(answer.starts_with("timeout: The tool `endless` did not end within"), "{answer}");
    assert_eq!(house.row("endless").outcome.error_kind(), Some(ErrorKind::Timeout));
}

/// Approver other than the client, which approves after this time.
struct Slow(Duration);

#[async_trait]
impl Approver for Slow {
    async fn ask(&self, _: ApprovalRequest<'_>) -> ApprovalOutcome {
        tokio::time::sleep(self.0).await;
        ApprovalOutcome::once("tester")
    }
}

/// Returns a call that makes a nested call, which writes twice.
fn two_levels() -> Value {
    calls(json!([["make", {"calls": [["write", {}], ["write", {}]]}]]))
}

#[tokio::test(start_paused = true)]
async fn waiting_for_approval_of_a_nested_call_does_not_use_the_time_of_its_ancestors() {
    let house = Plan { approver: Arc::new(Slow(Duration::from_secs(60))), ..Default::default() };
    let house = house.house_that_nests().await;
    let timeout = Some(Duration::from_secs(5));
    let message = house.execute(ExecuteToolCommand { timeout, ..command("make", two_levels()) }).await;
    assert_eq!(message, "written\nwritten");
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_client_retry_does_not_use_the_time_of_nested_calls_or_their_parents() {
    let house = Plan { approver: Arc::new(Forms::default()), ..Default::default() }.house_that_nests().await;
    let timeout = Some(Duration::from_secs(5));
    let make = || ExecuteToolCommand { timeout, ..modern("make", two_levels()) };
    let mut state = house.asked(make()).await;
    tokio::time::advance(Duration::from_secs(60)).await;
    state = house.asked(retry(make(), &state, "yes")).await;
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(house.execute(retry(make(), &state, "yes")).await, "written\nwritten");
    house.check_tree("asked for two minutes");
}

#[tokio::test]
async fn log_messages_of_nested_calls_reach_the_client_but_their_progress_does_not() {
    let log = LogMessage::new(LogLevel::Info, "here");
    let chatty = ScriptedTool::named("chatty").logs(log).reports(Progress::at(1.0));
    let house = Plan::default().house(ScriptedProvider::new("built-in").with(chatty)).await;
    house.registry.register(Arc::new(Maker(house.provider.clone()))).await.unwrap();
    let caller = Arc::new(RecordingCaller::new());
    let command = ExecuteToolCommand { caller: caller.clone(), ..command("make", calls(json!([["chatty", {}]]))) };
    house.execute(command).await;
    assert_eq!((caller.log_messages().len(), caller.progress_reports().len()), (1, 0));
}

#[tokio::test]
async fn no_nested_call_runs_while_the_call_that_makes_it_cannot_be_recorded() {
    let house = Plan::default().house_that_nests().await;
    house.log.fail_next_record();
    let answer = house.call("make", calls(json!([["echo", {}], ["echo", {}]]))).await;
    assert_eq!(answer, "the call did not run: its start cannot be recorded");
    assert_eq!(house.provider.calls().len(), 0);
    // A built-in tool without accesses is recorded before its first nested call.
    house.log.fail_next_record();
    let echo = json!({"tool_name": "echo"});
    let answer = house.call("batch", json!({"invocations": [echo, echo]})).await;
    assert_eq!(
        (answer.matches("its start cannot be recorded").count(), answer.matches("hi").count()),
        (1, 1),
        "{answer}"
    );
    assert_eq!(house.provider.calls().len(), 1);
}

#[tokio::test]
async fn a_batch_leaves_references_to_be_resolved_by_the_nested_calls() {
    let outputs = Arc::new(InMemoryOutputStore::new());
    let id = CallId(Uuid::now_v7());
    outputs.store(&Principal::local(), id, "application/json", br#"{"a": 1}"#).await.unwrap();
    let house = Plan { outputs, ..Default::default() }.house_that_nests().await;
    let read = json!({"tool_name": "Read", "parameters": {"file_path": {"$ref": "o1"}}});
    assert_eq!(house.call("batch", json!({"invocations": [read]})).await, "[0] Read\ncontent");
    assert_eq!(house.provider.calls()[0].arguments["path"], r#"{"a": 1}"#);
}

#[tokio::test]
async fn a_batch_with_wrong_arguments_runs_nothing() {
    let house = Plan::default().house_that_nests().await;
    let [wrong, good] = [json!({"tool_name": "read"}), json!({"tool_name": "echo"})];
    let answer = house.call("batch", json!({"invocations": [good, wrong, good]})).await;
    assert!(answer.contains("invocations[1] (`read`): The arguments do not fit the tool `read`"), "{answer}");
    assert_eq!((house.provider.calls().len(), house.log.rows().len()), (0, 1));
}

/// Hook that yields to other tasks at each step.
struct Yields;

#[async_trait]
impl ToolHook for Yields {
    fn name(&self) -> &str {
        "yields"
    }
    async fn before(&self, _: &ToolCall, _: Option<&[Access]>) -> BeforeCallResponse {
        yield_now().await;
        BeforeCallResponse::proceed()
    }
    async fn after(&self, _: EndedCall<'_>) -> AfterCallResponse {
        yield_now().await;
        AfterCallResponse::default()
    }
}

#[tokio::test]
async fn the_whole_tree_is_on_record_wherever_it_is_cancelled() {
    let rules = || vec![(Effect::Allow, "write"), (Effect::Allow, "endless")];
    let one = json!({"tool_name": "write"});
    let window = ["make", "echo", "write"];
    let in_windows =
        json!(["make", {"window": window, "calls": [["make", {"window": window, "calls": [["write", {}]]}]]}]);
    let tree = json!([["echo", {}], nest(2), in_windows, ["batch", {"invocations": [one, one, {"tool_name": "echo"}]}], ["endless", {}]]);
    let reasons = [None, Some(CancelReason::Client), Some(CancelReason::Deadline), Some(CancelReason::Shutdown)];
    for (points, reason) in (0..120).zip(reasons.into_iter().cycle()) {
        let plan = Plan { rules: rules(), hooks: vec![Arc::new(Yields)], ..Default::default() };
        let house = plan.house_that_nests().await;
        let cancel = CancelSignal::new();
        {
            let command = ExecuteToolCommand { cancel: cancel.clone(), ..command("make", calls(tree.clone())) };
            let mut calling = pin!(house.handler.handle(command));
            for _ in 0..=points {
                assert_eq!(poll!(&mut calling).map(drop), Poll::Pending, "the last call never ends");
                yield_now().await;
            }
            if let Some(reason) = reason {
                cancel.cancel(reason);
                let _ = calling.await;
            }
        }
        house.open_calls.drained().await;
        house.check_tree(&format!("after {points} turns, {reason:?}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_nested_call_is_allowed_what_the_policy_allows_and_nothing_else(
        rules in prop::collection::vec((
            prop::sample::select(vec![Effect::Allow, Effect::Ask, Effect::Deny]),
            prop::sample::select(vec!["write", "echo", "endless", "outside", "make", "batch", "Write", "Write(//w/**)", "Edit(//w/b)"]),
        ), 0..5),
        through in prop::sample::select(vec!["make", "batch"]),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let house = Plan { rules, ..Default::default() }.house_that_nests().await;
            let is_allowed = |tool: &str| {
                let accesses = match tool {
                    "write" => write("/w/a"),
                    "outside" => write("/etc/a"),
                    _ => Vec::new(),
                };
                let tool = house.registry.resolve(tool).unwrap().tool.clone();
                house.permissions.policy_of(&RequestScope::of(Principal::local(), "s")).decide(&tool, &Map::new(), &accesses).verdict == Verdict::Allow
            };
            for tool in ["write", "echo", "outside"] {
                let before = house.provider.calls().len();
                match through {
                    "make" => house.call("make", calls(json!([[tool, {}]]))).await,
                    _ => house.call("batch", json!({"invocations": [{"tool_name": tool}]})).await,
                };
                let ran = house.provider.calls().len() > before;
                prop_assert_eq!(ran, is_allowed(through) && is_allowed(tool), "{} through {}", tool, through);
            }
            Ok(())
        })?;
    }
}
