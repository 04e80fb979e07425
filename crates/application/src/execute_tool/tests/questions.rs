//! Questions of tools to their clients, as they are sent and recorded.

use super::{
    retries::{Round, answered, form, modern},
    *,
};
use std::time::Duration;
use toolstead_domain::{
    CallContext, CallId, NestedCall, NotAnswered, OutcomeKind, ProtocolVersion, ProviderListError, ToolCall,
    testing::recording_caller::RecordingCaller,
};
use uuid::Uuid;

/// Returns a tool of the MCP server `git`, under its qualified name or its own.
fn of_git(is_plain: bool, steps: impl FnOnce(ScriptedTool) -> ScriptedTool) -> ScriptedProvider {
    let server = ServerName::parse("git").unwrap();
    let name = if is_plain { ToolName::parse("log").unwrap() } else { ToolName::for_upstream(&server, "log") };
    let definition = json!({"name": "log", "inputSchema": {}}).as_object().unwrap().clone();
    let tool = Tool::new(name, definition, Category::Mcp, ToolSource::McpServer { server, tool: "log".into() });
    let access = Access::CallUpstream { server: ServerName::parse("git").unwrap(), tool: "log".into() };
    ScriptedProvider::new("git").with(steps(ScriptedTool::of(tool).touches(vec![access])))
}

fn told_by(moment: &toolstead_domain::testing::scripted_provider::scripted_tool::EndingContext<'_>) -> Ending {
    Ending::Done(ToolResult::text(moment.responses.iter().map(|one| one.0.to_string()).collect::<String>()))
}

/// Returns a call by a client that receives questions during the call and gives these answers.
fn old(tool: &str, answers: Vec<Result<Value, NotAnswered>>) -> (ExecuteToolCommand, Arc<RecordingCaller>) {
    let caller = Arc::new(RecordingCaller::answering(answers.into_iter().map(|one| one.map(InputResponse))));
    let client = ClientProfile {
        protocol: Some(ProtocolVersion::V20251125),
        capabilities: json!({"elicitation": {"url": {}, "form": {}}, "roots": {}}).as_object().unwrap().clone(),
        ..ClientProfile::without_protocol("test")
    };
    let arguments = json!({"token": "hush-hush"});
    (ExecuteToolCommand { client: Arc::new(client), caller: caller.clone(), ..command(tool, arguments) }, caller)
}

fn open() -> Plan {
    Plan { rules: vec![(Effect::Allow, "mcp__git")], ..Default::default() }
}

impl House {
    fn question_rows(&self) -> Vec<ToolExecution> {
        self.log.rows().into_iter().filter(|row| row.kind == AuditedRequestKind::Question).collect()
    }

    fn words(&self) -> Vec<String> {
        let rows = self.question_rows();
        rows.iter().map(|row| row.metadata["answer"].as_str().unwrap_or("open").to_owned()).collect()
    }
}

#[tokio::test]
async fn each_server_question_names_its_server_and_has_its_own_record_under_the_call() {
    let refused = NotAnswered::Refused { code: -1, message: "the user said no".into() };
    for (answer, word, outcome) in [
        (Ok(json!({"action": "accept", "content": {"pin": "4711"}})), "answered", OutcomeKind::Succeeded),
        (Ok(json!({"action": "decline"})), "declined", OutcomeKind::Refused),
        (Ok(json!({"action": "cancel"})), "cancelled", OutcomeKind::Cancelled),
        (Err(refused), "declined", OutcomeKind::Refused),
        (Err(NotAnswered::TimedOut), "unanswered", OutcomeKind::Failed),
        (Err(NotAnswered::Disconnected), "cancelled", OutcomeKind::Cancelled),
    ] {
        let house = open().house(of_git(false, |tool| tool.asks(form("hush-hush?")).ends_by(told_by))).await;
        let (command, caller) = old("mcp__git__log", vec![answer]);
        house.execute(command).await;
        let [asked] = &caller.questions()[..] else { panic!() };
        assert_eq!(asked.params["message"], "The MCP server `git` asks: hush-hush?");
        assert_eq!(asked.params["_meta"]["toolstead/server"], "git");
        let (rows, call) = (house.question_rows(), house.only_row());
        let [row] = &rows[..] else { panic!("{rows:#?}") };
        assert_eq!((row.metadata["answer"].as_str(), row.outcome.kind()), (Some(word), outcome));
        assert_eq!(
            (row.parent, row.tool.as_str(), row.called_as.as_str()),
            (Some(call.id), "elicitation/create", "git")
        );
        assert_eq!((row.source.as_str(), row.principal.as_str()), ("mcp:git", call.principal.as_str()));
        assert!(row.ended.is_some() && call.outcome.is_final());
        let kept = format!("{row:?}");
        assert!(!kept.contains("4711") && !kept.contains("hush-hush"), "{kept}");
    }
}

#[tokio::test]
async fn questions_of_a_server_with_plain_tool_names_keep_their_own_wording() {
    let house = open().house(of_git(true, |tool| tool.asks(form("Sure?")).ends_by(told_by))).await;
    let (command, caller) = old("log", vec![Ok(json!({"action": "accept"}))]);
    assert_eq!(house.execute(command).await, r#"{"action":"accept"}"#);
    let asked = caller.questions().remove(0).params;
    assert_eq!((&asked["message"], &asked["_meta"]["toolstead/server"]), (&json!("Sure?"), &json!("git")));
}

#[tokio::test]
async fn the_number_and_total_size_of_questions_of_a_tool_are_limited() {
    let asks = |questions: usize, text: usize| {
        let tool = |tool: ScriptedTool| (0..questions).fold(tool, |tool, _| tool.asks(form(&"x".repeat(text))));
        of_git(false, |one| tool(one).ends_by(told_by))
    };
    for (questions, text, asked) in [(40, 1, 32), (10, 1 << 20, 3)] {
        let house = open().house(asks(questions, text)).await;
        let (command, caller) = old("mcp__git__log", vec![Ok(json!({"action": "accept"})); questions]);
        let answer = house.execute(command).await;
        assert!(answer.contains("the maximum number of questions"), "{answer}");
        assert_eq!((caller.questions().len(), house.question_rows().len()), (asked, asked));
    }
}

#[tokio::test]
async fn a_url_question_with_an_ambiguous_host_is_not_asked_and_is_recorded_as_unanswered() {
    let page =
        json!({"mode": "url", "url": "https://bank.com@evil.org/?secret=1", "message": "m", "elicitationId": "e"});
    let question = InputRequest { method: "elicitation/create".into(), params: page };
    let house = open().house(of_git(false, |tool| tool.asks(question.clone()).ends_by(told_by))).await;
    let (command, caller) = old("mcp__git__log", vec![]);
    let answer = house.execute(command).await;
    assert!(answer.contains("no plain") || answer.contains("not at a plain"), "{answer}");
    assert_eq!((caller.questions().len(), house.words()), (0, vec!["unanswered".to_owned()]));
    assert!(!format!("{:?}", house.question_rows()).contains("secret=1"));
}

#[tokio::test]
async fn a_server_receives_only_those_client_roots_that_are_inside_the_workspace() {
    let question = InputRequest { method: "roots/list".into(), params: Value::Null };
    let house = open().house(of_git(false, |tool| tool.asks(question.clone()).ends_by(told_by))).await;
    let roots = json!({"roots": [{"uri": "file:///w/a", "name": "a"}, {"uri": "file:///home/ann"}]});
    let (command, _) = old("mcp__git__log", vec![Ok(roots)]);
    assert_eq!(house.execute(command).await, r#"{"roots":[{"uri":"file:///w/a","name":"a"}]}"#);
    assert_eq!(house.words(), ["answered"]);
}

#[tokio::test]
async fn a_question_of_a_parked_call_has_an_open_record_until_it_is_answered() {
    let house = open().house(of_git(false, |tool| tool.asks(form("Name?")).ends_by(told_by))).await;
    let (keys, state) = house.asked_for(modern("mcp__git__log", json!({}))).await;
    assert_eq!(
        (house.words(), house.question_rows()[0].outcome.kind()),
        (vec!["open".to_owned()], OutcomeKind::InputRequired)
    );
    let retry = answered(modern("mcp__git__log", json!({})), &state, &[(&keys[0], "ada")]);
    assert_eq!(house.execute(retry).await, r#""ada""#);
    assert_eq!((house.words(), house.only_row().outcome.kind()), (vec!["answered".to_owned()], OutcomeKind::Succeeded));
}

/// Provider of `fickle`, which withdraws its first question after a while and asks another, and of `pair`, which calls
/// it.
struct Fickle;

#[async_trait]
impl ToolProvider for Fickle {
    fn name(&self) -> &str {
        "fickle"
    }
    async fn list(&self) -> Result<Vec<Tool>, ProviderListError> {
        Ok(vec![samples::tool("fickle"), samples::tool("pair")])
    }
    async fn accesses(&self, _: &ToolCall) -> Result<Vec<Access>, ToolFailure> {
        Ok(Vec::new())
    }
    async fn call(&self, call: &ToolCall, context: &CallContext<'_>) -> Result<CallOutcome, ToolFailure> {
        if call.tool.name().as_str() == "pair" {
            // Its other call never ends.
            let calls = ["fickle", "endless"].map(|tool| context.calls.call(NestedCall::new(tool, json!({}))));
            futures::future::join_all(calls).await;
        }
        let first = tokio::time::timeout(Duration::from_secs(5), context.caller.ask(form("first?"))).await;
        assert!(first.is_err(), "nobody answers in time");
        let second = context.caller.ask(form("second?")).await;
        Ok(CallOutcome::Done(ToolResult::text(format!("{second:?}"))))
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_its_tool_withdraws_is_not_asked_in_the_next_round() {
    let built = Plan::default().house(provider()).await;
    built.registry.register(Arc::new(Fickle)).await.unwrap();
    let (keys, state) = built.asked_for(modern("fickle", json!({}))).await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(built.words(), ["taken back", "open"]);
    let late = answered(modern("fickle", json!({})), &state, &[(&keys[0], "late")]);
    let (next, state) = built.asked_for(late).await;
    assert_ne!(keys, next);
    let retry = answered(modern("fickle", json!({})), &state, &[(&next[0], "yes")]);
    assert!(built.execute(retry).await.contains("yes"));
    assert_eq!(
        (built.words(), built.outcomes()),
        (vec!["taken back".into(), "answered".into()], vec![OutcomeKind::Succeeded])
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_keeps_its_slot_while_work_continues_beside_an_open_question() {
    let house = Plan { rules: vec![(Effect::Allow, "endless")], ..Default::default() }.house(provider()).await;
    house.registry.register(Arc::new(Fickle)).await.unwrap();
    let admit = || house.open_calls.admit(CallId(Uuid::now_v7()), Principal::local(), CancelSignal::new());
    let mut others: Vec<_> = (0..7).map(|_| admit().unwrap()).collect();
    house.asked_for(modern("pair", json!({}))).await;
    assert!(admit().is_err(), "the call that never ends takes the last of 8 places");
    house.handler.session_ended(&Principal::local(), &"s".into()).await;
    house.open_calls.at_most(7).await;
    house.asked_for(modern("fickle", json!({}))).await;
    others.push(admit().expect("a call that only waits takes none"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_returns_only_a_state_is_called_again_with_it_without_asking_the_client() {
    use toolstead_domain::InputRequired;
    let steps = |tool: ScriptedTool| {
        tool.ends_by(|moment| {
            let state = moment.context.answers.and_then(|answers| answers.state.clone());
            let again = |state: &str, requests: &[(&str, InputRequest)]| {
                let requests = requests.iter().map(|(key, one)| ((*key).to_owned(), one.clone())).collect();
                Ending::InputRequired(InputRequired { requests, state: Some(state.into()) })
            };
            match state.as_deref() {
                None => again("{\"n\":1, }", &[]),
                Some("{\"n\":1, }") => again("two", &[("a", form("a?"))]),
                // Answers the retry with new questions.
                Some("two") => again("three", &[("a", form("b?")), ("c", form("c?"))]),
                Some(state) => {
                    let keys =
                        moment.context.answers.map(|answers| answers.responses.keys().cloned().collect::<Vec<_>>());
                    Ending::Done(ToolResult::text(format!("{state} {}", keys.unwrap_or_default().join(","))))
                }
            }
        })
    };
    let house = open().house(of_git(false, steps)).await;
    let call = || ExecuteToolCommand { caller: Arc::new(Round::default()), ..modern("mcp__git__log", json!({})) };
    let (keys, state) = house.asked_for(call()).await;
    assert_eq!(keys, ["a"]);
    assert!(!state.contains("two"));
    let (keys, state) = house.asked_for(answered(call(), &state, &[("a", "1")])).await;
    assert_eq!(keys, ["a", "c"]);
    let retry = answered(call(), &state, &[("a", "1"), ("c", "2")]);
    assert_eq!(house.execute(retry).await, "three a,c");
    assert_eq!(house.words(), ["answered", "answered", "answered"]);
}
