//! The tool `redo`.

use crate::builtin::{
    files::reverting::{self, Input, Output, RevertDirection},
    tool_kit::{
        built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext, tool_environment::ToolEnvironment,
    },
};
use serde_json::Value;
use toolstead_domain::{Access, Availability, Category, ToolAnnotations, ToolCall, ToolFailure, ToolResult};

/// Tool that repeats a change that was undone.
pub(crate) struct Redo;

impl BuiltInTool for Redo {
    const NAME: &str = "redo";
    const TITLE: &str = "Redo";
    const DESCRIPTION: &str = "Repeats changes that `undo` reverted: the last undo of this session, or the given call (its own id, \
         or that of the undo). If a file changed since, nothing is done. `dry_run` \
         shows what would change.";
    const BRIEF: &str = "Repeats what `undo` reverted.";
    const CATEGORY: Category = Category::File;
    const TAGS: &[&str] = &["redo", "write"];
    const KEYWORDS: &str = "reapply restore repeat";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::WRITING;
    const EXAMPLE: &str = r#"{}"#;
    const DEPENDS_ON_JOURNAL: bool = true;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    fn availability(&self, world: &ToolEnvironment) -> Availability {
        reverting::availability(world)
    }

    async fn accesses_of(
        &self,
        input: &Input,
        call: &ToolCall,
        world: &ToolEnvironment,
    ) -> Result<Vec<Access>, ToolFailure> {
        reverting::accesses(RevertDirection::Redo, input, call, world).await
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        reverting::run(RevertDirection::Redo, &input, run).await
    }
}
