//! Decoder of answers of Anthropic Messages, streamed or as one document.

use super::PROVIDER;
use crate::{
    http::sse::SseEvent,
    models::{
        failure::{ReportedError, error_of},
        offer::{CallIdAllocator, ToolMapping},
        protocol::{Decoder, incomplete_answer},
    },
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, value::RawValue};
use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
};
use toolstead_domain::{Block, ModelError, ModelEvent, SealedBlock, StopReason, TokenUsage, ToolArguments};

/// Maximum number of blocks of an answer.
const MAX_BLOCKS: usize = 10_000;
/// Maximum plausible token count. Larger counts are reduced to it.
const MAX_TOKENS: u64 = 1 << 40;

/// Decoder of one answer.
#[derive(Debug)]
pub(super) struct AnthropicDecoder {
    offer: ToolMapping,
    ids: CallIdAllocator,
    open: BTreeMap<u64, OpenBlock>,
    blocks: usize,
    /// Blocks from the first one on that is a tool call or may be incomplete. They are returned once the reason for the
    /// end of the answer is known.
    pending: VecDeque<BlockQueueEntry>,
    usage: TokenUsage,
    stop: Option<String>,
}

/// Block being received.
#[derive(Debug)]
enum OpenBlock {
    Text(String),
    /// Initial members of the block, and the texts received since.
    Thinking {
        begun: Map<String, Value>,
        thinking: String,
        signature: String,
    },
    /// JSON text of a block of redacted thinking, which is complete from the beginning.
    Redacted(String),
    Call {
        id: String,
        name: String,
        given: Map<String, Value>,
        arguments: String,
    },
    /// Block of an unknown type.
    Unknown,
}

#[derive(Debug)]
struct BlockQueueEntry {
    block: Block,
    /// `true` if the block is incomplete in case the answer was cut off.
    may_be_cut: bool,
}

/// Type of an event or block.
#[derive(Deserialize)]
struct TypeTag<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
}

#[derive(Deserialize)]
struct MessageStart {
    message: StartedMessage,
}

#[derive(Deserialize)]
struct StartedMessage {
    #[serde(default)]
    usage: Option<TokenCounts>,
}

/// Running totals of tokens.
#[derive(Deserialize, Default)]
#[serde(default)]
struct TokenCounts {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct BlockStart<'a> {
    index: u64,
    #[serde(borrow)]
    content_block: &'a RawValue,
}

#[derive(Deserialize)]
struct BlockDelta {
    index: u64,
    delta: Delta,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "input_json_delta")]
    InputJson {
        #[serde(default)]
        partial_json: String,
    },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
struct BlockStop {
    index: u64,
}

#[derive(Deserialize)]
struct MessageDelta {
    #[serde(default)]
    delta: StopDelta,
    #[serde(default)]
    usage: Option<TokenCounts>,
}

#[derive(Deserialize, Default)]
struct StopDelta {
    #[serde(default)]
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct TextBlock {
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
struct CallBlock {
    id: String,
    name: String,
    #[serde(default)]
    input: Value,
}

/// Non-streamed answer.
#[derive(Deserialize)]
struct AnswerDocument<'a> {
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    usage: Option<TokenCounts>,
}

impl AnthropicDecoder {
    pub(super) fn new(offer: ToolMapping, ids: CallIdAllocator) -> Self {
        Self {
            offer,
            ids,
            open: BTreeMap::new(),
            blocks: 0,
            pending: VecDeque::new(),
            usage: TokenUsage::default(),
            stop: None,
        }
    }

    fn count(&mut self, counted: Option<TokenCounts>) {
        let Some(counted) = counted else { return };
        let take =
            |known: &mut u64, counted: Option<u64>| *known = counted.unwrap_or_default().min(MAX_TOKENS).max(*known);
        take(&mut self.usage.input_tokens, counted.input_tokens);
        take(&mut self.usage.cache_write_tokens, counted.cache_creation_input_tokens);
        take(&mut self.usage.cache_read_tokens, counted.cache_read_input_tokens);
        take(&mut self.usage.output_tokens, counted.output_tokens);
    }

    /// Begins a block with its initial content. Returns the block and the event that reports it, if there is one.
    fn begin(&mut self, raw: &RawValue) -> Result<(OpenBlock, Option<ModelEvent>), ModelError> {
        self.blocks += 1;
        if self.blocks > MAX_BLOCKS {
            return Err(ModelError::Protocol(format!("the answer has more than {MAX_BLOCKS} blocks")));
        }
        let text = raw.get();
        Ok(match &*read::<TypeTag<'_>>(text.as_bytes())?.kind {
            "text" => {
                let TextBlock { text } = owned(text)?;
                let event = (!text.is_empty()).then(|| ModelEvent::TextDelta(text.clone()));
                (OpenBlock::Text(text), event)
            }
            "thinking" => {
                let mut begun: Map<String, Value> = owned(text)?;
                let mut taken = |name: &str| match begun.get_mut(name).map(Value::take) {
                    Some(Value::String(text)) => text,
                    _ => String::new(),
                };
                let (thinking, signature) = (taken("thinking"), taken("signature"));
                let event = (!thinking.is_empty()).then(|| ModelEvent::ThinkingDelta(thinking.clone()));
                (OpenBlock::Thinking { begun, thinking, signature }, event)
            }
            "redacted_thinking" => (OpenBlock::Redacted(text.to_owned()), None),
            "tool_use" => {
                let CallBlock { id, name, input } = owned(text)?;
                let event = ModelEvent::CallBegun { name: self.offer.tool(&name) };
                let given = if let Value::Object(given) = input { given } else { Map::new() };
                (OpenBlock::Call { id, name, given, arguments: String::new() }, Some(event))
            }
            _ => (OpenBlock::Unknown, None),
        })
    }

    /// Ends a block: adds it to `events`, or to the pending blocks if it is a call, follows one or may be incomplete.
    fn close(&mut self, open: OpenBlock, events: &mut Vec<ModelEvent>) {
        let (block, may_be_cut) = match open {
            OpenBlock::Text(text) => (Some(text).filter(|text| !text.is_empty()).map(Block::text), false),
            OpenBlock::Thinking { mut begun, thinking, signature } => {
                let is_unsigned = signature.is_empty();
                begun.insert("thinking".into(), thinking.as_str().into());
                if !is_unsigned || begun.contains_key("signature") {
                    begun.insert("signature".into(), signature.into());
                }
                (Some(sealed(Value::Object(begun).to_string(), Some(thinking))), is_unsigned)
            }
            OpenBlock::Redacted(raw) => (Some(sealed(raw, None)), false),
            OpenBlock::Call { id, name, given, arguments } => {
                let is_unwritten = arguments.trim().is_empty();
                let arguments =
                    if is_unwritten { ToolArguments::Object(given) } else { ToolArguments::parse(&arguments) };
                // Empty arguments may be complete, or the answer may have been cut off before them.
                let is_empty = matches!(&arguments, ToolArguments::Object(object) if is_unwritten && object.is_empty());
                let may_be_cut = is_empty || matches!(arguments, ToolArguments::Malformed(_));
                let id = self.ids.take(&id);
                (Some(Block::ToolUse(self.offer.call(id, &name, arguments, None))), may_be_cut)
            }
            OpenBlock::Unknown => (None, false),
        };
        let Some(block) = block else { return };
        if !may_be_cut && self.pending.is_empty() && !matches!(block, Block::ToolUse(_)) {
            events.push(ModelEvent::Block(block));
        } else {
            self.pending.push_back(BlockQueueEntry { block, may_be_cut });
        }
    }

    /// Ends the answer: adds all unfinished and pending blocks and [`ModelEvent::Finished`] to `events`. The last
    /// pending block is dropped if the answer was cut off within it.
    fn finish(&mut self, events: &mut Vec<ModelEvent>) {
        // Blocks that the provider did not end, in order.
        for (_, open) in std::mem::take(&mut self.open) {
            self.close(open, events);
        }
        let stop = match self.stop.as_deref() {
            Some("max_tokens" | "model_context_window_exceeded" | "pause_turn") => StopReason::MaxTokens,
            Some("refusal") => StopReason::Refused,
            _ => StopReason::EndTurn,
        };
        let was_cut = stop != StopReason::EndTurn;
        let last_is_cut = self.pending.back().is_some_and(|held| held.may_be_cut);
        if was_cut && last_is_cut {
            self.pending.pop_back();
        }
        let has_calls = self.pending.iter().any(|held| matches!(held.block, Block::ToolUse(_)));
        // Some servers report the end of the turn instead of tool use.
        let stop = if stop == StopReason::EndTurn && has_calls { StopReason::ToolUse } else { stop };
        events.extend(self.pending.drain(..).map(|held| ModelEvent::Block(held.block)));
        events.push(ModelEvent::Finished { stop, usage: self.usage });
    }
}

impl Decoder for AnthropicDecoder {
    fn event(&mut self, event: &SseEvent) -> Result<Vec<ModelEvent>, ModelError> {
        let data = &event.data;
        let mut events = Vec::new();
        match &*read::<TypeTag<'_>>(data)?.kind {
            "message_start" => {
                let MessageStart { message } = read(data)?;
                self.count(message.usage);
            }
            "content_block_start" => {
                let BlockStart { index, content_block } = read(data)?;
                let (open, event) = self.begin(content_block)?;
                if self.open.insert(index, open).is_some() {
                    return Err(wrong_index(index, "begins twice"));
                }
                events.extend(event);
            }
            "content_block_delta" => {
                let BlockDelta { index, delta } = read(data)?;
                let open = self.open.get_mut(&index).ok_or_else(|| wrong_index(index, "continues without a start"))?;
                match (open, delta) {
                    (OpenBlock::Unknown, _) | (_, Delta::Unknown) => {}
                    (OpenBlock::Text(text), Delta::Text { text: more }) => {
                        text.push_str(&more);
                        events.push(ModelEvent::TextDelta(more));
                    }
                    (OpenBlock::Thinking { thinking, .. }, Delta::Thinking { thinking: more }) => {
                        thinking.push_str(&more);
                        events.push(ModelEvent::ThinkingDelta(more));
                    }
                    (OpenBlock::Thinking { signature, .. }, Delta::Signature { signature: more }) => {
                        signature.push_str(&more);
                    }
                    (OpenBlock::Call { arguments, .. }, Delta::InputJson { partial_json }) => {
                        arguments.push_str(&partial_json);
                    }
                    _ => return Err(wrong_index(index, "continues as a block of another kind")),
                }
            }
            "content_block_stop" => {
                let BlockStop { index } = read(data)?;
                let open = self.open.remove(&index).ok_or_else(|| wrong_index(index, "ends without a start"))?;
                self.close(open, &mut events);
            }
            "message_delta" => {
                let MessageDelta { delta, usage } = read(data)?;
                self.stop = delta.stop_reason.or(self.stop.take());
                self.count(usage);
            }
            "message_stop" => self.finish(&mut events),
            "error" => return Err(reported_error(&read::<Value>(data)?)),
            // `ping`, and events of later versions.
            _ => {}
        }
        Ok(events)
    }

    fn end(&mut self) -> Result<Vec<ModelEvent>, ModelError> {
        Err(incomplete_answer())
    }

    fn decode_document(&mut self, body: &[u8]) -> Result<Vec<ModelEvent>, ModelError> {
        if read::<TypeTag<'_>>(body)?.kind == "error" {
            return Err(reported_error(&read::<Value>(body)?));
        }
        let AnswerDocument { content, stop_reason, usage } = read(body)?;
        let mut events = Vec::new();
        for raw in content {
            let (open, event) = self.begin(raw)?;
            events.extend(event);
            match open {
                // Unchanged, byte for byte.
                OpenBlock::Thinking { thinking, signature, .. } if !signature.is_empty() => {
                    let block = sealed(raw.get().to_owned(), Some(thinking));
                    self.pending.push_back(BlockQueueEntry { block, may_be_cut: false });
                }
                open => self.close(open, &mut events),
            }
        }
        self.stop = stop_reason;
        self.count(usage);
        self.finish(&mut events);
        Ok(events)
    }
}

fn sealed(raw: String, shown: Option<String>) -> Block {
    Block::Sealed(SealedBlock { provider: PROVIDER.to_owned(), raw, shown: shown.filter(|text| !text.is_empty()) })
}

fn reported_error(document: &Value) -> ModelError {
    error_of(None, &ReportedError::of(document).unwrap_or_default(), None)
}

/// Parses a JSON object. Serde alone would also accept an array of the members' values.
fn read<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, ModelError> {
    let wrong =
        |what: String| ModelError::Protocol(format!("the answer is not valid in Anthropic's Messages API: {what}"));
    if json.trim_ascii_start().first() != Some(&b'{') {
        return Err(wrong("an object was expected".into()));
    }
    serde_json::from_slice(json).map_err(|error| wrong(error.to_string()))
}

fn owned<T: DeserializeOwned>(json: &str) -> Result<T, ModelError> {
    read(json.as_bytes())
}

fn wrong_index(index: u64, what: &str) -> ModelError {
    ModelError::Protocol(format!("the answer is not valid in Anthropic's Messages API: its block {index} {what}"))
}
