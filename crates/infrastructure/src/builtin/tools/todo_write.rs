//! The tool `todo_write`.

use crate::builtin::{
    text::todos::{self, TodoOutput},
    tool_kit::{answer::answer, built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashSet;
use toolstead_domain::{
    Category, EventKind, EventOrigin, Todo, TodoList, TodoPriority, TodoStatus, ToolAnnotations, ToolFailure,
    ToolResult, error_kind::ErrorKind,
};

/// Tool that replaces the plan.
pub(crate) struct TodoWrite;

/// Maximum number of changes that are listed.
const TOLD: usize = 12;

/// Maximum number of characters of a plan. Thousands of plans are stored, and each is read again when its conversation
/// is shortened.
const CHARACTERS: usize = 100_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The whole plan in order, replacing the previous one. Empty: the plan is deleted.
    #[schemars(length(max = 200))]
    #[schemars(extend("x-advertised" = ""))]
    todos: Vec<Item>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Item {
    /// Unique id. Without one, an item with the same content keeps its id, or it gets a number.
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-advertised" = false))]
    id: Option<String>,
    /// The step.
    #[schemars(length(min = 1, max = 2_000))]
    #[schemars(extend("x-advertised" = ""))]
    content: String,
    /// The status.
    #[schemars(extend("x-advertised" = ""))]
    status: Status,
    /// Form while in progress: "Running the tests".
    #[schemars(length(max = 2_000))]
    #[schemars(extend("x-advertised" = false))]
    active_form: Option<String>,
    /// The priority.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    priority: Priority,
}

#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
    Canceled,
    Cancelled,
}

#[derive(Deserialize, Serialize, JsonSchema, Clone, Copy, Default)]
#[serde(rename_all = "snake_case")]
enum Priority {
    Low,
    #[default]
    Medium,
    High,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// The old plan.
    old: Vec<TodoOutput>,
    /// The new plan.
    new: Vec<TodoOutput>,
    warnings: Vec<String>,
}

impl BuiltInTool for TodoWrite {
    const NAME: &str = "todo_write";
    const TITLE: &str = "Write todos";
    const DESCRIPTION: &str = "Replaces the plan of this conversation. Use it for work of several steps: write all steps \
                               down first, set one to in_progress before you begin it and to completed as soon as it is \
                               done, and give the whole list each time. An empty list ends the plan.";
    const BRIEF: &str = "Replaces the whole plan; keep one step in_progress.";
    const CATEGORY: Category = Category::Utility;
    const TAGS: &[&str] = &["plan"];
    const KEYWORDS: &str = "checklist organize progress tasks track";
    // Only the caller's own notes change.
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"todos": [{"content": "Write the test", "status": "completed"}, {"content": "Make it pass", "status": "in_progress", "active_form": "Making it pass"}]}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let (world, context) = (run.environment(), run.context());
        let before =
            world.agents().todos().todos(context.principal, context.session).await.map_err(todos::unreadable)?;
        let new = plan(input.todos, &before)?;
        let kept = world.agents().todos().replace(context.principal, context.session, new.clone()).await;
        let old = kept.map_err(|error| {
            ToolFailure::new(ErrorKind::Io, "the plan could not be stored").caused_by(error).next("Call again.")
        })?;
        let origin = EventOrigin {
            principal: Some(context.principal.clone()),
            session: Some(context.session.into()),
            call: Some(context.id),
        };
        world.events().send(origin, EventKind::TodoUpdated { todos: new.clone() });
        let warnings = warnings(&new);
        let mut text = match new.0.is_empty() {
            true if old.0.is_empty() => "There was no plan, and none was made.".to_owned(),
            true => "The plan is empty now.".to_owned(),
            false => describe_changes(&old, &new),
        };
        for warning in &warnings {
            text.push_str("\nWarning: ");
            text.push_str(warning);
        }
        answer(text, &Output { old: todos::stored(&old), new: todos::stored(&new), warnings })
    }
}

/// Creates the plan from the items of a call. An item without an id gets the id of the item with the same content in
/// `before`, or else an unused number.
///
/// # Errors
/// `invalid_input` for empty content, for a repeated id, and for more characters than a plan may have.
fn plan(items: Vec<Item>, before: &TodoList) -> Result<TodoList, ToolFailure> {
    let invalid = |message: String| ToolFailure::new(ErrorKind::InvalidInput, message);
    let texts = items.iter().flat_map(|item| [Some(&item.content), item.active_form.as_ref()]).flatten();
    let characters: usize = texts.map(|text| text.chars().count()).sum();
    if characters > CHARACTERS {
        let message = format!("the plan has {characters} characters, and at most {CHARACTERS} are allowed");
        return Err(invalid(message).next("Describe each step in one line, and write details to a file."));
    }
    let mut taken: HashSet<String> = HashSet::new();
    for item in &items {
        if let Some(id) = &item.id
            && !taken.insert(id.clone())
        {
            return Err(invalid(format!("two todos have the id `{id}`")).next("Give each a unique id, or none."));
        }
    }
    let (mut todos, mut number) = (Vec::with_capacity(items.len()), 0_usize);
    for (index, item) in items.into_iter().enumerate() {
        if item.content.trim().is_empty() {
            return Err(invalid(format!("todos[{index}].content is empty")).next("Describe the step."));
        }
        let known = before.0.iter().find(|old| old.content == item.content).map(|old| old.id.clone());
        let id = item.id.unwrap_or_else(|| match known.filter(|id| taken.insert(id.clone())) {
            Some(id) => id,
            None => loop {
                number += 1;
                // The same number had another meaning in the previous plan.
                let is_old = before.0.iter().any(|old| old.id == number.to_string());
                if !is_old && taken.insert(number.to_string()) {
                    break number.to_string();
                }
            },
        });
        todos.push(Todo {
            id,
            content: item.content,
            active_form: item.active_form.filter(|text| !text.trim().is_empty()),
            status: item.status.into(),
            priority: item.priority.into(),
        });
    }
    Ok(TodoList(todos))
}

fn warnings(plan: &TodoList) -> Vec<String> {
    let at_work = plan.count(TodoStatus::InProgress);
    let many = (at_work > 1).then(|| format!("{at_work} todos are in progress; keep only one in progress."));
    many.into_iter().collect()
}

/// Formats the counts, and the differences from the previous plan.
fn describe_changes(old: &TodoList, new: &TodoList) -> String {
    let before = |id: &str| old.0.iter().find(|todo| todo.id == id);
    let mut changes: Vec<String> = Vec::new();
    for todo in &new.0 {
        let status = todo.status.as_str();
        match before(&todo.id) {
            None if old.0.is_empty() => {}
            None => changes.push(format!("+ [{status}] {}", todo.content)),
            Some(old) if old.status != todo.status => {
                changes.push(format!("{} -> {status}: {}", old.status.as_str(), todo.content));
            }
            Some(old) if old.content != todo.content => changes.push(format!("~ [{status}] {}", todo.content)),
            Some(_) => {}
        }
    }
    let gone = old.0.iter().filter(|todo| !new.0.iter().any(|other| other.id == todo.id));
    changes.extend(gone.map(|todo| format!("- [{}] {}", todo.status.as_str(), todo.content)));
    let more = changes.len().saturating_sub(TOLD);
    changes.truncate(TOLD);
    let mut text = new.counts();
    text.push('.');
    for change in changes {
        text.push('\n');
        text.push_str(&shortened(&change));
    }
    if more > 0 {
        text.push_str(&format!("\n... and {more} more changes"));
    }
    text
}

/// Shortens a change to one line: the model that wrote it knows the rest.
fn shortened(change: &str) -> String {
    const CHARACTERS: usize = 100;
    let line = change.replace(['\n', '\r'], " ");
    let shown: String = line.chars().take(CHARACTERS).collect();
    if shown.len() < line.len() { format!("{shown} ...") } else { shown }
}

impl From<Status> for TodoStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => Self::Pending,
            Status::InProgress => Self::InProgress,
            Status::Completed => Self::Completed,
            Status::Canceled | Status::Cancelled => Self::Canceled,
        }
    }
}

impl From<Priority> for TodoPriority {
    fn from(priority: Priority) -> Self {
        match priority {
            Priority::Low => Self::Low,
            Priority::Medium => Self::Medium,
            Priority::High => Self::High,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::builtin::tests::Bench;
    use serde_json::{Value, json};
    use toolstead_domain::{Principal, error_kind::ErrorKind};

    fn todo(content: &str, status: &str) -> Value {
        json!({"content": content, "status": status})
    }

    #[test]
    fn todo_write_replaces_the_whole_list_and_reports_the_changes() {
        let bench = Bench::new();
        let first = json!({"todos": [todo("build", "in_progress"), todo("test", "pending")]});
        assert_eq!(bench.text("todo_write", first), "2 todos: 1 in progress, 1 pending.");
        let second =
            json!({"todos": [todo("build", "completed"), todo("ship", "in_progress"), todo("rest", "cancelled")]});
        let result = bench.call("todo_write", second).unwrap();
        assert_eq!(
            result.joined_text(),
            "3 todos: 1 completed, 1 in progress, 1 canceled.\nin_progress -> completed: build\n\
             + [in_progress] ship\n+ [canceled] rest\n- [pending] test"
        );
        let structured = result.structured_content().unwrap();
        let contents = |which: &str| -> Vec<(String, String)> {
            let todos = structured[which].as_array().unwrap();
            let of = |todo: &Value, name: &str| todo[name].as_str().unwrap().to_owned();
            todos.iter().map(|todo| (of(todo, "id"), of(todo, "content"))).collect()
        };
        let named = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(id, content)| ((*id).into(), (*content).into())).collect()
        };
        assert_eq!(contents("old"), named(&[("1", "build"), ("2", "test")]));
        assert_eq!(contents("new"), named(&[("1", "build"), ("3", "ship"), ("4", "rest")]));
        assert_eq!(bench.text("todo_write", json!({"todos": []})), "The plan is empty now.");
        assert_eq!(bench.text("todo_write", json!({"todos": []})), "There was no plan, and none was made.");
    }

    #[test]
    fn more_than_one_todo_in_progress_causes_a_warning() {
        let bench = Bench::new();
        let both = json!({"todos": [todo("a", "in_progress"), todo("b", "in_progress")]});
        let result = bench.call("todo_write", both).unwrap();
        assert!(result.joined_text().ends_with("\nWarning: 2 todos are in progress; keep only one in progress."));
        assert_eq!(result.structured_content().unwrap()["warnings"].as_array().unwrap().len(), 1);
    }

    #[track_caller]
    fn refused(todos: Value, expected: &str) {
        let bench = Bench::new();
        bench.text("todo_write", json!({"todos": [todo("kept", "pending")]}));
        let failure = bench.call("todo_write", json!({"todos": todos})).unwrap_err();
        assert_eq!(failure.kind, ErrorKind::InvalidInput);
        assert!(failure.text().contains(expected), "{}", failure.text());
        assert!(bench.text("todo_read", json!({})).contains("kept"));
    }

    #[test]
    fn invalid_todo_lists_are_rejected_and_change_nothing() {
        refused(json!([todo("", "pending")]), "content");
        refused(json!([todo(" \n", "pending")]), "todos[0].content is empty");
        refused(json!([todo("a", "done")]), "status");
        refused(
            json!([{"id": "x", "content": "a", "status": "pending"}, {"id": "x", "content": "b", "status": "pending"}]),
            "two todos have the id `x`",
        );
        refused(json!(vec![todo("a", "pending"); 201]), "todos");
        refused(json!([todo(&"a".repeat(2_001), "pending")]), "content");
        refused(json!(vec![todo(&"ä".repeat(2_000), "pending"); 51]), "102000 characters, and at most 100000");
    }

    #[test]
    fn a_plan_belongs_to_a_session_of_a_principal() {
        let bench = Bench::new();
        bench.text("todo_write", json!({"todos": [todo("mine", "pending")]}));
        let bench = bench.in_session(Principal::local(), "other");
        assert_eq!(bench.text("todo_read", json!({})), "There are no todos.");
        let bench = bench.in_session(Principal::token("t"), "test");
        assert_eq!(bench.text("todo_read", json!({})), "There are no todos.");
        let bench = bench.in_session(Principal::local(), "test");
        assert!(bench.text("todo_read", json!({})).contains("mine"));
    }
}
