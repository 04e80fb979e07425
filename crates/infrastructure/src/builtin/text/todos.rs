//! Plans in the results of tools.

use schemars::JsonSchema;
use serde::Serialize;
use toolstead_domain::{StoreError, Todo, TodoList, ToolFailure, error_kind::ErrorKind};

/// A stored task.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TodoOutput {
    id: String,
    content: String,
    /// `pending`, `in_progress`, `completed` or `canceled`.
    status: &'static str,
    /// `low`, `medium` or `high`.
    priority: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    active_form: Option<String>,
}

/// Returns all entries of a plan.
pub(crate) fn stored(plan: &TodoList) -> Vec<TodoOutput> {
    let one = |todo: &Todo| TodoOutput {
        id: todo.id.clone(),
        content: todo.content.clone(),
        status: todo.status.as_str(),
        priority: todo.priority.as_str(),
        active_form: todo.active_form.clone(),
    };
    plan.0.iter().map(one).collect()
}

/// Returns the failure for a plan that cannot be read.
pub(crate) fn unreadable(error: StoreError) -> ToolFailure {
    ToolFailure::new(ErrorKind::Io, "the plan could not be read").caused_by(error)
}
