//! The plan of an agent: its steps and their status.

use serde_json::{Value, json};

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Todo {
    /// Id of the step, unique in its list.
    pub id: String,
    /// Description of the work.
    pub content: String,
    /// Description while the work is in progress ("Running the tests").
    pub active_form: Option<String>,
    /// Status of the step.
    pub status: TodoStatus,
    /// Priority of the step.
    pub priority: TodoPriority,
}

/// Status of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// In progress.
    InProgress,
    /// Done.
    Completed,
    /// Abandoned.
    Canceled,
}

/// Priority of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum TodoPriority {
    /// Low.
    Low,
    /// Normal.
    #[default]
    Medium,
    /// High.
    High,
}

/// Plan of an agent: its steps, in the order in which the agent wrote them.
///
/// ```
/// use toolstead_domain::todo::{Todo, TodoList, TodoPriority, TodoStatus};
///
/// let todo = Todo {
///     id: "1".into(),
///     content: "Run the tests".into(),
///     active_form: None,
///     status: TodoStatus::Pending,
///     priority: TodoPriority::High,
/// };
/// assert_eq!(TodoList(vec![todo]).in_words(), "1. [pending] Run the tests (high priority)");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct TodoList(pub Vec<Todo>);

impl TodoStatus {
    /// Returns the status as one word.
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
    /// Returns the priority as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl TodoStatus {
    /// Returns the status in words.
    fn words(self) -> &'static str {
        match self {
            Self::InProgress => "in progress",
            other => other.as_str(),
        }
    }
}

impl TodoList {
    /// Returns the number of steps with this status.
    pub fn count(&self, status: TodoStatus) -> usize {
        self.0.iter().filter(|todo| todo.status == status).count()
    }

    /// Returns the list for a model, one line per step, in the order of its author.
    pub fn in_words(&self) -> String {
        let line = |(index, todo): (usize, &Todo)| {
            let priority = match todo.priority {
                TodoPriority::Medium => String::new(),
                other => format!(" ({} priority)", other.as_str()),
            };
            format!("{}. [{}] {}{priority}", index + 1, todo.status.as_str(), todo.content)
        };
        self.0.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Returns a text with the number of all steps, and of those with each status.
    pub fn counts(&self) -> String {
        use TodoStatus::{Canceled, Completed, InProgress, Pending};
        let each = [Completed, InProgress, Pending, Canceled].into_iter().filter_map(|status| {
            let count = self.count(status);
            (count > 0).then(|| format!("{count} {}", status.words()))
        });
        let all = self.0.len();
        match all {
            0 => "no todos".into(),
            1 => format!("1 todo: {}", each.collect::<String>()),
            _ => format!("{all} todos: {}", each.collect::<Vec<_>>().join(", ")),
        }
    }

    /// Returns the list as JSON, each step with its `id`, `content`, `active_form` if it has one, `status` and
    /// `priority`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_formatted_in_its_order_with_counts_by_status() {
        let todo = |content: &str, status, priority| Todo {
            id: content.into(),
            content: content.into(),
            active_form: None,
            status,
            priority,
        };
        let plan = TodoList(vec![
            todo("build", TodoStatus::Completed, TodoPriority::Medium),
            todo("test", TodoStatus::InProgress, TodoPriority::High),
            todo("ship", TodoStatus::Pending, TodoPriority::Medium),
        ]);
        assert_eq!(plan.in_words(), "1. [completed] build\n2. [in_progress] test (high priority)\n3. [pending] ship");
        assert_eq!(plan.counts(), "3 todos: 1 completed, 1 in progress, 1 pending");
        assert_eq!(TodoList::default().counts(), "no todos");
    }
}
