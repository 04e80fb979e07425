//! Google Gemini.

use super::{
    Decoder, ModelProtocol, incomplete_answer,
    parts::{self, count, images, result_text, unexpected},
};
use crate::{
    http::sse::SseEvent,
    models::{
        images::{ImageLimits, fitted},
        offer::{CallIdAllocator, ToolMapping},
        schema::schema_copy,
        settings::{ModelSettings, ProviderKind},
    },
};
use http::{HeaderMap, HeaderValue, header::InvalidHeaderValue};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use toolstead_domain::{
    Block, Image, Message, ModelError, ModelEvent, ModelRequest, OfferedTool, Role, SealedBlock, Secret, StopReason,
    TokenUsage, ToolArguments,
};

/// Protocol of Gemini.
#[derive(Debug)]
pub(super) struct Gemini;

/// Provider name that marks the sealed blocks of this protocol.
const SEAL: &str = "gemini";

/// Maximum length of a function name.
const MAX_NAME: usize = 64;

/// Limits of images ("Image understanding" in Google's documentation). A whole request has at most 20 MiB.
const IMAGES: ImageLimits = ImageLimits {
    media_types: &["image/png", "image/jpeg", "image/webp"],
    max_base64: 14 << 20,
    max_side: u32::MAX,
    many: usize::MAX,
    max_side_of_many: u32::MAX,
    max_images: 3_000,
};

/// Signature that newer models accept for a call that another model made (Gemini API, "Thought signatures").
const UNSIGNED: &str = "skip_thought_signature_validator";

/// Name of a call that cannot be parsed. No tool has this name.
const UNREADABLE_CALL: &str = "malformed_function_call";

/// Returns `true` if the character is allowed at this position: a letter or `_`, and after the first position also
/// digits, `.`, `:` and `-`.
fn is_of_name(place: usize, letter: char) -> bool {
    let is_first = letter.is_ascii_alphabetic() || letter == '_';
    is_first || (place > 0 && (letter.is_ascii_digit() || matches!(letter, '.' | ':' | '-')))
}

fn offer(tools: &[OfferedTool]) -> ToolMapping {
    ToolMapping::of(ProviderKind::Gemini, tools, is_of_name, MAX_NAME)
}

impl ModelProtocol for Gemini {
    fn path(&self, settings: &ModelSettings) -> String {
        let name = settings.model.strip_prefix("models/").unwrap_or(&settings.model);
        let is_plain =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~' | b'/' | b'@');
        let encoded: String = name
            .bytes()
            .map(|byte| if is_plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
            .collect();
        parts::path(settings, "/v1beta", &format!("/models/{encoded}:streamGenerateContent?alt=sse"))
    }

    fn authorize(&self, key: &Secret, headers: &mut HeaderMap) -> Result<(), InvalidHeaderValue> {
        let mut value = HeaderValue::from_str(key.expose())?;
        value.set_sensitive(true);
        headers.insert("x-goog-api-key", value);
        Ok(())
    }

    fn definitions(&self, tools: &[OfferedTool]) -> Vec<Value> {
        let offer = offer(tools);
        let definition = |tool: &OfferedTool| {
            json!({
                "name": offer.name(&tool.name),
                "description": tool.description,
                "parameters": schema_copy(ProviderKind::Gemini, &tool.input_schema),
            })
        };
        tools.iter().map(definition).collect()
    }

    fn body(&self, settings: &ModelSettings, request: &ModelRequest) -> Result<Vec<u8>, ModelError> {
        let mut body = Map::new();
        if !request.system.is_empty() {
            body.insert("systemInstruction".into(), json!({"parts": [{"text": request.system}]}));
        }
        body.insert("contents".into(), contents(settings, request).into());
        if !request.tools.is_empty() {
            body.insert("tools".into(), json!([{"functionDeclarations": self.definitions(&request.tools)}]));
        }
        let most = request.max_output_tokens.unwrap_or(settings.max_output_tokens);
        let mut generation = Map::from_iter([("maxOutputTokens".to_owned(), json!(most))]);
        if let Some(temperature) = settings.temperature {
            generation.insert("temperature".into(), json!(temperature));
        }
        if let Some(thinking) = thinking(settings) {
            generation.insert("thinkingConfig".into(), thinking);
        }
        body.insert("generationConfig".into(), generation.into());
        Ok(Value::from(body).to_string().into_bytes())
    }

    fn decoder(&self, request: &ModelRequest) -> Box<dyn Decoder> {
        let offer = offer(&request.tools);
        let names = request.tools.iter().map(|tool| offer.name(&tool.name).into_owned()).collect();
        Box::new(GeminiDecoder {
            offer,
            names,
            ids: CallIdAllocator::after(request),
            text: String::new(),
            thinking: String::new(),
            has_calls: false,
            stop: None,
            usage: TokenUsage::default(),
        })
    }
}

/// Returns the thinking configuration; `None` if the settings name neither a level nor a budget. Older models have a
/// token budget, newer ones a level.
fn thinking(settings: &ModelSettings) -> Option<Value> {
    // Gemini rejects a request for thoughts if thinking is disabled.
    let thinks = settings.reasoning_effort.is_some() || settings.thinking_tokens != Some(0);
    let mut thinking = Map::new();
    if thinks {
        thinking.insert("includeThoughts".into(), json!(true));
    }
    if let Some(effort) = &settings.reasoning_effort {
        thinking.insert("thinkingLevel".into(), json!(effort));
    } else {
        thinking.insert("thinkingBudget".into(), json!(settings.thinking_tokens?));
    }
    Some(thinking.into())
}

/// Returns the conversation. Consecutive messages of one role are merged.
fn contents(settings: &ModelSettings, request: &ModelRequest) -> Vec<Value> {
    let offer = offer(&request.tools);
    let is_old = ["gemini-1", "gemini-2"].iter().any(|name| settings.model.contains(name));
    let mut contents: Vec<(Role, Vec<Value>)> = Vec::new();
    // Ids assigned by Gemini. Only these are sent back.
    let mut given: BTreeMap<&str, String> = BTreeMap::new();
    let said = fitted(&request.messages, settings.takes_images.then_some(&IMAGES), &request.tools);
    for message in said.iter() {
        let parts = match message.role {
            Role::User => said_by_user(message, &offer, &given),
            Role::Assistant => {
                let calls = message.tool_uses();
                given.extend(calls.filter_map(|call| {
                    let id = opened(call.sealed.as_ref()?)?.get("id")?.as_str()?.to_owned();
                    Some((call.id.as_str(), id))
                }));
                said_by_model(message, &offer, !is_old)
            }
        };
        match contents.last_mut() {
            _ if parts.is_empty() => {}
            Some((role, before)) if *role == message.role => before.extend(parts),
            _ => contents.push((message.role, parts)),
        }
    }
    let word = |role| if role == Role::User { "user" } else { "model" };
    contents.into_iter().map(|(role, parts)| json!({"role": word(role), "parts": parts})).collect()
}

fn said_by_user(message: &Message, offer: &ToolMapping, given: &BTreeMap<&str, String>) -> Vec<Value> {
    let part = |image: &Image| json!({"inlineData": {"mimeType": image.media_type, "data": *image.data}});
    let (mut results, mut parts) = (Vec::new(), Vec::new());
    for block in &message.blocks {
        match block {
            Block::ToolResult(result) => {
                let word = if result.is_error { "error" } else { "output" };
                let mut response = Map::new();
                if let Some(id) = given.get(result.id.as_str()) {
                    response.insert("id".into(), json!(id));
                }
                response.insert("name".into(), json!(offer.name(&result.name)));
                response.insert("response".into(), json!({word: result_text(&result.content, false)}));
                results.push(json!({"functionResponse": response}));
                let seen: Vec<Value> = images(&result.content).map(part).collect();
                if !seen.is_empty() {
                    parts.push(json!({"text": format!("Images of the result of `{}`:", result.name)}));
                    parts.extend(seen);
                }
            }
            Block::Text { text } => parts.push(json!({"text": text})),
            Block::Image(image) => parts.push(part(image)),
            _ => {}
        }
    }
    results.extend(parts);
    results
}

fn said_by_model(message: &Message, offer: &ToolMapping, signs: bool) -> Vec<Value> {
    let mut parts = Vec::new();
    // Signature of the text that follows.
    let mut signature = Map::new();
    let mut is_first_call = true;
    for block in &message.blocks {
        match block {
            Block::Text { text } if !text.is_empty() => {
                let mut part = Map::from_iter([("text".to_owned(), json!(text))]);
                part.extend(std::mem::take(&mut signature));
                parts.push(part.into());
            }
            Block::ToolUse(call) => {
                let mut sealed = call.sealed.as_ref().and_then(opened).unwrap_or_default();
                let mut function_call = Map::new();
                function_call.extend(sealed.shift_remove("id").map(|id| ("id".to_owned(), id)));
                function_call.insert("name".into(), json!(offer.name(&call.name)));
                function_call.insert("args".into(), offer.arguments(call).into_owned().into());
                let mut part = Map::from_iter([("functionCall".to_owned(), function_call.into())]);
                part.extend(sealed);
                if std::mem::take(&mut is_first_call) && signs && !part.contains_key("thoughtSignature") {
                    part.insert("thoughtSignature".into(), UNSIGNED.into());
                }
                parts.push(part.into());
            }
            Block::Sealed(sealed) => match opened(sealed) {
                // This part is sent on its own.
                Some(part) if part.contains_key("text") => parts.push(part.into()),
                Some(part) => signature = part,
                None => {}
            },
            _ => {}
        }
    }
    parts
}

/// Returns the sealed members if the block belongs to this protocol.
fn opened(sealed: &SealedBlock) -> Option<Map<String, Value>> {
    if sealed.provider == SEAL { serde_json::from_str(&sealed.raw).ok() } else { None }
}

/// Decoder of an answer.
struct GeminiDecoder {
    offer: ToolMapping,
    /// Gemini's names of the offered tools.
    names: Vec<String>,
    ids: CallIdAllocator,
    text: String,
    /// Thinking that is not part of a block yet.
    thinking: String,
    has_calls: bool,
    stop: Option<StopReason>,
    usage: TokenUsage,
}

impl GeminiDecoder {
    fn document(&mut self, document: &Value, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if let Value::Array(chunks) = document {
            return chunks.iter().try_for_each(|chunk| self.document(chunk, events));
        }
        if document.get("error").is_some_and(|error| !error.is_null()) {
            return Err(parts::error(document));
        }
        if let Some(usage) = document.get("usageMetadata") {
            self.usage = read_usage(usage);
        }
        if document.pointer("/promptFeedback/blockReason").is_some_and(Value::is_string) {
            self.stop = Some(StopReason::Refused);
        }
        let Some(candidate) = document.pointer("/candidates/0") else { return Ok(()) };
        for part in candidate.pointer("/content/parts").and_then(Value::as_array).into_iter().flatten() {
            self.part(part, events);
        }
        if let Some(reason) = candidate.get("finishReason").and_then(Value::as_str) {
            self.stop = Some(match reason {
                "MAX_TOKENS" => StopReason::MaxTokens,
                "STOP" | "FINISH_REASON_UNSPECIFIED" => StopReason::EndTurn,
                "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => {
                    self.unreadable_call(candidate, reason, events);
                    StopReason::ToolUse
                }
                _ => StopReason::Refused,
            });
        }
        Ok(())
    }

    fn part(&mut self, part: &Value, events: &mut Vec<ModelEvent>) {
        let text = part.get("text").and_then(Value::as_str);
        let signature = part.get("thoughtSignature").filter(|signature| signature.is_string());
        if let Some(call) = part.get("functionCall") {
            self.push_text_block(events);
            self.call(call, signature, events);
            return;
        }
        if part.get("thought") == Some(&Value::Bool(true)) {
            if let Some(thought) = text.filter(|thought| !thought.is_empty()) {
                self.thinking.push_str(thought);
                events.push(ModelEvent::ThinkingDelta(thought.to_owned()));
            }
            // A signed thought is sent back as a signed part without its text.
            if let Some(signature) = signature {
                self.push_text_block(events);
                let sealed = self.sealed(&json!({"text": "", "thoughtSignature": signature}));
                events.push(ModelEvent::Block(Block::Sealed(sealed)));
            }
            return;
        }
        let text = text.unwrap_or("");
        if !text.is_empty() {
            events.push(ModelEvent::TextDelta(text.to_owned()));
        }
        match signature {
            None => self.text.push_str(text),
            // A signed part is not merged with others.
            Some(signature) => {
                self.push_text_block(events);
                if text.is_empty() {
                    let sealed = self.sealed(&json!({"text": "", "thoughtSignature": signature}));
                    events.push(ModelEvent::Block(Block::Sealed(sealed)));
                } else {
                    let sealed = self.sealed(&json!({"thoughtSignature": signature}));
                    events.push(ModelEvent::Block(Block::Sealed(sealed)));
                    events.push(ModelEvent::Block(Block::text(text)));
                }
            }
        }
    }

    fn call(&mut self, call: &Value, signature: Option<&Value>, events: &mut Vec<ModelEvent>) {
        let text = |name: &str| call.get(name).and_then(Value::as_str).unwrap_or("");
        let (name, id) = (text("name"), text("id"));
        let mut members = Map::new();
        if !id.is_empty() {
            members.insert("id".into(), json!(id));
        }
        members.extend(signature.map(|signature| ("thoughtSignature".to_owned(), signature.clone())));
        let sealed = (!members.is_empty()).then(|| self.sealed(&members.into()));
        let arguments = match call.get("args") {
            Some(Value::Object(arguments)) => ToolArguments::Object(arguments.clone()),
            None | Some(Value::Null) => ToolArguments::Object(Map::new()),
            Some(other) => ToolArguments::Malformed(other.to_string()),
        };
        self.push_call(id, name, arguments, sealed, events);
    }

    fn push_call(
        &mut self,
        id: &str,
        name: &str,
        arguments: ToolArguments,
        sealed: Option<SealedBlock>,
        events: &mut Vec<ModelEvent>,
    ) {
        self.has_calls = true;
        let call = self.offer.call(self.ids.take(id), name, arguments, sealed);
        events.push(ModelEvent::CallBegun { name: call.name.clone() });
        events.push(ModelEvent::Block(Block::ToolUse(call)));
    }

    /// Reports a call that Gemini could not generate. Its result describes the error to the model, which retries the
    /// call.
    fn unreadable_call(&mut self, candidate: &Value, reason: &str, events: &mut Vec<ModelEvent>) {
        let message = candidate.get("finishMessage").and_then(Value::as_str).unwrap_or(reason);
        let named = self.names.iter().filter(|name| message.contains(name.as_str())).max_by_key(|name| name.len());
        let name = named.cloned().unwrap_or_else(|| UNREADABLE_CALL.to_owned());
        let arguments = ToolArguments::Malformed(message.chars().take(2_000).collect());
        self.push_text_block(events);
        self.push_call("", &name, arguments, None, events);
    }

    fn push_text_block(&mut self, events: &mut Vec<ModelEvent>) {
        if !self.text.is_empty() {
            events.push(ModelEvent::Block(Block::text(std::mem::take(&mut self.text))));
        }
    }

    fn sealed(&mut self, members: &Value) -> SealedBlock {
        let shown = Some(std::mem::take(&mut self.thinking)).filter(|shown| !shown.is_empty());
        SealedBlock { provider: SEAL.into(), raw: members.to_string(), shown }
    }

    fn finish(&mut self) -> Result<Vec<ModelEvent>, ModelError> {
        let stop = match self.stop {
            None => return Err(incomplete_answer()),
            Some(StopReason::EndTurn) if self.has_calls => StopReason::ToolUse,
            Some(stop) => stop,
        };
        let mut events = Vec::new();
        self.push_text_block(&mut events);
        events.push(ModelEvent::Finished { stop, usage: self.usage });
        Ok(events)
    }
}

fn read_usage(usage: &Value) -> TokenUsage {
    let of = |name: &str| count(usage, &format!("/{name}"));
    let input = of("promptTokenCount").saturating_add(of("toolUsePromptTokenCount"));
    let output = of("candidatesTokenCount").saturating_add(of("thoughtsTokenCount"));
    parts::usage(input, of("cachedContentTokenCount"), 0, output)
}

impl Decoder for GeminiDecoder {
    fn event(&mut self, event: &SseEvent) -> Result<Vec<ModelEvent>, ModelError> {
        let document: Value =
            serde_json::from_slice(&event.data).map_err(|_| unexpected("an event that is not JSON"))?;
        let mut events = Vec::new();
        self.document(&document, &mut events)?;
        Ok(events)
    }

    fn end(&mut self) -> Result<Vec<ModelEvent>, ModelError> {
        self.finish()
    }

    fn decode_document(&mut self, body: &[u8]) -> Result<Vec<ModelEvent>, ModelError> {
        let document: Value = serde_json::from_slice(body).map_err(|_| unexpected("an answer that is not JSON"))?;
        let mut events = Vec::new();
        self.document(&document, &mut events)?;
        if self.stop.is_none() {
            return Err(unexpected("an answer without `candidates`"));
        }
        events.extend(self.finish()?);
        Ok(events)
    }
}

#[cfg(test)]
mod tests;
