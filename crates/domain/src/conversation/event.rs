//! Events of a conversation.

use crate::{
    model::{
        message::{Block, ToolResultBlock},
        reply::StopReason,
        usage::TokenUsage,
    },
    ports::clock::Timestamp,
    tool_call::CallId,
};
use serde_json::Value;

/// One event of a conversation.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ConversationEvent {
    /// Position: 1 for the first event, then without gaps.
    pub number: u64,
    /// Time of the event.
    pub at: Timestamp,
    /// Kind of the event.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub kind: ConversationEventKind,
}

/// Kinds of events.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "event", rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum ConversationEventKind {
    /// The user sent a message, which begins a turn; or a message was sent in their name within a turn, such as a
    /// warning.
    UserSaid {
        /// Blocks of the message.
        blocks: Vec<Block>,
    },
    /// The model answered.
    ModelAnswered {
        /// Blocks of the answer. They may contain calls.
        blocks: Vec<Block>,
        /// Name of the model at the provider.
        model: String,
        /// Reason why the answer ended; `None` if it was cancelled or interrupted, and the blocks are those received by
        /// then.
        stop: Option<StopReason>,
        /// Tokens of the request and of the answer to it.
        usage: TokenUsage,
    },
    /// A tool call that the last answer of the model requested ended.
    CallEnded {
        /// Result as the model receives it.
        result: ToolResultBlock,
        /// Id of its audit record; `None` if the call was never made.
        call: Option<CallId>,
        /// Result for programs (kodelet's `StructuredToolResult`), unknown metadata included.
        record: Value,
    },
    /// From this event on, the model receives a summary in place of all events before `kept_from`.
    Compacted {
        /// Text of the summary.
        summary: String,
        /// Number of the first event that is still sent unchanged.
        kept_from: u64,
    },
    /// From this event on, the model receives notes in place of the outputs of the calls in `events`.
    Masked {
        /// Numbers of the [`CallEnded`](Self::CallEnded) events whose outputs are replaced.
        events: Vec<u64>,
    },
    /// A turn ended.
    TurnEnded {
        /// Outcome as one word: `finished`, `cancelled`, `stopped`, `looping`, `waiting`, `failed`, or the name of the
        /// exhausted budget, such as `calls`.
        outcome: String,
        /// Further explanation, if there is one.
        message: Option<String>,
    },
    /// The events after `to` were undone.
    TakenBack {
        /// Number of the last event that is not undone; 0 if all are.
        to: u64,
    },
}
