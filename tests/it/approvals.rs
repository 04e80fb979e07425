//! Calls that require approval: by MCP clients of both generations, over stdio and over HTTP, and at a terminal.

use crate::{
    binaries::{
        Home, Pipe, Server, TOKEN as SERVER_TOKEN, node_path, node_program, peer, python_program, stderr, stdout,
    },
    support::{
        Events, HttpFront, StdioClient, TOKEN, TestApp, call, echo, initialize, legacy, messages, modern, only, soon,
        text_of,
    },
};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};
use std::{
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, Read, Write},
    os::unix::fs::OpenOptionsExt,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::Arc,
    time::Duration,
};
use toolstead_application::EventBus;
use toolstead_application::{CallSettings, ExecuteToolPorts};
use toolstead_domain::{
    Access, AccessPath, ApprovalScope, AuditedRequestKind, CancelReason, CommandAccess, DefaultSuggestions,
    ExecutionOutcome, InputRequest, NoConversations, NoJournal, NoOutputs, OutcomeKind, PermissionPolicy, Progress,
    Timestamp, ToolProvider, ToolResult, UnavailableSchemaValidator, WorkspaceRoots,
    testing::{
        fixed_clock::FixedClock,
        in_memory_execution_log::InMemoryExecutionLog,
        in_memory_rule_store::InMemoryRuleStore,
        in_memory_tool_repository::InMemoryToolRepository,
        scripted_provider::{
            ScriptedProvider,
            scripted_tool::{Ending, ScriptedTool},
        },
    },
};
use toolstead_presentation::{
    agent_parts::SharedAgentDependencies,
    app::{App, AppParts},
    mcp_server::{elicitation_approver::ElicitationApprover, http::settings::BearerToken, stdio::StdioSettings},
};

/// Longer than any test.
const LONG: Duration = Duration::from_secs(300);

/// An application with three tools: `write` requires approval, `opaque` requires approval and no rule can allow it, and
/// `send` requires approval for every call.
struct House {
    app: TestApp,
    store: Arc<InMemoryRuleStore>,
}

impl House {
    async fn new(patience: Duration) -> Self {
        let write = ScriptedTool::named("write")
            .touches(vec![Access::WritePath(AccessPath::plain("/w/a"))])
            .answers(ToolResult::text("written"));
        let send =
            ScriptedTool::named("send").touches(vec![Access::Send("a@b.c".into())]).answers(ToolResult::text("sent"));
        let opaque = ScriptedTool::named("opaque")
            .touches(vec![Access::RunCommand(CommandAccess::opaque("$(x)", "a substitution"))])
            .answers(ToolResult::text("ran"));
        let roots = InputRequest { method: "roots/list".into(), params: Value::Null };
        let curious = ScriptedTool::named("curious").asks(roots).ends_by(|moment| {
            Ending::Done(ToolResult::text(moment.responses.iter().map(|one| one.0.to_string()).collect::<String>()))
        });
        let form = |field: &str| InputRequest {
            method: "elicitation/create".into(),
            params: json!({"message": format!("{field}?"), "requestedSchema":
                {"type": "object", "properties": {(field): {"type": "string"}}, "required": [field]}}),
        };
        let half = Progress::at(1.0);
        let nosy = ScriptedTool::named("nosy").asks(form("first")).reports(half).asks(form("last")).ends_by(|moment| {
            let said = moment.responses.iter().map(|one| one.0["content"].to_string());
            Ending::Done(ToolResult::text(said.collect::<Vec<_>>().join(" and ")))
        });
        let tools = [echo(), write, send, opaque, curious, nosy];
        let provider = Arc::new(tools.into_iter().fold(ScriptedProvider::new("scripted"), ScriptedProvider::with));
        let (log, store) = (Arc::new(InMemoryExecutionLog::new()), Arc::new(InMemoryRuleStore::new()));
        let ports = ExecuteToolPorts {
            approver: Arc::new(ElicitationApprover::new(patience)),
            log: log.clone(),
            clock: Arc::new(FixedClock::at(Timestamp(0))),
            outputs: Arc::new(NoOutputs),
            schemas: Arc::new(UnavailableSchemaValidator),
            hooks: Vec::new(),
            events: EventBus::new(Arc::new(FixedClock::at(Timestamp(0)))),
            suggestions: Arc::new(DefaultSuggestions),
        };
        let roots = WorkspaceRoots { write: vec!["/w".into()], ..WorkspaceRoots::default() };
        let policy = PermissionPolicy { roots, ..PermissionPolicy::default() };
        let settings = CallSettings { approval_timeout: patience, ..CallSettings::default() };
        let rule_store = store.clone();
        let (journal, conversations) = (Arc::new(NoJournal), Arc::new(NoConversations));
        let parts = AppParts {
            definitions: None,
            policy,
            rule_store,
            ports,
            journal,
            conversations,
            settings,
            max_open_calls: 10_000,
            dialect: None,
            deferral: toolstead_application::ToolDeferral::never(),
            agents: SharedAgentDependencies::default(),
        };
        let app = App::assemble(parts, Arc::new(InMemoryToolRepository::new())).await.unwrap();
        app.registry.register(provider.clone() as Arc<dyn ToolProvider>).await.unwrap();
        Self { app: TestApp { app, provider, log }, store }
    }

    /// A client on pipes that fills in forms.
    async fn asked_on_pipes(&self) -> StdioClient {
        let mut client = StdioClient::start(&self.app, StdioSettings::default());
        client.ask(opening()).await;
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    fn ran(&self) -> usize {
        self.app.provider.calls().len()
    }
}

/// `initialize` of a client that fills in forms and has roots.
fn opening() -> Value {
    let mut opening = initialize("2025-11-25");
    opening["params"]["capabilities"] = json!({"elicitation": {}, "roots": {}});
    opening
}

fn write(id: i64) -> Value {
    legacy(id, "tools/call", call("write", json!({})))
}

/// A call of 2026-07-28 by a client that fills in forms.
fn modern_call(id: i64, tool: &str, arguments: Value) -> Value {
    let mut request = modern(id, "tools/call", call(tool, arguments));
    request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
    request
}

/// The call once more, with the answer to what its result asked.
fn retried(id: i64, mut request: Value, asked: &Value, answer: Value) -> Value {
    request["id"] = id.into();
    let key = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap();
    request["params"]["inputResponses"] = json!({key: answer});
    request["params"]["requestState"] = asked["result"]["requestState"].clone();
    request
}

fn accept(scope: &str) -> Value {
    json!({"action": "accept", "content": {"part_1": scope}})
}

fn answer(question: &Value, result: Value) -> Value {
    assert_eq!(question["method"], "elicitation/create", "{question}");
    json!({"jsonrpc": "2.0", "id": question["id"], "result": result})
}

#[track_caller]
fn check_refused(answer: &Value, kind: &str) {
    let result = &answer["result"];
    assert_eq!((&result["isError"], &result["_meta"]["toolstead/errorKind"]), (&json!(true), &json!(kind)), "{answer}");
}

#[tokio::test]
async fn a_legacy_stdio_client_is_asked_for_approval_during_its_call() {
    let house = House::new(LONG).await;
    let mut client = house.asked_on_pipes().await;
    let question = client.ask(write(1)).await;
    let params = &question["params"];
    assert!(
        params["message"].as_str().unwrap().starts_with("May the tool `write` run?\n1. write `/w/a`\n"),
        "{params}"
    );
    assert_eq!(
        params["requestedSchema"]["properties"]["part_1"]["enum"],
        json!(["deny", "once", "session", "project", "always"])
    );
    // The connection remains usable in the meantime.
    assert_eq!(client.ask(legacy(2, "ping", json!({}))).await["id"], 2);
    assert_eq!(text_of(&client.ask(legacy(3, "tools/call", call("echo", json!({"message": "hi"})))).await), "hi");
    assert_eq!(house.ran(), 1, "the question is open");
    let result = client.ask(answer(&question, accept("once"))).await;
    assert_eq!((&result["id"], text_of(&result)), (&json!(1), "written"));

    let question = client.ask(write(4)).await;
    assert_eq!(text_of(&client.ask(answer(&question, accept("session"))).await), "written");
    assert_eq!(text_of(&client.ask(write(5)).await), "written", "it is not asked again");
    let mut rows = house.app.log.rows();
    rows.retain(|row| row.tool == "write");
    rows.sort_by_key(|row| row.id);
    let decision = |id: usize| rows[id].decision.as_ref().unwrap();
    assert_eq!(decision(0).approved_by.as_deref(), Some("the person at test 1"));
    assert_eq!(decision(1).approved_by.as_deref(), Some("the person at test 1 (session)"));
    assert!(decision(2).reason.contains("approvals of this session"), "{:?}", decision(2));

    // Another connection is another session.
    let mut other = house.asked_on_pipes().await;
    assert_eq!(other.ask(write(1)).await["method"], "elicitation/create");
}

#[tokio::test]
async fn a_call_does_not_run_without_an_unambiguous_approval() {
    let house = House::new(LONG).await;
    let mut client = house.asked_on_pipes().await;
    let hostile = [
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
        json!({"action": "accept"}),
        accept("deny"),
        accept("forever"),
        json!({"action": "accept", "content": {"part_1": "once", "more": true}}),
        json!({"action": "accept", "content": {"part_1": {"const": "once"}}}),
        json!([]),
        json!("accept"),
    ];
    for (id, result) in (1..).zip(hostile) {
        let question = client.ask(write(id)).await;
        check_refused(&client.ask(answer(&question, result)).await, "permission_denied");
    }
    let question = client.ask(write(100)).await;
    let error = json!({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32603, "message": "no"}});
    check_refused(&client.ask(error).await, "permission_denied");

    // Unknown ids answer nothing. Of two answers only the first counts, so the `always` of the second has no effect.
    let question = client.ask(write(101)).await;
    for id in [json!("toolstead-999"), json!(0), json!("x")] {
        client.send(json!({"jsonrpc": "2.0", "id": id, "result": accept("always")})).await;
    }
    client.send(answer(&question, json!({"action": "decline"}))).await;
    client.send(answer(&question, accept("always"))).await;
    check_refused(&client.next().await, "permission_denied");
    assert_eq!(client.ask(write(102)).await["method"], "elicitation/create");
    assert_eq!((house.ran(), house.store.stored_rules()), (0, Vec::new()));
}

#[tokio::test]
async fn cancelling_a_call_withdraws_its_question() {
    let house = House::new(LONG).await;
    let mut client = house.asked_on_pipes().await;
    let question = client.ask(write(1)).await;
    let taken_back = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let outcome = client.ask(taken_back).await;
    assert_eq!(
        (&outcome["method"], &outcome["params"]["requestId"]),
        (&json!("notifications/cancelled"), &question["id"])
    );
    client.send(answer(&question, accept("always"))).await;
    assert_eq!(client.ask(write(2)).await["method"], "elicitation/create");
    assert_eq!((house.ran(), house.store.stored_rules()), (0, Vec::new()));
}

#[tokio::test]
async fn a_question_without_a_timely_answer_denies_the_call() {
    let house = House::new(Duration::from_millis(50)).await;
    let mut client = house.asked_on_pipes().await;
    let question = client.ask(write(1)).await;
    let answer = client.next().await;
    assert_eq!(
        (&answer["method"], &answer["params"]["requestId"]),
        (&json!("notifications/cancelled"), &question["id"])
    );
    check_refused(&client.next().await, "approval_timeout");
    assert_eq!(house.ran(), 0);
}

#[tokio::test]
async fn a_client_without_form_support_receives_a_refusal_with_a_suggestion() {
    let house = House::new(LONG).await;
    let mut client = StdioClient::legacy(&house.app).await;
    let outcome = client.ask(write(1)).await;
    check_refused(&outcome, "permission_denied");
    assert!(text_of(&outcome).contains("No approver is available. Ask your user"), "{outcome}");
    let suggestion = outcome["result"]["_meta"]["toolstead/suggestion"].as_str().unwrap();
    assert!(suggestion.contains("Write(//w/a)") && !text_of(&outcome).contains("Write(//w/a)"), "{outcome}");
    let front = HttpFront::start(&house.app).await;
    let (status, outcome) = front.ask_modern(&modern(1, "tools/call", call("write", json!({})))).await;
    assert_eq!(status, 200);
    check_refused(&outcome, "permission_denied");
}

#[tokio::test]
async fn concurrent_calls_have_separate_approval_questions() {
    let house = House::new(LONG).await;
    let mut client = house.asked_on_pipes().await;
    client.send(write(1)).await;
    client.send(write(2)).await;
    let (one, two) = (client.next().await, client.next().await);
    assert_ne!(one["id"], two["id"]);
    let first = client.ask(answer(&one, json!({"action": "decline"}))).await;
    check_refused(&first, "permission_denied");
    let second = client.ask(answer(&two, accept("once"))).await;
    assert_eq!((text_of(&second), house.ran()), ("written", 1));
}

#[tokio::test]
async fn a_tool_can_ask_its_client_only_within_the_declared_capabilities() {
    let house = House::new(LONG).await;
    let mut client = house.asked_on_pipes().await;
    let question = client.ask(legacy(1, "tools/call", call("curious", json!({})))).await;
    assert_eq!((&question["method"], question.get("params")), (&json!("roots/list"), None));
    let answered = client.ask(json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})).await;
    assert_eq!(text_of(&answered), r#"{"roots":[]}"#);
    let mut other = StdioClient::legacy(&house.app).await;
    let answer = other.ask(legacy(1, "tools/call", call("curious", json!({})))).await;
    assert!(text_of(&answer).contains("cannot answer questions of this kind"), "{answer}");
}

/// Opens a session of a client that fills in forms.
async fn open_session(front: &HttpFront) -> String {
    let response = soon(front.post(&opening()).send()).await.unwrap();
    let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    soon(front.in_session(&session, &initialized).send()).await.unwrap();
    session
}

async fn events(front: &HttpFront, session: &str, request: &Value) -> Events {
    let response = soon(front.in_session(session, request).send()).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    Events::of(response)
}

#[tokio::test]
async fn a_legacy_http_client_receives_the_question_on_the_stream_of_its_call() {
    let house = House::new(LONG).await;
    let front = HttpFront::start(&house.app).await;
    let (session, stranger) = (open_session(&front).await, open_session(&front).await);
    let mut stream = events(&front, &session, &write(1)).await;
    let question = stream.next().await;
    // A client over the network cannot store rules that apply to others.
    let choices = &question["params"]["requestedSchema"]["properties"]["part_1"]["enum"];
    assert_eq!(*choices, json!(["deny", "once", "session"]));
    let yes = answer(&question, accept("session"));
    let posted = soon(front.in_session(&stranger, &yes).send()).await.unwrap();
    assert_eq!((posted.status().as_u16(), house.ran()), (202, 0), "another session answers nothing");
    assert_eq!(soon(front.in_session(&session, &yes).send()).await.unwrap().status(), 202);
    assert_eq!(text_of(&stream.next().await), "written");
    assert_eq!(stream.try_next().await, None);
    // A call without a question is answered without a stream.
    let (_, outcome) = front.ask_in_session(&session, &write(2)).await;
    assert_eq!(text_of(&outcome), "written");
    let mut stream = events(&front, &stranger, &write(3)).await;
    let question = stream.next().await;
    let no = answer(&question, json!({"action": "decline"}));
    soon(front.in_session(&stranger, &no).send()).await.unwrap();
    check_refused(&stream.next().await, "permission_denied");

    // What was approved is gone with its session.
    let end = front.request(reqwest::Method::DELETE).header("mcp-session-id", &session);
    assert_eq!(soon(end.send()).await.unwrap().status(), 204);
    let again = open_session(&front).await;
    let mut stream = events(&front, &again, &write(4)).await;
    assert_eq!(stream.next().await["method"], "elicitation/create");
}

#[tokio::test]
async fn a_modern_http_client_receives_the_question_in_the_result_and_retries() {
    let house = House::new(LONG).await;
    let front = HttpFront::start(&house.app).await;
    let request = modern_call(1, "write", json!({"n": 1}));
    let (status, asked) = front.ask_modern(&request).await;
    assert_eq!((status, &asked["result"]["resultType"]), (200, &json!("input_required")), "{asked}");
    let question = &asked["result"]["inputRequests"]["toolstead/approval"];
    assert_eq!(question["method"], "elicitation/create", "{asked}");
    let choices = &question["params"]["requestedSchema"]["properties"]["part_1"]["enum"];
    assert_eq!(*choices, json!(["deny", "once", "session"]));
    assert_eq!(house.ran(), 0);

    let changed = retried(2, modern_call(1, "write", json!({"n": 2})), &asked, accept("once"));
    let (_, outcome) = front.ask_modern(&changed).await;
    assert_eq!(
        (&outcome["error"]["code"], &outcome["error"]["data"]["kind"]),
        (&json!(-32602), &json!("invalid_input"))
    );
    let waiting = house.app.log.rows().remove(0);
    assert_eq!((waiting.outcome, waiting.ended), (ExecutionOutcome::InputRequired, None), "the call waits on");

    let retry = retried(4, request.clone(), &asked, accept("once"));
    assert_eq!(text_of(&front.ask_modern(&retry).await.1), "written");
    assert_eq!(house.app.log.rows().remove(0).outcome, ExecutionOutcome::Succeeded, "one row over all rounds");
    let (_, replayed) = front.ask_modern(&retry).await;
    assert_eq!(replayed["error"]["code"], -32602, "{replayed}");
    assert_eq!(house.ran(), 1);

    let (_, asked) = front.ask_modern(&request).await;
    for hostile in [json!({"action": "decline"}), accept("always"), accept("project"), json!(null), json!(7)] {
        let (_, asked) = front.ask_modern(&request).await;
        check_refused(&front.ask_modern(&retried(5, request.clone(), &asked, hostile)).await.1, "permission_denied");
    }
    let (_, outcome) = front.ask_modern(&retried(6, request.clone(), &asked, accept("once"))).await;
    assert_eq!(text_of(&outcome), "written", "other questions leave this one open");
    assert_eq!(front.ask_modern(&request).await.1["result"]["resultType"], "input_required");
}

#[tokio::test]
async fn questions_are_answered_while_the_server_drains() {
    let house = House::new(LONG).await;
    let mut front = HttpFront::start(&house.app).await;
    let session = open_session(&front).await;
    let mut stream = events(&front, &session, &write(1)).await;
    let question = stream.next().await;
    let request = modern_call(2, "write", json!({"n": 1}));
    let (_, asked) = front.ask_modern(&request).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");

    let stopping = tokio::spawn(front.server.take().unwrap().stop(LONG));
    let readyz = async || soon(front.client.get(front.url("/readyz")).send()).await.unwrap().status();
    soon(async { while readyz().await != 503 {} }).await;
    let refused = soon(front.post_modern(&request).send()).await.unwrap();
    assert_eq!(refused.status(), 503, "a new call");
    assert_eq!(soon(front.in_session(&session, &write(3)).send()).await.unwrap().status(), 503, "a new call");

    let yes = answer(&question, accept("once"));
    assert_eq!(soon(front.in_session(&session, &yes).send()).await.unwrap().status(), 202);
    assert_eq!(text_of(&stream.next().await), "written");
    let retry = retried(4, request, &asked, accept("once"));
    assert_eq!(text_of(&front.ask_modern(&retry).await.1), "written");
    soon(stopping).await.unwrap();
    assert_eq!(house.app.outcomes(), [ExecutionOutcome::Succeeded, ExecutionOutcome::Succeeded]);
}

#[tokio::test]
async fn a_call_pending_on_its_client_is_cancelled_when_the_drain_ends() {
    let house = House::new(LONG).await;
    let mut front = HttpFront::start(&house.app).await;
    let (_, asked) = front.ask_modern(&modern_call(1, "write", json!({"n": 1}))).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    soon(front.server.take().unwrap().stop(Duration::ZERO)).await;
    assert_eq!(house.app.outcomes(), [ExecutionOutcome::Cancelled(CancelReason::Shutdown)]);
}

#[tokio::test]
async fn a_session_approval_covers_later_calls_of_the_same_modern_http_client() {
    let house = House::new(LONG).await;
    let front = HttpFront::with(&house.app, |settings| {
        settings.tokens.push(BearerToken { name: "other".into(), secret: "the-token-of-somebody-else".into() });
    })
    .await;
    let is_asked = |answer: &Value| answer["result"]["resultType"] == "input_required";
    let (_, asked) = front.ask_modern(&modern_call(1, "write", json!({"n": 1}))).await;
    let yes = retried(2, modern_call(1, "write", json!({"n": 1})), &asked, accept("session"));
    assert_eq!(text_of(&front.ask_modern(&yes).await.1), "written");
    // Another edit of the same file, by the same client in another version.
    let mut next = modern_call(3, "write", json!({"n": 2}));
    next["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]["version"] = "2".into();
    assert_eq!(text_of(&front.ask_modern(&next).await.1), "written");

    next["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]["name"] = "another".into();
    assert!(is_asked(&front.ask_modern(&next).await.1), "another client of the same token has a session of its own");
    let request = modern_call(4, "write", json!({"n": 3}));
    let mut elsewhere = front.post_modern(&request).build().unwrap();
    elsewhere.headers_mut().insert("authorization", "Bearer the-token-of-somebody-else".parse().unwrap());
    let answer = only(messages(soon(front.client.execute(elsewhere)).await.unwrap()).await);
    assert!(is_asked(&answer), "somebody else has, too: {answer}");
}

#[tokio::test]
async fn a_modern_stdio_client_receives_the_question_in_the_result_and_retries() {
    let house = House::new(LONG).await;
    let mut client = StdioClient::start(&house.app, StdioSettings::default());
    let call = |id: i64, tool: &str, text: &str| modern_call(id, tool, json!({"text": text}));
    for (tool, choices, answer) in
        [("opaque", json!(["deny", "once", "session"]), "session"), ("send", json!(["deny", "once"]), "once")]
    {
        let asked = client.ask(call(1, tool, "hi")).await;
        let form = &asked["result"]["inputRequests"]["toolstead/approval"]["params"]["requestedSchema"];
        assert_eq!(form["properties"]["part_1"]["enum"], choices, "no rule covers it");
        let reply = client.ask(retried(2, call(1, tool, "hi"), &asked, accept(answer))).await;
        assert_eq!(text_of(&reply), if tool == "send" { "sent" } else { "ran" });
        assert_eq!(client.ask(call(4, tool, "other")).await["result"]["resultType"], "input_required");
    }
    assert_eq!(text_of(&client.ask(call(3, "opaque", "hi")).await), "ran");
    assert_eq!(client.ask(call(3, "send", "hi")).await["result"]["resultType"], "input_required");
}

/// Returns the answer of a client that is asked for a name.
fn named(field: &str, name: &str) -> Value {
    json!({"action": "accept", "content": {field: name}})
}

#[tokio::test]
async fn a_tool_asks_a_modern_client_in_several_rounds_and_runs_once() {
    let house = House::new(LONG).await;
    let front = HttpFront::start(&house.app).await;
    let mut pipes = StdioClient::start(&house.app, StdioSettings::default());
    for is_http in [true, false] {
        let mut ask = async |request: Value| match is_http {
            true => front.ask_modern(&request).await.1,
            false => pipes.ask(request).await,
        };
        let request = || modern_call(1, "nosy", json!({"n": 1}));
        let first = ask(request()).await;
        assert_eq!(first["result"]["resultType"], "input_required", "{first}");
        // Any answer of the client is accepted. A forged state has no effect.
        let second = ask(retried(2, request(), &first, json!(null))).await;
        let mut forged = retried(3, request(), &first, named("first", "eve"));
        forged["params"]["requestState"] = "bm90IG91cnM".into();
        assert_eq!(ask(forged).await["error"]["code"], -32602);
        assert_eq!(second["result"]["inputRequests"].as_object().unwrap().len(), 1, "{second}");
        let mut last = retried(4, request(), &second, named("last", "lovelace"));
        last["params"]["_meta"]["progressToken"] = "t".into();
        let done = ask(last).await;
        assert_eq!(text_of(&done), r#"null and {"last":"lovelace"}"#);
        assert_eq!(ask(retried(5, request(), &second, named("last", "eve"))).await["error"]["code"], -32602);
    }
    assert_eq!(house.ran(), 2);
    let calls = house.app.log.rows().into_iter().filter(|row| row.kind != AuditedRequestKind::Question);
    let outcomes: Vec<_> = calls.map(|row| row.outcome.kind()).collect();
    use OutcomeKind::{Refused, Succeeded};
    assert_eq!(outcomes, [Succeeded, Refused, Refused, Succeeded, Refused, Refused]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_official_sdks_answer_a_tool_in_several_rounds_in_both_generations() {
    let house = House::new(LONG).await;
    let front = HttpFront::start(&house.app).await;
    let clients = [
        ("client.py", "legacy"),
        ("client.py", "2026-07-28"),
        ("client2.mjs", "legacy"),
        ("client2.mjs", "2026-07-28"),
    ];
    for (client, mode) in clients {
        let program = if client.ends_with(".py") { python_program("python") } else { node_program("node") };
        let mut command = Command::new(program);
        command.arg(peer(client)).arg(front.url("/mcp")).stdin(Stdio::null());
        command.env("PATH", node_path()).env("MODE", mode).env("TOKEN", TOKEN).env("TOOL", "nosy").env("ARGS", "{}");
        command.env("ANSWER", r#"{"first": "ada", "last": "lovelace"}"#);
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        assert!(output.status.success(), "{client} {mode}: {}", stderr(&output));
        let said: Value = serde_json::from_str(stdout(&output).lines().last().unwrap()).unwrap();
        let text = said["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.matches("ada").count() == 2 && text.contains(" and "), "{client} {mode}: {said}");
    }
    assert_eq!(house.ran(), 4, "each call ran once");
}

#[tokio::test]
async fn a_permanent_approval_is_stored_and_applies_immediately() {
    let house = House::new(LONG).await;
    let mut client = house.asked_on_pipes().await;
    let question = client.ask(write(1)).await;
    assert_eq!(text_of(&client.ask(answer(&question, accept("always"))).await), "written");
    assert_eq!(house.store.stored_rules(), [(ApprovalScope::Always, "Write(//w/a)".to_owned())]);
    let front = HttpFront::start(&house.app).await;
    let response = soon(front.post_modern(&modern(1, "tools/call", call("write", json!({})))).send()).await.unwrap();
    assert_eq!(text_of(&only(messages(response).await)), "written");
}

/// `toolstead mcp` with a client that fills in forms.
struct Mcp {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Mcp {
    fn start(home: &Home) -> Self {
        let mut child = home.toolstead(&["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut mcp = Self { child, input, output };
        mcp.ask(&opening());
        writeln!(mcp.input, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).unwrap();
        mcp
    }

    fn ask(&mut self, message: &Value) -> Value {
        writeln!(self.input, "{message}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn end(mut self) {
        drop(self.input);
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn project_and_permanent_approvals_apply_after_a_restart() {
    let home = Home::new();
    let write =
        |id: i64, path: &str| legacy(id, "tools/call", call("write_file", json!({"path": path, "content": "x"})));
    let mut mcp = Mcp::start(&home);
    for (path, scope) in [("p.txt", "project"), ("a.txt", "always"), ("s.txt", "session")] {
        let question = mcp.ask(&write(1, path));
        let reply = mcp.ask(&answer(&question, accept(scope)));
        assert_eq!(reply["result"]["isError"], Value::Null, "{reply}");
        assert!(home.work().join(path).exists());
    }
    mcp.end();
    let rule = |path: &str| format!("Write(/{})", home.work().join(path).display());
    let local = std::fs::read_to_string(home.work().join("toolstead.local.toml")).unwrap();
    assert!(local.contains(&rule("p.txt")) && !local.contains("a.txt") && !local.contains("s.txt"), "{local}");

    let mut mcp = Mcp::start(&home);
    for path in ["p.txt", "a.txt"] {
        let reply = mcp.ask(&write(1, path));
        assert_eq!((&reply["id"], &reply["result"]["isError"]), (&json!(1), &Value::Null), "{reply}");
    }
    assert_eq!(mcp.ask(&write(2, "s.txt"))["method"], "elicitation/create");
    mcp.end();
}

#[test]
fn the_official_sdks_answer_approval_questions_in_both_generations() {
    let home = Home::new();
    let server = Server::start(&home, "");
    let clients = [
        ("client.py", "legacy"),
        ("client.py", "2026-07-28"),
        ("client1.mjs", "legacy"),
        ("client2.mjs", "legacy"),
        ("client2.mjs", "2026-07-28"),
    ];
    for (way, (client, mode)) in clients.into_iter().flat_map(|client| [("stdio", client), ("http", client)]) {
        for (scope, expected) in [("once", None), ("deny", Some("permission_denied"))] {
            let program = if client.ends_with(".py") { python_program("python") } else { node_program("node") };
            let mut command = home.command(program, &[]);
            command.arg(peer(client)).env("PATH", node_path()).env("MODE", mode).stdin(Stdio::null());
            match way {
                "http" => command.arg(server.url()).env("TOKEN", SERVER_TOKEN),
                _ => command.arg(env!("CARGO_BIN_EXE_toolstead")).arg("mcp"),
            };
            command.env("TOOL", "write_file").env("ARGS", r#"{"path": "sdk.txt", "content": "x"}"#);
            command.env("ANSWER", json!({"part_1": scope}).to_string());
            let output = command.output().unwrap();
            assert!(output.status.success(), "{client} {way} {mode}: {}", stderr(&output));
            let said: Value = serde_json::from_str(stdout(&output).lines().last().unwrap()).unwrap();
            let kind = said["result"]["_meta"]["toolstead/errorKind"].as_str();
            assert_eq!(kind, expected, "{client} {way} {mode}: {said}");
            assert_eq!(said["result"]["isError"].as_bool().unwrap_or(false), expected.is_some(), "{client}: {said}");
        }
    }
}

/// A terminal of its own for `toolstead call write_file -`, whose arguments come from a file, and what is typed there.
fn at_terminal(home: &Home, keys: &[u8]) -> (Option<i32>, String) {
    std::fs::write(home.work().join("arguments.json"), r#"{"path":"t.txt","content":"x"}"#).unwrap();
    typed_at_terminal(home, "exec \"$0\" call write_file - <arguments.json", keys)
}

/// A terminal of its own for a script, whose `$0` is `toolstead`, and what is typed there at the first question.
pub(crate) fn typed_at_terminal(home: &Home, script: &str, keys: &[u8]) -> (Option<i32>, String) {
    let hands = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&hands).unwrap();
    unlockpt(&hands).unwrap();
    let name = ptsname(&hands, Vec::new()).unwrap().into_string().unwrap();
    let terminal = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(name).unwrap();
    let mut command = home.command("/usr/bin/setsid", &["--ctty", "sh", "-c", script]);
    // Held open here: a terminal that no process has open cannot be read from its other end.
    let held = terminal.try_clone().unwrap();
    command.arg(env!("CARGO_BIN_EXE_toolstead")).stdin(terminal).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    drop(command);
    let mut hands = File::from(hands);
    let mut seen = Vec::new();
    while !seen.ends_with(b"? ") {
        let mut byte = [0];
        hands.read_exact(&mut byte).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&seen)));
        seen.extend(byte);
    }
    hands.write_all(keys).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(held);
    (output.status.code(), format!("{}{}", String::from_utf8_lossy(&seen), stderr(&output)))
}

/// The same in the background of a shell with job control, where a question would stop the process.
fn in_background(home: &Home) -> (Option<i32>, String) {
    let hands = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&hands).unwrap();
    unlockpt(&hands).unwrap();
    let name = ptsname(&hands, Vec::new()).unwrap().into_string().unwrap();
    let terminal = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(name).unwrap();
    let script = r#"set -m; "$0" call write_file '{"path":"u.txt","content":"x"}' & wait $!"#;
    let mut command = home.command("/usr/bin/setsid", &["--ctty", "sh", "-c", script]);
    command.arg(env!("CARGO_BIN_EXE_toolstead")).stdin(terminal).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    drop(hands);
    (output.status.code(), stderr(&output))
}

#[test]
fn the_command_line_asks_on_its_terminal_and_never_on_standard_input() {
    let home = Home::new();
    let file = home.work().join("t.txt");
    let (code, seen) = at_terminal(&home, b"\x03");
    assert_eq!((code, file.exists()), (Some(5), false), "Ctrl-C cancels the call: {seen}");
    for keys in [&b"n"[..], b"\x04", b"\r"] {
        let (code, seen) = at_terminal(&home, keys);
        assert_eq!((code, file.exists()), (Some(3), false), "{seen}");
        assert!(seen.contains("May the tool `write_file` run?") && seen.contains("refused by the user"), "{seen}");
    }
    let (code, seen) = at_terminal(&home, b"o");
    assert_eq!((code, file.exists()), (Some(0), true), "{seen}");
    let (code, _) = at_terminal(&home, b"p");
    assert_eq!(code, Some(0));
    let (code, outcome) = in_background(&home);
    assert!(code == Some(3) && outcome.contains("No approver is available"), "{outcome}");
    let output = home.run(&["call", "write_file", r#"{"path":"t.txt","content":"y"}"#]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "what was approved for the project runs where nobody is: {}",
        stderr(&output)
    );
}

/// Makes one call of `edit_file` in a folder that contains `a` with `one`. Returns the question to the user and the
/// result.
fn edited(arguments: &Value) -> (Option<String>, Value) {
    let home = Home::new();
    std::fs::write(home.work().join("a"), "one\ntwo\n").unwrap();
    let mut client = Pipe::start(home.toolstead(&["mcp"]));
    client.send(opening().to_string());
    client.answer(opening()["id"].clone());
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    client.send(legacy(1, "tools/call", call("edit_file", arguments.clone())).to_string());
    let mut asked = None;
    loop {
        let message = client.receive();
        match message["method"].as_str() {
            Some("elicitation/create") => {
                asked = message["params"]["message"].as_str().map(str::to_owned);
                let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"action": "decline"}});
                client.send(answer.to_string());
            }
            Some(_) => {}
            None => return (asked, message),
        }
    }
}

#[test]
fn an_approver_sees_the_diff_of_an_edit_and_is_not_asked_about_a_failing_edit() {
    let (asked, answer) = edited(&json!({"path": "a", "old_text": "two", "new_text": "2"}));
    let asked = asked.expect("somebody is asked");
    assert!(
        asked.contains("The change (1 file, 1 line added, 1 removed):\n  | --- a/a\n")
            && asked.contains("  | -two\n  | +2"),
        "{asked}"
    );
    assert!(answer["result"]["isError"] == true && text_of(&answer).contains("refused by"), "{answer}");

    let (asked, answer) = edited(&json!({"path": "a", "old_text": "three", "new_text": "3"}));
    assert_eq!(asked, None);
    assert_eq!(answer["result"]["_meta"]["toolstead/errorKind"], "no_match", "{answer}");
}
