//! The tool `undo`.

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

/// Tool that reverts the file changes of a call.
pub(crate) struct Undo;

impl BuiltInTool for Undo {
    const NAME: &str = "undo";
    const TITLE: &str = "Undo";
    const DESCRIPTION: &str = "Takes back what one call changed in files: the last change of this session, or the call that is named. \
         Files that were changed since are left alone, and then nothing is done. `dry_run` shows what would change; \
         `redo` takes the undo back. Only changes by file tools are known, not those by commands; \
         owner, ACL and attributes are not restored.";
    const BRIEF: &str = "Takes back what the last call of this session changed in files, or the call that is named; not what commands changed.";
    const CATEGORY: Category = Category::File;
    const TAGS: &[&str] = &["undo", "write"];
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::WRITING;
    const EXAMPLE: &str = r#"{"dry_run": true}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    fn availability(&self, world: &ToolEnvironment) -> Availability {
        reverting::availability(world)
    }

    async fn accesses_of(&self, input: &Input, call: &ToolCall, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        reverting::accesses(Direction::Undo, input, call, world).await
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        reverting::run(Direction::Undo, &input, run).await
    }
}
