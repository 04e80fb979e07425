//! Runs an agent in an embedding application: takes a prompt and returns a stream of events.
//!
//! ```no_run
//! # async fn ask(app: toolstead_presentation::app::App) -> Result<(), Box<dyn std::error::Error>> {
//! use toolstead_domain::AgentEvent;
//!
//! let mut run = app.query("Why does the build fail?").allowed(["read_file", "Bash(cargo check)"]).start().await?;
//! while let Some(event) = run.next().await {
//!     if let AgentEvent::Text(text) = event {
//!         print!("{text}");
//!     }
//! }
//! # Ok(())
//! # }
//! ```

use crate::{
    app::App,
    composition_root::custom_tool_registry::{ChangeToolsError, CustomToolRegistry},
    config::sections::models::ModelSelectionError,
};
use sha2::{Digest, Sha256};
use std::{fmt, sync::Arc, time::Duration};
use toolstead_application::{AgentRunHandle, CancelSignal, OfferedTools, RunAgentCommand, tool_deferral::SEARCH_TOOLS};
use toolstead_domain::{
    AgentEvent, AgentOutcome, Block, Budgets, Caller, ClientProfile, ConversationId, Effect, Image, InvalidRule,
    ModelProvider, PermissionRule, Principal, SilentCaller, ToolSelection, View, permission::rule::RuleOrigin,
};
use toolstead_infrastructure::builtin::ToolGroup;
use uuid::Uuid;

/// Maximum time to wait before a run until the servers of the application have listed their tools.
const PATIENCE: Duration = Duration::from_secs(10);

/// Request to run an agent. Everything but the prompt has a default.
#[must_use = "the query runs only after `start`"]
pub struct AgentQuery {
    app: App,
    prompt: Vec<Block>,
    model: Option<ModelSelection>,
    system: Option<String>,
    budgets: Budgets,
    /// Rules of the allowed tools; `None` if neither `allowed` nor `server` was called.
    allowed: Option<Vec<String>>,
    servers: Vec<AgentToolServer>,
    conversation: ConversationId,
    principal: Principal,
    caller: Arc<dyn Caller>,
    client: Arc<ClientProfile>,
}

enum ModelSelection {
    Named(String),
    Provider(Arc<dyn ModelProvider>),
}

/// A server whose tools an agent may use.
#[derive(Debug, Clone)]
pub enum AgentToolServer {
    /// A server in this process that exists as long as the run. No other server may have its name during that time.
    InProcess(ToolGroup),
    /// A server of the application, by name. The run waits for it.
    Named(String),
}

/// Reason why an agent was not started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentStartError {
    /// There is no model to use.
    #[error(transparent)]
    Model(#[from] ModelSelectionError),
    /// An allowed rule is invalid.
    #[error("`{}` cannot be allowed: {}", .0.rule, .0.reason)]
    Rule(#[from] InvalidRule),
    /// A server cannot be added.
    #[error(transparent)]
    Tools(#[from] ChangeToolsError),
    /// A named server does not exist.
    #[error("there is no server named `{0}` in this application")]
    UnknownServer(String),
    /// The application was built without support for tools of an embedding application.
    #[error("this application takes no tools of a program: build it with `App::builder`")]
    NoProgramTools,
}

impl App {
    /// Creates a request to run an agent.
    pub fn query(&self, prompt: impl Into<String>) -> AgentQuery {
        AgentQuery {
            app: self.clone(),
            prompt: vec![Block::text(prompt)],
            model: None,
            system: None,
            budgets: self.agent.settings.budgets.clone(),
            allowed: None,
            servers: Vec::new(),
            conversation: ConversationId(Uuid::now_v7()),
            principal: Principal::local(),
            caller: Arc::new(SilentCaller),
            client: Arc::new(ClientProfile::without_protocol("query")),
        }
    }
}

impl AgentQuery {
    /// Allows tools by name, or calls by rules such as `Bash(git *)`, without approval. This does not override deny
    /// rules, ask rules or hooks, and applies only to this conversation. Once this method or [`server`](Self::server)
    /// is called, only the named tools are offered; otherwise, all tools that the rules allow or ask for.
    pub fn allowed(mut self, rules: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.allowed.get_or_insert_default().extend(rules.into_iter().map(Into::into));
        self
    }

    /// Offers the tools of a server: one in this process, or one of the application by name. Permissions still apply to
    /// the accesses of its calls; `allowed(["mcp__NAME__*"])` allows them without approval.
    pub fn server(mut self, server: impl Into<AgentToolServer>) -> Self {
        self.allowed.get_or_insert_default();
        self.servers.push(server.into());
        self
    }

    /// Sets the model by its configured name.
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.model = Some(ModelSelection::Named(name.into()));
        self
    }

    /// Sets the model.
    pub fn model_provider(mut self, model: Arc<dyn ModelProvider>) -> Self {
        self.model = Some(ModelSelection::Provider(model));
        self
    }

    /// Sets the instructions, which replace the configured ones, the description of the surroundings, and the
    /// instructions of files.
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.system = Some(text.into());
        self
    }

    /// Adds an image before the prompt.
    pub fn image(mut self, image: Image) -> Self {
        self.prompt.insert(0, Block::Image(image));
        self
    }

    /// Sets the budgets, which replace the configured ones.
    pub fn budgets(mut self, budgets: Budgets) -> Self {
        self.budgets = budgets;
        self
    }

    /// Continues this conversation, or starts it with this id.
    pub fn conversation(mut self, id: ConversationId) -> Self {
        self.conversation = id;
        self
    }

    /// Sets the principal. The default is the local user.
    pub fn principal(mut self, principal: Principal) -> Self {
        self.principal = principal;
        self
    }

    /// Sets the caller, which receives progress and log messages of calls and answers questions of tools. `client`
    /// declares which questions it supports.
    pub fn caller(mut self, client: ClientProfile, caller: Arc<dyn Caller>) -> Self {
        (self.client, self.caller) = (Arc::new(client), caller);
        self
    }

    /// Starts the run in a separate task. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`AgentStartError`]. Nothing was started then.
    pub async fn start(self) -> Result<AgentQueryRun, AgentStartError> {
        let model = match &self.model {
            Some(ModelSelection::Provider(model)) => model.clone(),
            Some(ModelSelection::Named(name)) => self.app.models.find(Some(name))?,
            None => self.app.models.find(None)?,
        };
        let summarizer = self.app.agent.settings.summarizer.as_deref();
        let summarizer = summarizer.map(|name| self.app.models.find(Some(name))).transpose()?;
        let parsed =
            |rule: &String| PermissionRule::parse(Effect::Allow, rule, RuleOrigin::Program, &self.app.agent.rules);
        let rules = self.allowed.iter().flatten().map(parsed).collect::<Result<Vec<_>, _>>()?;
        let mut run = AgentQueryRun { run: None, conversation: self.conversation, added: Vec::new(), tools: None };
        for server in &self.servers {
            match server {
                AgentToolServer::InProcess(server) => {
                    let tools = self.app.agent.program_tools.clone().ok_or(AgentStartError::NoProgramTools)?;
                    tools.serve(server.clone()).await?;
                    run.added.push(server.name().to_string());
                    run.tools = Some(tools);
                }
                AgentToolServer::Named(name) => {
                    if !self.app.registry.providers().iter().any(|provider| provider.name == *name) {
                        return Err(AgentStartError::UnknownServer(name.clone()));
                    }
                }
            }
        }
        self.app.registry.settled(PATIENCE).await;
        let mut scope = self.app.scope(self.principal.clone(), self.conversation.session());
        let mut offered = OfferedTools::Listed;
        if let Some(named) = &self.allowed {
            let selection = self.selection(named);
            scope = scope.through(self.view(named, selection.clone()));
            offered = OfferedTools::Chosen(selection);
            self.app.permissions.allow_in_session(&scope, rules);
        }
        run.run = Some(self.app.run_agent.start(RunAgentCommand {
            prompt: self.prompt.clone(),
            conversation: self.conversation,
            model,
            summarizer,
            system: self.app.agent.system(self.system.clone()),
            has_surroundings: self.system.is_none(),
            budgets: self.budgets.clone(),
            compaction: self.app.agent.compaction(),
            scope,
            offered,
            profile: None,
            client: self.client.clone(),
            caller: self.caller.clone(),
            cancel: CancelSignal::new(),
        }));
        Ok(run)
    }

    /// Returns the selection of the tools that these rules name, and of all tools of the servers.
    fn selection(&self, rules: &[String]) -> ToolSelection {
        let of_rules = rules.iter().map(|rule| rule.split('(').next().unwrap_or(rule).trim().to_owned());
        let of_servers = self.servers.iter().map(|server| format!("mcp__{}__*", server.name()));
        ToolSelection::only(of_rules.chain(of_servers))
    }

    /// Returns a restricted view of these tools. Its name depends only on the tools and rules: an approval of the user
    /// through it is also valid in later runs of the conversation with the same tools and rules.
    fn view(&self, rules: &[String], selection: ToolSelection) -> Arc<View> {
        let mut digest = Sha256::new();
        for part in rules.iter().map(String::as_str).chain(self.servers.iter().map(AgentToolServer::name)) {
            digest.update(part.len().to_be_bytes());
            digest.update(part);
        }
        let name: String = digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        restricted_view(&self.app, format!("query-{name}"), selection)
    }
}

/// Returns a restricted view of only these tools, and of the tools that search and call others if the selection has
/// patterns. Otherwise the configured policy applies.
pub(crate) fn restricted_view(app: &App, name: String, selection: ToolSelection) -> Arc<View> {
    let selection = selection.with_tools_beside_patterns(&SEARCH_TOOLS);
    View::new(name, Arc::new(app.policy.window(selection)))
}

impl AgentToolServer {
    fn name(&self) -> &str {
        match self {
            Self::InProcess(server) => server.name().as_str(),
            Self::Named(name) => name,
        }
    }
}

impl From<ToolGroup> for AgentToolServer {
    fn from(server: ToolGroup) -> Self {
        Self::InProcess(server)
    }
}

impl From<&str> for AgentToolServer {
    fn from(name: &str) -> Self {
        Self::Named(name.to_owned())
    }
}

impl fmt::Debug for AgentQuery {
    /// Omits the prompt, which may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentQuery").field("conversation", &self.conversation).finish_non_exhaustive()
    }
}

/// A running agent. Dropping it cancels the run.
#[derive(Debug)]
pub struct AgentQueryRun {
    run: Option<AgentRunHandle>,
    conversation: ConversationId,
    /// Servers that exist as long as the run.
    added: Vec<String>,
    tools: Option<Arc<CustomToolRegistry>>,
}

impl AgentQueryRun {
    /// Returns the id of the conversation, for continuing it.
    pub fn conversation(&self) -> ConversationId {
        self.conversation
    }

    /// Returns the next event; `None` after [`AgentEvent::Ended`]. Removes the servers of the run once it has ended.
    pub async fn next(&mut self) -> Option<AgentEvent> {
        let event = match &mut self.run {
            Some(run) => run.next().await,
            None => None,
        };
        if matches!(event, None | Some(AgentEvent::Ended { .. })) {
            self.run = None;
            withdraw(std::mem::take(&mut self.added), self.tools.take()).await;
        }
        event
    }

    /// Waits for the end of the run, and returns the last text of the model.
    ///
    /// # Errors
    /// The outcome of the run if it did not finish normally.
    pub async fn answer(mut self) -> Result<String, AgentOutcome> {
        while let Some(event) = self.next().await {
            match event {
                AgentEvent::Ended { outcome: AgentOutcome::Finished, text, .. } => return Ok(text),
                AgentEvent::Ended { outcome, .. } => return Err(outcome),
                _ => {}
            }
        }
        Err(AgentOutcome::Cancelled)
    }
}

impl Drop for AgentQueryRun {
    fn drop(&mut self) {
        self.run = None;
        let (added, tools) = (std::mem::take(&mut self.added), self.tools.take());
        if !added.is_empty()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(withdraw(added, tools));
        }
    }
}

async fn withdraw(added: Vec<String>, tools: Option<Arc<CustomToolRegistry>>) {
    let Some(tools) = tools else { return };
    for server in added {
        // The application may already have removed the server.
        let _ = tools.withdraw(&server).await;
    }
}
