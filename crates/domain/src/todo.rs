//! The plan of an agent: what is to be done, and how far it is.

use serde_json::{Value, json};

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Todo {
    /// Tells it apart in its list.
    pub id: String,
    /// What is to be done.
    pub content: String,
    /// The same while it is done ("Running the tests").
    pub active_form: Option<String>,
    /// How far it is.
    pub status: TodoStatus,
    /// How much it matters.
    pub priority: TodoPriority,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// At work.
    InProgress,
    /// Done.
    Completed,
    /// Given up.
    Canceled,
}

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum TodoPriority {
    /// Little.
    Low,
    /// As usual.
    #[default]
    Medium,
    /// Much.
    High,
}

/// A plan, in the order of its author.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct TodoList(pub Vec<Todo>);

impl TodoStatus {
    /// The status as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Canceled => "canceled",
        }
    }
}

impl TodoPriority {
    /// The priority as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl TodoList {
    /// The list as JSON, each with its `id`, `content`, `active_form` where there is one, `status`, `priority`.
    pub fn to_json(&self) -> Value {
        let one = |todo: &Todo| {
            let mut value = json!({"id": todo.id, "content": todo.content, "status": todo.status.as_str(), "priority": todo.priority.as_str()});
            if let Some(active) = &todo.active_form {
                value["active_form"] = json!(active);
            }
            value
        };
        self.0.iter().map(one).collect()
    }
}
