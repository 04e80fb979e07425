//! Events of a conversation.

use crate::{
    model::{
        message::{Block, ToolResultBlock},
        reply::StopReason,
        usage::Usage,
    },
    ports::clock::Timestamp,
    tool_call::CallId,
};
use serde_json::Value;

/// One event of a conversation.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ConversationEvent {
    /// Its place: 1 for the first, then without gaps.
    pub number: u64,
    /// Its time.
    pub at: Timestamp,
    /// Its kind.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub kind: ConversationEventKind,
}

/// The kinds of events.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "event", rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum ConversationEventKind {
    /// The person said something, which begins a turn; or something was said for them within a turn, such as a nudge.
    UserSaid {
        /// Its blocks.
        blocks: Vec<Block>,
    },
    /// The model answered.
    ModelAnswered {
        /// Its blocks. They may hold calls.
        blocks: Vec<Block>,
        /// The model, by the provider's name.
        model: String,
        /// The reason why it stopped; `None`: it was taken back or broke off, and the blocks are what there was by then.
        stop: Option<StopReason>,
        /// Its tokens.
        usage: Usage,
    },
    /// A call of the last answer ended.
    CallEnded {
        /// The result as the model gets it.
        result: ToolResultBlock,
        /// Its row in the audit trail; `None`: the call was never made.
        call: Option<CallId>,
        /// The result as programs read it (kodelet's `StructuredToolResult`), unknown metadata among it.
        record: Value,
    },
    /// All that came before is told to the model as a summary from here on.
    Compacted {
        /// The summary.
        summary: String,
        /// The first event that is still told as it was.
        kept_from: u64,
    },
    /// Old outputs are told to the model as a pointer from here on.
    Masked {
        /// The numbers of the [`CallEnded`](Self::CallEnded) events.
        events: Vec<u64>,
    },
    /// A turn is over.
    TurnEnded {
        /// The outcome, as one word: `finished`, `cancelled`, `failed`, or the budget that is used up.
        outcome: String,
        /// In words, where there is more to say.
        message: Option<String>,
    },
    /// Events behind the one that is named do not count any more.
    TakenBack {
        /// The last event that counts.
        to: u64,
    },
}
