//! The agents, skills and commands that people wrote down.

use crate::agent::definition::{AgentDefinition, PromptCommand, Skill};
use async_trait::async_trait;
use std::sync::Arc;

/// Those that may be used here, sorted by name, names unique. What lies in a folder that nobody trusts is not among them.
/// Each question is answered as things are now.
#[async_trait]
pub trait AgentCatalogue: Send + Sync {
    /// The agents that work can be handed to.
    fn agents(&self) -> Vec<Arc<AgentDefinition>>;

    /// The skills.
    fn skills(&self) -> Vec<Arc<Skill>>;

    /// The commands.
    fn commands(&self) -> Vec<Arc<PromptCommand>>;

    /// Returns when somebody found that the answers are others than before; nobody looks for that alone. Never, if they
    /// cannot be.
    async fn changed(&self) {
        std::future::pending().await
    }
}

/// None of any kind.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoAgents;

impl AgentCatalogue for NoAgents {
    fn agents(&self) -> Vec<Arc<AgentDefinition>> {
        Vec::new()
    }

    fn skills(&self) -> Vec<Arc<Skill>> {
        Vec::new()
    }

    fn commands(&self) -> Vec<Arc<PromptCommand>> {
        Vec::new()
    }
}
