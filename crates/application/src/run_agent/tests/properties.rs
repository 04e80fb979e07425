//! A run can end at any point and leaves a conversation that can be resumed.

use super::*;
use proptest::prelude::*;

/// One answer of a model that does anything.
#[derive(Debug, Clone)]
struct Said {
    text: bool,
    calls: Vec<&'static str>,
    end: u8,
}

fn said() -> impl Strategy<Value = Said> {
    let tool = prop::sample::select(vec!["echo", "read", "write", "broken", "nothing", "malformed"]);
    (any::<bool>(), prop::collection::vec(tool, 0..4), 0..8_u8).prop_map(|(text, calls, end)| Said { text, calls, end })
}

/// The ids are the same in every answer, as those of some providers are.
fn script(said: &[Said]) -> Vec<ScriptedAnswer> {
    let answer = |said: &Said| {
        let answer = if said.text { text("words") } else { ScriptedAnswer::empty() };
        let answer = said.calls.iter().enumerate().fold(answer, |answer, (n, tool)| match *tool {
            "malformed" => answer.and_call(&format!("c{n}"), "echo", json!("{")),
            tool => answer.and_call(&format!("c{n}"), tool, json!({})),
        });
        match said.end {
            0 => answer.breaks_off(ModelError::Unreachable("gone".into())),
            1 => answer.stops(StopReason::MaxTokens),
            2 => answer.stops(StopReason::Refused),
            _ => answer,
        }
    };
    said.iter().map(answer).collect()
}

async fn check_goes_on_from(events: &[ConversationEvent]) {
    let house = house().await;
    let conversation =
        toolstead_domain::conversation::Conversation::new(house.conversation, Principal::local(), "", samples::START);
    house.store.begin(&conversation).await.unwrap();
    let kinds = events.iter().map(|event| event.kind.clone()).collect();
    house.store.append(&Principal::local(), house.conversation, 0, samples::START, kinds).await.unwrap();
    let next = model([call("c0", "echo"), text("fine")]);
    let ran = house.run(&next, "go on").await;
    assert_eq!(ran.end(), "finished");
    next.requests().iter().for_each(|request| check_is_sendable(&request.messages));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_run_can_resume_from_any_prefix_of_any_conversation_log(said in prop::collection::vec(said(), 1..6)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (house, model) = (house().await, model(script(&said)));
            house.run(&model, "go").await;
            model.requests().iter().for_each(|request| check_is_sendable(&request.messages));
            let events = house.events().await;
            for end in 0..=events.len() {
                check_goes_on_from(&events[..end]).await;
            }
        });
    }

    #[test]
    fn a_run_cancelled_at_any_moment_ends_and_can_be_resumed(
        said in prop::collection::vec(said(), 1..6),
        moment in 0..40_usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (house, model) = (house().await, model(script(&said)));
            let mut run = house.handler.start(house.command(&model, "go"));
            let (mut events, mut last) = (0, None);
            while let Some(event) = run.next().await {
                if events == moment {
                    run.cancel.cancel(CancelReason::Client);
                }
                events += 1;
                last = Some(event);
            }
            assert!(matches!(last, Some(AgentEvent::Ended { .. })), "{last:?}");
            let events = house.events().await;
            // Each call has a stored result, not only a derived one.
            let calls = events.iter().flat_map(|event| match &event.kind {
                ConversationEventKind::ModelAnswered { blocks, .. } => blocks.clone(),
                _ => Vec::new(),
            });
            let calls = calls.filter(|block| matches!(block, Block::ToolUse(_))).count();
            let ended = |event: &&ConversationEvent| matches!(event.kind, ConversationEventKind::CallEnded { .. });
            assert_eq!(events.iter().filter(ended).count(), calls);
            check_goes_on_from(&events).await;
        });
    }
}
