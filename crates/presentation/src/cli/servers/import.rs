//! `toolstead servers import`.

use super::foreign_servers;
use crate::{
    cli::{
        CommandResult,
        confirmation::is_confirmed,
        exit::{CommandError, Exit, chain},
        global::GlobalFlags,
        output::{StdoutWriter, note, on_one_line, quoted},
        terminal::Terminal,
    },
    config::servers::foreign_servers::import::{
        ImportError, ImportRequest, LiteralSecretPlacement, ServerImportDecision, ServerImportPlan,
    },
};
use clap::Args;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Shows the servers that other programs describe, asks, and adds them to the configuration file.
#[derive(Debug, Args)]
pub(super) struct ImportCommand {
    /// A program such as `cursor` or `codex`, or a file, such as a `server.json` of the MCP registry. Default: all
    /// programs
    #[arg(value_name = "PROGRAM|FILE")]
    sources: Vec<String>,
    /// Imports only this server; repeatable
    #[arg(long = "server", value_name = "NAME")]
    servers: Vec<String>,
    /// Value of an input or a variable of a server; repeatable
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = assignment)]
    values: Vec<(String, String)>,
    /// Writes secrets into the configuration file instead of a separate file and variables
    #[arg(long)]
    with_secrets: bool,
    /// Imports without asking
    #[arg(short, long)]
    yes: bool,
    /// Shows what would be added and changes nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

impl ImportCommand {
    pub(super) async fn run(self, global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
        let request = ImportRequest {
            sources: self.sources,
            servers: self.servers,
            values: self.values.into_iter().collect::<BTreeMap<_, _>>(),
            secrets: if self.with_secrets { LiteralSecretPlacement::Written } else { LiteralSecretPlacement::Moved },
        };
        let plan = ServerImportPlan::of(&global.load_silently()?, &request).map_err(|error| usage(&error))?;
        show(&plan);
        let servers: Vec<Value> = plan.servers.iter().map(foreign_servers::to_json).collect();
        let problems: Vec<String> = plan.problems.iter().map(ToString::to_string).collect();
        let count = plan.added().count();
        let is_rejected = |outcome: &ServerImportDecision| matches!(outcome, ServerImportDecision::Rejected(_));
        let exit = match count == 0 && plan.servers.iter().any(|server| is_rejected(&server.outcome)) {
            true => Exit::Problems,
            false => Exit::Done,
        };
        let mut backup = None;
        let is_written = count > 0 && !self.dry_run;
        if count == 0 {
            note("nothing to import");
        } else {
            let file = plan.file().map_err(usage)?.display().to_string();
            note(&on_one_line(&format!("to be added to {file}")));
            if is_written {
                if !self.yes {
                    confirm().await?;
                }
                let written = plan.apply().map_err(|error| usage(&error))?;
                note(&on_one_line(&format!("servers added to {}: {count}", written.file.display())));
                if let Some(copy) = &written.backup {
                    note(&on_one_line(&format!("a backup of the previous file is {}", copy.display())));
                }
                backup = written.backup;
            }
        }
        if global.json {
            output.json(&json!({
                "written": is_written, "backup": backup, "servers": servers, "problems": problems,
            }))?;
        }
        Ok(exit)
    }
}

/// Prints what would be added, and what is left out.
fn show(plan: &ServerImportPlan) {
    for problem in &plan.problems {
        note(&on_one_line(&format!("not read: {problem}")));
    }
    for server in &plan.servers {
        let place = format!("`{}` of {} ({})", server.foreign_name, server.owner, server.origin);
        match &server.outcome {
            ServerImportDecision::Added(added) => {
                note(&on_one_line(&format!("{place}:")));
                note(&quoted(&added.shown));
                added.notes.iter().for_each(|text| note(&on_one_line(&format!("  note: {text}"))));
            }
            ServerImportDecision::Present(name) => {
                note(&on_one_line(&format!("{place} is configured as `{name}`")));
            }
            ServerImportDecision::Repeated(name) => {
                note(&on_one_line(&format!("{place} is the same server as `{name}`")));
            }
            ServerImportDecision::Rejected(reason) => {
                note(&on_one_line(&format!("{place} is not imported: {reason}")));
            }
        }
    }
}

/// Asks the user at the terminal.
///
/// # Errors
/// [`CommandError::Usage`] without a terminal, or if the user declines.
async fn confirm() -> Result<(), CommandError> {
    if Terminal::of_process().is_none() {
        return Err(CommandError::Usage(
            "nothing is imported: an import needs a confirmation, and there is no terminal to ask at. Read what would be \
             added, then run the command again with `--yes`"
                .into(),
        ));
    }
    match is_confirmed("Add these servers? [y]es [n]o ").await {
        true => Ok(()),
        false => Err(CommandError::Usage("nothing is imported: the question was not answered with `y`".into())),
    }
}

fn usage(error: &ImportError) -> CommandError {
    CommandError::Usage(chain(error))
}

/// Parses `NAME=VALUE`.
fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    if name.is_empty() { Err("write it as NAME=VALUE".into()) } else { Ok((name.to_owned(), value.to_owned())) }
}
