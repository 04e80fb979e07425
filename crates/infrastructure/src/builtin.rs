//! The built-in tools, their contract and the code that they share.
//!
//! [`built_in_tool::BuiltInTool`] is the contract of a tool, [`provider::InProcessTools`] offers a list of them. The
//! tools are in `tools/`, one file each; `commands/`, `files/` and `text/` contain what several tools use. Tools reach
//! files through `sandbox/` alone.

pub mod added_tool;
mod aliases;
mod answer;
mod blocking;
mod browsing;
pub mod built_in_tool;
mod calendar_event;
pub mod commands;
pub mod context;
mod dialects;
pub mod files;
mod foreign_answer;
mod google;
mod image_answer_cache;
pub mod into_tool;
mod mail;
mod model_answer;
mod page_cache;
mod plans_in_memory;
pub mod prelude;
pub mod provider;
pub mod question_form;
pub mod schema;
#[cfg(any(test, feature = "testing"))]
#[expect(clippy::expect_used, reason = "a test kit is a test: it fails by panicking")]
#[expect(clippy::disallowed_methods, reason = "the folder is the test's own")]
pub mod testing;
mod text;
pub mod tool_context;
pub mod tool_environment;
pub mod tool_group;
mod tools;
pub mod typed_tool;
mod web_address;

pub use tools::all;

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
