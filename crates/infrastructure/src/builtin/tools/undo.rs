//! The tool `undo`.

use crate::builtin::{
    files::reverting::{self, Input, Output, RevertDirection},
    tool_kit::{
        built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext, tool_environment::ToolEnvironment,
    },
};
use serde_json::Value;
use toolstead_domain::{Access, Availability, Category, ToolAnnotations, ToolCall, ToolFailure, ToolResult};

/// Tool that reverts the file changes of a call.
pub(crate) struct Undo;

impl BuiltInTool for Undo {
    const NAME: &str = "undo";
    const TITLE: &str = "Undo";
    const DESCRIPTION: &str = "Reverts the file changes of one call: the last change of this session, or the given call. \
         If a file changed since, nothing is done. `dry_run` shows what would change; \
         `redo` repeats what was undone. Covers changes by file tools only, not by commands; \
         owner, ACL and attributes are not restored.";
    const BRIEF: &str =
        "Reverts the file changes of this session's last call, or of the given call; not changes by commands.";
    const CATEGORY: Category = Category::File;
    const TAGS: &[&str] = &["undo", "write"];
    const KEYWORDS: &str = "mistake restore revert rollback";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::WRITING;
    const EXAMPLE: &str = r#"{"dry_run": true}"#;
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
        reverting::accesses(RevertDirection::Undo, input, call, world).await
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        reverting::run(RevertDirection::Undo, &input, run).await
    }
}
