//! The tool `subagent`: delegates work to another agent, which works in a conversation of its own.
//!
//! The agent's calls are nested in the delegating call, in a restricted view with the agent's tools: whatever the model
//! writes, nothing is allowed to them that is denied to this call. The agent shares the budget of the delegating run.

mod definition;
mod work;

use super::OrchestratingTool;
use crate::{
    cancel_signal::CancelSignal,
    run_agent::{CompactionThreshold, OfferedTools, RunAgentCommand, RunAgentHandler, run_registry::RunInProgress},
};
use async_trait::async_trait;
use definition::definition;
use serde::Deserialize;
use serde_json::json;
use std::{fmt, sync::Arc};
use toolstead_domain::{
    Access, AgentCatalogue, AgentDefinition, Availability, Block, Budgets, CallContext, Calls, ConversationId,
    Delegation, ModelProvider, Models, NewTask, Principal, RequestScope, SilentCaller, StoreError, TaskStarter, Tool,
    ToolCall, ToolFailure, ToolResult, ToolSelection, error_kind::ErrorKind, tool_input_schema::nearest_name,
};
use uuid::Uuid;
use work::{DelegatedWork, DetachedWork};

pub(super) const NAME: &str = "subagent";
/// Maximum depth of delegation: by the user's agent, and by the agent that received the work.
const MAX_DEPTH: u32 = 2;
/// Maximum length of an agent's report, in characters. The call path truncates it further and stores the rest.
const MAX_TEXT: usize = 32_000;
/// Name of the default agent.
const GENERAL: &str = "general";
/// Name for the model of the delegating run.
const INHERIT: &str = "inherit";

/// The dependencies of delegation.
#[derive(Clone)]
pub struct SubagentPorts {
    /// Runs the agents.
    pub run_agent: Arc<RunAgentHandler>,
    /// Models of the agents.
    pub models: Arc<dyn Models>,
    /// Predefined agents. The default is the one named `general`.
    pub own: Vec<Arc<AgentDefinition>>,
    /// Agents that users defined. They replace predefined agents of the same name.
    pub catalogue: Arc<dyn AgentCatalogue>,
    /// Runs work in the background.
    pub tasks: Arc<dyn TaskStarter>,
    /// Budgets of an agent whose work no other run delegates. Its limit of turns applies to every agent.
    pub budgets: Budgets,
    /// Threshold at which the conversation of an agent whose work no other run delegates is shortened.
    pub compaction: CompactionThreshold,
    /// Name of the model that writes the summaries of an agent whose work no other run delegates.
    pub summarizer: Option<String>,
}

pub(super) struct SubagentTool {
    example: &'static str,
    agents: Option<SubagentPorts>,
}

#[derive(Deserialize)]
struct Input {
    prompt: String,
    description: Option<String>,
    agent: Option<String>,
    model: Option<String>,
    #[serde(default)]
    background: bool,
    max_turns: Option<u64>,
    resume: Option<String>,
}

/// The agent of a call, and the conversation that it resumes.
struct SelectedAgent {
    agent: Arc<AgentDefinition>,
    resumed: Option<ConversationId>,
}

impl SubagentTool {
    pub(super) fn new(example: &'static str, agents: Option<SubagentPorts>) -> Self {
        Self { example, agents }
    }

    fn agents(&self) -> Result<&SubagentPorts, ToolFailure> {
        let nobody = || ToolFailure::new(ErrorKind::Unavailable, "No agents are available here.");
        self.agents.as_ref().ok_or_else(nobody)
    }
}

#[async_trait]
impl OrchestratingTool for SubagentTool {
    fn definition(&self) -> Tool {
        let known = self.agents.as_ref().map(SubagentPorts::known).unwrap_or_default();
        let mut tool = definition(&known, self.example);
        let missing = match &self.agents {
            None => Some("no agents are available here".to_owned()),
            Some(agents) => agents.models.model(None).err(),
        };
        if let Some(reason) = missing {
            tool.set_availability(Availability::Unavailable(reason));
        }
        tool
    }

    fn example(&self) -> &'static str {
        self.example
    }

    async fn accesses(&self, call: &ToolCall) -> Result<Vec<Access>, ToolFailure> {
        let input = Input::of(call)?;
        let chosen = self.agents()?.chosen(&input, &call.principal, &call.session).await?;
        Ok(vec![Access::RunAgent(chosen.agent.name.clone())])
    }

    async fn run(&self, call: &ToolCall, context: &CallContext<'_>) -> Result<ToolResult, ToolFailure> {
        let (input, agents) = (Input::of(call)?, self.agents()?);
        let SelectedAgent { agent, resumed } = agents.chosen(&input, &call.principal, &call.session).await?;
        let above = agents.run_agent.ongoing(&call.principal, &call.session);
        let depth = above.as_ref().map_or(0, |above| above.depth) + 1;
        if depth > MAX_DEPTH {
            let message =
                format!("Agents can be nested at most {MAX_DEPTH} deep, and this agent is already at that depth.");
            return Err(ToolFailure::new(ErrorKind::TooLarge, message).next("Do it yourself."));
        }
        let model = agents.model(&input, &agent, above.as_deref())?;
        let conversation = resumed.unwrap_or_else(|| ConversationId(Uuid::now_v7()));
        let delegation = Delegation { session: call.session.clone(), call: call.id, agent: agent.name.clone() };
        if agents.run_agent.ongoing(&call.principal, &conversation.session()).is_some() {
            let message = format!("The agent {conversation} is still running.");
            return Err(
                ToolFailure::new(ErrorKind::Unavailable, message).next("Wait for its end, or start another one.")
            );
        }
        let command = RunAgentCommand {
            prompt: vec![Block::text(&*input.prompt)],
            summarizer: agents.summarizer(above.as_deref()),
            system: agent.prompt.clone(),
            has_surroundings: true,
            budgets: agents.budgets(&input, &agent, above.as_deref()),
            compaction: above.as_ref().map_or(agents.compaction, |above| above.compaction),
            scope: RequestScope::of(call.principal.clone(), conversation.session()),
            offered: OfferedTools::Listed,
            client: Arc::new(context.client.clone()),
            // A direct caller is no longer available once this call is answered.
            caller: above.as_ref().map_or_else(|| Arc::new(SilentCaller) as _, |above| above.caller_until_end()),
            cancel: CancelSignal::new(),
            ..RunAgentCommand::new(conversation, model, "")
        };
        let tools = selection(&agent, depth, context.calls);
        let work = DelegatedWork { agents: agents.clone(), command, delegation, above };
        if !input.background {
            return work.done_for(tools, context).await;
        }
        agents.tasks.check_room(&call.principal, &call.session)?;
        let caller = work.command.caller.clone();
        let name = agent.name.clone();
        let calls = context.calls.outliving(name.clone(), conversation.session(), tools, caller).await?;
        let title = input.description.clone().unwrap_or_else(|| input.prompt.clone());
        let mut task = NewTask::new(call.principal.clone(), call.session.clone(), format!("{name}: {title}"));
        (task.description, task.call) = (input.description, Some(call.id));
        let task_id = agents.tasks.begin(task, Box::new(DetachedWork { work, calls })).await?;
        let text = format!(
            "The agent `{name}` runs in the background as `{task_id}`. The next call after its end reports it; \
             the tools for tasks show its output, wait for it and stop it.\n[agent_id: {conversation}]"
        );
        Ok(ToolResult::text(text).with_structured_content(json!({
            "agent_id": conversation.to_string(), "agent": &*name, "task_id": task_id,
            "transcript": conversation.to_string(),
        })))
    }
}

impl Input {
    fn of(call: &ToolCall) -> Result<Self, ToolFailure> {
        Self::deserialize(&call.arguments).map_err(|error| {
            ToolFailure::new(ErrorKind::InvalidInput, format!("the arguments cannot be used: {error}"))
        })
    }
}

impl SubagentPorts {
    /// Returns all agents, sorted by name, with the default agent first.
    fn known(&self) -> Vec<Arc<AgentDefinition>> {
        let written = self.catalogue.agents();
        let is_replaced = |own: &&Arc<AgentDefinition>| written.iter().any(|agent| agent.name == own.name);
        let mut known: Vec<Arc<AgentDefinition>> = self.own.iter().filter(|own| !is_replaced(own)).cloned().collect();
        known.extend(written.iter().cloned());
        known.sort_by(|one, other| (&*one.name != GENERAL, &one.name).cmp(&(&*other.name != GENERAL, &other.name)));
        known
    }

    fn find(&self, name: &str) -> Result<Arc<AgentDefinition>, ToolFailure> {
        let known = self.known();
        if let Some(agent) = known.iter().find(|agent| &*agent.name == name) {
            return Ok(agent.clone());
        }
        let shown: String = name.chars().take(64).collect();
        let names: Vec<&str> = known.iter().map(|agent| &*agent.name).collect();
        let next = match nearest_name(&shown, names.iter().copied()) {
            Some(nearest) => format!("Did you mean `{nearest}`? There are: {}.", names.join(", ")),
            None => format!("There are: {}.", names.join(", ")),
        };
        Err(ToolFailure::new(ErrorKind::NotFound, format!("There is no agent `{shown}`.")).next(next))
    }

    async fn chosen(&self, input: &Input, principal: &Principal, session: &str) -> Result<SelectedAgent, ToolFailure> {
        let named = input.agent.as_deref().filter(|name| !name.is_empty());
        let Some(resume) = input.resume.as_deref().filter(|id| !id.is_empty()) else {
            return Ok(SelectedAgent { agent: self.find(named.unwrap_or(GENERAL))?, resumed: None });
        };
        let shown: String = resume.chars().take(64).collect();
        let unknown = || {
            ToolFailure::new(ErrorKind::NotFound, format!("No agent `{shown}` worked in this session."))
                .next("`resume` takes the `agent_id` of an earlier result. Leave it out to start a new agent.")
        };
        let id: ConversationId = resume.parse().map_err(|_| unknown())?;
        let unreadable = |error: StoreError| {
            ToolFailure::new(ErrorKind::Io, "the agent's conversation cannot be read").caused_by(error)
        };
        let found = self.run_agent.conversations().find(principal, id).await.map_err(unreadable)?;
        let delegated_by = found.and_then(|found| found.delegated_by).filter(|by| *by.session == *session);
        let delegated_by = delegated_by.ok_or_else(unknown)?;
        if let Some(other) = named.filter(|name| **name != *delegated_by.agent) {
            let message = format!("The agent {id} is `{}`, not `{other}`.", delegated_by.agent);
            return Err(ToolFailure::new(ErrorKind::InvalidInput, message).next("Leave `agent` out."));
        }
        Ok(SelectedAgent { agent: self.find(&delegated_by.agent)?, resumed: Some(id) })
    }

    fn model(
        &self,
        input: &Input,
        agent: &AgentDefinition,
        above: Option<&RunInProgress>,
    ) -> Result<Arc<dyn ModelProvider>, ToolFailure> {
        let is_named = |name: &&str| !name.is_empty() && *name != INHERIT;
        let asked = input.model.as_deref().filter(|name| !name.is_empty());
        // The argument of the call has precedence over the agent's definition.
        let named = asked.map_or_else(|| agent.model.as_deref(), Some).filter(is_named);
        let model = match (named, above) {
            (Some(name), _) => self.models.model(Some(name)),
            (None, Some(above)) => Ok(above.model.clone()),
            (None, None) => self.models.model(None),
        };
        let model = model.map_err(|reason| {
            ToolFailure::new(ErrorKind::InvalidInput, format!("The agent has no model: {reason}."))
        })?;
        let bounds_costs = above.map_or(self.budgets.cost.is_some(), RunInProgress::bounds_costs);
        let is_another = named.is_some() && above.is_none_or(|above| above.model.name() != model.name());
        // A cost budget has no effect for a model without known prices. Users may still choose such a model, models may
        // not.
        if bounds_costs && is_another && model.facts().prices.is_none() {
            let message =
                format!("The costs are limited here, and the prices of the model `{}` are unknown.", model.name());
            return Err(ToolFailure::new(ErrorKind::InvalidInput, message).next("Choose another model, or none."));
        }
        Ok(model)
    }

    /// Returns the budgets of the agent. Its turns have a limit of their own; its other budgets are those of the
    /// delegating run, if there is one.
    fn budgets(&self, input: &Input, agent: &AgentDefinition, above: Option<&RunInProgress>) -> Budgets {
        let mut budgets = if above.is_some() { Budgets::default() } else { self.budgets.clone() };
        let turns = [input.max_turns, agent.max_turns, self.budgets.turns];
        budgets.turns = turns.into_iter().flatten().min();
        budgets
    }

    fn summarizer(&self, above: Option<&RunInProgress>) -> Option<Arc<dyn ModelProvider>> {
        match above {
            Some(above) => above.summarizer.clone(),
            None => self.summarizer.as_deref().and_then(|name| self.models.model(Some(name)).ok()),
        }
    }
}

/// Selects the tools of an agent at this depth from those that the delegating call may use.
fn selection(agent: &AgentDefinition, depth: u32, calls: &dyn Calls) -> ToolSelection {
    let may_hand_on = depth < MAX_DEPTH;
    if agent.tools == ToolSelection::all() && may_hand_on {
        return ToolSelection::all();
    }
    let tools = calls.list();
    let chosen =
        tools.iter().filter(|tool| agent.tools.includes(tool) && (may_hand_on || tool.name().as_str() != NAME));
    ToolSelection::canonical(chosen.map(|tool| tool.rule_name().to_string()))
}

impl fmt::Debug for SubagentPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubagentPorts").field("own", &self.own.len()).finish_non_exhaustive()
    }
}
