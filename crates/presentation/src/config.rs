//! The configuration: files, environment and flags, joined into one value.
//!
//! Every key stands in [`schema`]. A file is read into a tree, checked as a whole, and becomes a layer; the layers are
//! joined key by key, each value with its origin. A project's file counts as far as it tightens, and in full once a
//! person trusts it. Nothing else in the program reads the environment.

pub mod agent;
pub mod agent_files;
mod check;
pub mod client_roots;
mod command_lines;
pub mod database;
pub mod database_url;
pub mod decision_table;
pub mod environment;
mod examples;
mod expansion;
pub mod folders;
mod foreign_servers;
mod foreign_tools;
mod format;
pub mod hooks;
pub mod idle_rules;
mod imports;
mod in_the_clear;
mod known_models;
pub mod layers;
pub mod mcp_server;
pub mod model_places;
pub mod models;
mod node;
pub mod origin;
mod ownership;
pub mod policy;
pub mod problem;
pub mod profiles;
pub mod programs;
mod read_only_commands;
pub mod request;
pub mod rule_files;
pub mod schema;
pub mod sections;
pub mod server_programs;
mod server_times;
pub mod services;
mod source_file;
pub mod token;
pub mod told_notes;
mod tool_block;
mod tool_choice;
mod trust;
pub mod value;
pub(crate) mod workspace;

use agent::AgentSettings;
use agent_files::AgentFiles;
use check::{Base, check};
use database::DatabaseSettings;
use environment::Environment;
use folders::Folders;
use format::Format;
use hooks::Hooks;
use layers::{Layer, LayerKind, Layers, Resolved};
use mcp_server::{ConfiguredServer, FoundServer};
use models::{ConfiguredModels, NoSuchModel};
use origin::Origin;
use problem::{ConfigError, Problem};
use profiles::{NoSuchProfile, Profile};
use programs::ProgramDigests;
use request::Request;
use rule_files::RuleFiles;
use sections::{AuditSettings, Limits, OutputSettings, SandboxSettings, ServerSettings, section};
use services::OutsideSettings;
use source_file::SourceFile;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use toolstead_application::execute_tool::{CallSettings, tool_timeouts::ToolTimeouts};
use toolstead_domain::{
    alias::Dialect,
    permission::{
        decision::in_shell,
        path_pattern::PatternBase,
        policy::{Mode, PermissionPolicy},
        rule::PermissionRule,
    },
    ports::rule_store::RuleStore,
    sandbox_policy::SandboxLimits,
    server_name::ServerName,
    tool_selection::ToolSelection,
    workspace_roots::{WorkspaceRoots, lexical},
};
use toolstead_infrastructure::{builtin::files::file_limits::FileLimits, dialects, models::ModelSettings};
use trust::TrustedFiles;
use value::{Item, Value};

/// Where the administrator's configuration lies.
pub const ADMINISTRATOR_FOLDER: &str = "/etc/toolstead";

/// The whole configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// The environment that it was loaded with, from which children of an application get theirs.
    pub environment: Environment,
    /// The folders of the workspace, links resolved.
    pub roots: WorkspaceRoots,
    /// What happens to calls that no rule decides.
    pub mode: Mode,
    /// How long a person has to answer when a call is asked about.
    pub approval_timeout: Duration,
    /// All rules.
    pub rules: Vec<Arc<PermissionRule>>,
    /// The tools that are offered.
    pub selection: ToolSelection,
    /// The tool system in whose names and words tools are listed and answer; `None`: our own.
    pub dialect: Option<Dialect>,
    /// Tells whether answers stand in tags there, where that system knows them.
    pub answers_in_tags: bool,
    /// The MCP servers, sorted by name; those that are disabled or cannot be reached included.
    pub mcp_servers: Vec<ConfiguredServer>,
    /// The servers of files that nobody trusts yet.
    pub found_servers: Vec<FoundServer>,
    /// The hooks.
    pub hooks: Hooks,
    /// The language models.
    pub models: ConfiguredModels,
    /// The model that is asked where nobody names one.
    pub default_model: Option<String>,
    /// The profiles, sorted by name.
    pub profiles: Vec<Profile>,
    /// What holds for every run of an agent.
    pub agent: AgentSettings,
    /// The way to hosts, and the services that tools speak to.
    pub outside: OutsideSettings,
    /// True where each call that ended is told with its input and its result.
    pub tool_call_details: bool,
    /// How commands are confined.
    pub sandbox: SandboxSettings,
    /// The bounds.
    pub limits: Limits,
    /// What file tools read and write at most.
    pub file_limits: FileLimits,
    /// Where the stores are.
    pub database: DatabaseSettings,
    /// What the audit trail keeps.
    pub audit: AuditSettings,
    /// What is kept of large outputs and of replaced files.
    pub outputs: OutputSettings,
    /// How the server listens.
    pub server: ServerSettings,
    /// Where things are.
    pub folders: Folders,
    /// The files that were read.
    pub files: Vec<ConfigFile>,
    /// What no confined program changes: what hooks and servers run.
    pub sealed: Vec<PathBuf>,
    /// Every value with its origins.
    pub resolved: Resolved,
    /// What is worth telling and no error.
    pub notes: Vec<Problem>,
    /// Every name that chooses tools.
    selected: Vec<Item>,
    tool_timeouts: BTreeMap<String, Duration>,
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    /// Absolute. A file of a project bears the name under which it lies there, any other one has its links resolved.
    pub path: Arc<Path>,
    /// Whose it is.
    pub kind: LayerKind,
    /// Whether all of it counts.
    pub trust: Trust,
    /// The file that was read instead, where a link in a project leads to it.
    pub leads_to: Option<PathBuf>,
    text: String,
}

/// Why a file counts in full, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// It is the administrator's, the user's, or was named with `--config`.
    Always,
    /// A person said yes to this content.
    Given,
    /// Nobody did yet.
    Waiting,
    /// Nobody can: it is a link in a project, or lies behind one, and what is trusted at one place is not at another.
    Linked,
}

impl Trust {
    /// Whether all of the file counts.
    pub fn is_given(self) -> bool {
        matches!(self, Self::Always | Self::Given)
    }
}

impl Config {
    /// Loads the configuration.
    ///
    /// # Errors
    /// [`ConfigError`] with everything that is wrong in any file, variable or flag.
    pub fn load(request: &Request) -> Result<Self, ConfigError> {
        let (mut config, trusted) = Self::load_with(request, |_| {})?;
        config.notes.extend(programs::note_named(&config.mcp_servers, &config.folders, &trusted).err());
        Ok(config)
    }

    /// Loads the configuration that would be in force if this file were trusted. Stores nothing.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn preview_trust(request: &Request, file: &ConfigFile) -> Result<Self, ConfigError> {
        Ok(Self::load_with(request, |trusted| trusted.trust(&file.path, &file.text))?.0)
    }

    /// Loads the configuration with the list of trusted files after this change to it. Returns the list, too.
    fn load_with(
        request: &Request,
        change: impl FnOnce(&mut TrustedFiles),
    ) -> Result<(Self, TrustedFiles), ConfigError> {
        let folders = Folders::of(&request.environment, &request.start, &request.administrator)?;
        let mut notes = folders.guard_data()?;
        let (files, mut problems, foreign) = match &request.file {
            Some(path) => {
                let (files, problems) = chosen(&folders.start.join(path));
                (files, problems, Vec::new())
            }
            None => {
                let (files, problems) = source_file::discover(&folders, &mut notes);
                (files, problems, foreign_servers::discover(&folders, &mut notes))
            }
        };
        let (mut trusted, note) = TrustedFiles::load(&folders);
        notes.extend(note);
        change(&mut trusted);

        let mut layers = Layers::default();
        for file in &files {
            let mut wrong = Vec::new();
            let layer = file_layer(file, &folders, &trusted, &mut wrong);
            if file.kind == LayerKind::Local && !layer.trusted && !wrong.is_empty() {
                notes.extend(wrong.into_iter().map(source_file::left_out));
                continue;
            }
            problems.extend(wrong);
            layers = layers.merge(Layers::of(layer));
        }
        for file in &foreign {
            layers = layers.merge(Layers::of(foreign_servers::layer(file, &folders, &trusted, &mut notes)));
        }
        let typed =
            [(LayerKind::Environment, request.environment.settings()), (LayerKind::Flags, request.flags.settings())];
        for (kind, root) in typed {
            let base = Base { folder: &folders.start, home: folders.home.as_deref() };
            let (entries, found) = check(&root, base);
            problems.extend(found);
            layers = layers.merge(Layers::of(Layer { kind, trusted: true, entries }));
        }
        let imported = imports::load(&layers, &folders, &trusted, &mut notes, &mut problems);
        for (_, layer) in &imported.layers {
            layers = layers.merge(Layers::of(layer.clone()));
        }
        ConfigError::unless_none(problems)?;

        let foreign = foreign.into_iter().chain(imported.layers.into_iter().map(|(file, _)| file));
        let files: Vec<_> = files.into_iter().chain(foreign).map(|file| ConfigFile::of(file, &trusted)).collect();
        notes.extend(files.iter().filter_map(ConfigFile::linked));
        let named = imported.named.into_iter().chain(models::key_files(&layers)).collect();
        let config = Self::of(layers.resolve(), folders, files, named, &request.environment, &trusted, notes)?;
        Ok((config, trusted))
    }

    fn of(
        mut resolved: Resolved,
        folders: Folders,
        mut files: Vec<ConfigFile>,
        named: Vec<PathBuf>,
        environment: &Environment,
        trusted: &TrustedFiles,
        mut notes: Vec<Problem>,
    ) -> Result<Self, ConfigError> {
        let mut problems = Vec::new();
        let mut roots = workspace::roots(&folders, &mut resolved, &mut problems);
        let (selection, mut selected) = tool_choice::choice(&mut resolved);
        let mut rules = policy::rules(&folders, &resolved, &roots, &mut problems);
        let surroundings = hooks::Surroundings { folders: &folders, environment, roots: &roots, trusted };
        let (mut hooks, imported) = hooks::hooks(&resolved, &surroundings, &mut problems, &mut notes);
        rules.extend(programs::guarding_rules(hooks.guarded(), &roots));
        files.extend(imported);
        hooks.look_for_waiting_gates(&files, trusted, &folders);
        let project = source_file::project_folders(&folders).pop().unwrap_or_else(|| folders.start.clone());
        server_times::fill_in(&mut resolved, environment, &mut notes);
        let mut mcp_servers = mcp_server::servers(&resolved, environment, &project, &mut problems, &mut notes);
        let run = programs::of_servers(&mut mcp_servers, &roots, &folders, environment);
        rules.extend(programs::guarding_rules(&run, &roots));
        let sealed = hooks.guarded().iter().chain(&run).map(|(path, _)| path.clone()).collect();
        let found_servers = mcp_server::found(&resolved);
        let surroundings = models::Surroundings {
            environment,
            home: folders.home.as_deref().unwrap_or(Path::new("/")),
            written: &programs::written_by_tools(&mcp_servers, &roots),
        };
        let models = models::models(&resolved, &surroundings, &mut problems, &mut notes);
        let default_model = models::default_of(&resolved, &models).unwrap_or_else(|error| {
            problems.extend(error.problems);
            None
        });
        let servers: Vec<&ServerName> = mcp_servers.iter().map(|server| &server.name).collect();
        let (profiles, chosen_by_profiles) =
            profiles::profiles(&mut resolved, &models, &servers, &mut problems, &mut notes);
        selected.extend(chosen_by_profiles);
        let agent = agent::agent(&resolved, &models, &mut problems);
        let outside = services::outside(&resolved, environment, &mut problems, &mut notes);
        let tool_call_details = resolved.setting("events.tool_call_details").and_then(|setting| setting.value);
        let limits: Limits = section(&resolved, "limits")?;
        let file_limits: FileLimits = section(&resolved, "files")?;
        let audit: AuditSettings = section(&resolved, "audit")?;
        let mut outputs: OutputSettings = section(&resolved, "outputs")?;
        let server: ServerSettings = section(&resolved, "server")?;
        let database = DatabaseSettings::of(&resolved, &folders).map_err(|problem| problems.push(problem)).ok();
        workspace::check_spool_folder(&resolved, &mut problems);
        let chosen = files.iter().find(|file: &&ConfigFile| file.kind == LayerKind::Chosen).map(|file| &*file.path);
        let secrets = [server.token_file.as_deref(), outside.key_file.as_deref()];
        roots.forbidden = workspace::forbidden(&folders, chosen, database.as_ref(), secrets, &mcp_servers);
        roots.forbidden.extend(imports::files(&resolved, named));
        if let Some(database) = &database {
            workspace::guard_database(database, &mut problems, &mut notes);
        }
        let mode = resolved.setting("permissions.mode").and_then(|setting| setting.value);
        let mode = mode.and_then(|mode| Mode::parse(mode.as_text()?)).unwrap_or_default();
        problems.extend(policy::forbidden_mode(mode, &resolved));
        let dialect = resolved.setting("dialect.name").and_then(|setting| setting.value);
        let dialect = dialect.and_then(|name| dialects::named(name.as_text()?));
        let in_tags = resolved.setting("dialect.tags").and_then(|setting| setting.value);
        let (Some(database), true) = (database, problems.is_empty()) else { return Err(ConfigError { problems }) };
        if limits.timeout_seconds > limits.max_timeout_seconds {
            let setting = resolved.setting("limits.timeout_seconds");
            let origin = setting.and_then(|setting| setting.origins.first().cloned()).unwrap_or(Origin::Default);
            let message = format!(
                "`limits.timeout_seconds` is cut to `limits.max_timeout_seconds`, {}",
                limits.max_timeout_seconds
            );
            notes.push(Problem::new(origin, message));
        }
        let retained = usize::try_from(outputs.retention_bytes).unwrap_or(usize::MAX);
        if outputs.max_bytes > retained {
            let setting = resolved.setting("outputs.retention_bytes");
            let origin = setting.and_then(|setting| setting.origins.first().cloned()).unwrap_or(Origin::Default);
            let message = format!("`outputs.max_bytes` is cut to `outputs.retention_bytes`, {retained}");
            notes.push(Problem::new(origin, message));
            outputs.max_bytes = retained;
        }
        let patience = resolved.setting("permissions.approval_timeout").and_then(|setting| setting.value);
        let patience = match patience {
            Some(Value::Integer(seconds)) => seconds,
            _ => 300,
        };
        let mut config = Self {
            environment: environment.clone(),
            mode,
            dialect,
            answers_in_tags: in_tags == Some(Value::Boolean(true)),
            approval_timeout: Duration::from_secs(patience),
            sandbox: SandboxSettings::of(&resolved),
            tool_timeouts: tool_block::timeouts(&resolved),
            roots,
            rules,
            selection,
            mcp_servers,
            found_servers,
            hooks,
            models,
            default_model,
            profiles,
            agent,
            outside,
            tool_call_details: tool_call_details == Some(Value::Boolean(true)),
            limits,
            file_limits,
            database,
            audit,
            outputs,
            server,
            folders,
            files,
            sealed,
            resolved,
            selected,
            notes: Vec::new(),
        };
        policy::absent_servers(&config, &mut notes);
        policy::idle_choices(&config, &mut notes);
        policy::wide_rules(&config, &mut notes);
        policy::rules_of_tools_only(&config, &mut notes);
        notes.extend(config.agent_files().told());
        config.notes = notes;
        Ok(config)
    }

    /// The agents, skills and commands that people wrote down, as far as they may be used.
    pub fn agent_files(&self) -> AgentFiles {
        let is_alone = self.files.iter().any(|file| file.kind == LayerKind::Chosen);
        AgentFiles::of(&self.folders, &self.roots, is_alone)
    }

    /// What outputs, undo and everything else that lasts belongs to: the first root, else the start folder.
    pub fn workspace(&self) -> &Path {
        self.roots.start().unwrap_or(&self.folders.start)
    }

    /// Whether a file that was read names an MCP server so, be it disabled or not trusted yet.
    pub fn names_server(&self, name: &str) -> bool {
        self.mcp_servers.iter().any(|server| server.name.as_str() == name)
            || self.found_servers.iter().any(|server| server.name.as_str() == name)
    }

    /// The model of that name, else the default one.
    ///
    /// # Errors
    /// [`NoSuchModel`].
    pub fn model(&self, name: Option<&str>) -> Result<&ModelSettings, NoSuchModel> {
        let names: Vec<&str> = self.models.names().collect();
        if names.is_empty() {
            return Err(NoSuchModel::NoneConfigured { file: self.user_file() });
        }
        match name.or(self.default_model.as_deref()) {
            Some(name) => self.models.named(name),
            None => Err(NoSuchModel::NoneChosen { names: names.join(", ") }),
        }
    }

    /// The profile of that name.
    ///
    /// # Errors
    /// [`NoSuchProfile`], with the nearest name.
    pub fn profile(&self, name: &str) -> Result<&Profile, NoSuchProfile> {
        profiles::named(&self.profiles, name)
    }

    /// Where a person writes their own configuration.
    fn user_file(&self) -> String {
        let folder = self.folders.config.as_ref().map(|folder| folder.join("config.toml"));
        folder.map_or("a configuration file".into(), |file| file.display().to_string())
    }

    /// The policy that decides on every call.
    pub fn policy(&self) -> PermissionPolicy {
        PermissionPolicy {
            rules: self.rules.clone(),
            waiting: policy::waiting_rules(&self.folders, &self.resolved),
            mode: self.mode,
            roots: self.roots.clone(),
            selection: self.selection.clone(),
            within: None,
        }
    }

    /// What rules of a program are read with: relative paths begin in the start folder.
    pub fn pattern_base(&self) -> PatternBase {
        Base { folder: &self.folders.start, home: self.folders.home.as_deref() }.patterns()
    }

    /// What of each file's permissions waits for trust, and how to give it.
    pub fn waiting_permissions(&self) -> Vec<String> {
        let settings = self.resolved.all_in("permissions");
        let mut files: BTreeMap<Arc<Path>, (usize, usize)> = BTreeMap::new();
        for (setting, waiting) in
            settings.iter().flat_map(|setting| setting.waiting.iter().map(move |one| (setting, one)))
        {
            let Origin::File(path, _) = &waiting.origin else { continue };
            if self.files.iter().any(|file| file.path == *path && file.leads_to.is_some()) {
                continue;
            }
            let (rules, others) = files.entry(path.clone()).or_default();
            let counted = if setting.name() == "permissions.allow" { rules } else { others };
            *counted += 1;
        }
        let told = |(path, (rules, others)): (Arc<Path>, (usize, usize))| {
            let number = |count, what| match count {
                0 => None,
                1 => Some(format!("1 {what}")),
                count => Some(format!("{count} {what}s")),
            };
            let what: Vec<String> =
                [number(rules, "allow rule"), number(others, "other setting")].into_iter().flatten().collect();
            let path = path.display().to_string();
            let verb = if rules + others == 1 { "waits" } else { "wait" };
            format!("{} of {path} {verb} for trust: `toolstead config trust {}`", what.join(" and "), in_shell(&path))
        };
        files.into_iter().map(told).collect()
    }

    /// Where rules are kept that a person approved.
    pub fn rule_store(&self) -> Arc<dyn RuleStore> {
        Arc::new(RuleFiles::of(&self.folders, &self.files))
    }

    /// The bounds of every call.
    pub fn call_settings(&self) -> CallSettings {
        let servers = self.mcp_servers.iter().filter_map(|server| Some((server.name.clone(), server.timeout?)));
        CallSettings {
            default_timeout: Duration::from_secs(self.limits.timeout_seconds),
            max_timeout: Duration::from_secs(self.limits.max_timeout_seconds),
            approval_timeout: self.approval_timeout,
            timeouts: ToolTimeouts { by_tool: self.tool_timeouts.clone(), by_server: servers.collect() },
            output_characters: self.limits.output_bytes,
            media_bytes: self.limits.media_bytes,
            stored_output_bytes: self.outputs.max_bytes,
            arguments: self.audit.arguments(),
            tells_details: self.tool_call_details,
            faces_in_tags: self.answers_in_tags,
            ..CallSettings::default()
        }
    }

    /// The bounds of a command. Its time is its call's, and ends with it: what goes on in the background has none.
    pub fn sandbox_limits(&self) -> SandboxLimits {
        SandboxLimits {
            timeout: None,
            memory_bytes: self.limits.memory_bytes,
            processes: self.limits.processes,
            file_bytes: self.limits.file_bytes,
        }
    }

    /// The longest time that one of the servers may take to list its tools.
    pub fn connect_timeout(&self) -> Duration {
        let enabled = self.mcp_servers.iter().filter(|server| !server.disabled);
        enabled.map(|server| server.connect_timeout).max().unwrap_or_default()
    }

    /// Trusts a file as it was when this configuration was read, or no longer.
    ///
    /// # Errors
    /// A [`Problem`] when it cannot be kept.
    pub fn set_trust(&self, file: &ConfigFile, trusted: bool) -> Result<(), Problem> {
        match trusted {
            true => trust::set_with_gates(&self.folders, &file.path, &file.text, self.hooks.hold_gate(&file.path)),
            false => trust::set(&self.folders, &file.path, None),
        }
    }

    /// Trusts the content that these programs of servers had when their digests were computed.
    ///
    /// # Errors
    /// A [`Problem`] when the list of trusted files cannot be written.
    pub fn trust_programs(&self, programs: &ProgramDigests) -> Result<(), Problem> {
        programs.trust(&self.folders)
    }

    /// No longer trusts the file that was trusted at this path, be it there or gone. Says whether one was.
    ///
    /// # Errors
    /// A [`Problem`] when it cannot be kept.
    pub fn forget_trust(&self, path: &Path) -> Result<bool, Problem> {
        if let Ok(root) = path.canonicalize()
            && TrustedFiles::load(&self.folders).0.is_root(&root)
        {
            return trust::set_root(&self.folders, &root, false).map(|()| true);
        }
        // What lies there now may be a link to another file.
        let folder = path.parent().map(folders::real).unwrap_or_default();
        let path = folder.join(path.file_name().unwrap_or_default());
        let trusted = TrustedFiles::load(&self.folders).0;
        if !trusted.knows(&path) && !trusted.held_gate(&path) {
            return Ok(false);
        }
        trust::set(&self.folders, &path, None).map(|()| true)
    }
}

impl Config {
    /// Keeps a file from every tool and command, wherever it lies: what a call writes there would be told as ours.
    pub fn keep_from_tools(&mut self, file: &Path) {
        let named = lexical(&self.folders.start, file);
        self.roots.forbidden.extend([folders::real(&named), named]);
    }
}

impl ConfigFile {
    fn of(file: SourceFile, trusted: &TrustedFiles) -> Self {
        let SourceFile { kind, path, text, leads_to } = file;
        let trust = match kind {
            _ if leads_to.is_some() => Trust::Linked,
            kind if !needs_trust(kind, &path, trusted) => Trust::Always,
            _ if trusted.trusts(&path, &text) => Trust::Given,
            _ => Trust::Waiting,
        };
        Self { path, kind, trust, leads_to, text }
    }

    /// What is to be told of a link in a project.
    fn linked(&self) -> Option<Problem> {
        let target = self.leads_to.as_ref()?.display();
        let message = format!(
            "is a link, or lies behind one, to {target}: what is trusted there is a stranger's here, and only what is \
             stricter counts. Put a file of its own here, or name the other with `--config`"
        );
        Some(Problem::new(Origin::file(self.path.clone()), message))
    }
}

/// Whether a file counts only with the content that a person said yes to: any of a project, and an imported one that was
/// not there when a person's own file named it first.
fn needs_trust(kind: LayerKind, path: &Path, trusted: &TrustedFiles) -> bool {
    kind.is_of_project() || trusted.was_missing(path)
}

/// Whether all of a file that was read counts.
fn is_trusted(file: &SourceFile, trusted: &TrustedFiles) -> bool {
    let is_content_trusted = || trusted.trusts(&file.path, &file.text);
    file.leads_to.is_none() && (!needs_trust(file.kind, &file.path, trusted) || is_content_trusted())
}

/// The file of `--config`.
fn chosen(path: &Path) -> (Vec<SourceFile>, Vec<Problem>) {
    match SourceFile::read(LayerKind::Chosen, path) {
        Ok(Some(file)) => (vec![file], Vec::new()),
        Ok(None) => (Vec::new(), vec![Problem::new(Origin::file(path), "there is no such file")]),
        Err(problem) => (Vec::new(), vec![problem]),
    }
}

fn file_layer(file: &SourceFile, folders: &Folders, trusted: &TrustedFiles, problems: &mut Vec<Problem>) -> Layer {
    let trusted = is_trusted(file, trusted);
    let mut entries = Vec::new();
    let format = Format::of(&file.path).ok_or_else(|| {
        let message = "the name of a configuration file ends in `.toml`, `.json`, `.yaml` or `.yml`";
        Problem::new(Origin::file(file.path.clone()), message)
    });
    match format.and_then(|format| format.read(&file.text, &file.path)) {
        Ok(root) => {
            let folder = file.path.parent().unwrap_or(Path::new("/"));
            let (found, wrong) = check(&root, Base { folder, home: folders.home.as_deref() });
            entries = found;
            problems.extend(wrong);
        }
        Err(problem) => problems.push(problem),
    }
    Layer { kind: file.kind, trusted, entries }
}
