//! Detection of loops: runs that repeat the same calls with the same results.

use std::hash::{DefaultHasher, Hash, Hasher};
use toolstead_domain::{ToolArguments, ToolResult, ToolUse};

/// Number of identical answers in a row after which the model is warned.
const WARN_AFTER: u32 = 3;
/// Number of identical answers in a row after which the run ends.
const END_AFTER: u32 = 5;

/// Compares the calls of each answer, with their results, to those of the answer before it. Only an answer with exactly
/// the same calls and the same results counts as a repetition.
#[derive(Debug, Default)]
pub(super) struct LoopDetector {
    last: Option<u64>,
    times: u32,
    now: DefaultHasher,
}

/// The verdict on a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoopVerdict {
    /// No loop was detected; the run continues.
    NoLoop,
    /// This many identical answers followed one another; the model is warned.
    Warned(u32),
    /// This many identical answers followed one another; the run ends.
    Looping(u32),
}

impl LoopDetector {
    /// Adds a call of the current answer, with its result.
    pub(super) fn call(&mut self, call: &ToolUse, result: &ToolResult) {
        call.name.hash(&mut self.now);
        match &call.arguments {
            ToolArguments::Object(object) => serde_json::to_string(object).unwrap_or_default().hash(&mut self.now),
            ToolArguments::Malformed(text) => text.hash(&mut self.now),
        }
        result.is_error().hash(&mut self.now);
        result.content().iter().for_each(|block| block.to_string().hash(&mut self.now));
    }

    /// Completes the current answer, and compares it to the one before.
    pub(super) fn answer_is_over(&mut self) -> LoopVerdict {
        let now = std::mem::take(&mut self.now).finish();
        self.times = if self.last.replace(now) == Some(now) { self.times + 1 } else { 1 };
        match self.times {
            END_AFTER.. => LoopVerdict::Looping(self.times),
            WARN_AFTER.. => LoopVerdict::Warned(self.times),
            _ => LoopVerdict::NoLoop,
        }
    }
}
