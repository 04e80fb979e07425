//! A tool with typed arguments and a typed answer: the shortest way to write one as a type.

use crate::builtin::{
    added_tool::{AddedTool, ToolOutput, Touches, tool_fn},
    run::Run,
    world::World,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use toolstead_domain::{category::Category, tool::ToolAnnotations, tool_failure::ToolFailure};

/// A tool as a type: what it takes, what it touches, what it answers. [`typed`] makes a tool of it.
///
/// Unlike a [`BuiltInTool`](crate::builtin::built_in_tool::BuiltInTool) it answers with a value. The schema of its result
/// and its structured content are made of the same type, so it cannot promise one thing and answer another.
pub trait TypedTool: Send + Sync + 'static {
    /// The name, in lower snake case.
    const NAME: &'static str;
    /// The name for people; none where it is empty.
    const TITLE: &'static str = "";
    /// What it does, when to use it and how, for a model.
    const DESCRIPTION: &'static str;
    /// What it is for.
    const CATEGORY: Category = Category::Utility;
    /// Free words to filter by.
    const TAGS: &'static [&'static str] = &[];
    /// MCP's hints. They inform people and grant nothing.
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::UNSAID;
    /// Arguments of a typical call, as JSON text; none where it is empty.
    const EXAMPLE: &'static str = "";
    /// What every call touches, where it is the same for all. Somebody is asked about each call of a tool that does not
    /// say.
    const TOUCHES: Touches = Touches::Unknown;
    /// The arguments. Doc comments on its fields are what a model reads of them.
    type Input: DeserializeOwned + JsonSchema + Send + Sync + 'static;
    /// The answer. One that is an object has a schema, which is the tool's `outputSchema`.
    type Output: ToolOutput + 'static;

    /// What this call would touch. It changes nothing.
    ///
    /// # Errors
    /// A failure for the model when the arguments cannot be understood.
    fn touches(&self, input: &Self::Input, world: &World) -> impl Future<Output = Result<Touches, ToolFailure>> + Send {
        let _ = (input, world);
        async { Ok(Self::TOUCHES) }
    }

    /// Does it.
    ///
    /// # Errors
    /// A failure for the model: what was wrong, and what to do next.
    fn run(&self, input: Self::Input, run: &Run<'_>) -> impl Future<Output = Result<Self::Output, ToolFailure>> + Send;
}

/// The tool that a type describes.
pub fn typed<T: TypedTool>(tool: T) -> AddedTool {
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
