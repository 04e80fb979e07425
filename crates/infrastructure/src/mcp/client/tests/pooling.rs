//! Selection and lifetime of connections.

use super::{
    http_server::{Reply, http_server},
    line_server::line_server,
    provider_calls::{Client, Listener, SOON, call, call_as, call_with, config, deps, start, until_ready},
};
use crate::mcp::client::{
    Upstream,
    config::{Backoff, McpTransport, UpstreamConfig},
    connection::{
        question_kind::{self, ServedClients},
        request::{ForwardedRequest, RequestParams},
    },
};
use async_trait::async_trait;
use futures::future::join_all;
use serde_json::{Map, Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::{sync::watch, time::timeout};
use toolstead_domain::{
    CallContext, Caller, InputRequest, InputResponse, LogMessage, NotAnswered, Principal, Progress, ProviderState,
    ToolProvider, error_kind::ErrorKind,
};

/// Observations of a legacy server, by connection.
#[derive(Debug, Default)]
struct Seen {
    declared: BTreeMap<usize, Value>,
    /// Connection and arguments of each call.
    calls: Vec<(usize, Value)>,
    running: usize,
    most_running: usize,
    cancelled: Vec<usize>,
    ended: Vec<usize>,
}

type Watched = Arc<watch::Sender<Seen>>;

/// Returns a server up to 2025-11-25. Its calls may `ask`, `hold` until the gate opens, `die`, or `never` end.
fn old_server(gate: watch::Receiver<bool>) -> (McpTransport, Watched) {
    let seen = Watched::new(watch::Sender::new(Seen::default()));
    let outcome = seen.clone();
    let transport = line_server(move |connection, mut end| {
        let (seen, mut gate) = (outcome.clone(), gate.clone());
        Box::pin(async move {
            while let Some(message) = end.hear().await {
                let arguments = &message["params"]["arguments"];
                match message["method"].as_str() {
                    Some("initialize") => {
                        let declared = message["params"]["capabilities"].clone();
                        seen.send_modify(|seen| drop(seen.declared.insert(connection, declared)));
                        end.answer_plainly(&message).await;
                    }
                    Some("notifications/cancelled") => seen.send_modify(|seen| seen.cancelled.push(connection)),
                    Some("tools/call") => {
                        seen.send_modify(|seen| {
                            seen.calls.push((connection, arguments.clone()));
                            seen.running += 1;
                            seen.most_running = seen.most_running.max(seen.running);
                        });
                        if arguments["die"] == true {
                            break;
                        }
                        if arguments["hold"] == true {
                            let _ = gate.wait_for(|open| *open).await;
                        }
                        if arguments["ask"] == true {
                            let params = json!({"message": arguments["who"], "requestedSchema": {"type": "object"}});
                            let method = "elicitation/create";
                            end.say(json!({"jsonrpc": "2.0", "id": "q", "method": method, "params": params})).await;
                            let answer = end.hear().await.unwrap();
                            end.answer(&message, json!({"content": [], "structuredContent": answer["result"]})).await;
                        } else if arguments["never"] != true {
                            end.answer_plainly(&message).await;
                        }
                        seen.send_modify(|seen| seen.running -= 1);
                    }
                    _ => end.answer_plainly(&message).await,
                }
            }
            seen.send_modify(|seen| seen.ended.push(connection));
        })
    });
    (transport, seen)
}

fn open_gate() -> watch::Receiver<bool> {
    watch::Sender::new(true).subscribe()
}

async fn until_seen(seen: &Watched, wanted: impl FnMut(&Seen) -> bool) {
    let mut seen = seen.subscribe();
    timeout(SOON, seen.wait_for(wanted)).await.expect("the server sees it").unwrap();
}

/// Starts a client for callers with any capabilities.
pub(super) fn serving(config: UpstreamConfig) -> Arc<Upstream> {
    Upstream::start(
        config,
        crate::mcp::client::UpstreamDeps { clients: ServedClients::Any(question_kind::all_capabilities()), ..deps() },
    )
}

/// Caller that answers every question with its name and records the questions.
#[derive(Debug, Default)]
struct Person {
    name: String,
    asked: Mutex<Vec<Value>>,
}

impl Person {
    fn new(name: &str) -> Self {
        Self { name: name.into(), asked: Mutex::default() }
    }
}

#[async_trait]
impl Caller for Person {
    fn progress(&self, _: Progress) {}

    fn log(&self, _: LogMessage) {}

    async fn ask(&self, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        self.asked.lock().unwrap().push(request.params["message"].clone());
        Ok(InputResponse(json!({"action": "accept", "content": {"name": self.name}})))
    }
}

fn askable() -> Client {
    Client::new(json!({"elicitation": {"form": {}}, "sampling": {}}))
}

#[tokio::test]
async fn a_call_uses_a_connection_that_declared_the_capabilities_of_its_caller() {
    let (transport, seen) = old_server(open_gate());
    let server = serving(config(transport));
    until_ready(&server).await;
    for _ in 0..2 {
        call(&server, "echo", json!({})).await.unwrap();
    }
    let person = Person::new("Ada");
    for _ in 0..2 {
        let answer = call_as(&server, &askable(), "echo", json!({"ask": true, "who": "?"}), &person, SOON).await;
        assert!(answer.unwrap().contains("Ada"));
    }
    let other = Client::new(json!({"elicitation": {"url": {}}}));
    call_as(&server, &other, "echo", json!({}), &person, SOON).await.unwrap();
    {
        let seen = seen.borrow();
        let declared: Vec<Value> = seen.declared.values().cloned().collect();
        let expected = [
            json!({"elicitation": {"form": {}, "url": {}}}),
            json!({}),
            json!({"elicitation": {"form": {}}}),
            json!({"elicitation": {"url": {}}}),
        ];
        assert_eq!(declared, expected);
        assert_eq!(seen.calls.iter().map(|(connection, _)| *connection).collect::<Vec<_>>(), [1, 1, 2, 2, 3]);
    }
    assert_eq!(server.status().connections, 4);
    timeout(SOON, server.close()).await.unwrap();
    until_seen(&seen, |seen| seen.ended.len() == 4).await;
}

/// Starts a client for this single caller.
fn serving_one(config: UpstreamConfig, client: &Client) -> Arc<Upstream> {
    let capabilities = client.capabilities.as_object().unwrap().clone();
    Upstream::start(config, crate::mcp::client::UpstreamDeps { clients: ServedClients::One(capabilities), ..deps() })
}

#[tokio::test]
async fn a_single_client_uses_one_connection_and_receives_all_questions_of_its_calls() {
    let gate = watch::Sender::new(false);
    let (transport, seen) = side_by_side(gate.subscribe());
    let client = askable();
    let server = serving_one(UpstreamConfig { stateful: true, ..config(transport) }, &client);
    until_ready(&server).await;
    let people = [Person::new("first"), Person::new("second"), Person::new("third")];
    let calls = join_all(people.iter().map(|person| {
        let arguments = json!({"ask": person.name != "third", "who": person.name});
        call_as(&server, &client, "echo", arguments, person, SOON)
    }));
    let open = async {
        until_seen(&seen, |seen| seen.calls.len() == 3).await;
        gate.send_replace(true);
    };
    let (answers, ()) = tokio::join!(calls, open);
    // The newest call gets questions without a call id. Those it leaves unanswered go to another call of the same
    // client.
    let answers: Vec<String> = answers.into_iter().map(Result::unwrap).collect();
    assert!(answers[..2].iter().all(|answer| answer.contains("accept")), "{answers:?}");
    let mut asked: Vec<Value> = people.iter().flat_map(|person| person.asked.lock().unwrap().clone()).collect();
    asked.sort_by_key(Value::to_string);
    asked.dedup();
    assert_eq!(asked, [json!("first"), json!("second")]);
    let seen = seen.borrow();
    assert_eq!(seen.declared.values().collect::<Vec<_>>(), [&json!({"elicitation": {"form": {}}})]);
    assert!(seen.calls.iter().all(|(connection, _)| *connection == 0));
}

#[tokio::test]
async fn a_call_uses_the_free_catalogue_connection_if_its_declared_capabilities_match() {
    let gate = watch::Sender::new(false);
    let (transport, seen) = old_server(gate.subscribe());
    let server = serving(config(transport));
    until_ready(&server).await;
    let client = Client::new(json!({"elicitation": {"form": {}, "url": {}}}));
    let person = Person::new("x");
    let held = call_as(&server, &client, "echo", json!({"hold": true}), &person, SOON);
    let beside = async {
        until_seen(&seen, |seen| seen.running == 1).await;
        let beside = call_as(&server, &client, "echo", json!({}), &person, SOON).await;
        gate.send_replace(true);
        beside
    };
    let (held, beside) = tokio::join!(held, beside);
    assert!(held.is_ok() && beside.is_ok());
    for name in ["a", "b"] {
        let other = Client { principal: Principal::token(name), ..client.clone() };
        call_as(&server, &other, "echo", json!({"ask": true, "who": name}), &person, SOON).await.unwrap();
    }
    assert_eq!(seen.borrow().calls.iter().map(|(connection, _)| *connection).collect::<Vec<_>>(), [0, 1, 0, 0]);
}

/// Returns a server up to 2025-11-25 that answers no call before the gate opens. Calls that `ask` do so; all others are
/// answered first.
fn side_by_side(gate: watch::Receiver<bool>) -> (McpTransport, Watched) {
    let seen = Watched::new(watch::Sender::new(Seen::default()));
    let outcome = seen.clone();
    let transport = line_server(move |connection, mut end| {
        let (seen, mut gate) = (outcome.clone(), gate.clone());
        Box::pin(async move {
            let mut asking = BTreeMap::new();
            while let Some(message) = end.hear().await {
                let arguments = &message["params"]["arguments"];
                match message["method"].as_str() {
                    Some("initialize") => {
                        let declared = message["params"]["capabilities"].clone();
                        seen.send_modify(|seen| drop(seen.declared.insert(connection, declared)));
                        end.answer_plainly(&message).await;
                    }
                    Some("tools/call") => {
                        seen.send_modify(|seen| seen.calls.push((connection, arguments.clone())));
                        let params = json!({"message": arguments["who"], "requestedSchema": {"type": "object"}});
                        let question = json!({"jsonrpc": "2.0", "id": arguments["who"], "method": "elicitation/create", "params": params});
                        if arguments["ask"] == true {
                            asking.insert(arguments["who"].to_string(), message.clone());
                            end.say(question).await;
                        } else {
                            let _ = gate.wait_for(|open| *open).await;
                            end.answer_plainly(&message).await;
                        }
                    }
                    None => match asking.remove(&message["id"].to_string()) {
                        Some(call) => {
                            let result = json!({"content": [], "structuredContent": message["result"]});
                            end.answer(&call, result).await;
                        }
                        None => panic!("an answer without a question: {message}"),
                    },
                    _ => end.answer_plainly(&message).await,
                }
            }
        })
    });
    (transport, seen)
}

#[tokio::test]
async fn many_calls_share_few_connections_and_each_caller_receives_its_own_question() {
    let gate = watch::Sender::new(false);
    let (transport, seen) = old_server(gate.subscribe());
    let server = serving(config(transport));
    until_ready(&server).await;
    let people: Vec<Person> = (0..20).map(|n| Person::new(&format!("person {n}"))).collect();
    let client = askable();
    let calls = join_all(people.iter().map(|person| {
        let arguments = json!({"hold": true, "ask": true, "who": person.name});
        call_as(&server, &client, "echo", arguments, person, SOON)
    }));
    let open = async {
        until_seen(&seen, |seen| seen.running == 8).await;
        gate.send_replace(true);
    };
    let (answers, ()) = tokio::join!(calls, open);
    for (person, answer) in people.iter().zip(answers) {
        assert!(answer.unwrap().contains(&format!("\"{}\"", person.name)));
        assert_eq!(*person.asked.lock().unwrap(), [json!(person.name)]);
    }
    assert_eq!((seen.borrow().most_running, seen.borrow().declared.len()), (8, 9));
}

#[tokio::test]
async fn waiting_for_a_free_connection_ends_at_the_deadline_of_the_call() {
    let gate = watch::Sender::new(false);
    let (transport, seen) = old_server(gate.subscribe());
    let server = serving(config(transport));
    until_ready(&server).await;
    let (client, person) = (askable(), Person::new("x"));
    let held = join_all((0..8).map(|_| call_as(&server, &client, "echo", json!({"hold": true}), &person, SOON)));
    let late = async {
        until_seen(&seen, |seen| seen.running == 8).await;
        let late = call_as(&server, &client, "echo", json!({}), &person, Duration::from_millis(200)).await;
        gate.send_replace(true);
        late
    };
    let (held, late) = tokio::join!(held, late);
    assert!(held.iter().all(Result::is_ok));
    let (kind, text) = late.unwrap_err();
    assert!(kind == ErrorKind::Unavailable && text.contains("no connection to it was free and ready"), "{text}");
}

#[tokio::test]
async fn many_calls_of_one_principal_do_not_block_calls_of_another() {
    let gate = watch::Sender::new(false);
    let (transport, seen) = old_server(gate.subscribe());
    let server = serving(config(transport));
    until_ready(&server).await;
    let (one, person) = (askable(), Person::new("x"));
    let other = Client { principal: Principal::token("other"), ..askable() };
    let many = join_all((0..20).map(|_| call_as(&server, &one, "echo", json!({"hold": true}), &person, SOON)));
    let beside = async {
        until_seen(&seen, |seen| seen.running == 8).await;
        let beside = call_as(&server, &other, "echo", json!({}), &person, SOON).await;
        gate.send_replace(true);
        beside
    };
    let (many, beside) = tokio::join!(many, beside);
    assert!(beside.is_ok() && many.iter().all(Result::is_ok));
    assert_eq!(seen.borrow().most_running, 9);
}

#[tokio::test]
async fn the_connection_of_an_abandoned_call_is_not_reused() {
    let (transport, seen) = old_server(open_gate());
    let server = serving(config(transport));
    until_ready(&server).await;
    let person = Person::new("x");
    {
        let client = askable();
        let call = call_as(&server, &client, "echo", json!({"never": true}), &person, SOON);
        tokio::select! {
            answer = call => panic!("{answer:?}"),
            () = until_seen(&seen, |seen| !seen.calls.is_empty()) => {}
        }
    }
    until_seen(&seen, |seen| seen.cancelled == [1] && seen.ended == [1]).await;
    call_as(&server, &askable(), "echo", json!({}), &person, SOON).await.unwrap();
    assert_eq!(seen.borrow().calls.last().unwrap().0, 2);
}

#[tokio::test]
async fn connections_of_abandoned_calls_count_towards_the_limit_until_closed() {
    let gate = watch::Sender::new(false);
    let (transport, seen) = old_server(gate.subscribe());
    let mut config = config(transport);
    config.timeouts.close = SOON;
    let server = serving(config);
    until_ready(&server).await;
    let (client, person) = (askable(), Person::new("x"));
    {
        let held = join_all((0..8).map(|_| call_as(&server, &client, "echo", json!({"hold": true}), &person, SOON)));
        tokio::select! {
            answers = held => panic!("{answers:?}"),
            () = until_seen(&seen, |seen| seen.running == 8) => {}
        }
    }
    let call = |time| call_as(&server, &client, "echo", json!({}), &person, time);
    let (kind, text) = call(Duration::from_millis(200)).await.unwrap_err();
    assert_eq!(kind, ErrorKind::Unavailable, "{text}");
    assert_eq!(seen.borrow().declared.len(), 9);
    gate.send_replace(true);
    call(SOON).await.unwrap();
}

#[tokio::test]
async fn a_lost_pooled_connection_fails_only_its_own_call() {
    let gate = watch::Sender::new(false);
    let (transport, seen) = old_server(gate.subscribe());
    let server = serving(config(transport));
    until_ready(&server).await;
    let (client, person) = (askable(), Person::new("x"));
    let held = call_as(&server, &client, "echo", json!({"hold": true}), &person, SOON);
    let dying = async {
        until_seen(&seen, |seen| seen.running == 1).await;
        let died = call_as(&server, &client, "echo", json!({"die": true}), &person, SOON).await;
        gate.send_replace(true);
        died
    };
    let (held, died) = tokio::join!(held, dying);
    assert_eq!((held.is_ok(), died.unwrap_err().0), (true, ErrorKind::UpstreamProtocol));
    assert_eq!(server.status().state, ProviderState::Ready);
    call_as(&server, &client, "echo", json!({}), &person, SOON).await.unwrap();
}

#[tokio::test]
async fn a_stateful_server_has_one_connection_per_principal_until_its_last_session_ends() {
    let (transport, seen) = old_server(open_gate());
    let server = start(UpstreamConfig { stateful: true, ..config(transport) });
    until_ready(&server).await;
    let client = |name: &str, session| {
        let principal = Principal::token(name);
        Client { principal, session, capabilities: json!({}) }
    };
    for (name, session) in [("a", "one"), ("b", "three"), ("a", "two"), ("b", "three")] {
        call_as(&server, &client(name, session), "echo", json!({}), &Listener::default(), SOON).await.unwrap();
    }
    assert_eq!(seen.borrow().calls.iter().map(|(connection, _)| *connection).collect::<Vec<_>>(), [1, 2, 1, 2]);
    let a = Principal::token("a");
    server.session_ended(&a, "one").await;
    server.session_ended(&a, "three").await;
    assert_eq!(server.status().connections, 3);
    server.session_ended(&a, "two").await;
    until_seen(&seen, |seen| seen.ended == [1]).await;
    call_as(&server, &client("a", "four"), "echo", json!({}), &Listener::default(), SOON).await.unwrap();
    assert_eq!(seen.borrow().calls.last().unwrap().0, 3);
}

#[tokio::test]
async fn the_connection_limit_of_one_principal_does_not_affect_other_principals() {
    let (transport, _) = old_server(open_gate());
    let server = start(UpstreamConfig { stateful: true, ..config(transport) });
    until_ready(&server).await;
    let client = |name: &str, says: usize| {
        let capabilities = json!({"elicitation": {"form": {}, "x": says}});
        Client { principal: Principal::token(name), session: "one", capabilities }
    };
    for says in 0..16 {
        call_as(&server, &client("a", says), "echo", json!({}), &Listener::default(), SOON).await.unwrap();
    }
    let refused = call_as(&server, &client("a", 16), "echo", json!({}), &Listener::default(), SOON).await;
    let (kind, text) = refused.unwrap_err();
    assert!(kind == ErrorKind::Unavailable && text.contains("its 16 connections for one principal"), "{text}");
    for (name, says) in [("a", 3), ("b", 16)] {
        call_as(&server, &client(name, says), "echo", json!({}), &Listener::default(), SOON).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_unused_server_becomes_idle_until_the_next_call() {
    let (transport, seen) = old_server(open_gate());
    let server = serving(UpstreamConfig { ends_unused_after: Some(Duration::from_secs(900)), ..config(transport) });
    until_ready(&server).await;
    call(&server, "echo", json!({})).await.unwrap();
    assert_eq!(server.status().connections, 2);
    tokio::time::sleep(Duration::from_secs(899)).await;
    assert_eq!(server.state(), ProviderState::Ready);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let status = server.status();
    assert_eq!((status.state, status.connections, status.tools), (ProviderState::Idle, 0, Some(1)));
    until_seen(&seen, |seen| seen.ended.len() == 2).await;
    assert_eq!(server.list().await.unwrap().len(), 1);
    assert_eq!(server.state(), ProviderState::Idle);
    call(&server, "echo", json!({})).await.unwrap();
    assert_eq!((server.state(), seen.borrow().declared.len()), (ProviderState::Ready, 4));
}

#[tokio::test]
async fn a_lazily_started_server_connects_on_its_first_use() {
    let (transport, seen) = old_server(open_gate());
    let server = Upstream::start_when_used(config(transport), deps());
    assert!(server.list().await.is_err());
    assert_eq!((server.state(), seen.borrow().declared.len()), (ProviderState::Idle, 0));
    call(&server, "echo", json!({})).await.unwrap();
    assert_eq!((server.state(), server.list().await.unwrap().len()), (ProviderState::Ready, 1));
    let asked = Upstream::start_when_used(config(old_server(open_gate()).0), deps());
    ToolProvider::refresh(&*asked).await;
    assert_eq!(asked.state(), ProviderState::Ready);
}

/// Starts a server that answers each of these methods with 503 `busy` times. Returns how often each method was
/// requested.
async fn busy_server(busy: usize) -> (super::http_server::HttpEnd, Arc<Mutex<BTreeMap<String, usize>>>) {
    let asked = Arc::new(Mutex::new(BTreeMap::new()));
    let counted = asked.clone();
    let end = http_server(move |request| {
        let method = request.rpc().to_owned();
        let mut asked = counted.lock().unwrap();
        let times: &mut usize = asked.entry(method.clone()).or_default();
        *times += 1;
        match method.as_str() {
            "resources/read" | "tools/call" if *times <= busy => {
                Reply::Whole(503, vec![("retry-after", "0".to_owned())], b"busy".to_vec())
            }
            "resources/read" => request.answer(&json!({"contents": []})),
            _ => request.answer_plainly(None),
        }
    })
    .await;
    (end, asked)
}

#[tokio::test]
async fn read_requests_are_repeated_after_a_busy_reply_and_tool_calls_are_not() {
    for (busy, is_answered, times) in [(2, true, 3), (100, false, 5)] {
        let (end, asked) = busy_server(busy).await;
        let server = start(config(end.transport()));
        until_ready(&server).await;
        let (call_, grant, profile) = Client::new(json!({})).parts(&server, "echo", json!({}));
        let context = CallContext::new(&call_, &grant, &profile, Instant::now() + SOON);
        let params = json!({"uri": "a://b"}).as_object().unwrap().clone();
        let request = ForwardedRequest {
            method: "resources/read",
            name: Some("a://b"),
            params: RequestParams::Members(&params),
            capabilities: &Map::new(),
            meta: &Map::new(),
            answers: None,
            log_level: None,
            progress: false,
            principal: None,
        };
        let answered = server.forward(&request, &context).await;
        assert_eq!((answered.is_ok(), asked.lock().unwrap()["resources/read"]), (is_answered, times), "{answered:?}");
    }
    let (end, asked) = busy_server(1).await;
    let server = start(config(end.transport()));
    until_ready(&server).await;
    assert_eq!(call(&server, "echo", json!({})).await.unwrap_err().0, ErrorKind::UpstreamHttp);
    assert_eq!(asked.lock().unwrap()["tools/call"], 1);
}

#[tokio::test]
async fn calls_to_a_repeatedly_failing_server_are_rejected_until_the_next_attempt() {
    let (end, asked) = busy_server(5).await;
    let mut config = config(end.transport());
    config.retry = Backoff { first: Duration::from_secs(60), longest: Duration::from_secs(60) };
    let server = start(config);
    until_ready(&server).await;
    for _ in 0..5 {
        assert_eq!(call(&server, "echo", json!({})).await.unwrap_err().0, ErrorKind::UpstreamHttp);
    }
    let (kind, text) = call(&server, "echo", json!({})).await.unwrap_err();
    assert!(kind == ErrorKind::Unavailable && text.contains("the next try is in 60 s"), "{text}");
    assert_eq!(asked.lock().unwrap()["tools/call"], 5);
    assert!(matches!(server.state(), ProviderState::Failed { .. }));
}

/// Returns a server that answers no call on its first connection, and nothing at all after the first call if
/// `is_stuck`.
fn silent_server(is_stuck: bool) -> McpTransport {
    line_server(move |connection, mut end| {
        Box::pin(async move {
            let mut hears_on = true;
            while let Some(message) = end.hear().await {
                let is_call = message["method"] == "tools/call" && connection == 0;
                hears_on &= !(is_call && is_stuck);
                if hears_on && !is_call {
                    end.answer_plainly(&message).await;
                }
            }
        })
    })
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_replaced_after_timeouts_only_if_it_answers_nothing() {
    for is_stuck in [true, false] {
        let server = start(config(silent_server(is_stuck)));
        until_ready(&server).await;
        for _ in 0..5 {
            let second = Duration::from_secs(1);
            let late = call_with(&server, "echo", json!({}), &Listener::default(), second).await;
            assert_eq!(late.unwrap_err().0, ErrorKind::Timeout);
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        let answered = call_with(&server, "echo", json!({}), &Listener::default(), Duration::from_secs(1)).await;
        assert_eq!(answered.is_ok(), is_stuck, "{answered:?}");
    }
}
