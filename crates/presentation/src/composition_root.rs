//! The one place that names both a port and its adapter: from a configuration to a running application.
//!
//! Both binaries, the tests and programs that embed Toolstead build through here:
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
pub use accounts::accounts_alone;
pub use orchestration::orchestration;
use orchestration::orchestration_of;
pub use stores::trail_to_read;

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
        policy::{check_parameters, check_tool_names},
        problem::ConfigError,
        services::OutsideSettings,
        workspace::make_folders_beside,
    },
    event_file::{EventFile, EventTarget},
    mcp_server::elicitation_approver::ElicitationApprover,
};
use command_settings::{browser_settings, command_settings};
use program_tools::{ProgramTools, Shop};
use serde_json::{Map, Value};
use std::{pin::Pin, sync::Arc, time::Duration};
use stores::OpenStores;
use toolstead_application::{
    bounded_approver::BoundedApprover, context_registry::ContextRegistryError, event_bus::EventBus,
    execute_tool::ExecuteToolPorts, ruled_approver::RuledApprover, tool_registry::RegistryError,
};
use toolstead_domain::{
    context,
    ports::{
        agent_hook::AgentHook,
        approval_rule::ApprovalRule,
        approver::Approver,
        change_journal::{ChangeJournal, NoJournal},
        clock::Clock,
        context_provider::ContextProvider,
        conversation_store::{ConversationStore, NoConversations},
        execution_log::ExecutionLog,
        model_provider::ModelProvider,
        output_store::{NoOutputs, OutputStore},
        question_store::QuestionStore,
        rule_store::RuleStore,
        stores::Stores,
        todo_store::TodoStore,
        tool_hook::ToolHook,
        tool_provider::{ProviderState, ToolProvider},
        tool_repository::{StoreError, ToolRepository},
        web_search::WebSearch,
    },
    principal::Principal,
    server_name::ServerName,
    suggestion::{DefaultSuggestions, SuggestionFormatter},
    tool::Tool,
    tool_failure::ToolFailure,
};
use toolstead_infrastructure::{
    browser::browsers::{Browsers, CheckedBrowser},
    builtin,
    builtin::{
        built_in_tool::AnyBuiltInTool,
        commands::{programs::Programs, tasks::Tasks},
        context::{BuiltInContext, InvalidBuiltInContext},
        in_process_server::InProcessServer,
        into_tool::IntoTool,
        provider::{BuiltInTools, InvalidBuiltInTools},
        world::World,
    },
    egress::connector::{Network, SystemNetwork},
    hooks::command_hooks::CommandHooks,
    mcp::client::{McpServer, may_ask::Clients},
    sandbox::{
        detached::DetachedTasks,
        helper::Helpers,
        schema_validation::HelperSchemaValidator,
        workspace::{FolderNames, OpenWorkspaceError, Workspace},
    },
    sqlite::OpenError,
    system_clock::SystemClock,
    web::{address::InvalidAddress, reach::Reach},
};

/// How long running calls are given at the end of a short-lived program.
const DRAIN: Duration = Duration::from_millis(500);

/// Which of the configured MCP servers are started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Servers {
    /// All that are not disabled.
    #[default]
    All,
    /// Only this one.
    Only(String),
    /// None.
    None,
}

/// What becomes of tasks, where sessions go on in other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoingOn {
    /// This process ends with its call, so it begins none.
    EndsWithCall,
    /// This process lives on for those that it detaches, until [`Composition::kept_to_the_end`].
    Outlives,
    /// This process has a conversation, which another one may take up: tasks end with it, and what was read is known later.
    EndsWithConversation,
}

/// Those who will call.
enum Calling {
    /// Any, with what they can answer at all.
    Any(Map<String, Value>),
    /// One, with what it says that it can answer.
    One(Pin<Box<dyn Future<Output = Map<String, Value>> + Send>>),
}

impl Calling {
    async fn heard(self) -> Clients {
        match self {
            Self::Any(capabilities) => Clients::Any(capabilities),
            Self::One(capabilities) => Clients::One(capabilities.await),
        }
    }
}

/// Builds an application. Everything has a default, and everything can be replaced.
pub struct AppBuilder {
    /// Boxed: kilobytes, which every future that builds one would hold.
    config: Box<Config>,
    servers: Servers,
    providers: Vec<Arc<dyn ToolProvider>>,
    context_providers: Vec<Arc<dyn ContextProvider>>,
    tools: Vec<Arc<dyn AnyBuiltInTool>>,
    in_process: Vec<InProcessServer>,
    program: ServerName,
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
    going_on: Option<GoingOn>,
    clients: Calling,
    starts_when_used: bool,
    network: Arc<dyn Network>,
    web_search: Option<Arc<dyn WebSearch>>,
}

/// A running application with everything that must be closed.
#[derive(Debug)]
pub struct Composition {
    /// The use cases.
    pub app: App,
    /// The MCP servers that were started, for their status. Providers that a program added stand in the registry alone.
    pub servers: Vec<Arc<McpServer>>,
    /// What it was built of.
    pub config: Box<Config>,
    /// The tools that the program added; more come and go here while it runs.
    pub tools: Arc<ProgramTools>,
    /// The configured hooks; those that a program added are not among them.
    pub hooks: Option<Arc<CommandHooks>>,
    /// The questions that wait for somebody.
    pub questions: WaitingQuestions,
    /// The Markdown files that people wrote down.
    pub agent_files: Arc<AgentFiles>,
    browsers: Arc<Browsers>,
    workspace: Arc<Workspace>,
    tasks: Arc<Tasks>,
    event_file: Option<EventFile>,
    stores: Option<OpenStores>,
}

/// The place where questions wait for somebody; `None`: none are kept.
#[derive(Clone)]
pub struct WaitingQuestions(pub Option<Arc<dyn QuestionStore>>);

impl std::fmt::Debug for WaitingQuestions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WaitingQuestions").field(&self.0.is_some()).finish()
    }
}

/// An application that could not be built.
#[derive(Debug, thiserror::Error)]
pub enum StartupError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A root cannot be used.
    #[error("a root of the workspace cannot be used")]
    Workspace(#[from] OpenWorkspaceError),
    /// The database cannot be opened.
    #[error(transparent)]
    Database(#[from] OpenError),
    /// A tool that was added cannot be used.
    #[error("a tool cannot be used")]
    Tools(#[from] InvalidBuiltInTools),
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
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Child processes cannot be started.
    #[error("the launcher of child processes cannot be started")]
    Launcher(#[source] std::io::Error),
    /// A server that is required is down.
    #[error("the MCP server `{server}` is required and is {state}")]
    RequiredServer {
        /// The server.
        server: ServerName,
        /// How it is.
        state: String,
    },
}

impl StartupError {
    /// Whether a change of configuration or command line mends it.
    pub fn is_users(&self) -> bool {
        match self {
            Self::Config(_)
            | Self::Workspace(_)
            | Self::Tools(_)
            | Self::Proxy(_)
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
            tools: Vec::new(),
            in_process: Vec::new(),
            program: ServerName::program(),
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
            going_on: None,
            clients: Calling::Any(Map::new()),
            starts_when_used: false,
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
    /// Adds a provider. Its name must be free; rules know its tools by the names that it gives them.
    #[must_use]
    pub fn provider(mut self, provider: Arc<dyn ToolProvider>) -> Self {
        self.providers.push(provider);
        self
    }

    /// Adds a provider of resources and prompts. Its name, and all that it offers, must be free; rules know requests to it
    /// as `Resource(NAME:URI)` and `Prompt(NAME:PROMPT)`.
    #[must_use]
    pub fn context_provider(mut self, provider: Arc<dyn ContextProvider>) -> Self {
        self.context_providers.push(provider);
        self
    }

    /// Names the program, as rules, lists and the audit trail know the tools that it adds: `embedded:NAME`. Without it
    /// the name is `program`. No provider and no configured server may bear the same.
    #[must_use]
    pub fn program(mut self, name: ServerName) -> Self {
        self.program = name;
        self
    }

    /// Adds a tool beside the built-in ones, under its own name. What it touches decides about its calls; what it says of
    /// itself in hints grants nothing.
    #[must_use]
    pub fn tool<F>(mut self, tool: impl IntoTool<F>) -> Self {
        self.tools.push(Arc::new(tool.into_tool()));
        self
    }

    /// Adds a server within this program: its tools are called `mcp__{server}__{tool}`. No other server and no provider may
    /// bear its name.
    #[must_use]
    pub fn in_process_server(mut self, server: InProcessServer) -> Self {
        self.in_process.push(server);
        self
    }

    /// Adds a hook; hooks run in the order in which they were added.
    #[must_use]
    pub fn hook(mut self, hook: Arc<dyn ToolHook>) -> Self {
        self.hooks.push(hook);
        self
    }

    /// Adds a model for agents, beside those of the configuration, or instead of the one that bears its name. The first one
    /// is asked where the configuration names none.
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

    /// Replaces the approver that asks the MCP client of a call, where it fills in forms. An answer after
    /// `[permissions] approval_timeout` refuses the call, and so does a panic.
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

    /// Adds a rule by which the program itself answers a question before a person is asked; rules are asked in the order in
    /// which they were added. The audit trail names the rule.
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

    /// Replaces the store of rules that a person approved for longer than a session: the configuration's own files.
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

    /// Replaces the audit trail of the configured database.
    #[must_use]
    pub fn execution_log(mut self, log: Arc<dyn ExecutionLog>) -> Self {
        self.execution_log = Some(log);
        self
    }

    /// Replaces the store of large outputs of the configured database. Where also repository and audit trail are replaced
    /// there is no database, and without a store what is cut of a result is lost, and said to be.
    #[must_use]
    pub fn output_store(mut self, store: Arc<dyn OutputStore>) -> Self {
        self.output_store = Some(store);
        self
    }

    /// Replaces the journal of file changes of the configured database. Where also repository and audit trail are replaced
    /// there is no database, and without a journal changes of files cannot be undone.
    #[must_use]
    pub fn change_journal(mut self, journal: Arc<dyn ChangeJournal>) -> Self {
        self.change_journal = Some(journal);
        self
    }

    /// Replaces the store of conversations of the configured database. Where also repository and audit trail are replaced
    /// there is no database, and without a store no conversation begins.
    #[must_use]
    pub fn conversations(mut self, store: Arc<dyn ConversationStore>) -> Self {
        self.conversations = Some(store);
        self
    }

    /// Replaces the store of plans of the configured database. Where also repository and audit trail are replaced there is
    /// no database, and without a store plans are kept in memory.
    #[must_use]
    pub fn todos(mut self, store: Arc<dyn TodoStore>) -> Self {
        self.todos = Some(store);
        self
    }

    /// Replaces the store of questions that wait for somebody. Where also repository and audit trail are replaced there is
    /// no database, and without a store a question that nobody can be asked at once fails.
    #[must_use]
    pub fn questions(mut self, store: Arc<dyn QuestionStore>) -> Self {
        self.questions = Some(store);
        self
    }

    /// Says that sessions go on in other processes, as those of the command line do: what they have read is kept in the
    /// database, and detached tasks are found by later processes.
    #[must_use]
    pub fn session_goes_on(mut self, going_on: GoingOn) -> Self {
        self.going_on = Some(going_on);
        self
    }

    /// Chooses which of the configured MCP servers are started.
    #[must_use]
    pub fn servers(mut self, servers: Servers) -> Self {
        self.servers = servers;
        self
    }

    /// Says what the clients that will come can answer at all (MCP's `ClientCapabilities`): servers that offer more to those
    /// who can be asked list it. Without it nobody can be asked.
    #[must_use]
    pub fn clients_can(mut self, capabilities: Map<String, Value>) -> Self {
        self.clients = Calling::Any(capabilities);
        self
    }

    /// Says that one client alone will come, and what it can answer (MCP's `ClientCapabilities`): servers are told that and
    /// nothing else, so that a server up to 2025-11-25 is one process. What is not known before the client speaks is waited
    /// for, with the servers and nothing else.
    #[must_use]
    pub fn client_can(mut self, capabilities: impl Future<Output = Map<String, Value>> + Send + 'static) -> Self {
        self.clients = Calling::One(Box::pin(capabilities));
        self
    }

    /// Leaves servers alone until somebody uses them, where their tools are known from an earlier run. For programs that
    /// serve for long.
    #[must_use]
    pub fn starting_servers_when_used(mut self) -> Self {
        self.starts_when_used = true;
        self
    }

    /// Resolves names and connects by this, for tools that reach out, instead of by the machine's own network.
    #[must_use]
    pub fn network(mut self, network: Arc<dyn Network>) -> Self {
        self.network = network;
        self
    }

    /// Searches the web by this, whatever the configuration says of `[search]`.
    #[must_use]
    pub fn web_search(mut self, search: Arc<dyn WebSearch>) -> Self {
        self.web_search = Some(search);
        self
    }

    /// Builds and starts everything. MCP servers are on their way when this returns, unless they are required.
    ///
    /// # Errors
    /// [`StartupError`]; then nothing is left running.
    pub async fn build(self) -> Result<Composition, StartupError> {
        // Sixteen kilobytes of state, which nobody wants in a future of their own.
        Box::pin(self.built()).await
    }

    async fn built(self) -> Result<Composition, StartupError> {
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
        let tasks = Arc::new(match self.going_on {
            Some(going_on @ (GoingOn::EndsWithCall | GoingOn::Outlives)) => {
                let place = DetachedTasks::of(&config.database.local_folder, &Principal::local(), config.workspace());
                Tasks::of_session_that_goes_on(place, going_on == GoingOn::Outlives)
            }
            Some(GoingOn::EndsWithConversation) | None => Tasks::default(),
        });
        let agent_files = Arc::new(config.agent_files());
        let models = models::models(&config, self.models)?;
        let browsers = Arc::new(Browsers::new(browser_settings(&config, self.network.clone())));
        let reach = reach(self.network, &config.outside)?;
        let accounts = accounts(&config, reach.clone(), clock.clone());
        let world = World::new(Arc::new(opened), clock.clone(), version.to_owned())
            .with_agents(agent_files.clone())
            .with_limits(config.file_limits.clone())
            .with_events(events.clone())
            .with_helpers(helpers.clone())
            .with_programs(Arc::new(Programs::new(command_settings(&config))))
            .with_tasks(tasks.clone())
            .with_models(Arc::new(models.clone()))
            .with_reach(reach)
            .respecting_robots(config.outside.respects_robots)
            .with_services(Arc::new(config.outside.services.clone()))
            .with_credentials(Arc::new(accounts))
            .with_browsers(browsers.clone());
        let world = match self.web_search {
            Some(search) => world.with_web_search(search),
            None => world,
        };
        let own = InProcessServer::of_program(self.program, self.tools);
        let of_program: Vec<InProcessServer> = [own].into_iter().chain(self.in_process).collect();
        let mut shop = Shop { world: world.clone(), shows_output_schemas: config.server.output_schemas };
        let added = of_program.iter().map(|server| Ok(shop.provider(server)?.definitions().to_vec()));
        let added = added.collect::<Result<Vec<_>, InvalidBuiltInTools>>()?.concat();
        let mut built_in =
            BuiltInTools::new(builtin::all(), world.clone())?.leaving_names_to(|server| config.names_server(server));
        let orchestration = orchestration();
        if config.server.output_schemas {
            built_in = built_in.with_output_schemas();
        }
        let built_in = built_in.explaining(orchestration.definitions()).explaining(&added);
        let in_process = [built_in.definitions(), orchestration.definitions(), &added].concat();
        let known = known_names(&in_process);
        check_tool_names(&config, &known)?;
        // Providers that a program added may offer anything.
        if self.providers.is_empty() {
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
        shop.world = shop.world.with_journal(journal.clone());
        let conversations = self.conversations.or_else(|| stored.map(|stores| stores.conversations.clone()));
        let conversations = conversations.unwrap_or_else(|| Arc::new(NoConversations));
        let todos = self.todos.or_else(|| stored.map(|stores| stores.todos.clone()));
        if let Some(todos) = &todos {
            built_in = built_in.with_todos(todos.clone());
            shop.world = shop.world.with_todos(todos.clone());
        }
        let questions = self.questions.or_else(|| stored.map(|stores| stores.questions.clone()));
        if let Some(questions) = &questions {
            built_in = built_in.with_questions(questions.clone());
        }
        if let Some(Stores { seen_files, .. }) = stored.filter(|_| self.going_on.is_some()) {
            built_in = built_in.with_seen_files(seen_files.clone());
            shop.world = shop.world.with_seen_files(seen_files.clone());
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
        let agents = AgentParts {
            models,
            hooks: agent_hooks,
            todos,
            defaults: AgentDefaults {
                settings: config.agent.clone(),
                rules: config.pattern_base(),
                program_tools: None,
            },
            catalogue: agent_files.clone(),
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
            agents,
        };
        let known = self.starts_when_used.then(|| repository.clone());
        let mut app = App::assemble(parts, repository).await?;

        let tools = Arc::new(ProgramTools::new(app.registry.clone(), shop, of_program));
        app.agent.program_tools = Some(tools.clone());
        let (servers, event_file) = (Vec::new(), None);
        let mut composition = Composition {
            app,
            servers,
            tools,
            config,
            hooks: command_hooks,
            questions: WaitingQuestions(questions),
            agent_files,
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
            let calling_others = orchestration_of(&composition.app, &composition.config, background);
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
                let starting = upstream::start(&composition.config, &self.servers, self.clients.heard(), known);
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

impl Composition {
    /// Writes what happens from now on to the target, until all is closed.
    ///
    /// # Errors
    /// The operating system's, when the target cannot be opened.
    pub fn write_events(&mut self, target: &EventTarget) -> std::io::Result<()> {
        self.event_file = Some(EventFile::start(target, self.app.events())?);
        Ok(())
    }

    /// Returns when every MCP server has been heard of, or its time to connect is over.
    pub async fn settled(&self) {
        self.app.registry.settled(self.config.connect_timeout()).await;
    }

    /// Returns when every MCP server has been reached and its tools are known, or it has failed: also those whose tools are
    /// known from earlier.
    pub async fn reached(&self) {
        let connecting = self.servers.iter().filter(|server| server.status().state == ProviderState::Connecting);
        futures::future::join_all(connecting.map(|server| server.refresh())).await;
        // All that the registry has is asked, so that no name is wrong.
        let _ = self.app.registry.refresh(None).await;
    }

    /// Starts a browser as a call would, reads its version and ends it. Takes at most twice `limit`.
    ///
    /// # Errors
    /// `unavailable` if none can be started here, `execution_failed` if it did not start.
    pub(crate) async fn check_browser(&self, limit: Duration) -> Result<CheckedBrowser, ToolFailure> {
        self.browsers.check(self.workspace.writable(), limit).await
    }

    /// Whether tasks run that are to go on after their call.
    pub fn keeps_tasks(&self) -> bool {
        self.tasks.keeps_any()
    }

    /// Returns when all those tasks have ended, and are on record. Dropping this changes nothing.
    pub async fn kept_to_the_end(&self) {
        self.tasks.kept_to_the_end().await;
    }

    /// Ends everything in order: calls, providers, database.
    pub async fn close(self) {
        self.close_after(DRAIN).await;
    }

    /// As [`close`](Self::close), with another time for calls that run.
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

/// Checks the rules and hooks against the definitions of the built-in tools, as a start does.
///
/// # Errors
/// [`StartupError`] with every rule that could never match, and every gate that waits for trust.
pub fn check_rules(config: &Config) -> Result<(), StartupError> {
    let world = World::new(Arc::new(Workspace::closed()), Arc::new(SystemClock), String::new());
    let built_in = BuiltInTools::new(builtin::all(), world)?;
    Ok(check_against(config, &[built_in.definitions(), orchestration().definitions()].concat())?)
}

fn check_against(config: &Config, tools: &[Tool]) -> Result<(), ConfigError> {
    check_parameters(config, tools)?;
    check_filter_parameters(config, tools)?;
    check_gates(config)
}

/// Names and aliases of the built-in tools, and what requests for resources and prompts are called beside them.
fn known_names(tools: &[Tool]) -> Vec<&str> {
    tools
        .iter()
        .flat_map(|tool| std::iter::once(tool.name().as_str()).chain(tool.aliases.iter().map(|alias| alias.name)))
        .chain(context::RULE_NAMES)
        .collect()
}

/// The way to hosts, as the configuration has it.
fn reach(network: Arc<dyn Network>, outside: &OutsideSettings) -> Result<Reach, InvalidAddress> {
    let reach = Reach::new(network, outside.private_hosts.clone());
    match &outside.proxy {
        Some(proxy) => reach.with_proxy(proxy),
        None => Ok(reach),
    }
}
