//! `toolstead servers diff|approve|history`: pinned definitions.

use crate::{
    cli::{
        Outcome,
        executions::time,
        exit::{CommandError, Exit},
        global::Global,
        output::{Output, note, on_one_line, table},
    },
    composition_root::{RunningApp, Servers as Started},
};
use clap::Subcommand;
use serde_json::{Value, json};
use std::sync::Arc;
use toolstead_application::{DefinitionPins, UnapprovedItem};
use toolstead_domain::{
    DefinitionVersion, PinnedServer, ProviderState,
    pinning::{change::ChangeClass, diff::diff},
};

/// Approver of versions that `servers approve` approves.
const BY: &str = "toolstead servers approve";

#[derive(Debug, Clone, Subcommand)]
pub(super) enum DefinitionsCommand {
    /// Shows how the definitions that a server offers differ from the approved ones
    Diff {
        /// Name of the server
        name: String,
    },
    /// Approves the definitions that a server offers now
    Approve {
        /// Name of the server
        name: String,
        /// Tools, prompts or resources to approve, by the names that `servers diff` shows; also `instructions` and
        /// `launch`. Default: all
        items: Vec<String>,
    },
    /// Lists the versions of the definitions of a server
    History {
        /// Name of the server
        name: String,
    },
}

impl DefinitionsCommand {
    pub(super) async fn run(self, global: &Global, output: &mut Output) -> Outcome {
        let (name, started) = match &self {
            Self::Diff { name } => (name, Started::Only(name.clone())),
            // Approves what is recorded. A server that is started again could offer something else.
            Self::Approve { name, .. } | Self::History { name } => (name, Started::None),
        };
        let composition = global.compose(started).await?;
        let outcome = match definitions(&composition, name) {
            Ok((pins, server)) => {
                reach(&composition).await;
                match &self {
                    Self::Diff { .. } => show_diff(&pins, &server, global.json, output).await,
                    Self::Approve { items, .. } => approve(&pins, &server, items, global.json, output).await,
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
fn definitions(composition: &RunningApp, name: &str) -> Result<(Arc<DefinitionPins>, PinnedServer), CommandError> {
    let servers = &composition.config.mcp_servers;
    let Some(server) = servers.iter().find(|server| server.name.as_str() == name) else {
        let message = format!("no MCP server named `{name}` is configured: `toolstead servers` lists them");
        return Err(CommandError::NotFound(message));
    };
    let Some(pins) = composition.app.registry.pins() else {
        return Err(CommandError::NotFound("no database stores the definitions of servers".to_owned()));
    };
    let key = PinnedServer { configured_in: server.origin.place(), name: server.name.to_string() };
    Ok((pins.clone(), key))
}

/// Waits until the started server has listed what it offers now.
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

async fn show_diff(pins: &DefinitionPins, server: &PinnedServer, as_json: bool, output: &mut Output) -> Outcome {
    let items = pins.unapproved(server).await?;
    if as_json {
        let items: Vec<Value> = items.iter().map(to_json).collect();
        output.json(&json!({"server": server.name, "unapproved": items}))?;
        return Ok(Exit::Done);
    }
    if items.is_empty() {
        output.line(&format!("`{}` offers what was approved", server.name))?;
    }
    for item in &items {
        output.line(&on_one_line(&format!("{}: {}", item.key, classes(item).join(", "))))?;
        for finding in &item.latest.findings {
            output.line(&on_one_line(&format!("  {finding}")))?;
        }
        output.line(difference(item).trim_end())?;
    }
    Ok(Exit::Done)
}

async fn approve(
    pins: &DefinitionPins,
    server: &PinnedServer,
    names: &[String],
    as_json: bool,
    output: &mut Output,
) -> Outcome {
    let approved = pins.approve(server, names, BY).await?;
    let missing: Vec<&String> = names
        .iter()
        .filter(|name| approved.iter().all(|item| item.key.name != **name && item.key.kind.as_str() != name.as_str()))
        .collect();
    if let Some(name) = missing.first() {
        note(&format!("`{name}` of `{}` has no unapproved definition", server.name));
    }
    if as_json {
        let items: Vec<Value> = approved.iter().map(to_json).collect();
        output.json(&json!({"server": server.name, "approved": items}))?;
    } else {
        for item in &approved {
            output.line(&on_one_line(&format!("approved: {} ({})", item.key, classes(item).join(", "))))?;
            for finding in &item.latest.findings {
                output.line(&on_one_line(&format!("  {finding}")))?;
            }
            output.line(difference(item).trim_end())?;
        }
        if approved.is_empty() {
            output.line(&format!("`{}` has nothing to approve", server.name))?;
        }
    }
    Ok(if missing.is_empty() { Exit::Done } else { Exit::Absent })
}

async fn show_history(pins: &DefinitionPins, server: &PinnedServer, as_json: bool, output: &mut Output) -> Outcome {
    let versions = pins.history(server).await?;
    if as_json {
        let versions: Vec<Value> = versions.iter().map(version_json).collect();
        output.json(&json!({"server": server.name, "versions": versions}))?;
        return Ok(Exit::Done);
    }
    let rows = versions.iter().map(|version| {
        let approval = match (&version.approval, &version.definition) {
            (Some(approval), _) => format!("{} ({})", time(approval.at), approval.by),
            (None, Some(_)) => "not approved".to_owned(),
            (None, None) => "removed".to_owned(),
        };
        vec![version.key.to_string(), version.number.to_string(), time(version.seen_at), approval]
    });
    output.line(&table(&["ITEM", "VERSION", "SEEN", "APPROVED"], rows))?;
    Ok(Exit::Done)
}

fn classes(item: &UnapprovedItem) -> Vec<&'static str> {
    item.classes().into_iter().map(ChangeClass::as_str).collect()
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
