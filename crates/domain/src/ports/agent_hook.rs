//! Hooks that are told of an agent's run, and may stop it or keep it going.

use crate::{
    conversation::{ConversationId, HandedOver},
    principal::Principal,
};
use async_trait::async_trait;

/// To what a hook is told something.
#[derive(Debug, Clone, Copy)]
pub struct AgentMoment<'a> {
    /// The conversation, whose id is also the session's.
    pub conversation: ConversationId,
    /// Whose it is.
    pub principal: &'a Principal,
    /// Set where it is that of an agent that was handed work.
    pub handed_over: Option<&'a HandedOver>,
    /// The text of the moment: the prompt before it is sent, the last text before the run ends, `auto` or `manual` before
    /// a compaction, the text of a notification.
    pub text: &'a str,
    /// The run goes on already because of a hook, so that one that always says so can be found out.
    pub goes_on_by_hook: bool,
}

/// The word of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentWord {
    /// Against what is about to happen, with the reason: the prompt is not sent; the run does not end, and the model hears
    /// the reason; the compaction does not happen. It means nothing for a notification.
    pub block: Option<String>,
    /// Ends the run, with the reason for the person (`continue: false`).
    pub stop: Option<String>,
    /// For the model, beside the prompt.
    pub context: Vec<String>,
    /// For the person.
    pub messages: Vec<String>,
}

/// A hook of the loop. All methods have a default that says nothing. One that is late or broken says nothing, too; before
/// a prompt the reason of a gate that failed is a [`AgentWord::block`].
#[async_trait]
pub trait AgentHook: Send + Sync {
    /// A person's prompt is about to be sent (UserPromptSubmit).
    async fn prompt_submitted<'m>(&self, _moment: AgentMoment<'m>) -> AgentWord {
        AgentWord::default()
    }

    /// A run is about to end because the model is done (Stop).
    async fn stopping<'m>(&self, _moment: AgentMoment<'m>) -> AgentWord {
        AgentWord::default()
    }

    /// A conversation is about to be summarized (PreCompact).
    async fn compacting<'m>(&self, _moment: AgentMoment<'m>) -> AgentWord {
        AgentWord::default()
    }

    /// A subagent is about to begin (SubagentStart); its name is the text.
    async fn subagent_started<'m>(&self, _moment: AgentMoment<'m>) -> AgentWord {
        AgentWord::default()
    }

    /// A subagent is about to end because its model is done (SubagentStop); its last text is the text.
    async fn subagent_stopping<'m>(&self, _moment: AgentMoment<'m>) -> AgentWord {
        AgentWord::default()
    }

    /// A person is told something, or waited for (Notification).
    async fn notified<'m>(&self, _moment: AgentMoment<'m>) -> AgentWord {
        AgentWord::default()
    }
}
