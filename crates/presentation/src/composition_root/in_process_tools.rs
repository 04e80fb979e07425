//! Second stage: the tools that run in this process, checked against the configuration.

use super::{
    StartupError,
    added_providers::AddedProviders,
    custom_tool_registry::{CustomToolRegistry, InProcessProviderFactory},
    orchestration::orchestration,
    stores::StoreStage,
};
use crate::{
    app::App,
    config::{
        Config,
        hooks::{
            gates::check_gates,
            hook_selector_checks::{check_choices, check_filter_parameters},
        },
        sections::policy::{check_parameters, check_tool_names},
        tree::problem::ConfigError,
        views::check_overlays,
    },
};
use std::sync::Arc;
use toolstead_domain::{Tool, ToolSelection, context};
use toolstead_infrastructure::{
    builtin::{self, InProcessTools, InvalidInProcessTools, ToolEnvironment, ToolGroup},
    sandbox::workspace::Workspace,
    system_clock::SystemClock,
};

/// Built-in tools, and the tools of the embedding application.
pub(super) struct InProcessStage {
    built_in: InProcessTools,
    provider_factory: InProcessProviderFactory,
    groups: Vec<ToolGroup>,
    definitions: Vec<Tool>,
}

impl InProcessStage {
    /// Creates the tools without any store.
    pub(super) fn new(
        config: &Config,
        environment: &ToolEnvironment,
        added: &AddedProviders,
    ) -> Result<Self, InvalidInProcessTools> {
        let groups = added.tool_groups();
        let provider_factory = InProcessProviderFactory {
            environment: environment.clone(),
            shows_output_schemas: config.server.output_schemas,
        };
        let of_groups = groups.iter().map(|group| Ok(provider_factory.provider(group)?.definitions().to_vec()));
        let of_groups = of_groups.collect::<Result<Vec<_>, InvalidInProcessTools>>()?.concat();
        let built_in = InProcessTools::new(builtin::all(), environment.clone())?
            .without_aliases_of(|server| config.names_server(server) || added.has_upstream(server));
        let built_in = match config.server.output_schemas {
            true => built_in.with_output_schemas(),
            false => built_in,
        };
        let orchestration = orchestration();
        let built_in = built_in.with_explained_tools(orchestration.definitions()).with_explained_tools(&of_groups);
        let definitions = [built_in.definitions(), orchestration.definitions(), &of_groups].concat();
        Ok(Self { built_in, provider_factory, groups, definitions })
    }

    /// Checks every name of a tool in the configuration, and every rule on the tools that run in this process.
    pub(super) fn check(&self, config: &Config, added: &AddedProviders) -> Result<(), ConfigError> {
        let names = self.names();
        check_tool_names(config, &names)?;
        if !added.may_offer_any_name() {
            check_choices(config, &names)?;
        }
        check_definitions(config, &self.definitions)
    }

    /// Returns `true` if the selection contains only tools that run in this process.
    pub(super) fn cover(&self, selection: &ToolSelection) -> bool {
        let names = self.names();
        !selection.may_hold_other_than(|name| names.contains(&name))
    }

    /// Gives the tools their stores.
    #[must_use]
    pub(super) fn with_stores(mut self, stores: &StoreStage) -> Self {
        let environment = self.provider_factory.environment.with_journal(stores.journal.clone());
        self.built_in = self.built_in.with_journal(stores.journal.clone());
        let environment = match &stores.todos {
            Some(todos) => {
                self.built_in = self.built_in.with_todos(todos.clone());
                environment.with_todos(todos.clone())
            }
            None => environment,
        };
        self.provider_factory.environment = match &stores.read_state {
            Some(read_state) => {
                self.built_in = self.built_in.with_read_state(read_state.clone());
                environment.with_read_state(read_state.clone())
            }
            None => environment,
        };
        if let Some(questions) = &stores.questions {
            self.built_in = self.built_in.with_questions(questions.clone());
        }
        self
    }

    /// Gives the application control over the tools of the embedding application, and returns those and the built-in
    /// tools. None is registered yet.
    pub(super) fn into_providers(self, app: &mut App) -> (InProcessTools, Arc<CustomToolRegistry>) {
        let program_tools = CustomToolRegistry::new(app.registry.clone(), self.provider_factory, self.groups);
        let program_tools = Arc::new(program_tools);
        app.agent.program_tools = Some(program_tools.clone());
        (self.built_in, program_tools)
    }

    /// Returns the names and aliases of the tools, and the names of resource and prompt requests.
    fn names(&self) -> Vec<&str> {
        let names = self
            .definitions
            .iter()
            .flat_map(|tool| std::iter::once(tool.name().as_str()).chain(tool.aliases.iter().map(|alias| alias.name)));
        names.chain(context::RULE_NAMES).collect()
    }
}

/// Checks the rules and hooks against the definitions of the built-in tools, as building an application does.
///
/// # Errors
/// [`StartupError`] with every rule that could never match, and every gate that waits for trust.
pub fn check_rules(config: &Config) -> Result<(), StartupError> {
    let environment = ToolEnvironment::new(Arc::new(Workspace::closed()), Arc::new(SystemClock), String::new());
    let built_in = InProcessTools::new(builtin::all(), environment)?;
    Ok(check_definitions(config, &[built_in.definitions(), orchestration().definitions()].concat())?)
}

fn check_definitions(config: &Config, tools: &[Tool]) -> Result<(), ConfigError> {
    check_parameters(config, tools)?;
    check_filter_parameters(config, tools)?;
    check_overlays(config, tools)?;
    check_gates(config)
}
