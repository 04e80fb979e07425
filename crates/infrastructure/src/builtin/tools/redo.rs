//! The tool `redo`.

use crate::builtin::{
    built_in_tool::BuiltInTool,
    files::{
        reverting,
        reverting::{Direction, Input, Output},
    },
    tool_context::ToolContext,
    schema::output_schema,
    tool_environment::ToolEnvironment,
};
use serde_json::Value;
use toolstead_domain::{Access, Availability, Category, ToolAnnotations, ToolCall, ToolFailure, ToolResult};

/// Tool that repeats a change that was undone.
pub(crate) struct Redo;

impl BuiltInTool for Redo {
    const NAME: &str = "redo";
    const TITLE: &str = "Redo";
    const DESCRIPTION: &str = "Does again what `undo` took back: what was undone last in this session, or the call that is named (its own id, \
         or that of the undo). Files that were changed since are left alone, and then nothing is done. `dry_run` \
         shows what would change.";
    const BRIEF: &str = "Does again what `undo` took back.";
    const CATEGORY: Category = Category::File;
    const TAGS: &[&str] = &["redo", "write"];
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::WRITING;
    const EXAMPLE: &str = r#"{}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    fn availability(&self, world: &ToolEnvironment) -> Availability {
        reverting::availability(world)
    }

    async fn accesses_of(&self, input: &Input, call: &ToolCall, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        reverting::accesses(Direction::Redo, input, call, world).await
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        reverting::run(Direction::Redo, &input, run).await
    }
}
