//! `toolstead tokens rotate`.

use super::{
    Outcome,
    exit::Exit,
    global::Global,
    output::{Output, note},
};
use crate::{
    composition_root::StartupError,
    config::{layers::environment::Environment, sections::token::rotate_server_token},
};
use clap::{Args, Subcommand};
use serde_json::json;

/// Replaces tokens.
#[derive(Debug, Args)]
pub struct Tokens {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Replaces the token of `toolstead-server` in its file. A running server accepts the old one until it is restarted
    Rotate,
}

impl Tokens {
    pub(super) fn run(self, global: &Global, output: &mut Output) -> Outcome {
        match self.command {
            Command::Rotate => rotate(global, output),
        }
    }
}

fn rotate(global: &Global, output: &mut Output) -> Outcome {
    let token = rotate_server_token(&global.load()?, &Environment::of_process())
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
