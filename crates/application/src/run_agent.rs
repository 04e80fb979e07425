//! An agent's run: a model is asked, its calls are made, and their results go back to it, until it is done.
//!
//! Every call takes the path of [`execute_tool`](crate::execute_tool), within the scope of the run. What happens is added to
//! the conversation as it happens, in an order that leaves a history from which a run goes on wherever the process ends.

mod answer;
mod call_progress;
mod calls;
mod circles;
mod compacting;
mod compaction;
mod fitting;
mod history;
mod hooks;
mod long_answer;
mod offer;
pub(crate) mod ongoing;
mod request;
mod result;
mod run;
mod size;
mod spending;
mod todos;
mod usage_events;

use crate::{
    cancel_signal::CancelSignal, event_bus::EventBus, execute_tool::ExecuteToolHandler, list_tools::ListToolsHandler,
};
pub use compacting::{CompactConversationCommand, NotCompacted, Shortened};
pub use offer::offered_tool;
use ongoing::{Ongoing, OngoingRuns};
use run::Run;
use std::sync::Arc;
use tokio::sync::mpsc;
use toolstead_domain::{
    agent::{budget::Budgets, event::AgentEvent},
    client_profile::ClientProfile,
    conversation::{ConversationId, HandedOver},
    model::message::Block,
    ports::{
        agent_hook::AgentHook,
        caller::{Caller, SilentCaller},
        calls::Calls,
        clock::Clock,
        conversation_store::ConversationStore,
        model_provider::ModelProvider,
        todo_store::TodoStore,
    },
    principal::Principal,
    scope::Scope,
    tool_execution::CancelReason,
    tool_selection::ToolSelection,
};

/// Runs an agent for one turn of a conversation.
pub struct RunAgentCommand {
    /// The person's words. Without any, the run goes on with what the conversation ends with.
    pub prompt: Vec<Block>,
    /// The conversation: one that was begun already, or a new one.
    pub conversation: ConversationId,
    /// The model.
    pub model: Arc<dyn ModelProvider>,
    /// The model that writes summaries; `None`: the same.
    pub summarizer: Option<Arc<dyn ModelProvider>>,
    /// Instructions that stand before everything; empty for none.
    pub system: String,
    /// The budgets of the run.
    pub budgets: Budgets,
    /// The size at which the conversation so far is made shorter.
    pub compaction: Compaction,
    /// On whose behalf, and through which view. The session is always that of the conversation.
    pub scope: Scope,
    /// The tools that the model is told of, and may call.
    pub offered: OfferedTools,
    /// The profile that the conversation is begun with, by name.
    pub profile: Option<String>,
    /// The abilities of the client.
    pub client: Arc<ClientProfile>,
    /// The way back to the client.
    pub caller: Arc<dyn Caller>,
    /// Takes the run back.
    pub cancel: CancelSignal,
}

impl RunAgentCommand {
    /// A run by the person at this machine, in a session of the conversation's name, who is not asked anything; with all
    /// tools that the rules allow or ask about, without bounds. The fields say what is different.
    pub fn new(conversation: ConversationId, model: Arc<dyn ModelProvider>, prompt: impl Into<String>) -> Self {
        Self {
            prompt: vec![Block::text(prompt)],
            conversation,
            model,
            summarizer: None,
            system: String::new(),
            budgets: Budgets::default(),
            compaction: Compaction::default(),
            scope: Scope::of(Principal::local(), conversation.session()),
            offered: OfferedTools::default(),
            profile: None,
            client: Arc::new(ClientProfile::without_protocol("agent")),
            caller: Arc::new(SilentCaller),
            cancel: CancelSignal::new(),
        }
    }
}

impl std::fmt::Debug for RunAgentCommand {
    /// Without what is said, which may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunAgentCommand")
            .field("conversation", &self.conversation)
            .field("model", &self.model.name())
            .finish_non_exhaustive()
    }
}

/// The tools of a run. Whatever is offered, the rules hold: this only ever narrows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum OfferedTools {
    /// Those that the rules allow or ask about, as lists show them in the scope.
    #[default]
    Listed,
    /// Those of them that are chosen. A name that is not among them leads to no tool. Calls that a tool makes are held by the
    /// scope alone: a view that shows the same tools holds them, too.
    Chosen(ToolSelection),
    /// None. The request has no tools.
    Nothing,
}

/// The size at which the conversation so far is made shorter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compaction {
    /// The part of the model's window that may be full, from 0 to 1; `None`: it is made shorter only when the model
    /// refuses it as too long.
    pub at: Option<f64>,
}

impl Default for Compaction {
    fn default() -> Self {
        Self { at: Some(0.8) }
    }
}

/// The ports that runs use.
#[derive(Clone)]
pub struct RunAgentPorts {
    /// Makes the calls.
    pub execute_tool: Arc<ExecuteToolHandler>,
    /// Says which tools there are.
    pub list_tools: Arc<ListToolsHandler>,
    /// Keeps what happens.
    pub conversations: Arc<dyn ConversationStore>,
    /// Keeps the plans of sessions, which are told again where a conversation is made shorter; `None`: there are none.
    pub todos: Option<Arc<dyn TodoStore>>,
    /// Are told of a run, in this order.
    pub hooks: Vec<Arc<dyn AgentHook>>,
    /// Tells what happens to those who watch.
    pub events: Arc<EventBus>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for RunAgentPorts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunAgentPorts").field("hooks", &self.hooks.len()).finish_non_exhaustive()
    }
}

/// Carries out [`RunAgentCommand`].
pub struct RunAgentHandler {
    ports: RunAgentPorts,
    ongoing: OngoingRuns,
}

/// A run of work that a call hands over.
pub(crate) struct Child<'a> {
    /// The calls that it makes its own out of.
    pub(crate) calls: &'a dyn Calls,
    /// By which call, in which session.
    pub(crate) handed_over: HandedOver,
    /// The run that hands it over, where one does.
    pub(crate) above: Option<Arc<Ongoing>>,
}

impl std::fmt::Debug for RunAgentHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunAgentHandler").field("ports", &self.ports).finish_non_exhaustive()
    }
}

impl RunAgentHandler {
    /// A handler on these ports.
    pub fn new(ports: RunAgentPorts) -> Arc<Self> {
        Arc::new(Self { ports, ongoing: OngoingRuns::default() })
    }

    /// Begins the run, which goes on in a task of its own. To be called within a tokio runtime.
    pub fn start(self: &Arc<Self>, command: RunAgentCommand) -> AgentRun {
        // Nothing is lost on the way and nobody waits for the reader: what a run can say is bounded by what a model says.
        let (telling, events) = mpsc::unbounded_channel();
        let cancel = command.cancel.child();
        tokio::spawn(Run::new(self, command, cancel.clone(), telling, None).run());
        AgentRun { events, is_over: false, cancel }
    }

    /// The run of work that a call hands over, and what it tells. It goes on as long as it is polled; dropping it leaves a
    /// conversation that can be gone on with.
    pub(crate) fn child<'a>(
        &self,
        command: RunAgentCommand,
        child: Child<'a>,
    ) -> (impl Future<Output = ()> + Send + 'a, mpsc::UnboundedReceiver<AgentEvent>) {
        let (telling, events) = mpsc::unbounded_channel();
        let cancel = command.cancel.child();
        (Run::new(self, command, cancel, telling, Some(child)).run(), events)
    }

    /// The run of this session that goes on.
    pub(crate) fn ongoing(&self, principal: &Principal, session: &str) -> Option<Arc<Ongoing>> {
        self.ongoing.find(principal, session)
    }

    /// The store of the conversations of runs.
    pub(crate) fn conversations(&self) -> &Arc<dyn ConversationStore> {
        &self.ports.conversations
    }

    /// A session that only a run had is over.
    pub(crate) async fn session_ended(&self, principal: &Principal, session: &Arc<str>) {
        self.ports.execute_tool.session_ended(principal, session).await;
    }
}

/// A run that goes on. Dropping it takes it back: its calls are ended, and what happened by then is kept.
#[derive(Debug)]
pub struct AgentRun {
    events: mpsc::UnboundedReceiver<AgentEvent>,
    is_over: bool,
    cancel: CancelSignal,
}

impl AgentRun {
    /// The next event; `None` after [`AgentEvent::Ended`].
    pub async fn next(&mut self) -> Option<AgentEvent> {
        // A hook that was told something may still run, and nothing waits for it.
        if self.is_over {
            return None;
        }
        let event = self.events.recv().await;
        self.is_over = matches!(event, None | Some(AgentEvent::Ended { .. }));
        if self.is_over {
            // Work in the background may have much to tell that nobody will read.
            self.events.close();
        }
        event
    }
}

impl Drop for AgentRun {
    fn drop(&mut self) {
        self.cancel.cancel(CancelReason::Client);
    }
}

#[cfg(test)]
mod tests;
