//! The tool `task_input`.

use crate::builtin::{
    commands::tasks::TaskStatus,
    files::read_state::SessionKey,
    tool_kit::{
        answer::answer, built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext,
        tool_environment::ToolEnvironment,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolstead_domain::{
    Access, Category, CommandAccess, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind,
};

const MAX_TEXT_BYTES: usize = 1 << 20;

/// Tool that writes to the standard input of a task.
pub(crate) struct TaskInput;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The task, such as `task_1`. It must have been started with `stdin`, which may be empty.
    #[schemars(extend("x-advertised" = ""))]
    task_id: String,
    /// The text to write; include line breaks.
    #[schemars(extend("x-advertised" = ""))]
    text: Option<String>,
    /// Close its input afterwards.
    #[serde(default)]
    #[schemars(extend("x-advertised" = ""))]
    close: bool,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    task_id: String,
    status: TaskStatus,
    bytes: usize,
    closed: bool,
}

impl BuiltInTool for TaskInput {
    const NAME: &str = "task_input";
    const TITLE: &str = "Write to a task";
    const DESCRIPTION: &str = "Writes text to the standard input of a task, closes it, or both. `task_output` shows \
                               what the task prints.";
    const BRIEF: &str = "Writes to the standard input of a task, or closes it.";
    const CATEGORY: Category = Category::Shell;
    const TAGS: &[&str] = &["background", "process", "task"];
    const KEYWORDS: &str = "answer background interactive process prompt send stdin";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations {
        read_only_hint: Some(false),
        destructive_hint: Some(true),
        idempotent_hint: Some(false),
        open_world_hint: Some(true),
    };
    const EXAMPLE: &str = r#"{"task_id": "task_1", "text": "yes\n"}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    /// Returns an opaque command as the access for a text, because a text can make a shell or an interpreter run
    /// anything. Without a text, returns no access.
    async fn accesses(&self, input: &Input, _: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        let Some(text) = &input.text else { return Ok(Vec::new()) };
        let whole = format!("{}: {text}", input.task_id);
        Ok(vec![Access::RunCommand(CommandAccess::opaque(whole, "the effect on a running program is unknown"))])
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let viewer = SessionKey::of(run.context());
        let task = run.environment().processes().tasks().find(&viewer, &input.task_id)?;
        task.check_is_program(
            "accepts no input",
            "Once it has ended, resume it by `subagent` with the `agent_id` in its output as `resume`.",
        )?;
        let text = input.text.unwrap_or_default();
        if text.len() > MAX_TEXT_BYTES {
            let message = format!("`text` has {} bytes, and at most {MAX_TEXT_BYTES} are written at once", text.len());
            return Err(ToolFailure::new(ErrorKind::TooLarge, message));
        }
        if text.is_empty() && !input.close {
            return Err(ToolFailure::new(ErrorKind::InvalidInput, "there is nothing to do: give `text` or `close`"));
        }
        if task.command.end().is_some() {
            return Err(ToolFailure::new(ErrorKind::ExecutionFailed, task.describe()));
        }
        let bytes = text.len();
        task.command.write((!text.is_empty()).then(|| text.into_bytes()), input.close)?;
        let output = Output { task_id: task.id.to_string(), status: task.status(), bytes, closed: input.close };
        let closed = if input.close { " and closed its input" } else { "" };
        answer(format!("Wrote {bytes} bytes to `{}`{closed}.", task.id), &output)
    }
}
