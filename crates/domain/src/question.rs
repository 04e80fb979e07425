//! Questions of an agent to the person that it works for.

use crate::{ports::clock::Timestamp, tool_result::ToolResult};
use serde_json::Value;

/// The member of a result's `_meta` that names questions which wait for somebody. Only tools of ours set it: what is
/// `toolstead/…` in results of MCP servers is taken out.
const WAITS_FOR: &str = "toolstead/waits_for";

/// One question, with what may be chosen. A free text of one's own is an answer as well.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Question {
    /// The question as it is put.
    pub question: String,
    /// The same in a word or two.
    pub header: String,
    /// The answers that may be chosen.
    pub options: Vec<Choice>,
    /// Several may be chosen.
    pub multi_select: bool,
}

/// One thing that may be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Choice {
    /// The answer itself.
    pub label: String,
    /// Its meaning.
    pub description: String,
    /// More to look at before one chooses.
    pub preview: Option<String>,
}

/// Questions that nobody could be asked when they came up, and that somebody may answer later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeferredQuestions {
    /// The number under which they are answered, the principal's own in a workspace.
    pub id: QuestionId,
    /// The session that asks; for an agent that is its conversation.
    pub session: String,
    /// The time at which they came up.
    pub asked: Timestamp,
    /// The questions.
    pub questions: Vec<Question>,
    /// The answer to each, in their order; `None`: they still wait.
    pub answers: Option<Vec<String>>,
}

/// The number of deferred questions, written `q7`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QuestionId(pub u32);

impl QuestionId {
    /// Reads `q7` or `7`.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('q').unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().ok().map(Self)).flatten()
    }
}

impl std::fmt::Display for QuestionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "q{}", self.0)
    }
}

/// The same result, of a call that waits for the answer to these questions: a run of an agent ends with it.
#[must_use]
pub fn waiting_for(mut result: ToolResult, id: QuestionId) -> ToolResult {
    result.insert_meta(WAITS_FOR, id.to_string().into());
    result
}

/// The questions that the call of this result waits for, by name.
pub fn waited_for(result: &ToolResult) -> Option<String> {
    result.as_object().get("_meta")?.get(WAITS_FOR).and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_says_what_its_call_waits_for() {
        let result = ToolResult::text("asked");
        assert_eq!(waited_for(&result), None);
        assert_eq!(waited_for(&waiting_for(result, QuestionId(3))), Some("q3".into()));
    }

    #[test]
    fn an_id_is_read_as_it_is_written_and_as_a_number() {
        for (text, expected) in [
            ("q7", Some(7)),
            ("7", Some(7)),
            ("q", None),
            ("", None),
            ("qq7", None),
            ("+7", None),
            ("q-1", None),
            ("4294967296", None),
        ] {
            assert_eq!(QuestionId::parse(text), expected.map(QuestionId), "{text}");
        }
        assert_eq!(QuestionId::parse(&QuestionId(12).to_string()), Some(QuestionId(12)));
    }
}
