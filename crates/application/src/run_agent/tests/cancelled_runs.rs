//! Cancelled runs: they leave a history from which a run can resume.

use super::*;

async fn check_goes_on(house: &House) {
    let next = model([text("fine")]);
    assert_eq!(house.run(&next, "go on").await.end(), "finished");
    check_is_sendable(&next.requests()[0].messages);
}

#[tokio::test]
async fn cancelling_a_run_drops_the_model_answer_and_keeps_the_part_received_so_far() {
    for (answer, history) in [
        (ScriptedAnswer::empty().never_ends(), &["user: go", "end: cancelled"][..]),
        (text("half").never_ends(), &["user: go", "model -: half", "end: cancelled"]),
        (
            ScriptedAnswer::empty().and_event(ModelEvent::TextDelta("ha".into())).never_ends(),
            &["user: go", "model -: ha", "end: cancelled"],
        ),
        (
            call("c1", "echo").never_ends(),
            &[
                "user: go",
                "model -: c1=echo",
                "error c1 (never made): cancelled: the run was cancelled",
                "end: cancelled",
            ],
        ),
    ] {
        let (house, model) = (house().await, model([answer]));
        let cancel = CancelSignal::new();
        let command = RunAgentCommand { cancel: cancel.clone(), ..house.command(&model, "go") };
        let mut run = house.handler.start(command);
        model.stuck(1).await;
        cancel.cancel(CancelReason::Client);
        let mut last = None;
        while let Some(event) = run.next().await {
            last = Some(event);
        }
        assert!(matches!(last, Some(AgentEvent::Ended { outcome: AgentOutcome::Cancelled, .. })), "{last:?}");
        assert_eq!(house.history().await, history);
        assert_eq!(model.dropped_answers(), 1, "the request is taken back");
        check_goes_on(&house).await;
    }
}

#[tokio::test]
async fn cancelling_a_run_ends_its_calls_and_each_call_has_a_result() {
    let provider = Arc::new(provider());
    let house = Plan::default().house(provider.clone()).await;
    let model = model([call("c1", "endless").and_call("c2", "write", json!({})).and_call("c3", "read", json!({}))]);
    let mut run = house.handler.start(house.command(&model, "go"));
    provider.began(3).await;
    provider.ended(1).await;
    run.cancel.cancel(CancelReason::Client);
    while run.next().await.is_some() {}
    let history = house.history().await;
    assert_eq!(history[2], "error c1: the call was cancelled (client)", "{history:#?}");
    assert_eq!(history[3], "result c2: written", "a sibling is not cancelled once it is over");
    assert_eq!(history.last().unwrap(), "end: cancelled");
    check_goes_on(&house).await;
}

#[tokio::test]
async fn dropping_a_run_cancels_the_run_and_its_calls() {
    let provider = Arc::new(provider());
    let house = Plan::default().house(provider.clone()).await;
    let model = model([call("c1", "endless")]);
    let run = house.handler.start(house.command(&model, "go"));
    provider.began(1).await;
    drop(run);
    provider.ended(1).await;
    // The record is written once the call has ended; no receiver is left.
    while house.history().await.last().is_none_or(|line| line != "end: cancelled") {
        tokio::task::yield_now().await;
    }
    assert_eq!(house.history().await[2], "error c1: the call was cancelled (client)");
    check_goes_on(&house).await;
}

#[tokio::test]
async fn a_run_ends_as_cancelled_when_the_application_closes() {
    let (house, model) = (house().await, model([call("c1", "echo").waits(), text("never")]));
    let mut run = house.handler.start(house.command(&model, "go"));
    model.stuck(1).await;
    house.open_calls.close();
    model.release();
    while run.next().await.is_some() {}
    let history = house.history().await;
    assert!(history[2].starts_with("error c1: "), "{history:#?}");
    assert_eq!((history.last().map(String::as_str), model.requests().len()), (Some("end: cancelled"), 1));
}
