//! Parked calls, whose clients answer with a retry.

use super::*;
use crate::event_bus::ReceivedEvent;
use proptest::prelude::*;
use std::{sync::Mutex, time::Duration};
use tokio::task::yield_now;
use toolstead_domain::{
    EventKind, ExecutionFilter, InputRequired, LogMessage, NotAnswered, OutcomeKind, ProtocolVersion,
    ports::approver::APPROVAL_KEY, testing::recording_caller::RecordingCaller,
};

/// Approver that asks the client, and approves if the answer is `yes`.
#[derive(Default)]
pub(super) struct Forms {
    scopes: Vec<ApprovalScope>,
}

#[async_trait]
impl Approver for Forms {
    async fn ask(&self, request: ApprovalRequest<'_>) -> ApprovalOutcome {
        match request.caller.ask_as(APPROVAL_KEY, form("may it run?")).await {
            Ok(answer) if answer.0 == "yes" => {
                ApprovalOutcome::Granted { by: "ann".into(), scopes: self.scopes.clone() }
            }
            Ok(_) => ApprovalOutcome::denied("ann"),
            Err(NotAnswered::TimedOut) => ApprovalOutcome::TimedOut,
            Err(_) => ApprovalOutcome::Unattended,
        }
    }
}

pub(super) fn form(message: &str) -> InputRequest {
    InputRequest { method: "elicitation/create".into(), params: json!({"message": message}) }
}

/// Client of one round.
#[derive(Default)]
pub(super) struct Round {
    heard: Mutex<Vec<f64>>,
}

#[async_trait]
impl Caller for Round {
    fn answers_by_retry(&self) -> bool {
        true
    }
    fn progress(&self, progress: Progress) {
        self.heard.lock().unwrap().push(progress.progress);
    }
    fn log(&self, _: LogMessage) {}
    async fn ask(&self, _: InputRequest) -> Result<InputResponse, NotAnswered> {
        panic!("this client takes no requests")
    }
}

/// Returns a call by a client that supports forms and answers with retries.
pub(super) fn modern(tool: &str, arguments: Value) -> ExecuteToolCommand {
    let client = ClientProfile {
        protocol: Some(ProtocolVersion::V20260728),
        capabilities: json!({"elicitation": {}}).as_object().unwrap().clone(),
        client: "test".into(),
        log_level: None,
    };
    ExecuteToolCommand { client: Arc::new(client), caller: Arc::new(Round::default()), ..command(tool, arguments) }
}

impl House {
    /// Calls, and returns the keys of the questions and the state.
    pub(super) async fn asked_for(&self, command: ExecuteToolCommand) -> (Vec<String>, String) {
        match self.handler.handle(command).await {
            Ok(CallOutcome::InputRequired(required)) => {
                (required.requests.into_keys().collect(), required.state.unwrap())
            }
            other => panic!("{other:?}"),
        }
    }

    /// Calls, and returns the state of the approval request.
    pub(super) async fn asked(&self, command: ExecuteToolCommand) -> String {
        let (keys, state) = self.asked_for(command).await;
        assert_eq!(keys, [APPROVAL_KEY]);
        state
    }

    pub(super) async fn execute(&self, command: ExecuteToolCommand) -> String {
        match self.handler.handle(command).await {
            Ok(CallOutcome::Done(result)) => result.joined_text(),
            Ok(CallOutcome::InputRequired(_)) => "asked".into(),
            Err(error) => format!("{}: {error}", error.kind()),
        }
    }

    /// Returns the outcomes of the recorded calls, without their questions.
    pub(super) fn outcomes(&self) -> Vec<OutcomeKind> {
        self.calls_on_record().into_iter().map(|row| row.outcome.kind()).collect()
    }
}

pub(super) fn answered(of: ExecuteToolCommand, state: &str, answers: &[(&str, &str)]) -> ExecuteToolCommand {
    let answers = answers.iter().map(|(key, answer)| ((*key).to_owned(), InputResponse((*answer).into()))).collect();
    ExecuteToolCommand { answers: Some(answers), request_state: Some(state.into()), ..of }
}

pub(super) fn retry(of: ExecuteToolCommand, state: &str, answer: &str) -> ExecuteToolCommand {
    answered(of, state, &[(APPROVAL_KEY, answer)])
}

fn plan() -> Plan {
    Plan { approver: Arc::new(Forms::default()), ..Default::default() }
}

/// Returns a tool that asks for a first name and then for a last name, and greets.
fn greeting() -> ScriptedTool {
    let report = Progress::at;
    let tool = ScriptedTool::named("greet").reports(report(1.0)).asks(form("first?")).reports(report(2.0));
    tool.asks(form("last?")).ends_by(|moment| {
        let names: Vec<_> = moment.responses.iter().filter_map(|one| one.0.as_str()).collect();
        Ending::Done(ToolResult::text(format!("hello {}", names.join(" "))))
    })
}

async fn greeting_house() -> House {
    plan().house(ScriptedProvider::new("built-in").with(greeting())).await
}

#[tokio::test]
async fn an_answer_that_comes_with_a_retry_lets_the_call_run_once() {
    use OutcomeKind::{InputRequired, Refused, Succeeded};
    let house = plan().house(provider()).await;
    let state = house.asked(modern("write", json!({"a": 1, "b": {"c": 2, "d": 3}}))).await;
    assert_eq!(house.provider.calls().len(), 0, "nothing runs before the answer");
    assert_eq!((house.outcomes(), house.only_row().ended), (vec![InputRequired], None), "the row says that it waits");
    // The order of the keys does not matter.
    let again = || modern("write", json!({"b": {"d": 3, "c": 2}, "a": 1}));
    assert_eq!(house.execute(retry(again(), &state, "yes")).await, "written");
    assert_eq!(house.outcomes(), [Succeeded], "one row over all rounds");
    assert_eq!(house.only_row().decision.unwrap().approved_by.as_deref(), Some("ann"));
    let replayed = house.execute(retry(again(), &state, "yes")).await;
    let refusal = "invalid_input: `requestState` does not belong to an open question: it was used already, or the call has ended.";
    assert_eq!(replayed, refusal);
    let state = house.asked(modern("write", json!({}))).await;
    let denied = house.execute(retry(modern("write", Value::Null), &state, "no")).await;
    assert_eq!(denied, "permission_denied: The call of `write` was refused by ann.");
    assert_eq!((house.provider.calls().len(), house.outcomes()), (1, vec![Succeeded, Refused, Refused]));
    assert!(house.open_calls.is_empty());
}

#[tokio::test]
async fn a_request_state_is_accepted_only_for_its_own_principal_session_and_arguments() {
    let (house, restarted) = (plan().house(provider()).await, plan().house(provider()).await);
    let asked = || modern("write", json!({"a": 1}));
    let state = house.asked(asked()).await;
    let stale = restarted.asked(asked()).await;
    let (mut forged, mut last) = (state.clone(), state.clone());
    forged.replace_range(20..21, if &forged[20..21] == "A" { "B" } else { "A" });
    last.pop();
    let owned = |scope| asked().within(scope);
    for (command, state, why) in [
        (modern("write", json!({"a": 2})), &state, "another tool or other arguments"),
        (modern("endless", json!({"a": 1})), &state, "another tool or other arguments"),
        (owned(RequestScope::of(Principal::token("other"), "s")), &state, "another client or another session"),
        (owned(RequestScope::of(Principal::local(), "other")), &state, "another client or another session"),
        (asked(), &forged, "changed, or made before this process started"),
        (asked(), &last, "changed, or made before this process started"),
        (asked(), &stale, "changed, or made before this process started"),
        (asked(), &"an upstream's".to_owned(), "changed, or made before this process started"),
        (asked(), &String::new(), "changed, or made before this process started"),
        (command("write", json!({"a": 1})), &forged, "changed, or made before this process started"),
    ] {
        let message = house.execute(retry(command, state, "yes")).await;
        assert!(message.starts_with("invalid_input") && message.contains(why), "{message}");
    }
    assert_eq!(house.provider.calls().len(), 0);
    assert_eq!(house.execute(retry(asked(), &state, "yes")).await, "written");
    // Without a state, the answers belong to no call.
    assert_eq!(house.execute(ExecuteToolCommand { request_state: None, ..retry(asked(), "", "yes") }).await, "asked");
    assert_eq!(house.provider.calls().len(), 1);
}

#[tokio::test]
async fn a_tool_asks_in_several_rounds_and_reports_progress_to_the_current_round() {
    let house = greeting_house().await;
    let rounds = [(); 3].map(|()| Arc::new(Round::default()));
    let by = |round: usize| ExecuteToolCommand { caller: rounds[round].clone(), ..modern("greet", json!({})) };
    let (first, state) = house.asked_for(by(0)).await;
    assert_eq!(house.outcomes(), [OutcomeKind::InputRequired]);
    let (second, next) = house.asked_for(answered(by(1), &state, &[(first[0].as_str(), "ada")])).await;
    assert_ne!(first, second);
    // The first round is over.
    assert!(house.execute(answered(by(2), &state, &[(second[0].as_str(), "eve")])).await.starts_with("invalid_input"));
    let message = house.execute(answered(by(2), &next, &[(second[0].as_str(), "lovelace")])).await;
    assert_eq!(message, "hello ada lovelace");
    assert_eq!(rounds.map(|round| round.heard.lock().unwrap().clone()), [vec![1.0], vec![2.0], vec![]]);
    assert_eq!(house.outcomes(), [OutcomeKind::Succeeded, OutcomeKind::Refused]);
    assert_eq!(house.provider.calls().len(), 1);
}

#[tokio::test]
async fn an_approval_and_a_question_of_the_tool_are_two_rounds_of_one_call() {
    let house = plan().house(ScriptedProvider::new("built-in").with(greeting().touches(write("/w/a")))).await;
    let state = house.asked(modern("greet", json!({}))).await;
    let (first, state) = house.asked_for(retry(modern("greet", json!({})), &state, "yes")).await;
    let (second, state) = house.asked_for(answered(modern("greet", json!({})), &state, &[(&first[0], "a")])).await;
    assert_eq!(house.execute(answered(modern("greet", json!({})), &state, &[(&second[0], "b")])).await, "hello a b");
    assert_eq!(house.outcomes(), [OutcomeKind::Succeeded]);
}

#[tokio::test]
async fn unanswered_questions_are_asked_again_and_only_the_provider_receives_its_own_state() {
    let asking = ScriptedTool::named("asking").ends_by(|moment| {
        let requests = |keys: &[&str]| keys.iter().map(|key| ((*key).to_owned(), form(key))).collect();
        let ask = |keys, state: &str| {
            Ending::InputRequired(InputRequired { requests: requests(keys), state: Some(state.into()) })
        };
        let Some(answers) = moment.context.answers else { return ask(&["a", "b"], "theirs 1") };
        let said: Vec<_> = answers.responses.iter().map(|(key, answer)| format!("{key}={}", answer.0)).collect();
        match answers.state.as_deref() {
            Some("theirs 1") => ask(&["a"], &format!("theirs 2 {}", said.join(","))),
            state => Ending::Done(ToolResult::text(format!("{state:?} {}", said.join(",")))),
        }
    });
    let house = plan().house(ScriptedProvider::new("built-in").with(asking)).await;
    let call = || modern("asking", json!({}));
    let (keys, state) = house.asked_for(call()).await;
    assert_eq!(keys, ["a", "b"]);
    assert!(!state.contains("theirs"));
    let (keys, state) = house.asked_for(answered(call(), &state, &[("b", "2"), ("c", "3")])).await;
    assert_eq!(keys, ["a"], "what is answered is not asked again");
    let (keys, state) = house.asked_for(ExecuteToolCommand { answers: None, ..answered(call(), &state, &[]) }).await;
    assert_eq!(keys, ["a"]);
    let (keys, state) = house.asked_for(answered(call(), &state, &[("a", "1")])).await;
    assert_eq!(keys, ["a"]);
    let reply = house.execute(answered(call(), &state, &[("a", "4")])).await;
    assert_eq!(reply, r#"Some("theirs 2 a=\"1\",b=\"2\"") a="4""#);
    assert_eq!((house.outcomes(), house.open_calls.len()), (vec![OutcomeKind::Succeeded], 0));
}

#[tokio::test]
async fn a_call_whose_client_cannot_be_asked_fails_as_missing_capability_or_unavailable() {
    let asks = |name, method: &str| {
        let request = InputRequest { method: method.into(), params: json!({}) };
        let requests = [("q".to_owned(), request)].into();
        ScriptedTool::named(name).needs_input(InputRequired { requests, state: None })
    };
    let provider = ScriptedProvider::new("built-in").with(asks("sampling", "sampling/createMessage"));
    let house = plan().house(provider.with(asks("odd", "x/y")).with(asks("form", "elicitation/create"))).await;
    let of = |protocol, capabilities: Value| {
        let capabilities = capabilities.as_object().unwrap().clone();
        Arc::new(ClientProfile { protocol: Some(protocol), capabilities, client: String::new(), log_level: None })
    };
    let bare = of(ProtocolVersion::V20260728, json!({}));
    assert!(house.execute(modern("sampling", json!({}))).await.starts_with("missing_capability: "));
    assert!(house.execute(modern("odd", json!({}))).await.starts_with("unavailable: "));
    let undeclared = ExecuteToolCommand { client: bare, ..modern("form", json!({})) };
    assert!(house.execute(undeclared).await.starts_with("missing_capability: "));
    assert!(house.execute(command("form", json!({}))).await.starts_with("unavailable: "));
    // An old client receives the question during the call, and the provider is called again with the answer.
    let old = of(ProtocolVersion::V20251125, json!({"elicitation": {}}));
    let asked = RecordingCaller::answering([Ok(InputResponse("yes".into()))]);
    let old = ExecuteToolCommand { client: old, caller: Arc::new(asked), ..command("form", json!({})) };
    assert!(house.execute(old).await.starts_with("unavailable: "), "the second time nobody answers");
    assert_eq!(house.provider.calls().len(), 6);
}

#[tokio::test]
async fn an_approval_covers_only_the_accesses_shown_and_does_not_override_deny_rules() {
    let target = Arc::new(Mutex::new("/w/a"));
    let now = target.clone();
    let moving = ScriptedTool::named("moving").touches_by(move |_| Ok(write(now.lock().unwrap().as_ref())));
    let provider = ScriptedProvider::new("built-in").with(moving.answers(ToolResult::text("written")));
    let house = Plan { rules: vec![(Effect::Deny, "Write(//w/closed)")], ..plan() }.house(provider).await;
    let call = || modern("moving", json!({}));
    let state = house.asked(call()).await;
    // The same arguments now have another access, such as after a link changed.
    *target.lock().unwrap() = "/w/b";
    let state = house.asked(retry(call(), &state, "yes")).await;
    assert_eq!(house.provider.calls().len(), 0);
    *target.lock().unwrap() = "/w/closed";
    assert!(house.execute(retry(call(), &state, "yes")).await.starts_with("permission_denied"));
    assert_eq!(house.provider.calls().len(), 0);
    *target.lock().unwrap() = "/w/c";
    let state = house.asked(call()).await;
    assert_eq!(house.execute(retry(call(), &state, "yes")).await, "written");
    assert_eq!(house.only_one_ran().accesses, ["write /w/c"]);
}

impl House {
    fn only_one_ran(&self) -> ToolExecution {
        let mut rows = self.log.rows();
        rows.retain(|row| row.outcome == ExecutionOutcome::Succeeded);
        assert_eq!((rows.len(), self.provider.calls().len()), (1, 1));
        rows.remove(0)
    }
}

/// Hook that requires approval for every call, with a different reason each time.
#[derive(Default)]
struct Wordy(AtomicUsize);

#[async_trait]
impl ToolHook for Wordy {
    fn name(&self) -> &str {
        "wordy"
    }

    async fn before(&self, _: &ToolCall, _: Option<&[Access]>) -> BeforeCallResponse {
        BeforeCallResponse::ask(format!("reason {}", self.0.fetch_add(1, Ordering::SeqCst)))
    }

    async fn after(&self, _: EndedCall<'_>) -> AfterCallResponse {
        AfterCallResponse::default()
    }
}

#[tokio::test]
async fn an_approval_remains_valid_if_a_hook_changes_its_reason() {
    let hooks: Vec<Arc<dyn ToolHook>> = vec![Arc::new(Wordy::default())];
    let house = Plan { hooks, ..plan() }.house(provider()).await;
    let state = house.asked(modern("write", json!({}))).await;
    assert_eq!(house.execute(retry(modern("write", json!({})), &state, "yes")).await, "written");
}

#[tokio::test]
async fn a_denial_applies_even_if_the_same_call_was_approved_in_the_meantime() {
    // One approval is stored as a rule, the other for this call only.
    for (tool, done) in [("write", "written"), ("opaque", "ran")] {
        let approver = Forms { scopes: vec![ApprovalScope::Session] };
        let provider = provider().with(opaque());
        let house = Plan { approver: Arc::new(approver), ..Default::default() }.house(provider).await;
        let call = || modern(tool, json!({}));
        let (first, second, third) = (house.asked(call()).await, house.asked(call()).await, house.asked(call()).await);
        assert_eq!(house.execute(retry(call(), &first, "yes")).await, done);
        let answer = house.execute(retry(call(), &second, "no")).await;
        assert_eq!(answer, format!("permission_denied: The call of `{tool}` was refused by ann."));
        assert_eq!(house.execute(retry(call(), &third, "yes")).await, done);
        assert_eq!(house.provider.calls().len(), 2, "{tool}");
    }
}

#[tokio::test]
async fn approving_one_part_of_a_call_does_not_satisfy_an_ask_rule_on_another_part() {
    let secret = || Access::ReadPath(AccessPath::plain("/w/secret"));
    let everything = Access::ReadPath(AccessPath::plain("/w").whole_tree());
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

/// Waits until every call is closed and recorded. Time is paused meanwhile.
async fn settled(house: &House) {
    house.open_calls.drained().await;
    while !house.log.rows().iter().all(|row| row.outcome.is_final()) {
        yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_client_never_retries_times_out_and_is_recorded() {
    let patience = CallSettings::default().approval_timeout;
    let house = plan().house(provider().with(greeting())).await;
    let state = house.asked(modern("write", json!({}))).await;
    let (_, tools) = house.asked_for(modern("greet", json!({}))).await;
    tokio::time::advance(patience).await;
    settled(&house).await;
    let outcome = |tool: &str| house.log.rows().into_iter().find(|row| row.tool == tool).unwrap().outcome;
    assert_eq!(outcome("write").error_kind(), Some(ErrorKind::ApprovalTimeout));
    assert!(matches!(outcome("greet"), ExecutionOutcome::Failed(_, why) if why.contains("did not answer in time")));
    for (tool, state) in [("write", state), ("greet", tools)] {
        let answer = house.execute(retry(modern(tool, json!({})), &state, "yes")).await;
        assert_eq!(answer, "approval_timeout: The answer came too late: the call has ended.");
    }
    assert_eq!(house.provider.calls().len(), 1, "only what asked itself ran");
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_client_answer_does_not_use_the_time_of_the_call() {
    let settings = CallSettings { default_timeout: Duration::from_secs(1), ..CallSettings::default() };
    let house = Plan { settings, ..plan() }.house(ScriptedProvider::new("built-in").with(greeting())).await;
    let call = || modern("greet", json!({}));
    let (first, state) = house.asked_for(call()).await;
    tokio::time::advance(Duration::from_secs(200)).await;
    let (second, state) = house.asked_for(answered(call(), &state, &[(&first[0], "a")])).await;
    tokio::time::advance(Duration::from_secs(200)).await;
    assert_eq!(house.execute(answered(call(), &state, &[(&second[0], "b")])).await, "hello a b");
}

#[tokio::test]
async fn parked_calls_are_limited_separately_from_running_calls() {
    let house = plan().house(provider()).await;
    let first = house.asked(modern("write", json!({}))).await;
    let mut last = String::new();
    for _ in 0..64 {
        last = house.asked(modern("write", json!({}))).await;
    }
    assert!(house.execute(retry(modern("write", json!({})), &first, "yes")).await.starts_with("invalid_input"));
    assert_eq!(house.call("echo", json!({})).await, "hi");
    assert_eq!(house.execute(retry(modern("write", json!({})), &last, "yes")).await, "written");
    while house.open_calls.len() > 63 {
        yield_now().await;
    }
    let made_room = house.log.rows().remove(0).outcome;
    assert_eq!(made_room, ExecutionOutcome::Cancelled(CancelReason::Client), "the one that waited longest made room");
    house.handler.session_ended(&Principal::local(), &"another".into()).await;
    assert_eq!(house.open_calls.len(), 63);
    house.handler.session_ended(&Principal::local(), &"s".into()).await;
    settled(&house).await;
    assert_eq!(house.provider.calls().len(), 2, "the echo, and what was answered");
}

#[tokio::test]
async fn answers_can_be_sent_again_if_no_slot_is_free_to_resume_the_call() {
    let house = Arc::new(
        Plan { rules: vec![(Effect::Allow, "Write(//w/free)")], ..plan() }
            .house(provider().with(ScriptedTool::named("busy").touches(write("/w/free")).never_ends()))
            .await,
    );
    let state = house.asked(modern("write", json!({}))).await;
    let busy: Vec<_> = (0..8)
        .map(|_| {
            let handler = house.handler.clone();
            tokio::spawn(async move { handler.handle(command("busy", json!({}))).await })
        })
        .collect();
    house.provider.began(8).await;
    assert!(house.execute(retry(modern("write", json!({})), &state, "yes")).await.starts_with("rate_limited"));
    busy[0].abort();
    while house.open_calls.len() > 8 {
        yield_now().await;
    }
    assert_eq!(house.execute(retry(modern("write", json!({})), &state, "yes")).await, "written");
}

/// Returns a tool that asks once and then never ends.
fn curious() -> ScriptedTool {
    ScriptedTool::named("curious").asks(form("?")).touches(write("/w/free")).never_ends()
}

#[tokio::test]
async fn cancelling_a_round_cancels_its_call() {
    for by_signal in [true, false] {
        let rules = vec![(Effect::Allow, "Write(//w/free)")];
        let house = Arc::new(Plan { rules, ..plan() }.house(ScriptedProvider::new("built-in").with(curious())).await);
        let (keys, state) = house.asked_for(modern("curious", json!({}))).await;
        let round = answered(modern("curious", json!({})), &state, &[(&keys[0], "a")]);
        let cancel = round.cancel.clone();
        let handler = house.handler.clone();
        let attached = tokio::spawn(async move { handler.handle(round).await });
        while house.log.rows()[0].outcome != ExecutionOutcome::Running {
            yield_now().await;
        }
        // A second retry with the same state arrives while the client is in its round.
        let again = answered(modern("curious", json!({})), &state, &[(&keys[0], "b")]);
        assert!(house.execute(again).await.starts_with("invalid_input"));
        assert_eq!(house.log.rows()[0].outcome, ExecutionOutcome::Running);
        if by_signal {
            cancel.cancel(CancelReason::Client);
            let outcome = attached.await.unwrap();
            assert!(matches!(outcome, Err(ExecuteToolError::Cancelled(CancelReason::Client))), "{outcome:?}");
        } else {
            attached.abort();
        }
        settled(&house).await;
        assert_eq!(house.log.rows()[0].outcome, ExecutionOutcome::Cancelled(CancelReason::Client));
        assert_eq!(house.provider.ends()[0].1, ObservedCallEnd::Dropped);
    }
}

#[tokio::test]
async fn parked_calls_can_resume_while_new_calls_are_refused() {
    let house = plan().house(provider()).await;
    let state = house.asked(modern("write", json!({}))).await;
    house.open_calls.close();
    assert!(house.execute(modern("write", json!({}))).await.contains("cancelled"), "a new call is refused");
    assert_eq!(house.execute(retry(modern("write", json!({})), &state, "yes")).await, "written");
}

#[tokio::test]
async fn shutdown_cancels_parked_calls_without_an_answer() {
    let house = plan().house(provider()).await;
    let state = house.asked(modern("write", json!({}))).await;
    house.open_calls.end();
    settled(&house).await;
    assert_eq!(house.only_row().outcome, ExecutionOutcome::Cancelled(CancelReason::Shutdown));
    assert!(!house.execute(retry(modern("write", json!({})), &state, "yes")).await.contains("written"));
    assert_eq!(house.provider.calls().len(), 0);
}

#[tokio::test]
async fn an_approval_is_not_requested_if_the_call_cannot_be_recorded() {
    let house = plan().house(provider()).await;
    house.log.fail_next_record();
    let answer = house.execute(modern("write", json!({}))).await;
    assert!(answer.starts_with("permission_denied") && answer.contains("No approver is available"), "{answer}");
}

#[tokio::test]
async fn subscribers_receive_an_event_when_a_call_is_suspended_for_a_question() {
    let house = greeting_house().await;
    let mut events = house.events.subscribe();
    house.asked_for(modern("greet", json!({}))).await;
    let mut seen = Vec::new();
    while let Some(ReceivedEvent::Event(event)) = events.waiting() {
        seen.push(event.kind.clone());
    }
    let is_fitting = matches!(
        &seen[..],
        [
            EventKind::ToolCallStarted { .. },
            EventKind::ToolCallProgress { .. },
            EventKind::ToolCallSuspended { .. },
            EventKind::QuestionAsked { .. }
        ]
    );
    assert!(is_fitting, "{seen:?}");
}

/// Log that stores the id of each final record that it receives.
#[derive(Default)]
struct Finals(InMemoryExecutionLog, Mutex<Vec<CallId>>);

#[async_trait]
impl ExecutionLog for Finals {
    async fn record(&self, execution: ToolExecution) -> Result<(), StoreError> {
        if execution.outcome.is_final() {
            self.1.lock().unwrap().push(execution.id);
        }
        self.0.record(execution).await
    }
    async fn find(&self, id: CallId) -> Result<Option<ToolExecution>, StoreError> {
        self.0.find(id).await
    }
    async fn beginning_with(&self, digits: &str, at_most: u32) -> Result<Vec<CallId>, StoreError> {
        self.0.beginning_with(digits, at_most).await
    }
    async fn list(&self, filter: &ExecutionFilter) -> Result<Vec<ToolExecution>, StoreError> {
        self.0.list(filter).await
    }
    async fn check(&self) -> Result<(), StoreError> {
        self.0.check().await
    }
}

/// Event in the life of a parked call.
#[derive(Debug, Clone, Copy)]
enum Turn {
    /// Its client answers the last questions.
    Answer,
    /// Its client retries without an answer.
    Silence,
    /// A client answers with the state of an earlier round, or of another call.
    Replay,
    /// Two retries with the same state arrive at once.
    Twice,
    /// Its client retries and disconnects at once.
    GoAway,
    /// Its client cancels its round.
    TakeBack,
    /// Time passes, in seconds.
    Wait(u64),
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    use Turn::{Answer, GoAway, Replay, Silence, TakeBack, Twice, Wait};
    let turn = prop_oneof![
        6 => Just(Answer), 2 => Just(Silence), 3 => Just(Replay), 2 => Just(Twice),
        1 => Just(GoAway), 1 => Just(TakeBack), 3 => (1..400_u64).prop_map(Wait),
    ];
    proptest::collection::vec(turn, 0..10)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_call_runs_at_most_once_and_its_record_becomes_final_only_once(turns in turns()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (ran, finals) = runtime.block_on(play(&turns));
        prop_assert!(ran <= 1, "it ran {} times", ran);
        let mut ids = finals.clone();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), finals.len(), "a row was final twice");
    }
}

/// Applies the events to a call that requires approval and asks twice. Returns how often it ran, and the ids of its
/// final records.
async fn play(turns: &[Turn]) -> (usize, Vec<CallId>) {
    let provider = Arc::new(ScriptedProvider::new("built-in").with(greeting().touches(write("/w/a"))));
    let log = Arc::new(Finals::default());
    let built = plan().built(provider.clone(), log.clone()).await;
    let call = || modern("greet", json!({}));
    let mut states = Vec::new();
    let mut keys = Vec::new();
    let mut answer = built.handler.handle(call()).await;
    for turn in turns {
        if let Ok(CallOutcome::InputRequired(required)) = answer {
            keys = required.requests.into_keys().collect::<Vec<_>>();
            states.push(required.state.unwrap());
        }
        let said: Vec<_> = keys.iter().map(|key| (key.as_str(), "yes")).collect();
        let last = states.last().unwrap();
        let handle = |command| built.handler.handle(command);
        answer = match turn {
            Turn::Answer => handle(answered(call(), last, &said)).await,
            Turn::Silence => handle(answered(call(), last, &[])).await,
            Turn::Replay => {
                let reply = handle(answered(call(), &states[0], &said)).await;
                // Only the state of the current round is valid.
                assert!(states.len() == 1 || reply.is_err(), "{reply:?}");
                reply
            }
            Turn::Twice => {
                let (one, two) =
                    tokio::join!(handle(answered(call(), last, &said)), handle(answered(call(), last, &said)));
                assert!(two.is_err(), "{two:?}");
                one
            }
            Turn::GoAway => {
                let mut round = Box::pin(handle(answered(call(), last, &said)));
                match futures::poll!(&mut round) {
                    std::task::Poll::Ready(reply) => reply,
                    std::task::Poll::Pending => Err(ExecuteToolError::Cancelled(CancelReason::Client)),
                }
            }
            Turn::TakeBack => {
                let round = answered(call(), last, &said);
                round.cancel.cancel(CancelReason::Client);
                handle(round).await
            }
            Turn::Wait(seconds) => {
                tokio::time::advance(Duration::from_secs(*seconds)).await;
                yield_now().await;
                Err(ExecuteToolError::Cancelled(CancelReason::Client))
            }
        };
    }
    built.open_calls.end();
    built.open_calls.drained().await;
    let all = log.0.rows();
    while !log.0.rows().iter().all(|row| row.outcome.is_final()) {
        yield_now().await;
    }
    let finals = log.1.lock().unwrap().clone();
    assert_eq!(finals.len(), all.len(), "every row is final");
    (provider.calls().len(), finals)
}

#[tokio::test]
async fn identical_concurrent_calls_each_require_their_own_approval() {
    let approver = Arc::new(ScriptedApprover::granting(2));
    let house = Arc::new(Plan { approver: approver.clone(), ..Default::default() }.house(provider()).await);
    let (one, two) = tokio::join!(house.call("write", json!({})), house.call("write", json!({})));
    assert_eq!((one.as_str(), two.as_str(), approver.questions().len()), ("written", "written", 2));
}

#[tokio::test]
async fn an_approval_of_a_cancelled_call_grants_nothing() {
    struct TooLate(CancelSignal);
    #[async_trait]
    impl Approver for TooLate {
        async fn ask(&self, _: ApprovalRequest<'_>) -> ApprovalOutcome {
            self.0.cancel(CancelReason::Client);
            yield_now().await;
            ApprovalOutcome::Granted { by: "ann".into(), scopes: vec![ApprovalScope::Always] }
        }
    }
    let (cancel, store) = (CancelSignal::new(), Arc::new(InMemoryRuleStore::new()));
    let plan = Plan { approver: Arc::new(TooLate(cancel.clone())), store: store.clone(), ..Default::default() };
    let house = plan.house(provider()).await;
    let answer = house.execute(ExecuteToolCommand { cancel, ..command("write", json!({})) }).await;
    assert!(answer.starts_with("cancelled"), "{answer}");
    assert_eq!(store.stored_rules(), []);
}
