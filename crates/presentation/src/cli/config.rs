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
use toolstead_domain::permission::decision::in_shell;

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
        /// The file, or a program of a server; without it, the project's own file, or the only one that waits
        file: Option<PathBuf>,
        /// Trusts it no longer
        #[arg(long)]
        remove: bool,
    },
}

impl ConfigCommand {
    pub(super) fn run(self, global: &Global, output: &mut Output) -> Outcome {
        match self.command {
            Command::Show => show(&global.load_and_tell_all()?, global.json, output),
            Command::Check => check(global, output),
            Command::Trust { file, remove } => {
                let changed = trust(global, file.as_deref(), remove)?;
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
            Trust::Linked => "is a link in a project, which nobody can trust",
        };
        output.line(&visible(&format!("# {} ({}): {trust}", file.path.display(), file.kind.describe())))?;
    }
    Ok(Exit::Done)
}

fn check(global: &Global, output: &mut Output) -> Outcome {
    match global.load_and_tell_all().and_then(|config| Ok(check_rules(&config).map(|()| config)?)) {
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

/// Trusts one file, after showing what of it comes into force by that, with what its servers run of places that tools
/// write to; or what a server runs alone. Returns its path.
fn trust(global: &Global, file: Option<&Path>, remove: bool) -> Result<PathBuf, Failed> {
    let config = &global.load_silently()?;
    if let Some(named) = file
        && let Some(changed) = agent_files(config, named, remove)?
    {
        return Ok(changed);
    }
    if remove {
        return take_back(config, file);
    }
    let failed = |problem: Problem| Failed::Usage(problem.to_string());
    if let Some(program) = file.and_then(|file| program(config, file)) {
        config.trust_programs(std::slice::from_ref(&program)).map_err(failed)?;
        note(&format!("{} is trusted as it is now; a change takes the trust back", program.display()));
        return Ok(program);
    }
    let file = chosen(config, file)?;
    let path = &file.path;
    let is_of_file = |origin: &Origin| matches!(origin, Origin::File(at, _) if at == path);
    for setting in config.resolved.all() {
        for waiting in setting.shown_waiting().iter().filter(|one| is_of_file(&one.origin)) {
            note(&format!(
                "in force from now on: {} = {}  # {}",
                setting.name(),
                waiting.value.to_json(),
                waiting.origin
            ));
        }
    }
    for hook in config.hooks.idle.iter().filter(|hook| is_of_file(&hook.origin)) {
        let what = hook.waiting.as_ref().map_or(hook.reason.clone(), |line| format!("runs from now on: {line}"));
        note(&format!("a hook of this file, `{}` at {}: {what}", hook.event, hook.origin));
    }
    if file.trust != Trust::Always {
        config.set_trust(file, true).map_err(failed)?;
    }
    // Its servers are known only now.
    let config = global.load_silently()?;
    let servers = config.mcp_servers.iter().filter(|server| is_of_file(&server.origin));
    let programs: Vec<PathBuf> = servers.flat_map(|server| server.programs.paths()).map(Path::to_path_buf).collect();
    for program in programs.iter().filter(|program| program.exists()) {
        note(&format!("a server of this file runs {}, which is trusted as it is now, too", program.display()));
    }
    config.trust_programs(&programs).map_err(failed)?;
    note(&format!("{} is trusted as it is now; a change takes the trust back", path.display()));
    Ok(path.to_path_buf())
}

/// Trusts the files of agents, skills and commands that wait at this path or in this folder, as they are now; or trusts
/// those there no longer. `None` where there are none.
fn agent_files(config: &Config, named: &Path, remove: bool) -> Result<Option<PathBuf>, Failed> {
    let failed = |problem: Problem| Failed::Usage(problem.to_string());
    let path = std::path::absolute(named)?;
    // Links above are those of the shell in which the person stands.
    let path = match (path.parent().map(Path::canonicalize), path.file_name()) {
        (Some(Ok(folder)), Some(name)) => folder.join(name),
        _ => path.canonicalize()?,
    };
    let files = config.agent_files();
    if remove {
        let trusted = files.trusted_under(&path);
        files.forget(&trusted).map_err(failed)?;
        trusted.iter().for_each(|file| note(&format!("{} is no longer trusted: it does not count", file.display())));
        return Ok((!trusted.is_empty()).then_some(path));
    }
    let waiting = files.waiting_under(&path);
    files.trust(&waiting).map_err(failed)?;
    for file in &waiting {
        let (word, place) = (file.kind.word(), file.path.display());
        note(&format!("the {word} `{}` is there from now on; {place} is trusted as it is now", file.name));
    }
    Ok((!waiting.is_empty()).then_some(path))
}

/// The program of a server that a person names.
fn program(config: &Config, named: &Path) -> Option<PathBuf> {
    let named = std::path::absolute(named).ok()?;
    let real = named.canonicalize().ok();
    let mut programs = config.mcp_servers.iter().flat_map(|server| server.programs.paths());
    programs.find(|program| **program == *named || real.as_deref() == Some(*program)).map(Path::to_path_buf)
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

/// The file that is meant: the named one; else the project's own, or the only one that waits.
fn chosen<'a>(config: &'a Config, file: Option<&Path>) -> Result<&'a ConfigFile, Failed> {
    let Some(named) = file else { return unnamed(config) };
    let path = std::path::absolute(named)?;
    let real = path.canonicalize().map_err(|error| Failed::Usage(format!("`{}`: {error}", named.display())))?;
    // A name of its own counts before what it leads to.
    let known = config.files.iter().find(|known| *known.path == *path);
    let known = known.or_else(|| config.files.iter().find(|known| *known.path == *real));
    let runs_programs = |file: &ConfigFile| {
        let of_file = |origin: &Origin| matches!(origin, Origin::File(at, _) if *at == file.path);
        config.mcp_servers.iter().any(|server| of_file(&server.origin) && server.programs.paths().next().is_some())
    };
    match known {
        Some(ConfigFile { leads_to: Some(target), .. }) => Err(linked(named, target)),
        Some(file) if file.trust != Trust::Always || runs_programs(file) => Ok(file),
        _ => Err(Failed::Usage(format!(
            "`{}` is no configuration file here that needs trust: `toolstead config show` lists them",
            real.display()
        ))),
    }
}

fn linked(file: &Path, target: &Path) -> Failed {
    Failed::Usage(format!(
        "`{}` is a link, or lies behind one, to {}, and what is trusted at one place is not at another: put a file of \
         its own here, or name the other with `--config`",
        file.display(),
        target.display()
    ))
}

fn unnamed(config: &Config) -> Result<&ConfigFile, Failed> {
    let project = |file: &&ConfigFile| file.kind == LayerKind::Project && file.trust != Trust::Linked;
    if let Some(file) = config.files.iter().find(project) {
        return Ok(file);
    }
    let waiting: Vec<&ConfigFile> = config.files.iter().filter(|file| file.trust == Trust::Waiting).collect();
    let commands = || waiting.iter().map(|file| trusting(&file.path)).collect::<Vec<_>>().join(", ");
    match waiting.as_slice() {
        [file] => Ok(file),
        [] => {
            let of_project = config.files.iter().filter(|file| file.kind == LayerKind::Project);
            let mut links = of_project.filter_map(|file| Some(linked(&file.path, file.leads_to.as_deref()?)));
            Err(links.next().unwrap_or_else(|| {
                Failed::Usage(
                    "there is no project file here that needs trust: name the file, `toolstead config show` lists them"
                        .into(),
                )
            }))
        }
        _ => Err(Failed::Usage(format!("several files wait for trust: say which one: {}", commands()))),
    }
}

/// The command that trusts a file.
pub(super) fn trusting(file: &Path) -> String {
    format!("`toolstead config trust {}`", in_shell(&file.to_string_lossy()))
}
