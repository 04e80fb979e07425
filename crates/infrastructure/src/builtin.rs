//! The built-in tools, their contract and the code that they share.
//!
//! [`BuiltInTool`] is the contract of a tool, [`InProcessTools`] offers a list of them; both are in `tool_kit/`. The
//! tools are in `tools/`, one file each, and their names in other systems in `dialects/`. The other folders contain what
//! several tools use, by subject. Tools reach files through `sandbox/` alone.

mod agents;
mod browsing;
pub mod commands;
pub mod context;
mod dialects;
pub mod files;
mod google;
pub mod prelude;
mod text;
pub mod tool_kit;
mod tools;
mod web;

pub use agents::question_form;
#[cfg(any(test, feature = "testing"))]
pub use tool_kit::testing;
pub use tool_kit::{
    built_in_tool::{AnyTool, BuiltInTool},
    custom_tool::{CustomTool, DeclaredAccesses, ToolFuture, ToolOutput, UnstructuredResult, tool_fn},
    into_tool::IntoTool,
    provider::{InProcessTools, InvalidInProcessTools},
    tool_context::ToolContext,
    tool_environment::ToolEnvironment,
    tool_group::{ToolGroup, tool_group},
    typed_tool::{TypedTool, typed},
};
pub use tools::all;

use dialects::aliases;
use std::sync::LazyLock;
use toolstead_domain::Alias;

/// Returns every name and alias of a built-in tool.
pub fn names_and_aliases() -> Vec<&'static str> {
    let names = || tools::NAMES.iter().map(|(name, _)| *name);
    let aliases = names().flat_map(aliases::aliases_of).map(|alias| alias.name);
    aliases.chain(names()).collect()
}

/// Returns the aliases of a tool by its name, including those of a tool that calls other tools.
pub fn aliases_of(tool: &str) -> Vec<Alias> {
    aliases::aliases_of(tool)
}

/// Returns the name and the aliases of each built-in tool, its name first.
pub fn names_by_tool() -> Vec<Vec<&'static str>> {
    tools::NAMES.iter().map(|(name, _)| names_of(name)).collect()
}

/// Returns the names of the built-in tools that change nothing.
pub fn names_that_only_read() -> Vec<&'static str> {
    let reads = tools::HINTS.iter().filter(|(_, hints)| hints.read_only_hint == Some(true));
    reads.map(|(name, _)| *name).collect()
}

/// Returns every name and alias of a built-in tool that takes command lines.
pub fn command_tools() -> &'static [&'static str] {
    static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
        tools::NAMES.iter().filter(|(_, takes_lines)| *takes_lines).flat_map(|(name, _)| names_of(name)).collect()
    });
    &NAMES
}

fn names_of(tool: &'static str) -> Vec<&'static str> {
    let aliases = aliases::aliases_of(tool).into_iter().map(|alias| alias.name);
    std::iter::once(tool).chain(aliases).collect()
}

#[cfg(test)]
mod tests;
