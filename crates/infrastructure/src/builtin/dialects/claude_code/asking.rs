//! Questions and plans in the format of Claude Code.

use crate::builtin::dialects::caller_text::with_members;
use serde_json::{Value, json};
use toolstead_domain::{AdaptedResult, AdapterInput};

/// Returns Toolstead's own text and members. Clients learn from the members if questions are still unanswered. `None`
/// if the call failed.
pub(super) fn asked(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    let members = answered.structured().filter(|_| answered.error_kind().is_none())?;
    Some(with_members(answered, AdaptedResult::text(answered.text()), members.clone()))
}

pub(super) fn planned(answered: &AdapterInput<'_>) -> Option<AdaptedResult> {
    if answered.error_kind().is_some() {
        return None;
    }
    let plan = |name| Some(answered.member(name)?.as_array()?.iter().map(step).collect::<Vec<Value>>());
    let members = json!({"oldTodos": plan("old")?, "newTodos": plan("new")?});
    Some(with_members(answered, AdaptedResult::text(answered.text()), members))
}

fn step(ours: &Value) -> Value {
    let content = &ours["content"];
    json!({"content": content, "status": ours["status"], "activeForm": ours.get("active_form").unwrap_or(content)})
}
