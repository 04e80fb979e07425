use super::*;
use crate::{
    http::sse::{SseDecoder, SseEvent},
    models::settings::{KeySource, ProviderKind},
};
use proptest::prelude::*;
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc};
use toolstead_domain::{
    Block, Image, Message, ModelEvent, Role, SealedBlock, StopReason, TokenUsage, ToolArguments, ToolResultBlock,
    ToolUse, error_kind::ErrorKind,
};

/// Recorded stream with changed texts: thinking, a text, a call, and unknown events.
const RECORDED: &str = concat!(
    "event: message_start\n",
    r#"data: {"type":"message_start","message":{"model":"claude-sonnet-4-5-20250929","id":"msg_01","type":"message","role":"assistant","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":300,"cache_read_input_tokens":4000,"cache_creation":{"ephemeral_5m_input_tokens":300,"ephemeral_1h_input_tokens":0},"output_tokens":3,"service_tier":"standard"}}            }"#,
    "\n\n",
    "event: content_block_start\n",
    r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
    "\n\n",
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    "event: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"I \"look\" "}}"#,
    "\n\n",
    "event: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"at ä/b."}}"#,
    "\n\n",
    "event: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBCgIYAhIM+/="}}"#,
    "\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: content_block_start\n",
    r#"data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"Em==", "x": 1.0}}"#,
    "\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n",
    "event: content_block_start\n",
    r#"data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}"#,
    "\n\n",
    "event: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Looking"}}"#,
    "\n\n",
    "event: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{}}}"#,
    "\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":2}\n\n",
    "event: content_block_start\n",
    r#"data: {"type":"content_block_start","index":3,"content_block":{"type":"of_the_future","a":[1]}}"#,
    "\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":3}\n\n",
    "event: of_the_future\ndata: {\"type\":\"of_the_future\",\"index\":\"x\"}\n\n",
    "event: content_block_start\n",
    r#"data: {"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_01","name":"files_read","input":{}}}"#,
    "\n\n",
    "event: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":""}}"#,
    "\n\n",
    "event: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"path\": \"a."}}"#,
    "\n\n",
    "event: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"txt\"}"}}"#,
    "\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":4}\n\n",
    "event: message_delta\n",
    r#"data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":12,"cache_creation_input_tokens":300,"cache_read_input_tokens":4000,"output_tokens":89}}"#,
    "\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

fn settings() -> ModelSettings {
    ModelSettings {
        name: "main".into(),
        kind: ProviderKind::Anthropic,
        model: "claude-sonnet-4-5".into(),
        base_url: "https://api.anthropic.com".into(),
        key: KeySource::None,
        max_output_tokens: 4096,
        context_tokens: 200_000,
        thinking_tokens: None,
        reasoning_effort: None,
        takes_images: true,
        prices: None,
        headers: BTreeMap::new(),
        temperature: Some(0.5),
    }
}

fn tool(name: &str) -> OfferedTool {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string", "pattern": "^a"}}, "required": ["path"],
        "additionalProperties": false, "$defs": {"x": {"enum": [1.0, 2]}}});
    OfferedTool { name: name.into(), description: format!("Does {name}."), input_schema: Arc::new(schema) }
}

fn user(blocks: Vec<Block>) -> Message {
    Message { role: Role::User, blocks }
}

fn assistant(blocks: Vec<Block>) -> Message {
    Message { role: Role::Assistant, blocks }
}

fn call(id: &str, name: &str) -> Block {
    let arguments = ToolArguments::Object(json!({"path": "a.txt"}).as_object().unwrap().clone());
    Block::ToolUse(ToolUse { id: id.into(), name: name.into(), arguments, sealed: None })
}

fn result(id: &str, content: Vec<Block>, is_error: bool) -> Block {
    Block::ToolResult(ToolResultBlock { id: id.into(), name: "files.read".into(), content, is_error })
}

fn sealed(provider: &str, raw: &str) -> Block {
    Block::Sealed(SealedBlock { provider: provider.into(), raw: raw.into(), shown: None })
}

fn image() -> Block {
    Block::Image(Image { media_type: "image/png".into(), data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ".into() })
}

fn text_of_body(settings: &ModelSettings, messages: Vec<Message>, tools: Vec<OfferedTool>) -> String {
    let mut request = ModelRequest::of(messages);
    request.system = "You are brief.".into();
    request.tools = tools;
    String::from_utf8(Anthropic.body(settings, &request).unwrap()).unwrap()
}

fn body(messages: Vec<Message>) -> Value {
    serde_json::from_str(&text_of_body(&settings(), messages, vec![tool("files.read")])).unwrap()
}

fn decoder() -> Box<dyn Decoder> {
    let mut request = ModelRequest::default();
    request.tools = vec![tool("files.read")];
    Anthropic.decoder(&request)
}

/// Decodes a stream that comes in these pieces.
fn read(pieces: &[&[u8]]) -> Result<Vec<ModelEvent>, ModelError> {
    let (mut stream, mut decoder, mut all) = (SseDecoder::new(1 << 20), decoder(), Vec::new());
    for piece in pieces {
        stream.push(piece).unwrap();
        while let Some(event) = stream.next_event() {
            all.extend(decoder.event(&event)?);
        }
    }
    if !matches!(all.last(), Some(ModelEvent::Finished { .. })) {
        all.extend(decoder.end()?);
    }
    Ok(all)
}

/// Decodes these events, without the end of the stream.
fn read_events(events: &[Value]) -> Result<Vec<ModelEvent>, ModelError> {
    let mut decoder = decoder();
    let mut all = Vec::new();
    for event in events {
        all.extend(decoder.event(&SseEvent { event: String::new(), data: event.to_string().into_bytes() })?);
    }
    Ok(all)
}

fn blocks(events: &[ModelEvent]) -> Vec<&Block> {
    events
        .iter()
        .filter_map(|event| match event {
            ModelEvent::Block(block) => Some(block),
            _ => None,
        })
        .collect()
}

#[test]
fn a_recorded_stream_is_read_whole_however_it_is_cut_into_pieces() {
    let whole = read(&[RECORDED.as_bytes()]).unwrap();
    let raw = r#"{"type":"thinking","thinking":"I \"look\" at ä/b.","signature":"EqQBCgIYAhIM+/="}"#;
    let thinking =
        SealedBlock { provider: "anthropic".into(), raw: raw.into(), shown: Some("I \"look\" at ä/b.".into()) };
    let redacted = r#"{"type":"redacted_thinking","data":"Em==", "x": 1.0}"#;
    let usage = TokenUsage { input_tokens: 12, cache_read_tokens: 4000, cache_write_tokens: 300, output_tokens: 89 };
    assert_eq!(
        whole,
        [
            ModelEvent::ThinkingDelta("I \"look\" ".into()),
            ModelEvent::ThinkingDelta("at ä/b.".into()),
            ModelEvent::Block(Block::Sealed(thinking)),
            ModelEvent::Block(sealed("anthropic", redacted)),
            ModelEvent::TextDelta("Looking".into()),
            ModelEvent::Block(Block::text("Looking")),
            ModelEvent::CallBegun { name: "files.read".into() },
            ModelEvent::Block(call("toolu_01", "files.read")),
            ModelEvent::Finished { stop: StopReason::ToolUse, usage },
        ]
    );
    let bytes = RECORDED.as_bytes();
    for cut in 0..bytes.len() {
        let (first, second) = bytes.split_at(cut);
        assert_eq!(read(&[first, second]).unwrap(), whole, "{cut}");
        // A stream that ends early is never taken for a whole answer.
        assert!(matches!(read(&[first]), Err(ModelError::Unreachable(_))), "{cut}");
    }
}

#[test]
fn an_assistant_answer_is_sent_back_byte_for_byte() {
    let whole = read(&[RECORDED.as_bytes()]).unwrap();
    let said = blocks(&whole).into_iter().cloned().collect();
    let results = user(vec![result("toolu_01", vec![Block::text("hello")], false)]);
    let body = text_of_body(&settings(), vec![Message::user("a"), assistant(said), results], vec![tool("files.read")]);
    let sent = concat!(
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":"I \"look\" at ä/b.","signature":"EqQBCgIYAhIM+/="},"#,
        r#"{"type":"redacted_thinking","data":"Em==", "x": 1.0},{"type":"text","text":"Looking"},"#,
        r#"{"type":"tool_use","id":"toolu_01","name":"files_read","input":{"path":"a.txt"}}]}"#
    );
    assert!(body.contains(sent), "{body}");
}

#[test]
fn a_request_contains_whole_schemas_results_first_and_four_cache_markers() {
    let ephemeral = json!({"type": "ephemeral"});
    let messages = vec![
        Message::user("Read both."),
        assistant(vec![Block::text("Reading."), call("t1", "files.read"), call("t2", "files.read")]),
        user(vec![
            Block::text("And hurry."),
            result("t1", vec![Block::text("one"), Block::text(" "), image()], false),
            result("t2", vec![Block::text("no such file"), image()], true),
        ]),
        user(vec![Block::text("\n"), Block::text("Please.")]),
    ];
    let picture = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png",
        "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"}});
    let expected = json!({
        "model": "claude-sonnet-4-5",
        "max_tokens": 4096,
        "tools": [{"name": "files_read", "description": "Does files.read.", "input_schema": *tool("x").input_schema,
            "cache_control": ephemeral}],
        "system": [{"type": "text", "text": "You are brief.", "cache_control": ephemeral}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Read both.", "cache_control": ephemeral}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "Reading."},
                {"type": "tool_use", "id": "t1", "name": "files_read", "input": {"path": "a.txt"}},
                {"type": "tool_use", "id": "t2", "name": "files_read", "input": {"path": "a.txt"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "one"}, picture]},
                {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "no such file"}],
                    "is_error": true},
                {"type": "text", "text": "And hurry."},
                picture,
                {"type": "text", "text": "Please.", "cache_control": ephemeral},
            ]},
        ],
        "temperature": 0.5,
        "stream": true,
    });
    let text = text_of_body(&settings(), messages.clone(), vec![tool("files.read")]);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    assert_eq!(text.matches("cache_control").count(), 4);
    // Equal requests have equal bytes; otherwise the provider's cache would not apply.
    assert_eq!(text, text_of_body(&settings(), messages, vec![tool("files.read")]));
}

#[test]
fn without_tools_and_system_a_request_has_neither() {
    let request = ModelRequest::of(vec![Message::user("a")]);
    let body: Value = serde_json::from_slice(&Anthropic.body(&settings(), &request).unwrap()).unwrap();
    assert_eq!((body.get("tools"), body.get("system")), (None, None));
    let nothing = ModelRequest::of(vec![Message::user(" \n")]);
    assert!(matches!(Anthropic.body(&settings(), &nothing), Err(ModelError::Refused { status: None, .. })));
}

#[test]
fn blocks_that_the_provider_would_reject_are_omitted_from_the_conversation() {
    let ours = r#"{"type":"thinking","thinking":"t","signature":"s"}"#;
    let body = body(vec![
        Message::user("a"),
        assistant(vec![
            sealed("openai_responses", r#"{"type":"reasoning"}"#),
            sealed("anthropic", "no JSON"),
            sealed("anthropic", "[1]"),
            Block::text(""),
            sealed("anthropic", ours),
            Block::text("b"),
            // Thinking without an outcome.
            sealed("anthropic", ours),
        ]),
        assistant(vec![sealed("anthropic", ours)]),
        user(vec![Block::text("  ")]),
        assistant(vec![Block::text("c")]),
        user(vec![sealed("anthropic", ours), Block::text("d")]),
    ]);
    let expected = json!([{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "text", "text": "b"},
        {"type": "text", "text": "c"}]);
    assert_eq!(body["messages"].as_array().unwrap().len(), 3);
    assert_eq!(body["messages"][1]["content"], expected);
    assert_eq!(body["messages"][2]["content"][0]["text"], "d");
}

#[test]
fn calls_from_another_provider_are_converted_to_valid_ids_names_and_inputs() {
    let malformed = ToolUse {
        id: "functions.read:0".into(),
        name: "gone.tool".into(),
        arguments: ToolArguments::Malformed("{\"path".into()),
        sealed: Some(SealedBlock { provider: "gemini".into(), raw: "\"x\"".into(), shown: None }),
    };
    let body = body(vec![
        Message::user("a"),
        assistant(vec![Block::ToolUse(malformed), call("", "files.read")]),
        user(vec![result("functions.read:0", Vec::new(), true), result("", Vec::new(), false)]),
    ]);
    let said = &body["messages"][1]["content"];
    assert_eq!(said[0]["input"], json!({"malformed_arguments": "{\"path"}));
    let results = &body["messages"][2]["content"];
    for place in 0..2 {
        let id = said[place]["id"].as_str().unwrap();
        assert!(
            id.starts_with("call_x") && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'),
            "{id}"
        );
        assert_eq!(results[place]["tool_use_id"], id);
        assert!(said[place]["name"].as_str().unwrap().bytes().all(|byte| byte != b'.'));
    }
    assert_eq!(results[0]["content"][0]["text"], "the call failed");
    assert_eq!(results[1].get("content"), None);
}

#[test]
fn a_tool_schema_gets_an_object_root_and_describes_removed_alternatives() {
    let odd = |schema: Value| {
        let tool = OfferedTool { name: "t".into(), description: "Does.".into(), input_schema: Arc::new(schema) };
        Anthropic.definitions(&[tool]).remove(0)
    };
    let definition =
        odd(json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {"anyOf": [true]}}}));
    let message = r#"Fits exactly one of: {"required":["a"]}; {"required":["b"]}."#;
    let expected = json!({"properties": {"a": {"anyOf": [true]}}, "type": "object", "description": message});
    assert_eq!(definition["input_schema"], expected);
    assert_eq!(odd(json!(true))["input_schema"], json!({"type": "object", "properties": {}}));
}

#[track_caller]
fn check_thinking(tokens: Option<u64>, effort: Option<&str>, messages: Vec<Message>, expected: Value) {
    let settings = ModelSettings { thinking_tokens: tokens, reasoning_effort: effort.map(str::to_owned), ..settings() };
    let body: Value = serde_json::from_str(&text_of_body(&settings, messages, Vec::new())).unwrap();
    let answer = json!([body["thinking"], body["output_config"], body["temperature"]]);
    assert_eq!(answer, expected, "{tokens:?} {effort:?}");
}

#[test]
fn thinking_follows_the_settings_unless_the_turn_began_without_thinking() {
    let asked = || vec![Message::user("a")];
    let adaptive = json!({"type": "adaptive"});
    let enabled = |tokens: u64| json!({"type": "enabled", "budget_tokens": tokens});
    check_thinking(None, None, asked(), json!([null, null, 0.5]));
    check_thinking(Some(2000), None, asked(), json!([enabled(2000), null, null]));
    check_thinking(Some(9000), None, asked(), json!([enabled(2048), null, null]));
    check_thinking(Some(100), None, asked(), json!([null, null, 0.5]));
    check_thinking(None, Some("high"), asked(), json!([adaptive, {"effort": "high"}, null]));
    check_thinking(Some(2000), Some("low"), asked(), json!([enabled(2000), {"effort": "low"}, null]));
    let turn = |blocks: Vec<Block>| {
        vec![Message::user("a"), assistant(blocks), user(vec![result("t1", vec![Block::text("x")], false)])]
    };
    let thought = sealed("anthropic", r#"{"type":"thinking","thinking":"t","signature":"s"}"#);
    check_thinking(Some(2000), None, turn(vec![thought, call("t1", "a")]), json!([enabled(2000), null, null]));
    check_thinking(Some(2000), None, turn(vec![call("t1", "a")]), json!([null, null, 0.5]));
    check_thinking(Some(2000), None, turn(vec![sealed("gemini", "{}"), call("t1", "a")]), json!([null, null, 0.5]));
    let next = [turn(vec![call("t1", "a")]), vec![assistant(vec![Block::text("b")]), Message::user("c")]].concat();
    check_thinking(Some(2000), None, next, json!([enabled(2000), null, null]));
}

fn start(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn end(reason: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ]
}

fn tool_use(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "files_read", "input": {}})
}

/// Checks an answer with a text, a complete call and a call with these arguments that ends for this reason: the ids of
/// the returned calls, and the stop reason.
#[track_caller]
fn check_stop(reason: &str, arguments: &str, calls: &[&str], expected: StopReason) {
    let mut events = vec![
        start(0, json!({"type": "text", "text": "a"})),
        stop(0),
        start(1, tool_use("t1")),
        delta(1, json!({"type": "input_json_delta", "partial_json": "{\"path\":\"a.txt\"}"})),
        stop(1),
        start(2, tool_use("t2")),
        delta(2, json!({"type": "input_json_delta", "partial_json": arguments})),
        stop(2),
    ];
    events.extend(end(reason));
    let output = read_events(&events).unwrap();
    let ids: Vec<&str> = blocks(&output)
        .into_iter()
        .filter_map(|block| if let Block::ToolUse(call) = block { Some(call.id.as_str()) } else { None })
        .collect();
    assert_eq!(ids, calls, "{reason} {arguments}");
    let Some(ModelEvent::Finished { stop, usage }) = output.last() else { panic!("{output:?}") };
    assert_eq!((*stop, usage.output_tokens), (expected, 5), "{reason}");
}

#[test]
fn a_truncated_call_is_dropped_from_the_answer() {
    check_stop("max_tokens", "{\"path\": \"a", &["t1"], StopReason::MaxTokens);
    check_stop("max_tokens", "", &["t1"], StopReason::MaxTokens);
    check_stop("max_tokens", "{\"path\": \"a\"}", &["t1", "t2"], StopReason::MaxTokens);
    check_stop("model_context_window_exceeded", "{", &["t1"], StopReason::MaxTokens);
    check_stop("pause_turn", "{}", &["t1", "t2"], StopReason::MaxTokens);
    check_stop("refusal", "{", &["t1"], StopReason::Refused);
    // Complete but invalid arguments; the result of the call reports the error.
    check_stop("tool_use", "{\"path\": \"a", &["t1", "t2"], StopReason::ToolUse);
    check_stop("tool_use", "", &["t1", "t2"], StopReason::ToolUse);
    // Some servers report these reasons.
    check_stop("end_turn", "{}", &["t1", "t2"], StopReason::ToolUse);
    check_stop("of_the_future", "{}", &["t1", "t2"], StopReason::ToolUse);
}

#[test]
fn truncated_thinking_without_its_signature_is_dropped() {
    let thinking = || start(0, json!({"type": "thinking", "thinking": "", "signature": ""}));
    let more = || delta(0, json!({"type": "thinking_delta", "thinking": "hm"}));
    let cut: Vec<Value> = [thinking(), more(), stop(0)].into_iter().chain(end("max_tokens")).collect();
    assert!(blocks(&read_events(&cut).unwrap()).is_empty());
    // Servers without signatures also expect the thinking back.
    let unsigned: Vec<Value> = [start(0, json!({"type": "thinking", "thinking": ""})), more(), stop(0)]
        .into_iter()
        .chain([start(1, json!({"type": "text", "text": "b"})), stop(1)])
        .chain(end("end_turn"))
        .collect();
    let output = read_events(&unsigned).unwrap();
    let [Block::Sealed(block), Block::Text { .. }] = blocks(&output)[..] else { panic!("{output:?}") };
    assert_eq!(block.raw, r#"{"type":"thinking","thinking":"hm"}"#);
}

#[test]
fn calls_get_unique_ids_even_if_the_server_repeats_ids() {
    let earlier = ModelRequest::of(vec![Message::user("a"), assistant(vec![call("t1", "files.read")])]);
    let mut decoder = Anthropic.decoder(&earlier);
    let ids = ["t1", "t2", "t2", "", "a b"];
    let calls = ids.iter().zip(0..).flat_map(|(id, index)| [start(index, tool_use(id)), stop(index)]);
    let mut output = Vec::new();
    for event in calls.chain(end("tool_use")) {
        output.extend(decoder.event(&SseEvent { event: String::new(), data: event.to_string().into_bytes() }).unwrap());
    }
    let id = |block: &Block| if let Block::ToolUse(call) = block { Some(call.id.clone()) } else { None };
    let ids: Vec<String> = blocks(&output).into_iter().filter_map(id).collect();
    assert_eq!(ids, ["call_2_1", "t2", "call_2_2", "call_2_3", "call_2_4"]);
}

#[test]
fn an_error_within_the_stream_ends_it() {
    for (kind, expected) in [
        ("overloaded_error", ErrorKind::RateLimited),
        ("api_error", ErrorKind::UpstreamHttp),
        ("authentication_error", ErrorKind::AuthRequired),
    ] {
        let error = json!({"type": "error", "error": {"type": kind, "message": "Overloaded"}});
        let events = [start(0, json!({"type": "text", "text": "a"})), error.clone()];
        let message = read_events(&events).unwrap_err();
        assert_eq!(message.kind(), expected);
        assert!(message.to_string().contains("Overloaded"), "{message}");
        assert_eq!(decoder().decode_document(error.to_string().as_bytes()).unwrap_err(), message);
    }
}

#[test]
fn a_non_streamed_answer_is_decoded_with_its_thinking_blocks_unchanged() {
    let thinking = r#"{"type":"thinking", "thinking":"t","signature":"s"}"#;
    let document = format!(
        r#"{{"type":"message","content":[{thinking},{{"type":"text","text":"a"}},{{"type":"tool_use","id":"t1","name":"files_read","input":{{"path":"a.txt"}}}},{{"type":"new"}}],"stop_reason":"tool_use","usage":{{"input_tokens":1,"output_tokens":2}}}}"#
    );
    let outcome = decoder().decode_document(document.as_bytes()).unwrap();
    let [Block::Sealed(block), Block::Text { .. }, Block::ToolUse(call)] = blocks(&outcome)[..] else {
        panic!("{outcome:?}")
    };
    assert_eq!((block.raw.as_str(), call.name.as_str()), (thinking, "files.read"));
    let usage = TokenUsage { input_tokens: 1, output_tokens: 2, ..TokenUsage::default() };
    assert_eq!(outcome.last(), Some(&ModelEvent::Finished { stop: StopReason::ToolUse, usage }));
}

#[test]
fn malformed_or_hostile_stream_events_are_protocol_errors() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_block =
        format!(r#"{{"type":"content_block_start","index":0,"content_block":{{"type":"thinking","x":{deep}}}}}"#);
    for data in ["", "no JSON", "[]", "{\"type\":7}", "\u{0}", &deep, &deep_block, r#"{"type":"content_block_stop"}"#] {
        let event = SseEvent { event: "x".into(), data: data.as_bytes().to_vec() };
        let outcome = decoder().event(&event);
        assert!(matches!(outcome, Err(ModelError::Protocol(_))), "{}: {outcome:?}", &data[..data.len().min(40)]);
    }
    let text = || start(0, json!({"type": "text", "text": ""}));
    let json = |text: &str| json!({"type": "input_json_delta", "partial_json": text});
    for events in [
        vec![delta(0, json!({"type": "text_delta", "text": "a"}))],
        vec![stop(0)],
        vec![text(), text()],
        vec![text(), stop(0), stop(0)],
        vec![text(), delta(1, json!({"type": "text_delta", "text": "a"}))],
        vec![text(), delta(0, json("a"))],
        vec![json!({"type": "content_block_stop", "index": -1})],
        vec![json!({"type": "content_block_stop", "index": 1e300})],
    ] {
        let outcome = read_events(&events);
        assert!(matches!(outcome, Err(ModelError::Protocol(_))), "{events:?}: {outcome:?}");
    }
    let mut endless = decoder();
    let event = |event: Value| SseEvent { event: String::new(), data: event.to_string().into_bytes() };
    let mut many = (0..).map(|index| endless.event(&event(start(index, json!({"type": "text", "text": ""})))));
    assert!(many.find(Result::is_err).is_some());
    // Arguments that are nested too deeply are rejected, and the call reports it.
    let written = [start(0, tool_use("t1")), delta(0, json(&deep)), stop(0)];
    let outcome = read_events(&written.into_iter().chain(end("tool_use")).collect::<Vec<_>>()).unwrap();
    let [Block::ToolUse(call)] = blocks(&outcome)[..] else { panic!("{outcome:?}") };
    assert!(matches!(call.arguments, ToolArguments::Malformed(_)));
}

#[test]
fn later_token_counts_of_a_stream_replace_earlier_counts() {
    let began = json!({"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}});
    let so_far = |output: u64| json!({"type": "message_delta", "delta": {}, "usage": {"output_tokens": output}});
    let events: Vec<Value> = [began, so_far(3), so_far(4)].into_iter().chain(end("end_turn")).collect();
    let printed = read_events(&events).unwrap();
    let usage = TokenUsage { input_tokens: 7, output_tokens: 5, ..TokenUsage::default() };
    assert_eq!(printed.last(), Some(&ModelEvent::Finished { stop: StopReason::EndTurn, usage }));
    let huge = json!({"type": "message_delta", "usage": {"input_tokens": u64::MAX, "output_tokens": u64::MAX}});
    let printed = read_events(&[huge, json!({"type": "message_stop"})]).unwrap();
    let Some(ModelEvent::Finished { usage, .. }) = printed.last() else { panic!("{printed:?}") };
    assert!(usage.total() < 1 << 42);
}

fn any_event() -> impl Strategy<Value = Value> {
    let block = prop_oneof![
        Just(json!({"type": "text", "text": "a"})),
        Just(json!({"type": "thinking", "thinking": "t", "signature": "s"})),
        Just(json!({"type": "redacted_thinking", "data": "d"})),
        Just(tool_use("t")),
        Just(json!({"type": "new"})),
        Just(json!(null)),
    ];
    let more = prop_oneof![
        Just(json!({"type": "text_delta", "text": "b"})),
        Just(json!({"type": "input_json_delta", "partial_json": "{"})),
        Just(json!({"type": "thinking_delta", "thinking": "u"})),
        Just(json!({"type": "signature_delta", "signature": "v"})),
        Just(json!({"type": "new"})),
    ];
    let reasons = proptest::sample::select(vec!["end_turn", "max_tokens", "tool_use", "refusal", "new"]);
    prop_oneof![
        (0..3_u64, block).prop_map(|(index, block)| start(index, block)),
        (0..3_u64, more).prop_map(|(index, more)| delta(index, more)),
        (0..3_u64).prop_map(stop),
        reasons.prop_map(|reason| end(reason)[0].clone()),
        Just(end("")[1].clone()),
    ]
}

proptest! {
    #[test]
    fn decoded_blocks_of_any_stream_can_be_sent_back(events in proptest::collection::vec(any_event(), 0..30)) {
        let mut decoder = decoder();
        let mut output = Vec::new();
        for event in &events {
            let event = SseEvent { event: String::new(), data: event.to_string().into_bytes() };
            let Ok(more) = decoder.event(&event) else { break };
            output.extend(more);
            if matches!(output.last(), Some(ModelEvent::Finished { .. })) {
                break;
            }
        }
        let finished = output.iter().filter(|event| matches!(event, ModelEvent::Finished { .. })).count();
        prop_assert!(finished <= 1);
        let said: Vec<Block> = blocks(&output).into_iter().cloned().collect();
        let kept = said.iter().filter(|block| matches!(block, Block::ToolUse(_) | Block::Text { .. })).count();
        let body = body(vec![Message::user("a"), assistant(said), Message::user("b")]);
        let sent = body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "assistant");
        let sent: usize = sent.map(|message| {
            message["content"].as_array().unwrap().iter().filter(|part| part["type"] == "text" || part["type"] == "tool_use").count()
        }).sum();
        prop_assert_eq!(sent, kept);
    }
}
