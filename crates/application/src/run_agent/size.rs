//! The size of a request in tokens, estimated without a request to the model.

use toolstead_domain::{Block, Message, ModelRequest, ToolArguments, ToolResultBlock};

/// Estimated tokens of an image of any size.
const IMAGE_TOKENS: f64 = 1_500.0;
/// Tokens per byte until the model has reported its usage.
const FIRST_GUESS: f64 = 0.25;
/// Lower bound of the tokens per byte; [`MOST`] is the upper bound.
const LEAST: f64 = 0.05;
const MOST: f64 = 1.5;
/// Bytes that a provider's format is estimated to add to each part of a request, such as a block or the system prompt.
const AROUND: u64 = 16;

/// The size of a request or a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RequestSize {
    pub(super) bytes: u64,
    pub(super) images: u64,
}

/// The ratio of tokens to bytes, adjusted to the usage that the model reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TokenRatio {
    tokens_per_byte: f64,
}

impl Default for TokenRatio {
    fn default() -> Self {
        Self { tokens_per_byte: FIRST_GUESS }
    }
}

impl TokenRatio {
    pub(super) fn tokens(self, size: RequestSize) -> u64 {
        // The values are far below those that a float represents exactly.
        (size.bytes as f64 * self.tokens_per_byte + size.images as f64 * IMAGE_TOKENS) as u64
    }

    /// Returns the number of bytes of text that have this number of tokens.
    pub(super) fn bytes(self, tokens: u64) -> usize {
        (tokens as f64 / self.tokens_per_byte) as usize
    }

    /// Sets the ratio to that of a request of this size, without its images, which had this number of tokens, within
    /// [`LEAST`] and [`MOST`]. Does nothing if no tokens are left for the text.
    pub(super) fn learn(&mut self, size: RequestSize, tokens: u64) {
        let of_text = tokens as f64 - size.images as f64 * IMAGE_TOKENS;
        if size.bytes > 0 && of_text > 0.0 {
            self.tokens_per_byte = (of_text / size.bytes as f64).clamp(LEAST, MOST);
        }
    }

    /// Raises the ratio until a request of this size, which the model refused as too long, has at least `window`
    /// tokens.
    pub(super) fn was_too_long(&mut self, size: RequestSize, window: u64) {
        if self.tokens(size) < window {
            self.learn(size, window);
        }
    }
}

impl std::ops::Add for RequestSize {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_add(other.bytes), images: self.images + other.images }
    }
}

impl std::iter::Sum for RequestSize {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), std::ops::Add::add)
    }
}

impl RequestSize {
    pub(super) fn of_request(request: &ModelRequest) -> Self {
        let tools = request.tools.iter().map(|tool| {
            let schema = serde_json::to_string(&*tool.input_schema).map_or(0, |schema| schema.len());
            text(tool.name.len() + tool.description.len() + schema)
        });
        text(request.system.len()) + tools.sum() + request.messages.iter().map(Self::of_message).sum()
    }

    fn of_message(message: &Message) -> Self {
        Self::of_blocks(&message.blocks)
    }

    pub(super) fn of_blocks(blocks: &[Block]) -> Self {
        blocks.iter().map(Self::of_block).sum()
    }

    pub(super) fn of_result(result: &ToolResultBlock) -> Self {
        text(result.id.len() + result.name.len()) + Self::of_blocks(&result.content)
    }

    fn of_block(block: &Block) -> Self {
        match block {
            Block::Text { text: words } => text(words.len()),
            Block::Image(_) => Self { bytes: AROUND, images: 1 },
            Block::ToolUse(call) => text(call.id.len() + call.name.len()) + Self::of_arguments(&call.arguments),
            Block::ToolResult(result) => Self::of_result(result),
            Block::Sealed(sealed) => text(sealed.raw.len()),
            _ => Self::default(),
        }
    }

    fn of_arguments(arguments: &ToolArguments) -> Self {
        match arguments {
            ToolArguments::Object(object) => text(serde_json::to_string(object).map_or(0, |json| json.len())),
            ToolArguments::Malformed(words) => text(words.len()),
        }
    }
}

fn text(bytes: usize) -> RequestSize {
    RequestSize { bytes: bytes as u64 + AROUND, images: 0 }
}
