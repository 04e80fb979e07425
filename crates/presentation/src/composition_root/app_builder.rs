//! Builder of an application.

use super::{
    SessionLifetime,
    added_providers::AddedProviders,
    application::CallPathOverrides,
    environment::ExternalServiceOverrides,
    stores::StoreReplacements,
    upstream::{ExpectedClients, ServerSelection, UpstreamOptions},
};
use crate::{app::App, config::Config, cores::RuntimePool};
use serde_json::{Map, Value};
use std::{fmt, sync::Arc};
use toolstead_application::DeadlineApprover;
use toolstead_domain::{
    AgentHook, Approver, AutoApprovalRule, ChangeJournal, ContextProvider, ConversationStore, ExecutionLog,
    ModelProvider, OutputStore, QuestionStore, RuleStore, ServerName, SuggestionFormatter, TodoStore, ToolHook,
    ToolProvider, ToolRepository, WebSearch,
};
use toolstead_infrastructure::{
    builtin::{IntoTool, ToolGroup},
    egress::connector::Network,
    mcp::client::config::UpstreamConfig,
};

/// Builder of an application. Every part has a default and can be replaced.
///
/// ```no_run
/// # async fn embed(config: toolstead_presentation::config::Config) -> Result<(), Box<dyn std::error::Error>> {
/// use toolstead_presentation::app::App;
///
/// let running = App::builder(config).build().await?;
/// let tools = running.app.list_tools.handle(&Default::default())?;
/// running.close().await;
/// # Ok(())
/// # }
/// ```
pub struct AppBuilder {
    /// Boxed because it is several kilobytes, which every future that builds an application would otherwise contain.
    pub(super) config: Box<Config>,
    pub(super) environment: ExternalServiceOverrides,
    pub(super) stores: StoreReplacements,
    pub(super) call_path: CallPathOverrides,
    pub(super) added: AddedProviders,
    pub(super) upstreams: UpstreamOptions,
}

impl App {
    /// Returns a builder of an application with this configuration, and with the environment that it was loaded with.
    pub fn builder(config: Config) -> AppBuilder {
        AppBuilder {
            config: Box::new(config),
            environment: ExternalServiceOverrides::default(),
            stores: StoreReplacements::default(),
            call_path: CallPathOverrides::default(),
            added: AddedProviders::default(),
            upstreams: UpstreamOptions::default(),
        }
    }
}

impl fmt::Debug for AppBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppBuilder").field("servers", &self.upstreams.selection).finish_non_exhaustive()
    }
}

impl AppBuilder {
    /// Adds a provider. Its name must be unused. Rules refer to its tools by the names that the provider assigns.
    #[must_use]
    pub fn provider(mut self, provider: Arc<dyn ToolProvider>) -> Self {
        self.added.providers.push(provider);
        self
    }

    /// Adds a provider of resources and prompts. Its name and the names of everything that it offers must be unused.
    /// Rules refer to its requests as `Resource(NAME:URI)` and `Prompt(NAME:PROMPT)`.
    #[must_use]
    pub fn context_provider(mut self, provider: Arc<dyn ContextProvider>) -> Self {
        self.added.context_providers.push(provider);
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
        self.added.upstreams.push(server);
        self
    }

    /// Sets the name of the embedding application. Rules, lists and the audit log refer to the tools that it adds as
    /// `embedded:NAME`. The default name is `program`. No provider and no configured server may have the same name.
    #[must_use]
    pub fn program_name(mut self, name: ServerName) -> Self {
        self.added.program_name = name;
        self
    }

    /// Adds a tool beside the built-in ones, under its own name. Permissions depend on the accesses that it reports;
    /// its annotations grant nothing.
    #[must_use]
    pub fn tool<F>(mut self, tool: impl IntoTool<F>) -> Self {
        self.added.tools.push(Arc::new(tool.into_tool()));
        self
    }

    /// Adds a server within this process. Its tools are named `mcp__{server}__{tool}`. No other server and no provider
    /// may have its name.
    #[must_use]
    pub fn tool_group(mut self, server: ToolGroup) -> Self {
        self.added.groups.push(server);
        self
    }

    /// Adds a hook; hooks run in the order in which they were added, before the configured ones.
    #[must_use]
    pub fn hook(mut self, hook: Arc<dyn ToolHook>) -> Self {
        self.call_path.hooks.push(hook);
        self
    }

    /// Adds a model for agents. It takes precedence over a configured model of the same name. The first added model is
    /// the default if the configuration names none.
    #[must_use]
    pub fn model(mut self, model: Arc<dyn ModelProvider>) -> Self {
        self.environment.models.push(model);
        self
    }

    /// Adds a hook of agents; hooks run in the order in which they were added, before the configured ones.
    #[must_use]
    pub fn agent_hook(mut self, hook: Arc<dyn AgentHook>) -> Self {
        self.call_path.agent_hooks.push(hook);
        self
    }

    /// Replaces the default approver, which asks the MCP client of the call by elicitation. An answer after
    /// `[permissions] approval_timeout` and a panic both refuse the call.
    #[must_use]
    pub fn approver(self, approver: Arc<dyn Approver>) -> Self {
        self.approver_with_own_timeout(Arc::new(DeadlineApprover::new(approver)))
    }

    /// Replaces the approver by one that limits its time itself, from the moment at which the user sees the question.
    #[must_use]
    pub(crate) fn approver_with_own_timeout(mut self, approver: Arc<dyn Approver>) -> Self {
        self.call_path.approver = Some(approver);
        self
    }

    /// Adds a rule with which the embedding application answers an approval request before the user is asked. Rules are
    /// evaluated in the order in which they were added. The audit log names the rule.
    #[must_use]
    pub fn approval_rule(mut self, rule: Arc<dyn AutoApprovalRule>) -> Self {
        self.call_path.approval_rules.push(rule);
        self
    }

    /// Sets the suggestions that users of this application get with a refusal. The default is [`DefaultSuggestions`](toolstead_domain::DefaultSuggestions),
    /// which name no command.
    #[must_use]
    pub fn suggestions(mut self, formatter: Arc<dyn SuggestionFormatter>) -> Self {
        self.call_path.suggestions = formatter;
        self
    }

    /// Replaces the store of rules that the user approved for longer than a session. The default store is the
    /// configuration files.
    #[must_use]
    pub fn rule_store(mut self, store: Arc<dyn RuleStore>) -> Self {
        self.call_path.rule_store = Some(store);
        self
    }

    /// Replaces the tool repository of the configured database.
    #[must_use]
    pub fn tool_repository(mut self, repository: Arc<dyn ToolRepository>) -> Self {
        self.stores.tool_repository = Some(repository);
        self
    }

    /// Replaces the audit log of the configured database.
    #[must_use]
    pub fn execution_log(mut self, log: Arc<dyn ExecutionLog>) -> Self {
        self.stores.execution_log = Some(log);
        self
    }

    /// Replaces the store of large outputs in the configured database. If the tool repository and the audit log are
    /// replaced as well, no database is opened. Without a store, the truncated part of a result is lost, and the result
    /// says so.
    #[must_use]
    pub fn output_store(mut self, store: Arc<dyn OutputStore>) -> Self {
        self.stores.outputs = Some(store);
        self
    }

    /// Replaces the journal of file changes in the configured database. If the tool repository and the audit log are
    /// replaced as well, no database is opened. Without a journal, file changes cannot be undone.
    #[must_use]
    pub fn change_journal(mut self, journal: Arc<dyn ChangeJournal>) -> Self {
        self.stores.journal = Some(journal);
        self
    }

    /// Replaces the store of conversations in the configured database. If the tool repository and the audit log are
    /// replaced as well, no database is opened. Without a store, no conversation can be started.
    #[must_use]
    pub fn conversations(mut self, store: Arc<dyn ConversationStore>) -> Self {
        self.stores.conversations = Some(store);
        self
    }

    /// Replaces the store of plans in the configured database. If the tool repository and the audit log are replaced as
    /// well, no database is opened. Without a store, plans are held in memory.
    #[must_use]
    pub fn todos(mut self, store: Arc<dyn TodoStore>) -> Self {
        self.stores.todos = Some(store);
        self
    }

    /// Replaces the store of questions that wait for an answer. If the tool repository and the audit log are replaced
    /// as well, no database is opened. Without a store, a question fails if no one can answer it immediately.
    #[must_use]
    pub fn questions(mut self, store: Arc<dyn QuestionStore>) -> Self {
        self.stores.questions = Some(store);
        self
    }

    /// Declares that sessions continue in other processes, as those of the command line do. Their read-state of files
    /// is stored in the database. Later processes find detached tasks, except with
    /// [`SessionLifetime::EndsWithConversation`].
    #[must_use]
    pub fn session_lifetime(mut self, session_lifetime: SessionLifetime) -> Self {
        self.environment.session_lifetime = Some(session_lifetime);
        self
    }

    /// Selects the configured MCP servers to start.
    #[must_use]
    pub fn servers(mut self, servers: ServerSelection) -> Self {
        self.upstreams.selection = servers;
        self
    }

    /// Sets the capabilities that clients may have (MCP's `ClientCapabilities`). Servers whose tools depend on them
    /// list those tools. By default, clients cannot be asked.
    #[must_use]
    pub fn client_capabilities(mut self, capabilities: Map<String, Value>) -> Self {
        self.upstreams.clients = ExpectedClients::Any(capabilities);
        self
    }

    /// Declares that a single client will connect, and sets its capabilities (MCP's `ClientCapabilities`). Servers
    /// receive exactly these, so that a server with protocol version 2025-11-25 or older needs only one process. If the
    /// capabilities are known only after the client has connected, only the start of servers waits for them.
    #[must_use]
    pub fn for_one_client(mut self, capabilities: impl Future<Output = Map<String, Value>> + Send + 'static) -> Self {
        self.upstreams.clients = ExpectedClients::One(Box::pin(capabilities));
        self
    }

    /// Starts a server only when it is used, if its tools are known from an earlier run. For long-running processes.
    #[must_use]
    pub fn starting_servers_when_used(mut self) -> Self {
        self.upstreams.starts_when_used = true;
        self
    }

    /// Spreads upstream servers over these runtimes. By default they run on the runtime of the caller.
    #[must_use]
    pub(crate) fn spread_over(mut self, cores: RuntimePool) -> Self {
        self.upstreams.cores = Some(cores);
        self
    }

    /// Replaces the network of the machine for tools that use the network: name resolution and connections.
    #[must_use]
    pub fn network(mut self, network: Arc<dyn Network>) -> Self {
        self.environment.network = network;
        self
    }

    /// Replaces the web search of `[search]`.
    #[must_use]
    pub fn web_search(mut self, search: Arc<dyn WebSearch>) -> Self {
        self.environment.web_search = Some(search);
        self
    }
}
