//! The plan of an agent: what is to be done, and how far it is.

use serde_json::{Value, json};

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Todo {
    /// Tells it apart in its list.
    pub id: String,
    /// The work itself.
    pub content: String,
    /// The same while it is done ("Running the tests").
    pub active_form: Option<String>,
    /// Its progress.
    pub status: TodoStatus,
    /// Its weight among the others.
    pub priority: TodoPriority,
}

/// Its progress.
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

/// Its weight among the others.
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

impl TodoStatus {
    /// The status in words.
    fn words(self) -> &'static str {
        match self {
            Self::InProgress => "in progress",
            other => other.as_str(),
        }
    }
}

impl TodoList {
    /// As many have that status.
    pub fn count(&self, status: TodoStatus) -> usize {
        self.0.iter().filter(|todo| todo.status == status).count()
    }

    /// The list for a model, one line each, in the order of its author.
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

    /// As many as there are, and how many of each status.
    pub fn counts(&self) -> String {
        use TodoStatus::{Canceled, Completed, InProgress, Pending};
        let each = [Completed, InProgress, Pending, Canceled].into_iter().filter_map(|status| {
            let count = self.count(status);
            (count > 0).then(|| format!("{count} {}", status.words()))
        });
        let all = self.0.len();
        format!("{all} {}: {}", if all == 1 { "todo" } else { "todos" }, each.collect::<Vec<_>>().join(", "))
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_told_in_the_order_of_its_author_with_counts() {
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
    }
}
