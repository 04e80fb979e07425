//! The tool `task_wait`.

use crate::builtin::{
    commands::{tasks::TaskListEntry, waiting::SLACK},
    files::read_state::SessionKey,
    tool_kit::{answer::answer, built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext},
};
use futures::future::{join_all, select_all};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;
use toolstead_domain::{Category, ToolAnnotations, ToolFailure, ToolResult};

/// Tool that waits for tasks.
pub(crate) struct TaskWait;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The tasks. Default: all of this session.
    #[serde(default)]
    #[schemars(extend("x-advertised" = ""))]
    task_ids: Vec<String>,
    /// Wait for all of them to end, or any one.
    #[serde(default)]
    #[schemars(extend("x-advertised" = ""))]
    mode: Mode,
    /// Milliseconds to wait at most. The tasks continue.
    #[serde(default = "a_minute")]
    #[schemars(range(max = 600_000))]
    #[schemars(extend("x-advertised" = ""))]
    timeout_ms: u64,
}

#[derive(Default, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    #[default]
    All,
    Any,
}

fn a_minute() -> u64 {
    60_000
}

#[derive(Serialize, JsonSchema)]
struct Output {
    tasks: Vec<TaskListEntry>,
    /// `true` after `timeout_ms`.
    timed_out: bool,
}

impl BuiltInTool for TaskWait {
    const NAME: &str = "task_wait";
    const TITLE: &str = "Wait for tasks";
    const DESCRIPTION: &str = "Waits until tasks have ended, all of them or any one, and returns how they ended. After \
                               `timeout_ms`, the tasks continue.";
    const BRIEF: &str = "Waits until tasks have ended.";
    const CATEGORY: Category = Category::Shell;
    const TAGS: &[&str] = &["background", "process", "task"];
    const KEYWORDS: &str = "background block complete finish job join process";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"task_ids": ["task_1"], "timeout_ms": 30000}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    fn requested_time(&self, input: &Input) -> Option<Duration> {
        Some(Duration::from_millis(input.timeout_ms) + SLACK)
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let (registry, viewer) = (run.environment().processes().tasks(), SessionKey::of(run.context()));
        let tasks = registry.named(&viewer, &input.task_ids)?;
        if tasks.is_empty() {
            return answer("There are no tasks in this session.", &Output { tasks: Vec::new(), timed_out: false });
        }
        let ends = tasks.iter().map(|task| Box::pin(task.command.ended()));
        let waited = async {
            match input.mode {
                Mode::All => drop(join_all(ends).await),
                Mode::Any => drop(select_all(ends).await),
            }
        };
        let timed_out = timeout(Duration::from_millis(input.timeout_ms), waited).await.is_err();
        let mut lines = Vec::new();
        for task in &tasks {
            task.mark_reported_to(&viewer);
            lines.push(task.describe_fully());
        }
        if timed_out {
            lines.push(format!("[the timeout of {} ms is over; the tasks continue]", input.timeout_ms));
        }
        answer(lines.join("\n"), &Output { tasks: tasks.iter().map(|task| task.facts()).collect(), timed_out })
    }
}
