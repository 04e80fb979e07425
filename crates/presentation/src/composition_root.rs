//! Builds a running application from a configuration. No other module names both a port and its adapter.
//!
//! Both binaries, the tests and embedding applications use this module:
//! ```no_run
//! # async fn embed(config: toolstead_presentation::config::Config) -> Result<(), Box<dyn std::error::Error>> {
//! use toolstead_presentation::app::App;
//!
//! let composition = App::builder(config).build().await?;
//! let tools = composition.app.list_tools.handle(&Default::default())?;
//! composition.close().await;
//! # Ok(())
//! # }
//! ```

mod accounts;
mod command_settings;
mod hooks;
mod models;
mod orchestration;
pub mod program_tools;
mod reports;
mod stores;
mod upstream;

use accounts::accounts;
pub use accounts::{accounts_alone, upstream_accounts_alone};
pub use orchestration::orchestration;
use orchestration::orchestration_of;
pub use stores::open_audit_log_read_only;

use crate::{
    agent_parts::{AgentDefaults, AgentParts},
    app::{App, AppParts},
    config::{
        Config,
        agent_files::AgentFiles,
        hooks::{
            choosing::{check_choices, check_filter_parameters},
            gates::check_gates,
        },
        sections::{
            policy::{check_parameters, check_tool_names},
            services::NetworkToolSettings,
        },
        tree::problem::ConfigError,
        views::check_overlays,
        workspace::make_folders_beside,
    },
    cores::RuntimePool,
    event_file::{EventFile, EventTarget},
    mcp_server::elicitation_approver::ElicitationApprover,
    surroundings::{InstructionFiles, WorkspaceSurroundings},
};
use command_settings::{browser_settings, command_settings};
use program_tools::{InProcessProviderFactory, ProgramTools};
use serde_json::{Map, Value};
use std::{pin::Pin, sync::Arc, time::Duration};
use stores::OpenStores;
use toolstead_application::{
    BoundedApprover, ContextRegistryError, EventBus, ExecuteToolPorts, RegistryError, RuledApprover,
};
use toolstead_domain::{
    AgentHook, ApprovalRule, Approver, ChangeJournal, Clock, ContextProvider, ConversationStore, DefaultSuggestions,
    ExecutionLog, ModelProvider, NoConversations, NoJournal, NoOutputs, OutputStore, Principal, ProviderState,
    QuestionStore, RuleStore, ServerName, StoreError, Stores, SuggestionFormatter, TodoStore, Tool, ToolFailure,
    ToolHook, ToolProvider, ToolRepository, WebSearch, context,
};
use toolstead_infrastructure::{
    browser::browsers::{Browsers, CheckedBrowser},
    builtin::{
        self,
        built_in_tool::AnyTool,
        commands::{programs::Programs, tasks::Tasks},
        context::{BuiltInContext, InvalidBuiltInContext},
        into_tool::IntoTool,
        provider::{InProcessTools, InvalidInProcessTools},
        tool_environment::ToolEnvironment,
        tool_group::ToolGroup,
    },
    egress::connector::{Network, SystemNetwork},
    hooks::command_hooks::CommandHooks,
    mcp::client::{Upstream, config::UpstreamConfig, connection::question_kind::Clients},
    models::InvalidModel,
    sandbox::{
        detached::DetachedTasks,
        helper::Helpers,
        schema_validation::HelperSchemaValidator,
        workspace::{FolderNames, OpenWorkspaceError, Workspace},
    },
    sqlite::OpenError,
    system_clock::SystemClock,
    web::{address::InvalidAddress, web_client::WebClient},
};

/// Time that running calls have to finish when a short-lived process ends.
const DRAIN: Duration = Duration::from_millis(500);

/// Selection of the configured MCP servers to start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Servers {
    /// All servers that are not disabled.
    #[default]
    All,
    /// The server with this name only.
    Only(String),
    /// No server.
    None,
}

/// Lifetime of tasks in sessions that continue in other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionLifetime {
    /// The process ends with its call, so it starts no tasks.
    EndsWithCall,
    /// The process outlives the call to run its detached tasks, until [`RunningApp::wait_for_tasks`] returns.
    OutlivesCall,
    /// The process holds a conversation that another process may resume. Tasks end with the process, and the read-state
    /// of files is stored for later.
    EndsWithConversation,
}

/// Clients that will call the application.
enum ExpectedClients {
    /// Any number of clients, with the capabilities that they may have.
    Any(Map<String, Value>),
    /// A single client, with the capabilities that it declares.
    One(Pin<Box<dyn Future<Output = Map<String, Value>> + Send>>),
}

impl ExpectedClients {
    async fn resolve(self) -> Clients {
        match self {
            Self::Any(capabilities) => Clients::Any(capabilities),
            Self::One(capabilities) => Clients::One(capabilities.await),
        }
    }
}

/// Builds an application. Every part has a default and can be replaced.
pub struct AppBuilder {
    /// Boxed because it is several kilobytes, which every future that builds an application would otherwise contain.
    config: Box<Config>,
    servers: Servers,
    providers: Vec<Arc<dyn ToolProvider>>,
    context_providers: Vec<Arc<dyn ContextProvider>>,
    upstreams: Vec<UpstreamConfig>,
    tools: Vec<Arc<dyn AnyTool>>,
    in_process: Vec<ToolGroup>,
    program_name: ServerName,
    hooks: Vec<Arc<dyn ToolHook>>,
    models: Vec<Arc<dyn ModelProvider>>,
    agent_hooks: Vec<Arc<dyn AgentHook>>,
    approver: Option<Arc<dyn Approver>>,
    approval_rules: Vec<Arc<dyn ApprovalRule>>,
    suggestions: Arc<dyn SuggestionFormatter>,
    rule_store: Option<Arc<dyn RuleStore>>,
    tool_repository: Option<Arc<dyn ToolRepository>>,
    execution_log: Option<Arc<dyn ExecutionLog>>,
    output_store: Option<Arc<dyn OutputStore>>,
    change_journal: Option<Arc<dyn ChangeJournal>>,
    conversations: Option<Arc<dyn ConversationStore>>,
    todos: Option<Arc<dyn TodoStore>>,
    questions: Option<Arc<dyn QuestionStore>>,
    session_lifetime: Option<SessionLifetime>,
    clients: ExpectedClients,
    starts_when_used: bool,
    cores: Option<RuntimePool>,
    network: Arc<dyn Network>,
    web_search: Option<Arc<dyn WebSearch>>,
}

/// A running application with everything that must be closed.
#[derive(Debug)]
pub struct RunningApp {
    /// The use cases.
    pub app: App,
    /// Started MCP servers, for their status. Providers added by an embedding application are only in the registry.
    pub servers: Vec<Arc<Upstream>>,
    /// Configuration that the application was built from.
    pub config: Box<Config>,
    /// Tools of the embedding application, which it can change at run time.
    pub tools: Arc<ProgramTools>,
    /// Configured hooks, without those added by an embedding application.
    pub hooks: Option<Arc<CommandHooks>>,
    /// Questions that wait for an answer.
    pub questions: WaitingQuestions,
    /// Agents, skills and commands defined in files.
    pub agent_files: Arc<AgentFiles>,
    /// Instruction files of the user and of the workspace.
    pub instruction_files: Arc<InstructionFiles>,
    browsers: Arc<Browsers>,
    workspace: Arc<Workspace>,
    tasks: Arc<Tasks>,
    event_file: Option<EventFile>,
    stores: Option<OpenStores>,
}

/// Store of the questions that wait for an answer; `None`: none are stored.
#[derive(Clone)]
pub struct WaitingQuestions(pub Option<Arc<dyn QuestionStore>>);

impl std::fmt::Debug for WaitingQuestions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WaitingQuestions").field(&self.0.is_some()).finish()
    }
}

/// Error of building an application.
#[derive(Debug, thiserror::Error)]
pub enum StartupError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A root cannot be used.
    #[error("a root of the workspace cannot be used")]
    Workspace(#[from] OpenWorkspaceError),
    /// The database cannot be opened.
    #[error(transparent)]
    Database(#[from] OpenError),
    /// An added tool cannot be used.
    #[error("a tool cannot be used")]
    Tools(#[from] InvalidInProcessTools),
    /// A provider cannot be registered.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A provider of resources and prompts cannot be registered.
    #[error(transparent)]
    ContextRegistry(#[from] ContextRegistryError),
    /// The proxy cannot be used.
    #[error("`[web] proxy` cannot be used")]
    Proxy(#[from] InvalidAddress),
    /// The built-in resources and prompts cannot be used.
    #[error(transparent)]
    Context(#[from] InvalidBuiltInContext),
    /// The embeddings that rank tools cannot be used.
    #[error("`[tools.search] embeddings` cannot be used")]
    Embeddings(#[from] InvalidModel),
    /// A store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Child processes cannot be started.
    #[error("the launcher of child processes cannot be started")]
    Launcher(#[source] std::io::Error),
    /// A required server is unavailable.
    #[error("the MCP server `{server}` is required and is {state}")]
    RequiredServer {
        /// Name of the server.
        server: ServerName,
        /// State of the server.
        state: String,
    },
}

impl StartupError {
    /// Returns `true` if the user can correct the error by changing the configuration or the command line.
    pub fn is_user_error(&self) -> bool {
        match self {
            Self::Config(_)
            | Self::Workspace(_)
            | Self::Tools(_)
            | Self::Proxy(_)
            | Self::Embeddings(_)
            | Self::ContextRegistry(_)
            | Self::RequiredServer { .. } => true,
            Self::Registry(error) => !matches!(error, RegistryError::Store(_)),
            Self::Context(_) | Self::Database(_) | Self::Store(_) | Self::Launcher(_) => false,
        }
    }
}

impl App {
    /// Returns a builder of an application with this configuration, and with the environment that it was loaded with.
    pub fn builder(config: Config) -> AppBuilder {
        AppBuilder {
            config: Box::new(config),
            servers: Servers::All,
            providers: Vec::new(),
            context_providers: Vec::new(),
            upstreams: Vec::new(),
            tools: Vec::new(),
            in_process: Vec::new(),
            program_name: ServerName::program(),
            hooks: Vec::new(),
            models: Vec::new(),
            agent_hooks: Vec::new(),
            approver: None,
            approval_rules: Vec::new(),
            suggestions: Arc::new(DefaultSuggestions),
            rule_store: None,
            tool_repository: None,
            execution_log: None,
            output_store: None,
            change_journal: None,
            conversations: None,
            todos: None,
            questions: None,
            session_lifetime: None,
            clients: ExpectedClients::Any(Map::new()),
            starts_when_used: false,
            cores: None,
            network: Arc::new(SystemNetwork::default()),
            web_search: None,
        }
    }
}

impl std::fmt::Debug for AppBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AppBuilder").field("servers", &self.servers).finish_non_exhaustive()
    }
}

impl AppBuilder {
    /// Adds a provider. Its name must be unused. Rules refer to its tools by the names that the provider assigns.
    #[must_use]
    pub fn provider(mut self, provider: Arc<dyn ToolProvider>) -> Self {
        self.providers.push(provider);
        self
    }

    /// Adds a provider of resources and prompts. Its name and the names of everything that it offers must be unused.
    /// Rules refer to its requests as `Resource(NAME:URI)` and `Prompt(NAME:PROMPT)`.
    #[must_use]
    pub fn context_provider(mut self, provider: Arc<dyn ContextProvider>) -> Self {
        self.context_providers.push(provider);
        self
    }

    /// Adds an MCP server, such as one in this process. Its tools, resources and prompts are like those of a configured
    /// server: they need approval unless a rule allows them. No configured server and no provider may have its name.
    ///
    /// ```no_run
    /// use toolstead_infrastructure::mcp::client::config::UpstreamConfig;
    /// use toolstead_presentation::{app::App, config::Config};
    ///
    /// # async fn build(config: Config, server: UpstreamConfig) -> Result<(), Box<dyn std::error::Error>> {
    /// let composition = App::builder(config).upstream(server).build().await?;
    /// # composition.close().await;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn upstream(mut self, server: UpstreamConfig) -> Self {
        self.upstreams.push(server);
        self
    }

    /// Sets the name of the embedding application. Rules, lists and the audit log refer to the tools that it adds as
    /// `embedded:NAME`. The default name is `program`. No provider and no configured server may have the same name.
    #[must_use]
    pub fn program_name(mut self, name: ServerName) -> Self {
        self.program_name = name;
        self
    }

    /// Adds a tool beside the built-in ones, under its own name. Permissions depend on the accesses that it reports;
    /// its annotations grant nothing.
    #[must_use]
    pub fn tool<F>(mut self, tool: impl IntoTool<F>) -> Self {
        self.tools.push(Arc::new(tool.into_tool()));
        self
    }

    /// Adds a server within this process. Its tools are named `mcp__{server}__{tool}`. No other server and no provider
    /// may have its name.
    #[must_use]
    pub fn tool_group(mut self, server: ToolGroup) -> Self {
        self.in_process.push(server);
        self
    }

    /// Adds a hook; hooks run in the order in which they were added.
    #[must_use]
    pub fn hook(mut self, hook: Arc<dyn ToolHook>) -> Self {
        self.hooks.push(hook);
        self
    }

    /// Adds a model for agents. It takes precedence over a configured model of the same name. The first added model is
    /// the default if the configuration names none.
    #[must_use]
    pub fn model(mut self, model: Arc<dyn ModelProvider>) -> Self {
        self.models.push(model);
        self
    }

    /// Adds a hook of agents; hooks run in the order in which they were added, before the configured ones.
    #[must_use]
    pub fn agent_hook(mut self, hook: Arc<dyn AgentHook>) -> Self {
        self.agent_hooks.push(hook);
        self
    }

    /// Replaces the default approver, which asks the MCP client of the call by elicitation. An answer after
    /// `[permissions] approval_timeout` and a panic both refuse the call.
    #[must_use]
    pub fn approver(self, approver: Arc<dyn Approver>) -> Self {
        self.approver_with_own_timeout(Arc::new(BoundedApprover::new(approver)))
    }

    /// Replaces the approver by one that limits its time itself, from the moment at which the user sees the question.
    #[must_use]
    pub(crate) fn approver_with_own_timeout(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = Some(approver);
        self
    }

    /// Adds a rule with which the embedding application answers an approval request before the user is asked. Rules are
    /// evaluated in the order in which they were added. The audit log names the rule.
    #[must_use]
    pub fn approval_rule(mut self, rule: Arc<dyn ApprovalRule>) -> Self {
        self.approval_rules.push(rule);
        self
    }

    /// Sets the suggestions that users of this application get with a refusal. The default is [`DefaultSuggestions`],
    /// which name no command.
    #[must_use]
    pub fn suggestions(mut self, formatter: Arc<dyn SuggestionFormatter>) -> Self {
        self.suggestions = formatter;
        self
    }

    /// Replaces the store of rules that the user approved for longer than a session. The default store is the
    /// configuration files.
    #[must_use]
    pub fn rule_store(mut self, store: Arc<dyn RuleStore>) -> Self {
        self.rule_store = Some(store);
        self
    }

    /// Replaces the tool repository of the configured database.
    #[must_use]
    pub fn tool_repository(mut self, repository: Arc<dyn ToolRepository>) -> Self {
        self.tool_repository = Some(repository);
        self
    }

    /// Replaces the audit log of the configured database.
    #[must_use]
    pub fn execution_log(mut self, log: Arc<dyn ExecutionLog>) -> Self {
        self.execution_log = Some(log);
        self
    }

    /// Replaces the store of large outputs in the configured database. If the tool repository and the audit log are
    /// replaced as well, no database is opened. Without a store, the truncated part of a result is lost, and the result
    /// says so.
    #[must_use]
    pub fn output_store(mut self, store: Arc<dyn OutputStore>) -> Self {
        self.output_store = Some(store);
        self
    }

    /// Replaces the journal of file changes in the configured database. If the tool repository and the audit log are
    /// replaced as well, no database is opened. Without a journal, file changes cannot be undone.
    #[must_use]
    pub fn change_journal(mut self, journal: Arc<dyn ChangeJournal>) -> Self {
        self.change_journal = Some(journal);
        self
    }

    /// Replaces the store of conversations in the configured database. If the tool repository and the audit log are
    /// replaced as well, no database is opened. Without a store, no conversation can be started.
    #[must_use]
    pub fn conversations(mut self, store: Arc<dyn ConversationStore>) -> Self {
        self.conversations = Some(store);
        self
    }

    /// Replaces the store of plans in the configured database. If the tool repository and the audit log are replaced as
    /// well, no database is opened. Without a store, plans are held in memory.
    #[must_use]
    pub fn todos(mut self, store: Arc<dyn TodoStore>) -> Self {
        self.todos = Some(store);
        self
    }

    /// Replaces the store of questions that wait for an answer. If the tool repository and the audit log are replaced
    /// as well, no database is opened. Without a store, a question fails if no one can answer it immediately.
    #[must_use]
    pub fn questions(mut self, store: Arc<dyn QuestionStore>) -> Self {
        self.questions = Some(store);
        self
    }

    /// Declares that sessions continue in other processes, as those of the command line do. Their read-state of files
    /// is stored in the database, and later processes find detached tasks.
    #[must_use]
    pub fn session_lifetime(mut self, session_lifetime: SessionLifetime) -> Self {
        self.session_lifetime = Some(session_lifetime);
        self
    }

    /// Selects the configured MCP servers to start.
    #[must_use]
    pub fn servers(mut self, servers: Servers) -> Self {
        self.servers = servers;
        self
    }

    /// Sets the capabilities that clients may have (MCP's `ClientCapabilities`). Servers whose tools depend on them
    /// list those tools. By default, clients cannot be asked.
    #[must_use]
    pub fn client_capabilities(mut self, capabilities: Map<String, Value>) -> Self {
        self.clients = ExpectedClients::Any(capabilities);
        self
    }

    /// Declares that a single client will connect, and sets its capabilities (MCP's `ClientCapabilities`). Servers
    /// receive exactly these, so that a server with protocol version 2025-11-25 or older needs only one process. If the
    /// capabilities are known only after the client has connected, only the start of servers waits for them.
    #[must_use]
    pub fn for_one_client(mut self, capabilities: impl Future<Output = Map<String, Value>> + Send + 'static) -> Self {
        self.clients = ExpectedClients::One(Box::pin(capabilities));
        self
    }

    /// Starts a server only when it is used, if its tools are known from an earlier run. For long-running processes.
    #[must_use]
    pub fn starting_servers_when_used(mut self) -> Self {
        self.starts_when_used = true;
        self
    }

    /// Spreads upstream servers over these runtimes. By default they run on the runtime of the caller.
    #[must_use]
    pub(crate) fn spread_over(mut self, cores: RuntimePool) -> Self {
        self.cores = Some(cores);
        self
    }

    /// Replaces the network of the machine for tools that use the network: name resolution and connections.
    #[must_use]
    pub fn network(mut self, network: Arc<dyn Network>) -> Self {
        self.network = network;
        self
    }

    /// Replaces the web search of `[search]`.
    #[must_use]
    pub fn web_search(mut self, search: Arc<dyn WebSearch>) -> Self {
        self.web_search = Some(search);
        self
    }

    /// Builds and starts everything. MCP servers may still be connecting when this returns, except required ones.
    ///
    /// # Errors
    /// [`StartupError`]. Nothing is left running then.
    pub async fn build(self) -> Result<RunningApp, StartupError> {
        // Boxed because the state is sixteen kilobytes, which every calling future would otherwise contain.
        Box::pin(self.built()).await
    }

    async fn built(self) -> Result<RunningApp, StartupError> {
        let config = self.config;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);

        let opened = match config.roots.start() {
            Some(_) => {
                Workspace::open(&config.roots, FolderNames { home: config.folders.home.clone(), aliases: Vec::new() })?
            }
            None => Workspace::closed(),
        };
        let version = concat!("Toolstead ", env!("CARGO_PKG_VERSION"));
        let events = EventBus::new(clock.clone());
        let helpers = Arc::new(
            Helpers::default()
                .requiring_landlock(config.sandbox.requires_landlock)
                .allowing_tier_2(config.sandbox.allows_tier_2()),
        );
        let tasks = Arc::new(match self.session_lifetime {
            Some(session_lifetime @ (SessionLifetime::EndsWithCall | SessionLifetime::OutlivesCall)) => {
                let place = DetachedTasks::of(&config.database.local_folder, &Principal::local(), config.workspace());
                Tasks::for_continuing_session(place, session_lifetime == SessionLifetime::OutlivesCall)
            }
            Some(SessionLifetime::EndsWithConversation) | None => Tasks::default(),
        });
        let agent_files = Arc::new(config.agent_files());
        let models = models::models(&config, self.models)?;
        let browsers = Arc::new(Browsers::new(browser_settings(&config, self.network.clone())));
        let reach = web_client(self.network, &config.outside)?;
        let accounts = accounts(&config, reach.clone(), clock.clone());
        let for_sign_ins = (reach.clone(), clock.clone());
        let world = ToolEnvironment::new(Arc::new(opened), clock.clone(), version.to_owned())
            .with_agents(agent_files.clone())
            .with_limits(config.file_limits.clone())
            .with_events(events.clone())
            .with_helpers(helpers.clone())
            .with_programs(Arc::new(Programs::new(command_settings(&config))))
            .with_tasks(tasks.clone())
            .with_models(Arc::new(models.clone()))
            .with_web_client(reach)
            .with_robots_check(config.outside.respects_robots)
            .with_services(Arc::new(config.outside.services.clone()))
            .with_credentials(Arc::new(accounts))
            .with_browsers(browsers.clone());
        let world = match self.web_search {
            Some(search) => world.with_web_search(search),
            None => world,
        };
        let own = ToolGroup::for_application(self.program_name, self.tools);
        let of_program: Vec<ToolGroup> = [own].into_iter().chain(self.in_process).collect();
        let mut provider_factory =
            InProcessProviderFactory { environment: world.clone(), shows_output_schemas: config.server.output_schemas };
        let added = of_program.iter().map(|server| Ok(provider_factory.provider(server)?.definitions().to_vec()));
        let added = added.collect::<Result<Vec<_>, InvalidInProcessTools>>()?.concat();
        let mut built_in = InProcessTools::new(builtin::all(), world.clone())?.without_aliases_of(|server| {
            config.names_server(server) || self.upstreams.iter().any(|upstream| upstream.name.as_str() == server)
        });
        let orchestration = orchestration();
        if config.server.output_schemas {
            built_in = built_in.with_output_schemas();
        }
        let built_in = built_in.with_explained_tools(orchestration.definitions()).with_explained_tools(&added);
        let in_process = [built_in.definitions(), orchestration.definitions(), &added].concat();
        let known = known_names(&in_process);
        check_tool_names(&config, &known)?;
        // Providers of an embedding application may offer any name.
        if self.providers.is_empty() && self.upstreams.is_empty() {
            check_choices(&config, &known)?;
        }
        check_against(&config, &in_process)?;
        let in_process_names: Vec<String> = known.iter().map(|name| (*name).to_owned()).collect();

        let (repository, log, stores) = match (self.tool_repository, self.execution_log) {
            (Some(repository), Some(log)) => (repository, log, None),
            (repository, log) => {
                let opened = OpenStores::open(&config, clock.clone()).await?;
                make_folders_beside(&config.database, &config.roots);
                let Stores { tool_repository, execution_log, .. } = opened.stores.clone();
                (repository.unwrap_or(tool_repository), log.unwrap_or(execution_log), Some(opened))
            }
        };
        let stored = stores.as_ref().map(|opened| &opened.stores);
        let outputs = self.output_store.or_else(|| stored.map(|stores| stores.output_store.clone()));
        let outputs = outputs.unwrap_or_else(|| Arc::new(NoOutputs));
        let journal = self.change_journal.or_else(|| stored.map(|stores| stores.change_journal.clone()));
        let journal = journal.unwrap_or_else(|| Arc::new(NoJournal));
        let mut built_in = built_in.with_journal(journal.clone());
        provider_factory.environment = provider_factory.environment.with_journal(journal.clone());
        let conversations = self.conversations.or_else(|| stored.map(|stores| stores.conversations.clone()));
        let conversations = conversations.unwrap_or_else(|| Arc::new(NoConversations));
        let todos = self.todos.or_else(|| stored.map(|stores| stores.todos.clone()));
        if let Some(todos) = &todos {
            built_in = built_in.with_todos(todos.clone());
            provider_factory.environment = provider_factory.environment.with_todos(todos.clone());
        }
        let questions = self.questions.or_else(|| stored.map(|stores| stores.questions.clone()));
        if let Some(questions) = &questions {
            built_in = built_in.with_questions(questions.clone());
        }
        if let Some(Stores { seen_files, .. }) = stored.filter(|_| self.session_lifetime.is_some()) {
            built_in = built_in.with_read_state(seen_files.clone());
            provider_factory.environment = provider_factory.environment.with_read_state(seen_files.clone());
        }
        let command_hooks = hooks::start(&config)?;
        let asks_client = || Arc::new(ElicitationApprover::new(config.approval_timeout)) as Arc<dyn Approver>;
        let approver = self.approver.unwrap_or_else(asks_client);
        let approver = match self.approval_rules {
            rules if rules.is_empty() => approver,
            rules => Arc::new(RuledApprover::new(rules, approver)),
        };
        let approver = hooks::before(approver, command_hooks.as_ref(), &config);
        let mut hooks = self.hooks;
        hooks.extend(command_hooks.clone().map(|hooks| hooks as Arc<dyn ToolHook>));
        let mut agent_hooks = self.agent_hooks;
        agent_hooks.extend(command_hooks.clone().map(|hooks| hooks as Arc<dyn AgentHook>));
        let schemas = Arc::new(HelperSchemaValidator::new(helpers));
        let ports =
            ExecuteToolPorts { approver, log, clock, outputs, schemas, hooks, events, suggestions: self.suggestions };
        let instruction_files = Arc::new(InstructionFiles::new(&config, world.workspace().clone()));
        let surroundings = WorkspaceSurroundings::new(instruction_files.clone(), ports.clock.clone());
        let agents = AgentParts {
            models,
            hooks: agent_hooks,
            todos,
            defaults: AgentDefaults {
                settings: config.agent.clone(),
                rules: config.pattern_base(),
                program_tools: None,
            },
            agent_files: agent_files.clone(),
            surroundings: Some(Arc::new(surroundings)),
        };
        let parts = AppParts {
            policy: config.policy(),
            rule_store: self.rule_store.unwrap_or_else(|| config.rule_store()),
            ports,
            journal,
            conversations,
            settings: config.call_settings(),
            max_open_calls: config.limits.calls_in_flight,
            dialect: config.dialect,
            deferral: config.tool_deferral(),
            agents,
            definitions: stores.as_ref().map(|opened| opened.stores.definitions.clone()),
        };
        let known = self.starts_when_used.then(|| repository.clone());
        let mut app = App::assemble(parts, repository).await?;

        let tools = Arc::new(ProgramTools::new(app.registry.clone(), provider_factory, of_program));
        app.agent.program_tools = Some(tools.clone());
        let views = config.views.iter().map(|view| (view.name.clone(), view.view(&app.policy)));
        app.views = Arc::new(views.collect());
        let (servers, event_file) = (Vec::new(), None);
        let mut composition = RunningApp {
            app,
            servers,
            tools,
            config,
            hooks: command_hooks,
            questions: WaitingQuestions(questions),
            agent_files,
            instruction_files,
            browsers,
            workspace: world.workspace().clone(),
            tasks,
            event_file,
            stores,
        };
        let background = world.work_as_tasks();
        let registered = async {
            let reports = reports::reports(&composition.config, &composition.app, version);
            composition.app.context.register(Arc::new(BuiltInContext::new(world, reports)?)).await?;
            for provider in self.context_providers {
                composition.app.context.register(provider).await?;
            }
            composition.app.registry.register(Arc::new(built_in)).await?;
            let search = models::tool_search(&composition.config)?;
            let calling_others = orchestration_of(&composition.app, background, search);
            let calling_others = match composition.config.server.output_schemas {
                true => calling_others.with_output_schemas(),
                false => calling_others,
            };
            composition.app.registry.register(Arc::new(calling_others)).await?;
            composition.tools.open().await?;
            for provider in self.providers {
                composition.app.registry.register(provider).await?;
            }
            let is_known = |name: &str| in_process_names.iter().any(|known| known == name);
            if composition.config.selection.may_hold_other_than(is_known) {
                for (server, why) in upstream::absent(&composition.config, &self.servers) {
                    composition.app.registry.note_absent(server, &why);
                }
                let starting = upstream::start(
                    &composition.config,
                    &self.servers,
                    self.upstreams,
                    self.clients.resolve(),
                    known,
                    self.cores.as_ref(),
                    (&for_sign_ins.0, &for_sign_ins.1),
                );
                let servers = starting.await?;
                for server in &servers {
                    composition.app.registry.register(server.clone()).await?;
                    composition.app.context.register(server.clone()).await?;
                }
                composition.servers = servers;
            }
            composition.check_required().await
        };
        match registered.await {
            Ok(()) => Ok(composition),
            Err(error) => {
                composition.close().await;
                Err(error)
            }
        }
    }
}

impl RunningApp {
    /// Writes all further events to the target until the application is closed.
    ///
    /// # Errors
    /// The error of the operating system if the target cannot be opened.
    pub fn write_events(&mut self, target: &EventTarget) -> std::io::Result<()> {
        self.event_file = Some(EventFile::start(target, self.app.events())?);
        Ok(())
    }

    /// Waits until every MCP server has answered, failed, or exceeded its connect timeout.
    pub async fn settled(&self) {
        self.app.registry.settled(self.config.connect_timeout()).await;
    }

    /// Waits until every MCP server is connected and its tools are listed, or it has failed. Includes servers whose
    /// tools are known from an earlier run.
    pub async fn reached(&self) {
        let connecting = self.servers.iter().filter(|server| server.status().state == ProviderState::Connecting);
        futures::future::join_all(connecting.map(|server| server.refresh())).await;
        // Refreshes all providers of the registry, so that no name is outdated.
        let _ = self.app.registry.refresh(None).await;
    }

    /// Starts a browser as a call would, reads its version and ends it. Takes at most twice `limit`.
    ///
    /// # Errors
    /// `unavailable` if none can be started here, `execution_failed` if it did not start.
    pub(crate) async fn check_browser(&self, limit: Duration) -> Result<CheckedBrowser, ToolFailure> {
        self.browsers.check(self.workspace.writable(), limit).await
    }

    /// Returns `true` if tasks are running that outlive their calls.
    pub fn has_tasks(&self) -> bool {
        self.tasks.has_detached()
    }

    /// Waits until these tasks have ended and are recorded. Dropping the future has no effect on them.
    pub async fn wait_for_tasks(&self) {
        self.tasks.wait_for_detached().await;
    }

    /// Closes everything in order: calls, providers, database.
    pub async fn close(self) {
        self.close_after(DRAIN).await;
    }

    /// Closes everything as [`close`](Self::close) does, with a different time for running calls to finish.
    pub async fn close_after(self, drain: Duration) {
        self.app.close(drain).await;
        if let Some(hooks) = &self.hooks {
            hooks.close().await;
        }
        if let Some(events) = self.event_file {
            events.finish().await;
        }
        if let Some(stores) = self.stores {
            stores.close().await;
        }
    }

    async fn check_required(&self) -> Result<(), StartupError> {
        let required = |name: &ServerName| {
            self.config.mcp_servers.iter().any(|server| server.required && !server.disabled && server.name == *name)
        };
        let servers: Vec<_> = self.servers.iter().filter(|server| required(&server.status().name)).collect();
        if servers.is_empty() {
            return Ok(());
        }
        self.settled().await;
        match servers.iter().map(|server| server.status()).find(|status| status.state != ProviderState::Ready) {
            None => Ok(()),
            Some(status) => Err(StartupError::RequiredServer { server: status.name, state: status.state.to_string() }),
        }
    }
}

/// Checks the rules and hooks against the definitions of the built-in tools, as building an application does.
///
/// # Errors
/// [`StartupError`] with every rule that could never match, and every gate that waits for trust.
pub fn check_rules(config: &Config) -> Result<(), StartupError> {
    let world = ToolEnvironment::new(Arc::new(Workspace::closed()), Arc::new(SystemClock), String::new());
    let built_in = InProcessTools::new(builtin::all(), world)?;
    Ok(check_against(config, &[built_in.definitions(), orchestration().definitions()].concat())?)
}

fn check_against(config: &Config, tools: &[Tool]) -> Result<(), ConfigError> {
    check_parameters(config, tools)?;
    check_filter_parameters(config, tools)?;
    check_overlays(config, tools)?;
    check_gates(config)
}

/// Returns the names and aliases of the built-in tools, and the names of resource and prompt requests.
fn known_names(tools: &[Tool]) -> Vec<&str> {
    tools
        .iter()
        .flat_map(|tool| std::iter::once(tool.name().as_str()).chain(tool.aliases.iter().map(|alias| alias.name)))
        .chain(context::RULE_NAMES)
        .collect()
}

/// Returns the configured access to hosts.
fn web_client(network: Arc<dyn Network>, outside: &NetworkToolSettings) -> Result<WebClient, InvalidAddress> {
    let reach = WebClient::new(network, outside.private_hosts.clone());
    match &outside.proxy {
        Some(proxy) => reach.with_proxy(proxy),
        None => Ok(reach),
    }
}
