//! The built-in tools: one file a tool, one line in the list below.
//!
//! [`built_in_tool::BuiltInTool`] is the contract of a tool, [`provider::BuiltInTools`] offers a list of them. Tools
//! reach files through `sandbox/` alone.

mod aliases;
mod answer;
pub mod built_in_tool;
mod capture;
mod change_set;
mod closed_paths;
mod command;
mod command_output;
mod content;
pub(crate) mod documents;
mod etag;
mod file_filter;
pub mod file_limits;
mod hex_window;
mod image_view;
mod line_ending;
pub mod line_index;
mod line_unit;
mod plain_text;
mod program_run;
pub mod programs;
pub mod provider;
mod report;
pub mod reverting;
pub mod run;
mod sampled;
pub mod schema;
pub mod seen_files;
pub mod shell_analysis;
mod sniff;
mod snippet;
mod source;
pub mod tasks;
mod text_edit;
mod text_encoding;
mod text_window;
mod unified_diff;
pub mod world;
mod written_file;

use crate::builtin::built_in_tool::AnyBuiltInTool;
use std::sync::LazyLock;

/// Declares the module of each tool and puts the tool into [`all`].
macro_rules! built_in_tools {
    ($($module:ident::$tool:ident,)*) => {
        $(mod $module;)*

        /// Every built-in tool that is compiled in, in the order in which lists show them.
        pub fn all() -> Vec<Box<dyn AnyBuiltInTool>> {
            vec![$(Box::new($module::$tool)),*]
        }
    };
}

built_in_tools! {
    read_file::ReadFile,
    file_info::FileInfo,
    write_file::WriteFile,
    append_file::AppendFile,
    edit_file::EditFile,
    multi_edit::MultiEdit,
    delete_file::DeleteFile,
    apply_patch::ApplyPatch,
    notebook_edit::NotebookEdit,
    undo::Undo,
    redo::Redo,
    list_directory::ListDirectory,
    glob::Glob,
    grep::Grep,
    bash::Bash,
    task_list::TaskList,
    task_output::TaskOutput,
    task_wait::TaskWait,
    task_input::TaskInput,
    task_stop::TaskStop,
    git::Git,
    go_tool::GoTool,
    media_probe::MediaProbe,
    system_info::SystemInfo,
    disk_info::DiskInfo,
    network_info::NetworkInfo,
    current_time::CurrentTime,
    working_directory::WorkingDirectory,
    help::Help,
    echo::Echo,
}

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
