//! Fourth stage: the use cases, with the policy, the approver and the hooks of the call path.

use super::{StartupError, environment::EnvironmentStage, hooks, stores::StoreStage};
use crate::{
    agent_parts::{AgentDefaults, SharedAgentDependencies},
    app::{App, AppParts},
    config::Config,
    mcp_server::elicitation_approver::ElicitationApprover,
    surroundings::{InstructionFileLoader, SurroundingsDescriber},
};
use std::sync::Arc;
use toolstead_application::{ApprovalRuleApprover, ExecuteToolPorts};
use toolstead_domain::{
    AgentHook, Approver, AutoApprovalRule, DefaultSuggestions, RuleStore, SuggestionFormatter, ToolHook,
};
use toolstead_infrastructure::{hooks::command_hooks::CommandHooks, sandbox::schema_validation::HelperSchemaValidator};

/// Parts of the call path that an embedding application replaces or adds.
pub(super) struct CallPathOverrides {
    pub(super) approver: Option<Arc<dyn Approver>>,
    pub(super) approval_rules: Vec<Arc<dyn AutoApprovalRule>>,
    pub(super) suggestions: Arc<dyn SuggestionFormatter>,
    pub(super) rule_store: Option<Arc<dyn RuleStore>>,
    /// Hooks that run before the configured ones.
    pub(super) hooks: Vec<Arc<dyn ToolHook>>,
    /// Hooks of agents that run before the configured ones.
    pub(super) agent_hooks: Vec<Arc<dyn AgentHook>>,
}

impl Default for CallPathOverrides {
    fn default() -> Self {
        let (approver, approval_rules, rule_store, hooks, agent_hooks) = Default::default();
        let suggestions = Arc::new(DefaultSuggestions);
        Self { approver, approval_rules, suggestions, rule_store, hooks, agent_hooks }
    }
}

/// The use cases, without any provider yet.
pub(super) struct ApplicationStage {
    pub(super) app: App,
    /// Configured hooks.
    pub(super) hooks: Option<Arc<CommandHooks>>,
    pub(super) instruction_files: Arc<InstructionFileLoader>,
}

impl ApplicationStage {
    /// Starts the configured hooks and assembles the use cases.
    pub(super) async fn new(
        config: &Config,
        environment: &EnvironmentStage,
        stores: &StoreStage,
        mut parts: CallPathOverrides,
    ) -> Result<Self, StartupError> {
        let hooks = hooks::start(config)?;
        parts.hooks.extend(hooks.clone().map(|hooks| hooks as Arc<dyn ToolHook>));
        parts.agent_hooks.extend(hooks.clone().map(|hooks| hooks as Arc<dyn AgentHook>));
        let instruction_files = Arc::new(InstructionFileLoader::new(config, environment.workspace.clone()));
        let surroundings = SurroundingsDescriber::new(instruction_files.clone(), environment.clock.clone());
        let agents = SharedAgentDependencies {
            models: environment.models.clone(),
            hooks: parts.agent_hooks,
            todos: stores.todos.clone(),
            defaults: AgentDefaults {
                settings: config.agent.clone(),
                rules: config.pattern_base(),
                program_tools: None,
            },
            agent_files: environment.agent_files.clone(),
            surroundings: Some(Arc::new(surroundings)),
        };
        let ports = ExecuteToolPorts {
            approver: approver(config, parts.approver, parts.approval_rules, hooks.as_ref()),
            log: stores.execution_log.clone(),
            clock: environment.clock.clone(),
            outputs: stores.outputs.clone(),
            schemas: Arc::new(HelperSchemaValidator::new(environment.helpers.clone())),
            hooks: parts.hooks,
            events: environment.events.clone(),
            suggestions: parts.suggestions,
        };
        let parts = AppParts {
            policy: config.policy(),
            rule_store: parts.rule_store.unwrap_or_else(|| config.rule_store()),
            ports,
            journal: stores.journal.clone(),
            conversations: stores.conversations.clone(),
            settings: config.call_settings(),
            max_open_calls: config.limits.calls_in_flight,
            dialect: config.tools.dialect,
            deferral: config.tool_deferral(),
            agents,
            definitions: stores.definitions.clone(),
        };
        let mut app = App::assemble(parts, stores.tool_repository.clone()).await?;
        let views = config.views.iter().map(|view| (view.name.clone(), view.view(&app.policy)));
        app.views = Arc::new(views.collect());
        Ok(Self { app, hooks, instruction_files })
    }
}

/// Returns the approver: hooks run first, then rules of the embedding application, then the given approver or the MCP
/// client.
fn approver(
    config: &Config,
    replacement: Option<Arc<dyn Approver>>,
    rules: Vec<Arc<dyn AutoApprovalRule>>,
    hooks: Option<&Arc<CommandHooks>>,
) -> Arc<dyn Approver> {
    let approver =
        replacement.unwrap_or_else(|| Arc::new(ElicitationApprover::new(config.permissions.approval_timeout)));
    let approver = match rules.is_empty() {
        true => approver,
        false => Arc::new(ApprovalRuleApprover::new(rules, approver)),
    };
    hooks::before(approver, hooks, config)
}
