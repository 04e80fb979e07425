//! Runs of an agent: the model is queried, its tool calls are made, and their results are sent back to it, until it is
//! done.
//!
//! Every call takes the path of [`execute_tool`](crate::execute_tool), within the scope of the run. Every event is
//! appended to the conversation as it happens. The order of the events leaves a history from which a run can resume,
//! wherever the process ends.

mod answer;
mod call_progress;
mod calls;
mod compacting;
mod compaction;
mod history;
mod hooks;
mod long_answer;
mod loop_detector;
mod offer;
mod request;
mod request_builder;
mod result;
mod run;
pub(crate) mod run_registry;
mod size;
mod spending;
mod surroundings;
mod todos;
mod usage_events;

use crate::{
    cancel_signal::CancelSignal, event_bus::EventBus, execute_tool::ExecuteToolHandler, list_tools::ListToolsHandler,
};
pub use compacting::{CompactConversationCommand, CompactConversationError, CompactionTokenCounts};
pub use offer::offered_tool;
use run::Run;
use run_registry::{RunInProgress, RunRegistry};
use std::sync::Arc;
use tokio::sync::mpsc;
use toolstead_domain::{
    AgentEvent, AgentHook, AgentSurroundings, Block, Budgets, Caller, Calls, CancelReason, ClientProfile, Clock,
    ConversationId, ConversationStore, Delegation, ModelProvider, Principal, RequestScope, SilentCaller, TodoStore,
    ToolSelection,
};

/// Runs an agent for one turn of a conversation.
///
/// ```
/// use std::sync::Arc;
/// use toolstead_application::run_agent::RunAgentCommand;
/// use toolstead_domain::{
///     conversation::ConversationId,
///     testing::scripted_model::{ScriptedAnswer, ScriptedModel},
/// };
/// use uuid::Uuid;
///
/// let model = Arc::new(ScriptedModel::answering([ScriptedAnswer::text("Done.")]));
/// let command = RunAgentCommand {
///     system: "Answer briefly.".to_owned(),
///     ..RunAgentCommand::new(ConversationId(Uuid::now_v7()), model, "List the files.")
/// };
/// assert_eq!(command.prompt.len(), 1);
/// ```
pub struct RunAgentCommand {
    /// Prompt of the user. If it is empty, the run continues from the end of the conversation.
    pub prompt: Vec<Block>,
    /// Id of an existing conversation, or of a new one.
    pub conversation: ConversationId,
    /// Model that answers.
    pub model: Arc<dyn ModelProvider>,
    /// Model that writes summaries; `None`: `model`.
    pub summarizer: Option<Arc<dyn ModelProvider>>,
    /// Instructions before all messages; empty for none.
    pub system: String,
    /// `true` if the description of the surroundings follows [`system`](Self::system), and the instructions of a folder
    /// are added once a call touches a file in it.
    pub has_surroundings: bool,
    /// Budgets of the run.
    pub budgets: Budgets,
    /// Threshold at which the conversation is shortened.
    pub compaction: CompactionThreshold,
    /// Principal and view of the calls. The session is always that of the conversation.
    pub scope: RequestScope,
    /// Tools that are offered to the model and that it may call.
    pub offered: OfferedTools,
    /// Name of the profile with which a new conversation is created.
    pub profile: Option<String>,
    /// Capabilities of the client.
    pub client: Arc<ClientProfile>,
    /// Channel to the client.
    pub caller: Arc<dyn Caller>,
    /// Cancels the run.
    pub cancel: CancelSignal,
}

impl RunAgentCommand {
    /// Creates a command for a run of the local user, in the session of the conversation. Its caller answers no
    /// questions. All tools are offered that the rules do not deny, and no budget is set. Set fields to change this.
    pub fn new(conversation: ConversationId, model: Arc<dyn ModelProvider>, prompt: impl Into<String>) -> Self {
        Self {
            prompt: vec![Block::text(prompt)],
            conversation,
            model,
            summarizer: None,
            system: String::new(),
            has_surroundings: false,
            budgets: Budgets::default(),
            compaction: CompactionThreshold::default(),
            scope: RequestScope::of(Principal::local(), conversation.session()),
            offered: OfferedTools::default(),
            profile: None,
            client: Arc::new(ClientProfile::without_protocol("agent")),
            caller: Arc::new(SilentCaller),
            cancel: CancelSignal::new(),
        }
    }
}

impl std::fmt::Debug for RunAgentCommand {
    /// Omits the prompt, which may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunAgentCommand")
            .field("conversation", &self.conversation)
            .field("model", &self.model.name())
            .finish_non_exhaustive()
    }
}

/// The tools that a run offers to its model. The rules of the scope always apply, and are only narrowed by this choice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum OfferedTools {
    /// The tools that the rules do not deny, as they are listed in the scope.
    #[default]
    Listed,
    /// The selected ones of the listed tools. A call by any other name is refused. Calls that a tool makes are bounded
    /// by the scope alone; a view with the same selection bounds them, too.
    Chosen(ToolSelection),
    /// No tools. The request has none.
    Nothing,
}

/// The size at which a conversation is shortened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompactionThreshold {
    /// Share of the model's context window that may be full, from 0 to 1; `None`: the conversation is shortened only
    /// after the model has refused it as too long.
    pub at: Option<f64>,
}

impl Default for CompactionThreshold {
    fn default() -> Self {
        Self { at: Some(0.8) }
    }
}

/// The ports that runs use.
#[derive(Clone)]
pub struct RunAgentPorts {
    /// Runs the calls.
    pub execute_tool: Arc<ExecuteToolHandler>,
    /// Lists the tools.
    pub list_tools: Arc<ListToolsHandler>,
    /// Stores the events of conversations.
    pub conversations: Arc<dyn ConversationStore>,
    /// Stores the plans of sessions, which are repeated in each summary of a conversation; `None`: there are no plans.
    pub todos: Option<Arc<dyn TodoStore>>,
    /// Hooks that are called during a run, in this order.
    pub hooks: Vec<Arc<dyn AgentHook>>,
    /// Describes the surroundings of agents; `None`: agents receive no description.
    pub surroundings: Option<Arc<dyn AgentSurroundings>>,
    /// Publishes the events of a run.
    pub events: Arc<EventBus>,
    /// Source of the current time.
    pub clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for RunAgentPorts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunAgentPorts").field("hooks", &self.hooks.len()).finish_non_exhaustive()
    }
}

/// Handles a [`RunAgentCommand`].
pub struct RunAgentHandler {
    ports: RunAgentPorts,
    ongoing: RunRegistry,
}

/// Context of a run whose work was delegated by a call.
pub(crate) struct DelegationContext<'a> {
    /// Port for the run's calls, which are nested in the delegating call.
    pub(crate) calls: &'a dyn Calls,
    /// The delegating call, with its session.
    pub(crate) handed_over: Delegation,
    /// The run of the delegating call, if there is one.
    pub(crate) above: Option<Arc<RunInProgress>>,
}

impl std::fmt::Debug for RunAgentHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunAgentHandler").field("ports", &self.ports).finish_non_exhaustive()
    }
}

impl RunAgentHandler {
    /// Creates a handler on these ports.
    pub fn new(ports: RunAgentPorts) -> Arc<Self> {
        Arc::new(Self { ports, ongoing: RunRegistry::default() })
    }

    /// Starts the run in a task of its own. Must be called within a tokio runtime.
    pub fn start(self: &Arc<Self>, command: RunAgentCommand) -> AgentRunHandle {
        // The channel is unbounded: no event is lost, and the run never waits for its reader. Its size is bounded by
        // what a model writes.
        let (telling, events) = mpsc::unbounded_channel();
        let cancel = command.cancel.child();
        tokio::spawn(Run::new(self, command, cancel.clone(), telling, None).run());
        AgentRunHandle { events, is_over: false, cancel }
    }

    /// Returns the run of delegated work, and its events. The run makes progress only while it is polled. Dropping it
    /// leaves a conversation that can be resumed.
    pub(crate) fn child<'a>(
        &self,
        command: RunAgentCommand,
        child: DelegationContext<'a>,
    ) -> (impl Future<Output = ()> + Send + 'a, mpsc::UnboundedReceiver<AgentEvent>) {
        let (telling, events) = mpsc::unbounded_channel();
        let cancel = command.cancel.child();
        (Run::new(self, command, cancel, telling, Some(child)).run(), events)
    }

    /// Returns the run in progress of this session, the first one if there are several; `None` if there is none.
    pub(crate) fn ongoing(&self, principal: &Principal, session: &str) -> Option<Arc<RunInProgress>> {
        self.ongoing.find(principal, session)
    }

    /// Returns the store of the conversations of runs.
    pub(crate) fn conversations(&self) -> &Arc<dyn ConversationStore> {
        &self.ports.conversations
    }

    /// Discards the approvals, parked calls and provider state of a session that only a run used.
    pub(crate) async fn session_ended(&self, principal: &Principal, session: &Arc<str>) {
        self.ports.execute_tool.session_ended(principal, session).await;
    }
}

/// A run in progress. Dropping it cancels it: its calls are cancelled, and the events so far remain stored.
#[derive(Debug)]
pub struct AgentRunHandle {
    events: mpsc::UnboundedReceiver<AgentEvent>,
    is_over: bool,
    cancel: CancelSignal,
}

impl AgentRunHandle {
    /// Returns the next event; `None` after [`AgentEvent::Ended`].
    pub async fn next(&mut self) -> Option<AgentEvent> {
        // A notification hook may still run. This does not wait for it.
        if self.is_over {
            return None;
        }
        let event = self.events.recv().await;
        self.is_over = matches!(event, None | Some(AgentEvent::Ended { .. }));
        if self.is_over {
            // Detached work may send many events that nothing reads.
            self.events.close();
        }
        event
    }
}

impl Drop for AgentRunHandle {
    fn drop(&mut self) {
        self.cancel.cancel(CancelReason::Client);
    }
}

#[cfg(test)]
mod tests;
