//! The flags that every subcommand understands, and what they lead to.

use super::{exit::Failed, output::note, terminal_approver::TerminalApprover};
use crate::{
    app::App,
    composition_root::{Composition, Servers, StartupError},
    config::{
        ADMINISTRATOR_FOLDER, Config,
        environment::Environment,
        hooks::choosing,
        policy::check_tool_names,
        request::{Flags, Request},
    },
    event_file::EventTarget,
    telemetry::Verbosity,
};
use clap::Args;
use std::path::PathBuf;
use toolstead_infrastructure::builtin;

/// The global flags.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// The tools to offer: `a,b` alone, `+a,-b` more and less than configured, nothing for none
    #[arg(short, long, global = true, value_name = "LIST", allow_hyphen_values = true)]
    tools: Option<String>,
    /// This configuration file alone, instead of those that would be found
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A folder that tools may read and write; may be given several times
    #[arg(long, global = true, value_name = "DIR")]
    root: Vec<String>,
    /// A permission rule that allows something for this run; may be given several times
    #[arg(long, global = true, value_name = "RULE")]
    allow: Vec<String>,
    /// Writes what happens as JSON lines to the end of this file; `-` is standard output
    #[arg(long, global = true, value_name = "FILE|-")]
    pub(super) events: Option<EventTarget>,
    /// Prints JSON
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Says nothing but errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Says more; twice: everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

impl Global {
    /// How much is logged.
    pub fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, 1) => Verbosity::Verbose,
            (false, _) => Verbosity::Debug,
        }
    }

    /// Loads the configuration and tells its notes.
    pub(super) fn load(&self) -> Result<Config, Failed> {
        self.load_for(None)
    }

    /// As [`load`](Self::load), with the address to listen at.
    pub(super) fn load_for(&self, listen: Option<String>) -> Result<Config, Failed> {
        let config = Config::load(&self.request(listen)?).map_err(StartupError::from)?;
        let spellings = builtin::spellings();
        check_tool_names(&config, &spellings).map_err(StartupError::from)?;
        choosing::check_choices(&config, &spellings).map_err(StartupError::from)?;
        if !self.quiet {
            let hits = config.hooks.lint(&builtin::spellings_by_tool());
            hits.iter().for_each(|hit| note(&format!("note: {hit}")));
            let notes = choosing::notes(&config, &spellings).into_iter().chain(config.notes.iter().cloned());
            notes.for_each(|problem| note(&format!("note: {problem}")));
        }
        Ok(config)
    }

    fn request(&self, listen: Option<String>) -> Result<Request, Failed> {
        Ok(Request {
            environment: Environment::of_process(),
            start: std::env::current_dir()?,
            administrator: PathBuf::from(ADMINISTRATOR_FOLDER),
            file: self.config.clone(),
            flags: Flags { roots: self.root.clone(), allow: self.allow.clone(), tools: self.tools.clone(), listen },
        })
    }

    /// Builds the application with these roots beside those that were typed. The notes of the configuration are told
    /// already.
    pub(super) async fn compose_in(&self, roots: impl IntoIterator<Item = String>) -> Result<Composition, Failed> {
        let mut request = self.request(None)?;
        request.flags.roots.extend(roots);
        let config = Config::load(&request).map_err(StartupError::from)?;
        self.watched(App::builder(config).build().await?).await
    }

    /// Builds the application with these servers.
    pub(super) async fn compose(&self, servers: Servers) -> Result<Composition, Failed> {
        self.watched(App::builder(self.load()?).servers(servers).build().await?).await
    }

    /// Builds the application for questions about calls of these tools, with the servers that they need.
    pub(super) async fn compose_for_calls<'a>(
        &self,
        tools: impl Iterator<Item = &'a str>,
    ) -> Result<Composition, Failed> {
        let config = self.load()?;
        let servers = needed_for_all(tools, &config);
        Ok(App::builder(config).servers(servers).build().await?)
    }

    /// Builds the application for one call: a person may be asked, and only the server that is needed is started.
    pub(super) async fn compose_for_call(&self, tool: &str) -> Result<Composition, Failed> {
        let config = self.load()?;
        let servers = needed_for(tool, &config);
        let approval_timeout = config.approval_timeout;
        let builder = App::builder(config).servers(servers).approver(TerminalApprover::of_process(approval_timeout));
        self.watched(builder.build().await?).await
    }

    /// The application, with `--events` obeyed.
    pub(super) async fn watched(&self, mut composition: Composition) -> Result<Composition, Failed> {
        if let Some(target) = &self.events
            && let Err(error) = composition.write_events(target)
        {
            composition.close().await;
            return Err(Failed::Usage(error.to_string()));
        }
        Ok(composition)
    }
}

/// What all of these tools need together.
fn needed_for_all<'a>(mut tools: impl Iterator<Item = &'a str>, config: &Config) -> Servers {
    let Some(first) = tools.next().map(|tool| needed_for(tool, config)) else { return Servers::None };
    tools.map(|tool| needed_for(tool, config)).fold(first, |all, one| if all == one { all } else { Servers::All })
}

/// A built-in tool needs no server, a tool with a server's name needs that one.
pub(super) fn needed_for(tool: &str, config: &Config) -> Servers {
    if builtin::spellings().contains(&tool) {
        return Servers::None;
    }
    let named = tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")).map(|(server, _)| server);
    match named {
        Some(server) if config.mcp_servers.iter().any(|one| one.name.as_str() == server) => {
            Servers::Only(server.into())
        }
        _ => Servers::All,
    }
}
