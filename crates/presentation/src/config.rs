//! The configuration: files, environment variables and flags, merged into one value.
//!
//! Every key is defined in [`tree::schema`]. A file is parsed into a tree, checked as a whole, and becomes a layer. The
//! layers are merged key by key, and each value records its origin. An untrusted project file may only tighten
//! settings; once the user trusts it, all of it takes effect. No other part of the program reads the environment.

pub mod address_and_key_origins;
pub mod agent_files;
mod config_file;
pub mod hooks;
mod imports;
pub mod layers;
pub mod reported_notes;
pub mod rule_files;
pub mod sections;
pub mod servers;
mod sources;
pub mod tree;
pub mod trust;
pub mod views;
pub(crate) mod workspace;

pub use config_file::{ConfigFile, FileTrust};

use agent_files::DefinitionFileCatalogue;
use hooks::ConfiguredHooks;
use layers::{
    LayerKind, ResolvedSettings,
    environment::EnvironmentVariables,
    folders::{self, StandardFolders},
    request::ConfigRequest,
};
use rule_files::RuleFileStore;
use sections::{
    AuditSettings, HttpServerSettings, LimitSettings, OutputStoreSettings, SandboxSettings,
    agent::AgentSettings,
    agent_sections::{AgentSectionInputs, AgentSections},
    call_sections::{CallDecisionSections, CallSectionInputs},
    database::DatabaseSettings,
    models::{ConfiguredModels, ModelSelectionError},
    permission_settings::PermissionSettings,
    policy,
    profiles::{self, AgentProfile, NoSuchProfile},
    section,
    services::{self, NetworkToolSettings},
    tool_search,
    tool_settings::ToolOfferSettings,
};
use servers::{mcp_server::ConfiguredServer, untrusted_server::UntrustedServer};
use sources::MergedSources;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use toolstead_application::{CallSettings, ToolTimeouts, tool_deferral::SEARCH_TOOLS};
use toolstead_domain::{
    PatternContext, PermissionPolicy, PermissionRule, RuleStore, SandboxLimits, WorkspaceRoots,
    workspace_roots::lexical,
};
use toolstead_infrastructure::{builtin::files::file_limits::FileLimits, models::ModelSettings};
use tree::{
    check::PathBase,
    problem::{ConfigError, Problem},
};
use trust::programs;
use views::{ConfiguredView, NoSuchView};

/// Folder of the administrator's configuration.
pub const ADMINISTRATOR_FOLDER: &str = "/etc/toolstead";

/// The complete configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// Environment that the configuration was loaded with. Child processes of the application derive theirs from it.
    pub environment: EnvironmentVariables,
    /// Folders of the workspace, with symbolic links resolved.
    pub roots: WorkspaceRoots,
    /// Rules and mode that decide calls.
    pub permissions: PermissionSettings,
    /// Tools that are offered, and the form in which they appear.
    pub tools: ToolOfferSettings,
    /// MCP servers, sorted by name, including disabled and unavailable ones.
    pub mcp_servers: Vec<ConfiguredServer>,
    /// Servers from files that the user does not trust yet.
    pub untrusted_servers: Vec<UntrustedServer>,
    /// The hooks.
    pub hooks: ConfiguredHooks,
    /// The language models.
    pub models: ConfiguredModels,
    /// Profiles, sorted by name.
    pub profiles: Vec<AgentProfile>,
    /// Views, sorted by name.
    pub views: Vec<ConfiguredView>,
    /// Settings that apply to every run of an agent.
    pub agent: AgentSettings,
    /// Outbound network access, and the services that tools use.
    pub outside: NetworkToolSettings,
    /// `true` if the event of a completed call includes its input and result.
    pub tool_call_details: bool,
    /// Confinement of commands.
    pub sandbox: SandboxSettings,
    /// Limits of calls and commands.
    pub limits: LimitSettings,
    /// Limits of the file tools.
    pub file_limits: FileLimits,
    /// Database of the audit log, outputs and other stored data.
    pub database: DatabaseSettings,
    /// Settings of the audit log.
    pub audit: AuditSettings,
    /// Retention of large outputs and of replaced files.
    pub outputs: OutputStoreSettings,
    /// Addresses and limits of the server.
    pub server: HttpServerSettings,
    /// Folders that Toolstead uses.
    pub folders: StandardFolders,
    /// Configuration files that were read.
    pub files: Vec<ConfigFile>,
    /// Files that hooks and servers run. No confined process may change them.
    pub sealed: Vec<PathBuf>,
    /// Every value with its origins.
    pub resolved: ResolvedSettings,
    /// Remarks to report that are not errors.
    pub notes: Vec<Problem>,
}

impl Config {
    /// Loads the configuration, and records the digests of server programs that it names for the first time.
    ///
    /// # Errors
    /// [`ConfigError`] with every problem in any file, variable or flag.
    pub fn load(request: &ConfigRequest) -> Result<Self, ConfigError> {
        let sources = MergedSources::read(request, |_| {})?;
        let trusted = sources.trusted.clone();
        let mut config = Self::of(sources, &request.environment)?;
        config.notes.extend(programs::note_named(&config.mcp_servers, &config.folders, &trusted).err());
        Ok(config)
    }

    /// Loads the configuration as it would be if this file were trusted. Stores nothing.
    ///
    /// # Errors
    /// The errors of [`load`](Self::load).
    pub fn preview_trust(request: &ConfigRequest, file: &ConfigFile) -> Result<Self, ConfigError> {
        let sources = MergedSources::read(request, |trusted| trusted.trust(&file.path, &file.text))?;
        Self::of(sources, &request.environment)
    }

    fn of(sources: MergedSources, environment: &EnvironmentVariables) -> Result<Self, ConfigError> {
        let MergedSources { mut resolved, folders, mut files, named, trusted, mut notes } = sources;
        let mut problems = Vec::new();
        let inputs = CallSectionInputs { folders: &folders, environment, trusted: &trusted };
        let calls = CallDecisionSections::of(&mut resolved, &inputs, &mut files, &mut problems, &mut notes);
        let CallDecisionSections { mut roots, permissions, hooks, servers, sealed } = calls;
        let inputs = AgentSectionInputs { folders: &folders, environment, roots: &roots, servers: &servers.all };
        let agents = AgentSections::of(&mut resolved, &inputs, &mut problems, &mut notes);
        let tools = ToolOfferSettings::of(&mut resolved, environment, agents.selected, &mut problems, &mut notes);
        let outside = services::outside(&resolved, environment, &mut problems, &mut notes);
        let server: HttpServerSettings = section(&resolved, "server")?;
        let database = workspace::database(&resolved, &folders, &mut problems, &mut notes);
        let secrets = [server.token_file.as_deref(), outside.key_file.as_deref()];
        roots.forbidden = workspace::forbidden(&folders, &files, database.as_ref(), secrets, &servers.all);
        roots.forbidden.extend(imports::files(&resolved, named).into_iter().chain(tool_search::key_file(&resolved)));
        let Some(database) = database.filter(|_| problems.is_empty()) else { return Err(ConfigError { problems }) };
        let config = Self {
            environment: environment.clone(),
            roots,
            permissions,
            tools,
            mcp_servers: servers.all,
            untrusted_servers: servers.untrusted,
            hooks,
            models: agents.models,
            profiles: agents.profiles,
            views: agents.views,
            agent: agents.agent,
            outside,
            tool_call_details: resolved.is_true("events.tool_call_details"),
            sandbox: section(&resolved, "sandbox")?,
            limits: LimitSettings::of(&resolved, &mut notes)?,
            file_limits: section(&resolved, "files")?,
            database,
            audit: section(&resolved, "audit")?,
            outputs: OutputStoreSettings::of(&resolved, &mut notes)?,
            server,
            folders,
            files,
            sealed,
            resolved,
            notes,
        };
        Ok(config.with_final_notes())
    }

    /// Adds the remarks on the configuration as a whole.
    fn with_final_notes(mut self) -> Self {
        let mut notes = std::mem::take(&mut self.notes);
        policy::absent_servers(&self, &mut notes);
        policy::idle_choices(&self, &mut notes);
        policy::wide_rules(&self, &mut notes);
        policy::rules_of_tools_only(&self, &mut notes);
        notes.extend(self.agent_files().notes());
        self.notes = notes;
        self
    }

    /// Returns the agents, skills and commands that users defined in files and that may be used.
    pub fn agent_files(&self) -> DefinitionFileCatalogue {
        let is_alone = self.files.iter().any(|file| file.kind == LayerKind::Chosen);
        DefinitionFileCatalogue::of(&self.folders, &self.roots, is_alone)
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
            || self.untrusted_servers.iter().any(|server| server.name.as_str() == name)
    }

    /// Returns the model with this name, or the default model if `name` is `None`.
    ///
    /// # Errors
    /// [`ModelSelectionError`] if no model is configured, no default is set, or the name is unknown.
    pub fn model(&self, name: Option<&str>) -> Result<&ModelSettings, ModelSelectionError> {
        let names: Vec<&str> = self.models.names().collect();
        if names.is_empty() {
            return Err(ModelSelectionError::NoneConfigured { file: self.user_file() });
        }
        match name.or(self.models.default.as_deref()) {
            Some(name) => self.models.named(name),
            None => Err(ModelSelectionError::NoneChosen { names: names.join(", ") }),
        }
    }

    /// Returns the profile with this name.
    ///
    /// # Errors
    /// [`NoSuchProfile`], with the nearest name.
    pub fn profile(&self, name: &str) -> Result<&AgentProfile, NoSuchProfile> {
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
        self.permissions.rules.iter().chain(self.views.iter().flat_map(|view| &view.rules))
    }

    /// Returns the path of the user's own configuration file, for a message; the words `a configuration file` if its
    /// folder is unknown.
    fn user_file(&self) -> String {
        let folder = self.folders.config.as_ref().map(|folder| folder.join("config.toml"));
        folder.map_or("a configuration file".into(), |file| file.display().to_string())
    }

    /// Returns the policy that decides every call.
    pub fn policy(&self) -> PermissionPolicy {
        PermissionPolicy {
            rules: self.permissions.rules.clone(),
            waiting: policy::waiting_rules(&self.folders, &self.resolved),
            mode: self.permissions.mode,
            roots: self.roots.clone(),
            // The tools that search and call others grant nothing by themselves.
            selection: self.tools.selection.clone().with_tools_beside_patterns(&SEARCH_TOOLS),
            within: None,
        }
    }

    /// Returns the base for the rules of an embedding application: relative paths start in the start folder.
    pub fn pattern_base(&self) -> PatternContext {
        PathBase { folder: &self.folders.start, home: self.folders.home.as_deref() }.patterns()
    }

    /// Returns the store for rules that the user approved.
    pub fn rule_store(&self) -> Arc<dyn RuleStore> {
        Arc::new(RuleFileStore::of(&self.folders, &self.files))
    }

    /// Returns the limits that apply to every call.
    pub fn call_settings(&self) -> CallSettings {
        let servers = self.mcp_servers.iter().filter_map(|server| Some((server.name.clone(), server.timeout?)));
        CallSettings {
            default_timeout: Duration::from_secs(self.limits.timeout_seconds),
            max_timeout: Duration::from_secs(self.limits.max_timeout_seconds),
            approval_timeout: self.permissions.approval_timeout,
            timeouts: ToolTimeouts { by_tool: self.tools.timeouts.clone(), by_server: servers.collect() },
            output_characters: self.limits.output_bytes,
            media_bytes: self.limits.media_bytes,
            stored_output_bytes: self.outputs.max_bytes,
            arguments: self.audit.arguments(),
            tells_details: self.tool_call_details,
            tagged_results: self.tools.answers_in_tags,
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

    /// Returns the longest time that any enabled server may take to start and list its tools; 0 if there is none.
    pub fn connect_timeout(&self) -> Duration {
        let enabled = self.mcp_servers.iter().filter(|server| !server.disabled);
        enabled.map(|server| server.connect_timeout).max().unwrap_or_default()
    }

    /// Denies every tool and command access to a file. Otherwise a call could write there, and its text would be
    /// reported as output of Toolstead itself.
    pub fn keep_from_tools(&mut self, file: &Path) {
        let named = lexical(&self.folders.start, file);
        self.roots.forbidden.extend([folders::real(&named), named]);
    }
}
