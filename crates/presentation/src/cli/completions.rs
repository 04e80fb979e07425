//! `toolstead completions SHELL`.

use super::{Cli, CommandResult, exit::Exit, output::StdoutWriter};
use clap::{Args, CommandFactory};

/// Prints a completion script.
#[derive(Debug, Args)]
pub struct CompletionsCommand {
    /// The shell
    shell: clap_complete::Shell,
}

impl CompletionsCommand {
    pub(super) fn run(self, output: &mut StdoutWriter) -> CommandResult {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "toolstead", &mut script);
        output.content(String::from_utf8_lossy(&script).trim_end())?;
        Ok(Exit::Done)
    }
}
