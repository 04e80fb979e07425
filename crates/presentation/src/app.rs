//! The assembled application: every use case, and the shutdown.

use crate::{
    agent_parts::{AgentDefaults, AgentModels, SharedAgentDependencies},
    config::views::NoSuchView,
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::time::timeout;
use toolstead_application::{
    CallSettings, ContextRegistry, DefinitionPins, EventBus, EventSubscription, ExecuteToolHandler, ExecuteToolPorts,
    ForkConversationHandler, ForwardContextRequestHandler, ForwardTaskHandler, GetToolHandler, ListContextHandler,
    ListExecutionsHandler, ListToolsHandler, OpenCalls, PermissionBook, ProviderInstructionsAndLogs,
    RefreshToolsHandler, RegistryError, RunAgentHandler, RunAgentPorts, SetToolEnabledHandler, ToolDeferral,
    ToolRegistry, UndoConversationHandler, UndoConversationPorts, WatchResourceHandler, registry_events,
};
use toolstead_domain::{
    AgentCatalogue, ChangeJournal, ConversationStore, Dialect, PermissionPolicy, PinnedDefinitionStore, Principal,
    ReadOnlyCommands, RequestScope, RuleStore, StoreError, ToolRepository, View,
};
use toolstead_infrastructure::shell_analysis::catalogue::READ_ONLY_COMMANDS;

/// Time for cancelled calls to write their audit records.
const LAST_RECORDS: Duration = Duration::from_secs(5);

/// Every use case. Cheap to clone; shared by all front ends.
#[derive(Clone)]
pub struct App {
    /// Calls a tool.
    pub execute_tool: Arc<ExecuteToolHandler>,
    /// Lists callable tools.
    pub list_tools: Arc<ListToolsHandler>,
    /// Returns one tool.
    pub get_tool: Arc<GetToolHandler>,
    /// Switches a tool on or off.
    pub set_tool_enabled: Arc<SetToolEnabledHandler>,
    /// Asks providers to list their tools again.
    pub refresh_tools: Arc<RefreshToolsHandler>,
    /// Reads the audit log.
    pub list_executions: Arc<ListExecutionsHandler>,
    /// Answers requests for resources, prompts and completions.
    pub forward_request: Arc<ForwardContextRequestHandler>,
    /// Watches resources.
    pub watch_resource: Arc<WatchResourceHandler>,
    /// Answers requests about calls that run as tasks.
    pub forward_task: Arc<ForwardTaskHandler>,
    /// Conversations with agents.
    pub conversations: Arc<dyn ConversationStore>,
    /// Starts a conversation as a copy of another.
    pub fork_conversation: Arc<ForkConversationHandler>,
    /// Undoes turns of conversations, including the file changes of their calls.
    pub undo_conversation: Arc<UndoConversationHandler>,
    /// Lists resources and prompts.
    pub list_context: Arc<ListContextHandler>,
    /// The live set of resources and prompts. Providers are registered here at run time.
    pub context: Arc<ContextRegistry>,
    /// Log messages of providers outside of calls, for the clients that may receive them.
    pub provider_notifications: Arc<ProviderInstructionsAndLogs>,
    /// The live set of tools. Providers are registered, replaced and unregistered here at run time.
    pub registry: Arc<ToolRegistry>,
    /// Open calls.
    pub open_calls: Arc<OpenCalls>,
    /// Configured tool system whose names and wording the tools use.
    pub dialect: Option<Dialect>,
    /// Configured policy that decides every call.
    pub policy: Arc<PermissionPolicy>,
    /// The policy together with the rules that the user approved since.
    pub permissions: Arc<PermissionBook>,
    /// Events of the application, for subscribers.
    pub events: Arc<EventBus>,
    /// Runs agents. [`query`](Self::query) is a shortcut.
    pub run_agent: Arc<RunAgentHandler>,
    /// Models for agents.
    pub models: AgentModels,
    /// Defaults of each run of an agent.
    pub agent: AgentDefaults,
    /// Agents, skills and commands defined in files.
    pub agent_files: Arc<dyn AgentCatalogue>,
    /// Views by name. [`view`](Self::view) finds one.
    pub views: Arc<BTreeMap<String, Arc<View>>>,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("registry", &self.registry).finish_non_exhaustive()
    }
}

/// Parts from which an application is assembled.
pub struct AppParts {
    /// Policy that decides every call.
    pub policy: PermissionPolicy,
    /// Store of rules that the user approved for longer than a session.
    pub rule_store: Arc<dyn RuleStore>,
    /// Adapters that the call path needs.
    pub ports: ExecuteToolPorts,
    /// Journal of the file changes of calls.
    pub journal: Arc<dyn ChangeJournal>,
    /// Store of conversations with agents.
    pub conversations: Arc<dyn ConversationStore>,
    /// Limits of every call.
    pub settings: CallSettings,
    /// Maximum number of open calls.
    pub max_open_calls: usize,
    /// Tool system whose names and wording the tools use; `None`: Toolstead's own.
    pub dialect: Option<Dialect>,
    /// Threshold above which lists of tools are deferred.
    pub deferral: ToolDeferral,
    /// Parts for agents.
    pub agents: SharedAgentDependencies,
    /// Store of the definitions that MCP servers offer, with their versions; `None`: everything is served as it is
    /// offered.
    pub definitions: Option<Arc<dyn PinnedDefinitionStore>>,
}

impl std::fmt::Debug for AppParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AppParts").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl App {
    /// Assembles the use cases. Providers are registered afterwards, on [`App::registry`].
    ///
    /// # Errors
    /// [`StoreError`] if the tool repository cannot be read.
    pub async fn assemble(parts: AppParts, repository: Arc<dyn ToolRepository>) -> Result<Self, StoreError> {
        let AppParts { policy, rule_store, ports, journal, conversations, settings, max_open_calls, .. } = parts;
        let AppParts { dialect, deferral, agents, definitions, .. } = parts;
        let policy = Arc::new(policy);
        let book = PermissionBook::new(policy.clone(), rule_store);
        let permissions = Arc::new(book.with_read_only_commands(ReadOnlyCommands::new(READ_ONLY_COMMANDS)));
        let pins = definitions.map(|store| Arc::new(DefinitionPins::new(store, ports.clock.clone())));
        let registry = ToolRegistry::with_pins(repository, ports.clock.clone(), pins.clone()).await?;
        let open_calls = OpenCalls::new(max_open_calls);
        let (events, clock) = (ports.events.clone(), ports.clock.clone());
        tokio::spawn(registry_events::publish_changes(&registry, events.clone()));
        let execute_tool =
            ExecuteToolHandler::new(registry.clone(), permissions.clone(), ports.clone(), open_calls.clone(), settings);
        let context = ContextRegistry::new();
        if let Some(pins) = &pins {
            context.pin_definitions(pins);
        }
        execute_tool.name_resources_by(&context);
        let list_tools = ListToolsHandler::new(registry.clone(), permissions.clone()).with_deferral(deferral);
        let list_tools = Arc::new(list_tools);
        execute_tool.list_by(&list_tools);
        let SharedAgentDependencies { models, hooks, defaults: agent, todos, agent_files: catalogue, surroundings } =
            agents;
        let run_agent = RunAgentHandler::new(RunAgentPorts {
            execute_tool: execute_tool.clone(),
            list_tools: list_tools.clone(),
            conversations: conversations.clone(),
            todos,
            hooks,
            surroundings,
            events: events.clone(),
            clock: clock.clone(),
        });
        Ok(Self {
            fork_conversation: Arc::new(ForkConversationHandler::new(conversations.clone(), clock.clone())),
            undo_conversation: Arc::new(UndoConversationHandler::new(UndoConversationPorts {
                execute_tool: execute_tool.clone(),
                conversations: conversations.clone(),
                journal,
                log: ports.log.clone(),
                clock,
            })),
            conversations,
            list_tools,
            get_tool: Arc::new(GetToolHandler::new(registry.clone(), permissions.clone())),
            set_tool_enabled: Arc::new(SetToolEnabledHandler::new(registry.clone())),
            refresh_tools: Arc::new(RefreshToolsHandler::new(registry.clone())),
            list_executions: Arc::new(ListExecutionsHandler::new(ports.log)),
            forward_request: Arc::new(ForwardContextRequestHandler::new(context.clone(), execute_tool.clone())),
            watch_resource: Arc::new(WatchResourceHandler::new(context.clone(), execute_tool.clone())),
            forward_task: Arc::new(ForwardTaskHandler::new(registry.clone(), execute_tool.clone())),
            list_context: Arc::new(ListContextHandler::new(context.clone(), permissions.clone())),
            provider_notifications: ProviderInstructionsAndLogs::new(
                context.clone(),
                registry.clone(),
                permissions.clone(),
            ),
            execute_tool,
            context,
            registry,
            open_calls,
            dialect,
            policy,
            permissions,
            events,
            run_agent,
            models,
            agent,
            agent_files: catalogue,
            views: Arc::default(),
        })
    }

    /// Removes a provider with its tools, resources and prompts, and closes it.
    ///
    /// # Errors
    /// [`RegistryError::UnknownProvider`] if it offers no tools. Its resources and prompts are removed in any case.
    pub async fn unregister(&self, name: &str) -> Result<(), RegistryError> {
        self.context.unregister(name);
        self.registry.unregister(name).await
    }

    /// Returns the scope of the principal's session, in the configured dialect.
    pub fn scope(&self, principal: Principal, session: impl Into<Arc<str>>) -> RequestScope {
        RequestScope::of(principal, session).in_dialect(self.dialect)
    }

    /// Returns the view with this name.
    ///
    /// # Errors
    /// [`NoSuchView`], with the nearest name.
    pub fn view(&self, name: &str) -> Result<&Arc<View>, NoSuchView> {
        self.views.get(name).ok_or_else(|| NoSuchView::new(name, self.views.keys().map(String::as_str)))
    }

    /// Subscribes to all further events.
    pub fn events(&self) -> EventSubscription {
        self.events.subscribe()
    }

    /// Ends a session: discards its approvals, and ends what providers store for it.
    pub async fn session_ended(&self, principal: &Principal, session: &Arc<str>) {
        self.execute_tool.session_ended(principal, session).await;
    }

    /// Closes the application: admits no new calls, gives open ones `drain` to end by themselves, then cancels and
    /// records them, closes the providers, and returns the number of cancelled calls.
    ///
    /// Calls that wait for answers of their clients can resume until they are cancelled.
    pub async fn close(&self, drain: Duration) -> usize {
        self.open_calls.close();
        // Late calls are cancelled below.
        let _ = timeout(drain, self.open_calls.drained()).await;
        let cancelled = self.open_calls.end();
        // A cancelled call has only its audit record left to write.
        let _ = timeout(LAST_RECORDS, self.open_calls.drained()).await;
        self.context.close();
        self.registry.close().await;
        cancelled
    }
}
