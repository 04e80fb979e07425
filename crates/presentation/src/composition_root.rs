//! Builds a running application from a configuration. No other module names both a port and its adapter.
//!
//! Both binaries, the tests and embedding applications use [`AppBuilder`], whose `build` is a list of stages: one file
//! each, with a struct of the parts that an embedding application replaces.

mod accounts;
mod added_providers;
mod app_builder;
mod application;
mod command_settings;
pub mod custom_tool_registry;
mod environment;
mod hooks;
mod in_process_tools;
mod models;
mod orchestration;
mod providers;
mod reports;
mod session_lifetime;
mod startup_error;
mod stores;
mod upstream;

pub use accounts::{accounts_alone, upstream_accounts_alone};
pub use app_builder::AppBuilder;
pub use in_process_tools::check_rules;
pub use orchestration::orchestration;
pub use session_lifetime::SessionLifetime;
pub use startup_error::StartupError;
pub use stores::open_audit_log_read_only;
pub use upstream::ServerSelection;

use crate::{
    app::App,
    config::{Config, agent_files::DefinitionFileCatalogue},
    event_file::{EventLineWriter, EventTarget},
    surroundings::InstructionFileLoader,
};
use application::ApplicationStage;
use custom_tool_registry::CustomToolRegistry;
use environment::EnvironmentStage;
use in_process_tools::InProcessStage;
use providers::ProviderRegistrar;
use std::{fmt, io, sync::Arc, time::Duration};
use stores::{OpenStores, StoreStage};
use toolstead_domain::{ProviderState, QuestionStore, ServerName, ToolFailure};
use toolstead_infrastructure::{
    browser::browsers::{Browsers, CheckedBrowser},
    builtin::commands::tasks::Tasks,
    hooks::command_hooks::CommandHooks,
    mcp::client::Upstream,
    sandbox::workspace::Workspace,
};
use upstream::UpstreamStarter;

/// Time that running calls have to finish when a short-lived process ends.
const DRAIN: Duration = Duration::from_millis(500);

impl AppBuilder {
    /// Builds and starts everything. MCP servers may still be connecting when this returns, except required ones.
    ///
    /// # Errors
    /// [`StartupError`]. Nothing is left running then.
    pub async fn build(self) -> Result<RunningApp, StartupError> {
        // Boxed because the state is sixteen kilobytes, which every calling future would otherwise contain.
        Box::pin(self.run_stages()).await
    }

    async fn run_stages(self) -> Result<RunningApp, StartupError> {
        let Self { config, environment, stores, call_path, added, upstreams } = self;
        let session_lifetime = environment.session_lifetime;

        let environment = EnvironmentStage::new(&config, environment)?;
        let tools = InProcessStage::new(&config, &environment.tools, &added)?;
        tools.check(&config, &added)?;
        let stores = StoreStage::open(&config, stores, session_lifetime, environment.clock.clone()).await?;
        let tools = tools.with_stores(&stores);
        let mut application = ApplicationStage::new(&config, &environment, &stores, call_path).await?;

        let upstreams = (!tools.cover(&config.tools.selection)).then(|| {
            let (web, clock) = (environment.web.clone(), environment.clock.clone());
            UpstreamStarter::new(upstreams, stores.tool_repository.clone(), web, clock)
        });
        let (built_in, program_tools) = tools.into_providers(&mut application.app);
        let providers = ProviderRegistrar { environment: environment.tools.clone(), built_in, added, upstreams };
        let mut running = RunningApp::new(config, environment, stores, application, program_tools);
        match running.start(providers).await {
            Ok(()) => Ok(running),
            Err(error) => {
                running.close().await;
                Err(error)
            }
        }
    }
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
    pub tools: Arc<CustomToolRegistry>,
    /// Configured hooks, without those added by an embedding application.
    pub hooks: Option<Arc<CommandHooks>>,
    /// Questions that wait for an answer.
    pub questions: OptionalQuestionStore,
    /// Agents, skills and commands defined in files.
    pub agent_files: Arc<DefinitionFileCatalogue>,
    /// Instruction files of the user and of the workspace.
    pub instruction_files: Arc<InstructionFileLoader>,
    browsers: Arc<Browsers>,
    workspace: Arc<Workspace>,
    tasks: Arc<Tasks>,
    event_file: Option<EventLineWriter>,
    stores: Option<OpenStores>,
}

/// Store of the questions that wait for an answer; `None`: none are stored.
#[derive(Clone)]
pub struct OptionalQuestionStore(pub Option<Arc<dyn QuestionStore>>);

impl fmt::Debug for OptionalQuestionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OptionalQuestionStore").field(&self.0.is_some()).finish()
    }
}

impl RunningApp {
    /// Creates the application without any provider.
    fn new(
        config: Box<Config>,
        environment: EnvironmentStage,
        stores: StoreStage,
        application: ApplicationStage,
        tools: Arc<CustomToolRegistry>,
    ) -> Self {
        let ApplicationStage { app, hooks, instruction_files } = application;
        let EnvironmentStage { workspace, tasks, browsers, agent_files, .. } = environment;
        let StoreStage { questions, opened, .. } = stores;
        Self {
            app,
            servers: Vec::new(),
            config,
            tools,
            hooks,
            questions: OptionalQuestionStore(questions),
            agent_files,
            instruction_files,
            browsers,
            workspace,
            tasks,
            event_file: None,
            stores: opened,
        }
    }

    /// Registers the providers, and waits for required servers.
    async fn start(&mut self, providers: ProviderRegistrar) -> Result<(), StartupError> {
        self.servers = providers.register(self).await?;
        self.check_required().await
    }

    /// Writes all further events to the target until the application is closed.
    ///
    /// # Errors
    /// The error of the operating system if the target cannot be opened.
    pub fn write_events(&mut self, target: &EventTarget) -> io::Result<()> {
        self.event_file = Some(EventLineWriter::start(target, self.app.events())?);
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

    /// Waits until all tasks that outlive their calls have ended and are recorded. Dropping the future has no effect on
    /// them.
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
