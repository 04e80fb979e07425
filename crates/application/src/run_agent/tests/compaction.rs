//! Conversations that are longer than the model's context window.

use super::*;
use crate::run_agent::compaction::{CompactionRemainderLimits, plan};
use toolstead_domain::{TodoList, TodoStore, testing::todo_store_contract};

/// About a thousand tokens at the first guess.
const THOUSAND: usize = 4_000;

fn house_with(output: usize) -> ScriptedProvider {
    ScriptedProvider::new("built-in").with(ScriptedTool::named("read").touches(reading("/w/a")).ends_by(
        move |moment| {
            let n = &moment.call.arguments["n"];
            toolstead_domain::testing::scripted_provider::scripted_tool::Ending::Done(ToolResult::text(format!(
                "{n} {}",
                "x".repeat(output)
            )))
        },
    ))
}

async fn house_of(output: usize, hooks: Vec<Arc<dyn AgentHook>>) -> House {
    Plan { hooks, ..Plan::default() }.house(Arc::new(house_with(output))).await
}

fn reads(n: usize) -> impl Iterator<Item = ScriptedAnswer> {
    (0..n).map(|n| ScriptedAnswer::call(&format!("c{n}"), "read", json!({"n": n})))
}

fn compacted(ran: &Ran) -> Vec<&'static str> {
    let how = ran.events.iter().filter_map(|event| match event {
        AgentEvent::Compacted { how, before, after } => {
            assert!(after < before, "{before} tokens became {after}");
            Some(*how)
        }
        _ => None,
    });
    how.collect()
}

fn tokens(model: &ScriptedModel) -> Vec<u64> {
    let sizes = model.requests();
    sizes.iter().map(|request| size::TokenRatio::default().tokens(size::RequestSize::of_request(request))).collect()
}

#[tokio::test]
async fn old_outputs_are_masked_first_and_the_newest_stay() {
    let house = house_of(10 * THOUSAND, Vec::new()).await;
    let model = Arc::new(ScriptedModel::answering(reads(9).chain([text("done")])).with_window(100_000));
    let ran = house.run(&model, "read them all").await;
    assert_eq!((ran.end().as_str(), compacted(&ran)), ("finished", vec!["masked"]));
    assert!(tokens(&model).iter().all(|tokens| *tokens <= 80_000), "{:?}", tokens(&model));
    let last = model.requests().pop().unwrap();
    check_is_sendable(&last.messages);
    let results: Vec<String> = last
        .messages
        .iter()
        .flat_map(|message| &message.blocks)
        .filter_map(|block| match block {
            Block::ToolResult(result) => Some(words(&result.content)),
            _ => None,
        })
        .collect();
    let whole = |text: &String| text.len() > THOUSAND;
    assert!(
        !whole(&results[0]) && whole(&results[8]) && whole(&results[7]),
        "{:?}",
        results.iter().map(String::len).collect::<Vec<_>>()
    );
    assert_eq!(last.messages[0], Message::user("read them all"));
}

#[tokio::test]
async fn older_messages_become_a_summary_beside_the_first_user_message() {
    let house = house_of(10, Vec::new()).await;
    let long = || text(&"y".repeat(10 * THOUSAND));
    for n in 0..6 {
        let model = model([long()]);
        house.run(&model, &format!("question {n}")).await;
    }
    let small = Arc::new(ScriptedModel::answering([text("the end")]).with_window(50_000));
    let summarizer = Arc::new(ScriptedModel::answering([text("## Goal\nask six questions")]).named("small"));
    let ran = house
        .ran(RunAgentCommand { summarizer: Some(summarizer.clone()), ..house.command(&small, "question 6") })
        .await;
    assert_eq!((ran.end().as_str(), compacted(&ran)), ("finished", vec!["summarized"]));
    let [request] = &small.requests()[..] else { panic!("one request") };
    check_is_sendable(&request.messages);
    let first = request.messages[0].text();
    assert!(first.contains("question 0") && first.contains("ask six questions"), "{first:.300}");
    assert!(request.messages.last().unwrap().text().ends_with("question 6"));
    assert!(tokens(&small)[0] <= 40_000, "{:?}", tokens(&small));
    let asked = &summarizer.requests()[0];
    assert!(asked.tools.is_empty() && asked.messages.len() == 1 && asked.messages[0].text().contains("question 1"));
    let log = house.events().await;
    assert!(log.iter().any(|event| summary(&event.kind) == "user: question 1"), "the log keeps all");
}

#[test]
fn every_summary_keeps_the_first_and_the_last_user_message() {
    let answer = |stop| ConversationEventKind::ModelAnswered {
        blocks: vec![Block::text("y".repeat(1_000))],
        model: "m".into(),
        stop: Some(stop),
        usage: TokenUsage::default(),
    };
    let said = |text: &str| ConversationEventKind::UserSaid { blocks: vec![Block::text(text)] };
    let over = ConversationEventKind::TurnEnded { outcome: "finished".into(), message: None };
    let mut kinds = vec![said("build a shed"), answer(StopReason::EndTurn), over, said("paint it blue")];
    for _ in 0..3 {
        kinds.extend((0..5).map(|_| answer(StopReason::ToolUse)));
        kinds.extend([answer(StopReason::MaxTokens), said("Your answer was cut off."), answer(StopReason::ToolUse)]);
        let numbered = (1..).zip(kinds.iter().cloned());
        let events: Vec<ConversationEvent> =
            numbered.map(|(number, kind)| ConversationEvent { number, at: samples::START, kind }).collect();
        let plan =
            plan(&events, CompactionRemainderLimits::steps(1, 100_000), size::TokenRatio::default(), 100_000).unwrap();
        let event = plan.event("a summary", &TodoList::default());
        let ConversationEventKind::Compacted { summary, .. } = &event else { panic!("{event:?}") };
        assert!(summary.contains("first words were:\nbuild a shed\n"), "{summary}");
        assert!(summary.contains("last words were:\npaint it blue\n"), "{summary}");
        kinds.push(event);
    }
}

#[test]
fn a_summarizer_with_an_unknown_context_window_receives_all_messages() {
    let kinds = ["build a shed", "paint it blue", "of oak"]
        .map(|text| ConversationEventKind::UserSaid { blocks: vec![Block::text(text)] });
    let events: Vec<ConversationEvent> =
        (1..).zip(kinds).map(|(number, kind)| ConversationEvent { number, at: samples::START, kind }).collect();
    for window in [0, 100_000] {
        let plan =
            plan(&events, CompactionRemainderLimits::steps(1, window), size::TokenRatio::default(), window).unwrap();
        assert!(plan.request.messages[0].text().contains("paint it blue"), "{window}");
    }
}

#[tokio::test]
async fn a_large_system_prompt_does_not_cause_a_summary_of_every_answer() {
    let house = house_of(THOUSAND / 2, Vec::new()).await;
    let model = Arc::new(ScriptedModel::answering(reads(30).chain([text("done")])).with_window(20_000));
    let summarizer = Arc::new(ScriptedModel::answering((0..31).map(|_| text(&"s".repeat(2 * THOUSAND)))));
    let mut command = house.command(&model, "read them all");
    // Of the 16,000 tokens that may be full these leave 4,000.
    command.system = "i".repeat(12 * THOUSAND);
    command.summarizer = Some(summarizer.clone());
    assert_eq!(house.ran(command).await.end(), "finished");
    let made = summarizer.requests().len();
    assert!((1..=16).contains(&made), "{made} summaries of 31 answers");
    assert!(tokens(&model).iter().all(|tokens| *tokens <= 16_000), "{:?}", tokens(&model));
}

#[tokio::test]
async fn a_refusal_of_the_summarizer_is_not_used_as_a_summary() {
    let house = house_of(10, Vec::new()).await;
    for n in 0..6 {
        house.run(&model([text(&"y".repeat(10 * THOUSAND))]), &format!("question {n}")).await;
    }
    let small = Arc::new(ScriptedModel::answering([text("the end")]).with_window(50_000));
    let against = Arc::new(ScriptedModel::answering([text("I cannot help with that.").stops(StopReason::Refused)]));
    let ran = house.ran(RunAgentCommand { summarizer: Some(against), ..house.command(&small, "go on") }).await;
    assert_eq!((ran.end().as_str(), compacted(&ran)), ("finished", vec![]));
    assert!(ran.notices()[0].contains("no summary could be made"), "{:?}", ran.notices());
}

#[tokio::test]
async fn a_request_refused_as_too_long_is_shortened_and_retried_once() {
    let too_long = || ScriptedAnswer::refused(ModelError::ContextTooLong("300000 tokens".into()));
    let house = house_of(30 * THOUSAND, Vec::new()).await;
    let first = model(reads(5).chain([text("done")]));
    house.run(&first, "read").await;
    let again = model([too_long(), text("fine")]);
    let ran = house.run(&again, "go on").await;
    assert_eq!((ran.end().as_str(), compacted(&ran)), ("finished", vec!["masked"]));
    assert!(tokens(&again)[1] < tokens(&again)[0] / 2, "{:?}", tokens(&again));
    let never = model([too_long(), too_long()]);
    assert_eq!(house.run(&never, "go on").await.end(), "failed too_large: 300000 tokens");
}

#[tokio::test]
async fn oversized_messages_are_truncated_for_the_model_but_not_in_the_conversation_log() {
    // A prompt, a result, and several results of one answer.
    let house = house_of(200 * THOUSAND, Vec::new()).await;
    let many =
        (0..6).fold(ScriptedAnswer::empty(), |answer, n| answer.and_call(&format!("m{n}"), "read", json!({"n": n})));
    let model = Arc::new(ScriptedModel::answering([many, text("done")]).with_window(20_000));
    let summarizer = Arc::new(ScriptedModel::answering([text("a summary")]));
    let command = house.command(&model, &"p".repeat(100 * THOUSAND));
    let ran = house.ran(RunAgentCommand { summarizer: Some(summarizer), ..command }).await;
    assert_eq!(ran.end(), "finished");
    assert!(tokens(&model).iter().all(|tokens| *tokens <= 16_000), "{:?}", tokens(&model));
    let last = model.requests().pop().unwrap();
    check_is_sendable(&last.messages);
    let cut = |text: &str| text.contains("bytes are left out here");
    assert!(cut(&last.messages[0].text()));
    let seen = last.messages.last().unwrap().blocks.iter().map(|block| match block {
        Block::ToolResult(result) => words(&result.content),
        other => panic!("{other:?}"),
    });
    assert!(seen.clone().count() == 6 && seen.clone().all(|text| cut(&text)), "new results are cut, and not masked");
    let log = house.events().await;
    assert!(log.iter().all(|event| !cut(&summary(&event.kind))), "the log keeps all");
}

#[tokio::test]
async fn a_run_continues_if_its_summary_fails_or_is_blocked_by_a_hook() {
    struct Against;
    #[async_trait::async_trait]
    impl AgentHook for Against {
        async fn compacting<'m>(&self, moment: AgentHookEvent<'m>) -> AgentHookResponse {
            assert_eq!(moment.text, "auto");
            AgentHookResponse { block: Some("not now".into()), ..AgentHookResponse::default() }
        }
    }
    use toolstead_domain::{AgentHookEvent, AgentHookResponse};
    let hooks: [Vec<Arc<dyn AgentHook>>; 2] = [Vec::new(), vec![Arc::new(Against)]];
    for (hooks, words) in hooks.into_iter().zip(["no summary could be made: busy", "a hook blocked it: not now"]) {
        let house = house_of(10, hooks).await;
        for n in 0..9 {
            house.run(&model([text(&"y".repeat(10 * THOUSAND))]), &format!("question {n}")).await;
        }
        let busy = ModelError::Unreachable("busy".into());
        let summarizer = Arc::new(ScriptedModel::answering([ScriptedAnswer::refused(busy)]));
        let small = Arc::new(ScriptedModel::answering([text("the end")]).with_window(50_000));
        let ran = house.ran(RunAgentCommand { summarizer: Some(summarizer), ..house.command(&small, "last") }).await;
        assert_eq!(ran.end(), "finished");
        assert!(ran.notices()[0].ends_with(words), "{:?}", ran.notices());
        assert!(tokens(&small)[0] <= 40_000, "texts are cut instead: {:?}", tokens(&small));
    }
}

#[tokio::test]
async fn a_user_can_compact_their_own_conversation_once_it_is_long_enough() {
    let house = house().await;
    let model_ = model([text("a summary")]);
    let command = |scope: RequestScope| CompactConversationCommand {
        conversation: house.conversation,
        model: model_.clone(),
        summarizer: None,
        scope,
        cancel: CancelSignal::new(),
    };
    let mine = || RequestScope::of(Principal::local(), house.conversation.session());
    assert!(matches!(house.handler.compact(command(mine())).await, Err(CompactConversationError::NotFound(_))));
    house.run(&model([text("one")]), &"first ".repeat(500)).await;
    assert!(matches!(house.handler.compact(command(mine())).await, Err(CompactConversationError::TooShort)));
    for n in 0..3 {
        house.run(&model([text(&format!("answer {n} {}", "z".repeat(1_000)))]), &format!("question {n}")).await;
    }
    let other = RequestScope::of(Principal::token("other"), house.conversation.session());
    assert!(matches!(house.handler.compact(command(other)).await, Err(CompactConversationError::NotFound(_))));
    let shorter = house.handler.compact(command(mine())).await.unwrap();
    assert!(shorter.after < shorter.before, "{shorter:?}");
    let messages = house.messages().await;
    check_is_sendable(&[&messages[..], &[Message::user("next")]].concat());
    assert!(messages[0].text().contains("a summary"), "{messages:#?}");
    assert!(messages.iter().any(|message| message.text().starts_with("answer 2")));
}

#[tokio::test]
async fn a_compaction_repeats_a_nonempty_todo_plan_beside_the_summary() {
    for plan in [todo_store_contract::plan(), TodoList::default()] {
        let house = house().await;
        let (me, session) = (Principal::local(), house.conversation.session());
        house.todos.replace(&me, &session, plan.clone()).await.unwrap();
        // The plans of others do not belong to this conversation.
        house.todos.replace(&me, "other", todo_store_contract::plan()).await.unwrap();
        for n in 0..4 {
            house.run(&model([text(&"z".repeat(1_000))]), &format!("question {n}")).await;
        }
        let command = CompactConversationCommand {
            conversation: house.conversation,
            model: model([text("a summary")]),
            summarizer: None,
            scope: RequestScope::of(me, session),
            cancel: CancelSignal::new(),
        };
        house.handler.compact(command).await.unwrap();
        let message = house.messages().await[0].text();
        let has_plan =
            message.contains(&format!("It is decided, and applies until it is replaced:\n{}", plan.in_words()));
        assert_eq!(has_plan, !plan.0.is_empty(), "{message}");
        assert_eq!(message.contains("The plan"), !plan.0.is_empty(), "{message}");
    }
}

#[test]
fn the_token_ratio_adapts_to_the_counts_that_the_model_reports() {
    let size = size::RequestSize { bytes: 10_000, images: 2 };
    let mut scale = size::TokenRatio::default();
    assert_eq!(scale.tokens(size), 5_500);
    scale.learn(size, 8_000);
    assert_eq!(scale.tokens(size), 8_000);
    scale.was_too_long(size, 20_000);
    assert!(scale.tokens(size) >= 17_999, "{}", scale.tokens(size));
    scale.learn(size, 0);
    assert!(scale.tokens(size) >= 17_999, "a model that says nothing of its tokens teaches nothing");
}
