//! The built-in tools, and what they stand on.
//!
//! [`built_in_tool::BuiltInTool`] is the contract of a tool, [`provider::BuiltInTools`] offers a list of them. The tools
//! stand in `tools/`, one file each; `commands/`, `files/` and `text/` hold what several of them need. Tools reach files
//! through `sandbox/` alone.

mod aliases;
mod answer;
mod blocking;
pub mod built_in_tool;
pub mod commands;
pub mod context;
pub mod files;
pub mod provider;
pub mod run;
pub mod schema;
#[cfg(any(test, feature = "testing"))]
#[expect(clippy::expect_used, reason = "a test kit is a test: it fails by panicking")]
#[expect(clippy::disallowed_methods, reason = "the folder is the test's own")]
pub mod testing;
mod text;
mod tools;
pub mod world;

pub use tools::all;

use crate::builtin::built_in_tool::AnyBuiltInTool;
use std::sync::LazyLock;

/// Every name and alias of a built-in tool.
pub fn spellings() -> Vec<&'static str> {
    let names: Vec<&'static str> = all().iter().map(|tool| tool.name()).collect();
    let aliases = names.iter().flat_map(|name| aliases::aliases_of(name)).map(|alias| alias.name);
    aliases.chain(names.iter().copied()).collect()
}

/// The names of each built-in tool, its own first.
pub fn spellings_by_tool() -> Vec<Vec<&'static str>> {
    all().iter().map(|tool| spellings_of(&**tool)).collect()
}

/// Every name and alias of a built-in tool that takes command lines.
pub fn command_tools() -> &'static [&'static str] {
    static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
        all().iter().filter(|tool| tool.takes_command_lines()).flat_map(|tool| spellings_of(&**tool)).collect()
    });
    &NAMES
}

fn spellings_of(tool: &dyn AnyBuiltInTool) -> Vec<&'static str> {
    let aliases = aliases::aliases_of(tool.name()).into_iter().map(|alias| alias.name);
    std::iter::once(tool.name()).chain(aliases).collect()
}

#[cfg(test)]
mod tests;
