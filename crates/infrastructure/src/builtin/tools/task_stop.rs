//! The tool `task_stop`.

use crate::{
    builtin::{
        commands::{command::GRACE, tasks::TaskListEntry},
        files::read_state::SessionKey,
        tool_kit::{answer::answer, built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext},
    },
    sandbox::launcher::ProcessSignal,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;
use toolstead_domain::{Category, ToolAnnotations, ToolFailure, ToolResult};

/// Maximum time that the call waits for the task to end after a signal, which the process may ignore.
const EFFECT: Duration = Duration::from_millis(500);
/// Maximum time that the call waits for the task to end after a kill. No process can ignore it, so that only an
/// overloaded machine takes long.
const KILL_EFFECT: Duration = Duration::from_secs(30);

/// Tool that ends a task, or sends it a signal.
pub(crate) struct TaskStop;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The task, such as `task_1`.
    #[schemars(extend("x-advertised" = ""))]
    task_id: String,
    /// Send only this signal; without it, the task receives `TERM`, and is killed after 2 seconds.
    #[schemars(extend("x-advertised" = false))]
    signal: Option<StopSignal>,
    /// Kill it at once.
    #[serde(default)]
    #[schemars(extend("x-advertised" = false))]
    force: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) enum StopSignal {
    #[serde(rename = "TERM", alias = "SIGTERM")]
    Term,
    #[serde(rename = "INT", alias = "SIGINT")]
    Int,
    #[serde(rename = "HUP", alias = "SIGHUP")]
    Hup,
    #[serde(rename = "QUIT", alias = "SIGQUIT")]
    Quit,
    #[serde(rename = "KILL", alias = "SIGKILL")]
    Kill,
    #[serde(rename = "USR1", alias = "SIGUSR1")]
    Usr1,
    #[serde(rename = "USR2", alias = "SIGUSR2")]
    Usr2,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    #[serde(flatten)]
    task: TaskListEntry,
}

impl BuiltInTool for TaskStop {
    const NAME: &str = "task_stop";
    const TITLE: &str = "Stop a task";
    const DESCRIPTION: &str = "Ends a task with everything that it started, or sends it a signal. An ended task is \
                               not an error.";
    const BRIEF: &str = "Ends a task with all that it started.";
    const CATEGORY: Category = Category::Shell;
    const TAGS: &[&str] = &["background", "process", "task"];
    const KEYWORDS: &str = "abort background cancel interrupt job kill process terminate";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations {
        read_only_hint: Some(false),
        destructive_hint: Some(true),
        idempotent_hint: Some(true),
        open_world_hint: Some(false),
    };
    const EXAMPLE: &str = r#"{"task_id": "task_1"}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let viewer = SessionKey::of(run.context());
        let task = run.environment().processes().tasks().find(&viewer, &input.task_id)?;
        if input.signal.is_some() {
            task.check_is_program("accepts no signals", "Leave out `signal` to stop it.")?;
        }
        let command = &task.command;
        let time = match (input.signal, input.force) {
            (_, true) => {
                command.kill();
                KILL_EFFECT
            }
            (Some(signal), false) => {
                command.signal(match signal {
                    StopSignal::Term => ProcessSignal::Terminate,
                    StopSignal::Int => ProcessSignal::Interrupt,
                    StopSignal::Hup => ProcessSignal::Hangup,
                    StopSignal::Quit => ProcessSignal::Quit,
                    StopSignal::Kill => ProcessSignal::Kill,
                    StopSignal::Usr1 => ProcessSignal::User1,
                    StopSignal::Usr2 => ProcessSignal::User2,
                });
                EFFECT
            }
            (None, false) => {
                command.stop();
                GRACE + KILL_EFFECT
            }
        };
        let _ = timeout(time, command.ended()).await;
        task.mark_reported_to(&viewer);
        answer(format!("{}.", task.describe_fully()), &Output { task: task.facts() })
    }
}
