//! `toolstead servers diff|approve|history`: pinned definitions.

use crate::{
    cli::{
        CommandResult,
        confirmation::is_confirmed,
        executions::time,
        exit::{CommandError, Exit},
        global::GlobalFlags,
        output::{StdoutWriter, note, on_one_line, table},
        terminal::Terminal,
    },
    composition_root::{RunningApp, ServerSelection as Started},
};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::{
    io::{IsTerminal, stdin},
    sync::Arc,
};
use toolstead_application::{DefinitionPins, UnapprovedItem, digest_of};
use toolstead_domain::{
    DefinitionVersion, PinnedServerKey, ProviderState,
    pinning::{change::ItemChangeKind, diff::diff},
};

/// Approver of versions that `servers approve` approves.
const BY: &str = "toolstead servers approve";

#[derive(Debug, Clone, Subcommand)]
pub(super) enum PinnedDefinitionsCommand {
    /// Shows how the definitions that a server offers differ from the approved ones
    Diff {
        /// Name of the server
        name: String,
    },
    /// Approves the recorded definitions of a server, at a terminal after a confirmation
    Approve(ApproveCommand),
    /// Lists the versions of the definitions of a server
    History {
        /// Name of the server
        name: String,
    },
}

#[derive(Debug, Clone, Args)]
pub(super) struct ApproveCommand {
    /// Name of the server
    name: String,
    /// Tools, prompts or resources to approve, by the names that `servers diff` shows; also `instructions` and
    /// `launch`. Default: all
    items: Vec<String>,
    /// Digest that `servers diff` printed: approves exactly the definitions that it showed, without asking
    #[arg(long)]
    digest: Option<String>,
}

impl PinnedDefinitionsCommand {
    pub(super) async fn run(self, global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
        let (name, started) = match &self {
            Self::Diff { name } => (name, Started::Only(name.clone())),
            // Approves what is recorded. A server that is started again could offer something else.
            Self::Approve(ApproveCommand { name, .. }) | Self::History { name } => (name, Started::None),
        };
        let composition = global.compose(started).await?;
        let outcome = match definitions(&composition, name) {
            Ok((pins, server)) => {
                reach(&composition).await;
                match &self {
                    Self::Diff { .. } => show_diff(&pins, &server, global.json, output).await,
                    Self::Approve(command) => command.approve(&pins, &server, global.json, output).await,
                    Self::History { .. } => show_history(&pins, &server, global.json, output).await,
                }
            }
            Err(error) => Err(error),
        };
        composition.close().await;
        outcome
    }
}

/// Returns the pinned definitions and the key of a configured server.
fn definitions(composition: &RunningApp, name: &str) -> Result<(Arc<DefinitionPins>, PinnedServerKey), CommandError> {
    let servers = &composition.config.mcp_servers;
    let Some(server) = servers.iter().find(|server| server.name.as_str() == name) else {
        let message = format!("no MCP server named `{name}` is configured: `toolstead servers` lists them");
        return Err(CommandError::NotFound(message));
    };
    let Some(pins) = composition.app.registry.pins() else {
        return Err(CommandError::NotFound("no database stores the definitions of servers".to_owned()));
    };
    let key = PinnedServerKey { configured_in: server.origin.place(), name: server.name.to_string() };
    Ok((pins.clone(), key))
}

/// Waits until the started server has listed what it offers now. Prints a note if it is not ready; does nothing if no
/// server was started.
async fn reach(composition: &RunningApp) {
    if composition.servers.is_empty() {
        return;
    }
    composition.reached().await;
    composition.app.context.settled(composition.config.connect_timeout()).await;
    for status in composition.servers.iter().map(|server| server.status()) {
        if status.state != ProviderState::Ready {
            note(&format!("`{}` is {}; its last known definitions are used", status.name, status.state));
        }
    }
}

async fn show_diff(
    pins: &DefinitionPins,
    server: &PinnedServerKey,
    as_json: bool,
    output: &mut StdoutWriter,
) -> CommandResult {
    let items = pins.unapproved(server).await?;
    let digest = (!items.is_empty()).then(|| digest_of(server, &items));
    if as_json {
        let items: Vec<Value> = items.iter().map(to_json).collect();
        output.json(&json!({"server": server.name, "unapproved": items, "digest": digest}))?;
        return Ok(Exit::Done);
    }
    for item in &items {
        output.line(&lines_of("", item))?;
    }
    match digest {
        Some(digest) => output.line(&format!(
            "`toolstead servers approve {} --digest {digest}` approves exactly these definitions",
            server.name
        ))?,
        None => output.line(&format!("`{}` offers what was approved", server.name))?,
    }
    Ok(Exit::Done)
}

/// Returns an unapproved item as lines: its name after `heading` with the kinds of its change, its findings, and its
/// difference from the approved definition. Lines of the difference begin with a mark.
fn lines_of(heading: &str, item: &UnapprovedItem) -> String {
    let mut lines = vec![on_one_line(&format!("{heading}{}: {}", item.key, classes(item).join(", ")))];
    lines.extend(item.latest.findings.iter().map(|finding| on_one_line(&format!("  {finding}"))));
    lines.push(difference(item).trim_end().to_owned());
    lines.join("\n")
}

impl ApproveCommand {
    /// Approves the versions that it read, and none that is recorded meanwhile. At a terminal it asks before, unless a
    /// digest is given or JSON is printed. Fails if the digest is not that of the newest definitions.
    async fn approve(
        &self,
        pins: &DefinitionPins,
        server: &PinnedServerKey,
        as_json: bool,
        output: &mut StdoutWriter,
    ) -> CommandResult {
        let mut items = pins.unapproved(server).await?;
        if let Some(digest) = &self.digest
            && *digest != digest_of(server, &items)
        {
            let name = &server.name;
            return Err(CommandError::Usage(format!(
                "nothing is approved: the newest definitions of `{name}` are not those of the digest `{digest}`. Read \
                 them with `toolstead servers diff {name}`, which prints their digest"
            )));
        }
        items.retain(|item| self.items.is_empty() || self.items.iter().any(|name| name == item.label()));
        let is_missing = |name: &&String| items.iter().all(|item| item.label() != name.as_str());
        let missing = self.items.iter().find(is_missing);
        if let Some(name) = missing {
            note(&format!("`{name}` of `{}` has no unapproved definition", server.name));
        }
        let is_interactive = || stdin().is_terminal() && Terminal::of_process().is_some();
        let asks = !items.is_empty() && !as_json && self.digest.is_none() && is_interactive();
        if asks {
            // Where the question is: the output may lead to a file.
            items.iter().for_each(|item| note(&lines_of("", item)));
            if !is_confirmed("Approve these definitions, [y]es or [n]o? ").await {
                let reason = "nothing is approved: the question was not answered with `y`";
                return Err(CommandError::Usage(reason.to_owned()));
            }
        }
        pins.approve(server, &items, BY).await?;
        if as_json {
            let items: Vec<Value> = items.iter().map(to_json).collect();
            output.json(&json!({"server": server.name, "approved": items}))?;
        } else {
            for item in &items {
                match asks {
                    true => output.line(&on_one_line(&format!("approved: {}", item.key)))?,
                    false => output.line(&lines_of("approved: ", item))?,
                }
            }
            if items.is_empty() {
                output.line(&format!("`{}` has nothing to approve", server.name))?;
            }
        }
        Ok(if missing.is_none() { Exit::Done } else { Exit::Absent })
    }
}

async fn show_history(
    pins: &DefinitionPins,
    server: &PinnedServerKey,
    as_json: bool,
    output: &mut StdoutWriter,
) -> CommandResult {
    let versions = pins.history(server).await?;
    if as_json {
        let versions: Vec<Value> = versions.iter().map(version_json).collect();
        output.json(&json!({"server": server.name, "versions": versions}))?;
        return Ok(Exit::Done);
    }
    let rows = versions.iter().map(|version| {
        let approval = match (&version.approval, &version.definition) {
            (Some(approval), Some(_)) => format!("{} ({})", time(approval.at), approval.by),
            (Some(approval), None) => format!("removed; {} ({})", time(approval.at), approval.by),
            (None, Some(_)) => "not approved".to_owned(),
            (None, None) => "removed".to_owned(),
        };
        vec![version.key.to_string(), version.number.to_string(), time(version.seen_at), approval]
    });
    output.line(&table(&["ITEM", "VERSION", "SEEN", "APPROVED"], rows))?;
    Ok(Exit::Done)
}

fn classes(item: &UnapprovedItem) -> Vec<&'static str> {
    item.classes().into_iter().map(ItemChangeKind::as_str).collect()
}

fn difference(item: &UnapprovedItem) -> String {
    let old = item.approved.as_ref().and_then(|version| version.definition.as_ref());
    diff(&item.key, old, item.latest.definition.as_ref())
}

fn to_json(item: &UnapprovedItem) -> Value {
    let mut value = version_json(&item.latest);
    value["classes"] = classes(item).into();
    value["diff"] = difference(item).into();
    value["approved_definition"] =
        item.approved.as_ref().and_then(|version| version.definition.clone()).unwrap_or_default();
    value
}

fn version_json(version: &DefinitionVersion) -> Value {
    json!({
        "kind": version.key.kind.as_str(),
        "name": version.key.name,
        "version": version.number,
        "definition": version.definition,
        "seen_at": time(version.seen_at),
        "approved_at": version.approval.as_ref().map(|approval| time(approval.at)),
        "approved_by": version.approval.as_ref().map(|approval| &approval.by),
        "findings": version.findings,
        "unavailable": version.has_hard_finding && version.approval.is_none(),
    })
}
