use super::*;
use crate::models::protocol::test_streams::{
    PNG, blocks, body, call, calls, conversation, read, read_whole, result, settings, stream_of,
};
use toolstead_domain::error_kind::ErrorKind;

const GEMINI: &str = "https://generativelanguage.googleapis.com/v1beta";

fn of_model(model: &str) -> ModelSettings {
    ModelSettings { model: model.into(), ..settings(ProviderKind::Gemini, GEMINI) }
}

#[test]
fn a_request_contains_the_conversation_in_the_format_of_the_protocol() {
    let mut settings = of_model("gemini-2.5-pro");
    settings.thinking_tokens = Some(512);
    let request = conversation();
    let expected = json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Look"}, {"inlineData": {"mimeType": "image/png", "data": PNG}}]},
            {"role": "model", "parts": [
                {"text": "I look."},
                {"functionCall": {"name": "files.read", "args": {"path": "a.png"}}},
                {"functionCall": {"name": "grep", "args": {"_A": 2, "pattern": "x"}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "files.read", "response": {"output": "2 by 2"}}},
                {"functionResponse": {"name": "grep", "response": {"error": "no such file"}}},
                {"text": "Images of the result of `files.read`:"},
                {"inlineData": {"mimeType": "image/png", "data": PNG}},
                {"text": "Go on"},
            ]},
        ],
        "tools": [{"functionDeclarations": [
            {"name": "files.read", "description": "Does files.read.", "parameters": {
                "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"],
            }},
            {"name": "grep", "description": "Does grep.", "parameters": {
                "type": "object",
                "properties": {
                    "_A": {"type": "integer", "description": "Greater than 0. Stands for \"-A\"."},
                    "pattern": {"type": "string"},
                },
                "required": ["pattern", "_A"],
                "description": "No other members.",
            }},
        ]}],
        "generationConfig": {"maxOutputTokens": 1000, "thinkingConfig": {"includeThoughts": true, "thinkingBudget": 512}},
    });
    let sent = body(&Gemini, &settings, &request);
    assert_eq!(sent, expected, "{sent:#}");
    assert_eq!(sent["tools"][0]["functionDeclarations"], Value::from(Gemini.definitions(&request.tools)));
}

#[test]
fn the_path_names_the_model() {
    let path = |model: &str, base_url: &str| {
        Gemini.path(&ModelSettings { model: model.into(), ..settings(ProviderKind::Gemini, base_url) })
    };
    assert_eq!(path("gemini-3-pro", GEMINI), "/models/gemini-3-pro:streamGenerateContent?alt=sse");
    assert_eq!(path("models/a?b", "http://127.0.0.1:1"), "/v1beta/models/a%3Fb:streamGenerateContent?alt=sse");
}

#[test]
fn newer_models_receive_a_thinking_level_and_a_placeholder_signature() {
    let mut settings = of_model("gemini-3-pro-preview");
    settings.reasoning_effort = Some("low".into());
    let sent = body(&Gemini, &settings, &conversation());
    assert_eq!(sent["generationConfig"]["thinkingConfig"], json!({"includeThoughts": true, "thinkingLevel": "low"}));
    let parts = &sent["contents"][1]["parts"];
    assert_eq!(parts[1]["thoughtSignature"], UNSIGNED);
    assert!(parts[2].get("thoughtSignature").is_none());
}

#[test]
fn zero_thinking_tokens_disable_thinking_in_the_request() {
    let settings = ModelSettings { thinking_tokens: Some(0), ..of_model("gemini-2.5-flash") };
    let sent = body(&Gemini, &settings, &conversation());
    assert_eq!(sent["generationConfig"]["thinkingConfig"], json!({"thinkingBudget": 0}));
}

#[test]
fn consecutive_messages_of_a_role_are_merged_and_empty_messages_are_omitted() {
    let said = |role, text: &str| Message { role, blocks: vec![Block::text(text)] };
    let messages = vec![
        said(Role::User, "a"),
        said(Role::User, "b"),
        said(Role::Assistant, ""),
        said(Role::User, "c"),
        said(Role::Assistant, "d"),
        said(Role::Assistant, "e"),
    ];
    let sent = body(&Gemini, &of_model("gemini-2.5-pro"), &ModelRequest::of(messages));
    assert_eq!(
        sent["contents"],
        json!([
            {"role": "user", "parts": [{"text": "a"}, {"text": "b"}, {"text": "c"}]},
            {"role": "model", "parts": [{"text": "d"}, {"text": "e"}]},
        ])
    );
    assert!(sent.get("tools").is_none() && sent.get("systemInstruction").is_none());
}

fn chunk(parts: Value) -> Value {
    json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}], "modelVersion": "gemini", "responseId": "r"})
}

fn last(parts: Value, reason: &str) -> Value {
    json!({
        "candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": reason, "index": 0}],
        "usageMetadata": {
            "promptTokenCount": 100, "cachedContentTokenCount": 30, "candidatesTokenCount": 7, "thoughtsTokenCount": 5,
            "totalTokenCount": 112,
        },
    })
}

const USAGE: TokenUsage =
    TokenUsage { input_tokens: 70, cache_read_tokens: 30, cache_write_tokens: 0, output_tokens: 12 };

#[test]
fn signatures_are_sent_back_on_the_parts_that_contained_them() {
    let stream = stream_of(
        &[
            chunk(json!([{"text": "Hm.", "thought": true}])),
            chunk(json!([{"text": "I re"}])),
            chunk(json!([{"text": "ad ü."}])),
            chunk(json!([{"text": " Signed.", "thoughtSignature": "c2lnMQ=="}])),
            chunk(json!([
                {"functionCall": {"id": "fc-1", "name": "files.read", "args": {"path": "a"}}, "thoughtSignature": "c2lnMg=="},
                {"functionCall": {"name": "grep", "args": {"_A": 1, "pattern": "x"}}},
            ])),
            last(json!([{"text": "", "thoughtSignature": "c2lnMw=="}]), "STOP"),
        ],
        "",
    );
    let mut request = conversation();
    let events = read(&Gemini, &request, &stream).unwrap();
    assert_eq!(events[0], ModelEvent::ThinkingDelta("Hm.".into()));
    let expected = [("fc-1", "files.read", r#"{"path":"a"}"#), ("call_3_1", "grep", r#"{"-A":1,"pattern":"x"}"#)];
    assert_eq!(calls(&events), expected.map(|(a, b, c)| (a.into(), b.into(), c.into())));
    assert_eq!(events.last(), Some(&ModelEvent::Finished { stop: StopReason::ToolUse, usage: USAGE }));

    request.messages.push(Message { role: Role::Assistant, blocks: blocks(&events) });
    let results = vec![
        result("fc-1", "files.read", false, vec![Block::text("1")]),
        result("call_3_1", "grep", false, vec![Block::text("2")]),
    ];
    request.messages.push(Message { role: Role::User, blocks: results });
    let sent = body(&Gemini, &of_model("gemini-3-pro"), &request);
    assert_eq!(
        sent["contents"][3]["parts"],
        json!([
            {"text": "I read ü."},
            {"text": " Signed.", "thoughtSignature": "c2lnMQ=="},
            {"functionCall": {"id": "fc-1", "name": "files.read", "args": {"path": "a"}}, "thoughtSignature": "c2lnMg=="},
            {"functionCall": {"name": "grep", "args": {"_A": 1, "pattern": "x"}}},
            {"text": "", "thoughtSignature": "c2lnMw=="},
        ])
    );
    assert_eq!(
        sent["contents"][4]["parts"],
        json!([
            {"functionResponse": {"id": "fc-1", "name": "files.read", "response": {"output": "1"}}},
            {"functionResponse": {"name": "grep", "response": {"output": "2"}}},
        ])
    );
}

#[track_caller]
fn check_stop(document: Value, expected: StopReason) {
    let events = read(&Gemini, &conversation(), &stream_of(&[document], "")).unwrap();
    let Some(ModelEvent::Finished { stop, .. }) = events.last() else { panic!("{events:?}") };
    assert_eq!(*stop, expected);
}

#[test]
fn finish_reasons_map_to_stop_reasons() {
    let said = || json!([{"text": "Hi"}]);
    check_stop(last(said(), "STOP"), StopReason::EndTurn);
    check_stop(last(said(), "MAX_TOKENS"), StopReason::MaxTokens);
    check_stop(last(said(), "SAFETY"), StopReason::Refused);
    check_stop(last(said(), "PROHIBITED_CONTENT"), StopReason::Refused);
    check_stop(json!({"promptFeedback": {"blockReason": "SAFETY"}}), StopReason::Refused);
}

#[test]
fn a_malformed_function_call_is_returned_as_a_call_with_malformed_arguments() {
    let malformed = |message: &str| {
        let document = json!({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": message}]});
        let events = read(&Gemini, &conversation(), &stream_of(&[document], "")).unwrap();
        assert!(matches!(events.last(), Some(ModelEvent::Finished { stop: StopReason::ToolUse, .. })));
        calls(&events)
    };
    let message = "Malformed function call: print(default_api.files.read(path='a'))";
    assert_eq!(malformed(message), [("call_3_1".into(), "files.read".into(), format!("malformed: {message}"))]);
    assert_eq!(malformed("?"), [("call_3_1".into(), UNREADABLE_CALL.into(), "malformed: ?".into())]);
}

#[test]
fn a_call_without_arguments_has_an_empty_arguments_object() {
    let stream = stream_of(&[last(json!([{"functionCall": {"name": "grep"}}]), "STOP")], "");
    let events = read(&Gemini, &conversation(), &stream).unwrap();
    assert_eq!(calls(&events), [("call_3_1".into(), "grep".into(), "{}".into())]);
    let mut request = conversation();
    request.messages.push(Message { role: Role::Assistant, blocks: vec![call("c", "grep", json!({}))] });
    let sent = body(&Gemini, &of_model("gemini-2.5-pro"), &request);
    assert_eq!(sent["contents"][3]["parts"], json!([{"functionCall": {"name": "grep", "args": {}}}]));
}

#[track_caller]
fn check_error(stream: &str, expected: ErrorKind) {
    let error = read(&Gemini, &conversation(), stream).unwrap_err();
    assert_eq!(error.kind(), expected, "{error}");
}

#[test]
fn stream_errors_are_reported_and_an_incomplete_stream_is_an_error() {
    let error = json!({"error": {"code": 429, "message": "Slow down", "status": "RESOURCE_EXHAUSTED"}});
    check_error(&stream_of(&[chunk(json!([{"text": "Hi"}])), error], ""), ErrorKind::RateLimited);
    check_error(&stream_of(&[chunk(json!([{"text": "Hi"}]))], ""), ErrorKind::Unavailable);
    check_error("data: <html>\n\n", ErrorKind::UpstreamProtocol);
}

#[test]
fn an_answer_that_does_not_stream_is_read_as_well() {
    for answer in [
        last(json!([{"text": "Hi"}]), "STOP"),
        json!([chunk(json!([{"text": "H"}])), last(json!([{"text": "i"}]), "STOP")]),
    ] {
        let events = read_whole(&Gemini, &conversation(), &answer);
        assert_eq!(blocks(&events), [Block::text("Hi")]);
        assert_eq!(events.last(), Some(&ModelEvent::Finished { stop: StopReason::EndTurn, usage: USAGE }));
    }
    assert!(Gemini.decoder(&conversation()).decode_document(b"{}").is_err());
}
