//! Budgets, and runs in a loop.

use super::*;
use std::time::Duration;
use toolstead_domain::{Budgets, TokenPrices};

/// A model that calls a tool in every answer.
fn restless(answers: usize) -> Arc<ScriptedModel> {
    let usage = TokenUsage { input_tokens: 1_000, output_tokens: 100, ..TokenUsage::default() };
    let prices = TokenPrices { input: 10.0, cache_read: 1.0, cache_write: 10.0, output: 50.0 };
    let answers = (0..answers).map(|n| ScriptedAnswer::call(&format!("c{n}"), "echo", json!({"n": n})).uses(usage));
    Arc::new(ScriptedModel::answering(answers).with_prices(prices))
}

async fn check(budgets: impl FnOnce(&mut Budgets), end: &str, requests: usize, calls: usize) {
    let (house, model) = (house().await, restless(20));
    let mut command = house.command(&model, "go");
    budgets(&mut command.budgets);
    let ran = house.ran(command).await;
    assert_eq!((ran.end().as_str(), model.requests().len()), (end, requests));
    let history = house.history().await;
    let made = history.iter().filter(|line| line.starts_with("result ")).count();
    assert_eq!(made, calls, "{history:#?}");
    assert_eq!(history.last().map(String::as_str), Some(format!("end: {}", end.rsplit(' ').next().unwrap()).as_str()));
    let json = ran.events.last().unwrap().to_json();
    assert_eq!(json["budget"], end.rsplit(' ').next().unwrap(), "the last event names it");
    for request in model.requests() {
        check_is_sendable(&request.messages);
    }
}

#[tokio::test]
async fn a_run_ends_before_it_would_go_over_a_budget() {
    check(|budgets| budgets.turns = Some(3), "budget_exhausted turns", 3, 2).await;
    check(|budgets| budgets.turns = Some(1), "budget_exhausted turns", 1, 0).await;
    check(|budgets| budgets.tokens = Some(3_500), "budget_exhausted tokens", 3, 2).await;
    check(|budgets| budgets.cost = Some(0.0305), "budget_exhausted cost", 2, 1).await;
    check(|budgets| budgets.turns = Some(0), "budget_exhausted turns", 0, 0).await;
    // Three calls, a refused one, and a last text.
    check(|budgets| budgets.calls = Some(3), "budget_exhausted calls", 5, 3).await;
}

#[tokio::test]
async fn the_model_receives_its_remaining_calls_and_gets_a_final_turn_without_tools() {
    let house = house().await;
    let model = model([
        call("c1", "echo"),
        call("c2", "echo").and_call("c3", "other", json!({})),
        call("c4", "read").and_call("c5", "other", json!({})).and_call("c6", "other", json!({})),
        text("this is what I know"),
    ]);
    let mut command = house.command(&model, "go");
    command.budgets.calls = Some(5);
    let ran = house.ran(command).await;
    assert_eq!((ran.end().as_str(), ran.text()), ("budget_exhausted calls", "this is what I know"));
    let history = house.history().await;
    let left = |n| format!("[Calls that may still be made: {n}]");
    for (id, expected) in [("c1", None), ("c2", Some(3)), ("c3", Some(2)), ("c4", Some(1)), ("c5", Some(0))] {
        let line = history.iter().find(|line| line.starts_with(&format!("result {id}"))).unwrap();
        assert_eq!(line.contains("[Calls"), expected.is_some(), "{line}");
        assert!(expected.is_none_or(|expected| line.ends_with(&left(expected))), "{line}");
    }
    let refused = history.iter().find(|line| line.starts_with("error c6 (never made)")).unwrap();
    assert!(refused.contains("the budget of calls of this run is used up"), "{refused}");
    let last = model.requests().pop().unwrap();
    assert!(last.tools.is_empty());
    let is_call = |block: &Block| matches!(block, Block::ToolUse(_) | Block::ToolResult(_));
    assert!(
        !last.messages.iter().flat_map(|message| &message.blocks).any(is_call),
        "providers refuse calls without tools"
    );
    assert!(last.messages.iter().any(|message| message.text().contains("[`read` answered:]content")), "{last:#?}");
}

#[tokio::test]
async fn a_token_budget_applies_even_if_the_provider_reports_no_usage() {
    let house = house().await;
    let model = model((0..100).map(|n| ScriptedAnswer::call(&format!("c{n}"), "echo", json!({"n": n}))));
    let mut command = house.command(&model, "go");
    command.budgets.tokens = Some(5_000);
    assert_eq!(house.ran(command).await.end(), "budget_exhausted tokens");
    assert!(model.requests().len() > 1);
}

#[tokio::test]
async fn a_cost_budget_without_known_prices_is_reported_in_a_notice() {
    for (prices, outcome) in [(None, true), (Some(TokenPrices::default()), false)] {
        let house = house().await;
        let model = ScriptedModel::answering([text("done")]);
        let model = Arc::new(
            prices.map_or_else(|| ScriptedModel::answering([text("done")]), |prices| model.with_prices(prices)),
        );
        let mut command = house.command(&model, "go");
        command.budgets.cost = Some(1.0);
        let ran = house.ran(command).await;
        assert_eq!((ran.end().as_str(), ran.notices().len() == 1), ("finished", outcome), "{:?}", ran.notices());
    }
}

#[tokio::test]
async fn a_summary_that_would_exceed_a_budget_is_not_requested() {
    let house = house().await;
    for n in 0..6 {
        house.run(&model([text(&"y".repeat(40_000))]), &format!("question {n}")).await;
    }
    let small = Arc::new(ScriptedModel::answering([]).with_window(50_000));
    let summarizer = Arc::new(ScriptedModel::answering([text("a summary")]));
    let mut command = house.command(&small, "go on");
    command.budgets.tokens = Some(5_000);
    command.summarizer = Some(summarizer.clone());
    let ran = house.ran(command).await;
    assert_eq!(ran.end(), "budget_exhausted tokens");
    assert_eq!((summarizer.requests().len(), small.requests().len()), (0, 0));
}

#[tokio::test]
async fn a_run_that_uses_exactly_its_budget_ends_as_finished() {
    let house = house().await;
    let model = model([call("c1", "echo"), text("done")]);
    let mut command = house.command(&model, "go");
    (command.budgets.calls, command.budgets.turns) = (Some(1), Some(2));
    assert_eq!(house.ran(command).await.end(), "finished");
}

#[tokio::test(start_paused = true)]
async fn the_time_budget_of_a_run_ends_a_running_call_or_answer() {
    for answers in [vec![call("c1", "endless")], vec![text("half").never_ends()]] {
        let (house, model) = (house().await, model(answers));
        let mut command = house.command(&model, "go");
        command.budgets.time = Some(Duration::from_secs(60));
        let ran = house.ran(command).await;
        assert_eq!(ran.outcome(), &AgentOutcome::BudgetExhausted(BudgetKind::Time));
        assert_eq!(house.history().await.last().unwrap(), "end: seconds");
    }
}

#[tokio::test]
async fn a_run_that_repeats_the_same_calls_receives_warnings_and_then_ends() {
    let nudges = |history: &[String]| history.iter().filter(|line| line.contains("times in a row")).count();
    let circle = |n: usize| (0..n).map(|n| call(&format!("c{n}"), "echo"));
    let (house, model_) = (house().await, model(circle(9)));
    let ran = house.run(&model_, "go").await;
    assert_eq!(ran.end(), "looping the same calls (echo) had the same results 5 times in a row");
    let history = house.history().await;
    assert_eq!((model_.requests().len(), nudges(&history)), (5, 2), "{history:#?}");
    assert!(history[6].starts_with("result c2: hi [The same calls have had the same results 3 times in a row"));
    check_is_sendable(&house.messages().await);

    // Another call in between, or other arguments, is not a loop.
    for between in [json!({"a": 1}), json!("malformed")] {
        let answers =
            circle(2).chain([ScriptedAnswer::call("b", "other", between)]).chain(circle(2)).chain([text("done")]);
        let (house, model_) = (super::house().await, model(answers));
        assert_eq!(house.run(&model_, "go").await.end(), "finished");
        assert_eq!(nudges(&house.history().await), 0);
    }
    // The same call once beside another one.
    let answers = (0..6).map(|n| call("a", "echo").and_call("b", "other", json!({"n": n}))).chain([text("done")]);
    let (house, model_) = (super::house().await, model(answers));
    assert_eq!(house.run(&model_, "go").await.end(), "finished");
    // A call that cannot be made also counts towards a loop.
    let answers = (0..9).map(|n| ScriptedAnswer::call(&format!("c{n}"), "echo", json!("{")));
    let (house, model_) = (super::house().await, model(answers));
    assert_eq!(house.run(&model_, "go").await.outcome().as_str(), "looping");
}
