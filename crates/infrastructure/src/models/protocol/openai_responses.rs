//! OpenAI Responses. The provider stores nothing: reasoning is received encrypted and sent back unchanged.

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
use serde::{Deserialize, Serialize};
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};
use std::collections::BTreeMap;
use toolstead_domain::{
    Block, Image, Message, ModelError, ModelEvent, ModelRequest, OfferedTool, Role, SealedBlock, Secret, StopReason,
    TokenUsage, ToolArguments, ToolResultBlock,
};

/// Protocol of Responses.
#[derive(Debug)]
pub(super) struct OpenAiResponses;

/// Provider name that marks the sealed blocks of this protocol.
const SEAL: &str = "openai_responses";

/// Returns `true` if the model reasons. OpenAI's models that do not would reject a request for reasoning; all others
/// are assumed to do so.
fn reasons(settings: &ModelSettings) -> bool {
    let name = settings.model.rsplit('/').next().unwrap_or("");
    let name = name.strip_prefix("ft:").unwrap_or(name);
    let does_not = ["gpt-3", "gpt-4", "chatgpt", "gpt-5-chat"].iter().any(|known| name.starts_with(known));
    settings.reasoning_effort.is_some() || !does_not
}

fn offer(tools: &[OfferedTool]) -> ToolMapping {
    ToolMapping::of(ProviderKind::OpenAiResponses, tools, openai::is_of_name, openai::MAX_NAME)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    input: Vec<Box<RawValue>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'a [&'a str],
    max_output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
}

impl ModelProtocol for OpenAiResponses {
    fn path(&self, settings: &ModelSettings) -> String {
        parts::path(settings, "/v1", "/responses")
    }

    fn authorize(&self, key: &Secret, headers: &mut HeaderMap) -> Result<(), InvalidHeaderValue> {
        openai::authorize(key, headers)
    }

    fn definitions(&self, tools: &[OfferedTool]) -> Vec<Value> {
        let offer = offer(tools);
        let definition = |tool: &OfferedTool| {
            // Functions are strict by default, which would make every member required.
            json!({
                "type": "function",
                "name": offer.name(&tool.name),
                "description": tool.description,
                "parameters": schema_copy(ProviderKind::OpenAiResponses, &tool.input_schema),
                "strict": false,
            })
        };
        tools.iter().map(definition).collect()
    }

    fn body(&self, settings: &ModelSettings, request: &ModelRequest) -> Result<Vec<u8>, ModelError> {
        let body = Body {
            model: &settings.model,
            instructions: &request.system,
            input: input(settings, request)?,
            tools: self.definitions(&request.tools),
            stream: true,
            store: false,
            include: if reasons(settings) { &["reasoning.encrypted_content"] } else { &[] },
            max_output_tokens: request.max_output_tokens.unwrap_or(settings.max_output_tokens),
            reasoning: settings.reasoning_effort.as_ref().map(|effort| json!({"effort": effort, "summary": "auto"})),
            temperature: settings.temperature,
            prompt_cache_key: request.cache_key.as_deref(),
        };
        serde_json::to_vec(&body).map_err(serialize_error)
    }

    fn decoder(&self, request: &ModelRequest) -> Box<dyn Decoder> {
        Box::new(ResponsesDecoder {
            offer: offer(&request.tools),
            ids: CallIdAllocator::after(request),
            arguments: BTreeMap::new(),
            summaries: 0,
            has_items: false,
            has_calls: false,
            is_refusal: false,
            is_over: false,
        })
    }
}

fn serialize_error(error: serde_json::Error) -> ModelError {
    ModelError::Refused { status: None, message: format!("the request cannot be written: {error}") }
}

fn input(settings: &ModelSettings, request: &ModelRequest) -> Result<Vec<Box<RawValue>>, ModelError> {
    let offer = offer(&request.tools);
    let mut input = Vec::new();
    let limits = settings.takes_images.then_some(&openai::IMAGES);
    for message in fitted(&request.messages, limits, &request.tools).iter() {
        match message.role {
            Role::User => push_user_items(message, &mut input)?,
            Role::Assistant => push_model_items(message, &offer, &mut input)?,
        }
    }
    Ok(input)
}

fn item(value: &Value) -> Result<Box<RawValue>, ModelError> {
    to_raw_value(value).map_err(serialize_error)
}

fn image_part(image: &Image) -> Value {
    json!({"type": "input_image", "image_url": data_url(image), "detail": "auto"})
}

fn push_user_items(message: &Message, input: &mut Vec<Box<RawValue>>) -> Result<(), ModelError> {
    let mut parts = Vec::new();
    for block in &message.blocks {
        match block {
            Block::ToolResult(result) => {
                let output = output(result);
                input.push(item(&json!({"type": "function_call_output", "call_id": result.id, "output": output}))?);
            }
            Block::Text { text } => parts.push(json!({"type": "input_text", "text": text})),
            Block::Image(image) => parts.push(image_part(image)),
            _ => {}
        }
    }
    if !parts.is_empty() {
        input.push(item(&json!({"type": "message", "role": "user", "content": parts}))?);
    }
    Ok(())
}

/// Returns the output of a call: a string, or a list if it has images.
fn output(result: &ToolResultBlock) -> Value {
    let text = result_text(&result.content, result.is_error);
    let seen: Vec<Value> = images(&result.content).map(image_part).collect();
    if seen.is_empty() {
        return text.into();
    }
    let text = (!text.is_empty()).then(|| json!({"type": "input_text", "text": text}));
    text.into_iter().chain(seen).collect()
}

fn push_model_items(message: &Message, offer: &ToolMapping, input: &mut Vec<Box<RawValue>>) -> Result<(), ModelError> {
    // Reasoning must be followed by its outcome.
    let is_outcome = |block: &Block| matches!(block, Block::ToolUse(_)) || is_nonempty_text(block);
    let sent_count = message.blocks.iter().rposition(is_outcome).map_or(0, |last| last + 1);
    for block in &message.blocks[..sent_count] {
        match block {
            Block::Text { text } if is_nonempty_text(block) => {
                input.push(item(&json!({"type": "message", "role": "assistant", "content": text}))?);
            }
            Block::ToolUse(call) => {
                let arguments = Value::from(offer.arguments(call).into_owned()).to_string();
                let name = offer.name(&call.name);
                let call = json!({"type": "function_call", "call_id": call.id, "name": name, "arguments": arguments});
                input.push(item(&call)?);
            }
            Block::Sealed(sealed) if sealed.provider == SEAL => {
                input.push(RawValue::from_string(sealed.raw.clone()).map_err(serialize_error)?);
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_nonempty_text(block: &Block) -> bool {
    matches!(block, Block::Text { text } if !text.is_empty())
}

/// Decoder of an answer.
struct ResponsesDecoder {
    offer: ToolMapping,
    ids: CallIdAllocator,
    /// Arguments of incomplete calls, by their index in the answer.
    arguments: BTreeMap<u64, String>,
    /// Number of summary parts that have begun.
    summaries: u64,
    has_items: bool,
    has_calls: bool,
    is_refusal: bool,
    is_over: bool,
}

/// Event with an item as raw JSON.
#[derive(Deserialize)]
struct ItemEvent<'a> {
    #[serde(borrow)]
    item: &'a RawValue,
}

/// Answer with its items as raw JSON.
#[derive(Deserialize)]
struct RawOutputItems<'a> {
    #[serde(borrow, default)]
    output: Vec<&'a RawValue>,
}

/// Event with a whole answer.
#[derive(Deserialize)]
struct ResponseEvent<'a> {
    #[serde(borrow)]
    response: &'a RawValue,
}

impl ResponsesDecoder {
    fn item(&mut self, raw: &str, place: Option<u64>, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let item: Value = serde_json::from_str(raw).map_err(|_| unexpected("an item that is not JSON"))?;
        let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or("");
        self.has_items = true;
        match text("type") {
            "message" => {
                let said = texts(&item, "content", &["text", "refusal"], "");
                self.is_refusal |= item
                    .get("content")
                    .and_then(Value::as_array)
                    .is_some_and(|parts| parts.iter().any(|part| part.get("refusal").is_some_and(Value::is_string)));
                if !said.is_empty() {
                    events.push(ModelEvent::Block(Block::text(said)));
                }
            }
            "function_call" => {
                let streamed = place.and_then(|place| self.arguments.remove(&place));
                // The call was cut off.
                if text("status") == "incomplete" {
                    return Ok(());
                }
                let written = Some(text("arguments")).filter(|text| !text.is_empty()).map(str::to_owned);
                let arguments = ToolArguments::parse(&written.or(streamed).unwrap_or_default());
                let id = self.ids.take(text("call_id"));
                self.has_calls = true;
                events.push(ModelEvent::Block(Block::ToolUse(self.offer.call(id, text("name"), arguments, None))));
            }
            // The server no longer knows reasoning that is not encrypted.
            "reasoning" if item.get("encrypted_content").is_some_and(Value::is_string) => {
                let summary = texts(&item, "summary", &["text"], "\n\n");
                let shown = if summary.is_empty() { texts(&item, "content", &["text"], "\n\n") } else { summary };
                let shown = Some(shown).filter(|shown| !shown.is_empty());
                let sealed = SealedBlock { provider: SEAL.into(), raw: raw.to_owned(), shown };
                events.push(ModelEvent::Block(Block::Sealed(sealed)));
            }
            _ => {}
        }
        Ok(())
    }

    /// Handles the whole answer at its end: adds its items to `events`, unless the server has streamed them, and
    /// [`ModelEvent::Finished`].
    fn response(&mut self, raw: &str, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let unreadable = |_| unexpected("an answer that is not JSON");
        let response: Value = serde_json::from_str(raw).map_err(unreadable)?;
        let status = response.get("status").and_then(Value::as_str).unwrap_or("completed");
        if status == "failed" || response.get("error").is_some_and(|error| !error.is_null()) {
            return Err(parts::error(&response));
        }
        if !self.has_items {
            let RawOutputItems { output } = serde_json::from_str(raw).map_err(unreadable)?;
            for item in output {
                self.item(item.get(), None, events)?;
            }
        }
        let reason = response.pointer("/incomplete_details/reason").and_then(Value::as_str);
        let stop = match (status, reason) {
            ("incomplete", Some("content_filter")) => StopReason::Refused,
            ("incomplete", _) => StopReason::MaxTokens,
            ("cancelled", _) => return Err(incomplete_answer()),
            _ if self.is_refusal => StopReason::Refused,
            _ if self.has_calls => StopReason::ToolUse,
            _ => StopReason::EndTurn,
        };
        self.is_over = true;
        events.push(ModelEvent::Finished { stop, usage: read_usage(&response) });
        Ok(())
    }
}

/// Joins the texts of the parts in the member `list` of an item. The text of a part is the first of its members `names`
/// that is a string.
fn texts(item: &Value, list: &str, names: &[&str], joint: &str) -> String {
    let parts = item.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let texts: Vec<&str> =
        parts.iter().filter_map(|part| names.iter().find_map(|name| part.get(name)?.as_str())).collect();
    texts.join(joint)
}

fn read_usage(response: &Value) -> TokenUsage {
    let of = |pointer: &str| count(response, &format!("/usage{pointer}"));
    parts::usage(of("/input_tokens"), of("/input_tokens_details/cached_tokens"), 0, of("/output_tokens"))
}

impl Decoder for ResponsesDecoder {
    fn event(&mut self, event: &SseEvent) -> Result<Vec<ModelEvent>, ModelError> {
        let mut events = Vec::new();
        if self.is_over || event.data.trim_ascii() == b"[DONE]" {
            return Ok(events);
        }
        let unreadable = |_| unexpected("an event that is not JSON");
        let document: Value = serde_json::from_slice(&event.data).map_err(unreadable)?;
        let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).unwrap_or("");
        let place = document.get("output_index").and_then(Value::as_u64);
        let kind = Some(text("/type")).filter(|kind| !kind.is_empty()).unwrap_or(&event.event);
        match kind {
            "response.output_item.added" if text("/item/type") == "function_call" => {
                events.push(ModelEvent::CallBegun { name: self.offer.tool(text("/item/name")) });
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                events.push(ModelEvent::TextDelta(text("/delta").to_owned()));
            }
            "response.reasoning_summary_part.added" => {
                self.summaries += 1;
                if self.summaries > 1 {
                    events.push(ModelEvent::ThinkingDelta("\n\n".into()));
                }
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                events.push(ModelEvent::ThinkingDelta(text("/delta").to_owned()));
            }
            "response.function_call_arguments.delta" => {
                self.arguments.entry(place.unwrap_or(0)).or_default().push_str(text("/delta"));
            }
            "response.function_call_arguments.done" => {
                self.arguments.insert(place.unwrap_or(0), text("/arguments").to_owned());
            }
            "response.output_item.done" => {
                let ItemEvent { item } = serde_json::from_slice(&event.data).map_err(unreadable)?;
                self.item(item.get(), place, &mut events)?;
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                let ResponseEvent { response } = serde_json::from_slice(&event.data).map_err(unreadable)?;
                self.response(response.get(), &mut events)?;
            }
            "error" => return Err(parts::error(&document)),
            _ if document.get("error").is_some_and(Value::is_object) => return Err(parts::error(&document)),
            _ => {}
        }
        Ok(events)
    }

    fn end(&mut self) -> Result<Vec<ModelEvent>, ModelError> {
        if self.is_over { Ok(Vec::new()) } else { Err(incomplete_answer()) }
    }

    fn decode_document(&mut self, body: &[u8]) -> Result<Vec<ModelEvent>, ModelError> {
        let text = std::str::from_utf8(body).map_err(|_| unexpected("an answer that is not UTF-8"))?;
        let mut events = Vec::new();
        self.response(text, &mut events)?;
        if self.has_items { Ok(events) } else { Err(unexpected("an answer without items in its `output`")) }
    }
}

#[cfg(test)]
mod tests;
