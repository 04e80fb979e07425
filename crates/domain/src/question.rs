//! Questions of an agent to its user.

use crate::{ports::clock::Timestamp, tool_result::ToolResult};
use serde_json::Value;

/// Member of a result's `_meta` with the id of questions that wait for an answer. Only built-in tools set it: members
/// `toolstead/…` in results of MCP servers are removed.
const WAITS_FOR: &str = "toolstead/waits_for";

/// Question with suggested answers. A free text is also a valid answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Question {
    /// Text of the question.
    pub question: String,
    /// Short form of the question, in a word or two.
    pub header: String,
    /// Suggested answers.
    pub options: Vec<Choice>,
    /// `true` if several answers may be selected.
    pub multi_select: bool,
}

/// Suggested answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Choice {
    /// Text of the answer.
    pub label: String,
    /// Meaning of the answer.
    pub description: String,
    /// Further content to examine before selecting.
    pub preview: Option<String>,
}

/// Questions that could not be asked during the call, and may be answered later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeferredQuestions {
    /// Number with which they are answered, unique for the principal in a workspace.
    pub id: QuestionGroupId,
    /// Session that asks; the session of an agent is its conversation.
    pub session: String,
    /// Time at which they were asked.
    pub asked: Timestamp,
    /// The questions themselves.
    pub questions: Vec<Question>,
    /// Answers, in the order of the questions; `None` while they wait.
    pub answers: Option<Vec<String>>,
}

/// Id of a group of deferred questions, written `q7`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QuestionGroupId(pub u32);

impl QuestionGroupId {
    /// Parses `q7` or `7`.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('q').unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().ok().map(Self)).flatten()
    }
}

impl std::fmt::Display for QuestionGroupId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "q{}", self.0)
    }
}

/// Marks the result as that of a call which waits for the answers to these questions. A run of an agent ends with it.
#[must_use]
pub fn waiting_for(mut result: ToolResult, id: QuestionGroupId) -> ToolResult {
    result.insert_meta(WAITS_FOR, id.to_string().into());
    result
}

/// Returns the id of the questions that the call of this result waits for.
pub fn waited_for(result: &ToolResult) -> Option<String> {
    result.as_object().get("_meta")?.get(WAITS_FOR).and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_includes_the_question_group_that_its_call_waits_for() {
        let result = ToolResult::text("asked");
        assert_eq!(waited_for(&result), None);
        assert_eq!(waited_for(&waiting_for(result, QuestionGroupId(3))), Some("q3".into()));
    }

    #[test]
    fn a_question_id_is_parsed_in_written_form_and_as_a_number() {
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
            assert_eq!(QuestionGroupId::parse(text), expected.map(QuestionGroupId), "{text}");
        }
        assert_eq!(QuestionGroupId::parse(&QuestionGroupId(12).to_string()), Some(QuestionGroupId(12)));
    }
}
