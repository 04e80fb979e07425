//! The hooks of a run, called as one.

use std::sync::Arc;
use toolstead_domain::{
    conversation::{ConversationId, Delegation},
    ports::agent_hook::{AgentHook, AgentHookEvent, AgentHookResponse},
    principal::Principal,
};

/// The hooks of one run.
#[derive(Clone)]
pub(super) struct Hooks {
    hooks: Vec<Arc<dyn AgentHook>>,
    conversation: ConversationId,
    principal: Principal,
    handed_over: Option<Delegation>,
}

/// The events for which hooks are called.
#[derive(Debug, Clone, Copy)]
pub(super) enum Told {
    PromptSubmitted,
    Stopping,
    Compacting,
    Notified,
    SubagentStarted,
    SubagentStopping,
}

impl Hooks {
    pub(super) fn new(
        hooks: Vec<Arc<dyn AgentHook>>,
        conversation: ConversationId,
        principal: Principal,
        handed_over: Option<Delegation>,
    ) -> Self {
        Self { hooks, conversation, principal, handed_over }
    }

    /// Returns the delegation through which the agent received its work; `None`: a user gave it.
    pub(super) fn handed_over(&self) -> Option<&Delegation> {
        self.handed_over.as_ref()
    }

    pub(super) fn are_none(&self) -> bool {
        self.hooks.is_empty()
    }

    /// Calls the hooks one after another, until one blocks or stops the run.
    pub(super) async fn hear(&self, told: Told, text: &str, goes_on_by_hook: bool) -> AgentHookResponse {
        let mut all = AgentHookResponse::default();
        for hook in &self.hooks {
            let moment = AgentHookEvent {
                conversation: self.conversation,
                principal: &self.principal,
                delegated_by: self.handed_over.as_ref(),
                text,
                goes_on_by_hook,
            };
            let word = match told {
                Told::PromptSubmitted => hook.prompt_submitted(moment).await,
                Told::Stopping => hook.stopping(moment).await,
                Told::Compacting => hook.compacting(moment).await,
                Told::Notified => hook.notified(moment).await,
                Told::SubagentStarted => hook.subagent_started(moment).await,
                Told::SubagentStopping => hook.subagent_stopping(moment).await,
            };
            all.context.extend(word.context);
            all.messages.extend(word.messages);
            (all.block, all.stop) = (word.block, word.stop);
            if all.block.is_some() || all.stop.is_some() {
                break;
            }
        }
        all
    }
}
