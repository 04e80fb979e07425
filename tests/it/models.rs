//! Models of other providers, over real HTTP.

use crate::{
    model_server::{ModelServer, Reply, Says},
    support::soon,
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use toolstead_domain::{
    Block, Message, ModelError, ModelEvent, ModelProvider, ModelRequest, OfferedTool, Role, Secret, StopReason,
    TokenUsage, ToolArguments, ToolResultBlock, error_kind::ErrorKind,
};
use toolstead_infrastructure::{
    egress::connector::{Connector, SystemNetwork},
    http::client::HttpClient,
    models::{KeySource, Model, ModelSettings, ProviderKind},
};

const KEY: &str = "sk-ant-0123456789";

fn settings(server: &ModelServer) -> ModelSettings {
    ModelSettings {
        name: "main".into(),
        kind: ProviderKind::Anthropic,
        model: "claude-sonnet-4-5".into(),
        base_url: server.url().into(),
        key: KeySource::Known(Secret::new(KEY)),
        max_output_tokens: 4096,
        context_tokens: 200_000,
        thinking_tokens: None,
        reasoning_effort: None,
        takes_images: true,
        prices: None,
        headers: BTreeMap::new(),
        temperature: None,
    }
}

fn model(server: &ModelServer) -> Model {
    Model::new(settings(server), client()).unwrap()
}

fn client() -> HttpClient {
    HttpClient::new(Connector::to_configured_hosts(Arc::new(SystemNetwork::default())))
}

fn tool(name: &str) -> OfferedTool {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"],
        "additionalProperties": false});
    OfferedTool { name: name.into(), description: format!("Does {name}."), input_schema: Arc::new(schema) }
}

fn request(messages: Vec<Message>, tools: Vec<OfferedTool>) -> ModelRequest {
    let mut request = ModelRequest::of(messages);
    request.system = "You are brief.".into();
    request.tools = tools;
    request
}

/// All pieces of an answer, up to its end.
async fn answer(model: &Model, request: ModelRequest) -> Vec<Result<ModelEvent, ModelError>> {
    let mut answer = model.send(request).await.unwrap();
    let mut pieces = Vec::new();
    while let Some(piece) = soon(answer.next()).await {
        pieces.push(piece);
    }
    pieces
}

fn blocks(pieces: &[Result<ModelEvent, ModelError>]) -> Vec<Block> {
    let block = |piece: &Result<ModelEvent, ModelError>| match piece {
        Ok(ModelEvent::Block(block)) => Some(block.clone()),
        _ => None,
    };
    pieces.iter().filter_map(block).collect()
}

#[tokio::test]
async fn an_anthropic_turn_with_a_tool_call_is_sent_back_unchanged() {
    let signature = "EqQBCgIYAhIM1gbcDa9GJwZA2b3h+/=";
    let thinks = Says::thinking("I look into \"a.txt\".", signature).and_text("Looking.");
    let first = thinks.and_call("files_read", json!({"path": "a.txt"})).for_tokens(20, 1000, 70);
    let server = ModelServer::with([first, Says::text("It says hello.")]).await;
    let settings = ModelSettings { thinking_tokens: Some(2048), ..settings(&server) };
    let model = Model::new(settings, client()).unwrap();
    let mut messages = vec![Message::user("What is in a.txt?")];
    let pieces = answer(&model, request(messages.clone(), vec![tool("files.read")])).await;
    assert!(pieces.contains(&Ok(ModelEvent::TextDelta("Look".into()))), "{pieces:?}");
    assert!(pieces.contains(&Ok(ModelEvent::CallBegun { name: "files.read".into() })), "{pieces:?}");
    let usage = TokenUsage { input_tokens: 20, cache_read_tokens: 1000, cache_write_tokens: 0, output_tokens: 70 };
    assert_eq!(pieces.last(), Some(&Ok(ModelEvent::Finished { stop: StopReason::ToolUse, usage })));
    let said = blocks(&pieces);
    let [Block::Sealed(sealed), Block::Text { text }, Block::ToolUse(call)] = said.as_slice() else {
        panic!("{said:?}")
    };
    assert_eq!((sealed.shown.as_deref(), text.as_str()), (Some("I look into \"a.txt\"."), "Looking."));
    assert_eq!(call.name, "files.read");
    assert_eq!(call.arguments, ToolArguments::Object(json!({"path": "a.txt"}).as_object().unwrap().clone()));
    let result = ToolResultBlock {
        id: call.id.clone(),
        name: call.name.clone(),
        content: vec![Block::text("no such file")],
        is_error: true,
    };
    messages.push(Message { role: Role::Assistant, blocks: said.clone() });
    messages.push(Message { role: Role::User, blocks: vec![Block::ToolResult(result)] });
    let pieces = answer(&model, request(messages, vec![tool("files.read")])).await;
    assert_eq!(blocks(&pieces), [Block::text("It says hello.")]);
    let [first, second] = server.seen().try_into().unwrap();
    assert_eq!((first.path.as_str(), first.header("x-api-key")), ("/v1/messages", Some(KEY)));
    assert_eq!(first.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(first.header("authorization"), None);
    assert_eq!(first.body["tools"][0]["input_schema"]["required"], json!(["path"]));
    assert_eq!(first.body["tools"], second.body["tools"]);
    assert_eq!(second.body["messages"][2]["content"][0]["is_error"], true);
    assert_eq!(second.body["messages"][2]["content"][0]["tool_use_id"], call.id.as_str());
    assert!(second.text.contains(&sealed.raw), "{}", second.text);
    assert!(sealed.raw.contains(&Value::from(signature).to_string()), "{}", sealed.raw);
}

#[tokio::test]
async fn a_connection_that_breaks_anywhere_never_gives_a_whole_answer() {
    let says = Says::thinking("hm", "c2ln").and_text("Looking.").and_call("read", json!({"path": "a"}));
    let stream = says.anthropic().into_bytes();
    let mut cut = 0;
    let whole = stream.len();
    let server = ModelServer::answering(move |_| {
        cut += 1;
        Reply::BreaksOff(stream[..cut - 1].to_vec())
    })
    .await;
    let model = model(&server);
    for cut in 0..whole {
        let mut answer = model.send(request(vec![Message::user("a")], vec![tool("read")])).await.unwrap();
        let mut has_begun = false;
        loop {
            match soon(answer.next()).await.expect("it ends with an error") {
                // It is asked for again, which another test waits for.
                Ok(ModelEvent::Retrying { reason, .. }) => {
                    assert!(!has_begun, "{cut}: it is asked for again after something of it came: {reason}");
                    break;
                }
                Ok(ModelEvent::Finished { .. }) => {
                    // Only the blank line behind the last event was lost.
                    panic!("{cut} of {whole} bytes are taken for the whole answer");
                }
                Ok(_) => has_begun = true,
                Err(error) => {
                    assert!(has_begun && matches!(error, ModelError::Unreachable(_)), "{cut}: {error:?}");
                    assert!(answer.next().await.is_none());
                    break;
                }
            }
        }
    }
}

#[tokio::test]
async fn dropping_an_answer_stream_cancels_its_request() {
    let begun = Says::text("Hello, world").anthropic();
    let half = begun.find("\"world\"").or_else(|| begun.find("content_block_stop")).unwrap();
    let server = ModelServer::with([Reply::Hangs(begun.as_bytes()[..half].to_vec())]).await;
    let model = model(&server);
    let mut answer = model.send(request(vec![Message::user("a")], Vec::new())).await.unwrap();
    assert!(matches!(soon(answer.next()).await, Some(Ok(ModelEvent::TextDelta(_)))));
    drop(answer);
    soon(server.was_given_up(1)).await;
}

#[tokio::test]
async fn a_response_that_is_not_streamed_is_parsed() {
    let document = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [{"type": "text", "text": "Hello"}, {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}}],
        "stop_reason": "tool_use", "stop_sequence": null, "usage": {"input_tokens": 3, "output_tokens": 4}});
    let server = ModelServer::with([Reply::refusal(200, document.to_string())]).await;
    let pieces = answer(&model(&server), request(vec![Message::user("a")], vec![tool("read")])).await;
    assert!(matches!(blocks(&pieces).as_slice(), [Block::Text { .. }, Block::ToolUse(_)]), "{pieces:?}");
    let usage = TokenUsage { input_tokens: 3, output_tokens: 4, ..TokenUsage::default() };
    assert_eq!(pieces.last(), Some(&Ok(ModelEvent::Finished { stop: StopReason::ToolUse, usage })));
}

#[tokio::test]
async fn provider_errors_are_reported_with_their_kind_and_without_the_key() {
    let body = json!({"type": "error", "error": {"type": "authentication_error", "message": format!("bad key {KEY}")}});
    for (status, kind, body) in [
        (401, ErrorKind::AuthRequired, body.to_string()),
        (400, ErrorKind::UpstreamHttp, format!("{{\"error\":{{\"message\":\"{KEY}\"}}}}")),
        (404, ErrorKind::UpstreamHttp, format!("no model {KEY}")),
        (413, ErrorKind::TooLarge, KEY.to_owned()),
        // A redirect leads nowhere, so that the key goes nowhere else.
        (307, ErrorKind::UpstreamHttp, String::new()),
    ] {
        let elsewhere = ModelServer::with([Says::text("mine")]).await;
        let headers = vec![("location", format!("{}/v1/messages", elsewhere.url()))];
        let server = ModelServer::with([Reply::Raw { status, headers, body: body.into_bytes() }]).await;
        let mut message = answer(&model(&server), request(vec![Message::user("a")], Vec::new())).await;
        let (Some(Err(error)), 0) = (message.pop(), message.len()) else { panic!("{status} is no answer") };
        assert_eq!(error.kind(), kind, "{error:?}");
        assert!(!error.to_string().contains(KEY) && error.to_string().contains("`main`"), "{error}");
        assert!(elsewhere.seen().is_empty());
        assert!(!format!("{:?}", model(&server)).contains(KEY));
    }
}

#[tokio::test]
async fn a_request_to_an_overloaded_provider_is_retried() {
    let busy = Reply::Raw { status: 529, headers: vec![("retry-after-ms", "1".into())], body: Vec::new() };
    let server = ModelServer::with([busy, Says::text("Now.").into()]).await;
    let pieces = answer(&model(&server), request(vec![Message::user("a")], Vec::new())).await;
    let Some(Ok(ModelEvent::Retrying { after, reason })) = pieces.first() else { panic!("{pieces:?}") };
    assert_eq!(*after, Duration::from_millis(1));
    assert!(reason.contains("529"), "{reason}");
    assert_eq!(blocks(&pieces), [Block::text("Now.")]);
    let [first, second] = server.seen().try_into().unwrap();
    assert_eq!(first.text, second.text);
}

#[tokio::test]
async fn each_provider_reports_the_stop_reason_of_an_answer() {
    for kind in ProviderKind::ALL {
        for (says, expected) in [
            (Says::text("Hello."), StopReason::EndTurn),
            (Says::call("read", json!({"path": "a"})), StopReason::ToolUse),
            (Says::text("Hel").cut_off(), StopReason::MaxTokens),
            (Says::text("No").refused(), StopReason::Refused),
        ] {
            let server = ModelServer::with([says]).await;
            let model = Model::new(ModelSettings { kind, ..settings(&server) }, client()).unwrap();
            let pieces = answer(&model, request(vec![Message::user("a")], vec![tool("read")])).await;
            let Some(Ok(ModelEvent::Finished { stop, .. })) = pieces.last() else { panic!("{kind:?}: {pieces:?}") };
            assert_eq!(*stop, expected, "{kind:?}");
        }
    }
}
