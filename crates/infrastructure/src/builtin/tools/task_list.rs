//! The tool `task_list`.

use crate::builtin::{
    commands::tasks::{self, TaskListEntry, TaskStatus},
    files::read_state::SessionKey,
    tool_kit::{answer::answer, built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolstead_domain::{Category, ToolAnnotations, ToolFailure, ToolResult};

/// Tool that lists tasks.
pub(crate) struct TaskList;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Only these tasks. Default: all of this session.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    task_ids: Vec<String>,
    /// Only tasks of this kind.
    #[schemars(extend("x-advertised" = false))]
    kind: Option<TaskKindFilter>,
    /// Only tasks in this state.
    #[schemars(extend("x-advertised" = false))]
    status: Option<TaskStatus>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TaskKindFilter {
    Shell,
    Agent,
    All,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// Oldest first.
    tasks: Vec<TaskListEntry>,
}

impl BuiltInTool for TaskList {
    const NAME: &str = "task_list";
    const TITLE: &str = "List tasks";
    const DESCRIPTION: &str = "Lists the commands and agents that this session runs in the background, and those that \
                               have ended, with state, exit code, process id and command.";
    const BRIEF: &str = "Lists background tasks and their states.";
    const CATEGORY: Category = Category::Shell;
    const TAGS: &[&str] = &["background", "process", "task"];
    const KEYWORDS: &str = "background jobs processes running status";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"status": "running"}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let (registry, viewer) = (run.environment().processes().tasks(), SessionKey::of(run.context()));
        let tasks = registry.named(&viewer, &input.task_ids)?;
        let tasks: Vec<_> =
            tasks.into_iter().filter(|task| input.status.is_none_or(|status| task.status() == status)).collect();
        let is_wanted = |kind: tasks::TaskKind| match input.kind {
            None | Some(TaskKindFilter::All) => true,
            Some(TaskKindFilter::Shell) => kind == tasks::TaskKind::Shell,
            Some(TaskKindFilter::Agent) => kind == tasks::TaskKind::Agent,
        };
        let tasks: Vec<_> = tasks.into_iter().filter(|task| is_wanted(task.kind)).collect();
        let mut lines = Vec::new();
        for task in &tasks {
            task.mark_reported_to(&viewer);
            lines.push(task.describe());
        }
        if lines.is_empty() {
            lines.push("There are no such tasks in this session.".into());
        }
        answer(lines.join("\n"), &Output { tasks: tasks.iter().map(|task| task.facts()).collect() })
    }
}
