//! Global flags of all subcommands, and the configuration and application that result from them.

use super::{
    exit::CommandError, output::note, terminal::Terminal, terminal_approver::TerminalApprover,
    terminal_questions::TerminalQuestions,
};
use crate::{
    app::App,
    composition_root::{AppBuilder, RunningApp, ServerSelection, SessionLifetime, StartupError},
    config::{
        Config, ConfigFile,
        hooks::hook_selector_checks,
        layers::request::{ConfigFlags, ConfigRequest},
        reported_notes,
        sections::policy::{check_tool_names, nameable},
        tree::problem::Problem,
    },
    event_file::EventTarget,
    suggestions::CliSuggestionFormatter,
    telemetry::{LogFormat, LogSettings, Verbosity},
};
use clap::Args;
use serde_json::{Map, Value};
use std::{convert::Infallible, future::ready, path::PathBuf, sync::Arc};
use toolstead_domain::context::server_uri;
use toolstead_infrastructure::builtin;

/// The global flags.
#[derive(Debug, Clone, Args)]
pub struct GlobalFlags {
    /// Tools to offer: `a,b` only these, `+a,-b` relative to the configuration, an empty list for none
    #[arg(short, long, global = true, value_name = "LIST", allow_hyphen_values = true, value_parser = chosen_tools)]
    tools: Option<String>,
    /// Dialect of tool names and results: `native`, `micro_x`, `clai`, `claude_code`, `tfo` or `kodelet`
    #[arg(long, global = true, value_name = "NAME")]
    dialect: Option<String>,
    /// The only configuration file to read
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder that tools may read and write; repeatable
    #[arg(long, global = true, value_name = "DIR")]
    root: Vec<String>,
    /// Permission rule to allow for this run; repeatable
    #[arg(long, global = true, value_name = "RULE")]
    allow: Vec<String>,
    /// Appends events to this file as JSON lines; `-` is standard output
    #[arg(long, global = true, value_name = "FILE|-")]
    pub(super) events: Option<EventTarget>,
    /// Prints JSON
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Suppresses all output except errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Prints more details; repeat for all details
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Format of log lines on standard error
    #[arg(long, global = true, value_name = "FORMAT", value_enum, default_value_t)]
    log_format: LogFormat,
}

impl GlobalFlags {
    pub(super) fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, 1) => Verbosity::Verbose,
            (false, _) => Verbosity::Debug,
        }
    }

    /// Returns the log of a command. With `-v` it has each call, unless the command itself `shows_calls`.
    pub(super) fn log(&self, shows_calls: bool) -> LogSettings {
        let verbosity = self.verbosity();
        let calls = verbosity > Verbosity::Normal && !shows_calls;
        LogSettings { verbosity, format: self.log_format, server: false, calls }
    }

    /// Returns the log of a server. It contains each call with `-v` or if the configuration enables that.
    pub(super) fn log_of_server(&self, log_calls: bool) -> LogSettings {
        let log = self.log(false);
        LogSettings { server: true, calls: log.calls || log_calls, ..log }
    }

    /// Returns `true` if only errors are printed.
    pub(super) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Loads the configuration and prints the notes that were not reported yet for the current content of their files.
    /// Prints none with `--quiet`.
    pub(super) fn load(&self) -> Result<Config, CommandError> {
        let (config, notes) = self.load_with_notes(None)?;
        if !self.quiet {
            reported_notes::unreported(&config, notes).iter().for_each(|problem| note(&format!("note: {problem}")));
        }
        Ok(config)
    }

    /// Loads the configuration of a server that listens at this address. Returns it with the notes that were not
    /// reported yet, and records these as reported.
    pub(super) fn load_for_server(&self, listen: Option<String>) -> Result<(Config, Vec<Problem>), CommandError> {
        let (config, notes) = self.load_with_notes(listen)?;
        let notes = reported_notes::unreported(&config, notes);
        Ok((config, notes))
    }

    /// Loads the configuration and prints all of its notes, for commands that show the configuration.
    pub(super) fn load_and_print_notes(&self) -> Result<Config, CommandError> {
        let (config, notes) = self.load_with_notes(None)?;
        if !self.quiet {
            notes.iter().for_each(|problem| note(&format!("note: {problem}")));
        }
        Ok(config)
    }

    /// Loads the configuration without printing its notes.
    pub(super) fn load_silently(&self) -> Result<Config, CommandError> {
        Ok(self.load_with_notes(None)?.0)
    }

    /// Loads the configuration as it would be if this file were trusted. Stores nothing.
    pub(super) fn preview_trust(&self, file: &ConfigFile) -> Result<Config, CommandError> {
        Ok(Config::preview_trust(&self.request(None)?, file).map_err(StartupError::from)?)
    }

    fn load_with_notes(&self, listen: Option<String>) -> Result<(Config, Vec<Problem>), CommandError> {
        let mut config = Config::load(&self.request(listen)?).map_err(StartupError::from)?;
        self.keep_events_from_tools(&mut config);
        let spellings = nameable();
        check_tool_names(&config, &spellings).map_err(StartupError::from)?;
        hook_selector_checks::check_choices(&config, &spellings).map_err(StartupError::from)?;
        let mut notes = config.hooks.lint(&builtin::names_by_tool());
        notes.extend(hook_selector_checks::notes(&config, &spellings));
        notes.extend(config.notes.iter().cloned());
        Ok((config, notes))
    }

    fn keep_events_from_tools(&self, config: &mut Config) {
        if let Some(EventTarget::File(file)) = &self.events {
            config.keep_from_tools(file);
        }
    }

    fn request(&self, listen: Option<String>) -> Result<ConfigRequest, CommandError> {
        let flags = ConfigFlags {
            roots: self.root.clone(),
            allow: self.allow.clone(),
            tools: self.tools.clone(),
            dialect: self.dialect.clone(),
            listen,
        };
        Ok(ConfigRequest { file: self.config.clone(), flags, ..ConfigRequest::of_process()? })
    }

    /// Builds the application for one client with these capabilities, and with these roots in addition to those of the
    /// flags. Does not print the notes of the configuration.
    pub(super) async fn compose_in(
        &self,
        roots: impl IntoIterator<Item = String>,
        client: Map<String, Value>,
    ) -> Result<RunningApp, CommandError> {
        let mut request = self.request(None)?;
        request.flags.roots.extend(roots);
        let mut config = Config::load(&request).map_err(StartupError::from)?;
        self.keep_events_from_tools(&mut config);
        let building = builder(config).for_one_client(ready(client)).starting_servers_when_used();
        self.watched(building.build().await?).await
    }

    /// Builds the application with these servers.
    pub(super) async fn compose(&self, servers: ServerSelection) -> Result<RunningApp, CommandError> {
        self.watched(builder(self.load()?).servers(servers).build().await?).await
    }

    /// Builds the application like [`compose`](Self::compose), and prints all notes, for commands that show the
    /// configuration.
    pub(super) async fn compose_and_print_notes(&self, servers: ServerSelection) -> Result<RunningApp, CommandError> {
        self.watched(builder(self.load_and_print_notes()?).servers(servers).build().await?).await
    }

    /// Builds the application for checking calls of these tools, with the servers that they need.
    pub(super) async fn compose_for_calls<'a>(
        &self,
        tools: impl Iterator<Item = &'a str>,
    ) -> Result<RunningApp, CommandError> {
        let config = self.load()?;
        let servers = needed_for_all(tools, &config);
        Ok(builder(config).servers(servers).build().await?)
    }

    /// Builds the application for one call, through the view with this name if there is one: the user may be asked for
    /// approval, and only the required server is started.
    pub(super) async fn compose_for_call(
        &self,
        tool: &str,
        view: Option<&str>,
        session_lifetime: SessionLifetime,
        terminal: Option<Arc<Terminal>>,
    ) -> Result<RunningApp, CommandError> {
        let config = self.load()?;
        let view = view.map(|name| config.view(name)).transpose();
        let view = view.map_err(|error| CommandError::Usage(error.to_string()))?;
        let own_name = view.and_then(|view| view.content.tool_named(tool)).unwrap_or(tool);
        let servers = needed_for(own_name, &config);
        self.compose_with_approver(config, servers, session_lifetime, terminal).await
    }

    /// Builds the application for conversations with an agent: the user may be asked for approval, and all servers are
    /// started.
    pub(super) async fn compose_for_agent(
        &self,
        config: Config,
        terminal: Option<Arc<Terminal>>,
    ) -> Result<RunningApp, CommandError> {
        self.compose_with_approver(config, ServerSelection::All, SessionLifetime::EndsWithConversation, terminal).await
    }

    /// Returns the tool selection of `--tools`.
    pub(super) fn typed_tools(&self) -> Option<&str> {
        self.tools.as_deref()
    }

    async fn compose_with_approver(
        &self,
        config: Config,
        servers: ServerSelection,
        session_lifetime: SessionLifetime,
        terminal: Option<Arc<Terminal>>,
    ) -> Result<RunningApp, CommandError> {
        let approval_timeout = config.permissions.approval_timeout;
        // Servers receive the capabilities of this client before they list their tools.
        let client = terminal.as_ref().map(|_| TerminalQuestions::capabilities()).unwrap_or_default();
        let approver = TerminalApprover::at(terminal, approval_timeout);
        let building = builder(config)
            .servers(servers)
            .for_one_client(ready(client))
            .approver_with_own_timeout(approver)
            .session_lifetime(session_lifetime);
        self.watched(building.build().await?).await
    }

    /// Builds the application for a request for this resource or prompt, with only the required server if the subject
    /// names it. Without a subject, for lists of all resources or prompts, it starts all servers and waits for their
    /// lists.
    pub(super) async fn compose_to_forward(&self, subject: Option<&str>) -> Result<RunningApp, CommandError> {
        let config = self.load()?;
        let server = subject.and_then(|subject| match server_uri::server_of(subject) {
            Some(server) => Some(server),
            None => Some(subject.strip_prefix("mcp__")?.split_once("__")?.0),
        });
        let is_configured = |server: &&str| config.mcp_servers.iter().any(|one| one.name.as_str() == *server);
        let servers = match server.filter(is_configured) {
            Some(server) => ServerSelection::Only(server.into()),
            None if subject.is_some_and(|subject| OWN_SCHEMES.iter().any(|scheme| subject.starts_with(scheme))) => {
                ServerSelection::None
            }
            None => ServerSelection::All,
        };
        let is_list = subject.is_none();
        let composition =
            self.compose_with_approver(config, servers, SessionLifetime::EndsWithCall, Terminal::of_process()).await?;
        if is_list {
            composition.app.context.settled(composition.config.connect_timeout()).await;
        }
        Ok(composition)
    }

    /// Makes the application write its events to the target of `--events`, if there is one. Closes the application if
    /// that fails.
    pub(super) async fn watched(&self, mut composition: RunningApp) -> Result<RunningApp, CommandError> {
        if let Some(target) = &self.events
            && let Err(error) = composition.write_events(target)
        {
            composition.close().await;
            return Err(CommandError::Usage(error.to_string()));
        }
        Ok(composition)
    }
}

/// URI schemes of built-in resources, which never need a server.
const OWN_SCHEMES: [&str; 3] = ["config://", "status://", "file:///"];

/// Parses the value of `--tools` or `-t`. `-tools=a,b` is accepted as well, because other programs write long flags
/// with one dash.
fn chosen_tools(text: &str) -> Result<String, Infallible> {
    Ok(text.strip_prefix("ools=").unwrap_or(text).to_owned())
}

/// Returns the servers that are required for all of these tools: all servers if the tools require different ones.
fn needed_for_all<'a>(mut tools: impl Iterator<Item = &'a str>, config: &Config) -> ServerSelection {
    let Some(first) = tools.next().map(|tool| needed_for(tool, config)) else { return ServerSelection::None };
    tools
        .map(|tool| needed_for(tool, config))
        .fold(first, |all, one| if all == one { all } else { ServerSelection::All })
}

/// Returns the servers that a tool requires: none for a built-in tool, one for a tool whose name contains the name of a
/// server, and all for any other name and for a tool that may call other tools.
pub(super) fn needed_for(tool: &str, config: &Config) -> ServerSelection {
    let named = tool.strip_prefix("mcp__").unwrap_or(tool).split_once("__").map(|(server, _)| server);
    match named {
        Some(server) if config.mcp_servers.iter().any(|one| one.name.as_str() == server) => {
            ServerSelection::Only(server.into())
        }
        _ if builtin::names_and_aliases().contains(&tool) => ServerSelection::None,
        _ => ServerSelection::All,
    }
}

/// Starts building the application of a command.
pub(super) fn builder(config: Config) -> AppBuilder {
    App::builder(config).suggestions(Arc::new(CliSuggestionFormatter))
}
