//! Hooks of the loop.

use super::*;
use async_trait::async_trait;
use std::sync::Mutex;
use toolstead_domain::{AgentHookEvent, AgentHookResponse, testing::scripted_approver::ScriptedApprover};

/// Returns scripted responses, and records the events received.
#[derive(Default)]
struct Hook {
    prompt: AgentHookResponse,
    stop: AgentHookResponse,
    moments: Mutex<Vec<String>>,
    notified: tokio::sync::Notify,
}

impl Hook {
    fn tell(&self, what: &str, moment: AgentHookEvent<'_>) {
        let again = if moment.goes_on_by_hook { " again" } else { "" };
        self.moments.lock().unwrap().push(format!("{what}{again}: {}", moment.text));
    }
}

#[async_trait]
impl AgentHook for Hook {
    async fn prompt_submitted<'m>(&self, moment: AgentHookEvent<'m>) -> AgentHookResponse {
        self.tell("prompt", moment);
        self.prompt.clone()
    }

    async fn stopping<'m>(&self, moment: AgentHookEvent<'m>) -> AgentHookResponse {
        self.tell("stop", moment);
        self.stop.clone()
    }

    async fn notified<'m>(&self, moment: AgentHookEvent<'m>) -> AgentHookResponse {
        self.tell("notify", moment);
        self.notified.notify_one();
        AgentHookResponse::default()
    }
}

async fn check(hook: Hook, answers: usize, end: &str, history: &[&str], outcome: &[&str]) -> Ran {
    let hook = Arc::new(hook);
    let house = Plan { hooks: vec![hook.clone()], ..Plan::default() }.house(Arc::new(provider())).await;
    let model = model((0..answers).map(|n| text(&format!("t{n}"))));
    let ran = house.run(&model, "go").await;
    assert_eq!((ran.end().as_str(), model.left()), (end, 0));
    assert_eq!(house.history().await, history);
    assert_eq!(*hook.moments.lock().unwrap(), outcome);
    ran
}

fn block(reason: &str) -> AgentHookResponse {
    AgentHookResponse { block: Some(reason.into()), ..AgentHookResponse::default() }
}

fn stop(reason: &str) -> AgentHookResponse {
    AgentHookResponse { stop: Some(reason.into()), ..AgentHookResponse::default() }
}

#[tokio::test]
async fn a_hook_receives_the_prompt_and_can_extend_or_refuse_it() {
    let word = AgentHookResponse {
        context: vec!["it is raining".into()],
        messages: vec!["hello".into()],
        ..AgentHookResponse::default()
    };
    let ran = check(
        Hook { prompt: word, ..Hook::default() },
        1,
        "finished",
        &["user: go it is raining", "model end_turn: t0", "end: finished"],
        &["prompt: go", "stop: t0"],
    )
    .await;
    assert_eq!(ran.notices(), ["hello"]);
    // A refused prompt is not stored, and creates no conversation.
    check(Hook { prompt: block("a secret"), ..Hook::default() }, 0, "stopped a secret", &[], &["prompt: go"]).await;
    check(Hook { prompt: stop("enough"), ..Hook::default() }, 0, "stopped enough", &[], &["prompt: go"]).await;
}

#[tokio::test]
async fn a_stop_hook_can_continue_a_run_at_most_three_times() {
    let ran = check(
        Hook { stop: block("the tests fail"), ..Hook::default() },
        4,
        "finished",
        &[
            "user: go",
            "model end_turn: t0",
            "user: the tests fail",
            "model end_turn: t1",
            "user: the tests fail",
            "model end_turn: t2",
            "user: the tests fail",
            "model end_turn: t3",
            "end: finished",
        ],
        &["prompt: go", "stop: t0", "stop again: t1", "stop again: t2", "stop again: t3"],
    )
    .await;
    assert!(ran.notices()[0].contains("the tests fail"), "{:?}", ran.notices());
    check(
        Hook { stop: stop("enough"), ..Hook::default() },
        1,
        "stopped enough",
        &["user: go", "model end_turn: t0", "end: stopped"],
        &["prompt: go", "stop: t0"],
    )
    .await;
}

#[tokio::test]
async fn a_hook_is_notified_when_a_call_waits_for_approval() {
    let hook = Arc::new(Hook::default());
    let approver = Arc::new(ScriptedApprover::granting(0).then_silent());
    let plan = Plan {
        rules: vec![(Effect::Ask, "echo")],
        approver: approver.clone(),
        hooks: vec![hook.clone()],
        ..Plan::default()
    };
    let house = plan.house(Arc::new(provider())).await;
    let model = model([call("c1", "echo")]);
    let mut run = house.handler.start(house.command(&model, "go"));
    approver.asked(1).await;
    hook.notified.notified().await;
    let outcome = hook.moments.lock().unwrap().clone();
    assert!(outcome[1].starts_with("notify: `echo` waits for your approval: "), "{outcome:?}");
    run.cancel.cancel(CancelReason::Client);
    while run.next().await.is_some() {}
    let history = house.history().await;
    assert!(history[2].starts_with("error c1: "), "{history:#?}");
}

#[tokio::test]
async fn no_event_follows_the_end_of_a_run_and_a_slow_hook_does_not_delay_it() {
    #[derive(Default)]
    struct Slow {
        called: tokio::sync::Notify,
        may_end: tokio::sync::Notify,
        ended: tokio::sync::Notify,
    }
    #[async_trait]
    impl AgentHook for Slow {
        async fn notified<'m>(&self, _: AgentHookEvent<'m>) -> AgentHookResponse {
            self.called.notify_one();
            self.may_end.notified().await;
            self.ended.notify_one();
            AgentHookResponse { messages: vec!["late".into()], ..AgentHookResponse::default() }
        }
    }
    let hook = Arc::new(Slow::default());
    let approver = Arc::new(ScriptedApprover::granting(0).then_silent());
    let plan = Plan { rules: vec![(Effect::Ask, "echo")], approver, hooks: vec![hook.clone()], ..Plan::default() };
    let house = plan.house(Arc::new(provider())).await;
    let mut run = house.handler.start(house.command(&model([call("c1", "echo")]), "go"));
    hook.called.notified().await;
    run.cancel.cancel(CancelReason::Client);
    while !matches!(run.next().await, Some(AgentEvent::Ended { .. })) {}
    hook.may_end.notify_one();
    hook.ended.notified().await;
    assert_eq!(run.next().await, None);
    assert!(run.events.is_closed(), "what nobody will read is not kept");
}
