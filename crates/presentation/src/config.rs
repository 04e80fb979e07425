//! The configuration: files, environment variables and flags, merged into one value.
//!
//! Every key is defined in [`tree::schema`]. A file is parsed into a tree, checked as a whole, and becomes a layer. The
//! layers are merged key by key, and each value records its origin. An untrusted project file may only tighten
//! settings; once the user trusts it, all of it takes effect. No other part of the program reads the environment.

pub mod agent_files;
pub mod hooks;
mod imports;
pub mod layers;
pub mod model_places;
pub mod reported_notes;
pub mod rule_files;
pub mod sections;
pub mod servers;
pub mod tree;
pub mod trust;
pub mod views;
pub(crate) mod workspace;

use agent_files::AgentFiles;
use hooks::Hooks;
use layers::{
    Layer, LayerKind, Layers, ResolvedSettings,
    environment::Environment,
    folders::{self, Folders},
    request::ConfigRequest,
};
use rule_files::RuleFiles;
use sections::{
    AuditSettings, Limits, OutputSettings, SandboxSettings, ServerSettings,
    agent::{self, AgentSettings},
    database::DatabaseSettings,
    models::{self, ConfiguredModels, NoSuchModel},
    policy,
    profiles::{self, NoSuchProfile, Profile},
    section,
    services::{self, NetworkToolSettings},
    tool_block, tool_choice, tool_search,
};
use servers::{
    foreign_servers,
    mcp_server::{self, ConfiguredServer, FoundServer},
    server_times,
};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use toolstead_application::{CallSettings, ToolTimeouts, tool_deferral::SEARCH_TOOLS};
use toolstead_domain::{
    Dialect, Mode, PatternBase, PermissionPolicy, PermissionRule, RuleStore, SandboxLimits, ServerName, ToolSelection,
    WorkspaceRoots, permission::decision::in_shell, workspace_roots::lexical,
};
use toolstead_infrastructure::{
    builtin::files::file_limits::FileLimits,
    dialects,
    models::{EmbeddingsSettings, ModelSettings},
};
use tree::{
    check::{Base, check},
    format::Format,
    origin::Origin,
    problem::{ConfigError, Problem},
    source_file::{self, SourceFile},
    value::{TextItem, Value},
};
use trust::{
    TrustedFiles,
    programs::{self, ProgramDigests},
};
use views::{ConfiguredView, NoSuchView};

/// Folder of the administrator's configuration.
pub const ADMINISTRATOR_FOLDER: &str = "/etc/toolstead";

/// The complete configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// Environment that the configuration was loaded with. Child processes of the application derive theirs from it.
    pub environment: Environment,
    /// Folders of the workspace, with symbolic links resolved.
    pub roots: WorkspaceRoots,
    /// Permission mode: decides calls that no rule matches.
    pub mode: Mode,
    /// Maximum time to wait for an approval.
    pub approval_timeout: Duration,
    /// All permission rules.
    pub rules: Vec<Arc<PermissionRule>>,
    /// Selection of the tools that are offered.
    pub selection: ToolSelection,
    /// Tool system whose names and wording the tools use; `None`: Toolstead's own.
    pub dialect: Option<Dialect>,
    /// `true` if results are wrapped in tags, for dialects that define such tags.
    pub answers_in_tags: bool,
    /// MCP servers, sorted by name, including disabled and unavailable ones.
    pub mcp_servers: Vec<ConfiguredServer>,
    /// Servers from files that the user does not trust yet.
    pub found_servers: Vec<FoundServer>,
    /// The hooks.
    pub hooks: Hooks,
    /// The language models.
    pub models: ConfiguredModels,
    /// Model to use if the caller names none.
    pub default_model: Option<String>,
    /// Profiles, sorted by name.
    pub profiles: Vec<Profile>,
    /// Views, sorted by name.
    pub views: Vec<ConfiguredView>,
    /// Settings that apply to every run of an agent.
    pub agent: AgentSettings,
    /// Embeddings that rank tools; `None`: words rank them.
    pub embeddings: Option<EmbeddingsSettings>,
    /// Outbound network access, and the services that tools use.
    pub outside: NetworkToolSettings,
    /// `true` if the event of a completed call includes its input and result.
    pub tool_call_details: bool,
    /// Confinement of commands.
    pub sandbox: SandboxSettings,
    /// Limits of calls and commands.
    pub limits: Limits,
    /// Limits of the file tools.
    pub file_limits: FileLimits,
    /// Location of the stores.
    pub database: DatabaseSettings,
    /// Settings of the audit log.
    pub audit: AuditSettings,
    /// Retention of large outputs and of replaced files.
    pub outputs: OutputSettings,
    /// Addresses and limits of the server.
    pub server: ServerSettings,
    /// Folders that Toolstead uses.
    pub folders: Folders,
    /// Configuration files that were read.
    pub files: Vec<ConfigFile>,
    /// Files that hooks and servers run. No confined process may change them.
    pub sealed: Vec<PathBuf>,
    /// Every value with its origins.
    pub resolved: ResolvedSettings,
    /// Remarks to report that are not errors.
    pub notes: Vec<Problem>,
    /// Every name used in a selection of tools.
    selected: Vec<TextItem>,
    tool_timeouts: BTreeMap<String, Duration>,
}

/// A configuration file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    /// Absolute path. For a file of a project, the path within the project; for any other file, the path with symbolic
    /// links resolved.
    pub path: Arc<Path>,
    /// Layer that the file belongs to.
    pub kind: LayerKind,
    /// Trust state, which decides whether the whole file takes effect.
    pub trust: Trust,
    /// Target that was read instead, if the path is a symbolic link in a project or is behind one.
    pub leads_to: Option<PathBuf>,
    text: String,
}

/// Trust state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// No trust is needed: the file belongs to the administrator or the user, or was named with `--config`.
    Always,
    /// The user trusted this content.
    Given,
    /// The user has not trusted this content yet.
    Waiting,
    /// The file cannot be trusted: it is a symbolic link in a project, or is behind one. Trust in the target does not
    /// extend to other paths.
    Linked,
}

impl Trust {
    /// Returns `true` if the whole file takes effect.
    pub fn takes_effect(self) -> bool {
        matches!(self, Self::Always | Self::Given)
    }
}

impl Config {
    /// Loads the configuration, and records the digests of server programs that it names for the first time.
    ///
    /// # Errors
    /// [`ConfigError`] with every problem in any file, variable or flag.
    pub fn load(request: &ConfigRequest) -> Result<Self, ConfigError> {
        let (mut config, trusted) = Self::load_with(request, |_| {})?;
        config.notes.extend(programs::note_named(&config.mcp_servers, &config.folders, &trusted).err());
        Ok(config)
    }

    /// Loads the configuration as it would be if this file were trusted. Stores nothing.
    ///
    /// # Errors
    /// The errors of [`load`](Self::load).
    pub fn preview_trust(request: &ConfigRequest, file: &ConfigFile) -> Result<Self, ConfigError> {
        Ok(Self::load_with(request, |trusted| trusted.trust(&file.path, &file.text))?.0)
    }

    /// Loads the configuration after applying `change` to the list of trusted files. Also returns that list.
    fn load_with(
        request: &ConfigRequest,
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
        mut resolved: ResolvedSettings,
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
        let surroundings = hooks::HookInputs { folders: &folders, environment, roots: &roots, trusted };
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
        let surroundings = models::ModelInputs {
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
        let (views, chosen_by_views) = views::views(&mut resolved, &folders, &mut problems, &mut notes);
        selected.extend(chosen_by_views);
        views::check_profiles(&profiles, &views, &mut problems);
        let agent = agent::agent(&resolved, &models, &mut problems);
        let embeddings = tool_search::embeddings(&resolved, environment, &mut problems, &mut notes);
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
        roots.forbidden.extend(tool_search::key_file(&resolved));
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
            views,
            agent,
            embeddings,
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
        notes.extend(config.agent_files().notes());
        config.notes = notes;
        Ok(config)
    }

    /// Returns the agents, skills and commands that users defined in files and that may be used.
    pub fn agent_files(&self) -> AgentFiles {
        let is_alone = self.files.iter().any(|file| file.kind == LayerKind::Chosen);
        AgentFiles::of(&self.folders, &self.roots, is_alone)
    }

    /// Returns the folder that stored data such as outputs and undo records belongs to: the first root, or the start
    /// folder if there is no root.
    pub fn workspace(&self) -> &Path {
        self.roots.start().unwrap_or(&self.folders.start)
    }

    /// Returns `true` if a file that was read defines an MCP server with this name, even if the server is disabled or
    /// not trusted yet.
    pub fn names_server(&self, name: &str) -> bool {
        self.mcp_servers.iter().any(|server| server.name.as_str() == name)
            || self.found_servers.iter().any(|server| server.name.as_str() == name)
    }

    /// Returns the model with this name, or the default model if `name` is `None`.
    ///
    /// # Errors
    /// [`NoSuchModel`] if no model is configured, no default is set, or the name is unknown.
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

    /// Returns the profile with this name.
    ///
    /// # Errors
    /// [`NoSuchProfile`], with the nearest name.
    pub fn profile(&self, name: &str) -> Result<&Profile, NoSuchProfile> {
        profiles::named(&self.profiles, name)
    }

    /// Returns the view with this name.
    ///
    /// # Errors
    /// [`NoSuchView`], with the nearest name.
    pub fn view(&self, name: &str) -> Result<&ConfiguredView, NoSuchView> {
        let found = self.views.iter().find(|view| view.name == name);
        found.ok_or_else(|| NoSuchView::new(name, self.views.iter().map(|view| view.name.as_str())))
    }

    /// Returns every rule: those of the policy, and those of views.
    fn every_rule(&self) -> impl Iterator<Item = &Arc<PermissionRule>> {
        self.rules.iter().chain(self.views.iter().flat_map(|view| &view.rules))
    }

    /// Returns the path of the user's own configuration file.
    fn user_file(&self) -> String {
        let folder = self.folders.config.as_ref().map(|folder| folder.join("config.toml"));
        folder.map_or("a configuration file".into(), |file| file.display().to_string())
    }

    /// Returns the policy that decides every call.
    pub fn policy(&self) -> PermissionPolicy {
        PermissionPolicy {
            rules: self.rules.clone(),
            waiting: policy::waiting_rules(&self.folders, &self.resolved),
            mode: self.mode,
            roots: self.roots.clone(),
            // The tools that search and call others grant nothing by themselves.
            selection: self.selection.clone().with_tools_beside_patterns(&SEARCH_TOOLS),
            within: None,
        }
    }

    /// Returns the base for the rules of an embedding application: relative paths start in the start folder.
    pub fn pattern_base(&self) -> PatternBase {
        Base { folder: &self.folders.start, home: self.folders.home.as_deref() }.patterns()
    }

    /// Describes, for each file, the permission settings that wait for trust, and the command that trusts the file.
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
        let describe = |(path, (rules, others)): (Arc<Path>, (usize, usize))| {
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
        files.into_iter().map(describe).collect()
    }

    /// Returns the store for rules that the user approved.
    pub fn rule_store(&self) -> Arc<dyn RuleStore> {
        Arc::new(RuleFiles::of(&self.folders, &self.files))
    }

    /// Returns the limits that apply to every call.
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
            tagged_results: self.answers_in_tags,
            ..CallSettings::default()
        }
    }

    /// Returns the limits of a command. They contain no timeout: a foreground command ends with its call, and a
    /// background command has no time limit.
    pub fn sandbox_limits(&self) -> SandboxLimits {
        SandboxLimits {
            timeout: None,
            memory_bytes: self.limits.memory_bytes,
            processes: self.limits.processes,
            file_bytes: self.limits.file_bytes,
        }
    }

    /// Returns the longest time that any enabled server may take to list its tools.
    pub fn connect_timeout(&self) -> Duration {
        let enabled = self.mcp_servers.iter().filter(|server| !server.disabled);
        enabled.map(|server| server.connect_timeout).max().unwrap_or_default()
    }

    /// Trusts a file with the content that this configuration read, or revokes the trust.
    ///
    /// # Errors
    /// A [`Problem`] if the list of trusted files cannot be written.
    pub fn set_trust(&self, file: &ConfigFile, trusted: bool) -> Result<(), Problem> {
        match trusted {
            true => trust::set_with_gates(&self.folders, &file.path, &file.text, self.hooks.hold_gate(&file.path)),
            false => trust::set(&self.folders, &file.path, None),
        }
    }

    /// Trusts the content that these server programs had when their digests were computed.
    ///
    /// # Errors
    /// A [`Problem`] if the list of trusted files cannot be written.
    pub fn trust_programs(&self, programs: &ProgramDigests) -> Result<(), Problem> {
        programs.trust(&self.folders)
    }

    /// Revokes the trust in the file at this path, which need not exist anymore. Returns `true` if it was trusted.
    ///
    /// # Errors
    /// A [`Problem`] if the list of trusted files cannot be written.
    pub fn forget_trust(&self, path: &Path) -> Result<bool, Problem> {
        if let Ok(root) = path.canonicalize()
            && TrustedFiles::load(&self.folders).0.is_root(&root)
        {
            return trust::set_root(&self.folders, &root, false).map(|()| true);
        }
        // The path may by now be a symbolic link to another file, so only its folder is resolved.
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
    /// Denies every tool and command access to a file. Otherwise a call could write there, and its text would be
    /// reported as output of Toolstead itself.
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

    /// Returns the problem to report for a symbolic link in a project.
    fn linked(&self) -> Option<Problem> {
        let target = self.leads_to.as_ref()?.display();
        let message = format!(
            "is a link, or is below one, to {target}: trust in that file does not extend to this project, and only \
             its stricter settings apply. Put a copy of the file here, or name the target with `--config`"
        );
        Some(Problem::new(Origin::file(self.path.clone()), message))
    }
}

/// Returns `true` if a file takes effect only with content that the user trusted. That applies to every file of a
/// project, and to an imported file that did not exist when the user's own configuration first named it.
fn needs_trust(kind: LayerKind, path: &Path, trusted: &TrustedFiles) -> bool {
    kind.is_of_project() || trusted.was_missing(path)
}

/// Returns `true` if the whole file takes effect.
fn is_trusted(file: &SourceFile, trusted: &TrustedFiles) -> bool {
    let is_content_trusted = || trusted.trusts(&file.path, &file.text);
    file.leads_to.is_none() && (!needs_trust(file.kind, &file.path, trusted) || is_content_trusted())
}

/// Reads the file of `--config`.
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
