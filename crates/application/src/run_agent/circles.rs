//! Runs that go round in a circle.

use std::hash::{DefaultHasher, Hash, Hasher};
use toolstead_domain::{
    model::message::{ToolArguments, ToolUse},
    tool_result::ToolResult,
};

/// The model hears of it when the same calls have had the same results so often in a row.
const NUDGED: u32 = 3;
/// The run ends when they have had them so often.
const ENDED: u32 = 5;

/// Compares what the answers of a run led to. Calls that stand beside others, or between which something else was called,
/// are no circle: only all calls of an answer, with all their results, again and again.
#[derive(Debug, Default)]
pub(super) struct Circles {
    last: Option<u64>,
    times: u32,
    now: DefaultHasher,
}

/// The course of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    /// It goes on.
    Onwards,
    /// It did the same so often that the model is to hear of it.
    Nudged(u32),
    /// It did the same so often that it ends.
    Circling(u32),
}

impl Circles {
    /// A call of the answer that is looked at, with its result.
    pub(super) fn call(&mut self, call: &ToolUse, result: &ToolResult) {
        call.name.hash(&mut self.now);
        match &call.arguments {
            ToolArguments::Object(object) => serde_json::to_string(object).unwrap_or_default().hash(&mut self.now),
            ToolArguments::Malformed(text) => text.hash(&mut self.now),
        }
        result.is_error().hash(&mut self.now);
        result.content().iter().for_each(|block| block.to_string().hash(&mut self.now));
    }

    /// All calls of the answer were looked at.
    pub(super) fn answer_is_over(&mut self) -> Course {
        let now = std::mem::take(&mut self.now).finish();
        self.times = if self.last.replace(now) == Some(now) { self.times + 1 } else { 1 };
        match self.times {
            ENDED.. => Course::Circling(self.times),
            NUDGED.. => Course::Nudged(self.times),
            _ => Course::Onwards,
        }
    }
}
