use super::*;
use crate::models::protocol::test_streams::{
    PNG, blocks, body, calls, conversation, read, read_whole, settings, stream_of, tool,
};
use toolstead_domain::error_kind::ErrorKind;

const OPENAI: &str = "https://api.openai.com/v1";
const OLLAMA: &str = "http://localhost:11434/v1";

#[test]
fn a_request_contains_the_conversation_in_the_format_of_the_protocol() {
    let mut settings = settings(ProviderKind::OpenAi, OPENAI);
    settings.temperature = Some(0.5);
    settings.reasoning_effort = Some("low".into());
    let expected = json!({
        "model": "model-1",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [
                {"type": "text", "text": "Look"},
                {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{PNG}")}},
            ]},
            {"role": "assistant", "content": "I look.", "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "files_read", "arguments": "{\"path\":\"a.png\"}"}},
                {"id": "call_2", "type": "function", "function": {"name": "grep", "arguments": "{\"-A\":2,\"pattern\":\"x\"}"}},
            ]},
            {"role": "tool", "tool_call_id": "call_1", "content": "2 by 2"},
            {"role": "tool", "tool_call_id": "call_2", "content": "Error: no such file"},
            {"role": "user", "content": [
                {"type": "text", "text": "Images of the result of `files.read` (call_1):"},
                {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{PNG}")}},
                {"type": "text", "text": "Go on"},
            ]},
        ],
        "tools": [
            {"type": "function", "function": {"name": "files_read", "description": "Does files.read.", "parameters": {
                "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"],
            }}},
            {"type": "function", "function": {"name": "grep", "description": "Does grep.", "parameters": {
                "type": "object",
                "properties": {"-A": {"type": "integer", "exclusiveMinimum": 0}, "pattern": {"type": "string"}},
                "required": ["pattern", "-A"],
                "additionalProperties": false,
            }}},
        ],
        "stream": true,
        "stream_options": {"include_usage": true},
        "max_completion_tokens": 1000,
        "temperature": 0.5,
        "reasoning_effort": "low",
        "prompt_cache_key": "conversation-1",
    });
    let sent = body(&OpenAiChat, &settings, &conversation());
    assert_eq!(sent, expected, "{sent:#}");
    assert_eq!(sent["tools"], Value::from(OpenAiChat.definitions(&conversation().tools)));
}

#[test]
fn other_servers_receive_max_tokens_and_no_openai_specific_members() {
    let mut settings = settings(ProviderKind::OpenAi, OLLAMA);
    settings.takes_images = false;
    let mut request = conversation();
    request.tools.clear();
    request.max_output_tokens = Some(7);
    let sent = body(&OpenAiChat, &settings, &request);
    assert_eq!(sent["max_tokens"], 7);
    for absent in ["max_completion_tokens", "prompt_cache_key", "tools", "reasoning_effort"] {
        assert!(sent.get(absent).is_none(), "{absent}");
    }
    // Without images, the content is plain text.
    assert_eq!(sent["messages"][1]["content"], "Look\n\n[an image is omitted: this model accepts no images]");
}

#[test]
fn a_base_url_without_a_path_gets_the_version() {
    let path = |base_url| OpenAiChat.path(&settings(ProviderKind::OpenAi, base_url));
    assert_eq!(path("https://api.openai.com"), "/v1/chat/completions");
    assert_eq!(path("http://localhost:11434/"), "/v1/chat/completions");
    assert_eq!(path("https://openrouter.ai/api/v1"), "/chat/completions");
}

#[test]
fn a_tool_description_that_is_too_long_continues_in_the_parameters() {
    let long = "wörd ".repeat(400);
    let mut tool = tool("long", json!({"type": "object", "description": "Whole.", "properties": {}}));
    tool.description = long.clone();
    let outcome = OpenAiChat.definitions(&[tool]).remove(0);
    let beginning = outcome["function"]["description"].as_str().unwrap();
    assert!(beginning.chars().count() <= 1024, "{beginning}");
    let rest = outcome["function"]["parameters"]["description"].as_str().unwrap();
    assert!(rest.ends_with("wörd\n\nWhole."), "{rest}");
    assert_eq!(format!("{beginning}{rest}").matches("wörd").count(), 400);
}

fn chunk(delta: Value, finish_reason: Value) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "model-1",
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason}], "usage": null,
    })
}

fn usage(usage: Value) -> Value {
    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": usage})
}

const DONE: &str = "data: [DONE]\n\n";

#[test]
fn an_answer_of_openai_with_text_and_two_calls_is_read() {
    let stream = stream_of(
        &[
            chunk(json!({"role": "assistant", "content": "", "refusal": null}), Value::Null),
            chunk(json!({"content": "I re"}), Value::Null),
            chunk(json!({"content": "ad ü."}), Value::Null),
            chunk(
                json!({"tool_calls": [{"index": 0, "id": "call_a", "type": "function", "function": {"name": "files_read", "arguments": ""}}]}),
                Value::Null,
            ),
            chunk(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"pa"}}]}), Value::Null),
            chunk(json!({"tool_calls": [{"index": 0, "function": {"arguments": "th\":\"a\"}"}}]}), Value::Null),
            chunk(
                json!({"tool_calls": [{"index": 1, "id": "call_b", "type": "function", "function": {"name": "grep", "arguments": ""}}]}),
                Value::Null,
            ),
            chunk(json!({}), json!("tool_calls")),
            usage(json!({
                "prompt_tokens": 100, "completion_tokens": 30, "total_tokens": 130,
                "prompt_tokens_details": {"cached_tokens": 60}, "completion_tokens_details": {"reasoning_tokens": 10},
            })),
        ],
        DONE,
    );
    let events = read(&OpenAiChat, &conversation(), &stream).unwrap();
    let begun = |name: &str| ModelEvent::CallBegun { name: name.into() };
    assert_eq!(
        events[..4],
        [
            ModelEvent::TextDelta("I re".into()),
            ModelEvent::TextDelta("ad ü.".into()),
            begun("files.read"),
            begun("grep"),
        ]
    );
    assert_eq!(blocks(&events)[0], Block::text("I read ü."));
    let expected = [("call_a", "files.read", r#"{"path":"a"}"#), ("call_b", "grep", "{}")];
    assert_eq!(calls(&events), expected.map(|(a, b, c)| (a.into(), b.into(), c.into())));
    let usage = TokenUsage { input_tokens: 40, cache_read_tokens: 60, cache_write_tokens: 0, output_tokens: 30 };
    assert_eq!(events.last(), Some(&ModelEvent::Finished { stop: StopReason::ToolUse, usage }));
}

#[track_caller]
fn check_calls(pieces: Value, finish_reason: &str, expected: &[(&str, &str, &str)]) {
    let mut documents: Vec<Value> =
        pieces.as_array().unwrap().iter().map(|piece| chunk(piece.clone(), Value::Null)).collect();
    documents.push(chunk(json!({}), json!(finish_reason)));
    // Some servers do not send the last event.
    for last in [DONE, ""] {
        let events = read(&OpenAiChat, &conversation(), &stream_of(&documents, last)).unwrap();
        let outcome = calls(&events);
        let outcome: Vec<_> = outcome.iter().map(|(id, name, arguments)| (&**id, &**name, &**arguments)).collect();
        assert_eq!(outcome, expected);
    }
}

#[test]
fn the_end_of_an_object_is_detected_wherever_the_text_is_split() {
    for (text, is_closed) in [
        (r#"{"a": {"b": "}\"}"}}"#, true),
        (r#" {} "#, true),
        (r#"{"a": "\\"}"#, true),
        (r#"{"a": "}"#, false),
        (r#"{"a": {}"#, false),
        ("", false),
        ("}", false),
    ] {
        for at in 0..=text.len() {
            let mut braces = BraceCounter::default();
            let (first, second) = text.split_at(at);
            braces.take(first);
            braces.take(second);
            assert_eq!(braces.are_closed(), is_closed, "{text} at {at}");
        }
    }
}

#[test]
fn parsing_a_call_in_many_pieces_takes_linear_time() {
    // A server that repeats the name in each piece. Parsing all arguments each time would take minutes.
    let mut decoder = OpenAiChat.decoder(&conversation());
    let piece = |arguments: &str| {
        chunk(json!({"tool_calls": [{"function": {"name": "grep", "arguments": arguments}}]}), Value::Null)
    };
    let events =
        std::iter::once(piece("{\"a\": \"")).chain(vec![piece(&"}".repeat(200)); 20_000]).chain([piece("\"}")]);
    for event in events {
        decoder.event(&SseEvent { event: String::new(), data: event.to_string().into_bytes() }).unwrap();
    }
    let done = SseEvent { event: String::new(), data: b"[DONE]".to_vec() };
    let outcome = calls(&decoder.event(&done).unwrap());
    assert_eq!((outcome.len(), outcome[0].2.len()), (1, r#"{"a":""}"#.len() + 200 * 20_000));
}

#[test]
fn calls_are_decoded_with_missing_or_repeated_indexes_and_ids() {
    let call = |members: Value| json!({"tool_calls": [members]});
    // One index for all calls, each complete, with the reason `stop`.
    check_calls(
        json!([
            call(json!({"index": 0, "id": "x1", "function": {"name": "grep", "arguments": "{}"}})),
            call(json!({"index": 0, "id": "x2", "function": {"name": "grep", "arguments": "{\"pattern\":\"y\"}"}})),
        ]),
        "stop",
        &[("x1", "grep", "{}"), ("x2", "grep", r#"{"pattern":"y"}"#)],
    );
    // No index and no ids: they are generated and differ from those of the conversation, which has three messages.
    check_calls(
        json!([
            call(json!({"function": {"name": "grep", "arguments": "{\"pattern\""}})),
            call(json!({"function": {"arguments": ":\"x\"}"}})),
            call(json!({"function": {"name": "files_read", "arguments": {"path": "b"}}})),
        ]),
        "tool_calls",
        &[("call_3_1", "grep", r#"{"pattern":"x"}"#), ("call_3_2", "files.read", r#"{"path":"b"}"#)],
    );
    // The same id and name in every piece, and an id of an earlier answer.
    check_calls(
        json!([
            call(json!({"index": 0, "id": "call_1", "function": {"name": "grep", "arguments": "{\"-A\""}})),
            call(json!({"index": 0, "id": "call_1", "function": {"name": "grep", "arguments": ":1}"}})),
            call(json!({"index": 1, "id": "call_1", "function": {"name": "grep", "arguments": "{\"-A\":"}})),
        ]),
        "tool_calls",
        &[("call_3_1", "grep", r#"{"-A":1}"#), ("call_3_2", "grep", r#"malformed: {"-A":"#)],
    );
    // A call that was cut off is dropped.
    check_calls(
        json!([
            call(json!({"index": 0, "id": "x1", "function": {"name": "grep", "arguments": "{}"}})),
            call(json!({"index": 1, "id": "x2", "function": {"name": "grep", "arguments": "{\"pat"}})),
        ]),
        "length",
        &[("x1", "grep", "{}")],
    );
    check_calls(
        json!([call(json!({"index": 0, "id": "x1", "function": {"name": "grep", "arguments": ""}}))]),
        "length",
        &[],
    );
}

#[track_caller]
fn check_stop(delta: Value, finish_reason: &str, expected: StopReason) {
    let events = read(&OpenAiChat, &conversation(), &stream_of(&[chunk(delta, json!(finish_reason))], DONE)).unwrap();
    assert_eq!(
        events.last(),
        Some(&ModelEvent::Finished { stop: expected, usage: TokenUsage::default() }),
        "{events:?}"
    );
}

#[test]
fn finish_reasons_map_to_stop_reasons() {
    let call = json!({"tool_calls": [{"id": "x1", "function": {"name": "grep", "arguments": "{}"}}]});
    check_stop(json!({"content": "Hi"}), "stop", StopReason::EndTurn);
    check_stop(json!({"content": "Hi"}), "length", StopReason::MaxTokens);
    check_stop(json!({"content": "Hi"}), "content_filter", StopReason::Refused);
    check_stop(json!({"refusal": "No."}), "stop", StopReason::Refused);
    check_stop(call, "stop", StopReason::ToolUse);
}

#[test]
fn thinking_is_streamed_and_sent_back_only_within_its_turn() {
    let stream = stream_of(
        &[
            chunk(json!({"role": "assistant", "reasoning": "Hm", "reasoning_content": "Hm"}), Value::Null),
            chunk(json!({"reasoning": ".", "reasoning_content": "."}), Value::Null),
            chunk(
                json!({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "grep", "arguments": "{}"}}]}),
                json!("tool_calls"),
            ),
        ],
        DONE,
    );
    let mut request = conversation();
    let events = read(&OpenAiChat, &request, &stream).unwrap();
    assert_eq!(events[..2], [ModelEvent::ThinkingDelta("Hm".into()), ModelEvent::ThinkingDelta(".".into())]);
    request.messages.push(Message { role: Role::Assistant, blocks: blocks(&events) });
    let settings = settings(ProviderKind::OpenAi, OLLAMA);
    let last = |request: &ModelRequest| {
        let messages = body(&OpenAiChat, &settings, request)["messages"].as_array().unwrap().clone();
        messages.into_iter().rfind(|message| message["role"] == "assistant").unwrap()
    };
    assert_eq!(last(&request)["reasoning_content"], "Hm.");
    request.messages.push(Message::user("Thanks"));
    assert!(last(&request).get("reasoning_content").is_none());
}

#[test]
fn extra_content_of_a_call_is_sent_back_with_the_call() {
    let extra = json!({"google": {"thought_signature": "c2ln"}});
    let call = json!({"index": 0, "id": "x", "function": {"name": "grep", "arguments": "{}"}, "extra_content": extra});
    let stream = stream_of(&[chunk(json!({"tool_calls": [call]}), json!("tool_calls"))], DONE);
    let mut request = conversation();
    let blocks = blocks(&read(&OpenAiChat, &request, &stream).unwrap());
    request.messages.push(Message { role: Role::Assistant, blocks });
    let sent = body(&OpenAiChat, &settings(ProviderKind::OpenAi, OLLAMA), &request);
    assert_eq!(sent["messages"].as_array().unwrap().last().unwrap()["tool_calls"][0]["extra_content"], extra);
}

#[track_caller]
fn check_error(stream: &str, expected: ErrorKind) {
    let error = read(&OpenAiChat, &conversation(), stream).unwrap_err();
    assert_eq!(error.kind(), expected, "{error}");
}

#[test]
fn stream_errors_are_reported_and_an_incomplete_stream_is_an_error() {
    let begun = chunk(json!({"content": "I"}), Value::Null);
    let error = |error: Value| stream_of(&[begun.clone(), json!({"error": error})], "");
    check_error(&error(json!({"message": "Slow down", "code": 429})), ErrorKind::RateLimited);
    check_error(&error(json!({"message": "Too long", "code": "context_length_exceeded"})), ErrorKind::TooLarge);
    check_error(&error(json!("out of memory")), ErrorKind::UpstreamHttp);
    check_error(&stream_of(std::slice::from_ref(&begun), ""), ErrorKind::Unavailable);
    check_error(&stream_of(&[begun], "data: <html>\n\n"), ErrorKind::UpstreamProtocol);
}

#[test]
fn cached_and_reasoning_tokens_are_counted_once_for_every_server() {
    let tokens = |usage: Value| {
        let TokenUsage { input_tokens, cache_read_tokens, cache_write_tokens, output_tokens } = read_usage(&usage);
        (input_tokens, cache_read_tokens, cache_write_tokens, output_tokens)
    };
    let deepseek = json!({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12, "prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 6});
    assert_eq!(tokens(deepseek), (6, 4, 0, 2));
    let beside = json!({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 17, "completion_tokens_details": {"reasoning_tokens": 5}});
    assert_eq!(tokens(beside), (10, 0, 0, 7));
    let written = json!({"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 5}});
    assert_eq!(tokens(written), (2, 3, 5, 2));
    assert_eq!(tokens(json!({"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 3}})), (0, 3, 0, 0));
}

#[test]
fn an_answer_that_does_not_stream_is_read_as_well() {
    let answer = json!({
        "id": "chatcmpl-1", "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": null, "tool_calls": [
            {"id": "x", "type": "function", "function": {"name": "files_read", "arguments": "{\"path\":\"a\"}"}},
        ]}}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 1},
    });
    let events = read_whole(&OpenAiChat, &conversation(), &answer);
    assert_eq!(calls(&events), [("x".into(), "files.read".into(), r#"{"path":"a"}"#.into())]);
    let usage = TokenUsage { input_tokens: 5, output_tokens: 1, ..TokenUsage::default() };
    assert_eq!(events.last(), Some(&ModelEvent::Finished { stop: StopReason::ToolUse, usage }));
    assert!(OpenAiChat.decoder(&conversation()).decode_document(b"{}").is_err());
}
