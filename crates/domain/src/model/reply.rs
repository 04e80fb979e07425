//! The answer of a model, piece by piece.

use super::{message::Block, usage::Usage};
use std::time::Duration;

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// The request was not answered, and is made again. Nothing of an answer has come before it.
    Retrying {
        /// After so long.
        after: Duration,
        /// Because of this.
        reason: String,
    },
    /// More text, for those who watch. It comes again in its block.
    TextDelta(String),
    /// More thinking, likewise.
    ThinkingDelta(String),
    /// A call is being written, for those who watch.
    CallBegun {
        /// The tool, as it was offered.
        name: String,
    },
    /// A block is whole. The blocks in their order are the answer.
    Block(Block),
    /// The answer is over. Nothing follows.
    Finished {
        /// The reason.
        stop: StopReason,
        /// Its tokens.
        usage: Usage,
    },
}

/// The reason why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum StopReason {
    /// It said what it had to say.
    EndTurn,
    /// It wants results of calls.
    ToolUse,
    /// The answer may be no longer. A call that was cut off is in no block.
    MaxTokens,
    /// It must not answer: content filters, safety.
    Refused,
}

impl StopReason {
    /// The reason as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EndTurn => "end_turn",
            Self::ToolUse => "tool_use",
            Self::MaxTokens => "max_tokens",
            Self::Refused => "refused",
        }
    }
}
