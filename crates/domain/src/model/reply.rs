//! The answer of a model, in pieces.

use super::{message::Block, usage::TokenUsage};
use std::time::Duration;

/// Piece of an answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// The request was not answered, and is repeated. No piece of an answer has arrived before.
    Retrying {
        /// Wait before the retry.
        after: Duration,
        /// Reason for the retry.
        reason: String,
    },
    /// Further text, for subscribers. The complete [`Block`](Self::Block) contains it again.
    TextDelta(String),
    /// Further thinking, for subscribers. The complete [`Block`](Self::Block) contains it again.
    ThinkingDelta(String),
    /// A call is being written, for subscribers.
    CallBegun {
        /// Name of the tool, as it was offered.
        name: String,
    },
    /// A block is complete. The blocks in their order are the answer.
    Block(Block),
    /// The answer is complete. Nothing follows.
    Finished {
        /// Reason why the model stopped.
        stop: StopReason,
        /// Tokens of the request and of the answer to it.
        usage: TokenUsage,
    },
}

/// Reason why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum StopReason {
    /// The answer is complete.
    EndTurn,
    /// The model requires results of calls.
    ToolUse,
    /// The answer reached its maximum length. An incomplete call is in no block.
    MaxTokens,
    /// The provider refused an answer, for example by a content filter or for safety.
    Refused,
}

impl StopReason {
    /// Returns the reason as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EndTurn => "end_turn",
            Self::ToolUse => "tool_use",
            Self::MaxTokens => "max_tokens",
            Self::Refused => "refused",
        }
    }
}
