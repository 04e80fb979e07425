//! Resources, prompts, and notifications outside of requests.

use super::{
    line_server::{LineEnd, line_server, modern_answer, plain_answer},
    provider_calls::{Listener, SOON, call, config, start},
};
use crate::mcp::client::Upstream;
use serde_json::{Map, Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Instant,
};
use tokio::{
    sync::{Notify, mpsc},
    time::timeout,
};
use toolstead_domain::{
    CallContext, CallId, CallOutcome, CallPermissions, Category, ClientProfile, CompletionReference, CompletionRequest,
    ContextCatalogue, ContextNotice, ContextProvider, ContextRequest, ForwardedMembers, InputAnswers, LogLevel,
    Principal, Tool, ToolCall, ToolFailure, ToolName, ToolSource,
};
use uuid::Uuid;

/// Instructions of a test to its server.
type Orders = mpsc::UnboundedReceiver<Value>;

/// Server of resources and prompts, with the messages it received and a channel for instructions.
struct Rich {
    server: Arc<Upstream>,
    heard: Arc<Mutex<Vec<Value>>>,
    news: Arc<Notify>,
    orders: mpsc::UnboundedSender<Value>,
}

fn capabilities() -> Value {
    json!({"tools": {}, "logging": {}, "completions": {},
        "resources": {"subscribe": true, "listChanged": true}, "prompts": {"listChanged": true}})
}

fn rich_answer(message: &Value, is_modern: bool, count: usize) -> Option<Result<Value, i64>> {
    message.get("id").filter(|_| message.get("method").is_some())?;
    let params = &message["params"];
    let mut answer = match message["method"].as_str()? {
        "initialize" => {
            let version = &params["protocolVersion"];
            json!({"protocolVersion": version, "capabilities": capabilities(), "instructions": "Read first."})
        }
        "server/discover" if is_modern => {
            json!({"supportedVersions": ["2026-07-28"], "capabilities": capabilities(), "instructions": "Read first."})
        }
        "resources/list" if params.get("cursor").is_none() => {
            json!({"resources": [{"uri": "a://1", "name": "one", "x": 1}, 7], "nextCursor": "c"})
        }
        "resources/list" => json!({"resources": [{"uri": format!("a://{count}"), "name": "other"}]}),
        "resources/templates/list" => json!({"resourceTemplates": [{"uriTemplate": "b://{y}{?z}", "name": "b"}]}),
        "prompts/list" => json!({"prompts": [{"name": "p q", "arguments": [{"name": "x"}]}]}),
        "resources/read" if params["uri"] == "a://none" => return Some(Err(if is_modern { -32602 } else { -32002 })),
        "resources/read" | "prompts/get" | "completion/complete" => json!({
            "z": 1.0, "contents": [{"uri": params["uri"], "text": "t", "_meta": {"toolstead/x": 1, "k": null}}],
            "_meta": {"toolstead/y": 1, "l": 2}, "a": [],
        }),
        "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel" => json!({}),
        "tools/list" => json!({"tools": []}),
        _ if is_modern => return modern_answer(message),
        _ => return plain_answer(message),
    };
    if is_modern {
        answer["resultType"] = "complete".into();
    }
    Some(Ok(answer))
}

async fn serve(
    mut end: LineEnd,
    mut orders: Orders,
    heard: Arc<Mutex<Vec<Value>>>,
    news: Arc<Notify>,
    is_modern: bool,
) {
    let mut lists = 2;
    loop {
        tokio::select! {
            biased;
            message = end.hear() => {
                let Some(message) = message else { return };
                heard.lock().unwrap().push(message.clone());
                news.notify_one();
                if message["method"] == "subscriptions/listen" {
                    end.notify("notifications/subscriptions/acknowledged", message["params"].clone()).await;
                    continue;
                }
                match rich_answer(&message, is_modern, lists) {
                    Some(Ok(result)) => end.answer(&message, result).await,
                    Some(Err(code)) => end.fail(&message, code, "no").await,
                    None => {}
                }
            }
            Some(order) = orders.recv() => match order["method"].as_str() {
                Some(method) => {
                    lists += usize::from(method.ends_with("resources/list_changed"));
                    end.notify(method, order["params"].clone()).await;
                }
                None => return,
            },
        }
    }
}

impl Rich {
    fn start(is_modern: bool) -> Self {
        let (heard, news): (Arc<Mutex<Vec<Value>>>, Arc<Notify>) = Default::default();
        let (orders, waiting) = mpsc::unbounded_channel::<Value>();
        let waiting = Arc::new(tokio::sync::Mutex::new(waiting));
        let (noted, outcome) = (heard.clone(), news.clone());
        let transport = line_server(move |_, end| {
            let (noted, outcome, waiting) = (noted.clone(), outcome.clone(), waiting.clone());
            Box::pin(async move {
                let (here, orders) = mpsc::unbounded_channel();
                let passing = async {
                    while let Some(order) = waiting.lock().await.recv().await {
                        let is_end = order.is_null();
                        let _ = here.send(order);
                        if is_end {
                            return std::future::pending().await;
                        }
                    }
                };
                tokio::select! {
                    () = serve(end, orders, noted, outcome, is_modern) => {}
                    () = passing => {}
                }
            })
        });
        Self { server: start(config(transport)), heard, news, orders }
    }

    /// Waits until the server has received `count` matching messages.
    async fn heard(&self, wanted: impl Fn(&Value) -> bool, count: usize) -> Vec<Value> {
        let waiting = async {
            loop {
                let found: Vec<Value> = self.heard.lock().unwrap().iter().filter(|one| wanted(one)).cloned().collect();
                if found.len() >= count {
                    return found;
                }
                self.news.notified().await;
            }
        };
        timeout(SOON, waiting).await.unwrap_or_else(|_| panic!("{:?}", self.heard.lock().unwrap()))
    }

    async fn heard_method(&self, method: &str, count: usize) -> Vec<Value> {
        self.heard(|message| message["method"] == method, count).await
    }

    fn count(&self, method: &str) -> usize {
        self.heard.lock().unwrap().iter().filter(|message| message["method"] == method).count()
    }

    fn say(&self, method: &str, params: Value) {
        self.orders.send(json!({"method": method, "params": params})).unwrap();
    }

    async fn listed(&self) -> ContextCatalogue {
        timeout(SOON, self.server.settled()).await.unwrap();
        ContextProvider::list(&*self.server).await.unwrap()
    }

    async fn ask(&self, request: ContextRequest) -> Result<String, ToolFailure> {
        match self.respond(request, None).await? {
            CallOutcome::Done(result) => Ok(Value::Object(result.into_object()).to_string()),
            other => Ok(format!("{other:?}")),
        }
    }

    async fn respond(
        &self,
        request: ContextRequest,
        answers: Option<&InputAnswers>,
    ) -> Result<CallOutcome, ToolFailure> {
        let tool = Tool::new(ToolName::parse("t").unwrap(), Map::new(), Category::Mcp, ToolSource::BuiltIn);
        let tool = Arc::new(tool);
        let call = ToolCall {
            id: CallId(Uuid::now_v7()),
            principal: Principal::local(),
            session: "s".into(),
            tool: tool.clone(),
            called_as: request.subject().into(),
            arguments: Map::new(),
            meta: json!({"trace": "t"}).as_object().unwrap().clone(),
        };
        let (grant, client, caller) = (
            CallPermissions::new(Arc::default(), tool, vec![]),
            ClientProfile::without_protocol("test"),
            Listener::default(),
        );
        let more = [("more".to_owned(), json!([1]))];
        let context = CallContext {
            caller: &caller,
            answers,
            forwarded: ForwardedMembers { meta: Some(&call.meta), params: &more },
            ..CallContext::new(&call, &grant, &client, Instant::now() + SOON)
        };
        self.server.respond(&request, &call, &context).await
    }
}

fn uris(catalogue: &ContextCatalogue) -> Vec<&str> {
    catalogue.resources.iter().map(|one| one.uri()).collect()
}

#[tokio::test]
async fn resources_templates_and_prompts_are_listed_across_pages() {
    for is_modern in [false, true] {
        let rich = Rich::start(is_modern);
        let listed = rich.listed().await;
        assert_eq!(uris(&listed), ["a://1", "a://2"]);
        assert_eq!(listed.resources[0].definition()["x"], 1);
        assert_eq!(listed.templates[0].template().as_str(), "b://{y}{?z}");
        let name = ToolName::for_upstream(&"s".parse_name(), "p q");
        assert_eq!(listed.prompts[0].name(), name.as_str());
        assert_eq!(rich.server.instructions().as_deref(), Some("Read first."));
    }
}

trait ParseName {
    fn parse_name(&self) -> toolstead_domain::server_name::ServerName;
}

impl ParseName for str {
    fn parse_name(&self) -> toolstead_domain::server_name::ServerName {
        toolstead_domain::server_name::ServerName::parse(self).unwrap()
    }
}

#[tokio::test]
async fn a_server_without_declared_capabilities_receives_no_context_requests() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let noted = heard.clone();
    let server = start(config(line_server(move |_, mut end| {
        let noted = noted.clone();
        Box::pin(async move {
            while let Some(message) = end.hear().await {
                noted.lock().unwrap().push(message["method"].to_string());
                end.answer_plainly(&message).await;
            }
        })
    })));
    timeout(SOON, server.settled()).await.unwrap();
    assert_eq!(ContextProvider::list(&*server).await.unwrap(), ContextCatalogue::default());
    call(&server, "echo", json!({})).await.unwrap();
    assert!(!heard.lock().unwrap().iter().any(|method| method.contains("resources") || method.contains("prompts")));
}

#[tokio::test]
async fn forwarded_context_requests_and_their_results_keep_all_members() {
    for is_modern in [false, true] {
        let rich = Rich::start(is_modern);
        let listed = rich.listed().await;
        let prompt = listed.prompts[0].name().to_owned();
        let read = ContextRequest::Read { uri: "a://1".into() };
        let expected = r#"{"z":1.0,"contents":[{"uri":"a://1","text":"t","_meta":{"k":null}}],"_meta":{"l":2},"a":[]}"#;
        assert_eq!(rich.ask(read).await.unwrap(), expected);
        let arguments = [("x".to_owned(), "y".to_owned())];
        rich.ask(ContextRequest::Get { name: prompt.clone(), arguments: arguments.clone().into() }).await.unwrap();
        let (argument, value) = ("x".to_owned(), "v".to_owned());
        let of = CompletionReference::Prompt(prompt);
        let complete = CompletionRequest { of, argument, value, known: arguments.into() };
        rich.ask(ContextRequest::Complete(complete)).await.unwrap();
        for (method, mut expected) in [
            ("resources/read", json!({"uri": "a://1"})),
            ("prompts/get", json!({"name": "p q", "arguments": {"x": "y"}})),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "p q"}, "argument": {"name": "x", "value": "v"},
                    "context": {"arguments": {"x": "y"}}}),
            ),
        ] {
            let mut sent = rich.heard_method(method, 1).await.remove(0)["params"].clone();
            assert_eq!(sent["_meta"]["trace"], "t");
            sent.as_object_mut().unwrap().remove("_meta");
            expected["more"] = json!([1]);
            assert_eq!(sent.to_string(), expected.to_string());
        }
        let failure = rich.ask(ContextRequest::Read { uri: "a://none".into() }).await.unwrap_err();
        assert_eq!(failure.kind, toolstead_domain::error_kind::ErrorKind::NotFound);
        assert_eq!(failure.upstream, None, "its code is ours to say");
    }
}

#[tokio::test]
async fn a_list_changed_notification_refreshes_only_its_list_and_bursts_are_merged() {
    for is_modern in [false, true] {
        let rich = Rich::start(is_modern);
        rich.listed().await;
        for _ in 0..50 {
            rich.say("notifications/resources/list_changed", json!({}));
        }
        timeout(SOON, ContextProvider::changed(&*rich.server)).await.unwrap();
        let listed = ContextProvider::list(&*rich.server).await.unwrap();
        assert_eq!(uris(&listed)[0], "a://1");
        assert!(rich.count("resources/templates/list") < 5);
        assert_eq!((rich.count("prompts/list"), rich.count("tools/list")), (1, 1));
        rich.say("notifications/prompts/list_changed", json!({}));
        rich.heard_method("prompts/list", 2).await;
        if is_modern {
            let filter = &rich.heard_method("subscriptions/listen", 1).await[0]["params"]["notifications"];
            assert_eq!(filter, &json!({"promptsListChanged": true, "resourcesListChanged": true}));
        }
    }
}

#[tokio::test]
async fn resource_updates_are_reported_and_subscriptions_renewed_after_a_reconnect() {
    for is_modern in [false, true] {
        let rich = Rich::start(is_modern);
        rich.listed().await;
        rich.server.subscribe("a://1").await.unwrap();
        let asks = |message: &Value| match is_modern {
            false => message["method"] == "resources/subscribe" && message["params"]["uri"] == "a://1",
            true => message["params"]["notifications"]["resourceSubscriptions"] == json!(["a://1"]),
        };
        rich.heard(asks, 1).await;
        let updated = ContextNotice::ResourceUpdated { uri: "a://1".into() };
        rich.say("notifications/resources/updated", json!({"uri": "a://1"}));
        assert_eq!(timeout(SOON, rich.server.notice()).await.unwrap(), updated);
        rich.orders.send(Value::Null).unwrap();
        rich.heard(asks, 2).await;
        assert_eq!(timeout(SOON, rich.server.notice()).await.unwrap(), updated, "it may have changed meanwhile");
        rich.server.unsubscribe("a://1").await;
        if !is_modern {
            rich.heard_method("resources/unsubscribe", 1).await;
        }
    }
}

#[tokio::test]
async fn a_legacy_server_receives_the_requested_log_level_and_its_logs_carry_its_name() {
    let rich = Rich::start(false);
    rich.listed().await;
    rich.server.set_log_level(Some(LogLevel::Debug)).await;
    let set = rich.heard_method("logging/setLevel", 1).await;
    assert_eq!(set[0]["params"], json!({"level": "debug"}));
    for (logger, expected) in [(json!("db"), "s/db"), (json!(null), "s")] {
        rich.say("notifications/message", json!({"level": "info", "logger": logger, "data": {"a": 1}}));
        let ContextNotice::Log { message, principal } = timeout(SOON, rich.server.notice()).await.unwrap() else {
            panic!()
        };
        assert_eq!((message.logger.as_deref(), message.data, principal), (Some(expected), json!({"a": 1}), None));
    }
    rich.server.set_log_level(None).await;
    assert_eq!(rich.heard_method("logging/setLevel", 2).await[1]["params"], json!({"level": "emergency"}));
}

#[tokio::test]
async fn a_prompt_of_a_modern_server_may_require_input_first() {
    let server = start(config(line_server(|_, mut end| {
        Box::pin(async move {
            while let Some(message) = end.hear().await {
                match (message["method"].as_str(), message["params"].get("requestState")) {
                    (Some("prompts/get"), None) => {
                        end.answer(&message, json!({"resultType": "input_required", "requestState": "st"})).await;
                    }
                    _ => match rich_answer(&message, true, 2) {
                        Some(Ok(result)) => end.answer(&message, result).await,
                        Some(Err(code)) => end.fail(&message, code, "no").await,
                        None => {}
                    },
                }
            }
        })
    })));
    let rich = Rich { server, heard: Arc::default(), news: Arc::default(), orders: mpsc::unbounded_channel().0 };
    let get = ContextRequest::Get { name: "p".into(), arguments: Default::default() };
    let CallOutcome::InputRequired(required) = rich.respond(get.clone(), None).await.unwrap() else { panic!() };
    let answers = InputAnswers { responses: Default::default(), state: required.state };
    assert!(matches!(rich.respond(get, Some(&answers)).await, Ok(CallOutcome::Done(_))));
}
