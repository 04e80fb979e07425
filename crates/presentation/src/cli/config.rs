//! `toolstead config show|check|trust`.

mod trust;

use super::{
    CommandResult,
    exit::{CommandError, Exit},
    global::GlobalFlags,
    output::{StdoutWriter, note, visible},
};
use crate::{
    composition_root::{StartupError, check_rules},
    config::{Config, FileTrust, sections::idle_rules},
};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::Path;
use toolstead_domain::permission::decision::in_shell;

/// Shows, checks or trusts the configuration.
#[derive(Debug, Args)]
pub struct ConfigCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows each value in force and its origin
    Show,
    /// Checks the configuration
    Check,
    /// Shows the effect of a file, asks for confirmation, and trusts the file with this content
    Trust(trust::TrustCommand),
}

impl ConfigCommand {
    pub(super) async fn run(self, global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
        match self.command {
            Command::Show => show(&global.load_and_print_notes()?, global.json, output),
            Command::Check => check(global, output),
            Command::Trust(command) => command.run(global, output).await,
        }
    }
}

fn show(config: &Config, as_json: bool, output: &mut StdoutWriter) -> CommandResult {
    let settings = config.resolved.all();
    if as_json {
        let shown = |setting: &crate::config::layers::EffectiveSetting| {
            json!({
                "key": setting.name(),
                "value": setting.shown().map(|value| value.to_json()),
                "origins": setting.origins.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "waiting": setting.shown_waiting().iter().map(|waiting| json!({
                    "value": waiting.value.to_json(), "origin": waiting.origin.to_string(),
                })).collect::<Vec<_>>(),
            })
        };
        output.json(&json!({"settings": settings.iter().map(shown).collect::<Vec<Value>>()}))?;
        return Ok(Exit::Done);
    }
    for setting in &settings {
        let value = setting.shown().map_or("(none)".to_owned(), |value| value.to_json().to_string());
        let origins: Vec<String> = setting.origins.iter().map(ToString::to_string).collect();
        let from = if origins.is_empty() { "default".to_owned() } else { origins.join(", ") };
        output.line(&visible(&format!("{} = {value}  # {from}", setting.name())))?;
        for waiting in setting.shown_waiting() {
            output.line(&visible(&format!("  # waits for trust: {}, {}", waiting.value.to_json(), waiting.origin)))?;
        }
    }
    for file in &config.files {
        let trust = match file.trust {
            FileTrust::Always => "counts",
            FileTrust::Given => "trusted",
            FileTrust::Waiting => "waits for `toolstead config trust`",
            FileTrust::Linked => "is a link in a project and cannot be trusted",
        };
        output.line(&visible(&format!("# {} ({}): {trust}", file.path.display(), file.kind.describe())))?;
    }
    Ok(Exit::Done)
}

fn check(global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
    match global.load_and_print_notes().and_then(|config| Ok(check_rules(&config).map(|()| config)?)) {
        Ok(config) => {
            let idle = idle_rules::of_commands(&config).into_iter().chain(idle_rules::outside_of_roots(&config));
            idle.for_each(|problem| note(&format!("note: {problem}")));
            config.waiting_permissions().iter().for_each(|waiting| note(&format!("note: {waiting}")));
            if global.json {
                output.json(
                    &json!({"files": config.files.len(), "rules": config.permissions.rules.len(), "problems": []}),
                )?;
                return Ok(Exit::Done);
            }
            output.line(&format!(
                "the configuration can be used (files: {}, rules: {})",
                config.files.len(),
                config.permissions.rules.len()
            ))?;
            Ok(Exit::Done)
        }
        Err(CommandError::Startup(StartupError::Config(error))) if !global.json => {
            for problem in &error.problems {
                output.line(&visible(&problem.to_string()))?;
            }
            Ok(Exit::Problems)
        }
        Err(other) => Err(other),
    }
}

/// Returns the command that trusts a file.
pub(super) fn trusting(file: &Path) -> String {
    format!("`toolstead config trust {}`", in_shell(&file.to_string_lossy()))
}
