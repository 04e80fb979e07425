//! Tools with typed arguments and a typed result: the shortest way to write a tool as a type.

use crate::builtin::tool_kit::{
    custom_tool::{CustomTool, DeclaredAccesses, ToolOutput, tool_fn},
    tool_context::ToolContext,
    tool_environment::ToolEnvironment,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use toolstead_domain::{Category, ToolAnnotations, ToolFailure};

/// A tool as a type: its arguments, its accesses and its result. [`typed`] makes a tool of it.
///
/// Unlike a [`BuiltInTool`](crate::builtin::tool_kit::built_in_tool::BuiltInTool) it returns a value. The schema of its result
/// and its structured content are made of the same type, so they always agree.
pub trait TypedTool: Send + Sync + 'static {
    /// Name, in lower snake case.
    const NAME: &'static str;
    /// Name for display; none if empty.
    const TITLE: &'static str = "";
    /// Description for a model: what the tool does, when and how to use it.
    const DESCRIPTION: &'static str;
    /// Category of the tool.
    const CATEGORY: Category = Category::Utility;
    /// Free words to filter by.
    const TAGS: &'static [&'static str] = &[];
    /// Annotations of MCP. They inform users and grant nothing.
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::UNSAID;
    /// Arguments of a typical call, as JSON text; none if empty.
    const EXAMPLE: &'static str = "";
    /// Accesses of every call, if they do not depend on the arguments. Each call of a tool that declares nothing
    /// requires approval.
    const TOUCHES: DeclaredAccesses = DeclaredAccesses::Unknown;
    /// Type of the arguments. Models read the doc comments on its fields.
    type Input: DeserializeOwned + JsonSchema + Send + Sync + 'static;
    /// Type of the result. An object has a schema, which is the tool's `outputSchema`.
    type Output: ToolOutput + 'static;

    /// Returns what this call would touch. Must not change anything.
    ///
    /// # Errors
    /// A failure for the model when the arguments cannot be understood.
    fn touches(
        &self,
        input: &Self::Input,
        world: &ToolEnvironment,
    ) -> impl Future<Output = Result<DeclaredAccesses, ToolFailure>> + Send {
        let _ = (input, world);
        async { Ok(Self::TOUCHES) }
    }

    /// Runs a call.
    ///
    /// # Errors
    /// A failure for the model: what was wrong, and what to do next.
    fn run(
        &self,
        input: Self::Input,
        run: &ToolContext<'_>,
    ) -> impl Future<Output = Result<Self::Output, ToolFailure>> + Send;
}

/// Returns the tool that a type defines.
pub fn typed<T: TypedTool>(tool: T) -> CustomTool {
    let tool = Arc::new(tool);
    let touching = tool.clone();
    let added = tool_fn(T::NAME, T::DESCRIPTION, move |input: T::Input, run| {
        let tool = tool.clone();
        Box::pin(async move { tool.run(input, &run).await })
    });
    let added = added.touches(move |input: T::Input, world| {
        let tool = touching.clone();
        Box::pin(async move { tool.touches(&input, world).await })
    });
    added
        .with_title(T::TITLE)
        .with_category(T::CATEGORY)
        .with_tags(T::TAGS.iter().copied())
        .with_annotations(T::ANNOTATIONS)
        .with_example(T::EXAMPLE)
}
