//! What built-in tools know of their surroundings.

use crate::{
    browser::browsers::Browsers,
    builtin::{
        blocking::on_blocking_thread,
        commands::{
            programs::Programs,
            tasks::{Tasks, working::WorkAsTasks},
        },
        files::{file_limits::FileLimits, reverting::judged::JudgedEntries, seen_files::SeenInMemory},
        plans_in_memory::PlansInMemory,
        seen_images::SeenImages,
        seen_pages::SeenPages,
        text::line_index::LineIndexes,
    },
    egress::{connector::SystemNetwork, host::HostPatterns},
    sandbox::{helper::Helpers, workspace::Workspace},
    services::{search::SearchService, settings::Services},
    web::{reach::Reach, robots::Robots},
};
use std::{fmt, sync::Arc};
use tokio::sync::Semaphore;
use toolstead_domain::{
    access::PathAccess,
    ports::{
        agent_catalogue::{AgentCatalogue, NoAgents},
        change_journal::{ChangeJournal, NoJournal},
        clock::{Clock, Timestamp},
        credentials::{Credentials, NoAccounts},
        event_sink::{EventSink, NoEvents},
        models::{Models, NoModels},
        question_store::QuestionStore,
        seen_files::SeenFiles,
        todo_store::TodoStore,
        web_search::WebSearch,
    },
    tool_failure::ToolFailure,
};

/// The surroundings of the built-in tools: the same for all calls of a run.
#[derive(Clone)]
pub struct World {
    workspace: Arc<Workspace>,
    clock: Arc<dyn Clock>,
    version: String,
    limits: FileLimits,
    journal: Arc<dyn ChangeJournal>,
    events: Arc<dyn EventSink>,
    seen: Arc<dyn SeenFiles>,
    judged: Arc<JudgedEntries>,
    lines: Arc<LineIndexes>,
    helpers: Arc<Helpers>,
    programs: Arc<Programs>,
    tasks: Arc<Tasks>,
    decoding: Arc<Semaphore>,
    agents: Arc<dyn AgentCatalogue>,
    models: Arc<dyn Models>,
    todos: Arc<dyn TodoStore>,
    questions: Option<Arc<dyn QuestionStore>>,
    seen_images: Arc<SeenImages>,
    seen_pages: Arc<SeenPages>,
    robots: Option<Arc<Robots>>,
    reach: Reach,
    services: Arc<Services>,
    web_search: Option<Arc<dyn WebSearch>>,
    credentials: Arc<dyn Credentials>,
    browsers: Arc<Browsers>,
}

/// Images that are decoded at once.
const DECODED_AT_ONCE: usize = 4;

impl World {
    /// These surroundings, with the usual limits and without a journal. The version is the program's name with it, for
    /// reports: `Toolstead 0.1.0`.
    pub fn new(workspace: Arc<Workspace>, clock: Arc<dyn Clock>, version: String) -> Self {
        Self {
            workspace,
            clock,
            version,
            limits: FileLimits::default(),
            journal: Arc::new(NoJournal),
            events: Arc::new(NoEvents),
            seen: Arc::new(SeenInMemory::default()),
            judged: Arc::default(),
            lines: Arc::default(),
            helpers: Arc::default(),
            programs: Arc::default(),
            tasks: Arc::default(),
            decoding: Arc::new(Semaphore::new(DECODED_AT_ONCE)),
            agents: Arc::new(NoAgents),
            models: Arc::new(NoModels),
            todos: Arc::new(PlansInMemory::default()),
            questions: None,
            seen_images: Arc::default(),
            seen_pages: Arc::default(),
            robots: None,
            reach: Reach::new(Arc::new(SystemNetwork::default()), HostPatterns::default()),
            services: Arc::default(),
            web_search: None,
            credentials: Arc::new(NoAccounts),
            browsers: Arc::default(),
        }
    }

    /// With these limits instead of the usual ones.
    #[must_use]
    pub fn with_limits(self, limits: FileLimits) -> Self {
        Self { limits, ..self }
    }

    /// Keeps file changes there, so that they can be undone.
    #[must_use]
    pub fn with_journal(self, journal: Arc<dyn ChangeJournal>) -> Self {
        Self { journal, ..self }
    }

    /// Tells what happens to those who watch.
    #[must_use]
    pub fn with_events(self, events: Arc<dyn EventSink>) -> Self {
        Self { events, ..self }
    }

    /// Remembers there what each session has read, instead of in memory.
    #[must_use]
    pub fn with_seen_files(self, seen: Arc<dyn SeenFiles>) -> Self {
        Self { seen, ..self }
    }

    /// Reads documents by these helpers.
    #[must_use]
    pub fn with_helpers(self, helpers: Arc<Helpers>) -> Self {
        Self { helpers, ..self }
    }

    /// Starts programs so.
    #[must_use]
    pub fn with_programs(self, programs: Arc<Programs>) -> Self {
        Self { programs, ..self }
    }

    /// Keeps background commands there.
    #[must_use]
    pub fn with_tasks(self, tasks: Arc<Tasks>) -> Self {
        Self { tasks, ..self }
    }

    /// With these agents, skills and commands.
    #[must_use]
    pub fn with_agents(self, agents: Arc<dyn AgentCatalogue>) -> Self {
        Self { agents, ..self }
    }

    /// Asks these models.
    #[must_use]
    pub fn with_models(self, models: Arc<dyn Models>) -> Self {
        Self { models, ..self }
    }

    /// Keeps plans there, instead of in memory.
    #[must_use]
    pub fn with_todos(self, todos: Arc<dyn TodoStore>) -> Self {
        Self { todos, ..self }
    }

    /// Keeps questions there that nobody can be asked in mid-call. Without it such questions fail.
    #[must_use]
    pub fn with_questions(self, questions: Arc<dyn QuestionStore>) -> Self {
        Self { questions: Some(questions), ..self }
    }

    /// Reaches out so.
    #[must_use]
    pub fn with_reach(self, reach: Reach) -> Self {
        Self { reach, ..self }
    }

    /// Asks `robots.txt` before a page is fetched, or does not.
    #[must_use]
    pub fn respecting_robots(self, respects: bool) -> Self {
        Self { robots: respects.then(Arc::default), ..self }
    }

    /// With these services.
    #[must_use]
    pub fn with_services(self, services: Arc<Services>) -> Self {
        Self { services, ..self }
    }

    /// Searches the web by this, whatever the services say.
    #[must_use]
    pub fn with_web_search(self, search: Arc<dyn WebSearch>) -> Self {
        Self { web_search: Some(search), ..self }
    }

    /// Says by these to services who asks.
    #[must_use]
    pub fn with_credentials(self, credentials: Arc<dyn Credentials>) -> Self {
        Self { credentials, ..self }
    }

    /// With these browsers.
    #[must_use]
    pub fn with_browsers(self, browsers: Arc<Browsers>) -> Self {
        Self { browsers, ..self }
    }

    /// The folders that tools may work in.
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The program's name and version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The most that file tools read and write.
    pub fn limits(&self) -> &FileLimits {
        &self.limits
    }

    pub(super) fn journal(&self) -> &Arc<dyn ChangeJournal> {
        &self.journal
    }

    pub(super) fn events(&self) -> &Arc<dyn EventSink> {
        &self.events
    }

    pub(super) fn seen(&self) -> &Arc<dyn SeenFiles> {
        &self.seen
    }

    /// The entries of the journal by which calls that take something back were judged.
    pub(super) fn judged(&self) -> &JudgedEntries {
        &self.judged
    }

    /// Where the lines of large files lie, as far as they were read.
    pub(super) fn lines(&self) -> &Arc<LineIndexes> {
        &self.lines
    }

    /// The way to hosts.
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// The services of the configuration.
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Whoever searches the web.
    ///
    /// # Errors
    /// Why nobody does, for people.
    pub fn web_search(&self) -> Result<Arc<dyn WebSearch>, String> {
        if let Some(own) = &self.web_search {
            return Ok(own.clone());
        }
        let (settings, reach) = (self.services.search.clone()?, self.reach.clone());
        Ok(Arc::new(SearchService::new(settings, reach, self.helpers.clone(), self.clock.clone())))
    }

    /// The browsers of sessions.
    pub(super) fn browsers(&self) -> &Browsers {
        &self.browsers
    }

    /// The credentials of principals.
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

    /// The words of models on images.
    pub(super) fn seen_images(&self) -> &SeenImages {
        &self.seen_images
    }

    /// Answers of the web that are kept for a while.
    pub(super) fn seen_pages(&self) -> &SeenPages {
        &self.seen_pages
    }

    /// The rules of sites for programs, where they are asked.
    pub(super) fn robots(&self) -> Option<&Robots> {
        self.robots.as_deref()
    }

    /// The child processes that read documents.
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

    /// Takes on work that goes on in the background, beside the commands there.
    pub fn work_as_tasks(&self) -> Arc<dyn toolstead_domain::ports::tasks::Tasks> {
        Arc::new(WorkAsTasks {
            tasks: self.tasks.clone(),
            settings: self.programs.settings().clone(),
            clock: self.clock.clone(),
            events: self.events.clone(),
        })
    }

    /// As many images as are decoded at once: each takes some hundred megabytes at worst.
    pub(super) fn decoding(&self) -> &Arc<Semaphore> {
        &self.decoding
    }

    /// Finds the tasks that other processes keep.
    ///
    /// # Errors
    /// `io` when they cannot be looked for.
    pub(super) async fn meet_tasks(&self) -> Result<(), ToolFailure> {
        self.tasks.meet(self.programs.settings(), self.clock.now()).await
    }

    /// What a call that names this path would touch. A missing path is no error.
    ///
    /// # Errors
    /// `invalid_input` when the text is no path.
    pub async fn access(&self, path: &str) -> Result<PathAccess, ToolFailure> {
        let (workspace, path) = (self.workspace.clone(), path.to_owned());
        on_blocking_thread(move || Ok(workspace.access(&path)?)).await
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("workspace", &self.workspace)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}
