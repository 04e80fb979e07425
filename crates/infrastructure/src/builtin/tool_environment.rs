//! The environment of the built-in tools: workspace, stores, services and limits.

use crate::{
    browser::browsers::Browsers,
    builtin::{
        blocking::on_blocking_thread,
        commands::{
            programs::Programs,
            tasks::{Tasks, working::WorkAsTasks},
        },
        files::{file_limits::FileLimits, read_state::InMemoryReadState, reverting::planned_reverts::PlannedReverts},
        image_answer_cache::ImageAnswerCache,
        page_cache::PageCache,
        plans_in_memory::PlansInMemory,
        text::line_index::LineIndexes,
    },
    egress::{connector::SystemNetwork, host::HostPatterns},
    sandbox::{helper::Helpers, workspace::Workspace},
    services::{search::SearchService, settings::Services},
    web::{robots::Robots, web_client::WebClient},
};
use std::{fmt, sync::Arc};
use tokio::sync::Semaphore;
use toolstead_domain::{
    AgentCatalogue, ChangeJournal, Clock, Credentials, EventSink, Models, NoAccounts, NoAgents, NoEvents, NoJournal,
    NoModels, PathAccess, QuestionStore, ReadState, Timestamp, TodoStore, ToolFailure, WebSearch,
};

/// Environment of the built-in tools, shared by all calls of the process.
#[derive(Clone)]
pub struct ToolEnvironment {
    workspace: Arc<Workspace>,
    clock: Arc<dyn Clock>,
    version: String,
    limits: FileLimits,
    journal: Arc<dyn ChangeJournal>,
    events: Arc<dyn EventSink>,
    read_state: Arc<dyn ReadState>,
    planned_reverts: Arc<PlannedReverts>,
    lines: Arc<LineIndexes>,
    helpers: Arc<Helpers>,
    programs: Arc<Programs>,
    tasks: Arc<Tasks>,
    decoding: Arc<Semaphore>,
    agents: Arc<dyn AgentCatalogue>,
    models: Arc<dyn Models>,
    todos: Arc<dyn TodoStore>,
    questions: Option<Arc<dyn QuestionStore>>,
    image_answers: Arc<ImageAnswerCache>,
    page_cache: Arc<PageCache>,
    robots: Option<Arc<Robots>>,
    web_client: WebClient,
    services: Arc<Services>,
    web_search: Option<Arc<dyn WebSearch>>,
    credentials: Arc<dyn Credentials>,
    browsers: Arc<Browsers>,
}

/// Maximum number of images that are decoded at once.
const DECODED_AT_ONCE: usize = 4;

impl ToolEnvironment {
    /// Creates an environment with the default limits and without a journal. `version` is the name of the application
    /// with its version, for reports: `Toolstead 0.1.0`.
    pub fn new(workspace: Arc<Workspace>, clock: Arc<dyn Clock>, version: String) -> Self {
        Self {
            workspace,
            clock,
            version,
            limits: FileLimits::default(),
            journal: Arc::new(NoJournal),
            events: Arc::new(NoEvents),
            read_state: Arc::new(InMemoryReadState::default()),
            planned_reverts: Arc::default(),
            lines: Arc::default(),
            helpers: Arc::default(),
            programs: Arc::default(),
            tasks: Arc::default(),
            decoding: Arc::new(Semaphore::new(DECODED_AT_ONCE)),
            agents: Arc::new(NoAgents),
            models: Arc::new(NoModels),
            todos: Arc::new(PlansInMemory::default()),
            questions: None,
            image_answers: Arc::default(),
            page_cache: Arc::default(),
            robots: None,
            web_client: WebClient::new(Arc::new(SystemNetwork::default()), HostPatterns::default()),
            services: Arc::default(),
            web_search: None,
            credentials: Arc::new(NoAccounts),
            browsers: Arc::default(),
        }
    }

    /// Sets the limits.
    #[must_use]
    pub fn with_limits(self, limits: FileLimits) -> Self {
        Self { limits, ..self }
    }

    /// Records file changes in this journal, so that they can be undone.
    #[must_use]
    pub fn with_journal(self, journal: Arc<dyn ChangeJournal>) -> Self {
        Self { journal, ..self }
    }

    /// Publishes events to this sink.
    #[must_use]
    pub fn with_events(self, events: Arc<dyn EventSink>) -> Self {
        Self { events, ..self }
    }

    /// Stores the read-state of each session there, instead of in memory.
    #[must_use]
    pub fn with_read_state(self, seen: Arc<dyn ReadState>) -> Self {
        Self { read_state: seen, ..self }
    }

    /// Reads documents with these helper processes.
    #[must_use]
    pub fn with_helpers(self, helpers: Arc<Helpers>) -> Self {
        Self { helpers, ..self }
    }

    /// Sets the launcher of programs.
    #[must_use]
    pub fn with_programs(self, programs: Arc<Programs>) -> Self {
        Self { programs, ..self }
    }

    /// Sets the registry of background tasks.
    #[must_use]
    pub fn with_tasks(self, tasks: Arc<Tasks>) -> Self {
        Self { tasks, ..self }
    }

    /// Sets the agents, skills and commands.
    #[must_use]
    pub fn with_agents(self, agents: Arc<dyn AgentCatalogue>) -> Self {
        Self { agents, ..self }
    }

    /// Sets the models.
    #[must_use]
    pub fn with_models(self, models: Arc<dyn Models>) -> Self {
        Self { models, ..self }
    }

    /// Stores plans there, instead of in memory.
    #[must_use]
    pub fn with_todos(self, todos: Arc<dyn TodoStore>) -> Self {
        Self { todos, ..self }
    }

    /// Stores questions there that cannot be answered during the call. Without a store such questions fail.
    #[must_use]
    pub fn with_questions(self, questions: Arc<dyn QuestionStore>) -> Self {
        Self { questions: Some(questions), ..self }
    }

    /// Sets the client for requests to hosts.
    #[must_use]
    pub fn with_web_client(self, reach: WebClient) -> Self {
        Self { web_client: reach, ..self }
    }

    /// Enables or disables the check of `robots.txt` before a page is fetched.
    #[must_use]
    pub fn with_robots_check(self, respects: bool) -> Self {
        Self { robots: respects.then(Arc::default), ..self }
    }

    /// Sets the services.
    #[must_use]
    pub fn with_services(self, services: Arc<Services>) -> Self {
        Self { services, ..self }
    }

    /// Sets the web search, instead of that of the services.
    #[must_use]
    pub fn with_web_search(self, search: Arc<dyn WebSearch>) -> Self {
        Self { web_search: Some(search), ..self }
    }

    /// Sets the credentials for services.
    #[must_use]
    pub fn with_credentials(self, credentials: Arc<dyn Credentials>) -> Self {
        Self { credentials, ..self }
    }

    /// Sets the browsers.
    #[must_use]
    pub fn with_browsers(self, browsers: Arc<Browsers>) -> Self {
        Self { browsers, ..self }
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

    /// Returns the limits of file tools.
    pub fn limits(&self) -> &FileLimits {
        &self.limits
    }

    pub(super) fn journal(&self) -> &Arc<dyn ChangeJournal> {
        &self.journal
    }

    pub(super) fn events(&self) -> &Arc<dyn EventSink> {
        &self.events
    }

    pub(super) fn read_state(&self) -> &Arc<dyn ReadState> {
        &self.read_state
    }

    /// Returns the journal entries on which the decisions about undo and redo calls were based.
    pub(super) fn planned_reverts(&self) -> &PlannedReverts {
        &self.planned_reverts
    }

    /// Returns the line indexes of large files, as far as the files were read.
    pub(super) fn lines(&self) -> &Arc<LineIndexes> {
        &self.lines
    }

    /// Returns the client for requests to hosts.
    pub fn web_client(&self) -> &WebClient {
        &self.web_client
    }

    /// Returns the configured services.
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Returns the web search.
    ///
    /// # Errors
    /// The reason why none is available, for users.
    pub fn web_search(&self) -> Result<Arc<dyn WebSearch>, String> {
        if let Some(own) = &self.web_search {
            return Ok(own.clone());
        }
        let (settings, reach) = (self.services.search.clone()?, self.web_client.clone());
        Ok(Arc::new(SearchService::new(settings, reach, self.helpers.clone(), self.clock.clone())))
    }

    /// Returns the browsers of sessions.
    pub(super) fn browsers(&self) -> &Browsers {
        &self.browsers
    }

    /// Returns the credentials of principals.
    pub fn credentials(&self) -> &dyn Credentials {
        &*self.credentials
    }

    pub(super) fn models(&self) -> &Arc<dyn Models> {
        &self.models
    }

    pub(super) fn todos(&self) -> &Arc<dyn TodoStore> {
        &self.todos
    }

    pub(super) fn questions(&self) -> Option<&Arc<dyn QuestionStore>> {
        self.questions.as_ref()
    }

    /// Returns the cached answers of models about images.
    pub(super) fn image_answers(&self) -> &ImageAnswerCache {
        &self.image_answers
    }

    /// Returns the cached web responses.
    pub(super) fn page_cache(&self) -> &PageCache {
        &self.page_cache
    }

    /// Returns the `robots.txt` rules of sites, if they are checked.
    pub(super) fn robots(&self) -> Option<&Robots> {
        self.robots.as_deref()
    }

    /// Returns the helper processes that read documents.
    pub(super) fn helpers(&self) -> &Helpers {
        &self.helpers
    }

    pub(super) fn agents(&self) -> &dyn AgentCatalogue {
        &*self.agents
    }

    pub(super) fn programs(&self) -> &Arc<Programs> {
        &self.programs
    }

    pub(super) fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Returns a port that runs work in the background, beside commands.
    pub fn work_as_tasks(&self) -> Arc<dyn toolstead_domain::ports::tasks::Tasks> {
        Arc::new(WorkAsTasks {
            tasks: self.tasks.clone(),
            settings: self.programs.settings().clone(),
            clock: self.clock.clone(),
            events: self.events.clone(),
        })
    }

    /// Returns the semaphore that limits the images decoded at once: each takes some hundred megabytes at worst.
    pub(super) fn decoding(&self) -> &Arc<Semaphore> {
        &self.decoding
    }

    /// Finds the tasks that other processes own.
    ///
    /// # Errors
    /// `io` when the search fails.
    pub(super) async fn find_detached_tasks(&self) -> Result<(), ToolFailure> {
        self.tasks.find_detached(self.programs.settings(), self.clock.now()).await
    }

    /// Returns the access of a call that names this path. A missing path is not an error.
    ///
    /// # Errors
    /// `invalid_input` when the text is not a path.
    pub async fn access(&self, path: &str) -> Result<PathAccess, ToolFailure> {
        let (workspace, path) = (self.workspace.clone(), path.to_owned());
        on_blocking_thread(move || Ok(workspace.access(&path)?)).await
    }
}

impl fmt::Debug for ToolEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("workspace", &self.workspace)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}
