//! `toolstead config show|check|trust`.

use super::{
    Outcome,
    exit::{Exit, Failed},
    global::Global,
    output::{Output, note, visible},
};
use crate::{
    composition_root::{StartupError, check_rules},
    config::{Config, ConfigFile, Trust, idle_rules, layers::LayerKind, origin::Origin, problem::Problem},
};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Shows, checks or trusts the configuration.
#[derive(Debug, Args)]
pub struct ConfigCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows every value that is in force and where it comes from
    Show,
    /// Says whether the configuration can be used
    Check,
    /// Trusts a file as it is now, and shows what of it comes into force
    Trust {
        /// The file; without it, the project's own
        file: Option<PathBuf>,
        /// Trusts it no longer
        #[arg(long)]
        remove: bool,
    },
}

impl ConfigCommand {
    pub(super) fn run(self, global: &Global, output: &mut Output) -> Outcome {
        match self.command {
            Command::Show => show(&global.load()?, global.json, output),
            Command::Check => check(global, output),
            Command::Trust { file, remove } => {
                let changed = trust(&global.load()?, file.as_deref(), remove)?;
                if global.json {
                    output.json(&json!({"file": changed, "trusted": !remove}))?;
                }
                Ok(Exit::Done)
            }
        }
    }
}

fn show(config: &Config, as_json: bool, output: &mut Output) -> Outcome {
    let settings = config.resolved.all();
    if as_json {
        let shown = |setting: &crate::config::layers::Setting| {
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
            Trust::Always => "counts",
            Trust::Given => "trusted",
            Trust::Waiting => "waits for `toolstead config trust`",
        };
        output.line(&visible(&format!("# {} ({}): {trust}", file.path.display(), file.kind.describe())))?;
    }
    Ok(Exit::Done)
}

fn check(global: &Global, output: &mut Output) -> Outcome {
    match global.load().and_then(|config| Ok(check_rules(&config).map(|()| config)?)) {
        Ok(config) => {
            let idle = idle_rules::of_commands(&config).into_iter().chain(idle_rules::outside_of_roots(&config));
            idle.for_each(|problem| note(&format!("note: {problem}")));
            config.waiting_permissions().iter().for_each(|waiting| note(&format!("note: {waiting}")));
            if global.json {
                output.json(&json!({"files": config.files.len(), "rules": config.rules.len(), "problems": []}))?;
                return Ok(Exit::Done);
            }
            output.line(&format!(
                "the configuration can be used ({} files, {} rules)",
                config.files.len(),
                config.rules.len()
            ))?;
            Ok(Exit::Done)
        }
        Err(Failed::Startup(StartupError::Config(error))) if !global.json => {
            for problem in &error.problems {
                output.line(&visible(&problem.to_string()))?;
            }
            Ok(Exit::Problems)
        }
        Err(other) => Err(other),
    }
}

/// Trusts one file, after showing what of it comes into force by that, and returns its path.
fn trust(config: &Config, file: Option<&Path>, remove: bool) -> Result<PathBuf, Failed> {
    if remove {
        return take_back(config, file);
    }
    let file = chosen(config, file)?;
    let path = file.path.display();
    for setting in config.resolved.all() {
        for waiting in setting
            .shown_waiting()
            .iter()
            .filter(|one| matches!(&one.origin, Origin::File(path, _) if *path == file.path))
        {
            note(&format!(
                "in force from now on: {} = {}  # {}",
                setting.name(),
                waiting.value.to_json(),
                waiting.origin
            ));
        }
    }
    for hook in &config.hooks.idle {
        if matches!(&hook.origin, Origin::File(path, _) if *path == file.path) {
            note(&format!("a hook of this file, `{}` at {}: {}", hook.event, hook.origin, hook.reason));
        }
    }
    config.set_trust(file, true).map_err(|problem| Failed::Usage(problem.to_string()))?;
    note(&format!("{path} is trusted as it is now; a change takes the trust back"));
    Ok(file.path.to_path_buf())
}

/// No longer trusts a file, which may be gone.
fn take_back(config: &Config, file: Option<&Path>) -> Result<PathBuf, Failed> {
    let failed = |problem: Problem| Failed::Usage(problem.to_string());
    let gone = file.map(std::path::absolute).transpose()?;
    let path = match gone.filter(|path| !path.is_file() || path.is_symlink()) {
        Some(path) if config.forget_trust(&path).map_err(failed)? => path,
        _ => {
            let file = chosen(config, file)?;
            config.set_trust(file, false).map_err(failed)?;
            file.path.to_path_buf()
        }
    };
    note(&format!("{} is no longer trusted: it may only tighten", path.display()));
    Ok(path)
}

/// The file that is meant: the named one, or the project's own.
fn chosen<'a>(config: &'a Config, file: Option<&Path>) -> Result<&'a ConfigFile, Failed> {
    let mut files = config.files.iter().filter(|known| known.trust != Trust::Always);
    let Some(named) = file else {
        let project = files.find(|known| known.kind == LayerKind::Project);
        return project.ok_or_else(|| {
            Failed::Usage(
                "there is no project file here that needs trust: name the file, `toolstead config show` lists them"
                    .into(),
            )
        });
    };
    let real = named.canonicalize().map_err(|error| Failed::Usage(format!("`{}`: {error}", named.display())))?;
    files.find(|known| *known.path == *real).ok_or_else(|| {
        Failed::Usage(format!(
            "`{}` is no configuration file here that needs trust: `toolstead config show` lists them",
            real.display()
        ))
    })
}
