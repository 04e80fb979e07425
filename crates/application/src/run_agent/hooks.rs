//! The hooks of a run, called as one.

use std::sync::Arc;
use toolstead_domain::{AgentHook, AgentHookEvent, AgentHookResponse, ConversationId, Delegation, Principal};

/// The hooks of one run.
#[derive(Clone)]
pub(super) struct RunHooks {
    hooks: Vec<Arc<dyn AgentHook>>,
    conversation: ConversationId,
    principal: Principal,
    delegated_by: Option<Delegation>,
}

/// Event of the agent loop for which its hooks ([`AgentHook`]) are called. Tool calls have hooks of their own.
#[derive(Debug, Clone, Copy)]
pub(super) enum HookPoint {
    PromptSubmitted,
    Stopping,
    Compacting,
    Notified,
    SubagentStarted,
    SubagentStopping,
}

impl RunHooks {
    pub(super) fn new(
        hooks: Vec<Arc<dyn AgentHook>>,
        conversation: ConversationId,
        principal: Principal,
        handed_over: Option<Delegation>,
    ) -> Self {
        Self { hooks, conversation, principal, delegated_by: handed_over }
    }

    /// Returns the delegation through which the agent received its work; `None`: a user gave it.
    pub(super) fn delegated_by(&self) -> Option<&Delegation> {
        self.delegated_by.as_ref()
    }

    pub(super) fn are_none(&self) -> bool {
        self.hooks.is_empty()
    }

    /// Calls the hooks one after another, until one blocks or stops the run. Returns that decision, with the contexts
    /// and messages of all that were called. `goes_on_by_hook` is `true` if a hook has already made the run continue.
    pub(super) async fn call(&self, point: HookPoint, text: &str, goes_on_by_hook: bool) -> AgentHookResponse {
        let mut all = AgentHookResponse::default();
        for hook in &self.hooks {
            let moment = AgentHookEvent {
                conversation: self.conversation,
                principal: &self.principal,
                delegated_by: self.delegated_by.as_ref(),
                text,
                goes_on_by_hook,
            };
            let response = match point {
                HookPoint::PromptSubmitted => hook.prompt_submitted(moment).await,
                HookPoint::Stopping => hook.stopping(moment).await,
                HookPoint::Compacting => hook.compacting(moment).await,
                HookPoint::Notified => hook.notified(moment).await,
                HookPoint::SubagentStarted => hook.subagent_started(moment).await,
                HookPoint::SubagentStopping => hook.subagent_stopping(moment).await,
            };
            all.context.extend(response.context);
            all.messages.extend(response.messages);
            (all.block, all.stop) = (response.block, response.stop);
            if all.block.is_some() || all.stop.is_some() {
                break;
            }
        }
        all
    }
}
