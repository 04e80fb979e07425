//! OpenAI Chat Completions, as implemented by OpenAI, OpenRouter, Ollama, vLLM and most other servers.

use super::{
    Decoder, ModelProtocol, incomplete_answer,
    openai::{self, data_url},
    parts::{self, count, images, result_text, unexpected},
};
use crate::{
    http::sse::SseEvent,
    models::{
        images::fitted,
        offer::{CallIdAllocator, ToolMapping},
        schema::schema_copy,
        settings::{ModelSettings, ProviderKind},
    },
};
use http::{HeaderMap, header::InvalidHeaderValue};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use toolstead_domain::{
    Block, Image, Message, ModelError, ModelEvent, ModelRequest, OfferedTool, Role, SealedBlock, Secret, StopReason,
    TokenUsage, ToolArguments,
};

/// Protocol of Chat Completions.
#[derive(Debug)]
pub(super) struct OpenAiChat;

/// Provider name that marks the sealed blocks of this protocol.
const SEAL: &str = "openai";

/// Members in which servers stream thinking, the most common first.
const THINKING: [&str; 2] = ["reasoning_content", "reasoning"];

/// Maximum length of a function description that OpenAI accepts, in characters.
const MAX_DESCRIPTION: usize = 1024;

/// Maximum number of tool calls of an answer.
const MAX_CALLS: usize = 256;

fn offer(tools: &[OfferedTool]) -> ToolMapping {
    ToolMapping::of(ProviderKind::OpenAi, tools, openai::is_of_name, openai::MAX_NAME)
}

impl ModelProtocol for OpenAiChat {
    fn path(&self, settings: &ModelSettings) -> String {
        parts::path(settings, "/v1", "/chat/completions")
    }

    fn authorize(&self, key: &Secret, headers: &mut HeaderMap) -> Result<(), InvalidHeaderValue> {
        openai::authorize(key, headers)
    }

    fn definitions(&self, tools: &[OfferedTool]) -> Vec<Value> {
        let offer = offer(tools);
        let definition = |tool: &OfferedTool| {
            let mut parameters = schema_copy(ProviderKind::OpenAi, &tool.input_schema);
            let (description, rest) = beginning(&tool.description);
            if let (Some(rest), Value::Object(members)) = (rest, &mut parameters) {
                let of_schema = members.get("description").and_then(Value::as_str).unwrap_or("");
                let whole = format!("{rest}\n\n{of_schema}");
                members.insert("description".into(), whole.trim_end().into());
            }
            // Without `strict`, which would make every member required.
            json!({"type": "function", "function": {
                "name": offer.name(&tool.name), "description": description, "parameters": parameters,
            }})
        };
        tools.iter().map(definition).collect()
    }

    fn body(&self, settings: &ModelSettings, request: &ModelRequest) -> Result<Vec<u8>, ModelError> {
        let is_openai = openai::is_openai(settings);
        let mut body = Map::new();
        body.insert("model".into(), json!(settings.model));
        body.insert("messages".into(), messages(settings, request).into());
        if !request.tools.is_empty() {
            body.insert("tools".into(), self.definitions(&request.tools).into());
        }
        body.insert("stream".into(), json!(true));
        body.insert("stream_options".into(), json!({"include_usage": true}));
        // OpenAI has replaced the older name, but most other servers know only that one.
        let most = if is_openai { "max_completion_tokens" } else { "max_tokens" };
        body.insert(most.into(), json!(request.max_output_tokens.unwrap_or(settings.max_output_tokens)));
        if let Some(temperature) = settings.temperature {
            body.insert("temperature".into(), json!(temperature));
        }
        if let Some(effort) = &settings.reasoning_effort {
            body.insert("reasoning_effort".into(), json!(effort));
        }
        if let Some(key) = request.cache_key.as_ref().filter(|_| is_openai) {
            body.insert("prompt_cache_key".into(), json!(**key));
        }
        Ok(Value::from(body).to_string().into_bytes())
    }

    fn decoder(&self, request: &ModelRequest) -> Box<dyn Decoder> {
        Box::new(ChatDecoder::new(offer(&request.tools), CallIdAllocator::after(request)))
    }
}

/// Returns the beginning of a description, and the rest if it is longer than OpenAI accepts.
fn beginning(description: &str) -> (Cow<'_, str>, Option<&str>) {
    const GOES_ON: &str = " … (Continued in the description of the parameters.)";
    if description.chars().count() <= MAX_DESCRIPTION {
        return (description.into(), None);
    }
    let room = MAX_DESCRIPTION - GOES_ON.chars().count();
    let most = description.char_indices().nth(room).map_or(description.len(), |(at, _)| at);
    let at = description[..most].rfind(char::is_whitespace).filter(|at| *at > 0).unwrap_or(most);
    (format!("{}{GOES_ON}", &description[..at]).into(), Some(description[at..].trim()))
}

fn messages(settings: &ModelSettings, request: &ModelRequest) -> Vec<Value> {
    let offer = offer(&request.tools);
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(json!({"role": "system", "content": request.system}));
    }
    // Thinking is sent back only within its turn, where some servers require it. Earlier thinking would only confuse
    // the model.
    let is_asked = |message: &Message| {
        message.role == Role::User && message.blocks.iter().any(|block| matches!(block, Block::Text { .. }))
    };
    let said = fitted(&request.messages, settings.takes_images.then_some(&openai::IMAGES), &request.tools);
    let turn = said.iter().rposition(is_asked).unwrap_or(0);
    for (place, message) in said.iter().enumerate() {
        match message.role {
            Role::User => say_as_user(message, &mut messages),
            Role::Assistant => messages.extend(said_by_model(message, &offer, place > turn)),
        }
    }
    messages
}

/// Adds the results of calls, each as a message, then all other parts as a user message. Only the latter may have
/// images.
fn say_as_user(message: &Message, messages: &mut Vec<Value>) {
    let mut parts = Vec::new();
    let part = |image: &Image| json!({"type": "image_url", "image_url": {"url": data_url(image)}});
    for block in &message.blocks {
        match block {
            Block::ToolResult(result) => {
                let text = result_text(&result.content, result.is_error);
                messages.push(json!({"role": "tool", "tool_call_id": result.id, "content": text}));
                let seen: Vec<Value> = images(&result.content).map(part).collect();
                if !seen.is_empty() {
                    let text = format!("Images of the result of `{}` ({}):", result.name, result.id);
                    parts.push(json!({"type": "text", "text": text}));
                    parts.extend(seen);
                }
            }
            Block::Text { text } => parts.push(json!({"type": "text", "text": text})),
            Block::Image(image) => parts.push(part(image)),
            _ => {}
        }
    }
    if parts.is_empty() {
        return;
    }
    // Many servers accept only plain text.
    let texts: Option<Vec<&str>> = parts.iter().map(|part| part.get("text")?.as_str()).collect();
    let content = texts.map_or(Value::from(parts.clone()), |texts| texts.join("\n\n").into());
    messages.push(json!({"role": "user", "content": content}));
}

fn said_by_model(message: &Message, offer: &ToolMapping, is_of_turn: bool) -> Option<Value> {
    let mut said = Map::from_iter([("role".to_owned(), json!("assistant")), ("content".to_owned(), Value::Null)]);
    let (mut text, mut calls) = (String::new(), Vec::new());
    for block in &message.blocks {
        match block {
            Block::Text { text: more } => text.push_str(more),
            Block::ToolUse(call) => {
                let arguments = Value::from(offer.arguments(call).into_owned()).to_string();
                let mut message_call = Map::from_iter([
                    ("id".to_owned(), json!(call.id)),
                    ("type".to_owned(), json!("function")),
                    ("function".to_owned(), json!({"name": offer.name(&call.name), "arguments": arguments})),
                ]);
                message_call.extend(call.sealed.as_ref().and_then(opened).unwrap_or_default());
                calls.push(Value::from(message_call));
            }
            Block::Sealed(sealed) if is_of_turn => said.extend(opened(sealed).unwrap_or_default()),
            _ => {}
        }
    }
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    if !text.is_empty() {
        said.insert("content".into(), text.into());
    }
    if !calls.is_empty() {
        said.insert("tool_calls".into(), calls.into());
    }
    Some(said.into())
}

/// Returns the sealed members if the block belongs to this protocol.
fn opened(sealed: &SealedBlock) -> Option<Map<String, Value>> {
    if sealed.provider == SEAL { serde_json::from_str(&sealed.raw).ok() } else { None }
}

/// Call being received.
#[derive(Debug, Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    braces: BraceCounter,
    /// Member that the server expects back with the call.
    extra: Option<Value>,
}

/// Brace counter of a JSON object that arrives in pieces. Each byte is read once, regardless of the number of pieces.
#[derive(Debug, Default)]
struct BraceCounter {
    open: usize,
    has_begun: bool,
    is_in_text: bool,
    is_escaped: bool,
}

impl BraceCounter {
    fn take(&mut self, piece: &str) {
        for byte in piece.bytes() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.is_in_text => self.is_escaped = true,
                b'"' => self.is_in_text = !self.is_in_text,
                b'{' if !self.is_in_text => {
                    self.open += 1;
                    self.has_begun = true;
                }
                b'}' if !self.is_in_text => self.open = self.open.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// Returns `true` if the object is complete.
    fn are_closed(&self) -> bool {
        self.has_begun && self.open == 0 && !self.is_in_text
    }
}

/// Decoder of an answer.
struct ChatDecoder {
    offer: ToolMapping,
    ids: CallIdAllocator,
    text: String,
    thinking: String,
    /// Name of the member that contains the thinking.
    thinks_in: Option<&'static str>,
    calls: Vec<PartialCall>,
    reason: Option<String>,
    is_refusal: bool,
    usage: TokenUsage,
    is_over: bool,
}

impl ChatDecoder {
    fn new(offer: ToolMapping, ids: CallIdAllocator) -> Self {
        Self {
            offer,
            ids,
            text: String::new(),
            thinking: String::new(),
            thinks_in: None,
            calls: Vec::new(),
            reason: None,
            is_refusal: false,
            usage: TokenUsage::default(),
            is_over: false,
        }
    }

    fn chunk(&mut self, chunk: &Value) -> Result<Vec<ModelEvent>, ModelError> {
        let is_error = |value: &Value| value.get("error").is_some_and(|error| !error.is_null());
        if is_error(chunk) {
            return Err(parts::error(chunk));
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            self.usage = read_usage(usage);
        }
        let choices = chunk.get("choices").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let mut events = Vec::new();
        for choice in choices.iter().filter(|choice| count(choice, "/index") == 0) {
            if is_error(choice) {
                return Err(parts::error(choice));
            }
            // A non-streamed answer has the same content under another name.
            if let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) {
                self.delta(delta, &mut events)?;
            }
            if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
                self.reason = Some(reason.to_owned());
            }
        }
        Ok(events)
    }

    fn delta(&mut self, delta: &Value, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let text_of = |name: &str| delta.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        // Some servers send the same thinking under both names.
        let known = |name: &&'static str| self.thinks_in.is_none_or(|known| known == *name);
        let thought = THINKING.into_iter().filter(known).find_map(|name| Some((name, text_of(name)?)));
        if let Some((name, thought)) = thought {
            self.thinks_in = Some(name);
            self.push_thinking(thought, events);
        }
        match delta.get("content") {
            Some(Value::String(text)) => self.push_text(text, events),
            Some(Value::Array(parts)) => {
                for part in parts {
                    if let Some(text) = part.get("text").and_then(Value::as_str) {
                        self.push_text(text, events);
                    }
                    for thought in part.get("thinking").and_then(Value::as_array).into_iter().flatten() {
                        self.push_thinking(thought.get("text").and_then(Value::as_str).unwrap_or(""), events);
                    }
                }
            }
            _ => {}
        }
        if let Some(refusal) = text_of("refusal") {
            self.is_refusal = true;
            self.push_text(refusal, events);
        }
        for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.call(call, events)?;
        }
        Ok(())
    }

    fn push_text(&mut self, text: &str, events: &mut Vec<ModelEvent>) {
        if !text.is_empty() {
            self.text.push_str(text);
            events.push(ModelEvent::TextDelta(text.to_owned()));
        }
    }

    fn push_thinking(&mut self, thought: &str, events: &mut Vec<ModelEvent>) {
        if !thought.is_empty() {
            self.thinking.push_str(thought);
            events.push(ModelEvent::ThinkingDelta(thought.to_owned()));
        }
    }

    fn call(&mut self, piece: &Value, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let text = |pointer: &str| piece.pointer(pointer).and_then(Value::as_str).unwrap_or("");
        let (index, id, name) = (piece.get("index").and_then(Value::as_u64), text("/id"), text("/function/name"));
        let known = self.continued(index, id, name);
        if known.is_none() && self.calls.len() == MAX_CALLS {
            return Err(unexpected(&format!("more than {MAX_CALLS} calls in one answer")));
        }
        let at = known.unwrap_or_else(|| {
            self.calls.push(PartialCall { index, ..PartialCall::default() });
            self.calls.len() - 1
        });
        let call = &mut self.calls[at];
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        if call.name.is_empty() && !name.is_empty() {
            name.clone_into(&mut call.name);
            events.push(ModelEvent::CallBegun { name: self.offer.tool(name) });
        }
        match piece.pointer("/function/arguments") {
            Some(Value::String(more)) => {
                call.braces.take(more);
                call.arguments.push_str(more);
            }
            Some(whole @ Value::Object(_)) => {
                call.arguments = whole.to_string();
                call.braces = BraceCounter { has_begun: true, ..BraceCounter::default() };
            }
            _ => {}
        }
        if let Some(extra) = piece.get("extra_content").filter(|extra| !extra.is_null()) {
            call.extra = Some(json!({"extra_content": extra}));
        }
        Ok(())
    }

    /// Returns the position in `calls` of the call that a piece continues; `None` if it begins a call. Servers number
    /// and name calls differently: some send one index for all calls, some none, some no ids, some repeat the name and
    /// id in every piece.
    fn continued(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let at = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index),
            None if !id.is_empty() => self.calls.iter().rposition(|call| call.id == id),
            None => self.calls.len().checked_sub(1),
        }?;
        let call = &self.calls[at];
        let is_other = !id.is_empty() && !call.id.is_empty() && call.id != id;
        let begins_again = !name.is_empty() && !call.name.is_empty() && (id.is_empty() || call.id.is_empty());
        let is_over = begins_again && call.braces.are_closed();
        (!is_other && !is_over).then_some(at)
    }

    fn finish(&mut self) -> Vec<ModelEvent> {
        self.is_over = true;
        let mut events = Vec::new();
        let calls = std::mem::take(&mut self.calls);
        let stop = match self.reason.as_deref() {
            Some("length" | "max_tokens") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::Refused,
            _ if self.is_refusal => StopReason::Refused,
            // Some servers report `stop` even with calls.
            _ if calls.is_empty() => StopReason::EndTurn,
            _ => StopReason::ToolUse,
        };
        if let Some(name) = self.thinks_in.filter(|_| !calls.is_empty() && stop == StopReason::ToolUse) {
            let raw = json!({name: self.thinking}).to_string();
            let shown = Some(std::mem::take(&mut self.thinking));
            events.push(Block::Sealed(SealedBlock { provider: SEAL.into(), raw, shown }));
        }
        if !self.text.is_empty() {
            events.push(Block::text(std::mem::take(&mut self.text)));
        }
        let last = calls.len().saturating_sub(1);
        for (place, call) in calls.into_iter().enumerate() {
            let arguments = ToolArguments::parse(&call.arguments);
            let is_whole = match stop {
                StopReason::MaxTokens => {
                    matches!(arguments, ToolArguments::Object(_)) && (place < last || !call.arguments.trim().is_empty())
                }
                stop => stop == StopReason::ToolUse,
            };
            if is_whole {
                let extra = call.extra.map(|extra| extra.to_string());
                let sealed = extra.map(|raw| SealedBlock { provider: SEAL.into(), raw, shown: None });
                let id = self.ids.take(&call.id);
                events.push(Block::ToolUse(self.offer.call(id, &call.name, arguments, sealed)));
            }
        }
        let blocks = events.into_iter().map(ModelEvent::Block);
        blocks.chain([ModelEvent::Finished { stop, usage: self.usage }]).collect()
    }
}

fn read_usage(usage: &Value) -> TokenUsage {
    let (input, output) = (count(usage, "/prompt_tokens"), count(usage, "/completion_tokens"));
    let read = count(usage, "/prompt_tokens_details/cached_tokens").max(count(usage, "/prompt_cache_hit_tokens"));
    let write = count(usage, "/prompt_tokens_details/cache_write_tokens");
    // Some servers count reasoning separately from the answer, which only the total shows.
    let reasoning = count(usage, "/completion_tokens_details/reasoning_tokens");
    let is_beside =
        reasoning > 0 && count(usage, "/total_tokens") == input.saturating_add(output).saturating_add(reasoning);
    let output = if is_beside { output.saturating_add(reasoning) } else { output };
    parts::usage(input, read, write, output)
}

impl Decoder for ChatDecoder {
    fn event(&mut self, event: &SseEvent) -> Result<Vec<ModelEvent>, ModelError> {
        if self.is_over {
            return Ok(Vec::new());
        }
        if event.data.trim_ascii() == b"[DONE]" {
            return Ok(self.finish());
        }
        let chunk: Value = serde_json::from_slice(&event.data).map_err(|_| unexpected("an event that is not JSON"))?;
        self.chunk(&chunk)
    }

    fn end(&mut self) -> Result<Vec<ModelEvent>, ModelError> {
        match (self.is_over, &self.reason) {
            (true, _) => Ok(Vec::new()),
            // Some servers omit the last event.
            (false, Some(_)) => Ok(self.finish()),
            (false, None) => Err(incomplete_answer()),
        }
    }

    fn decode_document(&mut self, body: &[u8]) -> Result<Vec<ModelEvent>, ModelError> {
        let answer: Value = serde_json::from_slice(body).map_err(|_| unexpected("an answer that is not JSON"))?;
        let mut events = self.chunk(&answer)?;
        if self.reason.is_none() && self.text.is_empty() && self.calls.is_empty() {
            return Err(unexpected("an answer without `choices`"));
        }
        events.extend(self.finish());
        Ok(events)
    }
}

#[cfg(test)]
mod tests;
