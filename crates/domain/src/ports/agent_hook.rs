//! Hooks that are notified of the events of an agent's run, and may stop the run or make it continue.

use crate::{
    conversation::{ConversationId, Delegation},
    principal::Principal,
};
use async_trait::async_trait;

/// Event that a hook receives.
#[derive(Debug, Clone, Copy)]
pub struct AgentHookEvent<'a> {
    /// Conversation, whose id is also the id of the session.
    pub conversation: ConversationId,
    /// Owner of the conversation.
    pub principal: &'a Principal,
    /// Set if the conversation belongs to an agent to which work was delegated.
    pub delegated_by: Option<&'a Delegation>,
    /// Text of the event: the prompt before it is sent, the last text before the run ends, `auto` or `manual` before a
    /// compaction, the text of a notification.
    pub text: &'a str,
    /// `true` if a hook has already made the run continue. A hook that would always do so can check this flag.
    pub goes_on_by_hook: bool,
}

/// Response of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentHookResponse {
    /// Reason to block what is about to happen: the prompt is not sent; the run does not end, and the model receives
    /// the reason; the compaction does not happen. Has no effect on a notification.
    pub block: Option<String>,
    /// Reason for the user to end the run (`continue: false`).
    pub stop: Option<String>,
    /// Texts that are added to the prompt for the model.
    pub context: Vec<String>,
    /// Messages to the user.
    pub messages: Vec<String>,
}

/// Hook of the agent loop. The default of every method is an empty response, and a late or failed hook counts as one.
/// The exception is a hook that is configured to check prompts: if it fails, its reason is the
/// [`AgentHookResponse::block`].
#[async_trait]
pub trait AgentHook: Send + Sync {
    /// Runs before a prompt of the user is sent (UserPromptSubmit).
    async fn prompt_submitted<'m>(&self, _moment: AgentHookEvent<'m>) -> AgentHookResponse {
        AgentHookResponse::default()
    }

    /// Runs before a run ends because the model is done (Stop).
    async fn stopping<'m>(&self, _moment: AgentHookEvent<'m>) -> AgentHookResponse {
        AgentHookResponse::default()
    }

    /// Runs before a conversation is summarized (PreCompact).
    async fn compacting<'m>(&self, _moment: AgentHookEvent<'m>) -> AgentHookResponse {
        AgentHookResponse::default()
    }

    /// Runs before a subagent begins (SubagentStart); the text is its name.
    async fn subagent_started<'m>(&self, _moment: AgentHookEvent<'m>) -> AgentHookResponse {
        AgentHookResponse::default()
    }

    /// Runs before a subagent ends because its model is done (SubagentStop); the text is its last text.
    async fn subagent_stopping<'m>(&self, _moment: AgentHookEvent<'m>) -> AgentHookResponse {
        AgentHookResponse::default()
    }

    /// Runs when the user is notified of something, or an answer of the user is awaited (Notification).
    async fn notified<'m>(&self, _moment: AgentHookEvent<'m>) -> AgentHookResponse {
        AgentHookResponse::default()
    }
}
