//! Agents, skills and commands that are defined in files.

use crate::agent::definition::{AgentDefinition, CommandPromptTemplate, Skill};
use async_trait::async_trait;
use std::sync::Arc;

/// Definitions that may be used, sorted by name, with unique names. Files in untrusted folders are left out. Each
/// method returns the current definitions.
#[async_trait]
pub trait AgentCatalogue: Send + Sync {
    /// Returns the agents to which work can be delegated.
    fn agents(&self) -> Vec<Arc<AgentDefinition>>;

    /// Returns the skills.
    fn skills(&self) -> Vec<Arc<Skill>>;

    /// Returns the commands.
    fn commands(&self) -> Vec<Arc<CommandPromptTemplate>>;

    /// Returns when a lookup has found that the definitions changed; this method starts no lookup itself. Never returns
    /// if the definitions cannot change.
    async fn changed(&self) {
        std::future::pending().await
    }
}

/// Catalogue without agents, skills and commands.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoAgents;

impl AgentCatalogue for NoAgents {
    fn agents(&self) -> Vec<Arc<AgentDefinition>> {
        Vec::new()
    }

    fn skills(&self) -> Vec<Arc<Skill>> {
        Vec::new()
    }

    fn commands(&self) -> Vec<Arc<CommandPromptTemplate>> {
        Vec::new()
    }
}
