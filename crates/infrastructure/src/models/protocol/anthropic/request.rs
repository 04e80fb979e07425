//! Body of a request to Anthropic Messages.

use super::{IMAGES, PROVIDER};
use crate::models::{
    images::fitted,
    offer::ToolMapping,
    schema::schema_copy,
    settings::{ModelSettings, ProviderKind},
};
use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};
use std::borrow::Cow;
use toolstead_domain::{Block, Message, ModelError, ModelRequest, OfferedTool, Role, SealedBlock, ToolResultBlock};

/// Minimum thinking budget, in tokens.
const MIN_THINKING: u64 = 1024;
/// Number of user messages that end with a cache marker. Together with the markers of the tools and the system prompt,
/// these are the four that the provider allows. The last but one of these messages was the last of the previous
/// request, so the provider has cached everything up to it.
const MARKED_MESSAGES: usize = 2;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<CacheableContent<'a>>,
    messages: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    stream: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Thinking {
    Enabled { budget_tokens: u64 },
    Adaptive,
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    effort: &'a str,
}

/// Consecutive messages of one role.
#[derive(Serialize)]
struct Turn<'a> {
    role: Role,
    content: Vec<ContentBlock<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ContentBlock<'a> {
    /// Block of an earlier answer, sent back unchanged, byte for byte.
    Sealed(&'a RawValue),
    Plain(CacheableContent<'a>),
}

#[derive(Serialize)]
struct CacheableContent<'a> {
    #[serde(flatten)]
    content: BlockContent<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockContent<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: ImageSource<'a>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Cow<'a, Map<String, Value>>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<BlockContent<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ImageSource<'a> {
    Base64 { media_type: &'a str, data: &'a str },
}

/// Returns the body of a request.
///
/// # Errors
/// Returns [`ModelError::Refused`] if there is nothing to send.
pub(super) fn body(
    settings: &ModelSettings,
    request: &ModelRequest,
    offer: &ToolMapping,
) -> Result<Vec<u8>, ModelError> {
    let limits = settings.takes_images.then_some(&IMAGES);
    let messages = fitted(&request.messages, limits, &request.tools);
    let turns = turns(&messages, offer);
    let unsaid = |message: String| ModelError::Refused { status: None, message };
    if turns.is_empty() {
        return Err(unsaid("the request has no message with content; add one".into()));
    }
    let max_tokens = request.max_output_tokens.unwrap_or(settings.max_output_tokens);
    let thinking = thinking(settings, &request.messages, max_tokens);
    let mut tools = definitions(&request.tools, offer);
    if let Some(Value::Object(last)) = tools.last_mut() {
        last.insert("cache_control".into(), json!({"type": "ephemeral"}));
    }
    let system = Some(request.system.as_str()).filter(|system| !system.trim().is_empty());
    let body = Body {
        model: &settings.model,
        max_tokens,
        tools,
        system: system.map(|text| text_of(text).marked()).into_iter().collect(),
        messages: turns,
        // With thinking, only the default temperature is allowed.
        temperature: settings.temperature.filter(|_| thinking.is_none()),
        thinking,
        output_config: settings.reasoning_effort.as_deref().map(|effort| OutputConfig { effort }),
        stream: true,
    };
    serde_json::to_vec(&body).map_err(|error| unsaid(format!("the request cannot be written: {error}")))
}

/// Returns the definitions of tools, without cache markers.
pub(super) fn definitions(tools: &[OfferedTool], offer: &ToolMapping) -> Vec<Value> {
    let definition = |tool: &OfferedTool| {
        let mut definition = Map::new();
        definition.insert("name".into(), offer.name(&tool.name).into());
        if !tool.description.trim().is_empty() {
            definition.insert("description".into(), tool.description.as_str().into());
        }
        definition.insert("input_schema".into(), schema_copy(ProviderKind::Anthropic, &tool.input_schema));
        Value::Object(definition)
    };
    tools.iter().map(definition).collect()
}

/// Returns the kind of thinking to request; `None` for no thinking.
fn thinking(settings: &ModelSettings, messages: &[Message], max_tokens: u64) -> Option<Thinking> {
    match (settings.thinking_tokens, &settings.reasoning_effort) {
        (Some(tokens), _) => {
            // The rest is for the answer.
            let budget_tokens = if tokens < max_tokens { tokens } else { max_tokens / 2 };
            (budget_tokens >= MIN_THINKING && may_think(messages)).then_some(Thinking::Enabled { budget_tokens })
        }
        (None, Some(_)) => Some(Thinking::Adaptive),
        (None, None) => None,
    }
}

/// Returns `true` if thinking may be enabled. A turn that began without thinking, such as another provider's, must end
/// without it, because the calls of a thinking turn must follow its thinking blocks.
fn may_think(messages: &[Message]) -> bool {
    let is_plain = |message: &Message| {
        message.role == Role::User && !message.blocks.iter().any(|block| matches!(block, Block::ToolResult(_)))
    };
    let turn = messages.iter().rposition(is_plain).map_or(messages, |start| &messages[start..]);
    let answer = turn.iter().find(|message| message.role == Role::Assistant);
    answer.is_none_or(|answer| {
        let first = answer.blocks.iter().find(|block| !is_empty(block));
        matches!(first, Some(Block::Sealed(sealed)) if raw(sealed).is_some())
    })
}

fn is_empty(block: &Block) -> bool {
    matches!(block, Block::Text { text } if text.trim().is_empty())
}

/// Returns the messages as turns with cache markers.
fn turns<'m>(messages: &'m [Message], offer: &'m ToolMapping) -> Vec<Turn<'m>> {
    let mut turns: Vec<Turn<'m>> = Vec::new();
    for message in messages {
        let content = match message.role {
            Role::User => user_parts(&message.blocks, offer),
            Role::Assistant => model_parts(&message.blocks, offer),
        };
        match turns.last_mut() {
            _ if content.is_empty() => {}
            Some(turn) if turn.role == message.role => turn.content.extend(content),
            _ => turns.push(Turn { role: message.role, content }),
        }
    }
    for turn in turns.iter_mut().filter(|turn| turn.role == Role::User) {
        // Results come first. The sort is stable, so their order does not change.
        turn.content.sort_by_key(|part| !part.is_result());
    }
    for turn in turns.iter_mut().rev().filter(|turn| turn.role == Role::User).take(MARKED_MESSAGES) {
        if let Some(ContentBlock::Plain(part)) = turn.content.last_mut() {
            part.cache_control = Some(CacheControl::Ephemeral);
        }
    }
    turns
}

fn user_parts<'m>(blocks: &'m [Block], offer: &'m ToolMapping) -> Vec<ContentBlock<'m>> {
    let mut parts = Vec::new();
    for block in blocks {
        match block {
            Block::ToolResult(result) => {
                let (result, beside) = result_of(result);
                parts.push(result);
                parts.extend(beside);
            }
            Block::ToolUse(_) | Block::Sealed(_) => {}
            block => parts.extend(content_of(block, offer).map(ContentBlock::plain)),
        }
    }
    parts
}

fn model_parts<'m>(blocks: &'m [Block], offer: &'m ToolMapping) -> Vec<ContentBlock<'m>> {
    let mut parts: Vec<ContentBlock<'m>> = Vec::new();
    for block in blocks {
        match block {
            Block::Sealed(sealed) => parts.extend(raw(sealed).map(ContentBlock::Sealed)),
            Block::Text { .. } | Block::ToolUse(_) => parts.extend(content_of(block, offer).map(ContentBlock::plain)),
            _ => {}
        }
    }
    // The provider rejects thinking blocks at the end of a turn.
    while matches!(parts.last(), Some(ContentBlock::Sealed(_))) {
        parts.pop();
    }
    parts
}

/// Returns the JSON text of a sealed block unchanged; `None` for a block of another provider, or one that is not an
/// object.
fn raw(sealed: &SealedBlock) -> Option<&RawValue> {
    let raw = Some(&sealed.raw).filter(|raw| sealed.provider == PROVIDER && raw.trim_start().starts_with('{'));
    serde_json::from_str(raw?).ok()
}

fn content_of<'m>(block: &'m Block, offer: &'m ToolMapping) -> Option<BlockContent<'m>> {
    match block {
        block if is_empty(block) => None,
        Block::Text { text } => Some(text_of(text)),
        Block::Image(image) => Some(BlockContent::Image {
            source: ImageSource::Base64 { media_type: &image.media_type, data: &image.data },
        }),
        Block::ToolUse(call) => {
            let (id, name) = (id_of(&call.id), offer.name(&call.name));
            // The input must be an object. If it was not one, the result of the call describes the error.
            Some(BlockContent::ToolUse { id, name, input: offer.arguments(call) })
        }
        _ => None,
    }
}

/// Returns the result of a call, and the parts to place after it: an error may contain only text.
fn result_of(result: &ToolResultBlock) -> (ContentBlock<'_>, Vec<ContentBlock<'_>>) {
    let (mut content, mut beside) = (Vec::new(), Vec::new());
    for block in &result.content {
        match block {
            block if is_empty(block) => {}
            Block::Text { text } => content.push(text_of(text)),
            Block::Image(image) => {
                let image = BlockContent::Image {
                    source: ImageSource::Base64 { media_type: &image.media_type, data: &image.data },
                };
                if result.is_error { beside.push(ContentBlock::plain(image)) } else { content.push(image) }
            }
            _ => {}
        }
    }
    if content.is_empty() && result.is_error {
        content.push(text_of("the call failed"));
    }
    let tool_use_id = id_of(&result.id);
    (ContentBlock::plain(BlockContent::ToolResult { tool_use_id, content, is_error: result.is_error }), beside)
}

fn text_of(text: &str) -> BlockContent<'_> {
    BlockContent::Text { text: Cow::Borrowed(text) }
}

/// Returns a call id that the provider accepts. Ids of other providers may have other characters; those are written in
/// hexadecimal, so that different ids remain different.
fn id_of(id: &str) -> Cow<'_, str> {
    let is_taken = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if is_taken {
        return Cow::Borrowed(id);
    }
    let digits: String = id.bytes().map(|byte| format!("{byte:02x}")).collect();
    Cow::Owned(format!("call_x{digits}"))
}

impl<'a> BlockContent<'a> {
    fn marked(self) -> CacheableContent<'a> {
        CacheableContent { content: self, cache_control: Some(CacheControl::Ephemeral) }
    }
}

impl<'a> ContentBlock<'a> {
    fn plain(content: BlockContent<'a>) -> Self {
        Self::Plain(CacheableContent { content, cache_control: None })
    }

    fn is_result(&self) -> bool {
        matches!(self, Self::Plain(CacheableContent { content: BlockContent::ToolResult { .. }, .. }))
    }
}
