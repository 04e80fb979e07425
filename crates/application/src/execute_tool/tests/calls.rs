//! Calls from their resolution to their audit records.

use super::*;

#[tokio::test]
async fn a_successful_call_returns_its_result_and_is_recorded() {
    let house = Plan::default().house(provider()).await;
    assert_eq!(house.call("echo", json!({"a": 1})).await, "hi");
    let row = house.only_row();
    assert_eq!(
        (row.tool.as_str(), &row.outcome, row.ended),
        ("echo", &ExecutionOutcome::Succeeded, Some(Timestamp(1)))
    );
    assert_eq!((row.arguments, row.source.as_str()), (json!({"a": 1}), "built-in"));
    assert_eq!(row.decision.unwrap().reason, "calls that touch nothing are allowed by default");
}

#[tokio::test]
async fn calls_that_cannot_be_made_are_rejected_with_a_suggestion_and_recorded() {
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
        "not callable unavailable: the tool `away` is unavailable here. Use another tool, or ask your user to set it up."
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
async fn provider_failures_and_panics_become_error_results() {
    let house = Plan::default().house(provider()).await;
    assert_eq!(house.call("broken", json!({})).await, "failed io: the disk is gone");
    assert_eq!(house.call("bomb", json!({})).await, "failed internal: the tool `bomb` failed unexpectedly");
    assert_eq!(house.call("echo", json!({})).await, "hi");
    assert_eq!(house.log.rows().len(), 3);
}

#[tokio::test]
async fn a_call_that_can_change_something_is_on_record_before_it_runs() {
    let silent = samples::tool("silent");
    let source = ToolSource::Embedded(ServerName::program());
    let silent = Tool::new(silent.name().clone(), silent.definition().clone(), Category::Utility, source);
    for tool in ["endless", "silent"] {
        let provider = provider().with(ScriptedTool::of(silent.clone()).never_ends());
        let rules = vec![(Effect::Allow, "Write"), (Effect::Allow, "silent")];
        check_on_record(Plan { rules, ..Default::default() }.house(provider).await, tool).await;
    }
}

async fn check_on_record(house: House, tool: &'static str) {
    let calling = tokio::spawn({
        let handler = house.handler.clone();
        async move { handler.handle(command(tool, json!({}))).await }
    });
    house.provider.began(1).await;
    assert_eq!(house.only_row().outcome, ExecutionOutcome::Running);
    // The caller drops the call: the provider's future is dropped, and the record is completed all the same.
    calling.abort();
    house.provider.ended(1).await;
    house.open_calls.drained().await;
    assert_eq!(house.provider.ends()[0].1, ObservedCallEnd::Dropped);
    assert_eq!(wait_for_end(&house).await.outcome, ExecutionOutcome::Cancelled(CancelReason::Client));
}

/// Returns the only record once it is final. It is written just after the call is closed.
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
async fn a_call_that_cannot_be_recorded_does_not_run_or_has_its_result_withheld() {
    let house = Plan { rules: vec![(Effect::Allow, "Write")], ..Default::default() }.house(provider()).await;
    house.log.fail_next_record();
    assert_eq!(house.call("write", json!({})).await, "the call did not run: its start cannot be recorded");
    assert_eq!(house.provider.calls().len(), 0, "it did not run");
    house.log.fail_next_record();
    let message = "the call ran and succeeded, but its outcome could not be recorded, so its result is withheld";
    assert_eq!(house.call("echo", json!({})).await, message);
    assert_eq!(house.provider.calls().len(), 1, "it ran, and its result is withheld");
    // The disk remains full: the first error is reported, not the failure to record it.
    house.log.be_full(true);
    for (tool, message) in [
        ("write", "the call did not run: its start cannot be recorded"),
        ("nothing", "the call was refused and did not run, and that could not be recorded"),
    ] {
        assert_eq!(house.call(tool, json!({})).await, message);
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
    assert_eq!(house.provider.ends()[0].1, ObservedCallEnd::Dropped);
    assert!(matches!(house.only_row().outcome, ExecutionOutcome::Failed(ErrorKind::Timeout, _)));
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
        assert!(matches!(error, ExecuteToolError::Cancelled(outcome) if outcome == reason), "{error}");
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
    house.open_calls.end();
    for call in calls {
        assert!(call.await.unwrap().is_err());
    }
    assert_eq!(house.call("echo", json!({})).await, "the call did not run: the application is closed");
    let row = house.log.rows().pop().unwrap();
    assert_eq!(row.outcome.kind().as_str(), "refused");
    house.log.be_full(true);
    let answer = house.call("echo", json!({})).await;
    assert_eq!(answer, "the call did not run: the application is closed, and that could not be recorded");
}

#[tokio::test]
async fn a_read_only_hint_does_not_exempt_a_call_from_recording_its_start() {
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
