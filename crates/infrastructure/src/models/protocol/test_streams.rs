//! Streams of answers, split and truncated at every position.

use super::ModelProtocol;
use crate::{
    http::sse::SseDecoder,
    models::settings::{KeySource, ModelSettings, ProviderKind},
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use toolstead_domain::{
    Block, Image, Message, ModelError, ModelEvent, ModelRequest, OfferedTool, Role, ToolArguments, ToolResultBlock,
    ToolUse,
};

/// Beginning of an image of 2 by 2 pixels.
pub(super) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAAC";

/// Decodes a stream. Checks that the result does not depend on where the stream is split, and that no beginning of it
/// is mistaken for a shorter answer.
#[track_caller]
pub(super) fn read(
    protocol: &dyn ModelProtocol,
    request: &ModelRequest,
    stream: &str,
) -> Result<Vec<ModelEvent>, ModelError> {
    let stream = stream.as_bytes();
    let whole = read_pieces(protocol, request, &[stream]);
    for at in 0..=stream.len() {
        let (first, second) = stream.split_at(at);
        assert_eq!(read_pieces(protocol, request, &[first, second]), whole, "cut at {at}");
        if let (Ok(beginning), Ok(whole)) = (read_pieces(protocol, request, &[first]), &whole) {
            assert_eq!(blocks(&beginning), blocks(whole), "ended at {at}");
        }
    }
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(read_pieces(protocol, request, &bytes), whole, "cut at every byte");
    whole
}

fn read_pieces(
    protocol: &dyn ModelProtocol,
    request: &ModelRequest,
    pieces: &[&[u8]],
) -> Result<Vec<ModelEvent>, ModelError> {
    let (mut sse, mut decoder, mut events) = (SseDecoder::new(1 << 20), protocol.decoder(request), Vec::new());
    for piece in pieces {
        sse.push(piece).unwrap();
        while let Some(event) = sse.next_event() {
            events.extend(decoder.event(&event)?);
        }
    }
    events.extend(decoder.end()?);
    let is_last = |event: &ModelEvent| matches!(event, ModelEvent::Finished { .. });
    let finished = events.iter().filter(|event| is_last(event)).count();
    assert!(finished == 1 && events.last().is_some_and(is_last), "{events:?}");
    Ok(events)
}

/// Decodes a non-streamed answer.
#[track_caller]
pub(super) fn read_whole(protocol: &dyn ModelProtocol, request: &ModelRequest, answer: &Value) -> Vec<ModelEvent> {
    protocol.decoder(request).decode_document(answer.to_string().as_bytes()).unwrap()
}

/// Returns a stream with each document as an event, followed by `last`.
pub(super) fn stream_of(documents: &[Value], last: &str) -> String {
    documents.iter().map(|document| format!("data: {document}\n\n")).chain([last.to_owned()]).collect()
}

/// Returns the blocks of an answer.
pub(super) fn blocks(events: &[ModelEvent]) -> Vec<Block> {
    let block = |event: &ModelEvent| match event {
        ModelEvent::Block(block) => Some(block.clone()),
        _ => None,
    };
    events.iter().filter_map(block).collect()
}

/// Returns the id, name and arguments of each call of an answer.
pub(super) fn calls(events: &[ModelEvent]) -> Vec<(String, String, String)> {
    let call = |block| match block {
        Block::ToolUse(ToolUse { id, name, arguments, .. }) => Some((
            id,
            name,
            match arguments {
                ToolArguments::Object(arguments) => Value::from(arguments).to_string(),
                ToolArguments::Malformed(text) => format!("malformed: {text}"),
            },
        )),
        _ => None,
    };
    blocks(events).into_iter().filter_map(call).collect()
}

pub(super) fn settings(kind: ProviderKind, base_url: &str) -> ModelSettings {
    ModelSettings {
        name: "main".into(),
        kind,
        model: "model-1".into(),
        base_url: base_url.into(),
        key: KeySource::None,
        max_output_tokens: 1000,
        context_tokens: 100_000,
        thinking_tokens: None,
        reasoning_effort: None,
        takes_images: true,
        prices: None,
        headers: BTreeMap::new(),
        temperature: None,
    }
}

pub(super) fn tool(name: &str, schema: Value) -> OfferedTool {
    OfferedTool { name: name.into(), description: format!("Does {name}."), input_schema: Arc::new(schema) }
}

pub(super) fn call(id: &str, name: &str, arguments: Value) -> Block {
    let arguments = ToolArguments::parse(&arguments.to_string());
    Block::ToolUse(ToolUse { id: id.into(), name: name.into(), arguments, sealed: None })
}

pub(super) fn image() -> Block {
    Block::Image(Image { media_type: "image/png".into(), data: PNG.into() })
}

pub(super) fn result(id: &str, name: &str, is_error: bool, content: Vec<Block>) -> Block {
    Block::ToolResult(ToolResultBlock { id: id.into(), name: name.into(), content, is_error })
}

/// Returns a conversation with all kinds of content: two tools, one with a dot in its name and one with a property name
/// that some providers reject; two calls, of which one failed and one returned an image; text and an image of the user.
pub(super) fn conversation() -> ModelRequest {
    let mut request = ModelRequest::of(vec![
        Message { role: Role::User, blocks: vec![Block::text("Look"), image()] },
        Message {
            role: Role::Assistant,
            blocks: vec![
                Block::text("I look."),
                call("call_1", "files.read", json!({"path": "a.png"})),
                call("call_2", "grep", json!({"-A": 2, "pattern": "x"})),
            ],
        },
        Message {
            role: Role::User,
            blocks: vec![
                result("call_1", "files.read", false, vec![Block::text("2 by 2"), image()]),
                result("call_2", "grep", true, vec![Block::text("no such file")]),
                Block::text("Go on"),
            ],
        },
    ]);
    request.system = "Be brief.".into();
    request.cache_key = Some("conversation-1".into());
    request.tools = vec![
        tool("files.read", json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]})),
        tool(
            "grep",
            json!({
                "type": "object",
                "properties": {"-A": {"type": "integer", "exclusiveMinimum": 0}, "pattern": {"type": "string"}},
                "required": ["pattern", "-A"],
                "additionalProperties": false,
            }),
        ),
    ];
    request
}

pub(super) fn body(protocol: &dyn ModelProtocol, settings: &ModelSettings, request: &ModelRequest) -> Value {
    serde_json::from_slice(&protocol.body(settings, request).unwrap()).unwrap()
}
