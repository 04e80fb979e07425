//! `toolstead tokens rotate`.

use super::{
    CommandResult,
    exit::Exit,
    global::GlobalFlags,
    output::{StdoutWriter, note},
};
use crate::{
    composition_root::StartupError,
    config::{layers::environment::EnvironmentVariables, sections::token::rotate_server_token},
};
use clap::{Args, Subcommand};
use serde_json::json;

/// Replaces tokens.
#[derive(Debug, Args)]
pub struct TokensCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Replaces the token of `toolstead-server` in its file. A running server accepts the old one until it is restarted
    Rotate,
}

impl TokensCommand {
    pub(super) fn run(self, global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
        match self.command {
            Command::Rotate => rotate(global, output),
        }
    }
}

fn rotate(global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
    let token = rotate_server_token(&global.load()?, &EnvironmentVariables::of_process())
        .map_err(|problem| StartupError::Config(problem.into()))?;
    if global.json {
        output.json(&json!({"token_file": token.file.as_ref().map(|file| file.display().to_string())}))?;
    } else if output.is_terminal() {
        output.line(&format!("new token, stored in {}: {}", token.origin, token.token.expose()))?;
    } else {
        output.line(&format!("new token, stored in {}", token.origin))?;
    }
    if !global.is_quiet() {
        note("note: a running `toolstead-server` accepts the old token until it is restarted");
    }
    Ok(Exit::Done)
}
