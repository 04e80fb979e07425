//! Questions that travel to the client, who answers with a retry.

use super::*;

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

    pub(super) async fn told(&self, command: ExecuteToolCommand) -> String {
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
    let stranger = asked().within(Scope::of(Principal::token("other"), "s"));
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
