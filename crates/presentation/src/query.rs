//! An agent in a program: a prompt in, a stream of events out.
//!
//! ```no_run
//! # async fn ask(app: toolstead_presentation::app::App) -> Result<(), Box<dyn std::error::Error>> {
//! use toolstead_domain::agent::event::AgentEvent;
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
    composition_root::program_tools::{ChangeToolsError, ProgramTools},
    config::models::NoSuchModel,
};
use sha2::{Digest, Sha256};
use std::{fmt, sync::Arc, time::Duration};
use toolstead_application::{
    cancel_signal::CancelSignal,
    run_agent::{AgentRun, OfferedTools, RunAgentCommand},
};
use toolstead_domain::{
    agent::{
        budget::Budgets,
        event::{AgentEvent, AgentOutcome},
    },
    client_profile::ClientProfile,
    conversation::ConversationId,
    model::message::{Block, Image},
    permission::rule::{Effect, InvalidRule, PermissionRule, RuleOrigin},
    ports::{
        caller::{Caller, SilentCaller},
        model_provider::ModelProvider,
    },
    principal::Principal,
    scope::View,
    tool_selection::ToolSelection,
};
use toolstead_infrastructure::builtin::in_process_server::InProcessServer;
use uuid::Uuid;

/// The time that a named server has to list its tools.
const PATIENCE: Duration = Duration::from_secs(10);

/// What an agent is asked, and with what it works. Everything but the prompt has a default.
#[must_use = "nothing is asked before `start`"]
pub struct Query {
    app: App,
    prompt: Vec<Block>,
    model: Option<Chosen>,
    system: Option<String>,
    budgets: Budgets,
    /// What was allowed and which servers were named; `None`: neither was said.
    allowed: Option<Vec<String>>,
    servers: Vec<QueryServer>,
    conversation: ConversationId,
    principal: Principal,
    caller: Arc<dyn Caller>,
    client: Arc<ClientProfile>,
}

enum Chosen {
    Named(String),
    Given(Arc<dyn ModelProvider>),
}

/// A server whose tools an agent may use.
#[derive(Debug, Clone)]
pub enum QueryServer {
    /// One that is there as long as the run. No other server may bear its name meanwhile.
    InProcess(InProcessServer),
    /// One that the application has, by name. It is waited for.
    Named(String),
}

/// The reason why an agent was not asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// There is no model to ask.
    #[error(transparent)]
    Model(#[from] NoSuchModel),
    /// What was allowed is no rule.
    #[error("`{}` cannot be allowed: {}", .0.rule, .0.reason)]
    Rule(#[from] InvalidRule),
    /// A server cannot be added.
    #[error(transparent)]
    Tools(#[from] ChangeToolsError),
    /// A server is not there.
    #[error("there is no server named `{0}` in this application")]
    UnknownServer(String),
    /// The application was put together without a place for tools of the program.
    #[error("this application takes no tools of a program: build it with `App::builder`")]
    NoProgramTools,
}

impl App {
    /// Begins to ask an agent.
    pub fn query(&self, prompt: impl Into<String>) -> Query {
        Query {
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

impl Query {
    /// Says what may be called without asking: tools by name, or rules such as `Bash(git *)`. It answers no deny or ask rule
    /// and no hook, and holds in this conversation alone. Once this or [`server`](Self::server) is called, no other tools
    /// are offered than those that are named; without, those that the rules allow or ask about.
    pub fn allowed(mut self, rules: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.allowed.get_or_insert_default().extend(rules.into_iter().map(Into::into));
        self
    }

    /// Offers the tools of a server: one of this program, or one of the application by name. What calls of them touch is
    /// judged as ever; `allowed(["mcp__NAME__*"])` answers what would be asked.
    pub fn server(mut self, server: impl Into<QueryServer>) -> Self {
        self.allowed.get_or_insert_default();
        self.servers.push(server.into());
        self
    }

    /// Asks this model, by its name in the configuration.
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.model = Some(Chosen::Named(name.into()));
        self
    }

    /// Asks this model.
    pub fn model_provider(mut self, model: Arc<dyn ModelProvider>) -> Self {
        self.model = Some(Chosen::Given(model));
        self
    }

    /// Instructions that stand before everything, instead of the configured ones.
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.system = Some(text.into());
        self
    }

    /// An image, which stands before the prompt.
    pub fn image(mut self, image: Image) -> Self {
        self.prompt.insert(0, Block::Image(image));
        self
    }

    /// What the run may use up, instead of the configured bounds.
    pub fn budgets(mut self, budgets: Budgets) -> Self {
        self.budgets = budgets;
        self
    }

    /// Goes on with this conversation, or begins it under this id.
    pub fn conversation(mut self, id: ConversationId) -> Self {
        self.conversation = id;
        self
    }

    /// On whose behalf. Without it, on behalf of the person at this machine.
    pub fn principal(mut self, principal: Principal) -> Self {
        self.principal = principal;
        self
    }

    /// Hears progress and log messages of calls, and answers what tools ask; `client` says what can be asked.
    pub fn caller(mut self, client: ClientProfile, caller: Arc<dyn Caller>) -> Self {
        (self.client, self.caller) = (Arc::new(client), caller);
        self
    }

    /// Asks. The run goes on in a task of its own. To be called within a tokio runtime.
    ///
    /// # Errors
    /// [`QueryError`]; then nothing was asked, and nothing is left of it.
    pub async fn start(self) -> Result<QueryRun, QueryError> {
        let model = match &self.model {
            Some(Chosen::Given(model)) => model.clone(),
            Some(Chosen::Named(name)) => self.app.models.find(Some(name))?,
            None => self.app.models.find(None)?,
        };
        let summarizer = self.app.agent.settings.summarizer.as_deref();
        let summarizer = summarizer.map(|name| self.app.models.find(Some(name))).transpose()?;
        let parsed =
            |rule: &String| PermissionRule::parse(Effect::Allow, rule, RuleOrigin::Program, &self.app.agent.rules);
        let rules = self.allowed.iter().flatten().map(parsed).collect::<Result<Vec<_>, _>>()?;
        let mut run = QueryRun { run: None, conversation: self.conversation, added: Vec::new(), tools: None };
        for server in &self.servers {
            match server {
                QueryServer::InProcess(server) => {
                    let tools = self.app.agent.program_tools.clone().ok_or(QueryError::NoProgramTools)?;
                    tools.serve(server.clone()).await?;
                    run.added.push(server.name().to_string());
                    run.tools = Some(tools);
                }
                QueryServer::Named(name) => {
                    if !self.app.registry.providers().iter().any(|provider| provider.name == *name) {
                        return Err(QueryError::UnknownServer(name.clone()));
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
        let workspace = self.app.permissions.policy_of(&scope).workspace().start().map(ToOwned::to_owned);
        run.run = Some(self.app.run_agent.start(RunAgentCommand {
            prompt: self.prompt.clone(),
            conversation: self.conversation,
            model,
            summarizer,
            system: self.app.agent.system(self.system.clone(), &workspace.unwrap_or_default()),
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

    /// The tools that are named.
    fn selection(&self, rules: &[String]) -> ToolSelection {
        let of_rules = rules.iter().map(|rule| rule.split('(').next().unwrap_or(rule).trim().to_owned());
        let of_servers = self.servers.iter().map(|server| format!("mcp__{}__*", server.name()));
        ToolSelection::only(of_rules.chain(of_servers))
    }

    /// A window on these tools, which is the same for the same tools and rules: what a person approves through it holds
    /// in the next run of the conversation that is asked for with them.
    fn view(&self, rules: &[String], selection: ToolSelection) -> Arc<View> {
        let mut digest = Sha256::new();
        for part in rules.iter().map(String::as_str).chain(self.servers.iter().map(QueryServer::name)) {
            digest.update(part.len().to_be_bytes());
            digest.update(part);
        }
        let name: String = digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        window(&self.app, format!("query-{name}"), selection)
    }
}

/// A window through which these tools alone are seen. All else is as the policy in force says.
pub(crate) fn window(app: &App, name: String, selection: ToolSelection) -> Arc<View> {
    View::new(name, Arc::new(app.policy.window(selection)))
}

impl QueryServer {
    fn name(&self) -> &str {
        match self {
            Self::InProcess(server) => server.name().as_str(),
            Self::Named(name) => name,
        }
    }
}

impl From<InProcessServer> for QueryServer {
    fn from(server: InProcessServer) -> Self {
        Self::InProcess(server)
    }
}

impl From<&str> for QueryServer {
    fn from(name: &str) -> Self {
        Self::Named(name.to_owned())
    }
}

impl fmt::Debug for Query {
    /// Without the prompt, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query").field("conversation", &self.conversation).finish_non_exhaustive()
    }
}

/// An agent at work. Dropping it takes the run back.
#[derive(Debug)]
pub struct QueryRun {
    run: Option<AgentRun>,
    conversation: ConversationId,
    /// The servers that are there as long as the run.
    added: Vec<String>,
    tools: Option<Arc<ProgramTools>>,
}

impl QueryRun {
    /// The conversation, to go on with.
    pub fn conversation(&self) -> ConversationId {
        self.conversation
    }

    /// The next event; `None` after [`AgentEvent::Ended`].
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

    /// What the model says last, once it is done.
    ///
    /// # Errors
    /// The end of the run, where the model was not done.
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

impl Drop for QueryRun {
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

async fn withdraw(added: Vec<String>, tools: Option<Arc<ProgramTools>>) {
    let Some(tools) = tools else { return };
    for server in added {
        // Somebody may have withdrawn it already.
        let _ = tools.withdraw(&server).await;
    }
}
