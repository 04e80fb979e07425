//! Conversion of every way to write a tool into a tool.

use crate::builtin::tool_kit::{
    built_in_tool::AnyTool,
    custom_tool::CustomTool,
    typed_tool::{TypedTool, typed},
};

/// A value that an application can add as a tool: a [`TypedTool`], a closure by
/// [`tool_fn`](crate::builtin::tool_kit::custom_tool::tool_fn), or a
/// [`BuiltInTool`](crate::builtin::tool_kit::built_in_tool::BuiltInTool).
///
/// `Form` distinguishes the implementations and is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    note = "implement `TypedTool` or `BuiltInTool` for it, or make a tool of a closure with `tool_fn(..)`"
)]
pub trait IntoTool<Form> {
    /// Type of the tool.
    type Tool: AnyTool + 'static;

    /// Converts the value into a tool.
    fn into_tool(self) -> Self::Tool;
}

/// Marker of values that are tools already.
#[derive(Debug)]
pub enum AnyToolMarker {}

/// Marker of values that implement [`TypedTool`].
#[derive(Debug)]
pub enum TypedToolMarker {}

impl<T: AnyTool + 'static> IntoTool<AnyToolMarker> for T {
    type Tool = T;

    fn into_tool(self) -> T {
        self
    }
}

impl<T: TypedTool> IntoTool<TypedToolMarker> for T {
    type Tool = CustomTool;

    fn into_tool(self) -> CustomTool {
        typed(self)
    }
}
