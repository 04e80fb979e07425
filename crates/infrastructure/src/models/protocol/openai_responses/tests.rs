use super::*;
use crate::models::protocol::test_streams::{
    PNG, blocks, body, calls, conversation, read, read_whole, settings, stream_of,
};
use toolstead_domain::error_kind::ErrorKind;

const OPENAI: &str = "https://api.openai.com/v1";

fn sealed(raw: &str) -> Block {
    Block::Sealed(SealedBlock { provider: SEAL.into(), raw: raw.into(), shown: None })
}

#[test]
fn a_request_contains_the_conversation_in_the_format_of_the_protocol() {
    let mut settings = settings(ProviderKind::OpenAiResponses, OPENAI);
    settings.reasoning_effort = Some("high".into());
    let request = conversation();
    let expected = json!({
        "model": "model-1",
        "instructions": "Be brief.",
        "input": [
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "Look"},
                {"type": "input_image", "image_url": format!("data:image/png;base64,{PNG}"), "detail": "auto"},
            ]},
            {"type": "message", "role": "assistant", "content": "I look."},
            {"type": "function_call", "call_id": "call_1", "name": "files_read", "arguments": "{\"path\":\"a.png\"}"},
            {"type": "function_call", "call_id": "call_2", "name": "grep", "arguments": "{\"-A\":2,\"pattern\":\"x\"}"},
            {"type": "function_call_output", "call_id": "call_1", "output": [
                {"type": "input_text", "text": "2 by 2"},
                {"type": "input_image", "image_url": format!("data:image/png;base64,{PNG}"), "detail": "auto"},
            ]},
            {"type": "function_call_output", "call_id": "call_2", "output": "Error: no such file"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go on"}]},
        ],
        "tools": OpenAiResponses.definitions(&request.tools),
        "stream": true,
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 1000,
        "reasoning": {"effort": "high", "summary": "auto"},
        "prompt_cache_key": "conversation-1",
    });
    let sent = body(&OpenAiResponses, &settings, &request);
    assert_eq!(sent, expected, "{sent:#}");
    assert_eq!(
        sent["tools"][0],
        json!({
            "type": "function", "name": "files_read", "description": "Does files.read.", "strict": false, "parameters": {
                "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"],
            },
        })
    );
}

#[test]
fn a_request_to_a_model_without_reasoning_omits_reasoning_members() {
    for model in ["gpt-4.1", "openai/gpt-4o", "ft:gpt-4o:me", "gpt-5-chat-latest"] {
        let settings = ModelSettings { model: model.into(), ..settings(ProviderKind::OpenAiResponses, OPENAI) };
        let sent = body(&OpenAiResponses, &settings, &ModelRequest::of(vec![Message::user("Hi")]));
        for absent in ["include", "reasoning", "instructions", "tools", "prompt_cache_key"] {
            assert!(sent.get(absent).is_none(), "{model}: {absent}");
        }
    }
}

/// Reasoning item with details that reserialization would change.
const REASONING: &str = r#"{"id":"rs_1","type":"reasoning","encrypted_content":"gAAA\u002b\/=","summary":[{"type":"summary_text","text":"Think"},{"type":"summary_text","text":"again"}],"n":1.50e1}"#;

#[test]
fn reasoning_is_sent_back_byte_for_byte_before_its_call() {
    let stream = [
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}"#.to_owned(),
        r#"{"type":"response.reasoning_summary_part.added","output_index":0}"#.to_owned(),
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"Think"}"#.to_owned(),
        r#"{"type":"response.reasoning_summary_part.added","output_index":0}"#.to_owned(),
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"again"}"#.to_owned(),
        format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{REASONING}}}"#),
        r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"fc_1","type":"function_call","status":"in_progress","arguments":"","call_id":"call_x","name":"files_read"}}"#.to_owned(),
        r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"path\":\"a\"}"}"#.to_owned(),
        r#"{"type":"response.function_call_arguments.done","output_index":1,"arguments":"{\"path\":\"a\"}"}"#.to_owned(),
        r#"{"type":"response.output_item.done","output_index":1,"item":{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"path\":\"a\"}","call_id":"call_x","name":"files_read"}}"#.to_owned(),
        r#"{"type":"response.completed","response":{"id":"resp_1","status":"completed","error":null,"incomplete_details":null,"output":[{"type":"reasoning"},{"type":"function_call"}],"usage":{"input_tokens":90,"input_tokens_details":{"cached_tokens":50},"output_tokens":20,"output_tokens_details":{"reasoning_tokens":15},"total_tokens":110}}}"#.to_owned(),
    ];
    let named = |data: &String| {
        let document: Value = serde_json::from_str(data).unwrap();
        format!("event: {}\ndata: {data}\n\n", document["type"].as_str().unwrap())
    };
    let stream: String = stream.iter().map(named).collect();
    let mut request = conversation();
    let events = read(&OpenAiResponses, &request, &stream).unwrap();
    let thought = |text: &str| ModelEvent::ThinkingDelta(text.into());
    assert_eq!(events[..3], [thought("Think"), thought("\n\n"), thought("again")]);
    assert_eq!(calls(&events), [("call_x".into(), "files.read".into(), r#"{"path":"a"}"#.into())]);
    let usage = TokenUsage { input_tokens: 40, cache_read_tokens: 50, cache_write_tokens: 0, output_tokens: 20 };
    assert_eq!(events.last(), Some(&ModelEvent::Finished { stop: StopReason::ToolUse, usage }));
    let blocks = blocks(&events);
    let Block::Sealed(first) = &blocks[0] else { panic!("{blocks:?}") };
    assert_eq!((first.raw.as_str(), first.shown.as_deref()), (REASONING, Some("Think\n\nagain")));

    let settings = settings(ProviderKind::OpenAiResponses, OPENAI);
    request.messages.push(Message { role: Role::Assistant, blocks });
    let sent = String::from_utf8(OpenAiResponses.body(&settings, &request).unwrap()).unwrap();
    assert!(sent.contains(&format!(r#",{REASONING},{{"type":"function_call","call_id":"call_x""#)), "{sent}");
}

#[test]
fn reasoning_without_output_or_from_other_providers_is_not_sent_back() {
    let settings = settings(ProviderKind::OpenAiResponses, OPENAI);
    let others = Block::Sealed(SealedBlock { provider: "anthropic".into(), raw: "{}".into(), shown: None });
    let blocks = vec![
        sealed(r#"{"type":"reasoning","id":"a"}"#),
        others,
        Block::text("Hi"),
        sealed(r#"{"type":"reasoning","id":"b"}"#),
    ];
    let messages = vec![Message::user("Hi"), Message { role: Role::Assistant, blocks }, Message::user("Go on")];
    let sent = body(&OpenAiResponses, &settings, &ModelRequest::of(messages));
    let kinds: Vec<&Value> = sent["input"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["message", "reasoning", "message", "message"]);
    let nothing = vec![Message::user("Hi"), Message { role: Role::Assistant, blocks: vec![sealed("{}")] }];
    let sent = body(&OpenAiResponses, &settings, &ModelRequest::of(nothing));
    assert_eq!(sent["input"].as_array().unwrap().len(), 1);
}

fn message(text: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [
        {"type": "output_text", "text": text, "annotations": []},
    ]})
}

fn done(item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": 0, "item": item})
}

fn response(status: &str, more: Value) -> Value {
    let mut response = json!({"id": "resp_1", "status": status, "output": []});
    response.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"type": format!("response.{status}"), "response": response})
}

#[track_caller]
fn check_stop(events: &[Value], expected: StopReason, expected_blocks: &[Block]) {
    let events = read(&OpenAiResponses, &conversation(), &stream_of(events, "")).unwrap();
    assert_eq!(blocks(&events), expected_blocks);
    assert_eq!(events.last(), Some(&ModelEvent::Finished { stop: expected, usage: TokenUsage::default() }));
}

#[test]
fn the_status_and_output_of_a_response_determine_the_stop_reason() {
    let cut =
        json!({"type": "function_call", "status": "incomplete", "call_id": "c", "name": "grep", "arguments": "{\"p"});
    let refusal = json!({"type": "message", "content": [{"type": "refusal", "refusal": "No."}]});
    let because = |reason: &str| response("incomplete", json!({"incomplete_details": {"reason": reason}}));
    let completed = || response("completed", json!({}));
    let said = [Block::text("Hi")];
    check_stop(&[done(message("Hi")), completed()], StopReason::EndTurn, &said);
    check_stop(&[done(message("Hi")), done(cut), because("max_output_tokens")], StopReason::MaxTokens, &said);
    check_stop(&[done(message("Hi")), because("content_filter")], StopReason::Refused, &said);
    check_stop(&[done(refusal), completed()], StopReason::Refused, &[Block::text("No.")]);
    // A server that sends its items only at the end.
    check_stop(&[response("completed", json!({"output": [message("Hi")]}))], StopReason::EndTurn, &said);
}

#[test]
fn reasoning_that_is_not_encrypted_is_not_kept() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": null});
    check_stop(&[done(reasoning), response("completed", json!({}))], StopReason::EndTurn, &[]);
}

#[track_caller]
fn check_error(event: Value, expected: ErrorKind) {
    let error = read(&OpenAiResponses, &conversation(), &stream_of(&[event], "")).unwrap_err();
    assert_eq!(error.kind(), expected, "{error}");
}

#[test]
fn stream_errors_are_reported_and_an_incomplete_stream_is_an_error() {
    let failed = |code: &str| response("failed", json!({"error": {"code": code, "message": "It says so"}}));
    check_error(failed("rate_limit_exceeded"), ErrorKind::RateLimited);
    check_error(failed("context_length_exceeded"), ErrorKind::TooLarge);
    check_error(failed("server_error"), ErrorKind::UpstreamHttp);
    check_error(json!({"type": "error", "code": "invalid_api_key", "message": "No"}), ErrorKind::AuthRequired);
    check_error(done(message("Hi")), ErrorKind::Unavailable);
}

#[test]
fn an_answer_that_does_not_stream_is_read_as_well() {
    let mut answer =
        response("completed", json!({"output": [message("Hi")], "usage": {"input_tokens": 3, "output_tokens": 1}}));
    let events = read_whole(&OpenAiResponses, &conversation(), &answer["response"].take());
    assert_eq!(blocks(&events), [Block::text("Hi")]);
    let usage = TokenUsage { input_tokens: 3, output_tokens: 1, ..TokenUsage::default() };
    assert_eq!(events.last(), Some(&ModelEvent::Finished { stop: StopReason::EndTurn, usage }));
    assert!(OpenAiResponses.decoder(&conversation()).decode_document(b"{}").is_err());
}
