//! `toolstead config trust`.

use crate::{
    cli::{
        CommandResult,
        config::trusting,
        confirmation::is_confirmed,
        exit::{CommandError, Exit},
        global::GlobalFlags,
        output::{StdoutWriter, note},
        terminal::Terminal,
    },
    composition_root::StartupError,
    config::{
        Config, ConfigFile, FileTrust,
        agent_files::UntrustedAgentFile,
        layers::LayerKind,
        tree::{origin::Origin, problem::Problem},
        trust::programs::ProgramDigestSnapshot,
    },
    surroundings::{InstructionFileLoader, InstructionFileStatus},
};
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Shows what of a file would take effect, asks, and trusts the file with this content.
#[derive(Debug, Args)]
pub(super) struct TrustCommand {
    /// The file or folder, or a program of a server. Default: the project's own file, or the only file that waits for trust
    file: Option<PathBuf>,
    /// Revokes the trust
    #[arg(long, conflicts_with_all = ["yes", "dry_run"])]
    remove: bool,
    /// Trusts without asking
    #[arg(short, long)]
    yes: bool,
    /// Shows what would take effect and changes nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

/// Contents that one command trusts, as they were read before the user is asked.
struct TrustPlan {
    path: PathBuf,
    /// Effects of the trust, one line each.
    effects: Vec<String>,
    subject: TrustSubject,
}

enum TrustSubject {
    /// A configuration file, and the programs that its servers run.
    File { path: PathBuf, programs: ProgramDigestSnapshot },
    /// A program of a server.
    Program(ProgramDigestSnapshot),
    /// Agent files, and the folder whose instruction files agents will read.
    Folder { agent_files: Vec<UntrustedAgentFile>, instructions: Option<PathBuf> },
}

impl TrustCommand {
    pub(super) async fn run(self, global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
        let config = global.load_silently()?;
        if self.remove {
            let path = revoke(&config, self.file.as_deref())?;
            if global.json {
                output.json(&json!({"file": path, "trusted": false}))?;
            }
            return Ok(Exit::Done);
        }
        let plan = plan(global, &config, self.file.as_deref())?;
        plan.effects.iter().for_each(|effect| note(&on_one_line(effect)));
        if plan.effects.is_empty() {
            note("nothing more takes effect");
        }
        if !self.dry_run {
            if !self.yes {
                confirm().await?;
            }
            plan.apply(&config)?;
            note(&on_one_line(&plan.confirmation()));
        }
        if global.json {
            output.json(&json!({"file": plan.path, "trusted": !self.dry_run, "effects": plan.effects}))?;
        }
        Ok(Exit::Done)
    }
}

/// Asks the user at the terminal.
///
/// # Errors
/// [`CommandError::Usage`] without a terminal, or if the user declines.
async fn confirm() -> Result<(), CommandError> {
    if Terminal::of_process().is_none() {
        return Err(CommandError::Usage(
            "nothing is trusted: trust requires confirmation, and no terminal is available. Read what would take \
             effect, then run the command again with `--yes`"
                .into(),
        ));
    }
    match is_confirmed("Trust this? [y]es [n]o ").await {
        true => Ok(()),
        false => Err(CommandError::Usage("nothing is trusted: the question was not answered with `y`".into())),
    }
}

impl TrustPlan {
    fn apply(&self, config: &Config) -> Result<(), CommandError> {
        let result = match &self.subject {
            TrustSubject::File { path, programs } => match config.files.iter().find(|file| *file.path == **path) {
                Some(file) if file.trust != FileTrust::Always => config.set_trust(file, true),
                _ => Ok(()),
            }
            .and_then(|()| config.trust_programs(programs)),
            TrustSubject::Program(programs) => config.trust_programs(programs),
            TrustSubject::Folder { agent_files, instructions } => {
                let trusted = if agent_files.is_empty() { Ok(()) } else { config.agent_files().trust(agent_files) };
                trusted.and_then(|()| match instructions {
                    Some(folder) => config.instruction_folders().set_trust(folder, true),
                    None => Ok(()),
                })
            }
        };
        result.map_err(usage)
    }

    /// Returns the sentence that confirms the trust.
    fn confirmation(&self) -> String {
        let path = self.path.display();
        match &self.subject {
            TrustSubject::Folder { agent_files, instructions: Some(folder) } => {
                let others = if agent_files.is_empty() { "" } else { "; a change to an agent file revokes its trust" };
                format!("the instructions in {} remain trusted when they change{others}", folder.display())
            }
            TrustSubject::File { .. } | TrustSubject::Program(_) | TrustSubject::Folder { .. } => {
                format!("{path} is trusted as it is now; a change revokes the trust")
            }
        }
    }
}

fn usage(problem: Problem) -> CommandError {
    CommandError::Usage(problem.to_string())
}

/// Escapes line breaks, so that no value looks like a separate line of output.
fn on_one_line(text: &str) -> String {
    text.replace('\n', "\\n").replace('\r', "\\r")
}

fn plan(global: &GlobalFlags, config: &Config, named: Option<&Path>) -> Result<TrustPlan, CommandError> {
    if let Some(named) = named {
        let path = real_place(named)?;
        let agent_files = config.agent_files().waiting_under(&path);
        let instructions = waiting_instructions(config, &path)?;
        if !agent_files.is_empty() || !instructions.is_empty() {
            return folder_plan(config, path, agent_files, &instructions);
        }
        if let Some(program) = program(config, named) {
            let programs = ProgramDigestSnapshot::of(std::slice::from_ref(&program)).map_err(usage)?;
            let effects = vec![format!("servers may run {} with its present content", program.display())];
            return Ok(TrustPlan { path: program, effects, subject: TrustSubject::Program(programs) });
        }
    }
    file_plan(global, config, chosen(config, named)?)
}

/// Returns the instruction files at and below this path that are not read because their folder is not trusted.
fn waiting_instructions(config: &Config, path: &Path) -> Result<Vec<PathBuf>, CommandError> {
    if config.instruction_folders().disabled().is_some() {
        return Ok(Vec::new());
    }
    // Instruction files are listed with their resolved paths.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let files = InstructionFileLoader::open(config).map_err(StartupError::from)?.list();
    let waiting = files.into_iter().filter(|file| matches!(file.state, InstructionFileStatus::Untrusted(_)));
    Ok(waiting.map(|file| file.path).filter(|file| file.starts_with(&path)).collect())
}

fn folder_plan(
    config: &Config,
    path: PathBuf,
    agent_files: Vec<UntrustedAgentFile>,
    instructions: &[PathBuf],
) -> Result<TrustPlan, CommandError> {
    let effect = |file: &UntrustedAgentFile| {
        format!("the {} `{}` becomes available: {}", file.kind.word(), file.name, file.path.display())
    };
    let mut effects: Vec<String> = agent_files.iter().map(effect).collect();
    let mut trusted = None;
    if !instructions.is_empty() {
        let folder = if instructions.contains(&path) { path.parent().unwrap_or(&path) } else { &path };
        let folder = config.instruction_folders().judge(folder).map_err(|reason| {
            CommandError::Usage(format!("the instructions in `{}` cannot be trusted: {reason}", folder.display()))
        })?;
        effects.extend(instructions.iter().map(|file| format!("agents read the instructions of {}", file.display())));
        effects.push(format!(
            "agents read all instruction files in {} and below, including new and changed ones",
            folder.display()
        ));
        trusted = Some(folder);
    }
    Ok(TrustPlan { path, effects, subject: TrustSubject::Folder { agent_files, instructions: trusted } })
}

fn file_plan(global: &GlobalFlags, config: &Config, file: &ConfigFile) -> Result<TrustPlan, CommandError> {
    let is_of_file = |origin: &Origin| matches!(origin, Origin::File(at, _) if *at == file.path);
    let mut effects = Vec::new();
    for setting in config.resolved.all() {
        for waiting in setting.shown_waiting().iter().filter(|one| is_of_file(&one.origin)) {
            effects.push(format!(
                "takes effect: {} = {}  # {}",
                setting.name(),
                waiting.value.to_json(),
                waiting.origin
            ));
        }
    }
    for hook in config.hooks.idle.iter().filter(|hook| is_of_file(&hook.origin)) {
        let consequence = hook.waiting.as_ref().map_or(hook.reason.clone(), |line| format!("runs {line}"));
        effects.push(format!("the hook `{}` at {}: {consequence}", hook.event, hook.origin));
    }
    // The servers of the file are part of the configuration once it is trusted.
    let preview = global.preview_trust(file)?;
    let servers = preview.mcp_servers.iter().filter(|server| is_of_file(&server.origin));
    let programs: Vec<PathBuf> = servers.flat_map(|server| server.programs.paths()).map(Path::to_path_buf).collect();
    let programs = ProgramDigestSnapshot::of(&programs).map_err(usage)?;
    let runs =
        |program: &Path| format!("a server of this file runs {}, which is trusted as it is now", program.display());
    effects.extend(programs.existing().map(runs));
    let path = file.path.to_path_buf();
    Ok(TrustPlan { path: path.clone(), effects, subject: TrustSubject::File { path, programs } })
}

/// Returns the path with the links of its folder resolved, and its own name unless it has no folder.
fn real_place(named: &Path) -> Result<PathBuf, CommandError> {
    let path = std::path::absolute(named)?;
    Ok(match (path.parent().map(Path::canonicalize), path.file_name()) {
        (Some(Ok(folder)), Some(name)) => folder.join(name),
        _ => path.canonicalize()?,
    })
}

/// Revokes the trust in agent files and instruction folders at and below this path, or in one configuration file.
/// Returns the path.
fn revoke(config: &Config, named: Option<&Path>) -> Result<PathBuf, CommandError> {
    if let Some(named) = named {
        let path = real_place(named)?;
        let files = config.agent_files();
        let trusted = files.trusted_under(&path);
        let instructions = config.instruction_folders().trusted_under(&path);
        if !trusted.is_empty() || !instructions.is_empty() {
            files.forget(&trusted).map_err(usage)?;
            config.instruction_folders().set_trust(&path, false).map_err(usage)?;
            trusted.iter().for_each(|file| note(&format!("{} is no longer trusted and has no effect", file.display())));
            let said = |folder: &PathBuf| format!("the instructions in {} are no longer read", folder.display());
            instructions.iter().for_each(|folder| note(&said(folder)));
            return Ok(path);
        }
    }
    revoke_file(config, named)
}

/// Revokes the trust in a configuration file, which may have been removed.
fn revoke_file(config: &Config, file: Option<&Path>) -> Result<PathBuf, CommandError> {
    let absolute = file.map(std::path::absolute).transpose()?;
    let path = match absolute.filter(|path| !path.is_file() || path.is_symlink()) {
        Some(path) if config.forget_trust(&path).map_err(usage)? => path,
        _ => {
            let file = chosen(config, file)?;
            config.set_trust(file, false).map_err(usage)?;
            file.path.to_path_buf()
        }
    };
    note(&format!("{} is no longer trusted: only its stricter settings apply", path.display()));
    Ok(path)
}

/// Returns the program of a server that this path names.
fn program(config: &Config, named: &Path) -> Option<PathBuf> {
    let named = std::path::absolute(named).ok()?;
    let real = named.canonicalize().ok();
    let mut programs = config.mcp_servers.iter().flat_map(|server| server.programs.paths());
    programs.find(|program| **program == *named || real.as_deref() == Some(*program)).map(Path::to_path_buf)
}

/// Returns the named file; without a name the project's own, or the only file that waits for trust.
fn chosen<'a>(config: &'a Config, file: Option<&Path>) -> Result<&'a ConfigFile, CommandError> {
    let Some(named) = file else { return unnamed(config) };
    let path = std::path::absolute(named)?;
    let real = path.canonicalize().map_err(|error| CommandError::Usage(format!("`{}`: {error}", named.display())))?;
    // The name as typed takes precedence over the target of a link.
    let known = config.files.iter().find(|known| *known.path == *path);
    let known = known.or_else(|| config.files.iter().find(|known| *known.path == *real));
    let runs_programs = |file: &ConfigFile| {
        let of_file = |origin: &Origin| matches!(origin, Origin::File(at, _) if *at == file.path);
        config.mcp_servers.iter().any(|server| of_file(&server.origin) && server.programs.paths().next().is_some())
    };
    match known {
        Some(ConfigFile { leads_to: Some(target), .. }) => Err(linked(named, target)),
        Some(file) if file.trust != FileTrust::Always || runs_programs(file) => Ok(file),
        _ => Err(CommandError::Usage(format!(
            "`{}` is not a configuration file that requires trust: `toolstead config show` lists them",
            real.display()
        ))),
    }
}

fn linked(file: &Path, target: &Path) -> CommandError {
    CommandError::Usage(format!(
        "`{}` is a link, or is below one, to {}, and trust in one project does not extend to another: put a copy of \
         the file here, or name the target with `--config`",
        file.display(),
        target.display()
    ))
}

fn unnamed(config: &Config) -> Result<&ConfigFile, CommandError> {
    let project = |file: &&ConfigFile| file.kind == LayerKind::Project && file.trust != FileTrust::Linked;
    if let Some(file) = config.files.iter().find(project) {
        return Ok(file);
    }
    let waiting: Vec<&ConfigFile> = config.files.iter().filter(|file| file.trust == FileTrust::Waiting).collect();
    let commands = || waiting.iter().map(|file| trusting(&file.path)).collect::<Vec<_>>().join(", ");
    match waiting.as_slice() {
        [file] => Ok(file),
        [] => {
            let of_project = config.files.iter().filter(|file| file.kind == LayerKind::Project);
            let mut links = of_project.filter_map(|file| Some(linked(&file.path, file.leads_to.as_deref()?)));
            Err(links.next().unwrap_or_else(|| {
                CommandError::Usage(
                    "no project file requires trust: name the file, `toolstead config show` lists them".into(),
                )
            }))
        }
        _ => Err(CommandError::Usage(format!("several files wait for trust: say which one: {}", commands()))),
    }
}
