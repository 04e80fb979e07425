//! The command line. Each subcommand is defined in its own file. Subcommands convert and print, and make no decisions.

mod agent;
pub mod agent_files;
pub mod auth;
pub mod call;
pub mod chat;
mod columns;
pub mod completions;
pub mod config;
mod confirmation;
mod context_requests;
mod conversation_choice;
pub mod conversations;
pub mod doctor;
pub mod embedded;
pub mod executions;
pub mod exit;
pub mod global;
pub mod hooks;
mod keyboard;
pub mod mcp;
mod message_printer;
pub mod models;
mod named_principal;
mod narration;
pub mod output;
mod pager;
pub mod permissions;
mod prompt_args;
pub mod prompts;
pub mod query;
pub mod questions;
pub mod resources;
mod screen;
pub mod serve;
mod server_log;
pub mod servers;
pub mod terminal;
pub mod terminal_approver;
pub mod terminal_questions;
pub mod tokens;
pub mod tools;
mod typed_ahead;
mod typed_command;
pub mod views;

use crate::{config::agent_files::AgentFileKind, telemetry::LogSettings};
use clap::{Parser, Subcommand};
use exit::Exit;
use global::GlobalFlags;
use output::StdoutWriter;
use std::process::ExitCode;

/// The tool runtime and gateway for AI agents: every tool behind one registry, one policy and one audit log.
#[derive(Debug, Parser)]
#[command(name = "toolstead", version, max_term_width = 120, after_help = exit::EXIT_CODES)]
pub struct Cli {
    #[command(flatten)]
    global: GlobalFlags,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Lists the tools, or shows one
    Tools(tools::ToolsCommand),
    /// Calls a tool and prints its result
    Call(call::CallCommand),
    /// Runs a prompt with an agent
    Query(query::QueryCommand),
    /// Chats with an agent in the terminal
    Chat(chat::ChatCommand),
    /// Serves the tools over MCP on standard input and output
    Mcp(mcp::McpCommand),
    /// Lists the resources, or reads one
    Resources(resources::ResourcesCommand),
    /// Lists the prompts, or fills one in
    Prompts(prompts::PromptsCommand),
    /// Shows the audit log
    Executions(executions::ExecutionsCommand),
    /// Shows, copies and undoes conversations with agents
    Conversations(conversations::ConversationsCommand),
    /// Lists, shows or answers pending questions
    Questions(questions::QuestionsCommand),
    /// Shows the MCP servers and their status
    Servers(servers::ServersCommand),
    /// Lists, shows, exports and imports views of the tools
    Views(views::ViewsCommand),
    /// Lists the language models and checks whether they respond
    Models(models::ModelsCommand),
    /// Signs in to services and MCP servers, shows who is signed in, and signs out
    Auth(auth::AuthCommand),
    /// Replaces the token of `toolstead-server`
    Tokens(tokens::TokensCommand),
    /// Lists agents from agent files
    Agents(agent_files::AgentFilesCommand),
    /// Lists skills
    Skills(agent_files::AgentFilesCommand),
    /// Lists prompt commands for `chat` and `query`
    Commands(agent_files::AgentFilesCommand),
    /// Shows, explains, tests and writes permission rules
    Permissions(permissions::PermissionsCommand),
    /// Shows, checks or trusts the configuration
    Config(config::ConfigCommand),
    /// Lists or tests the hooks
    Hooks(hooks::HooksCommand),
    /// Checks the environment that Toolstead requires
    Doctor(doctor::DoctorCommand),
    /// Prints the completion script of a shell
    Completions(completions::CompletionsCommand),
}

impl Cli {
    /// Runs the command to its end. Results go to standard output, everything else to standard error.
    pub async fn run(self) -> ExitCode {
        let mut output = StdoutWriter::new();
        let global = &self.global;
        let outcome = match self.command {
            Command::Tools(command) => command.run(global, &mut output).await,
            Command::Call(command) => command.run(global, &mut output).await,
            Command::Query(command) => Box::pin(command.run(global, &mut output)).await,
            Command::Chat(command) => Box::pin(command.run(global, &mut output)).await,
            Command::Mcp(command) => Box::pin(command.run(global)).await,
            Command::Resources(command) => command.run(global, &mut output).await,
            Command::Prompts(command) => command.run(global, &mut output).await,
            Command::Executions(command) => command.run(global, &mut output).await,
            Command::Conversations(command) => Box::pin(command.run(global, &mut output)).await,
            Command::Questions(command) => Box::pin(command.run(global, &mut output)).await,
            Command::Servers(command) => command.run(global, &mut output).await,
            Command::Views(command) => command.run(global, &mut output).await,
            Command::Models(command) => Box::pin(command.run(global, &mut output)).await,
            Command::Auth(command) => Box::pin(command.run(global, &mut output)).await,
            Command::Tokens(command) => command.run(global, &mut output),
            Command::Agents(command) => command.run(AgentFileKind::Agent, global, &mut output),
            Command::Skills(command) => command.run(AgentFileKind::Skill, global, &mut output),
            Command::Commands(command) => command.run(AgentFileKind::Command, global, &mut output),
            Command::Permissions(command) => command.run(global, &mut output).await,
            Command::Config(command) => command.run(global, &mut output).await,
            Command::Hooks(command) => command.run(global, &mut output).await,
            Command::Doctor(command) => Box::pin(command.run(global, &mut output)).await,
            Command::Completions(command) => command.run(&mut output),
        };
        exit::conclude(outcome, global.json)
    }

    /// Returns the log settings. `chat` and `query` show calls themselves, so these are not logged.
    pub fn log(&self) -> LogSettings {
        self.global.log(matches!(self.command, Command::Chat(_) | Command::Query(_)))
    }
}

/// Result of every subcommand.
pub type CommandResult = Result<Exit, exit::CommandError>;
