//! OpenAI's two protocols and Gemini's, over real HTTP.

use crate::{
    model_server::{ModelServer, Says},
    support::soon,
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use toolstead_domain::{
    Block, Message, ModelError, ModelEvent, ModelProvider, ModelRequest, OfferedTool, Role, Secret, StopReason,
    TokenUsage, ToolArguments, ToolResultBlock, ToolUse,
};
use toolstead_infrastructure::{
    egress::connector::{Connector, SystemNetwork},
    http::client::HttpClient,
    models::{KeySource, Model, ModelSettings, ProviderKind, definitions},
};

const KEY: &str = "sk-0123456789";

fn model(server: &ModelServer, kind: ProviderKind) -> Model {
    let settings = ModelSettings {
        name: "main".into(),
        kind,
        model: "model-1".into(),
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
    };
    let connector = Connector::to_configured_hosts(Arc::new(SystemNetwork::default()));
    Model::new(settings, HttpClient::new(connector)).unwrap()
}

fn request(messages: Vec<Message>) -> ModelRequest {
    let schema = json!({
        "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"], "additionalProperties": false,
    });
    let mut request = ModelRequest::of(messages);
    request.system = "You are brief.".into();
    request.tools = vec![OfferedTool {
        name: "mcp__files__read/it".into(),
        description: "Reads.".into(),
        input_schema: Arc::new(schema),
    }];
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

/// A turn with a call, and the answer to its result. The second request contains the first answer at `said`, and the
/// result at `result`.
async fn check(
    kind: ProviderKind,
    path: &str,
    key: (&str, &str),
    tools: &str,
    said: (&str, Value),
    result: (&str, Value),
) {
    let spelled = "mcp__files__read_it";
    let first = Says::thinking("Hm.", "c2ln").and_text("I look.").and_call(spelled, json!({"path": "a"}));
    let server = ModelServer::with([first.for_tokens(20, 1000, 70), Says::text("There is none.")]).await;
    let model = model(&server, kind);
    let mut messages = vec![Message::user("What is in a?")];
    let pieces = answer(&model, request(messages.clone())).await;
    assert!(pieces.contains(&Ok(ModelEvent::CallBegun { name: "mcp__files__read/it".into() })), "{pieces:?}");
    let thought: String = pieces
        .iter()
        .filter_map(|piece| match piece {
            Ok(ModelEvent::ThinkingDelta(text)) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(thought, "Hm.", "{kind:?}");
    let usage = TokenUsage { input_tokens: 20, cache_read_tokens: 1000, cache_write_tokens: 0, output_tokens: 70 };
    assert_eq!(pieces.last(), Some(&Ok(ModelEvent::Finished { stop: StopReason::ToolUse, usage })), "{kind:?}");
    let blocks_said = blocks(&pieces);
    let Some(Block::ToolUse(ToolUse { id, name, arguments, .. })) = blocks_said.last().cloned() else {
        panic!("{blocks_said:?}")
    };
    assert_eq!(name, "mcp__files__read/it");
    assert_eq!(arguments, ToolArguments::Object(json!({"path": "a"}).as_object().unwrap().clone()));
    let answered = ToolResultBlock { id: id.clone(), name, content: vec![Block::text("no such file")], is_error: true };
    messages.push(Message { role: Role::Assistant, blocks: blocks_said });
    messages.push(Message { role: Role::User, blocks: vec![Block::ToolResult(answered)] });
    let pieces = answer(&model, request(messages.clone())).await;
    assert_eq!(blocks(&pieces), [Block::text("There is none.")], "{kind:?}");
    let [first, second] = server.seen().try_into().unwrap();
    assert_eq!((first.path.as_str(), first.header(key.0)), (path, Some(key.1)));
    assert!(!first.text.contains(KEY) && !first.path.contains(KEY));
    let sent = first.body.pointer(tools).unwrap();
    assert_eq!(*sent, Value::from(definitions(kind, &request(messages).tools)), "{kind:?}");
    // The id of the call is the provider's or made up.
    let text = |value: &Value| value.to_string().replace(&Value::from(id.as_str()).to_string(), "\"ID\"");
    for (pointer, expected) in [said, result] {
        let found = second.body.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {:#}", second.body));
        assert_eq!(text(found), expected.to_string(), "{kind:?}");
    }
}

#[tokio::test]
async fn a_turn_with_a_tool_call_round_trips_over_chat_completions() {
    let call = json!({"id": "ID", "type": "function", "function": {
        "name": "mcp__files__read_it", "arguments": "{\"path\":\"a\"}",
    }});
    check(
        ProviderKind::OpenAi,
        "/v1/chat/completions",
        ("authorization", &format!("Bearer {KEY}")),
        "/tools",
        (
            "/messages/2",
            json!({"role": "assistant", "content": "I look.", "reasoning_content": "Hm.", "tool_calls": [call]}),
        ),
        ("/messages/3", json!({"role": "tool", "tool_call_id": "ID", "content": "Error: no such file"})),
    )
    .await;
}

#[tokio::test]
async fn a_turn_with_a_tool_call_round_trips_over_responses() {
    check(
        ProviderKind::OpenAiResponses,
        "/v1/responses",
        ("authorization", &format!("Bearer {KEY}")),
        "/tools",
        ("/input/1/encrypted_content", json!("c2ln")),
        ("/input/4", json!({"type": "function_call_output", "call_id": "ID", "output": "Error: no such file"})),
    )
    .await;
}

#[tokio::test]
async fn a_turn_with_a_tool_call_round_trips_with_gemini() {
    let parts = json!([
        {"text": "I look."},
        {"functionCall": {"name": "mcp__files__read_it", "args": {"path": "a"}}, "thoughtSignature": "skip_thought_signature_validator"},
    ]);
    let response = json!({"name": "mcp__files__read_it", "response": {"error": "no such file"}});
    check(
        ProviderKind::Gemini,
        "/v1beta/models/model-1:streamGenerateContent?alt=sse",
        ("x-goog-api-key", KEY),
        "/tools/0/functionDeclarations",
        ("/contents/1/parts", parts),
        ("/contents/2/parts/0/functionResponse", response),
    )
    .await;
}
