//! The course of one turn, answer by answer.

use super::*;
use async_trait::async_trait;
use tokio::sync::Semaphore;
use toolstead_domain::{
    CallContext, CallOutcome, ProviderListError, QuestionGroupId, Tool, ToolCall, ToolFailure,
    question::{self},
    testing::scripted_provider::scripted_tool::Ending,
};

#[track_caller]
fn check_lines(found: &[String], expected: &[&str]) {
    let fits = |(found, expected): (&String, &&str)| match expected.split_once("..") {
        Some((first, last)) => found.starts_with(first) && found.ends_with(last),
        None => found == expected,
    };
    let fit = found.len() == expected.len() && found.iter().zip(expected).all(fits);
    assert!(fit, "found {found:#?}\nexpected {expected:#?}");
}

/// Runs the prompt `go`, and returns its outcome and the stored events. `..` matches any text.
async fn check(answers: impl IntoIterator<Item = ScriptedAnswer>, end: &str, history: &[&str]) {
    let (house, model) = (house().await, model(answers));
    let ran = house.run(&model, "go").await;
    check_lines(&[ran.end()], &[end]);
    check_lines(&house.history().await[1..], history);
    assert_eq!(model.left(), 0, "every answer was asked for");
    for request in model.requests() {
        check_is_sendable(&request.messages);
    }
}

#[tokio::test]
async fn a_turn_continues_until_the_model_makes_no_calls() {
    check([text("hello")], "finished", &["model end_turn: hello", "end: finished"]).await;
    check(
        [call("c1", "echo"), text("done")],
        "finished",
        &["model tool_use: c1=echo", "result c1: hi", "model end_turn: done", "end: finished"],
    )
    .await;
    check(
        [text("look").and_call("c1", "echo", json!({})).and_call("c2", "other", json!({"a": 1})), text("done")],
        "finished",
        &[
            "model tool_use: look c1=echo c2=other",
            "result c1: hi",
            "result c2: ho",
            "model end_turn: done",
            "end: finished",
        ],
    )
    .await;
    // Calls are made whatever stop reason the provider gives.
    check(
        [call("c1", "echo").stops(StopReason::EndTurn), text("done").stops(StopReason::ToolUse)],
        "finished",
        &["model end_turn: c1=echo", "result c1: hi", "model tool_use: done", "end: finished"],
    )
    .await;
    check([ScriptedAnswer::empty()], "finished", &["model end_turn: ", "end: finished"]).await;
}

#[tokio::test]
async fn an_empty_or_blank_prompt_is_rejected_and_not_sent_to_the_model() {
    let (house, model) = (house().await, model([text("hello")]));
    for (prompt, end) in [(" \n", "failed invalid_input: "), ("hi", "finished"), ("", "failed invalid_input: ")] {
        let ran = house.run(&model, prompt).await;
        assert!(ran.end().starts_with(end), "{prompt:?}: {}", ran.end());
    }
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn an_impossible_or_failed_call_has_an_error_result_and_does_not_affect_its_siblings() {
    for (tool, arguments, result) in [
        ("ecko", json!({}), "error c1: Unknown tool: ecko. Did you mean `echo`?"),
        ("print_echo", json!({}), "error c1: Unknown tool: print_echo. Did you mean `echo`?"),
        ("xyzzy", json!({}), "error c1: Unknown tool: xyzzy. Call one of the tools that are listed."),
        ("echo", json!("{\"a\": "), "error c1 (never made): Not made: ..EOF..{\"a\": "),
        ("echo", json!("[1]"), "error c1 (never made): Not made: ..not a JSON object..[1]"),
        ("broken", json!({}), "error c1: the disk is gone"),
        ("bomb", json!({}), "error c1: .."),
        ("outside", json!({}), "error c1: ..permi.."),
    ] {
        // The parts of an expected line in the middle are looked for one by one.
        let parts: Vec<&str> = result.split("..").collect();
        let (house, model) = (
            house().await,
            model([ScriptedAnswer::call("c1", tool, arguments).and_call("c2", "echo", json!({})), text("done")]),
        );
        let ran = house.run(&model, "go").await;
        assert_eq!(ran.end(), "finished");
        let history = house.history().await;
        let line = &history[2];
        assert!(parts.iter().all(|part| line.contains(part)), "{line}\nhas not all of {parts:?}");
        assert_eq!(history[3], "result c2: hi", "{tool}");
        let is_error = model.requests()[1].messages[2]
            .blocks
            .iter()
            .any(|block| matches!(block, Block::ToolResult(ToolResultBlock { id, is_error: true, .. }) if id == "c1"));
        assert!(is_error, "the model hears that it failed");
    }
}

#[tokio::test]
async fn calls_use_the_session_of_the_conversation_instead_of_the_session_of_the_scope() {
    let (house, model) = (house().await, model([call("c1", "echo"), text("done")]));
    let scope = RequestScope::of(Principal::local(), "elsewhere");
    house.ran(RunAgentCommand { scope, ..house.command(&model, "go") }).await;
    let sessions: Vec<String> = house.log.rows().into_iter().map(|row| row.session).collect();
    assert_eq!(sessions, [house.conversation.to_string()]);
}

#[tokio::test]
async fn every_call_has_an_audit_record_under_the_call_id_in_the_conversation() {
    let (house, model) =
        (house().await, model([call("c1", "echo").and_call("c2", "nothing", json!({})), text("done")]));
    house.run(&model, "go").await;
    let kept: Vec<_> = house
        .events()
        .await
        .into_iter()
        .filter_map(|event| match event.kind {
            ConversationEventKind::CallEnded { call, record, .. } => Some((call, record)),
            _ => None,
        })
        .collect();
    for (call, record) in kept {
        let rows = house.log.rows();
        let row = rows.iter().find(|row| Some(row.id) == call).unwrap();
        assert_eq!((row.session.as_str(), &record["toolName"]), (&*house.conversation.to_string(), &json!(row.tool)));
    }
}

#[tokio::test]
async fn a_truncated_model_answer_is_continued_at_most_three_times() {
    let cut = |words: &str| text(words).stops(StopReason::MaxTokens);
    let brief = "user: Your answer was cut off at the maximum length. Continue where it ended, and be brief.";
    check(
        [cut("one "), text("two")],
        "finished",
        &["model max_tokens: one ", brief, "model end_turn: two", "end: finished"],
    )
    .await;
    check(
        [cut("a"), cut("b"), cut("c"), cut("d")],
        "failed too_large: ..`max_output_tokens`",
        &[
            "model max_tokens: a",
            brief,
            "model max_tokens: b",
            brief,
            "model max_tokens: c",
            brief,
            "model max_tokens: d",
            "end: failed",
        ],
    )
    .await;
    // An unfinished call is in no block.
    let lost = ModelEvent::CallBegun { name: "write".into() };
    check(
        [text("x").and_event(lost).stops(StopReason::MaxTokens), call("c1", "write"), text("done")],
        "finished",
        &[
            "model max_tokens: x",
            "user: Your answer was cut off at the maximum length while you wrote a call of `write`...",
            "model tool_use: c1=write",
            "result c1: written",
            "model end_turn: done",
            "end: finished",
        ],
    )
    .await;
    check(
        [call("c1", "echo").stops(StopReason::MaxTokens), text("done")],
        "finished",
        &["model max_tokens: c1=echo", "result c1: hi", "model end_turn: done", "end: finished"],
    )
    .await;
    let (house, model) = (house().await, model([cut("one "), text("two")]));
    assert_eq!(house.run(&model, "go").await.text(), "one two", "the answer is whole");
}

#[tokio::test]
async fn a_model_failure_ends_the_run_and_keeps_the_partial_answer() {
    let gone = || ModelError::Unreachable("the line is dead".into());
    check(
        [ScriptedAnswer::refused(ModelError::Unauthorized("no key".into()))],
        "failed auth_required: no key",
        &["end: failed"],
    )
    .await;
    check([ScriptedAnswer::empty().breaks_off(gone())], "failed unavailable: the line is dead", &["end: failed"]).await;
    let half = ScriptedAnswer::empty().and_event(ModelEvent::TextDelta("half".into())).breaks_off(gone());
    check([half], "failed unavailable: the line is dead", &["model -: half", "end: failed"]).await;
    check(
        [call("c1", "echo").breaks_off(gone())],
        "failed unavailable: the line is dead",
        &["model -: c1=echo", "error c1 (never made): not made: the answer broke off", "end: failed"],
    )
    .await;
    check(
        [text("no").stops(StopReason::Refused)],
        "failed permission_denied: ..",
        &["model refused: no", "end: failed"],
    )
    .await;
}

#[tokio::test]
async fn a_run_emits_all_events_in_order_with_secrets_redacted_and_usage_reported() {
    let answers = [
        text("look")
            .and_call("c1", "echo", json!({"password": "hunter22"}))
            .uses(TokenUsage { input_tokens: 10, output_tokens: 5, ..TokenUsage::default() })
            .after_retry(std::time::Duration::from_secs(2), "busy"),
        text("done").uses(TokenUsage { input_tokens: 20, output_tokens: 1, ..TokenUsage::default() }),
    ];
    let (house, model) = (house().await, model(answers));
    let mut watch = house.bus.subscribe_as(Principal::local());
    let ran = house.run(&model, "go").await;
    let message: Vec<String> = ran.events.iter().map(|event| event.to_json().to_string()).collect();
    let kinds: Vec<Value> = ran.events.iter().map(|event| event.to_json()["type"].clone()).collect();
    assert_eq!(
        kinds,
        [
            "started",
            "retrying",
            "text",
            "text",
            "call_written",
            "answered",
            "call_started",
            "call_ended",
            "text",
            "text",
            "answered",
            "ended"
        ]
    );
    assert!(!message.concat().contains("hunter22"), "arguments are told as the audit trail keeps them: {message:#?}");
    let end = ran.events.last().unwrap().to_json();
    assert_eq!((&end["usage"]["input_tokens"], &end["calls"], &end["turns"]), (&json!(30), &json!(1), &json!(2)));
    assert_eq!(end["text"], "done");
    let heard: Vec<Value> = std::iter::from_fn(|| watch.waiting()).map(|heard| heard.to_json()).collect();
    let usage = heard.iter().filter(|event| event["type"] == "usage");
    let usage: Vec<_> = usage.map(|event| (event["session"].clone(), event["input_tokens"].clone())).collect();
    let session = json!(house.conversation.to_string());
    assert_eq!(usage, [(session.clone(), json!(10)), (session, json!(20))], "the whole hears what it took");
}

#[tokio::test]
async fn a_conversation_continues_in_the_next_run_of_its_own_principal_only() {
    let house = house().await;
    house.run(&model([text("hello")]), "my name is Ann\nand more").await;
    let second = model([text("Ann")]);
    house.run(&second, "who am I").await;
    let said: Vec<String> = second.requests()[0].messages.iter().map(|message| message.text()).collect();
    assert_eq!(said, ["my name is Ann\nand more", "hello", "who am I"]);
    let kept = house.store.find(&Principal::local(), house.conversation).await.unwrap().unwrap();
    assert_eq!(kept.title, "my name is Ann");
    let stranger = model([text("who?")]);
    let scope = RequestScope::of(Principal::token("other"), house.conversation.session());
    let ran = house.ran(RunAgentCommand { scope, ..house.command(&stranger, "who am I") }).await;
    let said: Vec<String> =
        stranger.requests().iter().flat_map(|request| &request.messages).map(|message| message.text()).collect();
    assert_eq!(said, ["who am I"], "{}", ran.end());
}

#[tokio::test]
async fn a_run_without_a_prompt_continues_only_if_the_last_message_is_unanswered() {
    let house = house().await;
    let silent = |model: &Arc<ScriptedModel>| RunAgentCommand { prompt: Vec::new(), ..house.command(model, "") };
    let nothing = model([]);
    assert_eq!(house.ran(silent(&nothing)).await.outcome().as_str(), "failed");
    let broken = model([ScriptedAnswer::refused(ModelError::Unreachable("gone".into()))]);
    house.run(&broken, "go").await;
    let better = model([text("here")]);
    assert_eq!(house.ran(silent(&better)).await.end(), "finished");
    assert_eq!(better.requests()[0].messages, [Message::user("go")]);
    assert_eq!(house.ran(silent(&nothing)).await.outcome().as_str(), "failed", "the model has the last word");
}

#[tokio::test]
async fn a_run_fails_if_another_run_continues_its_conversation_meanwhile() {
    let house = house().await;
    let slow = model([text("a").waits()]);
    let mut first = house.handler.start(house.command(&slow, "one"));
    slow.stuck(1).await;
    let ran = house.run(&model([text("b")]), "two").await;
    assert_eq!(ran.end(), "finished");
    slow.release();
    let mut last = None;
    while let Some(event) = first.next().await {
        last = Some(event);
    }
    let Some(AgentEvent::Ended { outcome: AgentOutcome::Failed { message, .. }, .. }) = last else {
        panic!("{last:?}")
    };
    assert!(message.contains("continued elsewhere"), "{message}");
}

#[tokio::test]
async fn a_run_fails_if_its_conversation_cannot_be_stored() {
    let (house, model) = (house().await, model([text("a")]));
    house.store.fail_next_append();
    let ran = house.run(&model, "one").await;
    assert!(ran.end().starts_with("failed io: the conversation cannot be stored"), "{}", ran.end());
    assert_eq!(model.requests().len(), 0);
}

/// `slow` ends only once `quick` has.
struct Meeting {
    quick_ended: Semaphore,
}

#[async_trait]
impl ToolProvider for Meeting {
    fn name(&self) -> &str {
        "built-in"
    }

    async fn list(&self) -> Result<Vec<Tool>, ProviderListError> {
        Ok(["slow", "quick"].map(samples::tool).to_vec())
    }

    async fn accesses(&self, call: &ToolCall) -> Result<Vec<Access>, ToolFailure> {
        Ok(reading(&format!("/w/{}", call.tool.name())))
    }

    async fn call(&self, call: &ToolCall, _: &CallContext<'_>) -> Result<CallOutcome, ToolFailure> {
        match call.tool.name().as_str() {
            "slow" => drop(self.quick_ended.acquire().await),
            _ => self.quick_ended.add_permits(1),
        }
        Ok(CallOutcome::Done(ToolResult::text(call.tool.name().as_str())))
    }
}

#[tokio::test]
async fn calls_that_only_read_run_side_by_side_and_end_in_their_order() {
    let house = Plan::default().house(Arc::new(Meeting { quick_ended: Semaphore::new(0) })).await;
    let model = model([call("c1", "slow").and_call("c2", "quick", json!({})), text("done")]);
    let ran = house.run(&model, "go").await;
    let message: Vec<String> = ran
        .events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::CallStarted { id, .. } => Some(format!("+{id}")),
            AgentEvent::CallEnded { id, .. } => Some(format!("-{id}")),
            _ => None,
        })
        .collect();
    assert_eq!(message, ["+c1", "+c2", "-c1", "-c2"]);
    assert_eq!(house.history().await[2..4], ["result c1: slow", "result c2: quick"]);
}

#[tokio::test]
async fn a_call_waits_for_earlier_calls_with_conflicting_accesses() {
    let provider = Arc::new(
        ScriptedProvider::new("built-in")
            .with(ScriptedTool::named("endless").touches(writing("/w/a")).never_ends())
            .with(ScriptedTool::named("read").touches(reading("/w/a")))
            .with(ScriptedTool::named("other").touches(reading("/w/b"))),
    );
    let house = Plan::default().house(provider.clone()).await;
    let model = model([call("c1", "endless").and_call("c2", "read", json!({})).and_call("c3", "other", json!({}))]);
    let mut run = house.handler.start(house.command(&model, "go"));
    provider.ended(1).await;
    let begun: Vec<String> = provider.calls().iter().map(|call| call.tool.name().to_string()).collect();
    assert_eq!(begun, ["endless", "other"], "`read` waits for the one that writes");
    run.cancel.cancel(CancelReason::Client);
    while run.next().await.is_some() {}
    let history = house.history().await;
    assert!(history[2].starts_with("error c1:"), "{history:#?}");
    assert!(history[3].starts_with("error c2 (never made): cancelled"), "{history:#?}");
    assert!(history[4].starts_with("result c3:"), "{history:#?}");
}

#[tokio::test]
async fn no_more_than_eight_calls_run_at_once() {
    let provider = Arc::new(provider());
    let house = Plan::default().house(provider.clone()).await;
    let answer =
        (0..12).fold(ScriptedAnswer::empty(), |answer, n| answer.and_call(&format!("c{n}"), "endless", json!({})));
    let model = model([answer]);
    let mut run = house.handler.start(house.command(&model, "go"));
    provider.began(8).await;
    run.cancel.cancel(CancelReason::Client);
    while run.next().await.is_some() {}
    assert_eq!(provider.calls().len(), 8);
    let history = house.history().await;
    assert_eq!(history.iter().filter(|line| line.contains("(never made)")).count(), 4, "{history:#?}");
}

#[tokio::test]
async fn a_run_ends_when_a_call_waits_for_an_answer_and_can_resume_with_its_result() {
    let asking = ScriptedTool::named("other")
        .touches(reading("/w/a"))
        .ends_by(|_| Ending::Done(question::waiting_for(ToolResult::text("asked as q3"), QuestionGroupId(3))));
    let house = Plan::default().house(Arc::new(ScriptedProvider::new("built-in").with(asking))).await;
    let asks = ScriptedAnswer::call("c1", "other", json!({})).and_call("c2", "other", json!({}));
    let first = model([asks]);
    let ran = house.run(&first, "decide").await;
    assert_eq!(ran.outcome(), &AgentOutcome::Waiting("q3".into()));
    assert_eq!(first.requests().len(), 1, "the model is not asked again");
    let log = house.events().await;
    let last = log.last().map(|event| event.kind.clone());
    let ended = ConversationEventKind::TurnEnded { outcome: "waiting".into(), message: Some("q3".into()) };
    assert_eq!(last, Some(ended));
    let again = model([text("done")]);
    let ran = house.ran(RunAgentCommand { prompt: Vec::new(), ..house.command(&again, "") }).await;
    assert_eq!(ran.end(), "finished");
    check_is_sendable(&again.requests()[0].messages);
    assert!(format!("{:?}", again.requests()[0].messages).contains("asked as q3"));
}
