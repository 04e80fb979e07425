//! The environment of the built-in tools: workspace, stores, services and limits.

mod agents;
mod files;
mod processes;
mod web;

use crate::{
    browser::browsers::Browsers,
    builtin::{
        commands::{
            programs::ProgramLauncher,
            tasks::{Tasks, agent_task_starter::AgentTaskStarter},
        },
        files::file_limits::FileLimits,
        tool_kit::blocking::on_blocking_thread,
    },
    sandbox::{helper::HelperLauncher, workspace::Workspace},
    services::{search::SearchService, settings::ServiceSettings},
    web::web_client::WebClient,
};
pub use agents::AgentEnvironment;
pub use files::FileEnvironment;
pub use processes::ProcessServices;
use std::{fmt, sync::Arc};
use toolstead_domain::{
    AccessPath, AgentCatalogue, ChangeJournal, Clock, Credentials, EventSink, Models, NoEvents, QuestionStore,
    ReadState, Timestamp, TodoStore, ToolFailure, WebSearch,
};
pub use web::WebEnvironment;

/// Environment of the built-in tools, shared by all calls of the process.
#[derive(Clone)]
pub struct ToolEnvironment {
    workspace: Arc<Workspace>,
    clock: Arc<dyn Clock>,
    version: String,
    events: Arc<dyn EventSink>,
    files: FileEnvironment,
    processes: ProcessServices,
    web: WebEnvironment,
    agents: AgentEnvironment,
}

impl ToolEnvironment {
    /// Creates an environment with the default limits and without a journal. `version` is the name of the application
    /// with its version, for reports: `Toolstead 0.1.0`.
    pub fn new(workspace: Arc<Workspace>, clock: Arc<dyn Clock>, version: String) -> Self {
        Self {
            workspace,
            clock,
            version,
            events: Arc::new(NoEvents),
            files: FileEnvironment::default(),
            processes: ProcessServices::default(),
            web: WebEnvironment::default(),
            agents: AgentEnvironment::default(),
        }
    }

    /// Sets the limits.
    #[must_use]
    pub fn with_limits(mut self, limits: FileLimits) -> Self {
        self.files.limits = limits;
        self
    }

    /// Records file changes in this journal, so that they can be undone.
    #[must_use]
    pub fn with_journal(mut self, journal: Arc<dyn ChangeJournal>) -> Self {
        self.files.journal = journal;
        self
    }

    /// Publishes events to this sink.
    #[must_use]
    pub fn with_events(self, events: Arc<dyn EventSink>) -> Self {
        Self { events, ..self }
    }

    /// Stores the read-state of each session in this store, instead of in memory.
    #[must_use]
    pub fn with_read_state(mut self, seen: Arc<dyn ReadState>) -> Self {
        self.files.read_state = seen;
        self
    }

    /// Reads documents with these helper processes.
    #[must_use]
    pub fn with_helpers(mut self, helpers: Arc<HelperLauncher>) -> Self {
        self.processes.helpers = helpers;
        self
    }

    /// Sets the launcher of programs.
    #[must_use]
    pub fn with_programs(mut self, programs: Arc<ProgramLauncher>) -> Self {
        self.processes.programs = programs;
        self
    }

    /// Sets the registry of background tasks.
    #[must_use]
    pub fn with_tasks(mut self, tasks: Arc<Tasks>) -> Self {
        self.processes.tasks = tasks;
        self
    }

    /// Sets the agents, skills and commands.
    #[must_use]
    pub fn with_agents(mut self, agents: Arc<dyn AgentCatalogue>) -> Self {
        self.agents.catalogue = agents;
        self
    }

    /// Sets the models.
    #[must_use]
    pub fn with_models(mut self, models: Arc<dyn Models>) -> Self {
        self.agents.models = models;
        self
    }

    /// Stores plans in this store, instead of in memory.
    #[must_use]
    pub fn with_todos(mut self, todos: Arc<dyn TodoStore>) -> Self {
        self.agents.todos = todos;
        self
    }

    /// Stores questions that cannot be answered during the call in this store. Without a store such questions fail.
    #[must_use]
    pub fn with_questions(mut self, questions: Arc<dyn QuestionStore>) -> Self {
        self.agents.questions = Some(questions);
        self
    }

    /// Sets the client for requests to hosts.
    #[must_use]
    pub fn with_web_client(mut self, reach: WebClient) -> Self {
        self.web.client = reach;
        self
    }

    /// Enables or disables the check of `robots.txt` before a page is fetched.
    #[must_use]
    pub fn with_robots_check(mut self, respects: bool) -> Self {
        self.web.robots = respects.then(Arc::default);
        self
    }

    /// Sets the services.
    #[must_use]
    pub fn with_services(mut self, services: Arc<ServiceSettings>) -> Self {
        self.web.services = services;
        self
    }

    /// Sets the web search, instead of that of the services.
    #[must_use]
    pub fn with_web_search(mut self, search: Arc<dyn WebSearch>) -> Self {
        self.web.web_search = Some(search);
        self
    }

    /// Sets the credentials for services.
    #[must_use]
    pub fn with_credentials(mut self, credentials: Arc<dyn Credentials>) -> Self {
        self.web.credentials = credentials;
        self
    }

    /// Sets the browsers.
    #[must_use]
    pub fn with_browsers(mut self, browsers: Arc<Browsers>) -> Self {
        self.web.browsers = browsers;
        self
    }

    /// Returns the folders that tools may work in.
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the name and version of the application.
    pub fn version(&self) -> &str {
        &self.version
    }

    pub(in crate::builtin) fn events(&self) -> &Arc<dyn EventSink> {
        &self.events
    }

    /// Returns the part that file tools use.
    pub fn files(&self) -> &FileEnvironment {
        &self.files
    }

    /// Returns the part that runs programs.
    pub fn processes(&self) -> &ProcessServices {
        &self.processes
    }

    /// Returns the part that reaches hosts.
    pub fn web(&self) -> &WebEnvironment {
        &self.web
    }

    /// Returns the part that agents use.
    pub fn agents(&self) -> &AgentEnvironment {
        &self.agents
    }

    /// Returns the web search.
    ///
    /// # Errors
    /// The reason why none is available, for users.
    pub fn web_search(&self) -> Result<Arc<dyn WebSearch>, String> {
        if let Some(own) = &self.web.web_search {
            return Ok(own.clone());
        }
        let (settings, reach) = (self.web.services.search.clone()?, self.web.client.clone());
        Ok(Arc::new(SearchService::new(settings, reach, self.processes.helpers.clone(), self.clock.clone())))
    }

    /// Returns a port that runs work in the background, beside commands.
    pub fn work_as_tasks(&self) -> Arc<dyn toolstead_domain::ports::tasks::TaskStarter> {
        Arc::new(AgentTaskStarter {
            tasks: self.processes.tasks.clone(),
            settings: self.processes.programs.settings().clone(),
            clock: self.clock.clone(),
            events: self.events.clone(),
        })
    }

    /// Finds the background tasks that other processes own, and adds them to the registry of tasks.
    ///
    /// # Errors
    /// `io` when the search fails.
    pub(in crate::builtin) async fn find_detached_tasks(&self) -> Result<(), ToolFailure> {
        self.processes.tasks.find_detached(self.processes.programs.settings(), self.clock.now()).await
    }

    /// Returns the access of a call that names this path. A missing path is not an error.
    ///
    /// # Errors
    /// `invalid_input` when the text is not a path.
    pub async fn access(&self, path: &str) -> Result<AccessPath, ToolFailure> {
        let (workspace, path) = (self.workspace.clone(), path.to_owned());
        on_blocking_thread(move || Ok(workspace.access(&path)?)).await
    }
}

impl fmt::Debug for ToolEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolEnvironment")
            .field("workspace", &self.workspace)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}
