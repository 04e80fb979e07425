//! Streams in the shapes that each protocol was recorded with.

use super::{Piece, Says, Seen, Stop, Tokens};
use serde_json::{Map, Value, json};

/// The protocol of a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    Anthropic,
    ChatCompletions,
    Responses,
    Gemini,
}

impl Shape {
    pub(super) fn of(seen: &Seen) -> Option<Self> {
        let path = seen.path.split('?').next().unwrap_or_default();
        match path {
            _ if path.ends_with("/messages") => Some(Self::Anthropic),
            _ if path.ends_with("/chat/completions") => Some(Self::ChatCompletions),
            _ if path.ends_with("/responses") => Some(Self::Responses),
            _ if path.ends_with(":streamGenerateContent") => Some(Self::Gemini),
            _ => None,
        }
    }

    pub(super) fn stream(self, says: &Says) -> String {
        match self {
            Self::Anthropic => anthropic(says),
            Self::ChatCompletions => chat_completions(says),
            Self::Responses => responses(says),
            Self::Gemini => gemini(says),
        }
    }
}

/// A text in two pieces, as streams have it.
fn halves(text: &str) -> impl Iterator<Item = &str> {
    let middle = (text.len() / 2..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let (first, second) = text.split_at(middle);
    [first, second].into_iter().filter(|half| !half.is_empty())
}

/// Formats events that contain their type twice.
fn typed(events: &[Value]) -> String {
    events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())).collect()
}

fn anthropic(says: &Says) -> String {
    let Tokens { input, cache_read, output } = says.tokens;
    let mut events = vec![json!({"type": "message_start", "message": {
        "model": "claude-sonnet-4-5-20250929", "id": "msg_01XFDUDYJgAACzvnptvVoYEL", "type": "message", "role": "assistant",
        "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": input, "cache_creation_input_tokens": 0, "cache_read_input_tokens": cache_read,
            "output_tokens": 1, "service_tier": "standard"},
    }})];
    for (index, piece) in says.pieces.iter().enumerate() {
        let delta = |delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
        let start = |block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
        match piece {
            Piece::Text(text) => {
                events.push(start(json!({"type": "text", "text": ""})));
                events.push(json!({"type": "ping"}));
                events.extend(halves(text).map(|half| delta(json!({"type": "text_delta", "text": half}))));
            }
            Piece::Thinking(text, signature) => {
                events.push(start(json!({"type": "thinking", "thinking": "", "signature": ""})));
                events.extend(halves(text).map(|half| delta(json!({"type": "thinking_delta", "thinking": half}))));
                events.push(delta(json!({"type": "signature_delta", "signature": signature})));
            }
            Piece::Call { id, name, arguments } => {
                events.push(start(json!({"type": "tool_use", "id": id, "name": name, "input": {}})));
                events.push(delta(json!({"type": "input_json_delta", "partial_json": ""})));
                let pieces = halves(arguments);
                events.extend(pieces.map(|half| delta(json!({"type": "input_json_delta", "partial_json": half}))));
            }
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let stop = match says.stop {
        Stop::Usual if says.has_calls() => "tool_use",
        Stop::Usual => "end_turn",
        Stop::MaxTokens => "max_tokens",
        Stop::Refused => "refusal",
    };
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
        "usage": {"output_tokens": output}}));
    events.push(json!({"type": "message_stop"}));
    typed(&events)
}

fn chat_completions(says: &Says) -> String {
    let Tokens { input, cache_read, output } = says.tokens;
    let chunk = |choices: Value, usage: Value| {
        json!({"id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT", "object": "chat.completion.chunk", "created": 1_741_569_952,
            "model": "gpt-4.1-2025-04-14", "system_fingerprint": "fp_44709d6fcb", "choices": choices, "usage": usage})
    };
    let choice = |delta: Value, finish: Value| {
        chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]), Value::Null)
    };
    let mut chunks = vec![choice(json!({"role": "assistant", "content": "", "refusal": null}), Value::Null)];
    let mut calls = 0;
    for piece in &says.pieces {
        match piece {
            Piece::Text(text) => {
                chunks.extend(halves(text).map(|half| choice(json!({"content": half}), Value::Null)));
            }
            // As servers of open models send it.
            Piece::Thinking(text, _) => {
                chunks.extend(halves(text).map(|half| choice(json!({"reasoning_content": half}), Value::Null)));
            }
            Piece::Call { id, name, arguments } => {
                let function = json!({"name": name, "arguments": ""});
                let begun = json!({"index": calls, "id": id, "type": "function", "function": function});
                chunks.push(choice(json!({"tool_calls": [begun]}), Value::Null));
                let more = |half| {
                    let call = json!({"index": calls, "function": {"arguments": half}});
                    choice(json!({"tool_calls": [call]}), Value::Null)
                };
                chunks.extend(halves(arguments).map(more));
                calls += 1;
            }
        }
    }
    let finish = match says.stop {
        Stop::Usual if says.has_calls() => "tool_calls",
        Stop::Usual => "stop",
        Stop::MaxTokens => "length",
        Stop::Refused => "content_filter",
    };
    chunks.push(choice(json!({}), finish.into()));
    let prompt = input + cache_read;
    let usage = json!({"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": cache_read, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0}});
    chunks.push(chunk(json!([]), usage));
    chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).chain(["data: [DONE]\n\n".to_owned()]).collect()
}

fn responses(says: &Says) -> String {
    let Tokens { input, cache_read, output } = says.tokens;
    let id = "resp_67c9fdcecf488190bdd9a0409de3a1ec07b8b0ad4e5eb654";
    let response = |status: &str, output: Value, usage: Value, details: Value| {
        json!({"id": id, "object": "response", "created_at": 1_741_487_325, "status": status, "error": null,
            "incomplete_details": details, "model": "gpt-4.1-2025-04-14", "output": output, "usage": usage})
    };
    let mut events = Vec::new();
    let mut push = |kind: &str, mut rest: Map<String, Value>| {
        let mut event =
            Map::from_iter([("type".to_owned(), kind.into()), ("sequence_number".to_owned(), events.len().into())]);
        event.append(&mut rest);
        events.push(Value::Object(event));
    };
    let members = |value: Value| value.as_object().cloned().unwrap();
    let begun = response("in_progress", json!([]), Value::Null, Value::Null);
    push("response.created", members(json!({"response": begun})));
    push("response.in_progress", members(json!({"response": begun})));
    let mut items = Vec::new();
    for (at, piece) in says.pieces.iter().enumerate() {
        let item_id = format!("item_{at:04}");
        let item = |status: &str, is_whole: bool| match piece {
            Piece::Text(text) => {
                let part = json!({"type": "output_text", "text": text, "annotations": []});
                let content = if is_whole { json!([part]) } else { json!([]) };
                json!({"id": item_id, "type": "message", "status": status, "role": "assistant", "content": content})
            }
            Piece::Thinking(text, sealed) => {
                let part = json!({"type": "summary_text", "text": text});
                let summary = if is_whole { json!([part]) } else { json!([]) };
                json!({"id": item_id, "type": "reasoning", "summary": summary, "encrypted_content": sealed})
            }
            Piece::Call { id, name, arguments } => {
                let arguments = if is_whole { arguments } else { "" };
                json!({"id": item_id, "type": "function_call", "status": status, "call_id": id, "name": name,
                    "arguments": arguments})
            }
        };
        push("response.output_item.added", members(json!({"output_index": at, "item": item("in_progress", false)})));
        let place = json!({"item_id": item_id, "output_index": at});
        let with = |more: Value| members(place.clone()).into_iter().chain(members(more)).collect();
        match piece {
            Piece::Text(text) => {
                let empty = json!({"type": "output_text", "text": "", "annotations": []});
                let whole = json!({"type": "output_text", "text": text, "annotations": []});
                push("response.content_part.added", with(json!({"content_index": 0, "part": empty})));
                for half in halves(text) {
                    push("response.output_text.delta", with(json!({"content_index": 0, "delta": half})));
                }
                push("response.output_text.done", with(json!({"content_index": 0, "text": text})));
                push("response.content_part.done", with(json!({"content_index": 0, "part": whole})));
            }
            Piece::Thinking(text, _) => {
                let whole = json!({"type": "summary_text", "text": text});
                let empty = json!({"type": "summary_text", "text": ""});
                push("response.reasoning_summary_part.added", with(json!({"summary_index": 0, "part": empty})));
                for half in halves(text) {
                    push("response.reasoning_summary_text.delta", with(json!({"summary_index": 0, "delta": half})));
                }
                push("response.reasoning_summary_text.done", with(json!({"summary_index": 0, "text": text})));
                push("response.reasoning_summary_part.done", with(json!({"summary_index": 0, "part": whole})));
            }
            Piece::Call { arguments, .. } => {
                for half in halves(arguments) {
                    push("response.function_call_arguments.delta", with(json!({"delta": half})));
                }
                push("response.function_call_arguments.done", with(json!({"arguments": arguments})));
            }
        }
        push("response.output_item.done", members(json!({"output_index": at, "item": item("completed", true)})));
        items.push(item("completed", true));
    }
    let (kind, status, details) = match says.stop {
        Stop::Usual => ("response.completed", "completed", Value::Null),
        Stop::MaxTokens => ("response.incomplete", "incomplete", json!({"reason": "max_output_tokens"})),
        Stop::Refused => ("response.incomplete", "incomplete", json!({"reason": "content_filter"})),
    };
    let all = input + cache_read;
    let usage = json!({"input_tokens": all, "input_tokens_details": {"cached_tokens": cache_read},
        "output_tokens": output, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": all + output});
    push(kind, members(json!({"response": response(status, items.into(), usage, details)})));
    typed(&events)
}

fn gemini(says: &Says) -> String {
    let Tokens { input, cache_read, output } = says.tokens;
    let prompt = input + cache_read;
    let usage = json!({"promptTokenCount": prompt, "cachedContentTokenCount": cache_read, "candidatesTokenCount": output,
        "totalTokenCount": prompt + output});
    let chunk = |parts: Value, finish: Option<&str>| {
        let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
        if let Some(finish) = finish {
            candidate["finishReason"] = finish.into();
        }
        json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-pro",
            "responseId": "mfB7aN2lC4bYnvgP2tWu6A4"})
    };
    let mut chunks = Vec::new();
    for piece in &says.pieces {
        match piece {
            Piece::Text(text) => chunks.extend(halves(text).map(|half| chunk(json!([{"text": half}]), None))),
            Piece::Thinking(text, _) => chunks.push(chunk(json!([{"text": text, "thought": true}]), None)),
            Piece::Call { name, arguments, .. } => {
                let arguments: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
                chunks.push(chunk(json!([{"functionCall": {"name": name, "args": arguments}}]), None));
            }
        }
    }
    let finish = match says.stop {
        Stop::Usual => "STOP",
        Stop::MaxTokens => "MAX_TOKENS",
        Stop::Refused => "SAFETY",
    };
    chunks.push(chunk(json!([{"text": ""}]), Some(finish)));
    // With carriage returns, as the real one.
    chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect()
}
