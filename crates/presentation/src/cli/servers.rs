//! `toolstead servers`.

mod definitions;
pub(super) mod foreign_servers;
mod import;

use super::{
    CommandResult,
    config::trusting,
    executions::time,
    exit::{CommandError, Exit},
    global::GlobalFlags,
    output::{StdoutWriter, on_one_line, table},
};
use crate::{
    composition_root::{RunningApp, ServerSelection as Started, upstream_accounts_alone},
    config::{Config, servers::untrusted_server::UntrustedServer, tree::origin::Origin},
};
use clap::{Args, Subcommand};
use definitions::PinnedDefinitionsCommand;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use toolstead_domain::{DefinitionChange, ProviderState, Timestamp};
use toolstead_infrastructure::mcp::client::UpstreamStatus;

/// Maximum number of tools to name whose definitions changed at the same time.
const NAMED_CHANGES: usize = 10;

/// Shows the MCP servers, and approves their definitions.
#[derive(Debug, Args)]
pub struct ServersCommand {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Lists the MCP servers in the files of other programs
    Found(foreign_servers::ForeignServersCommand),
    /// Shows servers of other programs, asks for confirmation, and adds them to the configuration file
    Import(import::ImportCommand),
    #[command(flatten)]
    Definitions(PinnedDefinitionsCommand),
}

impl ServersCommand {
    pub(super) async fn run(self, global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
        match self.command {
            Some(Command::Found(command)) => return command.run(global, output),
            Some(Command::Import(command)) => return command.run(global, output).await,
            Some(Command::Definitions(command)) => return command.run(global, output).await,
            None => {}
        }
        let composition = global.compose(Started::All).await?;
        composition.reached().await;
        let outcome = show(&composition, global.json, output);
        let is_absent =
            composition.config.mcp_servers.iter().any(|server| !server.disabled && server.transport.is_err())
                || composition.servers.iter().any(|server| server.status().state != ProviderState::Ready);
        composition.close().await;
        outcome?;
        Ok(if is_absent { Exit::Absent } else { Exit::Done })
    }
}

fn show(composition: &RunningApp, as_json: bool, output: &mut StdoutWriter) -> Result<(), CommandError> {
    let running: Vec<UpstreamStatus> = composition.servers.iter().map(|server| server.status()).collect();
    let idle: Vec<(&str, String)> = composition
        .config
        .mcp_servers
        .iter()
        .filter(|server| running.iter().all(|status| status.name != server.name))
        .map(|server| {
            let why = match &server.transport {
                _ if server.disabled => "disabled".to_owned(),
                Err(reason) => format!("cannot be started: {reason}"),
                Ok(_) => "not needed: --tools names no tool of it".to_owned(),
            };
            (server.name.as_str(), why)
        })
        .collect();
    let left_out: Vec<String> = composition
        .app
        .registry
        .snapshot()
        .omitted_tools()
        .iter()
        .map(|one| format!("`{}` of `{}` is not offered: another provider has its name", one.tool, one.provider))
        .collect();
    let profile = |status: &UpstreamStatus| {
        let servers = &composition.config.mcp_servers;
        let own = servers.iter().find(|server| server.name == status.name && status.transport == "stdio");
        own.map(|server| server.profile.label())
    };
    let providers = composition.app.registry.providers();
    let changes = |status: &UpstreamStatus| -> Vec<DefinitionChange> {
        let own = providers.iter().find(|provider| provider.name == status.name.as_str());
        own.map(|provider| provider.changes.clone()).unwrap_or_default()
    };
    let definition_notes = |status: &UpstreamStatus| -> Vec<String> {
        let own = providers.iter().find(|provider| provider.name == status.name.as_str());
        own.map(|provider| provider.notes.clone()).unwrap_or_default()
    };
    if as_json {
        let with_definitions = |status: &UpstreamStatus| {
            let mut running = to_json(status, profile(status), &changes(status));
            running["definitions"] = definition_notes(status).into();
            running
        };
        let running: Vec<Value> = running.iter().map(with_definitions).collect();
        let idle: Vec<Value> = idle.iter().map(|(name, why)| json!({"name": name, "state": why})).collect();
        let found = &composition.config.untrusted_servers;
        let found: Vec<Value> = found
            .iter()
            .map(|one| json!({"name": one.name, "what": one.what, "origin": one.origin.to_string()}))
            .collect();
        return Ok(
            output.json(&json!({"servers": running, "not_started": idle, "found": found, "left_out": left_out}))?
        );
    }
    let row = |status: &UpstreamStatus| {
        let or = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        vec![
            status.name.to_string(),
            status.state.label().to_owned(),
            status.transport.to_owned(),
            or(profile(status).map(str::to_owned)),
            or(status.protocol.map(|version| version.to_string())),
            or(status.tools.map(|count| count.to_string())),
            or(status.server.clone()),
        ]
    };
    let rows = running.iter().map(row).chain(idle.iter().map(|(name, why)| vec![(*name).to_owned(), why.clone()]));
    output.line(&table(&["NAME", "STATE", "TRANSPORT", "PROFILE", "PROTOCOL", "TOOLS", "SERVER"], rows))?;
    for status in &running {
        let reason = match &status.state {
            ProviderState::Failed { reason } | ProviderState::NeedsAuthorization { reason } => Some(reason),
            ProviderState::Connecting | ProviderState::Ready | ProviderState::Idle | ProviderState::Closed => None,
        };
        let stderr = status.stderr.iter().filter(|_| reason.is_some()).map(|line| format!("stderr: {line}"));
        let changed = changed(changes(status));
        let signing_in = matches!(status.state, ProviderState::NeedsAuthorization { .. })
            .then(|| signing_in(status, &composition.config))
            .flatten();
        let notes = status.notes.iter().cloned().chain(changed).chain(definition_notes(status));
        for text in reason.cloned().into_iter().chain(signing_in).chain(notes).chain(stderr) {
            output.line(&on_one_line(&format!("{}: {}", status.name, text.trim_end())))?;
        }
    }
    for text in left_out {
        output.line(&on_one_line(&text))?;
    }
    for found in waiting(&composition.config) {
        output.line(&on_one_line(&format!("found, not used: {found}")))?;
    }
    if let count @ 1.. = foreign_servers::importable(&composition.config) {
        output.line(&format!(
            "servers of other programs that can be imported: {count} (`toolstead servers found` lists them)"
        ))?;
    }
    Ok(())
}

/// Returns a line for each server that is not used: those whose file needs trust, and those of other programs.
pub(super) fn unused(config: &Config) -> Vec<String> {
    waiting(config).into_iter().chain(foreign_servers::importable_lines(config)).collect()
}

/// Returns a line for each server whose file the user does not trust yet, with the command that trusts it.
fn waiting(config: &Config) -> Vec<String> {
    let line = |found: &UntrustedServer| {
        let how = match &found.origin {
            Origin::File(file, _) if config.files.iter().any(|one| one.path == *file && one.leads_to.is_some()) => {
                "its file is a link in a project and cannot be trusted".to_owned()
            }
            Origin::File(file, _) => format!("{} uses it", trusting(file)),
            Origin::Environment(_) | Origin::Flag(_) | Origin::Default => "it is not trusted".to_owned(),
        };
        format!("`{}` ({}) in {}; {how}", found.name, found.what, found.origin)
    };
    config.untrusted_servers.iter().map(line).collect()
}

/// Returns a sentence with the command by which the user signs in to a server; `None` if users cannot sign in to it.
fn signing_in(status: &UpstreamStatus, config: &Config) -> Option<String> {
    let server = config.mcp_servers.iter().find(|server| server.name == status.name)?;
    upstream_accounts_alone(server, config).filter(|_| server.auth.as_ref().is_none_or(|auth| auth.is_sign_in()))?;
    Some(format!("`toolstead auth login server:{}` signs in", status.name))
}

/// Returns one line for each time at which definitions changed, newest first.
fn changed(changes: Vec<DefinitionChange>) -> Vec<String> {
    let mut by_time: BTreeMap<Timestamp, Vec<String>> = BTreeMap::new();
    for DefinitionChange { tool, parts, at } in changes {
        let parts = parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        by_time.entry(at).or_default().push(format!("`{tool}` ({parts})"));
    }
    let line = |(at, tools): (Timestamp, Vec<String>)| {
        let more = match tools.len().saturating_sub(NAMED_CHANGES) {
            0 => String::new(),
            more => format!(" and {more} more; `--json` names all"),
        };
        let named = tools.iter().take(NAMED_CHANGES).cloned().collect::<Vec<_>>().join(", ");
        format!("definitions changed, seen at {}: {named}{more}", time(at))
    };
    by_time.into_iter().rev().map(line).collect()
}

fn to_json(status: &UpstreamStatus, profile: Option<&str>, changes: &[DefinitionChange]) -> Value {
    let reason = match &status.state {
        ProviderState::Failed { reason } | ProviderState::NeedsAuthorization { reason } => Some(reason),
        ProviderState::Connecting | ProviderState::Ready | ProviderState::Idle | ProviderState::Closed => None,
    };
    json!({
        "name": status.name.as_str(),
        "state": status.state.label(),
        "reason": reason,
        "transport": status.transport,
        "profile": profile,
        "protocol": status.protocol.map(|version| version.as_str()),
        "server": status.server,
        "tools": status.tools,
        "connections": status.connections,
        "notes": status.notes,
        "changed": changes
            .iter()
            .map(|change| json!({
                "tool": change.tool,
                "parts": change.parts.iter().map(|part| part.member()).collect::<Vec<_>>(),
                "at": time(change.at),
            }))
            .collect::<Vec<_>>(),
        "stderr": status.stderr,
    })
}
