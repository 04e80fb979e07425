//! The tool `todo_read`.

use crate::builtin::{
    text::todos::{self, TodoOutput},
    tool_kit::{answer::answer, built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolstead_domain::{Category, Todo, TodoList, TodoPriority, TodoStatus, ToolAnnotations, ToolFailure, ToolResult};

/// Tool that returns the plan.
pub(crate) struct TodoRead;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Show a table sorted by status and priority, as kodelet does, instead of a list in the plan's order.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    table: bool,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// In the order of the plan.
    todos: Vec<TodoOutput>,
    statistics: TodoStatistics,
}

#[derive(Serialize, JsonSchema)]
struct TodoStatistics {
    total: usize,
    completed: usize,
    in_progress: usize,
    pending: usize,
    canceled: usize,
}

impl BuiltInTool for TodoRead {
    const NAME: &str = "todo_read";
    const TITLE: &str = "Read todos";
    const DESCRIPTION: &str = "Shows the plan of this conversation: each step with its status, and the number of \
                               each. Use it to see what is left to do.";
    const BRIEF: &str = "Shows the plan.";
    const CATEGORY: Category = Category::Utility;
    const TAGS: &[&str] = &["plan"];
    const KEYWORDS: &str = "checklist progress remaining tasks";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = "{}";
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let context = run.context();
        let plan = run
            .environment()
            .agents()
            .todos()
            .todos(context.principal, context.session)
            .await
            .map_err(todos::unreadable)?;
        let text = match (plan.0.is_empty(), input.table) {
            (true, _) => "There are no todos.".to_owned(),
            (false, true) => table(&plan),
            (false, false) => format!("{}.\n{}", plan.counts(), plan.in_words()),
        };
        let statistics = TodoStatistics {
            total: plan.0.len(),
            completed: plan.count(TodoStatus::Completed),
            in_progress: plan.count(TodoStatus::InProgress),
            pending: plan.count(TodoStatus::Pending),
            canceled: plan.count(TodoStatus::Canceled),
        };
        answer(text, &Output { todos: todos::stored(&plan), statistics })
    }
}

/// Formats a heading and a table with tabs, sorted by status (canceled, completed, in progress, pending) and then by
/// priority (highest first), as in kodelet.
fn table(plan: &TodoList) -> String {
    let mut sorted: Vec<&Todo> = plan.0.iter().collect();
    sorted.sort_by_key(|todo| (place(todo.status), urgency(todo.priority)));
    let mut text = String::from("# Todos\n\nID\tStatus\tPriority\tContent\n");
    for todo in sorted {
        // Tabs and line breaks would end a cell.
        let cell = |text: &str| text.replace(['\t', '\n', '\r'], " ");
        let (status, priority) = (todo.status.as_str(), todo.priority.as_str());
        text.push_str(&format!("{}\t{status}\t{priority}\t{}\n", cell(&todo.id), cell(&todo.content)));
    }
    text
}

fn place(status: TodoStatus) -> u8 {
    match status {
        TodoStatus::Canceled => 0,
        TodoStatus::Completed => 1,
        TodoStatus::InProgress => 2,
        TodoStatus::Pending => 3,
    }
}

fn urgency(priority: TodoPriority) -> u8 {
    match priority {
        TodoPriority::High => 0,
        TodoPriority::Medium => 1,
        TodoPriority::Low => 2,
    }
}

#[cfg(test)]
mod tests {
    use crate::builtin::tests::Bench;
    use serde_json::json;

    #[test]
    fn todo_read_lists_todos_in_order_or_as_a_sorted_table() {
        let bench = Bench::new();
        assert_eq!(bench.text("todo_read", json!({})), "There are no todos.");
        let todos = json!([
            {"content": "late", "status": "pending", "priority": "low"},
            {"content": "soon\nor\tnow", "status": "pending", "priority": "high"},
            {"content": "given up", "status": "canceled"},
            {"content": "begun", "status": "in_progress"},
            {"content": "done", "status": "completed"},
        ]);
        bench.text("todo_write", json!({"todos": todos}));
        let result = bench.call("todo_read", json!({})).unwrap();
        assert_eq!(
            result.joined_text(),
            "5 todos: 1 completed, 1 in progress, 2 pending, 1 canceled.\n1. [pending] late (low priority)\n\
             2. [pending] soon\nor\tnow (high priority)\n3. [canceled] given up\n4. [in_progress] begun\n5. [completed] done"
        );
        let statistics = json!({"total": 5, "completed": 1, "in_progress": 1, "pending": 2, "canceled": 1});
        assert_eq!(result.structured_content().unwrap()["statistics"], statistics);
        assert_eq!(
            bench.text("todo_read", json!({"table": true})),
            "# Todos\n\nID\tStatus\tPriority\tContent\n3\tcanceled\tmedium\tgiven up\n5\tcompleted\tmedium\tdone\n\
             4\tin_progress\tmedium\tbegun\n2\tpending\thigh\tsoon or now\n1\tpending\tlow\tlate\n"
        );
    }
}
