//! `toolstead servers found`.

use crate::{
    cli::{
        CommandResult,
        exit::{CommandError, Exit, chain},
        global::GlobalFlags,
        output::{StdoutWriter, note, on_one_line, table},
    },
    config::{
        Config,
        servers::foreign_servers::import::{
            ImportRequest, ServerImportDecision, ServerImportPlan, ServerImportPlanEntry,
        },
    },
};
use clap::Args;
use serde_json::{Value, json};

/// Lists the MCP servers in the files of other programs.
#[derive(Debug, Args)]
pub(super) struct ForeignServersCommand {}

impl ForeignServersCommand {
    pub(super) fn run(self, global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
        let plan = ServerImportPlan::of(&global.load_silently()?, &ImportRequest::default())
            .map_err(|error| CommandError::Usage(chain(&error)))?;
        if global.json {
            let servers: Vec<Value> = plan.servers.iter().map(to_json).collect();
            let problems: Vec<String> = plan.problems.iter().map(ToString::to_string).collect();
            output.json(&json!({"servers": servers, "problems": problems}))?;
            return Ok(Exit::Done);
        }
        let row = |server: &ServerImportPlanEntry| {
            vec![
                server.owner.to_owned(),
                server.foreign_name.clone(),
                state(server),
                what(server).to_owned(),
                server.origin.to_string(),
            ]
        };
        output.line(&table(&["PROGRAM", "SERVER", "STATE", "WHAT", "FILE"], plan.servers.iter().map(row)))?;
        for problem in &plan.problems {
            output.line(&on_one_line(&format!("not read: {problem}")))?;
        }
        if plan.added().next().is_some() {
            note("`toolstead servers import` adds the new ones to the configuration");
        }
        Ok(Exit::Done)
    }
}

/// Returns the number of servers in files of other programs that could be imported.
pub(in crate::cli) fn importable(config: &Config) -> usize {
    ServerImportPlan::of(config, &ImportRequest::default()).map_or(0, |plan| plan.added().count())
}

/// Returns a line for each server in files of other programs that could be imported.
pub(super) fn importable_lines(config: &Config) -> Vec<String> {
    let Ok(plan) = ServerImportPlan::of(config, &ImportRequest::default()) else { return Vec::new() };
    let line = |server: &ServerImportPlanEntry| match &server.outcome {
        ServerImportDecision::Added(added) => Some(format!(
            "`{}` ({}) of {} in {}: not imported; to import it, run `toolstead servers import`",
            server.foreign_name, added.what, server.owner, server.origin
        )),
        ServerImportDecision::Present(_) | ServerImportDecision::Repeated(_) | ServerImportDecision::Rejected(_) => {
            None
        }
    };
    plan.servers.iter().filter_map(line).collect()
}

/// Returns a server of another program for `--json`.
pub(super) fn to_json(server: &ServerImportPlanEntry) -> Value {
    let (state, name, reason, notes) = match &server.outcome {
        ServerImportDecision::Added(added) => ("new", Some(added.name.as_str()), None, added.notes.as_slice()),
        ServerImportDecision::Present(name) => ("configured", Some(name.as_str()), None, [].as_slice()),
        ServerImportDecision::Repeated(name) => ("repeated", Some(name.as_str()), None, [].as_slice()),
        ServerImportDecision::Rejected(reason) => ("rejected", None, Some(reason), [].as_slice()),
    };
    json!({
        "program": server.owner,
        "server": server.foreign_name,
        "origin": server.origin.to_string(),
        "state": state,
        "name": name,
        "what": what(server),
        "reason": reason,
        "notes": notes,
    })
}

fn what(server: &ServerImportPlanEntry) -> &str {
    match &server.outcome {
        ServerImportDecision::Added(added) => &added.what,
        ServerImportDecision::Present(_) | ServerImportDecision::Repeated(_) | ServerImportDecision::Rejected(_) => "",
    }
}

fn state(server: &ServerImportPlanEntry) -> String {
    match &server.outcome {
        ServerImportDecision::Added(added) if *added.name.as_str() == *server.foreign_name => "new".into(),
        ServerImportDecision::Added(added) => format!("new, as `{}`", added.name),
        ServerImportDecision::Present(name) => format!("configured as `{name}`"),
        ServerImportDecision::Repeated(name) => format!("the same as `{name}`"),
        ServerImportDecision::Rejected(reason) => format!("cannot be imported: {reason}"),
    }
}
